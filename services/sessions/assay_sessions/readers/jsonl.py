"""Reader of sessions as JSON lines: exported ones, other records, and messages.

| a line is | example |
|---|---|
| a session | a line of `assay sessions export`, with `request.contents`, `response.candidates` and `intermediate_events` |
| a session | `{"session_id": "s1", "messages": [{"role": "user", "content": "..."}, ...]}` |
| a message | `{"role": "user", "content": "...", "session_id": "s1"}`; without `session_id` the file is one session |

`jsonl_messages` reads the messages.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson

from assay_sessions.portable import portable
from assay_sessions.readers.jsonl_messages import conversation
from assay_sessions.readers.loose_json import arguments, items, lines, mapping, some_text, text, whole
from assay_sessions.readers.reader import Found, Problems, Reader, from_text, stores
from assay_sessions.record import Call, CallStatus, Json, Message, Transcript

SOURCE: Final = "jsonl"
_IDS: Final = ("session_id", "conversation_id", "thread_id", "id")
_TIMES: Final = ("created", "created_at", "timestamp", "time")
_STATUSES: Final[dict[str, CallStatus]] = {"success": "success", "error": "error", "refused": "refused"}
#: Fields of `metadata` that have their own place in a transcript, or are counted again.
_OWN: Final = frozenset(
    {
        "total_turns", "user_turns", "model_turns", "total_tools", "source", "source_version", "status", "updated", "model",
        "parent_session_id", "forked_from", "cost_usd", "tokens",
    }
)  # fmt: skip


def locations(home: Path, environment: Mapping[str, str]) -> list[Path]:  # noqa: ARG001
    """Return no place: the file has to be named."""
    return []


def discover(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files at or below the paths."""
    yield from stores(paths, "*.*json*", levels=3, suffixes={".jsonl", ".ndjson"})


def read(store: Path, since: datetime | None) -> Found:
    """Yield the sessions of a file, and then the problems."""
    problems = Problems()
    loose: dict[str, list[Json]] = {}
    changed = _changed(store)
    for row in lines(store, problems):
        if "request" in row:
            found = _of_document(row, changed, store.name, problems)
        elif isinstance(row.get("messages"), list):
            found = _of_messages(_id(row), row, _objects(row["messages"]), changed, store.name, problems)
        elif isinstance(row.get("role"), str):
            loose.setdefault(_id(row) or store.stem, []).append(row)
            continue
        else:
            problems.unknown(store.name, "line", next(iter(row), ""))
            continue
        if found and (since is None or found.updated >= since):
            yield found
    for session_id, messages in loose.items():
        found = _of_messages(session_id, {}, messages, changed, store.name, problems)
        if found and (since is None or found.updated >= since):
            yield found
    yield from problems


READER: Final = Reader(SOURCE, locations, discover, read)


def _of_document(row: Json, changed: datetime, name: str, problems: Problems) -> Transcript | None:
    session_id = _id(row)
    if not session_id:
        problems.add("no_session_id", name, "line")
        return None
    metadata = mapping(row.get("metadata"))
    created = _moment(row) or changed
    tokens = {
        kind: count for kind, value in mapping(metadata.get("tokens")).items() if (count := whole(value)) is not None
    }
    return Transcript(
        session_id=session_id,
        source=some_text(metadata.get("source")) or SOURCE,
        created=created,
        updated=from_text(metadata.get("updated")) or created,
        messages=tuple(_messages(row, answered=metadata.get("status") != "unanswered")),
        title=_text_or_none(row.get("title")),
        source_version=_text_or_none(metadata.get("source_version")),
        model=_text_or_none(metadata.get("model")),
        parent_session_id=some_text(metadata.get("parent_session_id")),
        forked_from=some_text(metadata.get("forked_from")),
        aborted=metadata.get("status") == "aborted",
        cost_usd=_cost(metadata),
        tokens=tokens,
        extra={key: value for key, value in metadata.items() if key not in _OWN},
    )


