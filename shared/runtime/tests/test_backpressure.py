"""Back-pressure between services, against a real Redis of each version."""

import asyncio
from collections.abc import Sequence

import pytest
from redis.exceptions import RedisError

from assay_runtime.backpressure import Backpressure, backlog
from assay_runtime.connection import Client
from assay_runtime.delivery import Consumer
from assay_runtime.entries import Bounds, Entry, Outcome
from assay_runtime.finishing import forward_finish
from assay_runtime.same_redis import redis_here
from assay_runtime.watermark import Watermark
from assay_schema.settings import DeliverySettings
from assay_schema.streams import CAPTURE, EVENTS, FAILURES, FIELD
from tests.support.redis import RedisServer, each_redis_binary  # noqa: F401

KB = b"x" * 1_000
HELD = DeliverySettings().held_bytes
FILLED = [(EVENTS, "writer"), (FAILURES, "writer")]


@pytest.fixture
async def scrubber(client: Client) -> Consumer:
    """A scrubber that passes on what it reads; not started."""
    await client.xgroup_create(EVENTS.key(), "writer", id="0", mkstream=True)

    async def passing_on(entries: Sequence[Entry]) -> list[Outcome]:
        return [Outcome(entry.id, event=b'{"n":1}') for entry in entries]

    consumer = Consumer(
        client,
        CAPTURE,
        group="scrubber",
        name="one",
        process=passing_on,
        finish=forward_finish(client, "scrubber", 0, 1),
        bounds=Bounds(entries=10, bytes=1_000_000, age_s=0),
        settings=DeliverySettings(),
    )
    await consumer.prepare()
    return consumer


async def pass_on(client: Client, count: int, kilobytes: int = 1) -> None:
    """Events as the scrubber leaves them, for the writer."""
    entries = [(await client.xadd(CAPTURE.key(), {FIELD: KB})).decode() for _ in range(count)]
    await client.xreadgroup("scrubber", "one", {CAPTURE.key(): ">"}, count=count)
    finish = forward_finish(client, "scrubber", 0, 1)
    await finish(
        [Outcome(entry, event=b'{"x":"' + KB * kilobytes + b'"}') for entry in entries], await redis_here(client)
    )


async def store(client: Client, count: int) -> None:
    """The writer reads, stores and acknowledges; its watermark follows."""
    [(_, entries)] = await client.xreadgroup("writer", "one", {EVENTS.key(): ">"}, count=count)
    await client.xack(EVENTS.key(), "writer", *[entry_id for entry_id, _ in entries])
    await Watermark(client, 0, "writer", 1_000_000).advance(0)


async def test_what_is_stored_is_no_backlog_whatever_redis_counts_as_lag(client: Client, scrubber: Consumer) -> None:
    """A Redis that was killed can come back with a group whose count of read entries is too low, and stays so."""
    await pass_on(client, 100)
    await store(client, 100)
    [group] = await client.xinfo_groups(EVENTS.key())
    await client.execute_command(
        "XGROUP", "SETID", EVENTS.key(), "writer", group["last-delivered-id"], "ENTRIESREAD", "40"
    )
    assert (await backlog(client, EVENTS, 0, "writer", HELD)).entries == 0
    await pass_on(client, 3)
    assert (await backlog(client, EVENTS, 0, "writer", HELD)).entries > 0


async def test_a_backlog_is_what_is_unread_or_unfinished_and_the_memory_it_takes(
    client: Client, scrubber: Consumer
) -> None:
    await pass_on(client, 100)
    await client.xreadgroup("writer", "one", {EVENTS.key(): ">"}, count=40)
    found = await backlog(client, EVENTS, 0, "writer", HELD)
    assert found.entries == 100
    assert 100_000 <= found.bytes <= 300_000


