"""Row ids against a real Redis that loses the end of its log, or all of it: none is given twice, none at or below what the store has."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from assay_runtime.connection import Client, connect
from assay_runtime.entries import Outcome
from assay_runtime.finishing import NumbersUnknownError, forward_finish, settle_finish
from assay_runtime.same_redis import redis_here
from assay_runtime.watermark import IdleShardTicker, Watermark
from assay_schema.ids import first_row_at, row_id
from assay_schema.settings import RedisSettings
from assay_schema.streams import CAPTURE, EVENTS, FIELD, overflow_key, scrubbed_low_watermark_key
from tests.support.redis import RedisServer
from tests.support.redis_log import Log
from tests.support.replicated_redis import until

#: How far the streams are ahead of the clock, as after a clock that was set back.
AHEAD_MS = 600_000


@pytest.fixture
def log(tmp_path: Path) -> "AsyncIterator[Log]":  # type: ignore[misc]
    log = Log(tmp_path)
    yield log
    log.server.stop()


async def make_groups(client: Client) -> None:
    await client.xgroup_create(CAPTURE.key(), "scrubber", id="0", mkstream=True)
    await client.xgroup_create(EVENTS.key(), "writer", id="0", mkstream=True)


async def set_ahead(client: Client, key: str, sequence: int = 0) -> None:
    """What a clock that was set back leaves: the stream's ids go on from where they were."""
    ms = int((await client.time())[0]) * 1_000 + AHEAD_MS
    await client.execute_command("XSETID", key, f"{ms}-{sequence}")


async def pass_on(client: Client, count: int, *, await_writer: bool = False) -> list[int]:
    """Capture and scrub; the ids that were given."""
    for _ in range(count):
        await client.xadd(CAPTURE.key(), {FIELD: "1"})
    await client.xreadgroup("scrubber", "one", {CAPTURE.key(): ">"})
    entries = [entry.decode() for entry, _ in await client.xrange(CAPTURE.key())]
    outcomes = [Outcome(entry, event=b'{"n":1}') for entry in entries]
    await forward_finish(client, "scrubber", 0, 1, await_writer=await_writer)(outcomes, await redis_here(client))
    return [number(fields) for _, fields in await client.xrevrange(EVENTS.key(), count=len(entries))][::-1]


def number(fields: dict[bytes, bytes]) -> int:
    return int(orjson.loads(fields[FIELD.encode()])["id"])


async def store(client: Client) -> int:
    """What the writer does: read all, acknowledge all. How many."""
    read = await client.xreadgroup("writer", "one", {EVENTS.key(): ">"})
    entries = [entry.decode() for entry, _ in read[0][1]] if read else []
    await settle_finish(client, EVENTS, "writer", 0)([Outcome(entry) for entry in entries], await redis_here(client))
    return len(entries)


@pytest.mark.parametrize("sequence", [0, 4_000], ids=["by the place in the log", "by the counter"])
async def test_no_id_is_given_twice_though_the_log_loses_its_end_again_and_again(log: Log, sequence: int) -> None:
    given: list[int] = []
    async with log.client() as client:
        await make_groups(client)
        await set_ahead(client, CAPTURE.key(), sequence)
        given += await pass_on(client, 200)
    for _ in range(4):
        log.keep()
        async with log.client() as client:
            given += await pass_on(client, 300)  # stored, and then forgotten by Redis
        log.lose()
        async with log.client() as client:
            given += await pass_on(client, 300)
    assert len(set(given)) == len(given) == 2_600
    assert given == sorted(given)


async def test_an_id_is_above_a_watermark_that_redis_has_forgotten(log: Log) -> None:
    async with log.client() as client:
        await make_groups(client)
        await set_ahead(client, CAPTURE.key())
        await pass_on(client, 10)
        await store(client)
    log.keep()
    async with log.client() as client:
        await pass_on(client, 100)
        await store(client)
        exported = await Watermark(client, 0, "writer", 100).advance(0)
    log.lose()
    async with log.client() as client:
        assert min(await pass_on(client, 50)) > exported


