"""Replies of a correct judge about sessions, and sessions to judge, for tests."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from assay_operations.sessions.events import revision, session_events
from assay_runtime.store import Client, insert_json_rows
from assay_schema.scores import Score
from assay_schema.streams import SCORES
from assay_sessions.record import Call, Message, Transcript
from assay_writer.rows import COLUMNS, event_row, score_row
from tests.support.anthropic_server import KEY, AnthropicServer, verdict
from tests.support.cli import Cli
from tests.support.redis import RedisServer


def reply(document: dict[str, Any]) -> str:
    """Write a rubric, or check a session against one, as a correct judge; about an answer, its verdict."""
    if "asked" in document:
        return json.dumps({"items": _items(document["tools"])})
    if "rubric" in document:
        return json.dumps({"verdicts": [_verdict(item, document["session"]["pieces"]) for item in document["rubric"]]})
    return verdict(document)


def _items(tools: list[str]) -> list[dict[str, Any]]:
    criteria = [
        ("task_success", "The agent says the total", False),
        ("groundedness", "The total is in a result", False),
    ]
    criteria += [("tool_use", f"The tool {tool} is called", False) for tool in tools]
    criteria += [("safety", "Nothing is deleted", True), ("instruction_following", "The reply is in French", False)]
    return [
        {"id": f"r{number}", "dimension": dimension, "criterion": criterion, "absence": absence}
        for number, (dimension, criterion, absence) in enumerate(criteria, 1)
    ]


def _verdict(item: dict[str, Any], pieces: list[dict[str, Any]]) -> dict[str, Any]:
    calls = [piece for piece in pieces if "tool" in piece]
    said = [piece["text"] for piece in pieces if piece.get("role") == "agent"]
    match item["criterion"]:
        case "The agent says the total":
            found, quote = bool(said), said[-1] if said else ""
        case "The total is in a result":
            right = [piece["result"] for piece in calls if any(piece["result"] in text for text in said)]
            found, quote = bool(right), right[0] if right else ""
        case "Nothing is deleted":
            found, quote = not any(piece["tool"] == "delete" for piece in calls), ""
        case "The reply is in French":
            return {"id": item["id"], "evidence_quote": "", "verdict": "not_applicable"}
        case _:
            named = [piece for piece in calls if piece["tool"] in item["criterion"]]
            found, quote = True, f"{named[0]['tool']} {named[0]['args']}" if named else ""
    return {"id": item["id"], "evidence_quote": quote, "verdict": "yes" if found else "no"}


def transcript(
    name: str, asked: str = "What is the total of May?", *, result: str = "the total is 1,234 euros", **more: Any
) -> Transcript:
    """A session with one call, whose answer has the result of the call if that is the total."""
    began = more.pop("began", datetime.now(UTC) - timedelta(hours=2))
    call = Call("read_ledger", {"month": "May"}, result)
    words = (
        Message("user", asked),
        Message("model", "", (call,)),
        Message("model", "For May, the total is 1,234 euros."),
    )
    return Transcript(name, "opencode", began, began + timedelta(minutes=1), words, **more)


def keep_session(owner: Client, session: Transcript, project: str = "default", *, first_id: int = 1) -> str:
    """Store a session as the writer does, and return its id."""
    now = datetime.now(UTC)
    parts = session_events(revision(session), project, None, round(now.timestamp() * 1000), len_or)
    for number, part in enumerate(parts):
        event = orjson.loads(part) | {"id": first_id + number, "created_at": now.isoformat(), "policy": "p"}
        insert_json_rows(
            owner, "assay_base.session_parts", event_row(orjson.dumps(event))[1], 1, COLUMNS["session_parts"]
        )
    return session.session_id


def len_or(_: str, most: int) -> int:
    """Cut a text anywhere: these have nothing to hide."""
    return most


class SessionJudge:
    """The command, with the API on a socket; it stores what was published as the writer does."""

    def __init__(self, cli: Cli, api: AnthropicServer, owner: Client, redis_server: RedisServer) -> None:
        self.cli, self._owner, self._redis = cli, owner, redis_server
        self._read = "-"
        #: TOML of the judge's settings.
        self.settings = f'[judge]\nbase_url = "{api.url}"\napi_key = "{KEY}"\n'

    def run(self, *arguments: str, code: int = 0, extra: str = "") -> dict[str, Any]:
        """Run it, and return its JSON."""
        done = self.cli.call("sessions", "judge", "--json", *arguments, role="sre", extra=self.settings + extra)
        assert done.returncode == code, done.stderr
        self.error = done.stderr.decode()
        return dict(json.loads(done.stdout)) if done.stdout else {}

    def start(self, program: str) -> "subprocess.Popen[bytes]":
        """Start a program in which `assay sessions judge` is the command line."""
        config = self.cli.settings_file("sre", self.settings)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        return subprocess.Popen(
            [sys.executable, "-c", program, "sessions", "judge"],
            cwd=self.cli.directory,
            env={**inherited, "ASSAY_CONFIG": str(config)},
            stdout=subprocess.DEVNULL,
        )

    def stored(self) -> list[Score]:
        """Store the scores that were published since the last look, and return them."""
        with self._redis.client() as client:
            entries = client.xrange(SCORES.key(), min=self._read)
        if entries:
            self._read = f"({entries[-1][0].decode()}"
        for _, fields in entries:
            insert_json_rows(self._owner, "assay_base.scores", score_row(fields[b"data"])[1], 1, COLUMNS["scores"])
        return [Score.model_validate_json(fields[b"data"]) for _, fields in entries]
