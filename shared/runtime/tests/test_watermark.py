"""The closed watermark against a real Redis: never above what is stored, never back."""

import orjson
import pytest
from redis.exceptions import ResponseError

from assay_runtime.connection import Client
from assay_runtime.entries import Outcome
from assay_runtime.finishing import forward_finish, settle_finish
from assay_runtime.same_redis import redis_here
from assay_runtime.watermark import SMALL_ENTRY_BYTES, IdleShardTicker, TrimPlanner, Watermark, trim_finished
from assay_schema.ids import first_row_at, row_id
from assay_schema.streams import CAPTURE, EVENTS, FAILURES, FIELD, SCORES, scrubbed_low_watermark_key
from tests.support.redis import RedisServer, each_redis_binary  # noqa: F401


@pytest.fixture(autouse=True)
async def groups(client: Client) -> None:
    await client.xgroup_create(CAPTURE.key(), "scrubber", id="0", mkstream=True)
    await client.xgroup_create(EVENTS.key(), "writer", id="0", mkstream=True)


async def capture(client: Client, count: int) -> list[str]:
    return [(await client.xadd(CAPTURE.key(), {FIELD: "1"})).decode() for _ in range(count)]


async def scrub(client: Client, ids: list[str]) -> None:
    await client.xreadgroup("scrubber", "one", {CAPTURE.key(): ">"}, count=len(ids))
    await forward_finish(client, "scrubber", 0, 1)(
        [Outcome(i, event=b'{"n":1}') for i in ids], await redis_here(client)
    )


async def read(client: Client, count: int) -> list[str]:
    [(_, entries)] = await client.xreadgroup("writer", "one", {EVENTS.key(): ">"}, count=count)
    return [entry_id.decode() for entry_id, _ in entries]


async def store(client: Client, ids: list[str]) -> None:
    await settle_finish(client, EVENTS, "writer", 0)([Outcome(i) for i in ids], await redis_here(client))


async def test_the_watermark_reaches_the_newest_entry_once_everything_is_stored(client: Client) -> None:
    watermark = Watermark(client, 0, "writer", 100)
    ids = await capture(client, 10)
    await scrub(client, ids)
    assert await watermark.advance(0) == 0
    await store(client, await read(client, 10))
    assert await watermark.advance(10) == row_id(ids[-1])


async def test_an_event_in_the_writers_hands_holds_the_watermark_below_it(client: Client) -> None:
    watermark = Watermark(client, 0, "writer", 100)
    ids = await capture(client, 9)
    for start in (0, 3, 6):
        await scrub(client, ids[start : start + 3])
    in_hand = await read(client, 9)
    await store(client, in_hand[:3] + in_hand[5:])  # the fourth and fifth are still unsaved
    assert (row_id(ids[2]) or 0) <= await watermark.advance(7) < (row_id(ids[3]) or 0)
    await store(client, in_hand[3:5])
    assert row_id(ids[8]) == await watermark.advance(9)


async def test_an_entry_that_is_not_scrubbed_yet_holds_the_watermark_below_it(client: Client) -> None:
    watermark = Watermark(client, 0, "writer", 100)
    ids = await capture(client, 4)
    await client.xreadgroup("scrubber", "slow", {CAPTURE.key(): ">"}, count=2)  # the first two stay in hand
    await client.xreadgroup("scrubber", "fast", {CAPTURE.key(): ">"}, count=2)
    await forward_finish(client, "scrubber", 0, 1)(
        [Outcome(i, event=b'{"n":1}') for i in ids[2:]], await redis_here(client)
    )
    await store(client, await read(client, 2))
    assert await watermark.advance(2) < (row_id(ids[0]) or 0)
    await forward_finish(client, "scrubber", 0, 1)(
        [Outcome(i, event=b'{"n":1}') for i in ids[:2]], await redis_here(client)
    )
    assert await watermark.advance(2) < (row_id(ids[0]) or 0)
    await store(client, await read(client, 2))
    assert await watermark.advance(4) == row_id(ids[3])


