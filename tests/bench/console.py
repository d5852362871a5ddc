"""Pages of events as the console reads them, beside the same rows read without a lower bound, in turns in one run, as an SRE.

`CONSOLE_ROWS` is the number of events (default 1,000,000). With more, 1,000,000 are measured first, to compare the rows read.
"""

import os
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay_operations.events.facets import facets
from assay_operations.events.filters import EventFilter, Range
from assay_operations.events.histogram import histogram
from assay_operations.events.listing import list_events
from assay_operations.events.one import one_event
from assay_operations.events.rows import conditions, parameters, select_newest, within
from assay_runtime.migrate import migrate
from assay_runtime.store import Client, connect
from assay_schema.fields import Kind
from tests.bench.result import result
from tests.bench.rollup import fill
from tests.support.store import ROLLUP_REFRESHES, StoreServer, refresh_rollups

ROWS_SMALL = 1_000_000
ROWS = int(os.environ.get("CONSOLE_ROWS", str(ROWS_SMALL)))
#: Days before now at which pages begin.
DEPTHS = (0, 2, 6)
#: Most rows that a page may read.
ROWS_READ_MAX = 200_000
ROUNDS, QUICK_ROUNDS = 15, 2


@dataclass
class Timed:
    """Milliseconds and rows read of one kind of page, and milliseconds of its anchor."""

    ours: list[float] = field(default_factory=list)
    anchor: list[float] = field(default_factory=list)
    rows_read: list[int] = field(default_factory=list)


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Milliseconds of pages at several depths, and the rows that the store read for them."""
    sizes = [100_000] if quick else sorted({min(ROWS, ROWS_SMALL), ROWS})
    found, read = [], {}
    for rows in sizes:
        more, read[rows] = _of_size(rows, QUICK_ROUNDS if quick else ROUNDS)
        found += more
    least, most = sizes[0], sizes[-1]
    if least != most:
        growth = f"rows read by a page, {most:,} against {least:,} events"
        found.append(result(growth, read[most], read[least], "rows", "<= 3", ROUNDS))
    return found


def _of_size(rows: int, rounds: int) -> tuple[list[dict[str, Any]], int]:
    """Return the results with so many events, and the most rows that a page read."""
    with tempfile.TemporaryDirectory() as name, StoreServer(Path(name)) as store:
        migrate(store.settings(timeout_s=600))
        with (
            connect(store.settings(timeout_s=600).store) as owner,
            connect(store.settings("sre").store) as sre,
        ):
            for view in ROLLUP_REFRESHES:
                owner.command(f"SYSTEM STOP VIEW assay_base.{view}")
            fill(owner, rows)
            for view in ROLLUP_REFRESHES:
                owner.command(f"SYSTEM START VIEW assay_base.{view}")
            refresh_rollups(owner, ("rollup_minute_refresh", "rollup_hour_refresh", "rollup_day_refresh"))
            return _measured(sre, rows, rounds)


def _measured(sre: Client, rows: int, rounds: int) -> tuple[list[dict[str, Any]], int]:
    now_ms = int(time.time() * 1000)
    filters = {
        "all projects": EventFilter(kinds=(Kind.RETRIEVAL,)),
        "one project": EventFilter(kinds=(Kind.RETRIEVAL,), project="p1"),
        "all projects and kinds": EventFilter(),
    }
    timed = {(depth, what): Timed() for depth in DEPTHS for what in filters}
    for _ in range(rounds):
        for (depth, what), times in timed.items():
            span = Range(0, now_ms - depth * 86_400_000)
            started = time.perf_counter()
            page = list_events(sre, filters[what], span)
            times.ours.append(_since(started))
            times.rows_read.append(page.rows_read)
            if len(page.rows) != 50:
                raise AssertionError(f"{what}, {depth} days back: {page}")
            started = time.perf_counter()
            sre.query(*_unbounded(filters[what], span))
            times.anchor.append(_since(started))
    found = []
    for (depth, what), times in timed.items():
        title = f"50 newest of {what}, {depth} days back, {rows:,} events"
        ours, anchor = statistics.median(times.ours), statistics.median(times.anchor)
        found.append(result(f"{title}, p50", ours, anchor, "ms", "<= 0.25", rounds))
        found.append(result(f"{title}, p95", _p95(times.ours), _p95(times.anchor), "ms", None, rounds))
    most = max(number for times in timed.values() for number in times.rows_read)
    found.append(result(f"rows read by a page, {rows:,} events", most, ROWS_READ_MAX, "rows", "<= 1", rounds))
    return [*found, *_others(sre, rows, rounds, now_ms)], most


def _unbounded(wanted: EventFilter, span: Range) -> tuple[str, dict[str, Any]]:
    """Return a query for the same rows that is not bounded by the rollups, and its parameters."""
    where = {kind: [*within(), *conditions(wanted, kind)] for kind in wanted.possible_kinds}
    return select_newest(where), parameters(wanted) | {"low_ms": span.from_ms, "upper_ms": span.to_ms, "limit": 50}


def _others(sre: Client, rows: int, rounds: int, now_ms: int) -> list[dict[str, Any]]:
    """Return the times of the rest of a page, beside that of its rows."""
    day = Range(now_ms - 86_400_000, now_ms)
    page = list_events(sre, EventFilter(), day)
    event_id = page.rows[0].event_id
    work = {
        "histogram of a day": lambda: histogram(sre, EventFilter(), day),
        "facets of a day": lambda: facets(sre, EventFilter(), day, page.rows),
        "one event with its chain": lambda: one_event(sre, event_id),
    }
    found = []
    for what, call in work.items():
        times = Timed()
        for _ in range(rounds):
            started = time.perf_counter()
            call()
            times.ours.append(_since(started))
            started = time.perf_counter()
            list_events(sre, EventFilter(), day)
            times.anchor.append(_since(started))
        ours, anchor = statistics.median(times.ours), statistics.median(times.anchor)
        found.append(result(f"{what} beside its rows, {rows:,} events, p50", ours, anchor, "ms", None, rounds))
    return found


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def _p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]
