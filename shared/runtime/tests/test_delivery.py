"""Consumption against a real Redis: what is finished, when, how often, and what survives."""

import asyncio
import contextlib
import gc
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from redis.exceptions import ConnectionError, OutOfMemoryError  # noqa: A004  # redis-py's own

from assay_runtime import delivery
from assay_runtime.connection import Client
from assay_runtime.delivery import Consumer
from assay_runtime.entries import Bounds, Entry, Outcome, SinkUnavailableError, acquit
from assay_runtime.faststream_adapter import leave_groups_alone, make_broker, subscribe
from assay_runtime.finishing import forward_finish, settle_finish
from assay_runtime.leases import Leases
from assay_runtime.reading import READ_BYTES, READ_STEP
from assay_runtime.reclaimer import ISOLATED_DELIVERIES
from assay_runtime.same_redis import redis_here
from assay_runtime.watermark import Watermark, trim_finished
from assay_schema.failures import Failure, Reason
from assay_schema.ids import row_id
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.settings import DeliverySettings, RedisSettings
from assay_schema.streams import CAPTURE, DEAD, EVENTS, FAILURES, FIELD, Stream, scrubbed_low_watermark_key
from assay_schema.validation import parse_failure
from tests.chaos.sabotage import blame_outages
from tests.support.redis import RedisServer, each_redis_binary  # noqa: F401
from tests.support.wait import until_async

FAST = DeliverySettings(visibility_timeout_s=0.4, max_deliveries=3)


def make(
    client: Client, stream: Stream, process: object, name: str = "one", *, age_s: float = 0, entries: int = 100
) -> Consumer:
    group = stream.groups[0]
    finish = forward_finish(client, group, 0, 1) if stream is CAPTURE else settle_finish(client, stream, group, 0)
    return Consumer(
        client,
        stream,
        group=group,
        name=name,
        process=process,  # type: ignore[arg-type]
        finish=finish,
        bounds=Bounds(entries=entries, bytes=10_000_000, age_s=age_s),
        settings=FAST,
    )


@contextlib.asynccontextmanager
async def running(server: RedisServer, *consumers: Consumer) -> AsyncIterator[None]:
    broker = make_broker(RedisSettings.model_validate({"url": server.url}))
    for consumer in consumers:
        await consumer.prepare()
        subscribe(broker, consumer, dict)
    await leave_groups_alone(broker)
    await broker.start()
    for consumer in consumers:
        consumer.start()
    try:
        yield
    finally:
        await asyncio.gather(*(consumer.stop() for consumer in consumers))
        await broker.stop()


async def passing_on(entries: Sequence[Entry]) -> list[Outcome]:
    return [Outcome(entry.id, event=b'{"n":' + entry.data + b"}") for entry in entries]


async def storing(entries: Sequence[Entry]) -> list[Outcome]:
    return [Outcome(entry.id) for entry in entries]


async def fill(client: Client, stream: Stream, count: int, start: int = 0) -> list[str]:
    return [(await client.xadd(stream.key(), {FIELD: str(n)})).decode() for n in range(start, start + count)]


def failure_of(entry: Entry) -> Failure:
    return Failure.model_validate_json(
        b'{"failure_id":"5746c5d7-f8a7-54c4-8429-ee66982d578a","stage":"scrubber","reason":"check_violation","error_class":"rule",'
        b'"entry_id":"' + entry.id.encode() + b'","created_at":"2026-01-01T00:00:00Z"}'
    )


async def test_entries_published_before_the_first_start_are_forwarded_in_order_with_the_id_of_their_place(
    redis_server: RedisServer, client: Client
) -> None:
    ids = await fill(client, CAPTURE, 120)
    async with running(redis_server, make(client, CAPTURE, passing_on)):
        await until_async(lambda: _length(client, EVENTS, 120))
    assert await client.xlen(CAPTURE.key()) == 0
    events = await client.xrange(EVENTS.key())
    assert [fields[b"data"] for _, fields in events] == [
        b'{"id":%d,"n":%d}' % (row_id(i) or 0, n) for n, i in enumerate(ids)
    ]
    assert int(await client.get(scrubbed_low_watermark_key())) == row_id(ids[-1])