async def test_the_watermark_never_goes_back_even_if_streams_are_lost(client: Client) -> None:
    watermark = Watermark(client, 0, "writer", 100)
    ids = await capture(client, 3)
    await scrub(client, ids)
    await store(client, await read(client, 3))
    reached = await watermark.advance(3)
    await client.delete(EVENTS.key())
    await client.xgroup_create(EVENTS.key(), "writer", id="0", mkstream=True)
    assert await watermark.advance(3) == reached


async def test_a_shard_without_traffic_follows_the_clock_and_later_entries_stay_above_it(client: Client) -> None:
    watermark = Watermark(client, 0, "writer", 100)
    before_ms = int((await client.time())[0]) * 1000
    await IdleShardTicker(client, 1).run()
    quiet = await watermark.advance(0)
    assert quiet >= first_row_at(before_ms)
    ids = await capture(client, 1)
    assert (row_id(ids[0]) or 0) > quiet
    await IdleShardTicker(client, 1).run()
    assert await watermark.advance(0) == quiet, "an entry that waits holds it"


async def test_stored_events_are_trimmed_but_for_a_history_and_unstored_ones_never(client: Client) -> None:
    await client.config_set("stream-node-max-entries", 1)  # approximate trimming then cuts exactly
    watermark = Watermark(client, 0, "writer", 5)
    for total in range(0, 40, 4):
        await scrub(client, await capture(client, 4))
        await store(client, await read(client, 4))
        await watermark.advance(total + 4)
    await scrub(client, await capture(client, 30))
    await read(client, 20)
    await watermark.advance(40)
    left = await client.xlen(EVENTS.key())
    assert 30 + 5 <= left <= 30 + 5 + 8


async def test_a_writer_that_is_often_restarted_trims_as_one_that_is_not(client: Client) -> None:
    await client.config_set("stream-node-max-entries", 1)
    for _ in range(20):  # each life stores less than the history
        life = Watermark(client, 0, "writer", 10)
        await life.advance(0)
        await scrub(client, await capture(client, 4))
        await store(client, await read(client, 4))
        await life.advance(4)
    assert 10 <= await client.xlen(EVENTS.key()) <= 10 + 8


async def test_what_an_earlier_life_left_unstored_is_not_trimmed_after_a_restart(client: Client) -> None:
    await client.config_set("stream-node-max-entries", 1)
    await scrub(client, await capture(client, 30))
    in_hand = await read(client, 30)
    await store(client, in_hand[:5])
    life = Watermark(client, 0, "writer", 2)
    await life.advance(0)
    await life.advance(100)
    assert [i.decode() for i, _ in await client.xrange(EVENTS.key())][-25:] == in_hand[5:]


async def test_a_restart_trims_what_earlier_runs_stored_beyond_the_history(client: Client) -> None:
    await client.config_set("stream-node-max-entries", 1)
    for _ in range(10):
        await scrub(client, await capture(client, 10))
    await store(client, await read(client, 100))
    await Watermark(client, 0, "writer", 20).advance(0)
    assert 20 <= await client.xlen(EVENTS.key()) <= 20 + 2


async def test_failures_are_trimmed_only_below_the_oldest_that_is_not_finished(client: Client) -> None:
    await client.config_set("stream-node-max-entries", 1)
    await client.xgroup_create(FAILURES.key(), "writer", id="0", mkstream=True)
    ids = [(await client.xadd(FAILURES.key(), {FIELD: "1"})).decode() for _ in range(10)]
    await client.xreadgroup("writer", "one", {FAILURES.key(): ">"}, count=8)
    await client.xack(FAILURES.key(), "writer", *ids[:4], ids[6])
    await trim_finished(client, FAILURES, 0)
    assert [i.decode() for i, _ in await client.xrange(FAILURES.key())] == ids[4:]


