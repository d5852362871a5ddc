"""Count events in buckets of time, from the rollups."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from assay_operations.events.bounds import (
    DAY,
    DAYS_FROM_MS,
    HOUR,
    MINUTE,
    Unit,
    rollup_conditions,
    rollup_parameters,
)
from assay_operations.events.filters import EventFilter, Range
from assay_operations.events.queries import Queries
from assay_operations.events.rows import from_unix_ms

if TYPE_CHECKING:
    from assay_runtime.store import Client

BUCKETS_MAX = 180
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000
#: Widths of buckets in milliseconds, each with the rollup that is added up. Wider ones are multiples of the last.
_WIDTHS = (
    *((minutes * _MINUTE_MS, MINUTE) for minutes in (1, 2, 5, 10, 15, 30)),
    *((hours * _HOUR_MS, HOUR) for hours in (1, 2, 3, 6, 12)),
    *((days * _DAY_MS, DAY) for days in (1, 2, 7, 14, 28)),
)


@dataclass(frozen=True)
class Bucket:
    """The events of one bucket by kind; kinds without events are left out."""

    start: datetime
    events: dict[str, int]


@dataclass(frozen=True)
class Histogram:
    """Counts by bucket, oldest first, without gaps.

    The first and the last bucket are whole, also outside the range.
    """

    buckets: tuple[Bucket, ...]
    width_s: int
    #: The rollup that was added up: `minute`, `hour` or `day`.
    unit: str
    #: Conditions of the filter that the rollups do not know: these are not applied to the counts.
    not_applied: tuple[str, ...]
    rows_read: int


def histogram(client: "Client", wanted: EventFilter, span: Range) -> Histogram:
    """Return the number of events by bucket, at most `BUCKETS_MAX`, from the finest rollup that fits.

    An open range is narrowed to the events that are counted. Raises `OperationError`.
    """
    queries = Queries(client)
    span = counted_span(queries, wanted, span)
    width_ms, unit = width_of(span)
    first_ms = span.from_ms // width_ms * width_ms
    found = _buckets(queries, wanted, unit, Range(first_ms, -(-span.to_ms // width_ms) * width_ms), width_ms)
    starts = range(first_ms, span.to_ms, width_ms)
    buckets = tuple(found.get(start) or Bucket(from_unix_ms(start), {}) for start in starts)
    return Histogram(buckets, width_ms // 1_000, unit.column, not_applied(wanted), queries.rows_read)


def not_applied(wanted: EventFilter) -> tuple[str, ...]:
    """Return the names of the conditions that no rollup knows, as URL parameters."""
    known = {"project", "kind", "service", "tool"}
    return tuple(dict.fromkeys(name for name, _ in wanted.pairs() if name not in known))


def narrowed(wanted: EventFilter) -> list[str]:
    """Return the conditions of a filter that the rollups know."""
    found = rollup_conditions(wanted)
    found += ["has({services:Array(String)}, toString(service))"] if wanted.services else []
    found += ["has({tools:Array(String)}, toString(tool))"] if wanted.tools else []
    return found


def counted_span(queries: Queries, wanted: EventFilter, span: Range) -> Range:
    """Return the part of a range that has counted events: of an open range, its days with events."""
    everything = Range()
    if span.from_ms > everything.from_ms and span.to_ms < everything.to_ms:
        return span
    where = " AND ".join([*DAY.within(), *rollup_conditions(wanted)])
    sql = f"SELECT minOrNull({DAY.start}), maxOrNull({DAY.start}) FROM rollup_day WHERE {where}"  # noqa: S608
    [(first, last)] = queries.rows(sql, rollup_parameters(wanted) | DAY.buckets(span.from_ms, span.to_ms))
    if first is None:
        # Nothing is counted by day: one day at the closed end, or none.
        edge = span.from_ms or (span.to_ms if span.to_ms < everything.to_ms else 0)
        return Range(edge, edge)
    low = span.from_ms if span.from_ms > everything.from_ms else int(first)
    high = span.to_ms if span.to_ms < everything.to_ms else int(last) + _DAY_MS
    return Range(min(low, high), high)


def width_of(span: Range) -> tuple[int, Unit]:
    """Return the least width (ms) that makes at most `BUCKETS_MAX` buckets, and its rollup. Pure.

    From a range of 20 days on a bucket is a day or more.
    """
    for width_ms, unit in _WIDTHS:
        if unit is not DAY and span.to_ms - span.from_ms >= DAYS_FROM_MS:
            continue
        if -(-span.to_ms // width_ms) - span.from_ms // width_ms <= BUCKETS_MAX:
            return width_ms, unit
    widest = _WIDTHS[-1][0]
    return widest * (1 + (span.to_ms - span.from_ms) // (widest * (BUCKETS_MAX - 2))), DAY


def _buckets(queries: Queries, wanted: EventFilter, unit: Unit, span: Range, width_ms: int) -> dict[int, Bucket]:
    where = " AND ".join([*unit.within(), *narrowed(wanted)])
    sql = (
        f"SELECT intDiv({unit.start}, {{width_ms:Int64}}) * {{width_ms:Int64}} AS start, kind, sum(events) AS counted"  # noqa: S608
        f" FROM {unit.view} WHERE {where} GROUP BY start, kind HAVING counted > 0 ORDER BY kind"
    )
    values = rollup_parameters(wanted) | unit.buckets(span.from_ms, span.to_ms) | {"width_ms": width_ms}
    found: dict[int, Bucket] = {}
    for start, kind, counted in queries.counts(sql, values):
        found.setdefault(int(start), Bucket(from_unix_ms(int(start)), {})).events[str(kind)] = int(counted)
    return found
