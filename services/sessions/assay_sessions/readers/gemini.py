"""Reader of Gemini CLI's sessions: a file of JSON lines, or of JSON, for each.

They are below `~/.gemini/tmp/PROJECT/chats`.

Traps that it knows (seen in 0.61):

- A message of the model is written again, with the same `id`, when its calls have ended: the last one counts.
- A resumed session writes its fields again, and replaces its messages by `$set`; these have calls as parts of the content, without
  their status. The message that was written before says more, and is kept. A result can have the `id` of the message with its call.
- A session that is resumed in a later minute leaves a second file with its id, which has only the context, and a prompt whose
  model failed is taken back. A file without words and calls is left out.
- An exit code is only in the text of a result, whose status is `success`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from assay_sessions.readers import results
from assay_sessions.readers.loose_json import arguments, items, lines, load_file, mapping, some_text, text, whole
from assay_sessions.readers.reader import (
    Conversation,
    Found,
    Problems,
    Reader,
    changed_before,
    from_text,
    passed_ms,
    stores,
)
from assay_sessions.readers.results import Result
from assay_sessions.record import Call, Json, Transcript

SOURCE: Final = "gemini"
#: Types of messages that are neither words nor calls.
_SILENT: Final = frozenset({"info", "error", "warning"})
_NOT_WORDS: Final = ("<session_context>", "<hook_context>")
_EXIT: Final = re.compile(r"^Exit Code: (-?\d+)\s*$", re.MULTILINE)
_KILLED: Final = re.compile(
    r"^(Signal: (?!\(none\)|0\b)\S+|Command was cancelled by user|Exit Code: \(none\))", re.MULTILINE
)
_USAGE: Final = {"input": "input", "output": "output", "reasoning": "thoughts", "cache_read": "cached"}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def locations(home: Path, environment: Mapping[str, str]) -> list[Path]:
    """Return the folder of projects."""
    return [Path(environment.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp"]


def discover(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of sessions at or below the paths."""
    yield from stores(paths, "session-*.json*", levels=6, suffixes={".json", ".jsonl"})


def read(store: Path, since: datetime | None) -> Found:
    """Yield the session of a file, and then the problems."""
    problems = Problems()
    if not changed_before(store, since):
        found = _session(store, problems)
        if found and (since is None or found.updated >= since):
            yield found
    yield from problems


READER: Final = Reader(SOURCE, locations, discover, read)


def _session(path: Path, problems: Problems) -> Transcript | None:
    if path.suffix == ".json":
        whole_file = mapping(load_file(path, path.name, problems))
        info, messages = whole_file, _objects(whole_file.get("messages"))
    else:
        info, messages = _replayed(lines(path, problems), path.name, problems)
    if not info and not messages:
        return None
    if not info.get("sessionId") and not any(message.get("type") in {"user", "gemini"} for message in messages):
        problems.add("unknown_schema", path.name)
        return None
    found = _conversation(messages, path.name, problems)
    if not found.messages:
        return None
    times = [moment for message in messages if (moment := from_text(message.get("timestamp")))]
    started, changed = from_text(info.get("startTime")), from_text(info.get("lastUpdated"))
    models = [model for message in messages if (model := some_text(message.get("model")))]
    created = started or min(times, default=_EPOCH)
    return Transcript(
        session_id=some_text(info.get("sessionId")) or path.stem,
        source=SOURCE,
        created=created,
        updated=max([*times, changed or created]),
        messages=tuple(found.messages),
        title=some_text(info.get("summary")),
        model=models[-1] if models else None,
        parent_session_id=some_text(info.get("parentSessionId")),
        aborted=found.aborted,
        tokens=_tokens(messages),
    )


def _replayed(rows: Iterable[Json], name: str, problems: Problems) -> tuple[Json, list[Json]]:
    """Return the fields of a session and its messages after all changes."""
    info: Json = {}
    messages: dict[tuple[str, str], Json] = {}
    written: dict[tuple[str, str], Json] = {}
    for row in rows:
        if "$set" in row:
            changes = mapping(row.get("$set"))
            if isinstance(changes.get("messages"), list):
                messages = _replaced(written, _objects(changes.get("messages")))
            info |= {key: value for key, value in changes.items() if key != "messages"}
        elif "$rewindTo" in row:
            messages = _rewound(messages, row.get("$rewindTo"))
        elif "sessionId" in row and "type" not in row:
            info |= {key: value for key, value in row.items() if key != "startTime" or not info.get("startTime")}
        elif "id" in row:
            messages[_key(row)] = written[_key(row)] = row
        else:
            problems.unknown(name, "row", next(iter(row), ""))
    return info, list(messages.values())


