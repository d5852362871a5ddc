"""What capturing costs the caller: one call, beside one OpenTelemetry span and one Langfuse observation that carry the same values.

Every call is timed by itself and the sides take turns in short rounds within one run, so that load on the machine falls on all alike.
Their background work happens between rounds. Ours sends to a real Redis; OpenTelemetry's and Langfuse's exporters do nothing, which
favours them. Langfuse's own address is a loopback socket that never answers; nothing leaves the machine.
"""

import contextlib
import logging
import math
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assay_capture import Capture
from assay_schema.settings import Settings
from tests.bench.result import result
from tests.support.gateway import Gateway, redis_with_identities
from tests.support.ports import free_port
from tests.support.redis import RedisServer

ROUND = 100
HITS = 10
QUERY = "how do I change the retention of one project without touching the others, and when does it take effect? " * 2
SLUGS = [f"handbook/operations/retention-{number}" for number in range(HITS)]
CHUNKS = list(range(1000, 1000 + HITS))
SCORES = [0.9 - number / 37 for number in range(HITS)]
SOURCES = ["handbook", "wiki"]
Call = Callable[[], None]


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Rows in microseconds for the caller and in events a second for the spool."""
    rounds = 20 if quick else 200
    logging.getLogger("assay_capture").setLevel(logging.CRITICAL)  # a Redis that is away on purpose is no news
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (directory / "redis").mkdir()
        server = RedisServer(directory / "redis").start()
        stack.callback(server.stop)
        away = f"redis://127.0.0.1:{free_port()}/0"
        sides: dict[str, tuple[Call, Call]] = {
            "up": stack.enter_context(_assay(server.url, directory / "up", "spool")),
            "scrub": stack.enter_context(_assay(server.url, directory / "scrub", "spool", scrub="producer")),
            "memory": stack.enter_context(_assay(server.url, directory / "memory", "memory")),
            "spool": stack.enter_context(_assay(away, directory / "spool", "spool")),
            "fsync": stack.enter_context(_assay(away, directory / "fsync", "fsync")),
            "tool": stack.enter_context(_assay(server.url, directory / "tool", "spool", call=_call_tool)),
            "http": stack.enter_context(_assay_over_http(directory / "http")),
            "file": stack.enter_context(_assay(server.url, directory / "file", "spool", call=_call_tool, sink="file")),
            "otel": stack.enter_context(_opentelemetry()),
            "langfuse": stack.enter_context(_langfuse()),
        }
        times = _take_turns(sides, rounds)
        n = len(times["up"])
        p50 = {side: statistics.median(values) for side, values in times.items()}
        p99 = {side: sorted(values)[math.ceil(n * 0.99) - 1] for side, values in times.items()}
        rows = [
            result("retrieval() p50 / OpenTelemetry span", p50["up"], p50["otel"], "us", "<= 0.25", n),
            result("retrieval() p50 / Langfuse observation", p50["up"], p50["langfuse"], "us", "<= 0.05", n),
            result("retrieval() p99 / OpenTelemetry span", p99["up"], p99["otel"], "us", None, n),
            result("retrieval() p50, events over HTTP / to Redis", p50["http"], p50["up"], "us", "<= 1.1", n),
            result("retrieval() p99, events over HTTP / to Redis", p99["http"], p99["up"], "us", None, n),
            result("tool_call() p50 / retrieval()", p50["tool"], p50["up"], "us", "<= 1.3", n),
            result("tool_call() p99 / retrieval()", p99["tool"], p99["up"], "us", None, n),
            result("tool_call() to a file p50 / to Redis", p50["file"], p50["tool"], "us", None, n),
            result("scrubbed in the producer p50 / in the service", p50["scrub"], p50["up"], "us", None, n),
            result("scrubbed in the producer p99 / in the service", p99["scrub"], p99["up"], "us", None, n),
            result("durability memory p50 / spool", p50["memory"], p50["up"], "us", None, n),
            result("Redis away, spool p50 / Redis up", p50["spool"], p50["up"], "us", None, n),
            result("Redis away, fsync p50 / Redis up", p50["fsync"], p50["up"], "us", None, n),
        ]
        events = 2_000 if quick else 20_000
        rate = {
            mode: _rate(url, directory / f"rate-{mode}", mode, events)
            for mode, url in {"memory": server.url, "spool": away, "fsync": away}.items()
        }
        over_http = _rate_over_http(directory / "rate-http", events)
        scrubbed = _rate(server.url, directory / "rate-scrub", "memory", events, "producer")
        rows += [
            result("scrubbed in the producer / to Redis as it is", scrubbed, rate["memory"], "events/s", None, events),
            result("over HTTP / to Redis", over_http, rate["memory"], "events/s", None, events),
            result("to a spool / to Redis", rate["spool"], rate["memory"], "events/s", None, events),
            result("to a spool with fsync / to Redis", rate["fsync"], rate["memory"], "events/s", None, events),
        ]
        burst = 20_000 if quick else 200_000
        calls = {
            url: _burst(url, directory / f"burst-{number}", burst) for number, url in enumerate((server.url, away))
        }
        name = "calls of a burst, none dropped, Redis up / away"
        rows.append(result(name, calls[server.url], calls[away], "calls/s", None, burst))
        return rows


def _take_turns(sides: dict[str, tuple[Call, Call]], rounds: int) -> dict[str, list[float]]:
    """Microseconds of every call. Each side's pending work is done after its round, outside the measurement."""
    times: dict[str, list[float]] = {side: [] for side in sides}
    clock = time.perf_counter_ns
    for number in range(rounds + 1):
        for side, (call, settle) in sides.items():
            values = []
            for _ in range(ROUND):
                began = clock()
                call()
                values.append((clock() - began) / 1000)
            settle()
            if number:  # the first round warms up
                times[side] += values
    return times