async def test_ids_follow_the_clock_again_a_minute_after_redis_came_up_anew(log: Log) -> None:
    async with log.client() as client:
        await make_groups(client)
        [before] = await pass_on(client, 1)
    log.server.kill()
    log.server.start()
    async with log.client() as client:
        [anew] = await pass_on(client, 1)
        assert before + 59_000 * 8_192 < anew < before + 120_000 * 8_192
        await client.execute_command("XSETID", CAPTURE.key(), f"{int((await client.time())[0]) * 1_000 + 120_000}-0")
        entry = (await client.xadd(CAPTURE.key(), {FIELD: "1"})).decode()
        assert await pass_on(client, 0) == [row_id(entry)]


async def test_what_is_numbered_ahead_of_the_clock_can_be_exported_as_soon_as_it_is_stored(log: Log) -> None:
    async with log.client() as client:
        await make_groups(client)
        await pass_on(client, 10)
        await store(client)
    log.server.kill()
    log.server.start()
    async with log.client() as client:
        watermark = Watermark(client, 0, "writer", 100)
        for _ in range(3):
            given = await pass_on(client, 10)
            assert await watermark.advance(0) < min(given)
            await store(client)
            assert await watermark.advance(0) >= max(given)


async def test_many_restarts_in_a_row_do_not_carry_the_ids_away_from_the_clock(log: Log) -> None:
    async with log.client() as client:
        await make_groups(client)
        await pass_on(client, 1)
    for _ in range(20):
        log.server.kill()
        log.server.start()
        async with log.client() as client:
            [last] = await pass_on(client, 1)
            now_ms = int((await client.time())[0]) * 1_000
    assert last < first_row_at(now_ms + 90_000)


@dataclass
class Replaced:
    """A master, and the replica that has taken over. The network between them is gone, the services reach both."""

    old: Client
    new: Client
    #: Of the old one, and where it stood when its replica had all of it; it waits for a replica.
    watermark: Watermark
    before: int


@pytest.fixture
async def replaced(tmp_path: Path) -> AsyncIterator[Replaced]:
    servers = []
    try:
        for number_ in range(2):
            (tmp_path / str(number_)).mkdir()
            following = ("--replicaof", "127.0.0.1", str(servers[0].port)) if number_ else ()
            servers.append(RedisServer(tmp_path / str(number_), "--repl-diskless-sync-delay", "0", *following).start())
        old, new = (connect(RedisSettings.model_validate({"url": server.url})) for server in servers)
        await make_groups(old)
        await pass_on(old, 10)
        await store(old)
        with servers[1].client() as direct:
            until(lambda: direct.xlen(EVENTS.key()) == 10, "the replica is in step")
            watermark = Watermark(old, 0, "writer", 100, replicas=1)
            before = await watermark.advance(0)
            direct.execute_command("REPLICAOF", "NO", "ONE")
        yield Replaced(old, new, watermark, before)
        await old.aclose()
        await new.aclose()
    finally:
        for server in servers:
            server.stop()


async def test_a_replaced_master_that_goes_on_and_its_successor_give_different_ids(replaced: Replaced) -> None:
    given: list[int] = []
    for turn in range(5):
        entry = f"{int((await replaced.old.time())[0]) * 1_000 + AHEAD_MS + turn}-0"  # both clocks show the same
        for client in (replaced.old, replaced.new):
            last = (await client.xinfo_stream(CAPTURE.key()))["last-generated-id"].decode()
            await client.execute_command("XSETID", CAPTURE.key(), max(entry, last))
            given += await pass_on(client, 20)
    assert len(set(given)) == len(given) == 200


async def test_a_watermark_of_a_replaced_master_is_below_all_that_its_successor_gives(replaced: Replaced) -> None:
    await replaced.new.xadd(CAPTURE.key(), {FIELD: "1"})
    await IdleShardTicker(replaced.old, 1).run()  # nothing comes in there, and its watermark follows the clock
    exported = await Watermark(replaced.old, 0, "writer", 100).advance(0)
    assert exported > replaced.before
    assert min(await pass_on(replaced.new, 1)) > exported


async def test_a_watermark_that_no_replica_has_is_not_said(replaced: Replaced) -> None:
    assert replaced.before > 0
    await pass_on(replaced.old, 5)
    await store(replaced.old)
    assert await replaced.watermark.advance(5) == replaced.before
    assert await Watermark(replaced.old, 0, "writer", 100).advance(5) > replaced.before


