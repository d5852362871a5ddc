"""End to end: what two cores carry from `capture` to the store, beside a raw redis-py loop that only scrubs, in alternating rounds; how
late rows are at half of that; and what it all weighs."""

import statistics
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import redis

from assay_schema.ids import new_event_id
from assay_schema.streams import CAPTURE, FIELD
from tests.bench import consume
from tests.bench.result import result
from tests.support.stack import System, running

EVENTS = 150_000
CHUNK = 250
SECONDS_AT_HALF_LOAD = 15
#: Between two questions whether all is stored. Each takes the store 10 ms of the two cores that are measured.
ASK_EVERY_S = 0.25
ROUNDS = 3


class Producer:
    """Appends events of about 1 KB through the producer's own credentials, in pipelines, as many SDKs together would."""

    def __init__(self, client: "redis.Redis") -> None:
        self._client = client
        self._template = orjson.loads(consume.event())

    def batch(self, count: int) -> list[bytes]:
        now = datetime.now(UTC).isoformat()
        return [orjson.dumps(self._template | {"event_id": new_event_id(), "occurred_at": now}) for _ in range(count)]

    def send(self, batch: list[bytes]) -> None:
        pipeline = self._client.pipeline(transaction=False)
        for data in batch:
            pipeline.xadd(CAPTURE.key(), {FIELD: data})
        pipeline.execute()


class MemoryWatch(threading.Thread):
    """Samples the memory of the whole system and keeps the peak."""

    def __init__(self, system: System) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._system = system
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.3):
            self.peak = max(self.peak, self._system.resident())

    def stop(self) -> int:
        self._over.set()
        self.join()
        return self.peak


def stored(store: Any) -> int:
    return int(store.command("SELECT count() FROM assay_base.candidates"))


def wait_for(store: Any, rows: int, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while stored(store) < rows:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{stored(store)} of {rows} rows are stored after {seconds} s")
        time.sleep(ASK_EVERY_S)


def saturate(system: System, producer: Producer) -> float:
    """Events per second from the first append to the last visible row."""
    store = system.store("owner")
    before = stored(store)
    batches = [producer.batch(CHUNK) for _ in range(EVENTS // CHUNK)]
    started = time.perf_counter()
    for batch in batches:
        producer.send(batch)
    wait_for(store, before + EVENTS)
    return EVENTS / (time.perf_counter() - started)


def lateness(system: System, producer: Producer, rate: float) -> tuple[float, int]:
    """p99 seconds from `occurred_at` to `stored_at` at a steady rate, and how many events were measured."""
    store = system.store("owner")
    before, began = stored(store), datetime.now(UTC)
    sent, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < SECONDS_AT_HALF_LOAD:
        due = int(elapsed * rate) - sent
        if due >= 20:
            producer.send(producer.batch(due))
            sent += due
        else:
            time.sleep(0.001)
    wait_for(store, before + sent)
    late = "quantileExact(0.99)(toFloat64(stored_at) - toFloat64(occurred_at))"
    sql = f"SELECT {late} FROM assay_base.candidates WHERE occurred_at >= {{t:DateTime64(6)}}"
    return float(store.query(sql, parameters={"t": began}).result_rows[0][0]), sent


def measure() -> list[dict[str, Any]]:
    """One system, several rounds; the medians and the peak of memory."""
    rows = consume.measure()
    with tempfile.TemporaryDirectory() as directory, running(Path(directory), "--no-quality") as system:
        idle = system.resident()
        watch = MemoryWatch(system)
        watch.start()
        with system.redis("producer") as client:
            producer = Producer(client)
            saturate(system, producer)  # warm up
            pairs = [(consume.raw_rate(), saturate(system, producer)) for _ in range(ROUNDS)]
            raw, rate = (statistics.median(rates) for rates in zip(*pairs, strict=True))
            p99, measured = lateness(system, producer, rate / 2)
        peak = watch.stop()
    return [
        *rows,
        result(
            "end to end on two cores, beside a raw redis-py loop that scrubs",
            rate,
            raw,
            "events/s",
            ">= 0.7",
            EVENTS * ROUNDS,
        ),
        result("p99 capture to stored, at half of that", p99, 2.0, "s", "<= 1", measured),
        result("memory of the whole system, idle", idle / 2**30, 1.5, "GiB", "<= 1", 1),
        result("memory of the whole system, peak", peak / 2**30, 1.5, "GiB", "<= 1", 1),
    ]