def _settings(url: str, spool: Path, durability: str, /, **more: str) -> Settings:
    capture = {
        "spool_dir": spool,
        "durability": durability,
        "queue_entries": 100_000,
        "file_path": spool / "events.jsonl",
    }
    capture |= more
    return Settings.model_validate({"redis": {"url": url}, "capture": capture})


def _retrieve(capture: Capture) -> None:
    capture.retrieval(
        tool_name="query",
        query=QUERY,
        retrieved_slugs=SLUGS,
        retrieved_chunk_ids=CHUNKS,
        retrieved_scores=SCORES,
        source_ids=SOURCES,
        detail="medium",
        detail_resolved="medium",
        vector_enabled=True,
        latency_ms=12.5,
        embedding_model="small-embedder",
    )


def _call_tool(capture: Capture) -> None:
    """A call with as much in its summaries as a retrieval has in its lists."""
    capture.tool_call(
        tool_name="query",
        duration_ms=12.5,
        status="success",
        args_summary={"query": QUERY, "source_ids": SOURCES, "detail": "medium"},
        result_summary={"slugs": SLUGS, "chunk_ids": CHUNKS, "scores": SCORES},
        call_id="call-1",
        agent_name="planner",
    )


@contextlib.contextmanager
def _assay(
    url: str, spool: Path, durability: str, /, *, call: Callable[[Capture], None] = _retrieve, **more: str
) -> Iterator[tuple[Call, Call]]:
    capture = Capture(_settings(url, spool, durability, **more), service="bench", enabled=True)

    def settle() -> None:
        if not capture.flush(10):
            raise RuntimeError("the queue did not drain; the next round would measure something else")

    yield (lambda: call(capture)), settle
    capture.close(1)
    if capture.stats().dropped or capture.stats().file_dropped:
        raise RuntimeError(f"events were dropped, so this was no fair run: {capture.stats()}")


