"""Read one event with what belongs to it, or find out why it is not there."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import orjson

from assay_operations.errors import OperationError
from assay_operations.events.filters import KINDS, OPEN_END_MS
from assay_operations.events.listing import rows_at, with_verdicts
from assay_operations.events.position import Position
from assay_operations.events.queries import Queries
from assay_operations.events.rows import (
    FEEDBACK_BEFORE_MS,
    SOURCES,
    EventRow,
    event_row,
    from_unix_ms,
    moment,
    select,
    select_keys,
    within,
)
from assay_schema.fields import Kind
from assay_schema.ids import event_ms, row_ms
from assay_schema.limits import EVENT_AHEAD_MAX_MS

if TYPE_CHECKING:
    from assay_runtime.store import Client
    from assay_schema.settings import RetentionSettings

#: Events of the same trace or session belong to an event if their times are within this, in milliseconds (15 minutes).
RELATED_MS = 900_000
#: Most related events, and most feedback, that are read.
RELATED_MAX = 200
#: An answer is built on a retrieval of at most a day before it, or after it by another producer's clock; in milliseconds.
_CHAIN_MS = 86_400_000
_DAY_MS = 86_400_000
#: Most events with one id, in several kinds and projects, of which the first is shown.
_SAME_ID_MAX = 10_000

_PART = """SELECT session_id, project, part, parts FROM session_parts
WHERE event_id = {event_id:UUID} AND event_time = fromUnixTimestamp64Milli({at_ms:Int64}, 'UTC')
  AND ({project:String} = '' OR project = {project:String})
