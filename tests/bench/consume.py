"""The scrubber's consumption, beside a raw redis-py loop that does the same work on the same entries in the same run."""

import asyncio
import contextlib
import gc
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from assay_runtime.connection import Client, connect
from assay_runtime.delivery import Consumer
from assay_runtime.entries import Bounds, Entry, Outcome
from assay_runtime.faststream_adapter import make_broker, subscribe
from assay_runtime.finishing import forward_finish
from assay_runtime.same_redis import redis_here
from assay_schema.ids import new_event_id
from assay_schema.settings import DeliverySettings, RedisSettings
from assay_schema.streams import CAPTURE, EVENTS, FIELD
from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import Policy
from assay_scrubber.process import Processor
from tests.bench.result import result
from tests.support.redis import RedisServer

BATCH = 500
ENTRIES = 30_000
ROUNDS = 5


def event() -> bytes:
    """A retrieval of about 1 KB, as the SDK writes it."""
    return orjson.dumps(
        {
            "schema_version": 1,
            "event_id": new_event_id(),
            "kind": "retrieval",
            "project": "default",
            "service": "bench",
            "occurred_at": "2026-11-21T10:00:00.123456Z",
            "traceparent": None,
            "payload": {
                "tool_name": "query",
                "query": "which function of the standard library parses a date that a person typed, and what does it raise? "
                * 3,
                "retrieved_slugs": [f"package.module.function_{n}" for n in range(10)],
                "retrieved_chunk_ids": list(range(900_000, 900_010)),
                "source_ids": ["package"],
                "expand_enabled": True,
                "latency_ms": 12.5,
                "retrieved_scores": [1.5 + n / 7 for n in range(10)],
                "params": {"k": 10},
            },
        }
    )


async def fill(client: Client) -> None:
    """Lay out the entries to consume, in a stream with nothing else."""
    await client.delete(CAPTURE.key(), EVENTS.key())
    await client.xgroup_create(CAPTURE.key(), "scrubber", id="0", mkstream=True)
    for _ in range(ENTRIES // 1000):
        pipeline = client.pipeline(transaction=False)
        for _ in range(1000):
            pipeline.xadd(CAPTURE.key(), {FIELD: event()})
        await pipeline.execute()


async def ours(client: Client, settings: RedisSettings) -> float:
    """Entries per second of the service's consumer."""
    processor = Processor(Scrubber(Policy()))

    async def process(entries: Sequence[Entry]) -> list[Outcome]:
        return processor.process(iter(entries))

    consumer = Consumer(
        client,
        CAPTURE,
        group="scrubber",
        name="bench",
        process=process,
        finish=forward_finish(client, "scrubber", 0, 1),
        bounds=Bounds(BATCH, 1 << 24, 0),
        settings=DeliverySettings(),
    )
    broker = make_broker(settings)
    await consumer.prepare()
    subscribe(broker, consumer, dict)
    started = time.perf_counter()
    await broker.start()
    consumer.start()
    while await client.xlen(CAPTURE.key()):  # noqa: ASYNC110  # Redis has no event for it
        await asyncio.sleep(0.005)
    seconds = time.perf_counter() - started
    await consumer.stop()
    await broker.stop()
    return ENTRIES / seconds


async def raw(client: Client, _: RedisSettings) -> float:
    """Entries per second of the plainest loop with redis-py and the same work."""
    processor = Processor(Scrubber(Policy()))
    finish = forward_finish(client, "scrubber", 0, 1)
    here = await redis_here(client)
    started = time.perf_counter()
    while answer := await client.xreadgroup("scrubber", "bench", {CAPTURE.key(): ">"}, count=BATCH):
        entries = [Entry(entry_id.decode(), fields[FIELD.encode()]) for entry_id, fields in answer[0][1]]
        await finish(processor.process(iter(entries)), here)
    return ENTRIES / (time.perf_counter() - started)


@contextlib.asynccontextmanager
async def server() -> AsyncIterator[tuple[Client, RedisSettings]]:
    with tempfile.TemporaryDirectory() as directory:
        redis = RedisServer(Path(directory)).start()
        settings = RedisSettings.model_validate({"url": redis.url})
        client = connect(settings)
        try:
            yield client, settings
        finally:
            await client.aclose()
            redis.stop()


async def _measure() -> list[dict[str, Any]]:
    figures: dict[Any, list[float]] = {ours: [], raw: []}
    async with server() as (client, settings):
        for turn in range(ROUNDS):
            for way in (ours, raw) if turn % 2 else (raw, ours):
                await fill(client)
                gc.collect()
                figures[way].append(await way(client, settings))
    pairs = (statistics.median(figures[way]) for way in (ours, raw))
    return [result("scrubber beside a raw redis-py loop, same work", *pairs, "entries/s", ">= 0.8", ENTRIES * ROUNDS)]


async def _raw_once() -> float:
    async with server() as (client, settings):
        await fill(client)
        gc.collect()
        return await raw(client, settings)


def raw_rate() -> float:
    """Entries per second of the raw loop, in one round on a Redis of its own."""
    return asyncio.run(_raw_once())


def measure() -> list[dict[str, Any]]:
    """Medians of alternating rounds."""
    return asyncio.run(_measure())
