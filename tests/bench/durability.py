"""What durability costs and what it saves: `memory`, `spool` and `fsync` side by side, with Redis up and away, and what a `kill -9` loses.

Each mode's producer is a process of its own that captures as fast as it is taken from it; cost is what its calls take and how many events
a second become safe. For the loss it is killed at a random moment, the next producer sends what it left, and what never arrives is counted.
"""

import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_capture import Capture
from assay_schema.settings import CaptureSettings, RedisSettings, Settings
from assay_schema.streams import CAPTURE, FIELD
from tests.bench.result import result
from tests.support.ports import free_port
from tests.support.redis import RedisServer

MODES = ("memory", "spool", "fsync")
QUERY = "which function parses a date that a person typed, and what does it raise when there is none? " * 4
SLUGS = [f"handbook/page-{number}" for number in range(10)]
CHUNKS = list(range(10))
EVENTS = 4_000
ROUNDS = 3
KILLS = 5


@dataclass(frozen=True)
class Loss:
    """After a kill."""

    captured: int
    #: Events that were in Redis or in the spool when the producer last looked, and did not arrive: none, or the promise is broken.
    safe_but_lost: int
    #: Events that were only in memory, and died.
    lost: int
    #: The longest that any of them had been captured before the kill, in milliseconds.
    oldest_ms: float


def open_capture(url: str, spool: Path, durability: str) -> Capture:
    """A capture whose queue holds all that a run captures: what is measured is never a drop. Where Redis is away the address is another
    one than that of the next producer, which is to send what was left there all the same."""
    redis = RedisSettings.model_validate({"url": url, "connect_timeout_s": 1, "command_timeout_s": 2})
    values = {
        "enabled": True,
        "durability": durability,
        "spool_dir": spool,
        "spool_adopt": "all",
        "queue_entries": 200_000,
    }
    settings = Settings(redis=redis, capture=CaptureSettings.model_validate(values))
    return Capture(settings, service="bench")


def capture_one(capture: Capture, number: int) -> str:
    """A retrieval of about 1 KB."""
    return capture.retrieval(
        tool_name="query", query=f"{number} {QUERY}", retrieved_slugs=SLUGS, retrieved_chunk_ids=CHUNKS, latency_ms=1.5
    )