def _messages(row: Json, *, answered: bool) -> Iterator[Message]:
    """Yield the turns of a document, each with its calls.

    Calls of a turn of the user belong to the answer to it.
    """
    contents = _objects(mapping(row.get("request")).get("contents"))
    candidates = _objects(mapping(row.get("response")).get("candidates"))
    contents += [content for candidate in candidates if (content := mapping(candidate.get("content")))]
    calls: dict[int, list[Call]] = {}
    for event in _objects(row.get("intermediate_events")):
        calls.setdefault(max(1, whole(event.get("turn")) or 1), []).append(_call(event))
    silent: Json = {"role": "model"}
    for number in sorted({*range(1, len(contents) + 1), *calls}):
        content = contents[number - 1] if number <= len(contents) else silent
        words = "".join(text(part.get("text")) for part in _objects(content.get("parts")))
        own = calls.get(number, [])
        if content.get("role") == "user":
            yield from [Message("user", words), *map(_message, own)]
        elif not answered and number == len(contents):
            yield from [Message("model", words), *map(_message, own)]
        else:
            yield from _answer(words, own)


def _answer(words: str, calls: list[Call]) -> Iterator[Message]:
    """Yield a turn of the model with its words after its last call, so that a session which ends with words ends with an answer."""
    own = max((number for number, call in enumerate(calls, 1) if call.executed_by == "agent"), default=0)
    if own and calls[0].executed_by == "user":  # it had spoken before the user ran a command
        head, words = _split(words)
        yield Message("model", head)
    yield from map(_message, calls[:own])
    yield Message("model", words)
    yield from map(_message, calls[own:])


def _split(words: str) -> tuple[str, str]:
    """Split a text at its first blank line between words. A text without one is the second part."""
    blanks = (found.start() for found in re.finditer(r"(?=\n\n)", words))
    return next(
        ((words[:at], words[at + 2 :]) for at in blanks if words[:at].strip() and words[at + 2 :].strip()), ("", words)
    )


def _message(call: Call) -> Message:
    return Message("model" if call.executed_by == "agent" else "user", "", (call,))


def _call(event: Json) -> Call:
    call, response = mapping(event.get("function_call")), mapping(event.get("function_response"))
    answer = mapping(response.get("response"))
    failed = "error" in answer and "output" not in answer
    status = _STATUSES.get(text(event.get("status")), "error" if failed else "success")
    duration = event.get("duration_ms")
    return Call(
        text(call.get("name")),
        arguments(call.get("args")),
        _output(answer),
        status=status,
        error_kind=some_text(event.get("error_kind")),
        exit_code=whole(event.get("exit_code")) if "exit_code" in event else whole(answer.get("exit_code")),
        call_id=_text_or_none(event.get("call_id")),
        executed_by="user" if event.get("executed_by") == "user" else "agent",
        truncated=answer.get("truncated") is True,
        started_at=from_text(event.get("started_at")),
        duration_ms=float(duration) if isinstance(duration, int | float) and not isinstance(duration, bool) else None,
        child_session_id=_text_or_none(event.get("child_session_id")),
    )


def _output(answer: Json) -> str:
    """Return the text of a response: its output or its error, or the JSON of a response that has neither."""
    rest = {name: value for name, value in answer.items() if name not in ("exit_code", "truncated")}
    found = next((answer[name] for name in ("output", "error") if name in answer), rest or "")
    return found if isinstance(found, str) else orjson.dumps(portable(found)).decode()


def _of_messages(
    session_id: str | None, row: Json, messages: list[Json], changed: datetime, name: str, problems: Problems
) -> Transcript | None:
    if not session_id:
        problems.add("no_session_id", name, "line")
        return None
    if not messages:
        problems.add("no_content", name, "messages is empty")
        return None
    found = conversation(messages, name, problems)
    if not found.messages:
        problems.add("nothing_said", name)
        return None
    times = [moment for each in (row, *messages) if (moment := _moment(each))]
    metadata = mapping(row.get("metadata"))
    return Transcript(
        session_id=session_id,
        source=some_text(row.get("source")) or some_text(metadata.get("source")) or SOURCE,
        created=min(times, default=changed),
        updated=max(times, default=changed),
        messages=tuple(found.messages),
        title=some_text(row.get("title")),
        model=some_text(row.get("model")) or some_text(metadata.get("model")),
        aborted=found.aborted,
        cost_usd=_cost(metadata),
        extra={key: value for key, value in metadata.items() if key not in _OWN},
    )


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _cost(metadata: Json) -> float | None:
    cost = metadata.get("cost_usd")
    return float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0 else None


def _id(row: Json) -> str | None:
    return next((found for name in _IDS if (found := some_text(row.get(name)))), None)


def _moment(row: Json) -> datetime | None:
    return next((moment for name in _TIMES if (moment := from_text(row.get(name)))), None)


def _changed(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return datetime(1970, 1, 1, tzinfo=UTC)


def _objects(value: object) -> list[Json]:
    return [item for item in items(value) if isinstance(item, dict)]
