"""List sessions, and read one."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.events.filters import OPEN_END_MS, Range
from assay_operations.events.queries import Queries
from assay_operations.sessions.stored import Chosen, Seen, document_of, documents
from assay_operations.sessions.summaries import Place, newest_sessions, parse_place, sessions_of_id
from assay_operations.time_bounds import moment_ms
from assay_schema.limits import SAFE_INTEGER_MAX
from assay_sessions.form import malformed

if TYPE_CHECKING:
    from assay_runtime.store import Client

_COLUMNS = (
    "last_at", "source", "session_id", "status", "complete", "turns", "tools", "tool_errors", "cost_usd", "positive", "negative",
    "faithfulness", "title", "project",
)  # fmt: skip
#: Of the newest revision of each session, in its first part. In characters.
_FIRST_PROMPTS = """SELECT project, session_id, argMax(substringUTF8(trimBoth(replaceRegexpAll(
    JSONExtractString(
        arrayFirst(each -> JSONExtractString(each, 'role') = 'user', JSONExtractArrayRaw(request, 'contents')), 'parts', 1, 'text'
    ), '\\\\s+', ' ')), 1, {characters:UInt32}), revision)
FROM session_parts
WHERE part = 1 AND (project, session_id) IN {sessions:Array(Tuple(String, String))}
GROUP BY project, session_id"""
_BY_PREFIX = """SELECT DISTINCT session_id FROM session_parts
WHERE startsWith(session_id, {prefix:String}) AND ({project:String} = '' OR project = {project:String})
ORDER BY session_id LIMIT {limit:UInt32}"""
#: Characters of a session's first prompt in a list, and candidates that an ambiguous prefix of an id names.
_PROMPT_MAX = 200
_CANDIDATES = 5
_INCOMPLETE = "parts of this session have not arrived yet; try again in a moment, or see assay doctor"


def sessions(
    data: Path, *, since: str, project: str = "", source: str = "", subagents: bool = False, limit: int = 100
) -> list[dict[str, Any]]:
    """Return sessions, the one that changed last first. Those of sub-agents only with `subagents`.

    `first_prompt` is the beginning of what the user said first, on one line; empty for a session that is only captured.
    """
    since_ms = moment_ms(since, time.time_ns() // 1_000_000, "--since")
    with open_store(settings_for("sre", data).store) as client:
        return sessions_in(client, since_ms, project=project, source=source, subagents=subagents, limit=limit)


def sessions_in(
    client: "Client",
    since_ms: int,
    *,
    project: str = "",
    source: str = "",
    subagents: bool = False,
    limit: int = 100,
    until_ms: int = OPEN_END_MS,
    after: str = "",
) -> list[dict[str, Any]]:
    """Return the sessions that changed last within a range, as `sessions` does, with an open client.

    `after`: the cursor of a session (`cursor_of`); the list goes on behind it.
    """
    place = parse_place(after) if after else None
    queries = Queries(client)
    span = Range(max(0, since_ms), max(0, since_ms, until_ms))
    rows = newest_sessions(queries, span, project=project, source=source, subagents=subagents, limit=limit, after=place)
    names = [(row["project"], row["session_id"]) for row in rows if row["source"] != "capture"]
    prompts = queries.rows(_FIRST_PROMPTS, {"characters": _PROMPT_MAX, "sessions": names}) if names else []
    said = {(project, session): prompt for project, session, prompt in prompts}
    return [
        {name: row[name] for name in _COLUMNS} | {"first_prompt": said.get((row["project"], row["session_id"]), "")}
        for row in rows
    ]


def cursor_of(row: Mapping[str, Any]) -> str:
    """Return the cursor of a row of `sessions_in`: the list goes on behind it. Pure."""
    at = row["last_at"].replace(tzinfo=UTC) - datetime.fromtimestamp(0, UTC)
    return str(Place(at // timedelta(microseconds=1), row["project"], row["session_id"]))


def summaries_of(client: "Client", session_id: str, project: str = "") -> list[dict[str, Any]]:
    """Return the rows of the view `sessions` with an id: one for each project that has it."""
    return sessions_of_id(Queries(client), session_id, project)


@dataclass(frozen=True)
class Line:
    """One line of a session as people read it: a turn or a tool call."""

    who: str
    text: str
    detail: str = ""


def document(data: Path, session_id: str, project: str | None = None) -> dict[str, Any]:
    """Return the document of a session by its id, or by the beginning of its id.

    Raises `OperationError` if there is none that is complete, or if several begin with it.
    """
    with open_store(settings_for("sre", data).store) as client:
        return document_in(client, session_id, project)


def document_in(client: "Client", session_id: str, project: str | None = None) -> dict[str, Any]:
    """Return the document of a session, as `document` does, with an open client."""
    seen = Seen()
    chosen = Chosen(SAFE_INTEGER_MAX, project=project, session_ids=(session_id,))
    found = list(documents(client, chosen, seen))
    if not found and not seen.incomplete and (whole := _by_prefix(client, session_id, project)):
        found = list(documents(client, replace(chosen, session_ids=(whole,)), seen))
    if len(found) > 1:
        raise OperationError("invalid", "this session is in several projects; choose one with --project")
    if seen.malformed:
        raise _malformed(next(iter(seen.malformed.values())))
    if not found:
        raise OperationError(
            "not_found",
            _INCOMPLETE
            if seen.incomplete
            else f"no session {session_id[:100]!r} was imported; list them with assay sessions list --subagents "
            "(a session of source capture has no transcript)",
        )
    return found[0]


def document_of_row(client: "Client", row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of an imported session by its row, as `summaries_of` has it: in one query.

    Raises `OperationError` if it is not complete.
    """
    if not row["complete"]:
        raise OperationError("not_found", _INCOMPLETE)
    span = Range(row["parts_from_ms"], row["parts_to_ms"])
    found = document_of(client, row["project"], row["session_id"], row["revision"], row["digest"], span=span)
    if place := malformed(found):
        raise _malformed(place)
    return found


