"""A Redis that lost the end of its log gives the ids that stood there again: what another Redis gave is not finished in their stead."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import orjson
import pytest

from assay_drift.app import READERS, handlers
from assay_drift.state import ShardState
from assay_judge.ledger import Ledger, publish_finish
from assay_runtime.connection import Client
from assay_runtime.delivery import Consumer
from assay_runtime.entries import Bounds, Entry, Outcome, failure_of
from assay_runtime.finishing import Finish, dead_letter_finish, forward_finish, settle_finish
from assay_runtime.reading import READ_STEP, Reader
from assay_runtime.same_redis import OtherRedisError, SameEntries, redis_here
from assay_runtime.watermark import Watermark
from assay_schema.failures import Reason
from assay_schema.settings import DeliverySettings
from assay_schema.streams import (
    ALERTS,
    CAPTURE,
    DEAD,
    EVENTS,
    FIELD,
    SCORES,
    Stream,
    drift_key,
    scrubbed_low_watermark_key,
)
from tests.support.drift_samples import HASHED, QUICK, START_MS, score
from tests.support.redis_log import Log

#: Nobody takes over what is only slow.
PATIENT = DeliverySettings(visibility_timeout_s=600, max_deliveries=1)


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    log = Log(tmp_path)
    yield log
    log.server.stop()


@pytest.fixture
async def client(log: Log) -> AsyncIterator[Client]:
    async with log.client() as client:
        yield client


class Work:
    """What a service does with its entries, as long as it is let."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.fails_of: set[bytes] = set()
        self.began, self.may_end = asyncio.Event(), asyncio.Event()

    async def __call__(self, entries: Sequence[Entry]) -> list[Outcome]:
        self.seen += [entry.data for entry in entries]
        self.began.set()
        await self.may_end.wait()
        if self.fails_of.intersection(entry.data for entry in entries):
            raise ValueError
        return [Outcome(entry.id, event=b'{"n":' + entry.data + b"}") for entry in entries]


def finish_of(client: Client, stream: Stream, group: str) -> Finish:
    return forward_finish(client, group, 0, 1) if stream is CAPTURE else settle_finish(client, stream, group, 0)


class Member:
    """A consumer and its reader, step by step."""

    def __init__(self, client: Client, stream: Stream, name: str = "one") -> None:
        self.work, group = Work(), stream.groups[0]
        self._reader = Reader(client, stream.key(), group, name)
        self.consumer = Consumer(
            client, stream, group=group, name=name, process=self.work, finish=finish_of(client, stream, group),
            bounds=Bounds(entries=100, bytes=10_000_000, age_s=0), settings=PATIENT,
        )  # fmt: skip

    async def read(self) -> list[Entry]:
        read: list[Entry] = []
        while entries := await self._reader.read(100):
            read += entries
        assert await self.consumer.offer(read)
        return read

    async def idle(self) -> None:
        """Wait until nothing is in its hands."""
        async with asyncio.timeout(120):
            while True:
                if not self.consumer.held:
                    return
                await asyncio.sleep(0.01)


async def member(client: Client, stream: Stream) -> Member:
    made = Member(client, stream)
    await made.consumer.prepare()
    made.consumer.start()
    return made


async def add(client: Client, stream: Stream, texts: Sequence[str], first: str = "") -> list[str]:
    """Entries under ids that follow one another, the same ones whenever `first` is the same; with `*` as Redis gives them."""
    if first == "*":
        return [(await client.xadd(stream.key(), {FIELD: text})).decode() for text in texts]
    first = first or f"{int((await client.time())[0]) * 1_000}-7"
    ms, _, sequence = first.partition("-")
    ids = [f"{ms}-{int(sequence) + n}" for n in range(len(texts))]
    for entry_id, text in zip(ids, texts, strict=True):
        await client.xadd(stream.key(), {FIELD: text}, id=entry_id)
    return ids


async def data_of(client: Client, stream: Stream) -> list[bytes]:
    return [fields[FIELD.encode()] for _, fields in await client.xrange(stream.key())]


async def numbers(client: Client) -> list[int]:
    """The `n` of the events that were passed on."""
    return [orjson.loads(data)["n"] for data in await data_of(client, EVENTS)]


async def in_hand(client: Client, log: Log, stream: Stream, texts: Sequence[str]) -> tuple[Member, list[str]]:
    """A member that works on entries which the log does not hold for ever."""
    one = await member(client, stream)
    await asyncio.to_thread(log.keep)
    ids = await add(client, stream, texts)
    await one.read()
    await asyncio.wait_for(one.work.began.wait(), 120)
    return one, ids


async def test_what_the_scrubber_read_of_a_lost_log_is_not_passed_on_in_the_stead_of_others(
    log: Log, client: Client
) -> None:
    scrubber, ids = await in_hand(client, log, CAPTURE, ["1", "2", "3"])
    await asyncio.to_thread(log.lose)
    await add(client, CAPTURE, ["4", "5", "6"], ids[0])
    scrubber.work.may_end.set()
    await scrubber.idle()
    assert (await client.xlen(CAPTURE.key()), await numbers(client)) == (3, [])
    await scrubber.read()
    await scrubber.idle()
    assert (await client.xlen(CAPTURE.key()), await numbers(client)) == (0, [4, 5, 6])
    await scrubber.consumer.stop()


