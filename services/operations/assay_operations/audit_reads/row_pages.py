"""Pages of rows of the audit log that meet conditions, the newest first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay_auditor.rows import record_id
from assay_operations.audit_log import AuditLog
from assay_operations.audit_reads.rows import COLUMNS, EVENT_TABLES, LogRow, covered_leaves, with_people
from assay_operations.events.filters import Range
from assay_schema.settings import AuditorSettings

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Rows of the log that one page looks at, one part after another, until it is full.
PARTS = (2_000, 10_000, 50_000, 250_000)
#: Rows of a page of a list that is read whole.
PAGE_ROWS = 1_000
#: Events or records that a filter by session or person names.
NAMED_MAX = 2_000

_TIMES = "{column} >= fromUnixTimestamp64Milli({{from:Int64}}, 'UTC') AND {column} < fromUnixTimestamp64Milli({{to:Int64}}, 'UTC')"


@dataclass(frozen=True)
class RowFilter:
    """Conditions that a row must all meet; empty ones hold for every row."""

    project: str = ""
    kind: str = ""
    status: str = ""
    tool: str = ""
    service: str = ""
    #: The agent of a call, or the person of an operation.
    actor: str = ""
    #: The session whose calls are looked for.
    session: str = ""


@dataclass(frozen=True)
class Rows:
    """A page of rows, newest first.

    `next`: the leaf below which the next page begins; None at the end of the range. `complete`: True if no row of the range that meets the
    conditions is older than these, or missing between them. `left_out`: which rows a filter by session or person did not look for.
    """

    rows: tuple[LogRow, ...]
    next: int | None
    complete: bool
    left_out: str = ""


def log_rows(
    client: "Client", own: AuditorSettings, wanted: RowFilter, span: Range, *, below: int | None = None, limit: int = 50
) -> Rows:
    """Return a page of rows that happened in a range, newest first.

    `below`: the cursor of the page before it. Looks at `PARTS` rows at most. Raises `OperationError`.
    """
    return _page(AuditLog(client, own), wanted, span, below, limit)


def listed(log: AuditLog, wanted: RowFilter, span: Range, limit: int) -> Iterator[Rows]:
    """Yield pages of rows that happened in a range, newest first.

    `limit`: rows of all pages together. Raises `OperationError`.
    """
    below, rest = None, limit
    while rest > 0:
        page = _page(log, wanted, span, below, min(rest, PAGE_ROWS))
        yield page
        below, rest = page.next, rest - len(page.rows)
        if below is None:
            return


def _page(log: AuditLog, wanted: RowFilter, span: Range, below: int | None, limit: int) -> Rows:
    where, values = _conditions(wanted)
    named, left_out = _named(log, wanted, span)
    if wanted.session and not named:
        return Rows((), None, not left_out, left_out)
    times = _TIMES.format(column="occurred_at")
    values |= {"from": span.from_ms, "to": span.to_ms, "most": limit + 1}
    first, end = _ends(log, times, values)
    covered = covered_leaves(log)
    found: list[LogRow] = []
    bottom = end if below is None else min(end, below)
    for part in PARTS:
        if bottom <= first:
            break
        upper, bottom = bottom, max(first, bottom - part)
        only, more = _only(log, named, wanted, bottom, upper)
        rows = log.query(
            f"SELECT DISTINCT {COLUMNS} FROM audit_rows WHERE log = {{log:String}} AND leaf_index >= {{start:UInt64}} "  # noqa: S608
            f"AND leaf_index < {{end:UInt64}} AND {times}{where}{only} ORDER BY leaf_index DESC LIMIT {{most:UInt64}}",
            start=bottom,
            end=upper,
            **values,
            **more,
        )
        # A name that was erased from the log finds nothing there, although the record has it.
        found += [each for each in with_people(log, rows, covered) if wanted.actor in ("", each.who)]
        if len(found) > limit:
            return Rows(tuple(found[:limit]), found[limit - 1].leaf_index, False, left_out)
        if len(rows) > limit:
            return Rows(tuple(found), int(rows[-1][0]), False, left_out)
    return Rows(tuple(found), bottom if bottom > first else None, bottom <= first and not left_out, left_out)


def _conditions(wanted: RowFilter) -> tuple[str, dict[str, Any]]:
    columns = {"project": wanted.project, "kind": wanted.kind, "status": wanted.status, "tool_name": wanted.tool}
    columns["service"] = wanted.service
    given = {name: value for name, value in columns.items() if value}
    return "".join(f" AND {name} = {{{name}:String}}" for name in given), dict(given)


def _named(log: AuditLog, wanted: RowFilter, span: Range) -> tuple[list[str], str]:
    """Return the ids of the newest events of a session, or records of a person, in a range, and which ones are left out."""
    values = {"session": wanted.session, "actor": wanted.actor, "from": span.from_ms, "to": span.to_ms}
    if wanted.session:
        of_table = (
            "SELECT event_id, occurred_at FROM {table} WHERE session_id = {{session:String}} AND {times} "
            "ORDER BY occurred_at DESC LIMIT {{most:UInt64}}"
        )
        times = _TIMES.format(column="occurred_at")
        both = " UNION ALL ".join(f"({of_table.format(table=table, times=times)})" for table in EVENT_TABLES)
        query, what = f"SELECT toString(event_id) FROM ({both}) ORDER BY occurred_at DESC", "calls of this session"  # noqa: S608
    elif wanted.actor:
        query = (
            "SELECT toString(operation_id), toString(outcome) FROM operations_audit "  # noqa: S608
            f"WHERE actor = {{actor:String}} AND {_TIMES.format(column='at')} ORDER BY at DESC"
        )
        what = "operations of this person"
    else:
        return [], ""
    rows = log.query(query + " LIMIT {most:UInt64}", most=NAMED_MAX + 1, **values)
    left_out = f"Only the newest {NAMED_MAX:,} {what} in this range were looked for." if len(rows) > NAMED_MAX else ""
    return [str(row[0]) if wanted.session else record_id(*map(str, row)) for row in rows[:NAMED_MAX]], left_out


def _only(log: AuditLog, named: Sequence[str], wanted: RowFilter, start: int, end: int) -> tuple[str, dict[str, Any]]:
    """Return the condition of a part for a filter by session or person."""
    if wanted.session:
        return " AND source_id IN {named:Array(UUID)}", {"named": list(named)}
    if not wanted.actor:
        return "", {}
    low, high = log.query(
        "SELECT toUnixTimestamp64Micro(min(created_at)), toUnixTimestamp64Micro(max(created_at)) FROM audit_rows "
        "WHERE log = {log:String} AND leaf_index >= {start:UInt64} AND leaf_index < {end:UInt64}",
        start=start,
        end=end,
    )[0]
    calls = " UNION ALL ".join(
        f"SELECT event_id FROM {table} WHERE agent_name = {{actor:String}} "  # noqa: S608
        "AND created_at >= fromUnixTimestamp64Micro({low:Int64}, 'UTC') AND created_at <= fromUnixTimestamp64Micro({high:Int64}, 'UTC')"
        for table in EVENT_TABLES
    )
    values = {"named": list(named), "actor": wanted.actor, "low": int(low), "high": int(high)}
    return f" AND (source_id IN {{named:Array(UUID)}} OR source_id IN ({calls}))", values


def _ends(log: AuditLog, times: str, values: Mapping[str, Any]) -> tuple[int, int]:
    """Return the first leaf of a range of time, and the place behind its last one."""
    found = []
    for order in ("log, leaf_index", "log DESC, leaf_index DESC"):
        rows = log.query(
            f"SELECT leaf_index FROM audit_rows WHERE log = {{log:String}} AND {times} ORDER BY {order} LIMIT 1",  # noqa: S608
            **{name: values[name] for name in ("from", "to")},
        )
        if not rows:
            return 0, 0
        found.append(int(rows[0][0]))
    return found[0], found[1] + 1