async def test_an_error_that_ends_the_work_is_known_by_its_class(redis_server: RedisServer, client: Client) -> None:
    async def broken(_: Sequence[Outcome], __: str) -> int:
        raise ZeroDivisionError

    await fill(client, CAPTURE, 1)
    consumer = make(client, CAPTURE, passing_on)
    assert consumer.ended_by == ""
    consumer._finish = broken
    async with running(redis_server, consumer):
        await until_async(lambda: consumer.ended_by)
        assert consumer.ended_by == "ZeroDivisionError"


async def test_every_later_event_has_an_id_above_the_low_mark_of_an_earlier_one(
    redis_server: RedisServer, client: Client
) -> None:
    await fill(client, CAPTURE, 200)
    async with running(redis_server, make(client, CAPTURE, passing_on, entries=7)):
        await until_async(lambda: _length(client, EVENTS, 200))
    events = [
        (int(fields[b"low"]), int(fields[b"data"][6:].split(b",")[0]))
        for _, fields in await client.xrange(EVENTS.key())
    ]
    for place, (low, _) in enumerate(events):
        assert all(identity > low for _, identity in events[place + 1 :])


async def test_a_refused_entry_becomes_a_failure_and_leaves_the_raw_stream(
    redis_server: RedisServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(client, CAPTURE, 3)

    async def refusing(entries: Sequence[Entry]) -> list[Outcome]:
        return [
            Outcome(e.id, failure=failure_of(e)) if e.data == b"1" else Outcome(e.id, event=b'{"n":1}') for e in entries
        ]

    async with running(redis_server, make(client, CAPTURE, refusing)):
        await until_async(lambda: _length(client, FAILURES, 1))
    assert await client.xlen(CAPTURE.key()) == 0
    assert await client.xlen(EVENTS.key()) == 2
    [(_, fields)] = await client.xrange(FAILURES.key())
    failure = parse_failure(fields[b"data"])
    assert failure.reason is Reason.CHECK_VIOLATION
    [logged] = [record.__dict__ for record in caplog.records if record.message == "entry failed"]
    assert (logged["entry_id"], logged["error_class"]) == (failure.entry_id, failure.error_class)


async def test_many_refused_entries_are_logged_once_for_each_class_of_error(
    redis_server: RedisServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(client, CAPTURE, 50)

    async def refusing(entries: Sequence[Entry]) -> list[Outcome]:
        return [Outcome(entry.id, failure=failure_of(entry)) for entry in entries]

    async with running(redis_server, make(client, CAPTURE, refusing)):
        await until_async(lambda: _length(client, FAILURES, 50))
    assert [record.message for record in caplog.records].count("entry failed") == 1


async def test_an_entry_another_consumer_finished_is_not_published_again(
    redis_server: RedisServer, client: Client
) -> None:
    [entry_id] = await fill(client, CAPTURE, 1)
    await make(client, CAPTURE, passing_on).prepare()
    await client.xreadgroup("scrubber", "zombie", {CAPTURE.key(): ">"})
    finish = forward_finish(client, "scrubber", 0, 1)
    outcome = Outcome(entry_id, event=b'{"n":1}')
    assert await finish([outcome], await redis_here(client)) == 1
    assert await finish([outcome], await redis_here(client)) == 0
    assert await client.xlen(EVENTS.key()) == 1


async def test_entries_whose_sequence_does_not_fit_get_odd_ids_that_keep_rising(
    redis_server: RedisServer, client: Client
) -> None:
    ids = ["1795300000000-4095", "1795300000000-4096", "1795300000000-9000", "1795300000001-0"]
    for entry_id in ids:
        await client.xadd(CAPTURE.key(), {FIELD: "0"}, id=entry_id)
    async with running(redis_server, make(client, CAPTURE, passing_on)):
        await until_async(lambda: _length(client, EVENTS, 4))
    found = [int(fields[b"data"][6:].split(b",")[0]) for _, fields in await client.xrange(EVENTS.key())]
    assert [found[0], found[3]] == [row_id(ids[0]), row_id(ids[3])]
    assert [identity % 2 for identity in found] == [0, 1, 1, 0]
    assert found[0] < found[1] < found[2]


async def test_a_consumer_takes_up_what_its_last_run_left_unfinished_before_anything_new(
    redis_server: RedisServer, client: Client
) -> None:
    seen: list[bytes] = []

    async def noting(entries: Sequence[Entry]) -> list[Outcome]:
        seen.extend(entry.data for entry in entries)
        return [Outcome(entry.id) for entry in entries]

    consumer = make(client, EVENTS, noting)
    await consumer.prepare()
    await fill(client, EVENTS, 1_200)
    await client.xreadgroup("writer", "one", {EVENTS.key(): ">"}, count=1_100)  # as if the process had died here
    async with running(redis_server, consumer):
        await until_async(lambda: len(seen) >= 1_200)
    assert seen == [str(n).encode() for n in range(1_200)]


async def test_entries_of_a_dead_consumer_are_taken_over_after_the_visibility_timeout(
    redis_server: RedisServer, client: Client
) -> None:
    consumer = make(client, EVENTS, storing)
    await consumer.prepare()
    await fill(client, EVENTS, 30)
    await client.xreadgroup("writer", "dead", {EVENTS.key(): ">"})
    async with running(redis_server, consumer):
        await until_async(lambda: _pending(client, 0))


async def test_a_batch_waits_for_its_sink_and_the_outage_is_recorded_once(
    redis_server: RedisServer, client: Client
) -> None:
    tries = 0

    async def failing_at_first(entries: Sequence[Entry]) -> list[Outcome]:
        nonlocal tries
        tries += 1
        if tries <= 4:
            raise SinkUnavailableError(Reason.DB_DOWN, "ConnectionRefusedError")
        return [Outcome(entry.id) for entry in entries]

    consumer = make(client, EVENTS, failing_at_first, age_s=0.2)
    await fill(client, EVENTS, 40)
    async with running(redis_server, consumer):
        await until_async(lambda: tries > 2)
        assert not consumer.sink_up
        await until_async(lambda: _pending(client, 0))
        assert consumer.sink_up
    [(_, fields)] = await client.xrange(FAILURES.key())
    incident = parse_failure(fields[b"data"])
    assert (incident.reason, incident.entry_id, incident.deliveries) == (Reason.DB_DOWN, None, 0)


async def test_an_outage_whose_reason_changes_is_recorded_once_for_each(
    redis_server: RedisServer, client: Client
) -> None:
    reasons = [Reason.DB_DOWN, Reason.RLS_REJECT, Reason.DB_DOWN, Reason.RLS_REJECT]

    async def failing_differently(entries: Sequence[Entry]) -> list[Outcome]:
        if reasons:
            raise SinkUnavailableError(reasons.pop(), "Error")
        return [Outcome(entry.id) for entry in entries]

    await fill(client, EVENTS, 5)
    async with running(redis_server, make(client, EVENTS, failing_differently)):
        await until_async(lambda: _pending(client, 0))
    incidents = [parse_failure(fields[b"data"]).reason for _, fields in await client.xrange(FAILURES.key())]
    assert sorted(incidents) == [Reason.DB_DOWN, Reason.RLS_REJECT]


async def test_reading_pauses_while_the_sink_is_away_so_memory_stays_bounded(
    redis_server: RedisServer, client: Client
) -> None:
    away = True

    async def waiting(entries: Sequence[Entry]) -> list[Outcome]:
        if away:
            raise SinkUnavailableError(Reason.DB_DOWN, "x")
        return [Outcome(entry.id) for entry in entries]

    await fill(client, EVENTS, 2_000)
    consumer = make(client, EVENTS, waiting, entries=100)
    async with running(redis_server, consumer):
        await until_async(lambda: not consumer.sink_up)
        for _ in range(20):
            state = await client.xpending(EVENTS.key(), "writer")
            assert state["pending"] <= 100 + 612 + 512  # one batch being worked on, one waiting, one read in hand
            await asyncio.sleep(0.02)
        away = False
        await until_async(lambda: _pending(client, 0))


async def test_an_entry_that_breaks_the_work_is_isolated_and_buried_after_too_many_deliveries(
    redis_server: RedisServer, client: Client
) -> None:
    stored: list[bytes] = []

    async def breaking(entries: Sequence[Entry]) -> list[Outcome]:
        if any(entry.data == b"13" for entry in entries):
            raise ValueError("unexpected")
        stored.extend(entry.data for entry in entries)
        return [Outcome(entry.id) for entry in entries]

    await fill(client, EVENTS, 40)
    async with running(redis_server, make(client, EVENTS, breaking)):
        await until_async(lambda: _length(client, DEAD, 1))
    assert sorted(int(n) for n in stored) == [n for n in range(40) if n != 13]
    [(_, dead)] = await client.xrange(DEAD.key())
    assert (dead[b"data"], dead[b"stage"], dead[b"stream"]) == (b"13", b"writer", EVENTS.key().encode())
    [(_, fields)] = await client.xrange(FAILURES.key())
    failure = parse_failure(fields[b"data"])
    assert (failure.error_class, failure.entry_id) == ("TooManyDeliveries", dead[b"entry_id"].decode())
    assert (await client.xpending(EVENTS.key(), "writer"))["pending"] == 0


@contextlib.asynccontextmanager
async def running_until_killed(server: RedisServer, consumer: Consumer) -> AsyncIterator[None]:
    """As a process that ends by kill -9: from the end of the block on, no command of it reaches Redis."""
    async with running(server, consumer):
        yield
        consumer._client.execute_command = unreachable
    del consumer._client.execute_command


async def unreachable(*_: object, **__: object) -> None:
    raise ConnectionError("killed")


@pytest.mark.parametrize("hanging", [False, True], ids=["refused at once", "no answer"])
@pytest.mark.parametrize("run", [running, running_until_killed], ids=["stopped", "killed"])
async def test_restarts_while_the_sink_takes_nothing_are_not_counted_against_the_entries(
    redis_server: RedisServer, client: Client, run: Callable[..., object], hanging: bool
) -> None:
    """However a store refuses: it need not look away, and may answer everything but an insert."""
    away, stored, waits = True, set[bytes](), asyncio.Event()

    async def store(entries: Sequence[Entry]) -> list[Outcome]:
        await acquit()
        waits.set()
        if away and hanging:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), 60)
        if away:
            raise SinkUnavailableError(Reason.DB_DOWN, "NOT_ENOUGH_SPACE")
        stored.update(entry.data for entry in entries)
        return [Outcome(entry.id) for entry in entries]

    await fill(client, EVENTS, 200)
    for _ in range(20):
        waits.clear()
        over = asyncio.Event()
        consumer = make(client, EVENTS, store, entries=20)
        async with run(redis_server, consumer):  # type: ignore[attr-defined]
            async with asyncio.timeout(60):
                await waits.wait()
            over.set()
    assert await _deliveries(client) <= {1}
    away = False
    consumer = make(client, EVENTS, store, entries=20)
    async with running(redis_server, consumer):
        await until_async(lambda: len(stored) == 200)
    assert await client.xlen(DEAD.key()) == 0