@contextlib.contextmanager
def _assay_over_http(directory: Path, durability: str = "spool") -> Iterator[tuple[Call, Call]]:
    """The same calls with the gateway's own process in between, which answers after its Redis has the events."""
    directory.mkdir(parents=True)
    redis = redis_with_identities(directory)
    gateway = Gateway(directory, redis, ASSAY_TELEMETRY_LOG_LEVEL="WARNING").start()
    try:
        to = {"url": f"http://127.0.0.1:{gateway.port}", "key": gateway.key()}
        with _assay(redis.url, directory / "spool", durability, call=_retrieve, **to) as sides:
            yield sides
    finally:
        gateway.kill()
        redis.stop()


def _rate_over_http(directory: Path, events: int) -> float:
    with _assay_over_http(directory, "memory") as (call, settle):
        return _timed(call, settle, events)


def _rate(url: str, spool: Path, durability: str, events: int, scrub: str = "service") -> float:
    """Events a second from the first call to the last event's safety, with Redis or on disk."""
    with _assay(url, spool, durability, scrub=scrub) as (call, settle):
        return _timed(call, settle, events)


def _timed(call: Call, settle: Call, events: int) -> float:
    began = time.perf_counter()
    for _ in range(events):
        call()
    settle()
    return events / (time.perf_counter() - began)


def _burst(url: str, spool: Path, events: int) -> float:
    """Calls a second in a tight loop with the default queue, far too small for it. Raises if any event was dropped."""
    settings = Settings.model_validate({"redis": {"url": url}, "capture": {"spool_dir": spool}})
    capture = Capture(settings, service="bench", enabled=True)
    began = time.perf_counter()
    for _ in range(events):
        _retrieve(capture)
    seconds = time.perf_counter() - began
    capture.close(0)
    if capture.stats().dropped:
        raise RuntimeError(f"the burst was too much: {capture.stats()}")
    return events / seconds


#: What the other two carry: the same values as `_retrieve`, under the same names.
FIELDS = {
    "tool_name": "query",
    "query": QUERY,
    "detail": "medium",
    "detail_resolved": "medium",
    "vector_enabled": True,
    "expansion_applied": False,
    "remote": False,
    "latency_ms": 12.5,
    "embedding_model": "small-embedder",
}


@contextlib.contextmanager
def _opentelemetry() -> Iterator[tuple[Call, Call]]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    processor = BatchSpanProcessor(_no_exporter())
    provider = TracerProvider()
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("bench")

    def call() -> None:
        attributes = {
            **FIELDS,
            "retrieved_slugs": SLUGS,
            "retrieved_chunk_ids": CHUNKS,
            "retrieved_scores": SCORES,
            "source_ids": SOURCES,
        }
        tracer.start_span("retrieval", attributes=attributes).end()

    yield call, lambda: _flushed(processor.force_flush())
    provider.shutdown()


@contextlib.contextmanager
def _langfuse() -> Iterator[tuple[Call, Call]]:
    os.environ["LANGFUSE_TRACING_ENVIRONMENT"] = "bench"
    from langfuse import Langfuse
    from opentelemetry.sdk.trace import TracerProvider

    with socket.create_server(("127.0.0.1", 0)) as black_hole:
        address = f"http://127.0.0.1:{black_hole.getsockname()[1]}"
        provider = TracerProvider()
        client = Langfuse(
            public_key="bench",
            secret_key="bench",
            host=address,
            tracer_provider=provider,
            span_exporter=_no_exporter(),
            timeout=1,
        )

        def call() -> None:
            client.start_observation(
                name="retrieval",
                as_type="retriever",
                input=QUERY,
                output={"slugs": SLUGS, "chunk_ids": CHUNKS, "scores": SCORES, "source_ids": SOURCES},
                metadata=FIELDS,
            ).end()

        yield call, lambda: _flushed(provider.force_flush())
        client.shutdown()


def _no_exporter() -> Any:
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class NoExporter(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:  # noqa: ARG002
            return SpanExportResult.SUCCESS

        def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002
            return True

    return NoExporter()


def _flushed(done: bool) -> None:
    if not done:
        raise RuntimeError("spans were not exported in time")