async def test_large_entries_behind_a_history_of_small_ones_weigh_what_they_weigh(
    client: Client, scrubber: Consumer
) -> None:
    await pass_on(client, 3_000)
    await store(client, 3_000)
    await pass_on(client, 40, kilobytes=500)
    found = await backlog(client, EVENTS, 0, "writer", held_bytes=4_000_000)
    assert 19_000_000 <= found.bytes <= 25_000_000


async def test_what_waits_in_all_the_streams_together_is_over_the_mark(client: Client, scrubber: Consumer) -> None:
    for stream in (EVENTS, FAILURES):
        await client.xadd(stream.key(), {FIELD: KB * 800})
    backpressure = Backpressure(client, [scrubber], FILLED, DeliverySettings(high_water_bytes=1_500_000))
    await backpressure.run()
    assert "delivery.high_water_bytes" in scrubber.held_back


async def test_a_history_that_is_stored_is_no_backlog(client: Client, scrubber: Consumer) -> None:
    await pass_on(client, 100)
    await store(client, 100)
    assert await client.xlen(EVENTS.key()) == 100
    assert (await backlog(client, EVENTS, 0, "writer", HELD)).entries == 0
    assert (await backlog(client, FAILURES, 0, "writer", HELD)).entries == 0


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (DeliverySettings(high_water_entries=50), "delivery.high_water_entries"),
        (DeliverySettings(high_water_bytes=1024 * 1024), "delivery.high_water_bytes"),
    ],
    ids=["entries", "bytes"],
)
async def test_the_scrubber_waits_above_the_mark_and_goes_on_when_the_writer_has_caught_up(
    client: Client, scrubber: Consumer, settings: DeliverySettings, named: str
) -> None:
    backpressure = Backpressure(client, [scrubber], FILLED, settings)
    await pass_on(client, 1_200)
    await backpressure.run()
    assert named in scrubber.held_back
    scrubber.start()
    held = [Entry((await client.xadd(CAPTURE.key(), {FIELD: KB})).decode(), KB) for _ in range(20)]
    await client.xreadgroup("scrubber", "one", {CAPTURE.key(): ">"}, count=20)
    assert await scrubber.offer(held[:10])
    more = asyncio.ensure_future(scrubber.offer(held[10:]))
    await backpressure.run()
    assert not more.done(), "it takes no more than one batch"
    assert await client.xlen(CAPTURE.key()) == 20
    await store(client, 1_200)
    await backpressure.run()
    assert not scrubber.held_back
    async with asyncio.timeout(60):
        assert await more
        await scrubber.stop()  # it finishes what it holds
    assert await client.xlen(CAPTURE.key()) == 0


async def test_a_stop_above_the_mark_leaves_what_is_held_for_the_next_run(client: Client, scrubber: Consumer) -> None:
    """Or each restart would carry a batch past the mark."""
    await scrubber.hold_back("over the mark")
    scrubber.start()
    entry = Entry((await client.xadd(CAPTURE.key(), {FIELD: KB})).decode(), KB)
    await client.xreadgroup("scrubber", "one", {CAPTURE.key(): ">"}, count=1)
    assert await scrubber.offer([entry])
    async with asyncio.timeout(60):
        await scrubber.stop()
    [pending] = await client.xpending_range(CAPTURE.key(), "scrubber", "-", "+", 10)
    assert (pending["message_id"].decode(), pending["times_delivered"]) == (entry.id, 1)


async def test_a_redis_that_was_away_is_looked_at_before_the_next_batch(
    redis_server: RedisServer, client: Client, scrubber: Consumer
) -> None:
    """It may come back with more in it than any mark allows."""
    backpressure = Backpressure(client, [scrubber], FILLED, DeliverySettings(high_water_entries=50))
    await backpressure.run()
    assert not scrubber.held_back
    redis_server.kill()
    with pytest.raises(RedisError):
        await backpressure.run()
    assert "redis does not report" in scrubber.held_back
    redis_server.start()
    await pass_on(client, 100)
    await backpressure.run()
    assert "delivery.high_water_entries" in scrubber.held_back
    await store(client, 100)
    await backpressure.run()
    assert not scrubber.held_back
