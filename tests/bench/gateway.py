"""Events over HTTP: the gateway beside a loop that validates the same events and appends them with redis-py, without HTTP.

Batches of 100 events of about 1 KB. Both validate every event in full and wait for Redis's acknowledgement. The sides take turns in short
rounds within one run, and each is measured by its own CPU time, so that other load on the machine falls on both alike.
"""

import contextlib
import http.client
import math
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import psutil
import redis

from assay_schema.streams import CAPTURE, FIELD
from assay_schema.validation import parse_event
from tests.bench import exported_spans, open_traces, receivers, spans
from tests.bench.result import result
from tests.support.gateway import Gateway, event, redis_with_identities

BATCH = 100
#: Words of a query, so that an event has about 1 KB.
QUERY = "how do I change the retention of one project without touching the others, and when does it take effect? " * 5
CLIENTS = 2
#: Largest resident memory of the gateway under this load, in MiB, and slowest answer at half load (p99), in milliseconds.
RSS_MIB, P99_MS = 90, 50


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Rows in events per CPU second, milliseconds and MiB."""
    rounds, requests = (3, 40) if quick else (12, 200)
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = redis_with_identities(directory)
        stack.callback(server.stop)
        gateway = Gateway(directory, server, ASSAY_TELEMETRY_LOG_LEVEL="INFO")
        stack.callback(gateway.kill)
        gateway.start()
        assert gateway.process
        process = psutil.Process(gateway.process.pid)
        key = gateway.key()
        batch = [orjson.dumps(_event()) for _ in range(BATCH)]
        bodies = {"array": b"[" + b",".join(batch) + b"]", "ndjson": b"\n".join(batch)}
        types = {"array": "application/json", "ndjson": "application/x-ndjson"}
        client = stack.enter_context(contextlib.closing(server.client()))
        sides: dict[str, Callable[[], float]] = {
            name: lambda name=name: _over_http(gateway, process, key, bodies[name], types[name], requests)  # type: ignore[misc]
            for name in bodies
        }
        sides["loop"] = lambda: _without_http(client, batch, requests)
        speeds: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(rounds + 1):
            for name, side in sides.items():
                seconds = side()
                if turn:  # the first warms up
                    speeds[name].append(requests * BATCH / seconds)
                client.delete(CAPTURE.key())
        speed = {name: statistics.median(values) for name, values in speeds.items()}
        stack.enter_context(_emptied(client))
        p99, n = _p99_at_half_load(gateway, key, bodies["array"], 1.0 if quick else 10.0)
        rss = process.memory_info().rss / 2**20
        count = rounds * requests * BATCH
        unit = "events/CPU-s"
        return [
            result(
                "JSON array over HTTP / validating loop, redis-py", speed["array"], speed["loop"], unit, ">= 0.8", count
            ),
            result(
                "NDJSON over HTTP / validating loop, redis-py", speed["ndjson"], speed["loop"], unit, ">= 0.8", count
            ),
            result("p99 at half load / its limit", p99, P99_MS, "ms", "<= 1", n),
            result("resident memory / its limit", rss, RSS_MIB, "MiB", "<= 1", 1),
            *spans.rows(quick),
            *exported_spans.rows(quick),
            *receivers.rows(quick),
            *open_traces.rows(quick),
        ]


@contextlib.contextmanager
def _emptied(client: "redis.Redis") -> Iterator[None]:
    """Empty the stream all the time, as the scrubber does."""
    over = threading.Event()

    def empty() -> None:
        while not over.wait(0.1):
            client.xtrim(CAPTURE.key(), maxlen=0, approximate=False)

    thread = threading.Thread(target=empty)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _event() -> dict[str, Any]:
    made = event(project="shop")
    made["payload"] |= {
        "query": QUERY,
        "retrieved_slugs": [f"handbook/retention-{number}" for number in range(5)],
        "retrieved_chunk_ids": list(range(4100, 4105)),
        "retrieved_scores": [0.9 - number / 37 for number in range(5)],
    }
    return made


def _over_http(
    gateway: Gateway, process: psutil.Process, key: str, body: bytes, media_type: str, requests: int
) -> float:
    """Return the CPU seconds of the gateway for so many requests of two clients."""
    before = process.cpu_times()
    threads = [
        threading.Thread(target=_send, args=(gateway, key, body, media_type, requests // CLIENTS))
        for _ in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = process.cpu_times()
    return (after.user - before.user) + (after.system - before.system)


def _send(gateway: Gateway, key: str, body: bytes, media_type: str, requests: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
    for _ in range(requests):
        _request(connection, key, body, media_type)
    connection.close()


def _request(connection: http.client.HTTPConnection, key: str, body: bytes, media_type: str) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": media_type}
    connection.request("POST", "/v1/events", body, headers)
    answer = connection.getresponse()
    assert orjson.loads(answer.read())["accepted"] == BATCH


def _without_http(client: "redis.Redis", batch: list[bytes], requests: int) -> float:
    began = time.process_time()
    for _ in range(requests):
        pipeline = client.pipeline(transaction=False)
        for data in batch:
            parse_event(data)
            pipeline.xadd(CAPTURE.key(), {FIELD: data})
        pipeline.execute()
    return time.process_time() - began


def _p99_at_half_load(gateway: Gateway, key: str, body: bytes, seconds: float) -> tuple[float, int]:
    """Return the 99th percentile of answers, in milliseconds, while requests begin at half the fastest pace."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
    alone = []
    for _ in range(50):
        began = time.perf_counter()
        _request(connection, key, body, "application/json")
        alone.append(time.perf_counter() - began)
    pause = 2 * statistics.median(alone)
    taken, begin = [], time.perf_counter()
    end = begin + seconds
    while (at := time.perf_counter()) < end:
        if at < begin:
            time.sleep(begin - at)
        _request(connection, key, body, "application/json")
        taken.append(time.perf_counter() - begin)  # from when it should have begun
        begin += pause
    connection.close()
    return sorted(taken)[math.ceil(len(taken) * 0.99) - 1] * 1000, len(taken)
