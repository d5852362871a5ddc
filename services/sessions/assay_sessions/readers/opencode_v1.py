"""Messages with parts: OpenCode up to 1.18, in files, tables and exports. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from assay_sessions.readers import results
from assay_sessions.readers.loose_json import amount, arguments, items, mapping, some_text, text, whole
from assay_sessions.readers.reader import Conversation, Problems, from_ms, passed_ms
from assay_sessions.readers.results import Result
from assay_sessions.record import Call, Json

#: A message's fields and its parts, in order. Both have their `id`.
Item = tuple[Json, Sequence[Json]]

#: Parts that are neither words nor calls.
_SILENT: Final = frozenset(
    {"reasoning", "step-start", "step-finish", "snapshot", "patch", "agent", "subtask", "retry", "compaction", "file"}
)
_USAGE: Final = {
    "input": ("input",),
    "output": ("output",),
    "reasoning": ("reasoning",),
    "cache_read": ("cache", "read"),
    "cache_write": ("cache", "write"),
}


def conversation(messages: Iterable[Item], revert: Json, problems: Problems, name: str) -> Conversation:
    """Return the words and calls of a session.

    Words are the texts that are neither synthetic nor ignored. A compaction and its summary are left out. The messages after the
    one that the session was reverted to are left out too.
    """
    found = Conversation()
    wordless: set[str] = set()
    for info, parts in _kept(messages, revert):
        role = info.get("role")
        _count_unknown(parts, problems, name)
        if role == "user":
            words = _words(parts)
            if words or any(part.get("type") in {"file", "agent", "subtask"} for part in parts):
                found.user(words)
            else:
                wordless.add(text(info.get("id")))
        elif role == "assistant":
            _add_assistant(found, info, parts, by_user=text(info.get("parentID")) in wordless)
        else:
            problems.unknown(name, "message", role)
    return found


def usage(messages: Iterable[Json]) -> tuple[float, dict[str, int]]:
    """Return the cost in USD and the tokens of a session from those of its messages."""
    cost = 0.0
    tokens: dict[str, int] = {}
    for info in messages:
        cost += amount(info.get("cost"))
        for kind, count in tokens_of(info.get("tokens")).items():
            tokens[kind] = tokens.get(kind, 0) + count
    return cost, tokens


def tokens_of(value: Any) -> dict[str, int]:
    """Return the tokens of `{input, output, reasoning, cache: {read, write}}` that are not 0."""
    tokens: dict[str, int] = {}
    for kind, path in _USAGE.items():
        found: Any = value
        for step in path:
            found = mapping(found).get(step)
        if count := whole(found):
            tokens[kind] = count
    return tokens


def _kept(messages: Iterable[Item], revert: Json) -> Iterator[Item]:
    message_id, part_id = some_text(revert.get("messageID")), some_text(revert.get("partID"))
    for info, parts in messages:
        if message_id is not None and info.get("id") == message_id:
            if part_id is not None:
                before = [number for number, part in enumerate(parts) if part.get("id") == part_id]
                yield info, parts[: before[0]] if before else parts
            return
        yield info, parts


def _words(parts: Sequence[Json]) -> str:
    return "\n\n".join(text(part.get("text")) for part in parts if _is_words(part))


def _is_words(part: Json) -> bool:
    spoken = part.get("type") == "text" and not part.get("synthetic") and not part.get("ignored")
    return spoken and bool(text(part.get("text")).strip())


def _count_unknown(parts: Sequence[Json], problems: Problems, name: str) -> None:
    for part in parts:
        kind = part.get("type")
        if kind not in {"text", "tool"} and kind not in _SILENT:
            problems.unknown(name, "part", kind)


def _add_assistant(found: Conversation, info: Json, parts: Sequence[Json], *, by_user: bool) -> None:
    # `summary` of a user's message is an object
    if info.get("summary") is True or info.get("mode") == "compaction" or info.get("agent") == "compaction":
        return
    error = info.get("error")
    aborted = mapping(error).get("name") == "MessageAbortedError"
    calls = [_call(part, aborted=aborted, by_user=False) for part in parts if part.get("type") == "tool"]
    stepped = any(part.get("type") == "step-start" for part in parts)
    if by_user and calls and not stepped and not info.get("finish") and not error:
        for part in parts:
            if part.get("type") == "tool":
                found.command(_call(part, aborted=False, by_user=True))
        return
    said: list[str | Call] = []
    for part in parts:
        if _is_words(part):
            said.append(text(part.get("text")))
        elif part.get("type") == "tool":
            said.append(calls[sum(isinstance(one, Call) for one in said)])
    unfinished = not error and not info.get("finish") and whole(mapping(info.get("time")).get("completed")) is None
    if said or aborted:
        found.model(said, interrupted=bool(error) or unfinished)


def _call(part: Json, *, aborted: bool, by_user: bool) -> Call:
    state = mapping(part.get("state"))
    metadata = mapping(state.get("metadata"))
    name, args = text(part.get("tool")), arguments(state.get("input"))
    if not args and state.get("raw"):
        args = arguments(state.get("raw"))
    result, output = _result(state, metadata, aborted=aborted)
    if name == "invalid" and some_text(args.get("tool")):  # the tool that stands for one that does not exist
        name, output = text(args.get("tool")), text(args.get("error")) or output
        result, args = results.of_error(output), {}
    moments = mapping(state.get("time"))
    started, ended = from_ms(moments.get("start")), from_ms(moments.get("end"))
    return Call(
        name,
        args,
        output,
        status=result.status,
        error_kind=result.error_kind,
        exit_code=result.exit_code,
        call_id=some_text(part.get("callID")),
        executed_by="user" if by_user else "agent",
        truncated=metadata.get("truncated") is True,
        started_at=started,
        duration_ms=passed_ms(started, ended),
        child_session_id=some_text(metadata.get("sessionId")) or some_text(metadata.get("sessionID")),
    )


def _result(state: Json, metadata: Json, *, aborted: bool) -> tuple[Result, str]:
    status = state.get("status")
    if status == "error":
        error = text(state.get("error"))
        return results.of_error(error), error
    output = text(state.get("output"))
    if status != "completed":
        return results.CUT_OFF, output
    code = whole(metadata.get("exit"))
    if code is not None:
        return results.of_exit(code), output
    if "exit" in metadata:  # null: the command was killed
        timed_out = not aborted and "timeout" in output[-400:] and "User aborted" not in output[-400:]
        return (Result("error", results.TIMEOUT) if timed_out else results.CUT_OFF), output
    return results.SUCCESS, output


def joined_texts(content: Any) -> str:
    """Return the texts of a list of content items, a line apart."""
    return "\n".join(text(mapping(item).get("text")) for item in items(content) if mapping(item).get("type") == "text")
