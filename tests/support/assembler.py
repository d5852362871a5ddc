"""Run `python -m assay_assembler` against a real Redis in which it has its own user, and append spans for it."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from assay_assembler.span import Span
from assay_schema.span_entry import SpanEntry
from assay_schema.streams import CAPTURE, FIELD, SPANS
from tests.support.ports import free_port
from tests.support.redis import RedisServer
from tests.support.spans import TRACE, request
from tests.support.wait import until

#: Windows of a second, so that tests are quick.
QUICK = {"ASSAY_ASSEMBLER_GRACE_S": "0.5", "ASSAY_ASSEMBLER_IDLE_S": "2", "ASSAY_DELIVERY_VISIBILITY_TIMEOUT_S": "2"}

ASKED = '[{"role":"user","parts":[{"type":"text","content":"How long are rows kept?"}]}]'
ANSWERED = '[{"role":"assistant","parts":[{"type":"text","content":"Thirty days."}]}]'
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "help"}
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m-1",
    "gen_ai.input.messages": ASKED,
    "gen_ai.output.messages": ANSWERED,
}
RETRIEVAL = {
    "gen_ai.operation.name": "retrieval",
    "gen_ai.retrieval.query.text": "rows kept",
    "gen_ai.retrieval.documents": '[{"id":"4101","score":0.9,"content":"Rows are kept for thirty days."}]',
}
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "get_retention",
    "gen_ai.tool.call.arguments": '{"table":"rows"}',
}


def entry(*spans: Span, trace: str = TRACE, project: str = "shop") -> bytes:
    """Return an entry of the stream `spans`."""
    return SpanEntry(project, "web", trace, "traces", "protobuf", request(*spans).SerializeToString()).encoded()


def append(redis: RedisServer, *entries: bytes) -> None:
    """Append entries as the gateway does."""
    with redis.client() as client:
        for each in entries:
            client.xadd(SPANS.key(), {FIELD: each})


def captured(redis: RedisServer) -> list[dict[str, Any]]:
    """Return the events in the capture stream."""
    with redis.client() as client:
        return [orjson.loads(fields[FIELD.encode()]) for _, fields in client.xrange(CAPTURE.key())]


def kinds(redis: RedisServer) -> Counter[str]:
    """Return the number of captured events by kind; an event that is there twice fails the test."""
    events = captured(redis)
    assert len({each["event_id"] for each in events}) == len(events)
    return Counter(each["kind"] for each in events)


class Assembler:
    """The process."""

    def __init__(self, directory: Path, redis: RedisServer, name: str = "one", **settings: str) -> None:
        self.port = free_port()
        self._directory, self._log = directory, directory / f"assembler-{name}.log"
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")} | {
            "ASSAY_REDIS_URL": f"redis://assembler:assembler-password@127.0.0.1:{redis.port}/0",
            "ASSAY_REDIS_COMMAND_TIMEOUT_S": "5",
            "ASSAY_ASSEMBLER_PORT": str(self.port),
            "ASSAY_DELIVERY_CONSUMER": name,
            **QUICK,
            **settings,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, ready: bool = True) -> "Assembler":
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "assay_assembler"],
                env=self._environment,
                stdout=log,
                stderr=log,
                cwd=self._directory,
            )
        if ready:
            until(lambda: self.health("/readyz")[0] == 200, "the assembler is not ready")
        return self

    def kill(self) -> None:
        """End it at once, as the system does when memory is short."""
        if self.process:
            self.process.kill()
            self.process.wait(60)

    def stop(self) -> int:
        """End it in order."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def log(self) -> str:
        return self._log.read_text()

    def health(self, path: str) -> tuple[int, str]:
        """Return status and text of a page; status 0 without an answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""
