"""List events, newest first, in pages that read a bounded range of the tables."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.events.bounds import Bounds, counted
from assay_operations.events.filters import KINDS, EventFilter, Range
from assay_operations.events.position import Position, parse_position
from assay_operations.events.queries import OutOfTimeError, Queries
from assay_operations.events.rows import (
    FEEDBACK_BEFORE_MS,
    FEEDBACK_WITHIN_MS,
    EventRow,
    after,
    conditions,
    event_row,
    from_unix_ms,
    moment,
    parameters,
    position_parameters,
    select,
    select_keys,
    select_newest,
    unix_ms,
    with_ids,
    within,
)
from assay_schema.fields import Kind

if TYPE_CHECKING:
    from assay_runtime.store import Client

LIMIT_MAX = 500
BUDGET_S = 5.0
#: The first range of a page has at most about this many rows of the tables; each further one `_WIDEN` times as many.
_ROWS_FIRST = 50_000
_WIDEN = 4
#: Hours whose counts are read first: a page seldom reaches further back.
_HOURS_FIRST = 24
#: The same for a range in which nothing is counted.
_WIDEN_UNCOUNTED = 64
_HOUR_MS = 3_600_000
#: A query gets at most this part of the time that is left.
_PART_OF_TIME = 0.5
#: A range that was not read in time is divided by this and tried again, if nothing was read before.
_NARROW = 16

_SCORES = f"""SELECT event_id AS id, toString(project) AS of_project,
    argMax(
        (
            toString(status),
            if(mapContains(metrics, 'faithfulness'), metrics['faithfulness'], NULL),
            if(mapContains(metrics, {{metric:String}}), metrics[{{metric:String}}], NULL)
        ), judged_at
    ) AS last,
    toUInt64(0) AS positives, toUInt64(0) AS negatives
FROM scores
WHERE event_time >= {moment("low_ms")} AND event_time < {moment("upper_ms")} AND project IN {{projects:Array(String)}}
  AND event_id IN {{answers:Array(UUID)}} AND session_id IS NULL AND status != 'not_sampled'
GROUP BY id, of_project"""  # noqa: S608 - a constant
_FEEDBACK = f"""SELECT target_event_id AS id, toString(project) AS of_project,
    ('', CAST(NULL, 'Nullable(Float64)'), CAST(NULL, 'Nullable(Float64)')) AS last,
    countIf(verdict = 'positive') AS positives, countIf(verdict = 'negative') AS negatives
FROM feedback
WHERE event_time >= {moment("given_from_ms")} AND event_time < {moment("given_to_ms")} AND project IN {{projects:Array(String)}}
  AND target_event_id IN {{targets:Array(UUID)}}
