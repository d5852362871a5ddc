"""Viewers, an export and a search of text while events arrive at half of what the system carries: pages, and the way of the events."""

import http.client
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from tests.bench.console_pages import p95
from tests.bench.pipeline import CHUNK, Producer, stored, wait_for
from tests.bench.result import result
from tests.support.stack import System, running

VIEWERS = 4
#: What each viewer opens in turn, with a second in between.
PAGES = ("/", "/events", "/events?project=p1&kind=answer", "/failures", "/quality?project=p1", "/alerts", "/sessions")
#: With a number that makes each search another one: the answer to the same one is kept for some seconds, and would be asked in a busy loop.
SEARCH = "/events?t=30d&q=words+that+no+event+has+"
SECONDS, QUICK_SECONDS = 20, 5
CAPACITY_EVENTS, QUICK_EVENTS = 60_000, 5_000
PAGE_MS, LATE_S = 1_000, 2.0


def measure(tables: Path, rows: int, *, quick: bool = False) -> list[dict[str, Any]]:
    """Run the whole system on a copy of these tables, at half load alone, and then with people at the console."""
    seconds = QUICK_SECONDS if quick else SECONDS
    with TemporaryDirectory() as directory, running(Path(directory), "--no-quality", tables=tables) as system:
        cookie = _cookie(system)
        with system.redis("producer") as client:
            producer = Producer(client)
            _flood(system, producer, QUICK_EVENTS)  # warm up
            half = _flood(system, producer, QUICK_EVENTS if quick else CAPACITY_EVENTS) / 2
            alone, late_alone = _steady(system, producer, half, seconds)
            times: list[float] = []
            with _at_the_console(system, cookie, times):
                busy, late = _steady(system, producer, half, seconds)
    title = f"{VIEWERS} viewers, an export, a search of 30 days and {half:,.0f} events/s, {rows:,} events"
    return [
        result(f"{title}: pages, p95", p95(times), PAGE_MS, "ms", "<= 1", len(times)),
        result(f"{title}: pages, p50", statistics.median(times), PAGE_MS, "ms", None, len(times)),
        result("events stored a second, with and without them", busy, alone, "events/s", ">= 0.95", 2),
        result("latest event with them", late, LATE_S, "s", "<= 1", 1),
        result("latest event with and without them", late, late_alone, "s", None, 1),
    ]


def _cookie(system: System) -> dict[str, str]:
    """Sign in with the link that a person would open."""
    command = [sys.executable, "-m", "assay_cli", "console", "url", "--data", str(system.data)]
    link = urlsplit(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    connection = http.client.HTTPConnection(link.netloc, timeout=60)
    connection.request("GET", f"{link.path}?{link.query}")
    answer = connection.getresponse()
    if answer.status not in (302, 303):
        raise AssertionError(f"the link does not sign in: status {answer.status}")
    return {"host": link.netloc, "Cookie": (answer.getheader("set-cookie") or "").partition(";")[0]}


def _flood(system: System, producer: Producer, events: int) -> float:
    """Return the events per second from the first append to the last visible row."""
    store = system.store("owner")
    before, batches = stored(store), [producer.batch(CHUNK) for _ in range(events // CHUNK)]
    started = time.perf_counter()
    for batch in batches:
        producer.send(batch)
    wait_for(store, before + len(batches) * CHUNK)
    return len(batches) * CHUNK / (time.perf_counter() - started)


def _steady(system: System, producer: Producer, rate: float, seconds: int) -> tuple[float, float]:
    """Return the events stored per second at a steady rate, and the seconds from the latest event to its row."""
    store = system.store("owner")
    before, began, sent, started = stored(store), datetime.now(UTC), 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        due = int(elapsed * rate) - sent
        if due >= 20:
            producer.send(producer.batch(due))
            sent += due
        else:
            time.sleep(0.001)
    wait_for(store, before + sent)
    stored_per_s = sent / (time.perf_counter() - started)
    sql = (
        "SELECT max(toFloat64(stored_at) - toFloat64(occurred_at)) FROM assay_base.candidates"
        " WHERE event_time >= {t:DateTime64(3)} AND occurred_at >= {t:DateTime64(6)}"
    )
    return stored_per_s, float(store.query(sql, parameters={"t": began}).result_rows[0][0])


@contextmanager
def _at_the_console(system: System, cookie: dict[str, str], times: list[float]) -> Iterator[None]:
    """View pages, export and search meanwhile. Notes the milliseconds of each page."""
    over = threading.Event()

    def get(path: str) -> float:
        connection = http.client.HTTPConnection(cookie["host"], timeout=120)
        started = time.perf_counter()
        connection.request("GET", path, None, {"Cookie": cookie["Cookie"]})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise AssertionError(f"{path}: status {answer.status}")
        return (time.perf_counter() - started) * 1000

    def view(turn: int) -> None:
        while not over.is_set():
            times.append(get(PAGES[turn % len(PAGES)]))
            turn += 1
            over.wait(1)

    def search() -> None:
        numbers = count()
        while not over.is_set():
            get(f"{SEARCH}{next(numbers)}")

    def export() -> None:
        command = [sys.executable, "-m", "assay_cli", "export", "--since", "30d", "--data", str(system.data)]
        while not over.is_set():
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
                while process.poll() is None and not over.wait(0.1):
                    pass
                if process.poll():
                    raise AssertionError(f"the export failed with exit code {process.returncode}")
                process.terminate()

    with ThreadPoolExecutor(VIEWERS + 2) as threads:
        works = [
            threads.submit(search),
            threads.submit(export),
            *(threads.submit(view, turn) for turn in range(VIEWERS)),
        ]
        try:
            yield
        finally:
            over.set()
    for work in works:
        work.result()
