"""Logs of Claude Code, Codex and Gemini CLI with invented sessions, and what readers find in logs."""

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from assay_sessions.document import document
from assay_sessions.readers import READERS, Problem
from assay_sessions.record import Transcript

Json = dict[str, Any]
SECRET = "hunter2planted"
AT = "2026-11-25T14:30:0{}.000Z"


def written(path: Path, rows: Iterable[Json | str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def read(agent: str, path: Path, since: datetime | None = None) -> tuple[list[Transcript], list[Problem]]:
    found = list(READERS[agent].read(path, since))
    problems = [each for each in found if isinstance(each, Problem)]
    assert SECRET not in str(problems)
    return [each for each in found if isinstance(each, Transcript)], problems


def shown(found: Transcript) -> tuple[list[str], str | None, list[str], str]:
    """Contents, answer, calls as `turn name status kind exit`, and the status."""
    made = document(found)
    contents = [f"{content['role']}: {content['parts'][0]['text']}" for content in made["request"]["contents"]]
    answers = [one["content"]["parts"][0]["text"] for one in made["response"]["candidates"]]
    calls = []
    for event in made["intermediate_events"]:
        end = [str(one) for one in (event.get("error_kind"), event.get("exit_code")) if one is not None]
        calls.append(" ".join([str(event["turn"]), event["function_call"]["name"], event["status"], *end]))
    return contents, answers[0] if answers else None, calls, made["metadata"]["status"]


class Claude:
    """The rows of a file, each the child of the one before."""

    def __init__(self) -> None:
        self.rows: list[Json] = []

    def row(self, kind: str, message: Json, **fields: Any) -> "Claude":
        number = len(self.rows)
        parent = fields.pop("parent", f"u{number - 1}" if number else None)
        own = {"type": kind, "uuid": f"u{number}", "parentUuid": parent, "isSidechain": False, "sessionId": "c-1"}
        own |= {"timestamp": AT.format(number % 10), "version": "2.1.197", "message": message}
        self.rows.append(own | fields)
        return self

    def user(self, content: Any, **fields: Any) -> "Claude":
        return self.row("user", {"role": "user", "content": content}, **fields)

    def model(self, message_id: str, *content: Json, **fields: Any) -> "Claude":
        usage = {"input_tokens": 100, "cache_read_input_tokens": 3, "output_tokens": 7}
        message = {"id": message_id, "role": "assistant", "model": "m-1", "content": list(content), "usage": usage}
        return self.row("assistant", message, **fields)

    def result(self, call: str, content: str, **fields: Any) -> "Claude":
        return self.user([{"type": "tool_result", "tool_use_id": call, "content": content, **fields}])


def words(text: str) -> Json:
    return {"type": "text", "text": text}


def use(call: str, name: str, **arguments: Any) -> Json:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def codex(*payloads: tuple[str, Json]) -> list[Json]:
    meta = ("session_meta", {"id": "x-1", "session_id": "x-1", "cli_version": "0.169.0", "timestamp": AT.format(0)})
    return [
        {"timestamp": AT.format(min(9, number)), "ordinal": number, "type": kind, "payload": payload}
        for number, (kind, payload) in enumerate([meta, *payloads])
    ]


def typed(text: str) -> list[tuple[str, Json]]:
    """The user's words, which stand in two rows."""
    item = {"type": "UserMessage", "content": [{"type": "text", "text": text}]}
    return [
        ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
        ("event_msg", {"type": "item_completed", "item": item}),
    ]


def spoken(text: str) -> list[tuple[str, Json]]:
    item = {"type": "AgentMessage", "content": [{"type": "Text", "text": text}]}
    content = [{"type": "output_text", "text": text}]
    return [
        ("event_msg", {"type": "item_completed", "item": item}),
        ("response_item", {"type": "message", "role": "assistant", "content": content}),
    ]


def run(call: str, name: str, arguments: Json, output: str | None) -> list[tuple[str, Json]]:
    made = {"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": call}
    answered = {"type": "function_call_output", "call_id": call, "output": output}
    return [("response_item", made), *([("response_item", answered)] if output is not None else [])]


def gemini(number: int, kind: str, content: Any, **fields: Any) -> Json:
    return {"id": f"g{number}", "timestamp": AT.format(number), "type": kind, "content": content, **fields}


def tool_call(name: str, status: str, **response: str) -> Json:
    answer = {"functionResponse": {"id": f"{name}_1", "name": name, "response": response}}
    return {"id": f"{name}_1", "name": name, "args": {"x": 1}, "status": status, "result": [answer]}


GEMINI_START = {"sessionId": "g-1", "startTime": AT.format(0), "lastUpdated": AT.format(0), "kind": "main"}
GEMINI_CONTEXT = gemini(9, "user", [{"text": "<session_context>\nThis is the Gemini CLI."}])


_OTEL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "work"}]}]',
    "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]',
}
_SPAN = {
    "traceId": "t1",
    "spanId": "s1",
    "startTimeUnixNano": "1780000000000000000",
    "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in _OTEL.items()],
}
GOOD: dict[str, tuple[str, list[Json]]] = {
    "claude-code": ("c-1.jsonl", Claude().user("work").model("m1", words("Done.")).rows),
    "codex": ("rollout-x.jsonl", codex(*typed("work"), *spoken("Done."))),
    "gemini": ("session-1.jsonl", [GEMINI_START, gemini(1, "user", "work"), gemini(2, "gemini", "Done.")]),
    "otel": ("t.jsonl", [{"resourceSpans": [{"scopeSpans": [{"spans": [_SPAN]}]}]}]),
    "jsonl": ("s.jsonl", [{"role": "user", "content": "work"}, {"role": "assistant", "content": "Done."}]),
}