GROUP BY id, of_project"""  # noqa: S608 - a constant


@dataclass(frozen=True)
class Page:
    """A page of events, newest first: every matching event between the cursor and `searched_from`."""

    rows: tuple[EventRow, ...]
    #: Cursor of the next page; None at the end of the range.
    next: str | None
    #: How far back this page reaches.
    searched_from: datetime
    #: False if the time ran out before the page was full and before the start of the range; `next` goes on from there.
    complete: bool
    #: Rows that the store read for this page.
    rows_read: int


def list_events(
    client: "Client",
    wanted: EventFilter,
    span: Range,
    *,
    after: str = "",
    limit: int = 50,
    budget_s: float = BUDGET_S,
    now_ms: int | None = None,
) -> Page:
    """Return the page after a cursor; from the end of the range without one. Raises `OperationError`.

    Filters that the rollups count read just the range that holds a page. Others, and text, are searched back from the cursor in ranges of
    1, 4, 16, 64 ... hours until the page is full or `budget_s` is used up. Pages together have each event once; an event that arrives
    late, with a time between two pages that were read, is on neither.
    """
    if not 1 <= limit <= LIMIT_MAX:
        raise OperationError("invalid", f"limit: {limit} is not from 1 to {LIMIT_MAX}")
    queries = Queries(client)
    start = parse_position(after) if after else Position(span.to_ms)
    if start.upper_ms > span.to_ms:
        start = Position(span.to_ms)
    bounds = Bounds(queries, wanted, span)
    if now_ms is not None:
        bounds.now_ms = now_ms
    walk = _Walk(queries, bounds, start, limit, time.monotonic() + budget_s)
    walk.run()
    keys = walk.found[:limit]
    upper_ms = max(walk.upper_ms, span.from_ms)
    if len(walk.found) > limit:
        following, searched_ms = str(keys[-1]), keys[-1].ms
    elif walk.complete:
        following, searched_ms = None, span.from_ms
    else:
        following, searched_ms = str(Position(upper_ms) if walk.moved else start), upper_ms
    walk.rows |= {row.position: row for row in rows_at(queries, [key for key in keys if key not in walk.rows])}
    return Page(
        with_verdicts(queries, tuple(walk.rows[key] for key in keys if key in walk.rows), _other_metric(wanted)),
        following,
        from_unix_ms(searched_ms),
        walk.complete,
        queries.rows_read,
    )


def is_search(wanted: EventFilter) -> bool:
    """Return True if a list may take seconds: no rollup and no index tells where its rows are. Pure."""
    return counted(wanted) is None and wanted.trace_id is None and wanted.session_id is None


class _Walk:
    """Read ranges backwards from a position until a page is full."""

    def __init__(self, queries: Queries, bounds: Bounds, start: Position, limit: int, deadline: float) -> None:
        self.found: list[Position] = []
        #: The rows of `found` that were read with their keys.
        self.rows: dict[Position, EventRow] = {}
        self.upper_ms = start.upper_ms
        #: False if the time ran out.
        self.complete = True
        #: A range has been read.
        self.moved = False
        self._queries, self._bounds, self._start, self._limit, self._deadline = queries, bounds, start, limit, deadline
        self._rows, self._hours = _ROWS_FIRST, 1

    def run(self) -> None:
        """Fill `found` with one row more than the page has, if there is one."""
        kinds = self._bounds.wanted.possible_kinds
        while kinds and len(self.found) <= self._limit and self.upper_ms > self._bounds.span.from_ms:
            late = self.moved and time.monotonic() > self._deadline
            if late or not self._read(*self._lower()):
                self.complete = False
                return

    def _lower(self) -> tuple[int, bool]:
        """Return the lower bound of the next range, and whether the rollups say that it is small."""
        bounds = self._bounds
        if bounds.wanted.session_id is not None or bounds.wanted.trace_id is not None:
            return bounds.span.from_ms, False  # an index leads to its events
        edge = bounds.lower(self.upper_ms, self._limit + 1 - len(self.found), self._rows, hours_first=_HOURS_FIRST)
        top = min(self.upper_ms, bounds.now_ms)
        if not edge.rows:
            # Nothing is counted below: nothing is there, or the rollups trail far behind.
            low_ms, self._hours = top - self._hours * _HOUR_MS, self._hours * _WIDEN_UNCOUNTED
            return max(low_ms, bounds.span.from_ms), False
        self._rows *= _WIDEN
        if counted(bounds.wanted) is not None:
            return edge.low_ms, self._rows <= _ROWS_FIRST * _WIDEN
        low_ms, self._hours = max(edge.low_ms, top - self._hours * _HOUR_MS), self._hours * _WIDEN
        return low_ms, False

    def _read(self, low_ms: int, small: bool) -> bool:
        """Read the keys of rows from `low_ms` up. Returns False if the time does not suffice.

        A small range has no limit of time: on a busy machine it would be cut into pieces, each as slow as the whole.
        """
        while True:
            left = self._deadline - time.monotonic()
            try:
                self.found += self._keys(low_ms, None if small else left * _PART_OF_TIME, small)
            except OutOfTimeError:
                # A search that never moves would never end: the first range becomes as narrow as it has to be.
                top = min(self.upper_ms, self._bounds.now_ms)
                if self.moved or top - low_ms <= 1 or left < 0:
                    return False
                low_ms = top - max(1, (top - low_ms) // _NARROW)
                continue
            self.upper_ms, self.moved = low_ms, True
            return True

    def _keys(self, low_ms: int, seconds: float | None, small: bool) -> list[Position]:
        wanted = self._bounds.wanted
        where = {kind: [*within(), *after(self._start), *conditions(wanted, kind)] for kind in wanted.possible_kinds}
        values = parameters(wanted) | position_parameters(self._start)
        values |= {"low_ms": low_ms, "upper_ms": self.upper_ms, "limit": self._limit + 1 - len(self.found)}
        if small or len(where) == 1:  # rows cost no more than keys, and another query less
            rows = [event_row(row) for row in self._queries.rows(select_newest(where), values, seconds=seconds)]
            self.rows |= {row.position: row for row in rows}
            return [row.position for row in rows]
        found = self._queries.rows(select_keys(where), values, seconds=seconds)
        return [Position(ms, str(event_id), kind, project) for kind, ms, event_id, project in found]


def rows_at(queries: Queries, keys: Sequence[Position]) -> tuple[EventRow, ...]:
    """Return the rows of keys, in their order, without those that were deleted since."""
    if not keys:
        return ()
    kinds = [kind for kind in KINDS if any(key.kind == kind for key in keys)]
    values = {
        "low_ms": min(key.ms for key in keys),
        "upper_ms": max(key.ms for key in keys) + 1,
        "ids": list({key.event_id: None for key in keys}),
        "projects": list({key.project: None for key in keys}),
    }
    found = [event_row(row) for row in queries.rows(select(dict.fromkeys(kinds, with_ids())), values)]
    by_key = {row.position: row for row in found}
    return tuple(by_key[key] for key in keys if key in by_key)


def _other_metric(wanted: EventFilter) -> str:
    """Return the metric of a filter that a row does not have anyway. Pure."""
    return next((name for name, _ in wanted.metrics_below if name != "faithfulness"), "")


def with_verdicts(queries: Queries, rows: tuple[EventRow, ...], metric: str = "") -> tuple[EventRow, ...]:
    """Return rows with the judge's verdict, its value of one more metric, and the feedback."""
    if not rows:
        return rows
    times = [unix_ms(row.time) for row in rows]
    low_ms, upper_ms = min(times), max(times) + 1
    values = {
        "low_ms": low_ms,
        "upper_ms": upper_ms,
        "given_from_ms": low_ms - FEEDBACK_BEFORE_MS,
        "given_to_ms": upper_ms + FEEDBACK_WITHIN_MS,
        "projects": sorted({row.project for row in rows}),
        "answers": [row.event_id for row in rows if row.kind is Kind.ANSWER],
        "targets": [row.event_id for row in rows if row.kind is not Kind.FEEDBACK],
        "metric": metric,
    }
    parts = [f"({sql})" for name, sql in (("answers", _SCORES), ("targets", _FEEDBACK)) if values[name]]
    judged: dict[tuple[str, str], tuple[str, float | None, float | None]] = {}
    signs: dict[tuple[str, str], str] = {}
    for event_id, project, last, good, bad in queries.rows(" UNION ALL ".join(parts), values) if parts else ():
        if last[0]:
            judged[str(event_id), project] = last
        else:
            signs[str(event_id), project] = _sign(good, bad)

    def complete(row: EventRow) -> EventRow:
        key = row.event_id, row.project
        status, value, other = judged.get(key, (None, None, None)) if row.kind is Kind.ANSWER else (None, None, None)
        sign = signs.get(key) if row.kind is not Kind.FEEDBACK else None
        of = metric if other is not None else ""
        return replace(row, judged=status, faithfulness=value, metric=of, measured=other, feedback=sign)

    return tuple(map(complete, rows))


def _sign(positive: int, negative: int) -> str:
    return "mixed" if positive and negative else "positive" if positive else "negative"