async def test_a_redis_that_lost_everything_numbers_nothing_before_a_writer_has_said_what_the_store_has(
    client: Client,
) -> None:
    await make_groups(client)
    ahead = first_row_at(int((await client.time())[0]) * 1_000 + AHEAD_MS)
    with pytest.raises(NumbersUnknownError):
        await pass_on(client, 3, await_writer=True)
    await IdleShardTicker(client, 1, await_writer=True).run()
    assert await client.get(scrubbed_low_watermark_key()) is None
    assert await client.xlen(CAPTURE.key()) == 3
    watermark = Watermark(client, 0, "writer", 100)
    await watermark.advance(0)  # the store is not there yet
    assert await client.get(scrubbed_low_watermark_key()) is None
    watermark.stored, watermark.given = ahead, ahead + 5_000
    assert await watermark.advance(0) >= ahead
    ids = await pass_on(client, 0, await_writer=True)
    assert len(ids) == 3
    assert min(ids) > ahead + 5_000


async def test_a_new_redis_and_an_empty_store_number_by_the_clock_from_the_first_event(client: Client) -> None:
    await make_groups(client)
    watermark = Watermark(client, 0, "writer", 100)
    watermark.stored = 0
    await watermark.advance(0)
    await IdleShardTicker(client, 1, await_writer=True).run()
    entry = (await client.xadd(CAPTURE.key(), {FIELD: "1"})).decode()
    assert await pass_on(client, 0, await_writer=True) == [row_id(entry)]


async def test_redis_flushed_under_running_services_gives_no_id_again(client: Client) -> None:
    await make_groups(client)
    watermark = Watermark(client, 0, "writer", 100)
    watermark.stored = 0
    await watermark.advance(0)
    await set_ahead(client, CAPTURE.key())
    given = await pass_on(client, 50, await_writer=True)
    await store(client)
    watermark.stored, watermark.given = await watermark.advance(50), max(given)
    await client.flushall()
    await make_groups(client)
    with pytest.raises(NumbersUnknownError):
        await pass_on(client, 20, await_writer=True)
    await watermark.advance(50)
    ids = await pass_on(client, 0, await_writer=True)
    assert len(ids) == 20
    assert min(ids) > max(*given, watermark.stored)


async def test_a_redis_that_lost_more_than_a_minute_is_told_what_the_store_has(log: Log) -> None:
    async with log.client() as client:
        await make_groups(client)
        await pass_on(client, 5)
        await store(client)
    log.keep()
    async with log.client() as client:
        watermark = Watermark(client, 0, "writer", 100)
        watermark.stored = 0
        await set_ahead(client, CAPTURE.key())
        given = await pass_on(client, 50)
        await store(client)
        watermark.stored, watermark.given = await watermark.advance(0), max(given)
    log.lose()
    async with log.client() as client:
        anew = Watermark(client, 0, "writer", 100)  # of a writer that was restarted, and has asked the store
        anew.stored, anew.given = watermark.stored, watermark.given
        await anew.advance(0)
        assert min(await pass_on(client, 50)) > max(given)


async def test_the_counter_of_an_earlier_version_goes_on(client: Client) -> None:
    await make_groups(client)
    await set_ahead(client, CAPTURE.key(), 5_000)
    before = await pass_on(client, 5)
    await client.delete("assay:{0}:numbered")
    after = await pass_on(client, 5)
    assert min(after) > max(before)
    assert int(await client.get(overflow_key())) > 0


async def test_a_writer_whose_marks_are_of_a_lost_log_trims_nothing_that_is_not_stored(log: Log) -> None:
    async with log.client() as client:
        await make_groups(client)
        await set_ahead(client, EVENTS.key())
        await pass_on(client, 10)
        stored = await store(client)
        log.keep()
        watermark = Watermark(client, 0, "writer", 5)
        for _ in range(20):
            await pass_on(client, 10)
            stored += await store(client)
            await watermark.advance(stored)
        log.lose()
        await pass_on(client, 100)  # their entries are below the marks
        stored += 100
        await watermark.advance(stored)
        await watermark.advance(stored + 100)
        assert await store(client) == 100
