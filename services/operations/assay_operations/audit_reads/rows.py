"""Rows of the audit log, with what the events and records that they are about say of people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import orjson

from assay_auditor.rows import record_id
from assay_operations.audit_log import AuditLog
from assay_operations.time_bounds import utc
from assay_schema.settings import AuditorSettings

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Kinds of rows, and what a call, a loss or an operation ended with.
KINDS = ("tool_call", "server_event", "lost", "operation")
OUTCOMES = (
    "success", "empty", "partial", "degraded", "error", "refused", "lost", "started", "done", "failed", "interrupted",
)  # fmt: skip

#: What `with_people` makes rows of.
COLUMNS = (
    "leaf_index, occurred_at, toString(kind), toString(source_id), project, service, toString(tool_name), toString(status), "
    "error_kind, refusal_reason, CAST(pii_attempted, 'Array(String)'), CAST(pii_blocked, 'Array(String)'), late, caller_id, place, sd"
)
#: Views with the events of rows.
EVENT_TABLES = ("tool_calls", "server_events")


@dataclass(frozen=True)
class LogRow:
    """A row of the log, without the values of its personal fields.

    `who`, `comment` and `target` (of an operation) and `session_id` are of the record that the row is about. `who_state`
    says why `who` is empty; the others are empty too if any field of the row was erased.
    """

    leaf_index: int
    occurred_at: datetime
    kind: str
    source_id: str
    project: str
    service: str
    tool_name: str
    status: str
    reason: str
    attempted: tuple[str, ...]
    blocked: tuple[str, ...]
    late: bool
    covered: bool
    who: str = ""
    who_state: Literal["known", "sealed", "erased", "none"] = "none"
    comment: str = ""
    #: What an operation was applied to: ids, counts and filters by name.
    target: dict[str, Any] = field(default_factory=dict)
    session_id: str = ""


def covered_leaves(log: AuditLog) -> int:
    """Return the number of leaves that the newest checkpoint covers."""
    query = "SELECT size FROM audit_checkpoints WHERE log = {log:String} ORDER BY log DESC, size DESC LIMIT 1"
    rows = log.query(query)
    return int(rows[0][0]) if rows else 0


def with_people(log: AuditLog, rows: Sequence[Sequence[Any]], covered: int) -> list[LogRow]:
    """Return rows with what the records that they are about say of people."""
    events = [row[3] for row in rows if row[2] in ("tool_call", "server_event")]
    called = _callers(log, events)
    records = _records(log, [int(row[14]) for row in rows if row[2] == "operation"])
    kept = kept_fields(log, [int(row[0]) for row in rows if row[15]])
    return [_row(row, covered, called, records, kept) for row in rows]


def _row(
    row: Sequence[Any],
    covered: int,
    called: Mapping[str, tuple[str, str]],
    records: Mapping[str, tuple[str, str, str]],
    kept: set[tuple[int, str]],
) -> LogRow:
    index, at, kind, source, project, service, tool, status, error, refusal, attempted, blocked, late, caller = row[:14]
    digests = row[15]
    who, session = called.get(source, ("", ""))
    comment = target = ""
    if kind == "operation":
        who, comment, target = records.get(source, ("", "", ""))
    if any((int(index), each) not in kept for each in digests):  # a digest does not say of which field it is
        comment = target = session = ""
    is_erased = bool(caller) and (int(index), caller) not in kept
    state: Literal["known", "sealed", "erased", "none"] = (
        "none" if not caller else "erased" if is_erased else "known" if who else "sealed"
    )
    return LogRow(
        leaf_index=int(index),
        occurred_at=utc(at),
        kind=kind,
        source_id=source,
        project=project,
        service=service,
        tool_name=tool,
        status=status,
        reason=refusal or error or "",
        attempted=tuple(attempted),
        blocked=tuple(blocked),
        late=bool(late),
        covered=int(index) < covered,
        who=who if state == "known" else "",
        who_state=state,
        comment=comment,
        target=_facts(target),
        session_id=session,
    )


def _facts(target: str) -> dict[str, Any]:
    """Return the target of a record; empty if it is malformed."""
    try:
        found = orjson.loads(target or "{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _callers(log: AuditLog, events: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return agent and session of captured events, as far as they are stored."""
    if not events:
        return {}
    times = [UUID(each).int >> 80 for each in events]
    found: dict[str, tuple[str, str]] = {}
    for table in EVENT_TABLES:
        rows = log.query(
            f"SELECT toString(event_id), coalesce(toString(agent_name), ''), coalesce(session_id, '') FROM {table} "  # noqa: S608
            "WHERE event_id IN {ids:Array(UUID)} AND event_time >= fromUnixTimestamp64Milli({low:Int64}, 'UTC') "
            "AND event_time <= fromUnixTimestamp64Milli({high:Int64}, 'UTC')",
            ids=list(events),
            low=min(times),
            high=max(times),
        )
        found |= {str(event): (str(agent), str(session)) for event, agent, session in rows}
    return found


def _records(log: AuditLog, places: Sequence[int]) -> dict[str, tuple[str, str, str]]:
    """Return actor, comment and target of recorded operations, by the id of their row."""
    if not places:
        return {}
    rows = log.query(
        "SELECT toString(operation_id), toString(outcome), actor, comment, target FROM operations_audit "
        "WHERE toUnixTimestamp64Micro(stored_at) IN {places:Array(Int64)}",
        places=list(places),
    )
    return {
        record_id(str(each), str(outcome)): (str(actor), str(comment), str(target))
        for each, outcome, actor, comment, target in rows
    }


def kept_fields(log: AuditLog, places: Sequence[int]) -> set[tuple[int, str]]:
    """Return leaf and digest of the personal fields that are not erased."""
    if not places:
        return set()
    rows = log.query(
        "SELECT DISTINCT leaf_index, digest FROM audit_disclosures WHERE log = {log:String} AND leaf_index IN {places:Array(UInt64)}",
        places=list(places),
    )
    return {(int(index), str(digest)) for index, digest in rows}


@dataclass(frozen=True)
class InLog:
    """Counts of given calls: all, those in the log, those that a checkpoint covers, and refused ones."""

    calls: int
    rows: int
    covered: int
    refused: int


def in_log(client: "Client", own: AuditorSettings, events: Sequence[str]) -> InLog:
    """Count the rows of tool calls and server events in the log."""
    log = AuditLog(client, own)
    if not events:
        return InLog(0, 0, 0, 0)
    rows, covered = log.query(
        "SELECT uniqExact(source_id), uniqExactIf(source_id, leaf_index < {covered:UInt64}) FROM audit_leaves "
        "WHERE log = {log:String} AND source_id IN {ids:Array(UUID)}",
        ids=list(events),
        covered=covered_leaves(log),
    )[0]
    refused = log.query(
        "SELECT uniqExact(source_id) FROM audit_rows WHERE log = {log:String} AND source_id IN {ids:Array(UUID)} AND status = 'refused'",
        ids=list(events),
    )[0][0]
    return InLog(len(events), int(rows), int(covered), int(refused))
