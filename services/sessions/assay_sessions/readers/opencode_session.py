"""A session of OpenCode from its fields and its conversation. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from assay_sessions.readers import opencode_v1, opencode_v2
from assay_sessions.readers.loose_json import DamagedError, amount, loads, mapping, some_text, text, whole
from assay_sessions.readers.reader import Conversation, Problems, from_ms
from assay_sessions.record import Json, Transcript

SOURCE: Final = "opencode"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_REDACTED: Final = "[redacted:"
_TOKEN_COLUMNS: Final = ("input", "output", "reasoning", "cache_read", "cache_write")


@dataclass(frozen=True, slots=True)
class Info:
    """The fields of a session, from a row or from JSON."""

    session_id: str
    created: datetime | None
    updated: datetime | None
    title: str | None
    version: str | None
    parent_id: str | None
    fork_id: str | None
    model: str | None
    agent: str | None
    revert: Json
    cost: float
    tokens: Mapping[str, int]


def info_of_json(info: Json) -> Info:
    """Return the fields of a session's JSON."""
    moments = mapping(info.get("time"))
    model = mapping(info.get("model"))
    return Info(
        session_id=text(info.get("id")),
        created=from_ms(moments.get("created")),
        updated=from_ms(moments.get("updated")),
        title=some_text(info.get("title")),
        version=some_text(info.get("version")),
        parent_id=some_text(info.get("parentID")),
        fork_id=some_text(mapping(info.get("fork")).get("sessionID")) or some_text(info.get("forkSessionID")),
        model=some_text(model.get("id")) or some_text(model.get("modelID")),
        agent=some_text(info.get("agent")),
        revert=mapping(info.get("revert")),
        cost=amount(info.get("cost")),
        tokens=opencode_v1.tokens_of(info.get("tokens")),
    )


def info_of_row(row: Json) -> Info:
    """Return the fields of a session's row. Columns that a version does not have are None."""
    model = _column_json(row.get("model"))
    return Info(
        session_id=_column_text(row.get("id")) or "",
        created=from_ms(row.get("time_created")),
        updated=from_ms(row.get("time_updated")),
        title=_column_text(row.get("title")),
        version=_column_text(row.get("version")),
        parent_id=_column_text(row.get("parent_id")),
        fork_id=_column_text(row.get("fork_session_id")),
        model=some_text(model.get("id")) or some_text(model.get("modelID")),
        agent=_column_text(row.get("agent")),
        revert=_column_json(row.get("revert")),
        cost=amount(row.get("cost")),
        tokens={kind: count for kind in _TOKEN_COLUMNS if (count := whole(row.get(f"tokens_{kind}")))},
    )


def of_parts(
    info: Info, messages: Sequence[opencode_v1.Item], changed_ms: int, problems: Problems, name: str, shape: str
) -> Transcript:
    """Return a session of messages with parts. `changed_ms` is the last change of its rows, 0 if unknown."""
    infos = [message for message, _ in messages]
    changed = max([changed_ms, *(_last_ms(message) for message in infos)])
    found = opencode_v1.conversation(messages, info.revert, problems, name)
    models = [model for message in infos if (model := some_text(message.get("modelID")))]
    return _transcript(info, found, opencode_v1.usage(infos), changed, models, shape, copied=_copied(info, messages))


def of_rows(info: Info, rows: Sequence[Json], changed_ms: int, problems: Problems, name: str, shape: str) -> Transcript:
    """Return a session of session messages. `changed_ms` is the last change of its rows, 0 if unknown."""
    changed = max([changed_ms, *map(_last_ms, rows)])
    kept = _before_revert(rows, info.revert)
    found = opencode_v2.conversation(kept, problems, name)
    models = [model for row in rows if (model := some_text(mapping(row.get("model")).get("id")))]
    return _transcript(info, found, opencode_v2.usage(rows), changed, models, shape, copied=0)


def _transcript(
    info: Info,
    found: Conversation,
    usage: tuple[float, dict[str, int]],
    changed_ms: int,
    models: Sequence[str],
    shape: str,
    *,
    copied: int,
) -> Transcript:
    cost, tokens = usage
    changed = from_ms(changed_ms) if changed_ms else None
    created = info.created or changed or _EPOCH
    texts = [info.title or "", *(message.text for message in found.messages[:20])]
    extra: Json = {"shape": shape}
    if info.agent:
        extra["agent"] = info.agent
    if copied:
        extra["copied_messages"] = copied
    if any(one.startswith(_REDACTED) for one in texts):
        extra["sanitized"] = True
    return Transcript(
        session_id=info.session_id,
        source=SOURCE,
        created=created,
        updated=max(moment for moment in (info.updated, changed, created) if moment),
        messages=tuple(found.messages),
        title=info.title,
        source_version=info.version,
        model=info.model or (models[-1] if models else None),
        parent_session_id=info.parent_id,
        forked_from=info.fork_id,
        aborted=found.aborted,
        cost_usd=info.cost or cost or None,
        tokens=info.tokens or tokens,
        extra=extra,
    )


def _copied(info: Info, messages: Sequence[opencode_v1.Item]) -> int:
    """Return the number of messages that are older than their session: a fork copies them with their times."""
    if info.created is None:
        return 0
    moments = (from_ms(mapping(message.get("time")).get("created")) for message, _ in messages)
    return sum(moment is not None and moment < info.created for moment in moments)


def _before_revert(rows: Sequence[Json], revert: Json) -> Sequence[Json]:
    message_id = some_text(revert.get("messageID"))
    at = [number for number, row in enumerate(rows) if message_id is not None and row.get("id") == message_id]
    return rows[: at[0]] if at else rows


def _last_ms(message: Json) -> int:
    moments = mapping(message.get("time"))
    return max(whole(moments.get("created")) or 0, whole(moments.get("completed")) or 0)


def _column_text(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return some_text(value)


def _column_json(value: Any) -> Json:
    if not isinstance(value, bytes | str):
        return {}
    try:
        return mapping(loads(value))
    except DamagedError:
        return {}