async def test_without_taking_deliveries_back_restarts_in_an_outage_give_entries_up(
    redis_server: RedisServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `make chaos` switches off is what keeps entries from being given up, and not a part of it that another makes up for."""

    async def away(entries: Sequence[Entry]) -> list[Outcome]:
        await acquit()
        waits.set()
        raise SinkUnavailableError(Reason.DB_DOWN, "NOT_ENOUGH_SPACE")

    monkeypatch.setattr(Leases, "acquit", Leases.acquit)  # both to be put back
    monkeypatch.setattr(delivery, "_prove", delivery._prove)
    blame_outages()
    await fill(client, EVENTS, 10)
    for _ in range(FAST.max_deliveries + ISOLATED_DELIVERIES + 1):
        waits = asyncio.Event()
        async with running(redis_server, make(client, EVENTS, away)), asyncio.timeout(60):
            await waits.wait()
    assert await client.xlen(DEAD.key()) > 0


async def test_restarts_of_a_full_redis_that_takes_no_result_are_not_counted_against_the_entries(
    redis_server: RedisServer, client: Client
) -> None:
    finishing = asyncio.Event()

    async def refused(*_: object) -> int:
        finishing.set()
        raise OutOfMemoryError("command not allowed when used memory > 'maxmemory'.")

    await fill(client, CAPTURE, 50)
    for _ in range(FAST.max_deliveries + ISOLATED_DELIVERIES + 1):
        finishing.clear()
        consumer = make(client, CAPTURE, passing_on)
        consumer._finish = refused
        async with running_until_killed(redis_server, consumer), asyncio.timeout(60):
            await finishing.wait()
    async with running(redis_server, make(client, CAPTURE, passing_on)):
        await until_async(lambda: _length(client, EVENTS, 50))
    assert await client.xlen(DEAD.key()) == 0


async def test_a_stop_leaves_suspects_that_nobody_has_looked_at_as_they_were(
    redis_server: RedisServer, client: Client
) -> None:
    waits = asyncio.Event()

    async def away(entries: Sequence[Entry]) -> list[Outcome]:
        waits.set()
        raise SinkUnavailableError(Reason.DB_DOWN, "TOO_MANY_PARTS")

    ids = await fill(client, EVENTS, 50)
    await make(client, EVENTS, away).prepare()
    await client.xreadgroup("writer", "one", {EVENTS.key(): ">"})
    await client.xclaim(EVENTS.key(), "writer", "one", 0, ids, retrycount=FAST.max_deliveries, justid=True)
    async with running(redis_server, make(client, EVENTS, away)), asyncio.timeout(60):
        await waits.wait()
    assert await _deliveries(client) == {FAST.max_deliveries}


@pytest.mark.parametrize("outage", [range(0), range(2, 9), range(20)], ids=["no outage", "later", "from the start"])
async def test_an_entry_that_kills_its_process_is_given_up_and_none_of_its_neighbours(
    redis_server: RedisServer, client: Client, outage: range
) -> None:
    """Also if the sink is away meanwhile: entries that only wait are acquitted, and the one that kills never is."""
    stored, deaths = set[bytes](), 0

    async def dying(entries: Sequence[Entry]) -> list[Outcome]:
        nonlocal deaths
        if any(entry.data == b"13" for entry in entries):
            deaths += 1
            happened.set()
            await dead.wait()
            raise SinkUnavailableError(Reason.OTHER, "killed")
        await acquit()
        if start in outage:
            happened.set()
            raise SinkUnavailableError(Reason.DB_DOWN, "TOO_MANY_PARTS")
        stored.update(entry.data for entry in entries)
        return [Outcome(entry.id) for entry in entries]

    async def over() -> bool:
        return happened.is_set() or (len(stored) == 39 and await client.xlen(DEAD.key()) > 0)

    await fill(client, EVENTS, 40)
    for start in range(outage.stop + 20):  # noqa: B007  # `dying` looks at it
        happened, dead = asyncio.Event(), asyncio.Event()
        async with running_until_killed(redis_server, make(client, EVENTS, dying)):
            await until_async(over)
            asyncio.get_running_loop().call_later(0.05, dead.set)
        if not happened.is_set():
            break
    assert stored == {str(n).encode() for n in range(40) if n != 13}
    assert [fields[b"data"] for _, fields in await client.xrange(DEAD.key())] == [b"13"]
    # A process that is killed after it has counted a delivery and before the work begins counts for nothing more.
    allowed = FAST.max_deliveries + ISOLATED_DELIVERIES
    assert deaths == allowed or (outage and FAST.max_deliveries < deaths < allowed)


async def test_suspects_that_prove_sound_are_stored_together(redis_server: RedisServer, client: Client) -> None:
    """One insert for each would take minutes for a few thousand."""
    sizes: list[int] = []

    async def store(entries: Sequence[Entry]) -> list[Outcome]:
        await acquit()
        sizes.append(len(entries))
        return [Outcome(entry.id) for entry in entries]

    ids = await fill(client, EVENTS, 300)
    await make(client, EVENTS, store).prepare()
    await client.xreadgroup("writer", "one", {EVENTS.key(): ">"})
    await client.xclaim(EVENTS.key(), "writer", "one", 0, ids, retrycount=FAST.max_deliveries, justid=True)
    async with running(redis_server, make(client, EVENTS, store, age_s=0.5)):
        await until_async(lambda: sum(sizes) == 300)
    assert len(sizes) < 30


async def test_an_entry_that_fails_is_tried_as_often_as_the_setting_says(
    redis_server: RedisServer, client: Client
) -> None:
    tries = 0

    async def failing(entries: Sequence[Entry]) -> list[Outcome]:
        nonlocal tries
        tries += 1
        raise ValueError("unexpected")

    await fill(client, EVENTS, 1)
    async with running(redis_server, make(client, EVENTS, failing)):
        await until_async(lambda: _length(client, DEAD, 1))
    assert tries == FAST.max_deliveries


async def test_without_room_for_dead_letters_nothing_is_lost_and_the_rest_goes_on(
    redis_server: RedisServer, client: Client
) -> None:
    """What cannot be given up stays unfinished in its stream, until somebody has made room."""

    async def failing(entries: Sequence[Entry]) -> list[Outcome]:
        if any(entry.data.startswith(b"bad") for entry in entries):
            raise ValueError("unexpected")
        return [Outcome(entry.id) for entry in entries]

    for n in range(4):
        await client.xadd(EVENTS.key(), {FIELD: b"bad %d " % n + b"x" * 300_000})
    consumer = make(client, EVENTS, failing)
    consumer._dead_letters._max_bytes = 500_000
    async with running(redis_server, consumer):
        await until_async(lambda: consumer.dead_full)
        await fill(client, EVENTS, 10)
        await until_async(lambda: _unfinished(client, 2))
        assert await client.xlen(DEAD.key()) == 2
        assert await client.xlen(FAILURES.key()) == 2
        await client.xtrim(DEAD.key(), 0)
        await until_async(lambda: _unfinished(client, 0))
        await until_async(lambda: not consumer.dead_full)
    letters = [fields[b"data"] for _, fields in await client.xrange(DEAD.key())]
    assert len(letters) == 2
    assert await client.xlen(FAILURES.key()) == 4


async def test_what_a_newer_version_is_needed_for_is_kept_as_a_dead_letter(client: Client) -> None:
    [known, unknown] = await fill(client, EVENTS, 2)
    await make(client, EVENTS, storing).prepare()
    await client.xreadgroup("writer", "one", {EVENTS.key(): ">"})
    outcomes = [Outcome(known), Outcome(unknown, failure=failure_of(Entry(unknown, b"1")), keep=True)]
    assert await settle_finish(client, EVENTS, "writer", 0)(outcomes, await redis_here(client)) == 2
    [(_, letter)] = await client.xrange(DEAD.key())
    assert (letter[b"data"], letter[b"entry_id"]) == (b"1", unknown.encode())
    assert await client.xlen(FAILURES.key()) == 1
    assert (await client.xpending(EVENTS.key(), "writer"))["pending"] == 0


async def test_a_member_leaves_its_group_unless_something_is_pending_under_its_name(client: Client) -> None:
    consumer = make(client, EVENTS, storing)
    await consumer.prepare()
    await fill(client, EVENTS, 1)
    await client.xreadgroup("writer", "one", {EVENTS.key(): ">"})
    await consumer.leave()
    [member] = await client.xinfo_consumers(EVENTS.key(), "writer")
    assert (member["name"], member["pending"]) == (b"one", 1)
    await client.xack(EVENTS.key(), "writer", (await client.xrange(EVENTS.key()))[0][0])
    await consumer.leave()
    assert await client.xinfo_consumers(EVENTS.key(), "writer") == []


async def test_members_that_are_gone_for_long_are_removed_unless_something_is_pending_under_their_name(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = make(client, EVENTS, storing)
    await consumer.prepare()
    await fill(client, EVENTS, 1)
    await client.xreadgroup("writer", "holds-one", {EVENTS.key(): ">"})
    await client.xgroup_createconsumer(EVENTS.key(), "writer", "killed")
    await consumer.forget_the_gone()
    assert len(await client.xinfo_consumers(EVENTS.key(), "writer")) == 2, "too early"
    monkeypatch.setattr("assay_runtime.delivery.FORGOTTEN_AFTER_MS", 0)
    await consumer.forget_the_gone()
    [member] = await client.xinfo_consumers(EVENTS.key(), "writer")
    assert member["name"] == b"holds-one"


async def test_entries_are_finished_while_the_memory_of_redis_is_full(
    redis_server: RedisServer, client: Client
) -> None:
    await make(client, EVENTS, storing).prepare()
    await fill(client, EVENTS, 100)
    await client.config_set("maxmemory", 1)
    with pytest.raises(OutOfMemoryError):
        await fill(client, EVENTS, 1)
    watermark = Watermark(client, 0, "writer", 0)
    async with running(redis_server, make(client, EVENTS, storing)):
        await until_async(lambda: _pending(client, 0))
        await watermark.advance(100)
        await trim_finished(client, EVENTS, 0)
    await client.config_set("maxmemory", 0)


async def test_a_stop_does_not_wait_for_the_next_try_of_a_sink_that_is_away(
    redis_server: RedisServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_runtime.delivery.FIRST_PAUSE_S", 3_600)
    tries = 0

    async def away(entries: Sequence[Entry]) -> list[Outcome]:
        nonlocal tries
        tries += 1
        raise SinkUnavailableError(Reason.DB_DOWN, "x")

    await fill(client, EVENTS, 3)
    async with running(redis_server, make(client, EVENTS, away)):
        await until_async(lambda: tries == 1)
        await until_async(lambda: _length(client, FAILURES, 1))  # the incident: the last thing it does before it waits
    assert tries == 2, "once more at the stop, should it be back"
    assert (await client.xpending(EVENTS.key(), "writer"))["pending"] == 3


async def test_a_stop_leaves_the_backlog_unread(redis_server: RedisServer, client: Client) -> None:
    async def slowly(entries: Sequence[Entry]) -> list[Outcome]:
        await asyncio.sleep(0.05)
        return [Outcome(entry.id) for entry in entries]

    await fill(client, EVENTS, 5_000)
    async with running(redis_server, make(client, EVENTS, slowly, entries=50)):
        await until_async(lambda: _read(client, 200))
    assert (await client.xpending(EVENTS.key(), "writer"))["pending"] <= 512  # the read that was in hand


async def test_large_entries_are_worked_on_in_batches_of_bounded_bytes(
    redis_server: RedisServer, client: Client
) -> None:
    sizes: list[int] = []

    async def noting(entries: Sequence[Entry]) -> list[Outcome]:
        sizes.append(sum(len(entry.data) for entry in entries))
        return [Outcome(entry.id) for entry in entries]

    for _ in range(60):
        await client.xadd(EVENTS.key(), {FIELD: b"x" * 500_000})
    async with running(redis_server, make(client, EVENTS, noting)):
        await until_async(lambda: sum(sizes) == 60 * 500_000)
    assert max(sizes) <= 10_000_000


async def test_one_read_is_bounded_in_bytes_also_when_large_entries_follow_small_ones(
    redis_server: RedisServer, client: Client
) -> None:
    reads: list[int] = []
    await fill(client, EVENTS, 2_000)
    for _ in range(40):
        await client.xadd(EVENTS.key(), {FIELD: b"x" * ENTRY_MAX_BYTES})
    consumer = make(client, EVENTS, storing)
    offer = consumer.offer

    async def noting(entries: Sequence[Entry]) -> bool:
        reads.append(sum(len(entry.data) for entry in entries))
        return await offer(entries)

    consumer.offer = noting  # type: ignore[method-assign]
    async with running(redis_server, consumer):
        await until_async(lambda: sum(reads) > 40 * ENTRY_MAX_BYTES)
        await until_async(lambda: _pending(client, 0))
    assert max(reads) <= READ_BYTES + READ_STEP * ENTRY_MAX_BYTES
    assert len(reads) < 40, "small entries come many at a time"


async def test_entries_are_taken_over_within_the_same_bound(redis_server: RedisServer, client: Client) -> None:
    sizes: list[int] = []
    for _ in range(20):
        await fill(client, EVENTS, 10)
        await client.xadd(EVENTS.key(), {FIELD: b"x" * ENTRY_MAX_BYTES})
    consumer = make(client, EVENTS, storing)
    await consumer.prepare()
    await client.xreadgroup("writer", "one", {EVENTS.key(): ">"})
    read = consumer._reclaimer._read

    async def noting(ids: list[str]) -> list[Entry]:
        entries = await read(ids)
        sizes.append(sum(len(entry.data) for entry in entries))
        return entries

    consumer._reclaimer._read = noting  # type: ignore[method-assign]
    async with running(redis_server, consumer):
        await until_async(lambda: _pending(client, 0))
    assert sum(sizes) > 20 * ENTRY_MAX_BYTES
    assert max(sizes) <= READ_BYTES + ENTRY_MAX_BYTES


async def test_a_batch_that_holds_an_entry_twice_publishes_it_once(client: Client) -> None:
    [entry_id] = await fill(client, CAPTURE, 1)
    await make(client, CAPTURE, passing_on).prepare()
    await client.xreadgroup("scrubber", "one", {CAPTURE.key(): ">"})
    outcome = Outcome(entry_id, event=b'{"n":1}')
    await forward_finish(client, "scrubber", 0, 1)([outcome, outcome], await redis_here(client))
    assert await client.xlen(EVENTS.key()) == 1


async def test_tries_of_a_batch_that_redis_refuses_do_not_pile_up_in_memory(
    redis_server: RedisServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Services run the garbage collector so rarely that an outage must not depend on it."""
    batch = 2_000_000
    held: list[int] = []  # bytes in memory at the begin of each try; between tries there may be no time to look
    consumer = make(client, CAPTURE, passing_on)
    finish = consumer._finish

    async def counted(outcomes: Sequence[Outcome], redis: str) -> int:
        held.append(tracemalloc.get_traced_memory()[0])
        if len(held) == 1:
            await client.replicaof("127.0.0.1", 1)
        return await finish(outcomes, redis)

    consumer._finish = counted
    monkeypatch.setattr("assay_runtime.lifetime.REDIS_PAUSE_S", 0.01)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        await client.xadd(CAPTURE.key(), {FIELD: b"x" * 1_000_000})
        await client.xadd(CAPTURE.key(), {FIELD: b"x" * 1_000_000})
        async with running(redis_server, consumer):
            await until_async(lambda: len(held) >= 12)
            await client.replicaof("no", "one")
            await until_async(lambda: _length(client, EVENTS, 2))
    finally:
        tracemalloc.stop()
        gc.enable()
    more = (held[11] - held[1]) / batch
    assert more < 4, f"{more:.1f} batches more are held after ten tries"


async def test_consumption_goes_on_after_redis_was_killed_and_restarted(
    redis_server: RedisServer, client: Client
) -> None:
    async with running(redis_server, make(client, CAPTURE, passing_on)):
        await fill(client, CAPTURE, 50)
        await until_async(lambda: _length(client, EVENTS, 50))
        redis_server.kill()
        redis_server.start()
        await fill(client, CAPTURE, 50, start=50)
        await until_async(lambda: _length(client, EVENTS, 100))
    found = [fields[b"data"].rpartition(b":")[2] for _, fields in await client.xrange(EVENTS.key())]
    assert found == [b"%d}" % n for n in range(100)]


@pytest.mark.parametrize("lost", ["stream", "group"])
async def test_reading_goes_on_after_a_stream_or_its_group_was_deleted(
    redis_server: RedisServer, client: Client, lost: str
) -> None:
    seen: list[bytes] = []

    async def noting(entries: Sequence[Entry]) -> list[Outcome]:
        seen.extend(entry.data for entry in entries)
        return [Outcome(entry.id) for entry in entries]

    async with running(redis_server, make(client, EVENTS, noting)):
        await fill(client, EVENTS, 3)
        await until_async(lambda: len(seen) == 3)
        if lost == "stream":
            await client.delete(EVENTS.key())
        else:
            await client.xgroup_destroy(EVENTS.key(), "writer")
        await fill(client, EVENTS, 3, start=3)
        await until_async(lambda: b"5" in seen)
    assert set(seen) == {b"%d" % n for n in range(6)}


async def test_what_is_held_at_a_stop_is_finished_before_it_ends(redis_server: RedisServer, client: Client) -> None:
    await fill(client, EVENTS, 30)
    consumer = make(client, EVENTS, storing, age_s=60)  # its batch would wait a minute
    async with running(redis_server, consumer):
        await until_async(lambda: _pending(client, 30))
    assert (await client.xpending(EVENTS.key(), "writer"))["pending"] == 0


async def _length(client: Client, stream: Stream, expected: int) -> bool:
    return bool(await client.xlen(stream.key()) >= expected)


async def _pending(client: Client, expected: int) -> bool:
    state = await client.xpending(EVENTS.key(), "writer")
    [group] = await client.xinfo_groups(EVENTS.key())
    newest = await client.xrevrange(EVENTS.key(), count=1)
    return bool(state["pending"] == expected and newest and group["last-delivered-id"] == newest[0][0])


async def _read(client: Client, expected: int) -> bool:
    """Whether the group has read this many entries."""
    [group] = await client.xinfo_groups(EVENTS.key())
    return len(await client.xrange(EVENTS.key(), max=group["last-delivered-id"])) >= expected


async def _deliveries(client: Client) -> set[int]:
    """How often the entries that are pending were delivered."""
    found = await client.xpending_range(EVENTS.key(), "writer", "-", "+", 1_000)
    return {item["times_delivered"] for item in found}


async def _unfinished(client: Client, expected: int) -> bool:
    """Whether all is read, and so many entries are pending."""
    return await _read(client, 1) and bool((await client.xpending(EVENTS.key(), "writer"))["pending"] == expected)
