"""The captured events of one session, in the order in which they happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assay_operations.errors import OperationError
from assay_operations.events.listing import rows_at, with_verdicts
from assay_operations.events.position import Position
from assay_operations.events.queries import Queries
from assay_operations.events.rows import SOURCES, EventRow, within
from assay_operations.sessions.summaries import FAILED
from assay_operations.time_bounds import utc
from assay_schema.fields import Kind

if TYPE_CHECKING:
    from assay_runtime.store import Client

_WITH_SEQ = (Kind.TOOL_CALL, Kind.SERVER_EVENT)


@dataclass(frozen=True)
class CapturedEvents:
    """A page of a session's events, oldest first.

    `time` of a row is when it happened, by the producer's clock.
    """

    rows: tuple[EventRow, ...]
    #: Number of all events, and of pages, from 1.
    total: int
    page: int
    pages: int


def captured_events(
    client: "Client", row: Mapping[str, Any], *, failed: bool = False, page: int = 1, limit: int = 200
) -> CapturedEvents:
    """Return a page of a session's events by the time they happened, then by `seq`.

    `row`: of the session, as `summaries_of` has it. An event that is stored after the row was read may be missing.
    `failed`: only tool calls that ended in an error or were refused. Raises `OperationError` for a page that does not exist.
    """
    queries, project = Queries(client), str(row["project"])
    kinds = [kind for kind in SOURCES if kind in row["kinds"] and (kind is Kind.TOOL_CALL or not failed)]
    values = {
        "project": project, "session": row["session_id"], "limit": limit, "offset": (page - 1) * limit,
        "low_ms": row["events_from_ms"], "upper_ms": row["events_to_ms"],
    }  # fmt: skip
    found = queries.rows(_select(kinds, failed=failed), values) if kinds else []
    if not found and page > 1:
        raise OperationError("invalid", f"events: the session has no page {page} of events")
    keys = [Position(ms, str(event_id), kind, project) for kind, ms, event_id, _, _ in found]
    happened = {key: utc(at) for key, (_, _, _, at, _) in zip(keys, found, strict=True)}
    total = int(found[0][4]) if found else 0
    rows = with_verdicts(queries, rows_at(queries, keys))
    return CapturedEvents(
        tuple(_at(row, happened[row.position]) for row in rows), total, page, max(1, -(-total // limit))
    )


def _at(row: EventRow, happened: datetime) -> EventRow:
    return replace(row, time=happened)


def _select(kinds: Sequence[Kind], *, failed: bool) -> str:
    # The times are those of the ids: a backfill happened long before its ids were made.
    where = [
        "e.project = {project:String}",
        "e.session_id = {session:String}",
        *within(),
        *([f"e.{FAILED}"] if failed else []),
    ]
    parts = [
        f"SELECT {kind.value!r} AS kind, toUnixTimestamp64Milli(e.event_time) AS ms, e.event_id AS event_id,"  # noqa: S608
        f" e.occurred_at AS happened, {'e.seq' if kind in _WITH_SEQ else 'CAST(NULL, ' + repr('Nullable(UInt64)') + ')'} AS place"
        f" FROM {SOURCES[kind].view} AS e WHERE {' AND '.join(where)}"
        for kind in kinds
    ]
    return (
        f"SELECT kind, ms, event_id, happened, count() OVER () AS total FROM ({' UNION ALL '.join(parts)})"  # noqa: S608
        " ORDER BY happened, place, ms, event_id, kind LIMIT {limit:UInt32} OFFSET {offset:UInt32}"
    )
