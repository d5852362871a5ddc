"""Pages of a real console, the live tail and the system under viewers, beside limits and one unbounded query of the same run.

`CONSOLE_ROWS` is the number of events (default 1,000,000). With more, 1,000,000 are measured first, to compare the rows read.
`CONSOLE_DATA` names a folder that keeps the filled tables for the next run. Other work on the machine changes times much and CPU times
little: rows of both are printed, with the load of the machine.
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

import assay_console
from assay_runtime.migrate import migrate
from assay_runtime.store import connect
from tests.bench import console_live, console_load, console_paint
from tests.bench.console_events import fill
from tests.bench.console_pages import Cost, Site, ask, depths, gzipped, requests_of, unbounded
from tests.bench.result import result
from tests.support import console_rows
from tests.support.console import running_console
from tests.support.store import StoreServer

STATIC = Path(assay_console.__file__).parent / "static"
ROWS_SMALL, ROWS_QUICK = 1_000_000, 50_000
ROWS = int(os.environ.get("CONSOLE_ROWS", str(ROWS_SMALL)))
#: Requests of each page, windows of the browser, pages of the list of events one after another, and unbounded queries.
TIMES, QUICK_TIMES = (100, 20, 10, 3), (3, 2, 2, 1)
#: Most rows that a page of events may read, and how much that may grow with ten times the events.
ROWS_READ_MAX = 200_000
#: Limits: server time of a page (p95, in milliseconds) with up to 1,000,000 events and with more, kilobytes of a page's
#: HTML and of all script and style (both gzip), and megabytes of the process.
SMALL_MS, LARGE_MS, HTML_KB, STATIC_KB, RESIDENT_MB = 150, 300, 40, 60, 110


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Measure each number of events, then the growth of the rows read, and what does not depend on the number."""
    sizes = [ROWS_QUICK] if quick else sorted({min(ROWS, ROWS_SMALL), ROWS})
    found, read = [_load()], {}
    with TemporaryDirectory() as kept:
        for rows in sizes:
            tables = _tables(Path(os.environ.get("CONSOLE_DATA", kept)), rows)
            more, read[rows] = _site(tables, rows, QUICK_TIMES if quick else TIMES, quick=quick)
            found += more
            found += console_load.measure(tables / "data", rows, quick=quick)
    least, most = sizes[0], sizes[-1]
    if least != most:
        growth = f"rows read by a page of events, {most:,} against {least:,} events"
        found.append(result(growth, read[most], read[least], "rows", "<= 3", 1))
    return [*found, _load()]


def _load() -> dict[str, Any]:
    return result("load of the machine, 1 min, beside its cores", os.getloadavg()[0], os.cpu_count() or 1, "", None, 1)


def _tables(kept: Path, rows: int) -> Path:
    """Return the folder of a filled store, which is shut down."""
    directory = kept / str(rows)
    note = directory / "filled.json"
    if not note.exists():
        print(f"filling {rows:,} events ...", file=sys.stderr, flush=True)
        with StoreServer(directory) as store:
            migrate(store.settings(timeout_s=3_600))
            with connect(store.settings(timeout_s=3_600).store) as owner:
                filled = console_rows.fill(owner)
                fill(owner, rows)
        note.write_text(json.dumps(asdict(filled)))
    return directory


def _site(
    tables: Path, rows: int, times: tuple[int, int, int, int], *, quick: bool
) -> tuple[list[dict[str, Any]], int]:
    """Return what pages cost on these tables, and the most rows that a page of events read."""
    filled = console_rows.Filled(**json.loads((tables / "filled.json").read_text()))
    requests, windows, following, anchors = times
    with (
        TemporaryDirectory() as name,
        StoreServer(Path(name), tables=tables / "data") as store,
        connect(store.settings(timeout_s=600).store) as owner,
        running_console(Path(name), store) as console,
    ):
        site = Site(console, store, owner, filled, rows)
        anchor = unbounded(site, anchors)
        costs = {}
        for page, address in requests_of(site, requests).items():
            print(f"  {page} ...", file=sys.stderr, flush=True)
            costs[page] = ask(site, address, requests)
        assert console.process
        memory = psutil.Process(console.process.pid).memory_full_info()
        most = max(depths(site, following))
        found = [*_pages(costs, anchor, rows, requests), *_weights(costs, memory.rss / 1e6, memory.uss / 1e6, rows)]
        found.append(
            result(f"rows read by /events, any depth, {rows:,} events", most, ROWS_READ_MAX, "rows", "<= 1", 1)
        )
        found += console_paint.measure(site, windows)
        found += console_live.measure(console, quick=quick)
        return found, most


def _pages(costs: dict[str, Cost], anchor: Cost, rows: int, requests: int) -> list[dict[str, Any]]:
    """Return for each page its times beside those of the unbounded query, its p95 beside the limit, and its CPU time."""
    found = []
    limit = SMALL_MS if rows <= ROWS_SMALL else LARGE_MS
    for page, cost in costs.items():
        title = f"GET {page}, {rows:,} events"
        found += [
            result(f"{title}: p50, beside the unbounded query", cost.p50, anchor.p50, "ms", "<= 0.25", requests),
            result(f"{title}: p95", cost.p95, limit, "ms", "<= 1", requests),
            result(f"{title}: CPU, console and store", cost.cpu_ms, anchor.cpu_ms, "ms", None, requests),
            result(f"{title}: CPU, console alone", cost.console_cpu_ms, anchor.cpu_ms, "ms", None, requests),
        ]
    return found


def _weights(costs: dict[str, Cost], resident: float, unshared: float, rows: int) -> list[dict[str, Any]]:
    heaviest = max(max(cost.html_kb) for cost in costs.values())
    static = sum(gzipped(file.read_bytes()) for file in STATIC.iterdir() if file.suffix in (".js", ".css"))
    return [
        result(f"HTML of the heaviest page (gzip), {rows:,} events", heaviest, HTML_KB, "kB", "<= 1", len(costs)),
        result("script and style of all pages (gzip)", static, STATIC_KB, "kB", "<= 1", 1),
        result(f"memory of the console after these pages, {rows:,} events", resident, RESIDENT_MB, "MB", "<= 1", 1),
        result(f"of it, not shared with other processes, {rows:,} events", unshared, resident, "MB", None, 1),
    ]
