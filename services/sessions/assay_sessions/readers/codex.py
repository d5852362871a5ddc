"""Reader of Codex CLI's sessions: a rollout file of JSON lines for each.

They are below `~/.codex/sessions`.

Traps that it knows (seen in 0.169):

- The same words are in `response_item` and in `event_msg`. The user's words are in `UserMessage` items; a `response_item` of the
  role `user` can also be the program's. The model's words are in `response_item`.
- An exit code is only in the text of a result.
- A session that was killed has a call without a result, and a task without its end.
- Files of 2025 have rows without `payload`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from assay_sessions.readers import results
from assay_sessions.readers.loose_json import (
    DamagedError,
    arguments,
    items,
    lines,
    load_object,
    mapping,
    some_text,
    text,
    whole,
)
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

SOURCE: Final = "codex"
_SILENT_ROWS: Final = frozenset({"compacted", "state", "token_usage_record", "world_state"})
_SILENT_ITEMS: Final = frozenset(
    {
        "compaction",
        "compaction_summary",
        "compaction_trigger",
        "context_compaction",
        "ghost_snapshot",
        "other",
        "reasoning",
    }
)
#: Beginnings of texts that the program writes in the user's name.
_NOT_WORDS: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
)
_CALLS: Final = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"}
)
_EXIT: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
_WALL_TIME: Final = re.compile(r"\AWall time: [^\n]*\n")
_ROLLOUT: Final = re.compile(r"rollout-.{19}-(.+)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def locations(home: Path, environment: Mapping[str, str]) -> list[Path]:
    """Return the folders of sessions."""
    root = Path(environment.get("CODEX_HOME") or home / ".codex")
    return [root / "sessions", root / "archived_sessions"]


def discover(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of sessions at or below the paths."""
    yield from stores(paths, "rollout-*.jsonl", levels=6, suffixes={".jsonl"})


def read(store: Path, since: datetime | None) -> Found:
    """Yield the session of a file, and then the problems."""
    problems = Problems()
    if not changed_before(store, since):
        found = _session(store, problems)
        if found and (since is None or found.updated >= since):
            yield found
    yield from problems


READER: Final = Reader(SOURCE, locations, discover, read)


@dataclass(slots=True)
class _Log:
    """The content of a file, in its order. `heard` are the user's words as events, `typed` as items."""

    entries: list[tuple[str, Any]] = field(default_factory=list)
    meta: Json = field(default_factory=dict)
    model: str | None = None
    usage: Json = field(default_factory=dict)
    times: list[datetime] = field(default_factory=list)
    running: bool = False


def _session(path: Path, problems: Problems) -> Transcript | None:
    log = _Log()
    for row in lines(path, problems):
        _add(log, row, path.name, problems)
    if not log.meta and not log.entries:
        return None
    found = _conversation(log)
    source = mapping(mapping(mapping(log.meta.get("source")).get("subagent")).get("thread_spawn"))
    named = _ROLLOUT.fullmatch(path.stem)
    return Transcript(
        session_id=some_text(log.meta.get("id")) or (named[1] if named else path.stem),
        source=SOURCE,
        created=from_text(log.meta.get("timestamp")) or min(log.times, default=_EPOCH),
        updated=max(log.times, default=_EPOCH),
        messages=tuple(found.messages),
        source_version=some_text(log.meta.get("cli_version")),
        model=log.model,
        parent_session_id=some_text(source.get("parent_thread_id")),
        forked_from=some_text(log.meta.get("forked_from_id")),
        aborted=found.aborted or log.running,
        tokens=_tokens(log.usage),
    )


def _add(log: _Log, row: Json, name: str, problems: Problems) -> None:
    moment = from_text(row.get("timestamp"))
    if moment:
        log.times.append(moment)
    kind, payload = row.get("type"), mapping(row.get("payload"))
    if "payload" not in row:
        if "id" in row and "timestamp" in row and kind is None:  # the first row of 2025
            log.meta = log.meta or row
            return
        kind, payload = ("state" if row.get("record_type") == "state" else "response_item"), row
    if kind == "session_meta":
        log.meta = log.meta or payload  # a fork has that of its origin after its own
    elif kind == "turn_context":
        log.model = some_text(payload.get("model")) or log.model
    elif kind == "token_usage_record":
        log.usage = mapping(payload.get("thread_token_usage"))
    elif kind == "response_item":
        _add_item(log, payload, moment, name, problems)
    elif kind == "event_msg":
        _add_event(log, payload)
    elif kind not in _SILENT_ROWS:
        problems.unknown(name, "row", kind)


def _add_item(log: _Log, item: Json, moment: datetime | None, name: str, problems: Problems) -> None:
    kind = text(item.get("type"))
    if kind == "message":
        role, words = item.get("role"), _content_text(item.get("content"))
        if role == "assistant":
            log.entries.append(("model", words))
        elif role == "user" and not words.lstrip().startswith(_NOT_WORDS):
            log.entries.append(("typed", words))
    elif kind in _CALLS:
        log.entries.append(("call", (item, moment)))
    elif kind.endswith("_output"):
        log.entries.append(("result", (item, moment)))
    elif kind not in _SILENT_ITEMS:
        problems.unknown(name, "response_item", kind)


