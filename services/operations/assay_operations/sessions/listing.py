"""List sessions, and read one."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.sessions.stored import Chosen, Seen, documents
from assay_operations.time_bounds import moment_ms
from assay_schema.limits import SAFE_INTEGER_MAX

_LIST = """SELECT last_at, source, session_id, status, complete, turns, tools, tool_errors, cost_usd, positive, negative,
    faithfulness, title, project
FROM sessions
WHERE last_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
  AND ({project:String} = '' OR project = {project:String}) AND ({source:String} = '' OR source = {source:String})
  AND ({subagents:Bool} OR parent_session_id IS NULL)
ORDER BY last_at DESC
LIMIT {limit:UInt32}"""


def sessions(
    data: Path, *, since: str, project: str = "", source: str = "", subagents: bool = False, limit: int = 100
) -> list[dict[str, Any]]:
    """Return sessions, the one that changed last first. Those of sub-agents only with `subagents`."""
    since_ms = moment_ms(since, time.time_ns() // 1_000_000, "--since")
    with open_store(settings_for("sre", data).store) as client:
        answer = client.query(
            _LIST,
            parameters={
                "since_ms": since_ms, "project": project, "source": source, "subagents": subagents, "limit": limit,
            },
        )  # fmt: skip
    return [dict(zip(answer.column_names, row, strict=True)) for row in answer.result_rows]


@dataclass(frozen=True)
class Line:
    """One line of a session as people read it: a turn or a tool call."""

    who: str
    text: str
    detail: str = ""


def document(data: Path, session_id: str, project: str | None = None) -> dict[str, Any]:
    """Return the document of a session. Raises `OperationError` if there is none that is complete."""
    seen = Seen()
    with open_store(settings_for("sre", data).store) as client:
        chosen = Chosen(SAFE_INTEGER_MAX, project=project, session_ids=(session_id,))
        found = list(documents(client, chosen, seen))
    if len(found) > 1:
        raise OperationError("invalid", "this session is in several projects; choose one with --project")
    if not found:
        raise OperationError(
            "not_found",
            "parts of this session have not arrived yet; try again in a moment, or see assay doctor"
            if seen.incomplete
            else f"no session {session_id[:100]!r} was imported; list them with assay sessions list --subagents (show needs the whole id, "
            "and a session of source capture has no transcript)",
        )
    return found[0]


def lines(document: dict[str, Any]) -> Iterator[Line]:
    """Yield the turns of a session with the tool calls after them. Pure."""
    contents = [*document["request"]["contents"], *(each["content"] for each in document["response"]["candidates"])]
    calls: dict[int, list[dict[str, Any]]] = {}
    for event in document["intermediate_events"]:
        calls.setdefault(event["turn"], []).append(event)
    for number in range(1, max([len(contents), *calls]) + 1):
        for event in calls.get(number, []):
            yield _call(event)
        if number <= len(contents):
            text = "".join(part.get("text", "") for part in contents[number - 1]["parts"])
            if text:
                yield Line(contents[number - 1]["role"], text)


def _call(event: dict[str, Any]) -> Line:
    call, response = event["function_call"], event.get("function_response", {}).get("response", {})
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.get("args", {}).items())
    said = [event.get("status", "success")]
    said += [f"exit code {event['exit_code']}"] if event.get("exit_code") else []
    said += [f"{event['duration_ms']:.0f} ms"] if event.get("duration_ms") is not None else []
    output = str(response.get("output", response.get("error", "")))
    return Line("tool", f"{call['name']}({arguments}): {', '.join(said)}", output)