def _malformed(place: str) -> OperationError:
    return OperationError(
        "invalid", f"this session has not the form of one, at {place}; see docs/agents.md, and what sent it"
    )


def _by_prefix(client: "Client", prefix: str, project: str | None) -> str | None:
    """Return the id that begins with this; None if there is none."""
    parameters = {"prefix": prefix, "project": project or "", "limit": _CANDIDATES + 1}
    names = [str(name) for (name,) in client.query(_BY_PREFIX, parameters=parameters).result_rows]
    if len(names) > 1:
        shown = ", ".join(names[:_CANDIDATES]) + (", ..." if len(names) > _CANDIDATES else "")
        raise OperationError("invalid", f"several sessions begin with {prefix[:100]!r}: {shown}; give more of the id")
    return names[0] if names else None


@dataclass(frozen=True)
class Turn:
    """A turn of a session: the tool calls before what was said, and who said what."""

    number: int
    calls: tuple[dict[str, Any], ...] = ()
    who: str = ""
    text: str = ""


def turns(document: Mapping[str, Any]) -> Iterator[Turn]:
    """Yield the turns of a session in order, also those that only tool calls name. Pure."""
    contents = [*document["request"]["contents"], *(each["content"] for each in document["response"]["candidates"])]
    calls: dict[int, list[dict[str, Any]]] = {}
    for event in document["intermediate_events"]:
        calls.setdefault(event["turn"], []).append(event)
    for number in sorted({*range(1, len(contents) + 1), *calls}):
        before = tuple(calls.get(number, ()))
        if 1 <= number <= len(contents):
            said = contents[number - 1]
            yield Turn(number, before, said["role"], "".join(part.get("text", "") for part in said["parts"]))
        else:
            yield Turn(number, before)


def output_of(call: Mapping[str, Any]) -> Any:
    """Return what a tool call returned, or its error; None if nothing or an empty text. Pure."""
    response = call.get("function_response", {}).get("response", {})
    output = response.get("output")
    found = response.get("error") if output is None else output
    return None if found == "" else found


def exit_code_of(call: Mapping[str, Any]) -> int | None:
    """Return the exit code of a tool call; None if it has none that is a whole number. Pure."""
    code = call.get("exit_code")
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def duration_ms_of(call: Mapping[str, Any]) -> float | None:
    """Return how long a tool call took; None if it is not said as a finite number. Pure."""
    took = call.get("duration_ms")
    return took if isinstance(took, int | float) and not isinstance(took, bool) and math.isfinite(took) else None


def lines(document: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the turns of a session, each with its tool calls before it. Pure."""
    for turn in turns(document):
        yield from map(_call, turn.calls)
        if turn.text:
            yield Line(turn.who, turn.text)


def _call(event: Mapping[str, Any]) -> Line:
    call, code, took, output = event["function_call"], exit_code_of(event), duration_ms_of(event), output_of(event)
    given = call.get("args") or {}
    arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
    said = [event.get("status", "success")]
    said += [f"exit code {code}"] if code else []
    said += [f"{took:.0f} ms"] if took is not None else []
    detail = "" if output is None else str(output)
    if event.get("executed_by") == "user":
        command = given.get("command")
        ran = command if isinstance(command, str) else f"{call['name']}({arguments})"
        return Line("user ran", f"{ran}: {', '.join(said)}", detail)
    return Line("tool", f"{call['name']}({arguments}): {', '.join(said)}", detail)