def cost(url: str, spool: Path, durability: str, events: int) -> tuple[float, float, float]:
    """Events a second until all are safe (until all are accepted where memory is all there is); p50 and p99 of a call in microseconds.

    The calls come at a pace, 2,000 a second, and then all at once.
    """
    capture = open_capture(url, spool, durability)
    capture_one(capture, 0)
    times = []
    due = float(time.perf_counter_ns())
    for number in range(events // 5):
        called = time.perf_counter_ns()
        capture_one(capture, number)
        times.append((time.perf_counter_ns() - called) / 1000)
        due += 500_000
        time.sleep(max(0, due - time.perf_counter_ns()) / 1e9)
    capture.flush(5)
    started = time.perf_counter()
    for number in range(events):
        capture_one(capture, number)
    safe = capture.flush(60) if durability != "memory" or capture.stats().redis == "up" else False
    rate = events / (time.perf_counter() - started) if safe else 0.0
    capture.close(0)
    return rate, statistics.median(times), statistics.quantiles(times, n=100)[98]


def produce(url: str, spool: str, durability: str, notes: str) -> None:
    """Capture until killed, and note what was captured and what was safe by then."""
    capture = open_capture(url, Path(spool), durability)
    descriptor = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in itertools.count():
        identity = capture_one(capture, number)
        stats = capture.stats()
        safe = stats.published + stats.spooled
        os.write(descriptor, b"%b %.6f %d\n" % (identity.encode(), time.time(), safe))
        time.sleep(0.0003)


def loss(durability: str, directory: Path, *, redis_up: bool, events: int) -> Loss:
    """Kill a producer once it captured so many and some are safe, if any ever are; count once the next one has sent what it left."""
    directory.mkdir()
    (directory / "redis").mkdir()
    server = RedisServer(directory / "redis").start()
    url = server.url if redis_up else f"redis://127.0.0.1:{free_port()}/0"
    notes = directory / "notes"
    order = json.dumps([url, str(directory / "spool"), durability, str(notes)])
    try:
        producer = subprocess.Popen([sys.executable, "-m", "tests.bench.durability", order], stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 30
            ever_safe = redis_up or durability != "memory"
            while len(noted := _noted(notes)) < events or (ever_safe and not int(noted[-1][2])):
                if time.monotonic() > deadline or producer.poll() is not None:
                    raise RuntimeError("the producer did not get so far")
                time.sleep(0.005)
        finally:
            producer.kill()
            producer.wait(10)
        killed = time.time()
        lines = _noted(notes)
        safe = int(lines[-1][2])
        heir = open_capture(server.url, directory / "spool", "spool")
        capture_one(heir, -1)
        deadline = time.monotonic() + 30
        while _waits(directory / "spool") or not heir.stats().published:
            if time.monotonic() > deadline:
                raise RuntimeError("the spool was not sent")
            time.sleep(0.02)
        heir.close(5)
        with server.client() as client:
            arrived = {json.loads(fields[FIELD.encode()])["event_id"] for _, fields in client.xrange(CAPTURE.key())}
    finally:
        server.stop()
    missing = [number for number, (identity, *_) in enumerate(lines) if identity not in arrived]
    oldest = max((killed - float(lines[number][1]) for number in missing), default=0.0)
    return Loss(len(lines), sum(number < safe for number in missing), len(missing), oldest * 1000)


def _waits(spool: Path) -> bool:
    """Whether a segment is there. Folders vanish as they are looked at, which `os.walk` bears."""
    return any(name.endswith(".jsonl") for _, _, names in os.walk(spool) for name in names)


def _noted(notes: Path) -> list[list[str]]:
    return [line.split() for line in notes.read_text().split("\n")[:-1]] if notes.exists() else []


@contextmanager
def _redis(directory: Path) -> Iterator[str]:
    (directory / "redis").mkdir()
    server = RedisServer(directory / "redis").start()
    try:
        yield server.url
    finally:
        server.stop()


def measure() -> list[dict[str, Any]]:
    """Medians of alternating rounds; losses are the worst of several kills."""
    import logging

    logging.getLogger("assay_capture").setLevel(logging.CRITICAL)  # a Redis that is away on purpose is no news
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        with _redis(directory) as up:
            for state, url in (("up", up), ("away", f"redis://127.0.0.1:{free_port()}/0")):
                found: dict[str, list[tuple[float, float, float]]] = {mode: [] for mode in MODES}
                for turn, mode in itertools.product(range(ROUNDS), MODES):
                    found[mode].append(cost(url, directory / f"{state}-{mode}-{turn}", mode, EVENTS))
                middle = {
                    mode: [statistics.median(column) for column in zip(*found[mode], strict=True)] for mode in MODES
                }
                for mode in MODES:
                    anchor = "spool" if state == "away" and mode != "spool" else "memory"
                    for place, (what, unit) in enumerate(
                        (("events made safe", "events/s"), ("call p50", "us"), ("call p99", "us"))
                    ):
                        if middle[mode][place] and middle[anchor][place]:
                            pair = middle[mode][place], middle[anchor][place]
                            rows.append(
                                result(f"Redis {state}: {what}, {mode} / {anchor}", *pair, unit, None, EVENTS * ROUNDS)
                            )
        rng = random.Random(20_260)
        for state, mode in itertools.product(("up", "away"), MODES):
            losses = [
                loss(
                    mode, directory / f"kill-{state}-{mode}-{n}", redis_up=state == "up", events=rng.randint(200, 1_500)
                )
                for n in range(KILLS)
            ]
            worst = max(losses, key=lambda each: each.lost)
            captured = sum(each.captured for each in losses)
            name = f"kill -9, Redis {state}, {mode}"
            rows.append(
                result(
                    f"{name}: events lost, the worst / captured", worst.lost, worst.captured, "events", None, captured
                )
            )
            rows.append(
                result(
                    f"{name}: lost although safe",
                    sum(e.safe_but_lost for e in losses) + 0.0,
                    1,
                    "events",
                    "<= 0",
                    captured,
                )
            )
            if mode != "memory" or state == "up":
                oldest = max(each.oldest_ms for each in losses)
                rows.append(result(f"{name}: age of the oldest lost / flush interval", oldest, 50.0, "ms", None, KILLS))
    return rows


if __name__ == "__main__":
    produce(*json.loads(sys.argv[1]))