def test_a_history_keeps_at_least_what_it_was_asked_to() -> None:
    planner = TrimPlanner(10)
    assert planner.mark(4, "a") is None
    assert planner.mark(8, "b") is None
    assert planner.mark(15, "c") == "a"
    assert planner.mark(16, "d") is None
    assert planner.mark(100, "e") == "d"


def test_a_history_collects_no_marks_while_nothing_is_stored() -> None:
    planner = TrimPlanner(10)
    for _ in range(1_000):
        planner.mark(5, "a")
    assert len(planner._marks) == 1
    assert planner.mark(15, "b") == "a"


async def fill(client: Client, count: int) -> list[str]:
    """Events that the writer has stored."""
    await scrub(client, await capture(client, count))
    ids = await read(client, count)
    await store(client, ids)
    return ids


async def test_a_group_that_was_never_made_holds_nothing_back(client: Client) -> None:
    await client.config_set("stream-node-max-entries", 1)
    await fill(client, 30)
    await Watermark(client, 0, "writer", 5).advance(30)
    assert await client.xlen(EVENTS.key()) <= 5 + 2


async def test_a_group_that_exists_holds_back_what_it_has_not_finished(client: Client) -> None:
    await client.config_set("stream-node-max-entries", 1)
    await client.xgroup_create(EVENTS.key(), "judge", id="0")
    watermark = Watermark(client, 0, "writer", 5)
    ids = await fill(client, 30)
    await watermark.advance(30)
    assert await client.xlen(EVENTS.key()) == 30
    await client.xreadgroup("judge", "one", {EVENTS.key(): ">"}, count=12)
    await client.xack(EVENTS.key(), "judge", *ids[:9], ids[11])
    await watermark.advance(30)
    assert (await client.xrange(EVENTS.key(), count=1))[0][0].decode() == ids[9]
    await client.xack(EVENTS.key(), "judge", *ids)
    await client.xgroup_setid(EVENTS.key(), "judge", id="$")
    await watermark.advance(30)
    assert await client.xlen(EVENTS.key()) <= 5 + 2


async def test_a_group_that_stands_still_holds_no_more_than_the_bound_and_never_what_is_not_stored(
    client: Client,
) -> None:
    await client.config_set("stream-node-max-entries", 1)
    await client.xgroup_create(EVENTS.key(), "judge", id="0")
    watermark = Watermark(client, 0, "writer", 5, held_bytes=200)
    for total in range(0, 40, 4):
        await fill(client, 4)
        await watermark.advance(total + 4, (total + 4) * 10)
    assert 20 <= await client.xlen(EVENTS.key()) <= 20 + 8
    await scrub(client, await capture(client, 50))
    unstored = await read(client, 50)
    await watermark.advance(40, 400)
    left = [entry_id.decode() for entry_id, _ in await client.xrange(EVENTS.key())]
    assert left[-50:] == unstored


async def test_the_history_of_large_entries_is_bounded_in_bytes(client: Client) -> None:
    await client.config_set("stream-node-max-entries", 1)
    watermark = Watermark(client, 0, "writer", 1_000, held_bytes=200)
    for total in range(0, 40, 4):
        await fill(client, 4)
        await watermark.advance(total + 4, (total + 4) * 10)
    assert 20 <= await client.xlen(EVENTS.key()) <= 20 + 8


async def test_scores_stay_until_every_group_has_finished_them_or_the_bound_is_reached(client: Client) -> None:
    await client.config_set("stream-node-max-entries", 1)
    for group in SCORES.groups:
        await client.xgroup_create(SCORES.key(), group, id="0", mkstream=True)
    ids = [(await client.xadd(SCORES.key(), {FIELD: "1"})).decode() for _ in range(20)]
    await client.xreadgroup("writer", "one", {SCORES.key(): ">"}, count=15)
    await client.xack(SCORES.key(), "writer", *ids[:15])
    await trim_finished(client, SCORES, 0)
    assert await client.xlen(SCORES.key()) == 20
    await trim_finished(client, SCORES, 0, held_bytes=SMALL_ENTRY_BYTES * 12)
    assert 12 <= await client.xlen(SCORES.key()) <= 13
    await trim_finished(client, SCORES, 0, held_bytes=0)
    left = [entry_id.decode() for entry_id, _ in await client.xrange(SCORES.key())]
    assert left[-5:] == ids[15:], "what the writer has not stored stays"


