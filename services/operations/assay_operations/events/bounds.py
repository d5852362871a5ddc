"""Find by the rollups how far back a number of events reaches, so that a list reads only that range.

A bound is an estimate: a rollup does not count rows of the last minute yet, and still counts rows that were deleted within two hours. Lists
stay correct, because they read everything above the bound, and go further back if it holds too few rows.
"""

import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from assay_operations.events.filters import EventFilter, Range
from assay_operations.events.queries import Queries
from assay_operations.events.rows import from_unix_ms
from assay_schema.fields import Kind

if TYPE_CHECKING:
    from assay_runtime.store import Client

_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000
#: Hours that are looked at before days, back from the end of a range, or from now if that is earlier.
_HOURS_FIRST = 72
#: A bucket with more events than this is divided into finer ones. Finding the minute reads the rollup's blocks of every project: up to
#: here, the events of the whole bucket are fewer rows.
_FINE_ROWS = 50_000
#: The rollups' times have 32 bits.
_TIME_MAX_MS = 4_294_967_295_000
#: The statuses that rollups count, of the kinds whose rows each of them describes.
_COUNTED_STATUSES = frozenset({Kind.RETRIEVAL, Kind.FEEDBACK, Kind.TOOL_CALL})


class Unit(NamedTuple):
    """A rollup: its view, the column of its time, and the width of a bucket in milliseconds."""

    view: str
    column: str
    width_ms: int

    @property
    def start(self) -> str:
        """The SQL of a bucket's start, in Unix milliseconds."""
        return f"toInt64(toUnixTimestamp(toDateTime({self.column}, 'UTC'))) * 1000"

    def within(self) -> list[str]:
        """Return the conditions for buckets from `first_ms`, before `last_ms`. Both are at bounds of buckets."""
        edges = (f"toDateTime(intDiv({{{name}:Int64}}, 1000), 'UTC')" for name in ("first_ms", "last_ms"))
        low, high = (f"toDate({edge})" if self.width_ms == _DAY_MS else edge for edge in edges)
        return [f"{self.column} >= {low}", f"{self.column} < {high}"]

    def buckets(self, from_ms: int, to_ms: int) -> dict[str, int]:
        """Return the parameters of `within` for the buckets that a range touches."""
        last = -(-min(to_ms, _TIME_MAX_MS - _DAY_MS) // self.width_ms) * self.width_ms
        return {"first_ms": min(max(0, from_ms) // self.width_ms * self.width_ms, last), "last_ms": last}


MINUTE = Unit("rollup_minute", "minute", _MINUTE_MS)
HOUR = Unit("rollup_hour", "hour", _HOUR_MS)
DAY = Unit("rollup_day", "day", _DAY_MS)
FINER = {DAY: HOUR, HOUR: MINUTE}
#: Length of a range from which on it is counted by days, in milliseconds (20 days).
DAYS_FROM_MS = 20 * _DAY_MS

#: When the rollups were last counted: by minute, or by hour or day if nothing was stored within two hours.
_COUNTED_TO = tuple(
    f"SELECT toUnixTimestamp64Milli(maxOrNull(refreshed_at)) FROM {view}"  # noqa: S608 - constants
    for view in (
        "rollup_minute WHERE minute >= now('UTC') - INTERVAL 2 HOUR",
        "rollup_hour WHERE hour >= now('UTC') - INTERVAL 48 HOUR",
        "rollup_day",
    )
)


def counted_to(client: "Client") -> datetime | None:
    """Return the time up to which stored rows are counted; None if none are. Raises `OperationError`."""
    queries = Queries(client)
    for sql in _COUNTED_TO:
        [(value,)] = queries.rows(sql, {})
        if value is not None:
            return from_unix_ms(int(value))
    return None


def rollup_conditions(wanted: EventFilter) -> list[str]:
    """Return the conditions on a rollup that decide which rows of the tables are read."""
    found = ["has({kinds:Array(String)}, toString(kind))"]
    return [*found, "project = {project:String}"] if wanted.project is not None else found


def counted(wanted: EventFilter) -> str | None:
    """Return the SQL of the number of matching events in a row of a rollup; None if no rollup knows it."""
    if (
        wanted.models
        or wanted.latency_over_ms is not None
        or wanted.metrics_below
        or any(each is not None for each in (wanted.text, wanted.trace_id, wanted.session_id))
        or wanted.has - {"pii", "no-result"}
    ):
        return None
    # The rollup counts each of these alone: how many events have two of them is unknown.
    numbers = ["pii_events"] if "pii" in wanted.has else []
    numbers += ["without_result"] if "no-result" in wanted.has else []
    if wanted.statuses:
        if set(wanted.possible_kinds) - _COUNTED_STATUSES:
            return None
        numbers.append(
            "multiIf(kind = 'tool_call', toInt64(arraySum(status -> statuses[status], {statuses:Array(String)})),"
            " kind = 'feedback', toInt64(if(has({statuses:Array(String)}, 'positive'), positive, 0)"
            " + if(has({statuses:Array(String)}, 'negative'), negative, 0)),"
            " toInt64(if(has({statuses:Array(String)}, 'no_result'), without_result, 0))"
            " + toInt64(if(has({statuses:Array(String)}, 'found'), events - without_result, 0)))"
        )
    if len(numbers) > 1:
        return None
    only = []
    only += ["has({services:Array(String)}, toString(service))"] if wanted.services else []
    only += ["has({tools:Array(String)}, toString(tool))"] if wanted.tools else []
    number = numbers[0] if numbers else "events"
    return f"if({' AND '.join(only)}, {number}, 0)" if only else number


def rollup_parameters(wanted: EventFilter) -> dict[str, Any]:
    """Return the values of the parameters that the SQL on rollups names."""
    return {
        "kinds": [str(kind) for kind in wanted.possible_kinds],
        "project": wanted.project or "",
        "services": list(wanted.services),
        "tools": list(wanted.tools),
        "statuses": list(wanted.statuses),
    }


@dataclass
class Edge:
    """A lower bound, and the events from there up, as the rollups count them."""

    low_ms: int
    matching: float = 0.0
    rows: float = 0.0
    #: The bound holds as many matching events, or as many rows, as were asked for.
    reached: bool = False


@dataclass
class Bounds:
    """Lower bounds for one filter."""

    queries: Queries
    wanted: EventFilter
    span: Range
    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    def lower(self, upper_ms: int, matching: int | None, rows: int, *, hours_first: int = _HOURS_FIRST) -> Edge:
        """Return the bound that has about `matching` matching events, or `rows` rows, below `upper_ms`.

        Without a bound that has them: the start of the range, and what it has. A bound that is often more than `hours_first` hours back is
        found in one query less with 0.
        """
        top = min(upper_ms, self.now_ms + _DAY_MS + _HOUR_MS)
        newest_ms = min(top, self.now_ms) // _HOUR_MS * _HOUR_MS
        hours_from = max(self.span.from_ms, newest_ms - hours_first * _HOUR_MS) if hours_first else top
        goal = (matching if counted(self.wanted) is not None else None, rows)
        edge = self._go_back(HOUR, hours_from, top, goal, Edge(self.span.from_ms))
        if not edge.reached and hours_from > self.span.from_ms:
            edge = self._go_back(DAY, self.span.from_ms, hours_from, goal, edge)
        edge.low_ms = max(edge.low_ms, self.span.from_ms) if edge.reached else self.span.from_ms
        return edge

    def _go_back(self, unit: Unit, from_ms: int, to_ms: int, goal: tuple[int | None, int], above: Edge) -> Edge:
        """Add the buckets of a range to what is above it, newest first, until the goal is reached."""
        edge = Edge(from_ms, above.matching, above.rows)
        if from_ms >= to_ms:
            return edge
        wanted, rows_max = goal
        for start, matching, rows in self._buckets(unit, from_ms, to_ms):
            # Of the bucket that the range ends in, the part within the range, as if its events were spread evenly.
            share = min(1.0, (to_ms - start) / unit.width_ms)
            more = Edge(start, edge.matching + matching * share, edge.rows + rows * share)
            if (wanted is None or more.matching < wanted) and more.rows < rows_max:
                edge = more
                continue
            more.reached = True
            if unit in FINER and rows > _FINE_ROWS:
                end = min(to_ms, start + unit.width_ms)
                finer = self._go_back(FINER[unit], max(from_ms, start), end, goal, edge)
                return finer if finer.reached else more
            return more
        return edge

    def _buckets(self, unit: Unit, from_ms: int, to_ms: int) -> list[tuple[int, int, int]]:
        where = " AND ".join([*unit.within(), *rollup_conditions(self.wanted)])
        sql = (
            f"SELECT {unit.start} AS start, sum({counted(self.wanted) or '0'}) AS matching, sum(events) AS counted"  # noqa: S608
            f" FROM {unit.view} WHERE {where} GROUP BY start ORDER BY start DESC"
        )
        values = rollup_parameters(self.wanted) | unit.buckets(from_ms, to_ms)
        return [(int(start), int(matching), int(rows)) for start, matching, rows in self.queries.counts(sql, values)]
