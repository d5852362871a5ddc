"""Open traces in this process, on a real Redis: stale knowledge, bugs in mapping, many traces at once."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import orjson
import pytest

from assay_assembler.open_traces import GROUP, OpenTraces, arrival_of
from assay_assembler.trace import Trace
from assay_operations.dead_letters.letters import DeadLetter
from assay_runtime.connection import Client, connect
from assay_runtime.dead_letters import Move, letters, requeue
from assay_runtime.same_redis import redis_here
from assay_schema.settings import AssemblerSettings, RedisSettings
from assay_schema.streams import DEAD, FAILURES, FIELD, SPANS, open_bytes_key, open_traces_key
from tests.support.assembler import CHAT, append, entry, kinds
from tests.support.gateway import redis_with_identities
from tests.support.redis import RedisServer
from tests.support.spans import span

SECRET = "jane.doe@example.com"
#: Everything is due at once.
AT_ONCE = AssemblerSettings(grace_s=0)
SAID = span(CHAT, number=5, start_ms=100, end_ms=700)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    running = redis_with_identities(tmp_path_factory.mktemp("open-traces"))
    yield running
    running.stop()


@pytest.fixture
def redis(server: RedisServer) -> RedisServer:
    with server.client() as client:
        client.flushall()
        client.xgroup_create(SPANS.key(), GROUP, id="0", mkstream=True)
    return server


def with_assemblers(
    redis: RedisServer,
    test: Callable[[Client, OpenTraces, OpenTraces], Coroutine[Any, Any, None]],
    dead_bytes: int = 2**20,
) -> None:
    """Run a test with two assemblers that know of each other through Redis only."""

    async def run() -> None:
        settings = RedisSettings(url=f"redis://assembler:assembler-password@127.0.0.1:{redis.port}/0")
        client = connect(settings)
        try:
            await test(client, *[OpenTraces(client, AT_ONCE, 0, dead_bytes) for _ in range(2)])
        finally:
            await client.aclose()

    asyncio.run(run())


async def take(client: Client, assembler: OpenTraces) -> int:
    """Hand all new entries to an assembler."""
    found = await client.xreadgroup(GROUP, "one", {SPANS.key(): ">"}, count=10_000)
    arrivals = [arrival_of(each.decode(), fields[FIELD.encode()]) for each, fields in found[0][1]]
    return await assembler.finish(arrivals, await redis_here(client, SPANS.key()))


def open_now(redis: RedisServer) -> list[tuple[bytes, float]]:
    """Return the keys of the open traces, and when they close."""
    with redis.client() as client:
        return list(client.zrange(open_traces_key(), 0, -1, withscores=True))


async def requeue_all(redis: RedisServer) -> None:
    """Requeue all dead letters, as `assay dead requeue --all` does."""
    client = connect(RedisSettings(url=redis.url))
    try:
        async for page in letters(client, 0):
            found = [DeadLetter.of(0, *each) for each in page]
            assert all(await requeue(client, 0, [Move(each.id, *each.requeued()) for each in found]))
    finally:
        await client.aclose()


def test_a_trace_that_another_replica_closed_meanwhile_is_not_taken_for_the_one_that_is_known(
    redis: RedisServer,
) -> None:
    async def test(client: Client, stale: OpenTraces, other: OpenTraces) -> None:
        append(redis, entry(SAID))
        assert await take(client, stale) == 1
        await other.close_due()
        append(redis, entry(span(CHAT, number=6, start_ms=800, end_ms=900)))
        assert await take(client, other) == 1  # again one entry: late, and another one
        append(redis, entry(span(CHAT, number=7, start_ms=910, end_ms=950)))
        assert await take(client, stale) == 1
        await stale.close_due()

    with_assemblers(redis, test)
    assert kinds(redis)["answer"] == 3


def test_a_trace_that_cannot_be_assembled_is_a_failure_and_stops_no_other(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, bad = Trace.close, "b" * 32

    def raising(trace: Trace) -> Any:
        if trace._envelope.trace_id == bad:
            raise RuntimeError(SECRET)
        return close(trace)

    monkeypatch.setattr(Trace, "close", raising)

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, entry(SAID._replace(trace_id=bad), trace=bad), entry(SAID))
        assert await take(client, one) == 2
        await one.close_due()
        await one.close_due()

    with_assemblers(redis, test)
    assert kinds(redis)["answer"] == 1
    with redis.client() as client:
        ((_, fields),) = client.xrange(FAILURES.key())
        failure = orjson.loads(fields[FIELD.encode()])
        assert (failure["project"], failure["error_class"]) == ("shop", "RuntimeError")
        assert failure["entry_id"]
        assert SECRET not in str(failure)
        assert (client.zcard(open_traces_key()), client.get(open_bytes_key())) == (0, b"0")


def test_the_spans_of_a_trace_that_cannot_be_assembled_can_be_requeued(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(_: Trace) -> Any:
        raise RuntimeError(SECRET)

    early = span(CHAT, number=4, start_ms=10, end_ms=90)

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(Trace, "close", raising)
            append(redis, entry(SAID), entry(early))
            assert await take(client, one) == 2
            await one.close_due()
        assert kinds(redis)["answer"] == 0
        await requeue_all(redis)
        assert await take(client, one) == 2
        await one.close_due()

    with_assemblers(redis, test)
    assert kinds(redis)["answer"] == 2
    with redis.client() as client:
        assert (client.xlen(DEAD.key()), client.xlen(FAILURES.key()), client.xlen(SPANS.key())) == (0, 1, 0)


def test_without_room_for_dead_letters_a_broken_trace_stays_open_behind_the_others(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def raising(_: Trace) -> Any:
        raise RuntimeError(SECRET)

    with redis.client() as client:
        client.xadd(DEAD.key(), {FIELD: b"x"})

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, entry(SAID))
        assert await take(client, one) == 1
        ((key, due),) = open_now(redis)
        with monkeypatch.context() as broken:
            broken.setattr(Trace, "close", raising)
            await one.close_due()
        ((_, later),) = open_now(redis)
        assert 59_000 < later - due < 120_000
        await client.zadd(open_traces_key(), {key: due})
        await one.close_due()

    with_assemblers(redis, test, dead_bytes=1)
    assert "delivery.dead_bytes" in caplog.text
    assert kinds(redis)["answer"] == 1
    with redis.client() as client:
        assert (client.exists(FAILURES.key()), client.get(open_bytes_key())) == (0, b"0")


def test_spans_that_cannot_be_mapped_are_a_failure_and_stop_no_other(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Trace.add

    def raising(trace: Trace, one: Any) -> None:
        if one.span_id == "0" * 15 + "9":
            raise RuntimeError(SECRET)
        add(trace, one)

    monkeypatch.setattr(Trace, "add", raising)

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, entry(SAID), entry(span(CHAT, number=9)))
        assert await take(client, one) == 2
        await one.close_due()

    with_assemblers(redis, test)
    assert kinds(redis)["answer"] == 1
    with redis.client() as client:
        assert client.xlen(FAILURES.key()) == 1
        assert client.xlen(SPANS.key()) == 0
        assert SECRET not in str(client.xrange(FAILURES.key()))
    monkeypatch.undo()

    async def after_the_mend(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        await requeue_all(redis)
        assert await take(client, one) == 1
        await one.close_due()

    with_assemblers(redis, after_the_mend)
    assert kinds(redis)["answer"] == 2


def test_without_room_for_dead_letters_spans_that_cannot_be_mapped_stay_in_their_stream(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(_: Trace, __: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(Trace, "add", raising)
    with redis.client() as client:
        client.xadd(DEAD.key(), {FIELD: b"x"})

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, entry(SAID))
        assert await take(client, one) == 0

    with_assemblers(redis, test, dead_bytes=1)
    with redis.client() as client:
        assert (client.xlen(SPANS.key()), client.xpending(SPANS.key(), GROUP)["pending"]) == (1, 1)
        assert (client.xlen(DEAD.key()), client.exists(FAILURES.key())) == (1, 0)


def test_all_traces_that_are_due_close_in_one_tick(redis: RedisServer) -> None:
    traces = [f"{number:032x}" for number in range(1, 251)]

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, *[entry(SAID._replace(trace_id=trace), trace=trace) for trace in traces])
        assert await take(client, one) == len(traces)
        await one.close_due()

    with_assemblers(redis, test)
    assert kinds(redis)["answer"] == len(traces)