LIMIT 1"""

Missing = Literal["expired", "failed", "pruned", "not_stored_yet", "part_of_session", "unknown"]


@dataclass(frozen=True)
class Event:
    """A stored event.

    Scores, feedback and the linked records have the columns of their views (docs/tables.md).
    """

    event_id: str
    kind: Kind
    time: datetime
    #: The row as it is in its view.
    record: dict[str, Any]
    #: Of an answer: the retrieval that it was built on, if it is stored.
    retrieval: dict[str, Any] | None
    #: Of a retrieval: the answers that were built on it.
    answers: tuple[EventRow, ...]
    #: Of feedback: the event that it is about, if it is stored.
    target: EventRow | None
    #: What people said about this event, newest first.
    feedback: tuple[dict[str, Any], ...]
    #: Of an answer: its scores with the verdict on each claim, newest first.
    scores: tuple[dict[str, Any], ...]
    #: Tool calls of the same trace or session within 15 minutes, oldest first.
    tool_calls: tuple[EventRow, ...]
    #: Other events of the same trace or session within 15 minutes, oldest first.
    related: tuple[EventRow, ...]
    #: False if there are more feedback or related events than are read.
    complete: bool


@dataclass(frozen=True)
class MissingEvent:
    """An event that is not stored, and why."""

    event_id: str
    #: Time inside the id.
    time: datetime
    #: `failed`: recorded as lost; `expired`: older than retention; `pruned`: in the range of a deletion; `not_stored_yet`: newer than the
    #: watermark; `part_of_session`: a stored part of a session, which `assay_operations.sessions` reads; `unknown`: none of these, so it
    #: was probably never sent.
    reason: Missing
    #: What the reason rests on. Never captured text.
    detail: str
    #: The record behind the reason: of the failure or of the operation.
    record: dict[str, Any] | None = None


def one_event(
    client: "Client",
    event_id: str,
    *,
    project: str | None = None,
    retention: "RetentionSettings | None" = None,
    now_ms: int | None = None,
) -> Event | MissingEvent:
    """Return an event by its id, in any kind. Raises `OperationError` for an id that no event can have.

    `project` decides if one id is in several projects. Without `retention` an expired event is `unknown`.
    """
    wanted = _id(event_id)
    queries = Queries(client)
    ms = event_ms(UUID(wanted))
    found = _find(queries, wanted, ms, project)
    event = None if found is None else _with_chain(queries, *found)
    if event is None:
        now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        return _missing(queries, wanted, ms, project, retention, now_ms)
    return event


def cited_ids(client: "Client", answer_id: str, project: str) -> frozenset[str]:
    """Return the ids of the passages that an answer cites; none if it is not stored.

    Raises `OperationError`.
    """
    at_ms = event_ms(UUID(answer_id))
    values = {"event_id": answer_id, "project": project, "low_ms": at_ms, "upper_ms": at_ms + 1}
    where = " AND ".join([*within(), "e.project = {project:String}", "e.event_id = {event_id:UUID}"])
    rows = Queries(client).rows(f"SELECT e.citations.context_id FROM answers AS e WHERE {where}", values)  # noqa: S608
    return frozenset(str(each) for (ids,) in rows for each in ids)


def _id(event_id: str) -> str:
    try:
        wanted = UUID(event_id)
    except ValueError:
        wanted = UUID(int=0)
    if wanted.version != 7 or event_ms(wanted) >= OPEN_END_MS:
        raise OperationError(
            "invalid", f"{event_id[:60]!r} is not an event_id such as 019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d (a UUIDv7)"
        )
    return str(wanted)


def _find(queries: Queries, event_id: str, ms: int, project: str | None) -> tuple[Position, str, str] | None:
    """Return the key of an id, of the first kind that has it, with the ids of its trace and session; empty without them."""
    where = [*within(), "e.event_id = {event_id:UUID}"]
    where += ["e.project = {project:String}"] if project is not None else []
    values = {"event_id": event_id, "project": project or "", "low_ms": ms, "upper_ms": ms + 1, "limit": _SAME_ID_MAX}
    sql = (
        "SELECT e.kind, toString(e.project), e.traceparent, e.session_id FROM events AS e"  # noqa: S608 - parts of this module
        f" WHERE {' AND '.join(where)} LIMIT {{limit:UInt32}}"
    )
    rows = queries.rows(sql, values)
    first = min(rows, key=lambda row: (KINDS.index(Kind(row[0])), row[1]), default=None)
    if first is None:
        return None
    kind, of, traceparent, session_id = first
    return Position(ms, event_id, kind, of), (traceparent or "")[3:35], session_id or ""


def _with_chain(queries: Queries, found: Position, trace_id: str, session_id: str) -> Event | None:
    """Return the event of a key; None if it was deleted meanwhile."""
    event_id, kind, ms = str(found.event_id), Kind(found.kind), found.ms
    key = {"event_id": event_id, "project": found.project, "low_ms": ms, "upper_ms": ms + 1}
    said = "target_event_id = {event_id:UUID}", key | {"low_ms": ms - FEEDBACK_BEFORE_MS, "upper_ms": None}
    scored = "event_id = {event_id:UUID} AND session_id IS NULL", key, RELATED_MAX, "judged_at"
    with queries.threads() as threads:
        itself = threads.submit(_records, queries, SOURCES[kind].view, "event_id = {event_id:UUID}", key)
        others = threads.submit(_related, queries, found, trace_id, session_id)
        built = threads.submit(_answers, queries, found) if kind is Kind.RETRIEVAL else None
        judged = threads.submit(_records, queries, "scores", *scored) if kind is Kind.ANSWER else None
        comments = (
            None if kind is Kind.FEEDBACK else threads.submit(_records, queries, "feedback", *said, RELATED_MAX + 1)
        )
        records = itself.result()
        record = records[0] if records else {}
        # What the record links to is read here: it must not wait for the threads' other work.
        retrieval = _linked(queries, "candidates", record.get("retrieval_event_id"), found.project)
        target = _target(queries, record.get("target_event_id"), found.project)
    if not record:
        return None
    related = others.result()
    answers = built.result() if built else ()
    scores, feedback = (each.result() if each else [] for each in (judged, comments))
    shown = related[:RELATED_MAX]
    return Event(
        event_id,
        kind,
        from_unix_ms(ms),
        record,
        retrieval,
        answers[:RELATED_MAX],
        target,
        tuple(feedback[:RELATED_MAX]),
        tuple(scores),
        tuple(each for each in shown if each.kind is Kind.TOOL_CALL),
        tuple(each for each in shown if each.kind is not Kind.TOOL_CALL),
        complete=max(len(feedback), len(related), len(answers)) <= RELATED_MAX,
    )


def _records(
    queries: Queries,
    view: str,
    condition: str,
    key: dict[str, Any],
    limit: int = RELATED_MAX,
    order: str = "event_time",
) -> list[dict[str, Any]]:
    """Return rows of a view in the project and time of `key`, newest first. `upper_ms` of None is open."""
    where = ["project = {project:String}", f"event_time >= {moment('low_ms')}", condition]
    if key["upper_ms"] is not None:
        where.append(f"event_time < {moment('upper_ms')}")
    sql = f"SELECT * FROM {view} WHERE {' AND '.join(where)} ORDER BY {order} DESC LIMIT {{limit:UInt32}}"  # noqa: S608
    return queries.objects(sql, {name: value for name, value in key.items() if value is not None} | {"limit": limit})


def _linked(queries: Queries, view: str, event_id: str | None, project: str) -> dict[str, Any] | None:
    """Return the record of a linked event; None without a link, if it is not stored, or if the link is no id of an event."""
    linked = UUID(event_id) if event_id else None
    if linked is None or linked.version != 7:
        return None
    ms = event_ms(linked)
    key = {"event_id": event_id, "project": project, "low_ms": ms, "upper_ms": ms + 1}
    found = _records(queries, view, "event_id = {event_id:UUID}", key, 1)
    return found[0] if found else None


def _target(queries: Queries, event_id: str | None, project: str) -> EventRow | None:
    if event_id is None:
        return None
    target = UUID(event_id)
    found = _find(queries, event_id, event_ms(target), project) if target.version == 7 else None
    rows = with_verdicts(queries, rows_at(queries, [found[0]])) if found else ()
    return rows[0] if rows else None


def _answers(queries: Queries, found: Position) -> tuple[EventRow, ...]:
    where = [*within(), "e.project = {project:String}", "e.retrieval_event_id = {event_id:UUID}"]
    values = {
        "project": found.project,
        "event_id": found.event_id,
        "low_ms": found.ms - _CHAIN_MS,
        "upper_ms": found.ms + _CHAIN_MS,
    }
    sql = f"SELECT * FROM ({select({Kind.ANSWER: where})}) ORDER BY time LIMIT {RELATED_MAX + 1}"  # noqa: S608
    return with_verdicts(queries, _oldest_first([event_row(each) for each in queries.rows(sql, values)]))


def _related(queries: Queries, found: Position, trace_id: str, session_id: str) -> tuple[EventRow, ...]:
    """Return the other events of the trace or session of an event, oldest first. Empty: it has none."""
    either = []
    if trace_id:
        either.append("substring(e.traceparent, 4, 32) = {trace_id:String}")
    if session_id:
        either.append("e.session_id = {session_id:String}")
    if not either:
        return ()
    where = [*within(), "e.project = {project:String}", f"({' OR '.join(either)})", "e.event_id != {event_id:UUID}"]
    values = {
        "project": found.project,
        "event_id": found.event_id,
        "trace_id": trace_id,
        "session_id": session_id,
        "at_ms": found.ms,
        "low_ms": found.ms - RELATED_MS,
        "upper_ms": found.ms + RELATED_MS + 1,
        "limit": RELATED_MAX + 1,
    }
    # Most events have few others of their trace: the engine plans the query for keys in less than half the time of one for rows.
    found_keys = queries.rows(select_keys(dict.fromkeys(KINDS, where), "abs(ms - {at_ms:Int64})"), values)
    keys = [Position(ms, str(event_id), kind, project) for kind, ms, event_id, project in found_keys]
    return with_verdicts(queries, _oldest_first(rows_at(queries, keys)))


def _oldest_first(rows: Sequence[EventRow]) -> tuple[EventRow, ...]:
    return tuple(sorted(rows, key=lambda row: (row.time, row.kind, row.event_id)))


def _missing(
    queries: Queries, event_id: str, ms: int, project: str | None, retention: "RetentionSettings | None", now_ms: int
) -> MissingEvent:
    at = from_unix_ms(ms)
    if parts := queries.objects(_PART, {"event_id": event_id, "at_ms": ms, "project": project or ""}):
        return MissingEvent(event_id, at, "part_of_session", "it is a part of a session", parts[0])
    if failures := _failures(queries, event_id):
        last = failures[0]
        detail = f"recorded as lost by {last['stage']}: {last['reason']}"
        return MissingEvent(event_id, at, "failed", detail, last)
    if retention and (expired := _expired(retention, project, ms, now_ms)):
        return MissingEvent(event_id, at, "expired", expired)
    if operation := _prune(queries, ms, project):
        detail = f"a deletion on {operation['started_at']} covers its time"
        return MissingEvent(event_id, at, "pruned", detail, operation)
    if ms > now_ms + EVENT_AHEAD_MAX_MS:
        return MissingEvent(
            event_id, at, "unknown", "its time is more than a day in the future, which no event may have"
        )
    watermark = int(queries.rows("SELECT watermark FROM watermark", {})[0][0])
    if ms >= row_ms(watermark):
        detail = (
            f"its time is after the watermark, {from_unix_ms(row_ms(watermark)).isoformat()}, up to which all is stored"
        )
        if not watermark:
            detail = "nothing has been stored yet"
        return MissingEvent(event_id, at, "not_stored_yet", detail)
    return MissingEvent(event_id, at, "unknown", "everything of its time is stored, and no record names it")


def _failures(queries: Queries, event_id: str) -> list[dict[str, Any]]:
    sql = (
        "SELECT * FROM capture_failures WHERE event_id = {event_id:UUID} AND entry_id IS NOT NULL"
        " ORDER BY created_at DESC LIMIT 1"
    )
    return queries.objects(sql, {"event_id": event_id})


def _expired(retention: "RetentionSettings", project: str | None, ms: int, now_ms: int) -> str | None:
    """Return in words that retention removes events of this age; None if it does not.

    Without a project the shortest retention counts.
    """
    days = (
        min(retention.days, *retention.projects.values())
        if project is None and retention.projects
        else retention.projects.get(project or "", retention.days)
    )
    age = (now_ms - ms) / _DAY_MS
    if age < days:
        return None
    return f"it is {age:.1f} days old, and rows are kept for {days} days" + (
        " (the shortest of all projects)" if project is None and retention.projects else ""
    )


def _prune(queries: Queries, ms: int, project: str | None) -> dict[str, Any] | None:
    """Return the last deletion that covers a time and project; None without one."""
    sql = (
        "SELECT * FROM operations WHERE operation = 'prune' AND (changed > 0 OR outcome = 'started')"
        " AND started_at >= fromUnixTimestamp64Milli({at_ms:Int64}, 'UTC') ORDER BY started_at DESC LIMIT 1000"
    )
    for record in queries.objects(sql, {"at_ms": ms}):
        target = orjson.loads(record["target"])
        upto_ms = target.get("upto_ms", target.get("stored_upto_ms", 0))
        if ms <= upto_ms and (project is None or target.get("project") in (None, project)):
            return record
    return None
