"""The lag of a group against real servers: a number after every kill, trim and deletion, and the one that counting gives."""

import random

from redis.asyncio import Redis

from assay_runtime.connection import Client
from assay_runtime.lag import groups, recount
from assay_schema.streams import ALERTS, CAPTURE, EVENTS, FIELD, Stream, scrubbed_low_watermark_key, watermark_key
from tests.support.redis import RedisServer, each_redis_binary  # noqa: F401


async def counted(client: Client, stream: Stream, group: str) -> tuple[int, int]:
    """Unread and pending, by reading every entry."""
    [state] = [each for each in await client.xinfo_groups(stream.key()) if each["name"].decode() == group]
    unread = await client.xrange(stream.key(), b"(" + state["last-delivered-id"], "+")
    pending = {each["message_id"] for each in await client.xpending_range(stream.key(), group, "-", "+", 100_000)}
    return len(unread), len(pending)


async def add(client: Client, stream: Stream, count: int) -> None:
    pipeline = client.pipeline(transaction=False)
    for _ in range(count):
        pipeline.xadd(stream.key(), {FIELD: b"x" * 50})
    await pipeline.execute()


async def read(client: Client, stream: Stream, group: str, count: int, finish: int) -> None:
    answer = await client.xreadgroup(group, "one", {stream.key(): ">"}, count=count)
    ids = [entry for entry, _ in answer[0][1]][:finish] if answer else []
    if ids:
        await client.xack(stream.key(), group, *ids)
    if ids and stream is CAPTURE:
        await client.xdel(stream.key(), *ids)


async def test_after_any_kills_trims_and_deletions_the_lag_is_what_counting_gives(
    client: Client, redis_server: RedisServer
) -> None:
    rng = random.Random(20_260)  # noqa: S311
    for stream, group in ((EVENTS, "writer"), (CAPTURE, "scrubber"), (ALERTS, "notifier")):
        await client.xgroup_create(stream.key(), group, id="0", mkstream=True)
        for turn in range(12):
            await add(client, stream, rng.randrange(1_500))
            await read(client, stream, group, rng.randrange(1, 900), rng.randrange(900))
            if turn % 3 == 0 and stream is not CAPTURE:
                [state] = await client.xinfo_groups(stream.key())
                pending = await client.xpending_range(stream.key(), group, "-", "+", 1)
                floor = pending[0]["message_id"] if pending else state["last-delivered-id"]
                await client.xtrim(stream.key(), minid=floor, approximate=False)
            if turn % 4 == 1:
                entries = await client.xrange(
                    stream.key(), (await client.xinfo_groups(stream.key()))[0]["last-delivered-id"]
                )
                if len(entries) > 3:  # in the middle, and not read yet
                    await client.xdel(stream.key(), entries[len(entries) // 2][0], entries[-2][0])
            if turn % 4 == 2:
                await client.bgrewriteaof()
            if turn % 2:
                redis_server.kill()
                redis_server.start()
            found = await recount(client, stream.key(), group)
            unread, pending = await counted(client, stream, group)
            assert found == unread, (stream.name, turn)
            seen = (await groups(client, stream))[group]
            assert (seen.pending, seen.unfinished >= unread + pending) == (pending, True)
            if seen.counted:
                assert seen.unread == unread, (stream.name, turn)


async def test_what_a_service_has_counted_is_right_for_everybody_and_stays_so(
    client: Client, redis_server: RedisServer
) -> None:
    await client.xgroup_create(ALERTS.key(), "notifier", id="0", mkstream=True)
    await add(client, ALERTS, 1_000)
    await read(client, ALERTS, "notifier", 600, 600)
    redis_server.kill()
    redis_server.start()
    assert (await groups(client, ALERTS))["notifier"].unread >= 400
    assert await recount(client, ALERTS.key(), "notifier") == 400
    await add(client, ALERTS, 50)
    await read(client, ALERTS, "notifier", 100, 100)
    seen = (await groups(client, ALERTS))["notifier"]
    assert (seen.unread, seen.counted, seen.pending) == (350, True, 0)


async def test_a_count_that_is_wrong_is_put_right_while_entries_come_are_read_and_trimmed(client: Client) -> None:
    await client.xgroup_create(EVENTS.key(), "writer", id="0", mkstream=True)
    await add(client, EVENTS, 3_000)
    await read(client, EVENTS, "writer", 2_000, 2_000)
    [state] = await client.xinfo_groups(EVENTS.key())
    await client.execute_command(
        "XGROUP", "SETID", EVENTS.key(), "writer", state["last-delivered-id"], "ENTRIESREAD", 40
    )

    class Busy(Redis):
        """A client whose every other command finds the stream changed."""

        turn = 0

        async def evalsha(self, *arguments: object) -> object:  # type: ignore[override]
            self.turn += 1
            if self.turn in (2, 9):
                await add(client, EVENTS, 10)
                await read(client, EVENTS, "writer", 7, 7)
            if self.turn == 4:
                first = (await client.xrange(EVENTS.key(), count=100))[-1][0]
                await client.xtrim(EVENTS.key(), minid=first, approximate=False)
            return await super().evalsha(*arguments)  # type: ignore[arg-type]

    busy = Busy(connection_pool=client.connection_pool)
    assert await recount(busy, EVENTS.key(), "writer") == (await counted(client, EVENTS, "writer"))[0]
    assert (await groups(client, EVENTS))["writer"].unread == (await counted(client, EVENTS, "writer"))[0]


async def test_what_the_watermark_says_is_stored_does_not_lag_whatever_redis_counts(client: Client) -> None:
    await client.xgroup_create(EVENTS.key(), "writer", id="0", mkstream=True)
    await add(client, EVENTS, 100)
    await read(client, EVENTS, "writer", 100, 100)
    [state] = await client.xinfo_groups(EVENTS.key())
    await client.execute_command(
        "XGROUP", "SETID", EVENTS.key(), "writer", state["last-delivered-id"], "ENTRIESREAD", 40
    )
    await client.mset({scrubbed_low_watermark_key(): 7, watermark_key(): 7})
    assert (await groups(client, EVENTS))["writer"].unfinished == 0
    await client.set(scrubbed_low_watermark_key(), 8)
    assert (await groups(client, EVENTS))["writer"].unfinished > 0


async def test_a_stream_that_is_not_there_has_no_groups(client: Client) -> None:
    assert await groups(client, EVENTS) == {}
