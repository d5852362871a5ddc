"""Run `python -m assay_assembler` against a real Redis in which it has its own user, and append spans for it."""

from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from assay_assembler.open_traces import GROUP, OpenTraces, arrival_of
from assay_assembler.span import Span
from assay_runtime.connection import Client
from assay_runtime.same_redis import redis_here
from assay_schema.span_entry import SpanEntry
from assay_schema.streams import CAPTURE, FIELD, SPANS
from tests.support.redis import RedisServer
from tests.support.service_process import ServiceProcess
from tests.support.spans import TRACE, request

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


async def take(client: Client, assembler: OpenTraces, count: int = 10_000, *, pending: bool = False) -> int:
    """Hand entries to an assembler in this process: new ones, or those that were delivered before.

    Returns the number that it finished.
    """
    found = await client.xreadgroup(GROUP, "one", {SPANS.key(): "0" if pending else ">"}, count=count)
    arrivals = [arrival_of(each.decode(), fields[FIELD.encode()]) for _, new in found for each, fields in new]
    return await assembler.finish(arrivals, await redis_here(client, SPANS.key()))


def captured(redis: RedisServer) -> list[dict[str, Any]]:
    """Return the events in the capture stream."""
    with redis.client() as client:
        return [orjson.loads(fields[FIELD.encode()]) for _, fields in client.xrange(CAPTURE.key())]


def kinds(redis: RedisServer) -> Counter[str]:
    """Return the number of captured events by kind; an event that is there twice fails the test."""
    events = captured(redis)
    assert len({each["event_id"] for each in events}) == len(events)
    return Counter(each["kind"] for each in events)


class Assembler(ServiceProcess):
    """The process, with windows of a second."""

    def __init__(self, directory: Path, redis: RedisServer, name: str = "one", **settings: str) -> None:
        own = {"ASSAY_DELIVERY_CONSUMER": name, **QUICK}
        super().__init__("assembler", directory, redis, f"assembler-{name}.log", **own | settings)
