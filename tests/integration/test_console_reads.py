"""Reads for pages: kept answers are bounded in bytes and apart by project, rows are counted, the frame never fails."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest
from clickhouse_connect.driver.exceptions import OperationalError
from starlette.requests import Request
from urllib3.connection import HTTPConnection

from assay_console.attendance import ClientLeftError, while_there
from assay_console.frame import Frame, frame_of
from assay_console.page import Ask, Panel
from assay_console.people import Person, Role
from assay_console.reads import KEPT_ANSWER_BYTES, KEPT_BYTES, WAITING_MAX, Reads, size_of
from assay_console.redis_reads import RedisReads
from assay_console.running import Running, note_requests
from assay_console.scope import Scope
from assay_operations.errors import OperationError
from assay_operations.events.queries import Queries
from assay_operations.overview.flow import FlowHistory
from assay_runtime.connection import connect as connect_redis
from assay_runtime.store import Client, connect
from assay_schema.settings import RedisSettings, Settings
from tests.support.redis import RedisServer
from tests.support.store import StoreServer
from tests.support.wait import until_async

#: Long enough that an answer never ends being current within a test.
LONG_S = 3_600.0


@asynccontextmanager
async def reading(store: StoreServer, limit: int = 2) -> AsyncIterator[Reads]:
    reads = Reads(store.settings("console").store, limit)
    try:
        yield reads
    finally:
        reads.close()


def text_of_size(_: Client, size: int, name: str) -> str:
    """An operation whose answer has a size. The name makes it another question, as a parameter of a link does."""
    return name[:1] * size


def test_many_different_questions_do_not_keep_more_than_the_bound(migrated: StoreServer) -> None:
    async def look() -> None:
        async with reading(migrated) as reads:
            size = KEPT_ANSWER_BYTES // 2
            for number in range(2 * KEPT_BYTES // size + 2):
                await reads.ask_within(LONG_S, text_of_size, size, f"x{number}")
                assert reads.kept_bytes <= KEPT_BYTES
            assert reads.kept_bytes > KEPT_BYTES - KEPT_ANSWER_BYTES, "the room is used"
            assert reads.last(text_of_size, size, "x0") is None
            assert reads.last(text_of_size, size, f"x{number}") is not None

    asyncio.run(look())


def test_the_length_of_a_parameter_does_not_change_what_is_kept(migrated: StoreServer) -> None:
    async def look() -> None:
        async with reading(migrated) as reads:
            await reads.ask_within(LONG_S, text_of_size, 10, "x")
            short = reads.kept_bytes
            await reads.ask_within(LONG_S, text_of_size, 10, "x" * 1_000_000)
            assert reads.kept_bytes == 2 * short

    asyncio.run(look())


def test_an_answer_that_is_too_large_is_given_but_not_kept(migrated: StoreServer) -> None:
    async def look() -> None:
        async with reading(migrated) as reads:
            answer = await reads.ask_within(LONG_S, text_of_size, KEPT_ANSWER_BYTES + 1, "x")
            assert len(answer.value) == KEPT_ANSWER_BYTES + 1
            assert reads.last(text_of_size, KEPT_ANSWER_BYTES + 1, "x") is None
            reads.keep(("place",), answer)
            assert reads.kept(("place",)) is None
            assert reads.kept_bytes == 0

    asyncio.run(look())


def test_the_same_question_is_kept_once(migrated: StoreServer) -> None:
    async def look() -> None:
        async with reading(migrated) as reads:
            await reads.ask_within(LONG_S, text_of_size, 100, "x")
            once = reads.kept_bytes
            for _ in range(5):
                await reads.ask_within(0, text_of_size, 100, "x")
            assert reads.kept_bytes == once > 100

    asyncio.run(look())


def test_a_search_takes_no_place_of_a_page_and_waits_for_another_search(migrated: StoreServer) -> None:
    found, searching = threading.Event(), list[str]()

    def search(_: Client, name: str) -> str:
        searching.append(name)
        assert found.wait(60)
        return name

    async def look() -> None:
        async with reading(migrated, limit=1) as reads:
            searches = [asyncio.create_task(reads.search_within(LONG_S, search, name)) for name in ("one", "two")]
            await until_async(lambda: searching)
            assert (await reads.ask_within(LONG_S, text_of_size, 10, "x")).value == "x" * 10
            assert searching == ["one"]
            found.set()
            assert [answer.value for answer in await asyncio.gather(*searches)] == ["one", "two"]

    asyncio.run(look())


def test_rows_of_rollups_are_kept_for_other_pages_that_ask_the_same(migrated: StoreServer) -> None:
    def counting(client: Client, day: int, page: str) -> int:
        queries = Queries(client)
        sql = "SELECT number FROM numbers(10) WHERE number > {day:UInt8}"
        assert len(queries.counts(sql, {"day": day})) == 9 - day, page
        return queries.rows_read

    async def look() -> None:
        async with reading(migrated) as reads:
            read = [(await reads.ask(counting, *each)).rows_read for each in ((1, "a"), (1, "b"), (2, "c"))]
            assert read == [8, 0, 7]

    asyncio.run(look())


@dataclass(frozen=True)
class Row:
    texts: tuple[str, ...]
    more: dict[str, list[str]]


def test_the_size_of_an_answer_has_all_texts_within_it() -> None:
    row = Row(tuple(str(number) * 1_000 for number in range(1, 10)), {"a": ["b" * 5_000]})
    texts = 9_000 + 5_000
    assert texts <= size_of([row], KEPT_ANSWER_BYTES) < 2 * texts
    assert 1_000 < size_of([row], 1_000) < texts, "it stops above the limit"
    around: list[Any] = []
    around.append(around)
    assert size_of(around, 1_000) < 1_000


def asking(reads: Reads, settings: Settings, scope: str, project: str | None, redis: Any = None) -> Ask:
    return Ask(
        {"a": "b"}, {}, Scope(scope, 0, 1, "24h"), Person("k", Role.VIEWER, project), settings, reads, RedisReads(redis),
        cast("Any", None), reads, FlowHistory(),
    )  # fmt: skip


def answering(_: Client, end: int) -> str:
    """An operation over a range that ends now: the later question is another one, and the store is away."""
    if end > 1:
        raise OperationError("unavailable", "away")
    return "of the shop"


def test_what_a_key_was_shown_is_the_last_answer_for_its_project_only(migrated: StoreServer) -> None:
    settings = migrated.settings("console")

    async def look() -> None:
        async with reading(migrated) as reads:

            async def panel(scope: str, project: str | None, end: int) -> Panel[str]:
                return await asking(reads, settings, scope, project).panel(answering, end)

            assert (await panel("shop", "shop", 1)).state == "ready"
            again = await panel("shop", "shop", 2)
            assert (again.state, again.value) == ("stale", "of the shop")
            for scope, project in (("default", "default"), ("shop", None), ("", None), ("shop", "default")):
                other = await panel(scope, project, 2)
                assert (other.state, other.value) == ("unavailable", None), (scope, project)

    asyncio.run(look())


def counted(client: Client) -> int:
    return int(client.query("SELECT count() FROM numbers(1000)").result_rows[0][0])


def counted_raw(client: Client) -> bytes:
    answer: bytes = client.raw_query("SELECT sum(number) AS n FROM numbers(1000)", fmt="JSONEachRow")
    return answer


def streamed(client: Client) -> int:
    with client.query_row_block_stream("SELECT number FROM numbers(1000)") as stream:
        return sum(len(list(block)) for block in stream)


def test_rows_are_counted_for_each_way_to_read(migrated: StoreServer) -> None:
    async def look() -> None:
        async with reading(migrated) as reads:
            assert (await reads.ask(counted)).rows_read == 1000
            raw, streams = await reads.ask(counted_raw), await reads.ask(streamed)
            assert (raw.rows_read, raw.value.split()) == (1000, [b'{"n":499500}'])
            assert (streams.rows_read, streams.value) == (1000, 1000)

    asyncio.run(look())


def test_a_broken_statement_has_the_same_error_for_each_way_to_read(migrated: StoreServer) -> None:
    def wrong(client: Client, how: str) -> object:
        return getattr(client, how)("SELECT no_such_column FROM numbers(1)")

    async def look() -> None:
        async with reading(migrated) as reads:
            messages = set()
            for how in ("query", "raw_query"):
                try:
                    await reads.ask(wrong, how)
                except OperationError as error:
                    messages.add(error.message)
            (message,) = messages
            assert "no_such_column" in message

    asyncio.run(look())


async def frame_with(reads: Reads, settings: Settings, redis: RedisServer) -> Frame:
    """Return the frame of a page, and check that it leaves no task that asks Redis."""
    client = connect_redis(RedisSettings.model_validate({"url": redis.url}), attempts=0)
    try:
        frame = await frame_of(asking(reads, settings, "", None, client))
        assert [task for task in asyncio.all_tasks() if "_newest_ms" in repr(task.get_coro())] == []
        return frame
    finally:
        await client.aclose()


def test_the_frame_tells_a_busy_console_from_a_store_that_is_away(
    migrated: StoreServer, redis_server: RedisServer
) -> None:
    settings = migrated.settings("console")
    go_on = threading.Event()

    def waiting(_: Client, number: int) -> int:
        go_on.wait()
        return number

    async def look() -> None:
        async with reading(migrated, limit=1) as reads:
            assert (await frame_with(reads, settings, redis_server)).problem == ""
        async with reading(migrated, limit=1) as reads:
            asked = [asyncio.create_task(reads.ask(waiting, number)) for number in range(WAITING_MAX + 1)]
            try:
                async with asyncio.timeout(30):
                    assert (await frame_with(reads, settings, redis_server)).problem == "the console is busy"
            finally:
                go_on.set()
            assert [each.value for each in await asyncio.gather(*asked)] == list(range(WAITING_MAX + 1))
        away = Reads(settings.store.model_copy(update={"url": "http://127.0.0.1:1"}), 1)
        assert (await frame_with(away, settings, redis_server)).problem == "the store does not answer"
        away.close()

    asyncio.run(look())


def test_an_unexpected_error_leaves_a_frame_without_content(migrated: StoreServer, redis_server: RedisServer) -> None:
    async def look() -> None:
        reads = Reads(migrated.settings("console").store, 1)
        reads.close()  # its threads refuse further work
        frame = await frame_with(reads, migrated.settings("console"), redis_server)
        assert frame == Frame(problem="the state of the system is not known")

    asyncio.run(look())


def endless(client: Client, salt: int) -> int:
    """Run for hours, and read nothing."""
    sql = f"SELECT count() FROM numbers(100000000000000) WHERE sipHash64(number) = {salt} SETTINGS max_threads = 1"
    return int(client.query(sql).result_rows[0][0])


def running_with(owner: Client, salt: int) -> int:
    """Return how many of these queries run."""
    found = owner.query(
        f"SELECT count() FROM system.processes WHERE query LIKE '%= {salt}%' AND query NOT LIKE '%system.processes%'"
    )
    return int(found.result_rows[0][0])


def test_a_read_is_cancelled_in_the_store_when_the_last_who_waits_for_it_leaves(empty_store: StoreServer) -> None:
    async def look() -> None:
        # The owner has no limit of time: only a cancellation ends such a query within the test.
        reads = Reads(empty_store.settings().store, 2)
        with connect(empty_store.settings().store) as owner:

            async def number(wanted: int) -> bool:
                return await asyncio.to_thread(running_with, owner, 7_000_001) == wanted

            first, second = (asyncio.create_task(reads.ask(endless, 7_000_001)) for _ in range(2))
            await until_async(lambda: number(1), "no query runs")
            first.cancel()
            assert isinstance((await asyncio.gather(first, return_exceptions=True))[0], asyncio.CancelledError)
            assert (await reads.ask(counted)).value == 1000
            assert await number(1), "the other one waits"
            second.cancel()
            await until_async(lambda: number(0), "the query runs on")
            again = asyncio.create_task(reads.ask(endless, 7_000_001))
            await until_async(lambda: number(1), "who asks later got the cancelled read")
            again.cancel()
            assert (await reads.ask(counted)).value == 1000, "the connection of the cancelled read is not used again"
            await until_async(lambda: number(0), "the query runs on")
        reads.close()

    asyncio.run(look())


def test_all_queries_of_a_read_are_cancelled_with_it(empty_store: StoreServer) -> None:
    def two(client: Client) -> int:
        with Queries(client).threads() as threads:
            return sum(each.result() for each in [threads.submit(endless, client, 7_000_003) for _ in range(2)])

    async def look() -> None:
        reads = Reads(empty_store.settings().store, 1)
        with connect(empty_store.settings().store) as owner:

            async def number(wanted: int) -> bool:
                return await asyncio.to_thread(running_with, owner, 7_000_003) == wanted

            asked = asyncio.create_task(reads.ask(two))
            await until_async(lambda: number(2), "they do not run at once")
            asked.cancel()
            await until_async(lambda: number(0), "a query runs on")
            assert (await reads.ask(counted)).value == 1000
        reads.close()

    asyncio.run(look())


def test_a_read_that_is_cancelled_while_it_connects_never_asks_the_store(
    empty_store: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting = HTTPConnection._new_conn
    running, met = Running(), list[str]()

    def cancelled_meanwhile(connection: HTTPConnection) -> Any:
        if running is connection.read:  # type: ignore[attr-defined]
            met.append("connects")
            running.cancel()
        return connecting(connection)

    with connect(empty_store.settings().store) as client:
        noted = note_requests(client)
        monkeypatch.setattr(HTTPConnection, "_new_conn", cancelled_meanwhile)
        with running.here(), pytest.raises(OperationalError):
            noted.query("SELECT 1")
        assert met == ["connects"]
        assert noted.query("SELECT 1").result_rows == [(1,)], "another read may use the client"


def test_a_read_that_waits_for_its_turn_never_asks_the_store_when_nobody_waits(empty_store: StoreServer) -> None:
    async def look() -> None:
        reads = Reads(empty_store.settings().store, 1)
        with connect(empty_store.settings().store) as owner:
            blocking = asyncio.create_task(reads.ask(endless, 7_000_002))
            await until_async(lambda: asyncio.to_thread(running_with, owner, 7_000_002), "it does not run")
            asked = list[int]()

            def noting(_: Client) -> int:
                asked.append(1)
                return 1

            leaving = asyncio.create_task(reads.ask(noting))
            await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            blocking.cancel()
            assert (await reads.ask(counted)).value == 1000
            assert asked == []
        reads.close()

    asyncio.run(look())


def test_the_work_on_an_answer_ends_when_its_client_leaves() -> None:
    async def look() -> None:
        left, ended = asyncio.Event(), asyncio.Event()
        first = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            if first:
                return first.pop()
            await left.wait()
            return {"type": "http.disconnect"}

        async def work() -> None:
            try:
                left.set()
                await asyncio.Event().wait()
            finally:
                ended.set()

        request = Request({"type": "http", "method": "GET", "headers": []}, receive)
        async with asyncio.timeout(60):
            with pytest.raises(ClientLeftError):
                await while_there(request, work())
        assert ended.is_set()
        left.clear()
        assert await while_there(request, asyncio.sleep(0, "answer")) == "answer"

    asyncio.run(look())