async def test_a_restart_knows_how_many_bytes_are_held(client: Client) -> None:
    await client.config_set("stream-node-max-entries", 1)
    await client.xgroup_create(EVENTS.key(), "judge", id="0")
    await fill(client, 100)
    size = len(b'{"id":1,"n":1}')
    await Watermark(client, 0, "writer", 10, held_bytes=30 * size).advance(0)
    assert 10 <= await client.xlen(EVENTS.key()) < 60


async def numbered(client: Client) -> list[int]:
    return [int(orjson.loads(fields[FIELD.encode()])["id"]) for _, fields in await client.xrange(EVENTS.key())]


async def in_hand(client: Client) -> list[str]:
    answer = await client.xreadgroup("scrubber", "one", {CAPTURE.key(): ">"})
    return [entry.decode() for entry, _ in answer[0][1]] if answer else []


@pytest.mark.parametrize(
    "chosen", ["9999999999999-0", "18446744073709551614-0"], ids=["in the year 2286", "as far as ids go"]
)
async def test_an_id_that_a_producer_chose_far_ahead_makes_neither_its_row_nor_later_ones_jump(
    client: Client, chosen: str
) -> None:
    watermark = Watermark(client, 0, "writer", 100)
    before = await capture(client, 2)
    await client.xadd(CAPTURE.key(), {FIELD: "1"}, id=chosen)
    assert (await client.xadd(CAPTURE.key(), {FIELD: "1"})).decode() > chosen, "redis goes on from there"
    await client.xreadgroup("scrubber", "one", {CAPTURE.key(): ">"})
    entries = [entry.decode() for entry, _ in await client.xrange(CAPTURE.key())]
    await scrub(client, entries[:3])
    await scrub(client, entries[3:])
    ms = int((await client.time())[0]) * 1_000
    ids = await numbered(client)
    assert ids[:2] == [row_id(entry) for entry in before]
    assert ids == sorted(set(ids))
    assert ids[-1] < first_row_at(ms + 60_000)
    await store(client, await read(client, 4))
    assert ids[0] <= await watermark.advance(4) <= first_row_at(ms + 60_000)

    await IdleShardTicker(client, 1).run()  # the stream is empty: it goes back to the clock
    later = [(await client.xadd(CAPTURE.key(), {FIELD: "1"})).decode() for _ in range(2)]
    assert await watermark.advance(4) >= ids[-1]
    assert await in_hand(client) == later
    await scrub(client, later)
    assert (await numbered(client))[-2:] == [row_id(entry) for entry in later]
    assert (await numbered(client))[-2] > ids[-1]
    await store(client, await read(client, 2))
    assert await watermark.advance(6) == row_id(later[-1])


async def test_after_the_highest_id_of_all_producers_are_taken_again_once_the_stream_is_empty(client: Client) -> None:
    await client.xadd(CAPTURE.key(), {FIELD: "1"}, id="18446744073709551615-18446744073709551615")
    with pytest.raises(ResponseError):
        await client.xadd(CAPTURE.key(), {FIELD: "1"})
    await scrub(client, await in_hand(client))
    await IdleShardTicker(client, 1).run()
    later = (await client.xadd(CAPTURE.key(), {FIELD: "1"})).decode()
    assert await in_hand(client) == [later]


async def test_no_row_is_numbered_at_or_below_a_watermark_that_was_said_even_if_the_log_went_back(
    client: Client,
) -> None:
    said = first_row_at(int((await client.time())[0]) * 1_000 + 5_000)
    await client.set(scrubbed_low_watermark_key(), said)  # by a server that died, whose clock was ahead of this one's
    await scrub(client, await capture(client, 3))
    ids = await numbered(client)
    assert said < ids[0] < ids[1] < ids[2]
