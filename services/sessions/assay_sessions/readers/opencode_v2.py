"""Session messages with content: the V2 API of OpenCode 1.18, and OpenCode 2. Pure."""

from collections.abc import Iterable
from typing import Final

from assay_sessions.readers import results
from assay_sessions.readers.loose_json import amount, arguments, items, mapping, some_text, text, whole
from assay_sessions.readers.opencode_v1 import joined_texts, tokens_of
from assay_sessions.readers.reader import Conversation, Problems, from_ms, passed_ms
from assay_sessions.readers.results import Result
from assay_sessions.record import Call, Json

#: Rows that are neither words nor calls.
_SILENT: Final = frozenset(
    {"synthetic", "system", "skill", "compaction", "agent-switched", "model-switched", "location-switched"}
)
_ENDED: Final = {"exited": results.SUCCESS, "completed": results.SUCCESS, "timeout": Result("error", results.TIMEOUT)}
_STOPPED: Final = ("interrupt", "abort", "cancel")


def conversation(rows: Iterable[Json], problems: Problems, name: str) -> Conversation:
    """Return the words and calls of a session. A row has its `type` next to its data."""
    found = Conversation()
    for row in rows:
        kind = row.get("type")
        if kind == "user":
            found.user(text(row.get("text")))
        elif kind == "assistant":
            _add_assistant(found, row, problems, name)
        elif kind == "shell":
            found.command(_shell(row))
        elif kind == "idle":
            found.aborted = found.aborted or row.get("outcome") == "interrupted"
        elif kind not in _SILENT:
            problems.unknown(name, "session_message", kind)
    return found


def usage(rows: Iterable[Json]) -> tuple[float, dict[str, int]]:
    """Return the cost in USD and the tokens of a session from those of its rows."""
    cost = 0.0
    tokens: dict[str, int] = {}
    for row in rows:
        cost += amount(row.get("cost"))
        for kind, count in tokens_of(row.get("tokens")).items():
            tokens[kind] = tokens.get(kind, 0) + count
    return cost, tokens


def _add_assistant(found: Conversation, row: Json, problems: Problems, name: str) -> None:
    said: list[str | Call] = []
    for item in map(mapping, items(row.get("content"))):
        kind = item.get("type")
        if kind == "text":
            said.append(text(item.get("text")))
        elif kind == "tool":
            said.append(_call(item))
        elif kind != "reasoning":
            problems.unknown(name, "content", kind)
    error = mapping(row.get("error"))
    failed = bool(error) or row.get("finish") == "error"
    stopped = failed and _stopped(error)
    unfinished = not failed and not row.get("finish") and whole(mapping(row.get("time")).get("completed")) is None
    if any(isinstance(one, Call) or one.strip() for one in said) or stopped:
        found.model(said, interrupted=failed or unfinished)


def _stopped(error: Json) -> bool:
    words = f"{text(error.get('type'))} {text(error.get('message'))[:200]}".lower()
    return any(word in words for word in _STOPPED)


def _call(item: Json) -> Call:
    state = mapping(item.get("state"))
    # 1.18 calls `metadata` `structured`
    metadata = mapping(state.get("metadata")) or mapping(state.get("structured"))
    result, output = _result(state, metadata)
    moments = mapping(item.get("time"))
    started = from_ms(moments.get("ran")) or from_ms(moments.get("created"))
    return Call(
        text(item.get("name")),
        arguments(state.get("input")),
        output,
        status=result.status,
        error_kind=result.error_kind,
        exit_code=result.exit_code,
        call_id=some_text(item.get("id")),
        truncated=metadata.get("truncated") is True,
        started_at=started,
        duration_ms=passed_ms(started, from_ms(moments.get("completed"))),
        child_session_id=some_text(metadata.get("sessionId")) or some_text(metadata.get("sessionID")),
    )


def _result(state: Json, metadata: Json) -> tuple[Result, str]:
    status, output = state.get("status"), joined_texts(state.get("content"))
    if status == "error":
        error = mapping(state.get("error"))
        message = text(error.get("message")) or output
        kind = text(error.get("type")).lower()
        if "permission" in kind or "rejected" in kind or "denied" in kind:
            by_text = results.by_text(message)
            refused = by_text if by_text and by_text.status == "refused" else Result("refused", results.USER_REFUSED)
            return refused, message
        if any(word in kind for word in _STOPPED):
            return results.CUT_OFF, message
        return results.of_error(message), message
    if status != "completed":
        return results.CUT_OFF, output
    code = whole(metadata.get("exit"))
    if code is not None:
        return results.of_exit(code), output
    return (results.CUT_OFF if "exit" in metadata else results.SUCCESS), output


def _shell(row: Json) -> Call:
    moments = mapping(row.get("time"))
    started = from_ms(moments.get("created"))
    output = row.get("output")
    code = whole(row.get("exit"))
    ended = _ENDED.get(text(row.get("status")), results.CUT_OFF)
    result = results.of_exit(code) if code is not None else ended
    return Call(
        "shell",
        {"command": text(row.get("command"))},
        output if isinstance(output, str) else text(mapping(output).get("output")) or text(mapping(output).get("text")),
        status=result.status,
        error_kind=result.error_kind,
        exit_code=result.exit_code,
        call_id=some_text(row.get("shellID")) or some_text(row.get("callID")),
        executed_by="user",
        started_at=started,
        duration_ms=passed_ms(started, from_ms(moments.get("completed"))),
    )