def _add_event(log: _Log, event: Json) -> None:
    """Use the events that say more than the items. There are many others."""
    kind, item = event.get("type"), mapping(event.get("item"))
    if kind == "user_message":
        log.entries.append(("heard", text(event.get("message"))))
    elif kind == "item_completed" and item.get("type") == "UserMessage":
        log.entries.append(("heard", _content_text(item.get("content"))))
    elif kind in {"task_started", "turn_started"}:
        log.running = True
    elif kind in {"task_complete", "turn_complete"}:
        log.running = False
        if event.get("error"):
            log.entries.append(("failed", None))
    elif kind == "turn_aborted":
        log.running = False
        log.entries.append(("aborted", None))
    elif kind == "thread_rolled_back":
        log.entries.append(("back", whole(event.get("num_turns")) or 0))
    elif kind == "token_count" and (usage := mapping(mapping(event.get("info")).get("total_token_usage"))):
        log.usage = usage


def _conversation(log: _Log) -> Conversation:
    heard = any(kind == "heard" for kind, _ in log.entries)
    outputs = _paired(log)
    found = Conversation()
    said: list[str | Call] = []
    for number, (kind, value) in enumerate(log.entries):
        if kind == "model":
            said.append(value)
        elif kind == "call":
            said.append(_call(*value, *outputs.get(number, (None, None))))
        elif kind == ("heard" if heard else "typed"):
            _flush(found, said)
            found.user(value)
        elif kind == "aborted":
            _flush(found, said)
            found.aborted = True
        elif kind == "failed":
            spoke = bool(said)
            _flush(found, said)
            found.aborted = spoke
        elif kind == "back":
            _flush(found, said)
            _roll_back(found, value)
    _flush(found, said)
    return found


def _flush(found: Conversation, said: list[str | Call]) -> None:
    if said:
        found.model(said)
        said.clear()


def _roll_back(found: Conversation, turns: int) -> None:
    users = [number for number, message in enumerate(found.messages) if message.role == "user"]
    if turns > 0:
        del found.messages[users[-turns] if turns <= len(users) else 0 :]
        found.aborted = False


def _paired(log: _Log) -> dict[int, tuple[Json, datetime | None]]:
    """Return the result of each call: the first one after it with the same id."""
    waiting: dict[str, list[int]] = {}
    pairs: dict[int, tuple[Json, datetime | None]] = {}
    for number, (kind, value) in enumerate(log.entries):
        if kind == "call":
            waiting.setdefault(text(value[0].get("call_id")), []).append(number)
        elif kind == "result" and (calls := waiting.get(text(value[0].get("call_id")))):
            pairs[calls.pop(0)] = value
    return pairs


def _call(item: Json, started: datetime | None, answer: Json | None, ended: datetime | None) -> Call:
    kind = item.get("type")
    action = mapping(item.get("action"))
    if kind == "function_call":
        name, args = text(item.get("name")), arguments(item.get("arguments"))
    elif kind == "custom_tool_call":
        name, args = text(item.get("name")), {"input": item.get("input")}
    elif kind == "local_shell_call":
        name, args = "local_shell", {"command": action.get("command")}
    else:
        name, args = text(kind).removesuffix("_call"), action
    result, output = _result(item, answer)
    return Call(
        name,
        args,
        output,
        status=result.status,
        error_kind=result.error_kind,
        exit_code=result.exit_code,
        call_id=some_text(item.get("call_id")) or some_text(item.get("id")),
        started_at=started,
        duration_ms=passed_ms(started, ended),
    )


def _result(item: Json, answer: Json | None) -> tuple[Result, str]:
    if answer is None:
        done = item.get("status") == "completed" and item.get("type") in {"web_search_call", "tool_search_call"}
        return (results.SUCCESS if done else results.CUT_OFF), ""
    output = answer.get("output")
    success = mapping(output).get("success")
    words = _content_text(mapping(output).get("content")) if isinstance(output, dict) else _content_text(output)
    code: int | None = None
    if words.startswith("{"):  # up to 2025: {"output": ..., "metadata": {"exit_code": N}}
        try:
            parsed = load_object(words)
        except DamagedError:
            parsed = {}
        if isinstance(parsed.get("output"), str) and "exit_code" in mapping(parsed.get("metadata")):
            words, code = text(parsed.get("output")), whole(mapping(parsed.get("metadata")).get("exit_code"))
    if code is None and (found := _EXIT.search(words.partition("\nOutput:\n")[0][:2000])):
        code = int(found[1])
    if code is not None:
        return results.of_exit(code), words
    return results.by_text(_WALL_TIME.sub("", words)) or (
        Result("error", results.TOOL_ERROR) if success is False else results.SUCCESS
    ), words


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part for block in items(content) if (part := text(mapping(block).get("text"))))


def _tokens(usage: Json) -> dict[str, int]:
    cached = whole(usage.get("cached_input_tokens")) or 0
    counts = {
        "input": max(0, (whole(usage.get("input_tokens")) or 0) - cached),
        "output": whole(usage.get("output_tokens")) or 0,
        "reasoning": whole(usage.get("reasoning_output_tokens")) or 0,
        "cache_read": cached,
        "cache_write": whole(usage.get("cache_write_input_tokens")) or 0,
    }
    return {kind: count for kind, count in counts.items() if count}