def _replaced(written: Mapping[tuple[str, str], Json], messages: Iterable[Json]) -> dict[tuple[str, str], Json]:
    replaced: dict[tuple[str, str], Json] = {}
    for message in messages:
        before = written.get(_key(message), {})
        kept = {name: before[name] for name in ("timestamp", "toolCalls", "tokens", "model") if name in before}
        replaced[_key(message)] = message | kept
    return replaced


def _rewound(messages: dict[tuple[str, str], Json], to: Any) -> dict[tuple[str, str], Json]:
    """Return the messages before the one that the session was rewound to."""
    target = text(to) or text(mapping(to).get("id")) or text(mapping(to).get("messageId"))
    kept: dict[tuple[str, str], Json] = {}
    for key, message in messages.items():
        if key[0] == target:
            break
        kept[key] = message
    return kept


def _conversation(messages: Sequence[Json], name: str, problems: Problems) -> Conversation:
    responses = _responses(messages)
    found = Conversation()
    for message in messages:
        kind, parts = message.get("type"), _parts(message.get("content"))
        words = "\n".join(
            text(part.get("text")) for part in parts if text(part.get("text")) and not part.get("thought")
        )
        if kind == "user":
            if words.strip() and not words.lstrip().startswith(_NOT_WORDS):
                found.user(words)
        elif kind == "gemini":
            started = from_text(message.get("timestamp"))
            calls = [_call(call, started) for call in _objects(message.get("toolCalls"))]
            if not calls:
                calls = [
                    _part_call(mapping(part.get("functionCall")), responses, started)
                    for part in parts
                    if "functionCall" in part
                ]
            if words.strip() or calls:
                found.model([words, *calls])
        elif kind not in _SILENT:
            problems.unknown(name, "message", kind)
    return found


def _call(call: Json, started: datetime | None) -> Call:
    answers = [mapping(part.get("functionResponse")) for part in _objects(call.get("result"))]
    response = next((mapping(answer.get("response")) for answer in answers if answer), None)
    result, output = _result(response, text(call.get("status")))
    return Call(
        text(call.get("name")),
        arguments(call.get("args")),
        output,
        status=result.status,
        error_kind=result.error_kind,
        exit_code=result.exit_code,
        call_id=some_text(call.get("id")),
        started_at=started,
        duration_ms=passed_ms(started, from_text(call.get("timestamp"))),
        child_session_id=some_text(call.get("agentId")),
    )


def _part_call(call: Json, responses: Mapping[str, Json], started: datetime | None) -> Call:
    result, output = _result(responses.get(text(call.get("id"))), "")
    return Call(
        text(call.get("name")),
        arguments(call.get("args")),
        output,
        status=result.status,
        error_kind=result.error_kind,
        exit_code=result.exit_code,
        call_id=some_text(call.get("id")),
        started_at=started,
    )


def _responses(messages: Iterable[Json]) -> dict[str, Json]:
    answers = (mapping(part.get("functionResponse")) for message in messages for part in _parts(message.get("content")))
    return {text(answer.get("id")): mapping(answer.get("response")) for answer in answers if answer}


def _result(response: Json | None, status: str) -> tuple[Result, str]:
    if response is None:
        return (results.SUCCESS if status == "success" else results.CUT_OFF), ""
    error, output = text(response.get("error")), text(response.get("output"))
    if status == "cancelled":
        return results.by_text(error or output) or Result("refused", results.USER_REFUSED), error or output
    if error or status == "error":
        return results.of_error(error or output), error or output
    code = _EXIT.findall(output[-2000:])
    if code:
        return results.of_exit(int(code[-1])), output
    return (results.CUT_OFF if _KILLED.search(output[-2000:]) else results.SUCCESS), output


def _tokens(messages: Iterable[Json]) -> dict[str, int]:
    usages = [mapping(message.get("tokens")) for message in messages]
    sums = {kind: sum(whole(usage.get(name)) or 0 for usage in usages) for kind, name in _USAGE.items()}
    sums["input"] = max(0, sums["input"] - sums["cache_read"])
    return {kind: count for kind, count in sums.items() if count}


def _key(message: Json) -> tuple[str, str]:
    return text(message.get("id")), text(message.get("type"))


def _parts(content: Any) -> list[Json]:
    return (
        [{"text": content}]
        if isinstance(content, str)
        else _objects(content if isinstance(content, list) else [content])
    )


def _objects(value: Any) -> list[Json]:
    return [item for item in items(value) if isinstance(item, dict)]