async def test_what_the_writer_stored_of_a_lost_log_acknowledges_no_other_and_moves_no_watermark(
    log: Log, client: Client
) -> None:
    writer, ids = await in_hand(client, log, EVENTS, ["1", "2", "3"])
    await asyncio.to_thread(log.lose)
    await add(client, EVENTS, ["4", "5", "6"], ids[0])
    await client.set(scrubbed_low_watermark_key(), 41)
    other = Reader(client, EVENTS.key(), "writer", "two")
    assert [entry.data for entry in await other.read(10_000)] == [b"4", b"5", b"6"]
    writer.work.may_end.set()
    await writer.idle()
    assert (await client.xpending(EVENTS.key(), "writer"))["pending"] == 3
    assert await Watermark(client, 0, "writer", 100).advance(0) == 0
    await writer.consumer.stop()


async def test_what_redis_still_has_after_a_restart_is_finished_without_working_on_it_again(
    log: Log, client: Client
) -> None:
    scrubber, _ = await in_hand(client, log, CAPTURE, ["1", "2", "3"])
    await asyncio.to_thread(log.restart)
    scrubber.work.may_end.set()
    await scrubber.idle()
    assert (scrubber.work.seen, await numbers(client)) == ([b"1", b"2", b"3"], [1, 2, 3])
    assert await client.xlen(CAPTURE.key()) == 0
    await scrubber.consumer.stop()


async def test_of_a_batch_what_is_the_same_is_finished_and_the_rest_is_let_go(log: Log, client: Client) -> None:
    scrubber, ids = await in_hand(client, log, CAPTURE, ["1", "2", "3", "4"])
    await asyncio.to_thread(log.lose)
    await add(client, CAPTURE, ["1", "5", "3"], ids[0])
    scrubber.work.may_end.set()
    await scrubber.idle()
    assert (await numbers(client), await data_of(client, CAPTURE)) == ([1, 3], [b"5"])
    await scrubber.read()
    await scrubber.idle()
    assert (await numbers(client), await client.xlen(CAPTURE.key())) == ([1, 3, 5], 0)
    await scrubber.consumer.stop()


@pytest.mark.parametrize("again", ["2", "1"], ids=["another", "the same"])
async def test_an_entry_is_given_up_only_if_it_is_the_one_that_failed(log: Log, client: Client, again: str) -> None:
    scrubber, ids = await in_hand(client, log, CAPTURE, ["1"])
    await asyncio.to_thread(log.lose)
    await add(client, CAPTURE, [again], ids[0])
    await Reader(client, CAPTURE.key(), "scrubber", "two").read(10_000)
    scrubber.work.fails_of = {b"1"}
    scrubber.work.may_end.set()
    await scrubber.idle()
    failed = again == "1"
    assert (await client.xlen(DEAD.key()), await client.xlen(CAPTURE.key())) == (int(failed), int(not failed))
    await scrubber.consumer.stop()


async def test_two_entries_under_one_id_are_held_and_worked_on_apart(log: Log, client: Client) -> None:
    scrubber, ids = await in_hand(client, log, CAPTURE, ["1", "2"])
    await asyncio.to_thread(log.lose)
    await add(client, CAPTURE, ["3", "4"], ids[0])
    await scrubber.read()
    assert sorted(entry_id for entry_id, _ in scrubber.consumer.held) == sorted(2 * ids)
    scrubber.work.may_end.set()
    await scrubber.idle()
    assert scrubber.work.seen == [b"1", b"2", b"3", b"4"]
    assert (await client.xlen(CAPTURE.key()), await numbers(client)) == (0, [3, 4])
    await scrubber.consumer.stop()


async def test_fresh_and_claimed_entries_bear_the_name_of_the_redis_that_gave_them(log: Log, client: Client) -> None:
    await client.xgroup_create(CAPTURE.key(), "scrubber", id="0", mkstream=True)
    ids = await add(client, CAPTURE, [str(n) for n in range(READ_STEP + 2)])
    before, reader = await redis_here(client), Reader(client, CAPTURE.key(), "scrubber", "one")
    read = [*await reader.read(10_000), *await reader.read(10_000)]
    assert [entry.name for entry in read] == [(entry_id, before) for entry_id in ids]
    await asyncio.to_thread(log.restart)
    here, found = await SameEntries(client, CAPTURE.key(), "scrubber", 1 << 20).fetch(ids)
    assert (here, found) == (await redis_here(client), [entry.data for entry in read])
    assert here != before != ""


