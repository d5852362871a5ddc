"""Pages of a real console, and the operations that they read, beside the same rows read without a lower bound, in one run.

`CONSOLE_ROWS` is the number of events (default 1,000,000). With more, 1,000,000 are measured first, to compare the rows read.
"""

import gzip
import os
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

import assay_console
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
from tests.support.console import Console, running_console
from tests.support.store import ROLLUP_REFRESHES, StoreServer, refresh_rollups

STATIC = Path(assay_console.__file__).parent / "static"
ROWS_SMALL = 1_000_000
ROWS = int(os.environ.get("CONSOLE_ROWS", str(ROWS_SMALL)))
#: Days before now at which pages begin.
DEPTHS = (0, 2, 6)
#: Most rows that a page may read.
ROWS_READ_MAX = 200_000
ROUNDS, QUICK_ROUNDS = 15, 2
#: Requests of each page of a running console.
REQUESTS, QUICK_REQUESTS = 100, 5
#: Limits: server time of a page (p95, in milliseconds) with up to 1,000,000 events and with more, kilobytes of a page's
#: HTML and of all script and style (both gzip), and megabytes of the process.
SMALL_MS, LARGE_MS, HTML_KB, STATIC_KB, RESIDENT_MB = 150, 300, 40, 60, 110
#: Pages with a range of time, and pages without. `{event_id}` is another one in each request.
RANGED = ("/events", "/alerts", "/quality", "/failures", "/sessions")
OTHERS = ("/e/{event_id}", "/")


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
            found, most = _measured(sre, rows, rounds)
            requests = QUICK_REQUESTS if rounds == QUICK_ROUNDS else REQUESTS
            with running_console(Path(name), store) as console:
                return found + _pages(console, sre, rows, requests), most


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


def _pages(console: Console, sre: Client, rows: int, requests: int) -> list[dict[str, Any]]:
    """Return the server times of pages over HTTP, and what they weigh.

    Each request has a range of its own, so that no answer to an earlier one is used again; the frame's and those of
    pages without a range are, for up to 15 s, as they are in use.
    """
    now_ms = int(time.time() * 1000)
    ids = [row.event_id for row in list_events(sre, EventFilter(), Range(0, now_ms), limit=requests).rows]
    span = Range(0, now_ms)
    anchor: list[float] = []
    for _ in range(max(2, requests // 10)):
        started = time.perf_counter()
        sre.query(*_unbounded(EventFilter(), span))
        anchor.append(_since(started))
    found, weights = [], []
    for path in (*RANGED, *OTHERS):
        times, most = [], 0
        for number in range(requests):
            until = now_ms - number * 60_000
            query = f"?from={_iso(until - 86_400_000)}&to={_iso(until)}" if path in RANGED else ""
            page = console.get(path.format(event_id=ids[number % len(ids)]) + query)
            if page.status != 200:
                raise AssertionError(f"{path}: status {page.status}")
            times.append(float(page.headers["server-timing"].partition("page;dur=")[2].partition(",")[0]))
            most = max(most, int(page.headers["x-rows-read"]))
            weights.append(len(gzip.compress(page.body)) / 1000)
        title = f"GET {path}, server time, {rows:,} events"
        limit = SMALL_MS if rows <= ROWS_SMALL else LARGE_MS
        found.append(result(f"{title}, p50", statistics.median(times), limit, "ms", None, requests))
        found.append(result(f"{title}, p95", _p95(times), limit, "ms", "<= 1", requests))
        if path == "/events":
            against = "GET /events against one query without a lower bound"
            ours = statistics.median(times)
            found.append(result(f"{against}, p50", ours, statistics.median(anchor), "ms", "<= 0.25", requests))
            found.append(
                result(f"rows read by GET /events, {rows:,} events", most, ROWS_READ_MAX, "rows", "<= 1", requests)
            )
    assert console.process
    resident = psutil.Process(console.process.pid).memory_info().rss / 1e6
    static = sum(len(gzip.compress(file.read_bytes())) for file in STATIC.iterdir() if file.suffix in (".js", ".css"))
    return [
        *found,
        result(f"HTML of the heaviest page (gzip), {rows:,} events", max(weights), HTML_KB, "kB", "<= 1", len(weights)),
        result("script and style of all pages (gzip)", static / 1000, STATIC_KB, "kB", "<= 1", 1),
        result(f"memory of the console after these pages, {rows:,} events", resident, RESIDENT_MB, "MB", "<= 1", 1),
    ]


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).isoformat().replace("+00:00", "Z")


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def _p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]
