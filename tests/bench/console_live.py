"""The live tail: how late events are on the screen of a browser, and what 50 viewers weigh."""

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import psutil

from assay_schema.ids import new_event_id
from assay_schema.streams import EVENTS, FIELD
from tests.bench.console_pages import p95
from tests.bench.result import result
from tests.programs import needed
from tests.support.browser import chromium, window
from tests.support.console import Console

#: Events a second, of which every so many are of the service that is watched.
RATE, EVERY = 1_000, 20
SECONDS, QUICK_SECONDS = 20, 3
VIEWERS = 50
LATE_MS, VIEWERS_MB = 1_000, 100
#: Notes for each row, when it is there to be painted, how long ago its text says that it was sent.
_WATCH = """
window.late = [];
new MutationObserver(changes => {
  const rows = changes.flatMap(change => [...change.addedNodes]).filter(node => node.matches?.("tr"));
  requestAnimationFrame(() => { for (const row of rows) window.late.push(Date.now() - Number(/sent (\\d+)/.exec(row.innerText)?.[1])); });
}).observe(document.getElementById("live").tBodies[0], {childList: true});
"""


def measure(console: Console, *, quick: bool = False) -> list[dict[str, Any]]:
    """Send events to the stream as the scrubber does, and watch one service."""
    seconds = QUICK_SECONDS if quick else SECONDS
    assert console.process
    process = psutil.Process(console.process.pid)
    with chromium(needed("chromium")) as browser, window(browser, console) as opened:
        page = opened.open("/live?service=watched")
        page.locator(
            "#live-state", has_text="Live"
        ).wait_for()  # a function that is polled would need eval, which the page forbids
        page.evaluate(_WATCH)
        with _sending(console) as sent:
            page.wait_for_timeout(seconds * 1_000)
            alone = process.memory_info().rss
        page.wait_for_timeout(2_000)
        late: list[float] = page.evaluate("() => window.late")
        with _viewers(console) as received, _sending(console):
            time.sleep(seconds)
            weight = (process.memory_info().rss - alone) / 1e6
            fewest = min(received)
    if not fewest:
        raise AssertionError("a viewer got nothing")
    if abs(len(late) - sent[0]) > 0:
        raise AssertionError(f"{len(late)} rows on the screen, of {sent[0]} events of the service")
    p99 = sorted(late)[int(0.99 * len(late))]
    title = f"from event to screen, {RATE:,} events/s, {RATE // EVERY} of them watched"
    return [
        result(f"{title}, p99", p99, LATE_MS, "ms", "<= 1", len(late)),
        result(f"{title}, p95", p95(late), LATE_MS, "ms", None, len(late)),
        result(
            f"memory of the console for {VIEWERS} viewers more", max(0.0, weight), VIEWERS_MB, "MB", "<= 1", VIEWERS
        ),
    ]


@contextmanager
def _sending(console: Console) -> Iterator[list[int]]:
    """Send events meanwhile. The list has the number of those that are watched."""
    over, watched = threading.Event(), [0]

    def send() -> None:
        payload = {"retrieved_chunk_ids": [1], "latency_ms": 1.5}
        document = {
            "kind": "retrieval",
            "project": "shop",
            "created_at": "2026-11-27T12:00:00.000000Z",
            "pii_families": {},
        }
        started, count = time.perf_counter(), 0
        with console.redis.client() as client:
            while not over.is_set():
                due = int((time.perf_counter() - started) * RATE) - count
                if due <= 0:
                    time.sleep(0.002)
                    continue
                pipeline = client.pipeline(transaction=False)
                for number in range(count, count + due):
                    is_watched = number % EVERY == 0
                    watched[0] += is_watched
                    text = f"sent {time.time_ns() // 1_000_000}"
                    each = {
                        "event_id": new_event_id(), "service": "watched" if is_watched else "other",
                        "payload": payload | {"query": text},
                    }  # fmt: skip
                    pipeline.xadd(EVENTS.key(0), {FIELD: orjson.dumps(document | each)}, maxlen=20_000)
                pipeline.execute()
                count += due

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield watched
    finally:
        over.set()
        thread.join()


@contextmanager
def _viewers(console: Console) -> Iterator[list[int]]:
    """Watch with many connections. The list has the bytes that each received. One place is the browser's."""
    over, received = threading.Event(), [0] * (VIEWERS - 1)

    def view(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
        connection.request("GET", "/api/v1/live?service=watched", None, console.session("VIEWER"))
        answer = connection.getresponse()
        if answer.status != 200:
            raise AssertionError(f"viewer {number}: status {answer.status}")
        try:
            while not over.is_set() and (data := answer.read1(65_536)):
                received[number] += len(data)
        except (http.client.IncompleteRead, ConnectionError):
            if not over.is_set():  # at the end the console goes away in the middle of the answer
                raise
        connection.close()

    threads = [threading.Thread(target=view, args=(number,), daemon=True) for number in range(len(received))]
    for thread in threads:
        thread.start()
    try:
        yield received
    finally:
        over.set()