async def test_what_is_the_same_is_looked_for_a_few_bytes_at_a_time(log: Log, client: Client) -> None:
    await client.xgroup_create(CAPTURE.key(), "scrubber", id="0", mkstream=True)
    texts = [f"{n:01000}" for n in range(50)]
    ids = await add(client, CAPTURE, texts)
    await client.xdel(CAPTURE.key(), ids[7])
    entries = [Entry(entry_id, text.encode()) for entry_id, text in zip(ids, texts, strict=True)]
    entries[9] = Entry(ids[9], b"other")
    redis, same = await SameEntries(client, CAPTURE.key(), "scrubber", 4_000).among(entries)
    assert (redis, same) == (await redis_here(client), {*ids} - {ids[7], ids[9]})


@pytest.mark.parametrize("redis", ["", "0" * 40])
async def test_no_step_finishes_what_another_redis_or_an_unknown_one_gave(client: Client, redis: str) -> None:
    for stream in (CAPTURE, EVENTS, ALERTS):
        group = stream.groups[0]
        await client.xgroup_create(stream.key(), group, id="0", mkstream=True)
        [entry] = await add(client, stream, ["1"])
        await client.xreadgroup(group, "one", {stream.key(): ">"})
        failure = failure_of(Entry(entry, b"1"), group, Reason.OTHER, "Error", "")
        for outcome in (Outcome(entry), Outcome(entry, failure=failure), Outcome(entry, failure=failure, keep=True)):
            for finish in (finish_of(client, stream, group), dead_letter_finish(client, stream, group, 0)):
                with pytest.raises(OtherRedisError):
                    await finish([outcome], redis)
        assert (await client.xpending(stream.key(), group))["pending"] == 1
        assert await client.xlen(stream.key()) == 1


async def test_the_judge_publishes_no_score_for_an_entry_that_another_redis_gave(log: Log, client: Client) -> None:
    await client.xgroup_create(EVENTS.key(), "judge", id="0", mkstream=True)
    await asyncio.to_thread(log.keep)
    [entry] = await add(client, EVENTS, ["1"])
    before, outcome = (
        await redis_here(client),
        Outcome(entry, event=b'{"project":"acme","event_id":"x","fingerprint":"f","status":"scored"}'),
    )
    await asyncio.to_thread(log.lose)
    await add(client, EVENTS, ["2"], entry)
    await client.xreadgroup("judge", "one", {EVENTS.key(): ">"})
    finish = publish_finish(client, Ledger(client, 1, cap_nano=1, record_days=1, total_nano=1), "judge", 0)
    with pytest.raises(OtherRedisError):
        await finish([outcome], before)
    assert (await client.xlen(SCORES.key()), (await client.xpending(EVENTS.key(), "judge"))["pending"]) == (0, 1)
    assert await finish([outcome], await redis_here(client)) == 1
    assert await client.xlen(SCORES.key()) == 1


async def test_drift_counts_no_sample_of_an_entry_that_another_redis_gave(log: Log, client: Client) -> None:
    await client.xgroup_create(SCORES.key(), "drift", id="0", mkstream=True)
    state, work = ShardState(client, QUICK, 0, 1, HASHED), handlers(lambda: START_MS)[SCORES]
    texts = [score(START_MS, 0.8, number).model_dump_json() for number in range(2)]
    await asyncio.to_thread(log.keep)
    [entry] = await add(client, SCORES, texts[:1])
    before = await redis_here(client)
    await asyncio.to_thread(log.lose)
    await add(client, SCORES, texts[1:], entry)
    await client.xreadgroup("drift", "one", {SCORES.key(): ">"})
    old, new = (READERS[SCORES][1](Entry(entry, text.encode())) for text in texts)
    with pytest.raises(OtherRedisError):
        await state.finish(SCORES, [old], before, work)
    assert (await client.xpending(SCORES.key(), "drift"))["pending"] == 1
    await state.tick(lambda _: None, START_MS)
    assert await state.finish(SCORES, [new], await redis_here(client), work) == 1
    assert (await client.xpending(SCORES.key(), "drift"))["pending"] == 0


async def test_drift_keeps_no_state_that_another_redis_had_under_the_same_version(log: Log, client: Client) -> None:
    await client.xgroup_create(SCORES.key(), "drift", id="0", mkstream=True)
    await asyncio.to_thread(log.keep)
    work = handlers(lambda: START_MS)[SCORES]
    texts = [score(START_MS, value, number).model_dump_json() for number, value in enumerate((0.1, 0.8, 0.9))]

    async def count(state: ShardState, text: str) -> None:
        [entry] = await add(client, SCORES, [text], "*")
        await client.xreadgroup("drift", "one", {SCORES.key(): ">"})
        sample = READERS[SCORES][1](Entry(entry, text.encode()))
        assert await state.finish(SCORES, [sample], await redis_here(client), work) == 1

    one, two = (ShardState(client, QUICK, 0, 1, HASHED) for _ in range(2))
    await count(one, texts[0])
    await asyncio.to_thread(log.lose)
    await count(two, texts[1])
    await count(one, texts[2])
    found = await client.hgetall(drift_key())
    await asyncio.to_thread(log.lose)
    for text in texts[1:]:
        await count(ShardState(client, QUICK, 0, 1, HASHED), text)
    assert found == await client.hgetall(drift_key())
