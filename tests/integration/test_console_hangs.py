"""The console while the store or Redis hangs, as under SIGSTOP: pages answer, name the source, and recover by themselves."""

import asyncio
import os
import re
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from assay_console.live import Live
from assay_console.passing import Wanted
from assay_console.reads import ANSWER_S, Reads
from assay_console.redis_reads import RedisReads
from assay_operations.doctor.finding import Status
from assay_operations.doctor.partial import redis_findings, store_findings
from assay_operations.errors import OperationError
from assay_runtime.connection import Client as Redis
from assay_runtime.connection import connect as connect_redis
from assay_runtime.store import Client, connect
from assay_schema.settings import RedisSettings, Settings
from tests.support.console import running_console
from tests.support.console_pages import Pages, console
from tests.support.health import said
from tests.support.redis import RedisServer
from tests.support.store import StoreServer
from tests.support.wait import PATIENCE_S, until, until_async


@pytest.fixture
def store(empty_store: StoreServer) -> Iterator[StoreServer]:
    yield empty_store
    if empty_store.running:
        os.kill(empty_store.pid, signal.SIGCONT)


@pytest.fixture
def redis_(redis_server: RedisServer) -> Iterator[RedisServer]:
    yield redis_server
    redis_server.kill(signal.SIGCONT)


def of(store: StoreServer, redis: RedisServer) -> Settings:
    settings = store.settings("console")
    return settings.model_copy(update={"redis": RedisSettings.model_validate({"url": redis.url})})


def one(client: Client) -> int:
    return int(client.query("SELECT 1").result_rows[0][0])


def test_after_one_read_without_an_answer_no_other_read_waits_until_the_store_answers(store: StoreServer) -> None:
    asked = list[str]()

    def noted(client: Client, name: str) -> int:
        asked.append(name)
        return one(client)

    async def look() -> None:
        reads = Reads(store.settings("console").store, 2)
        try:
            assert (await reads.ask(noted, "first")).value == 1
            os.kill(store.pid, signal.SIGSTOP)
            with pytest.raises(OperationError) as waited:
                await reads.ask(noted, "second")
            assert f"gave no answer within {ANSWER_S:g} s" in waited.value.message
            for read in (reads.ask, lambda *each: reads.search_within(0, *each)):
                with pytest.raises(OperationError) as refused:
                    await read(noted, "third")
                assert (refused.value.kind, refused.value.message) == ("unavailable", reads.away)
            assert asked == ["first", "second"], "a read was let through to a store that hangs"
            os.kill(store.pid, signal.SIGCONT)
            await until_async(lambda: not reads.away, "the probe does not see that the store answers")
            assert (await reads.ask(noted, "fourth")).value == 1
        finally:
            reads.close()

    asyncio.run(look())


def test_a_console_whose_first_read_hangs_finds_out_once(store: StoreServer) -> None:
    """Its reads share one connection attempt: the others do not try after it, one by one."""

    async def look() -> None:
        reads = Reads(store.settings("console").store, 3)
        os.kill(store.pid, signal.SIGSTOP)
        try:
            found = await asyncio.gather(
                *(reads.ask(lambda client, _number: one(client), number) for number in range(12)),
                return_exceptions=True,
            )
            assert {str(each) for each in found[3:]} <= {str(found[-1])}
            assert all(isinstance(each, OperationError) for each in found)
            assert reads.away in str(found[-1])
        finally:
            reads.close()

    asyncio.run(look())


class Between(BaseHTTPRequestHandler):
    """A store that is starting or stopping: a real one is so for too short a time to ask it."""

    def do_POST(self) -> None:
        body = b"Code: 236. DB::Exception: The store is stopping. (ABORTED)"
        self.send_response(503)
        self.send_header("X-ClickHouse-Exception-Code", "236")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


def test_a_store_that_is_starting_or_stopping_is_away_until_it_answers(store: StoreServer) -> None:
    async def look(port: int) -> None:
        settings = store.settings("console").store
        reads = Reads(settings.model_copy(update={"url": f"http://127.0.0.1:{port}"}), 1)
        try:
            with pytest.raises(OperationError, match="is starting or stopping; wait a moment"):
                await reads.ask(one)
            assert reads.away.endswith("is starting or stopping")
            await asyncio.to_thread(reads._reach)
            assert reads.away, "the probe takes it for one that answers"
        finally:
            reads.close()

    with ThreadingHTTPServer(("127.0.0.1", 0), Between) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asyncio.run(look(server.server_port))
        server.shutdown()


def test_a_cancelled_read_says_nothing_about_the_store(store: StoreServer) -> None:
    async def look() -> None:
        reads = Reads(store.settings().store, 1)
        with connect(store.settings().store) as owner:
            sql = "SELECT count() FROM numbers(100000000000000) WHERE sipHash64(number) = 7000009 SETTINGS max_threads = 1"
            running = (
                "SELECT count() FROM system.processes WHERE query LIKE '%= 7000009 %' AND query NOT LIKE '%processes%'"
            )

            def endless(client: Client) -> object:
                return client.query(sql)

            asked = asyncio.create_task(reads.ask(endless))
            await until_async(
                lambda: asyncio.to_thread(lambda: owner.query(running).result_rows[0][0]), "it does not run"
            )
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            assert (await reads.ask(one)).value == 1
            assert reads.away == ""
        reads.close()

    asyncio.run(look())


async def page_of(pages: Pages, path: str) -> str:
    answer: httpx.Response = await pages._client.get(path)
    assert answer.status_code in (200, 503), answer.text
    return answer.text


def test_pages_answer_while_the_store_hangs_and_come_back_with_it(store: StoreServer, redis_: RedisServer) -> None:
    async def look() -> None:
        async with console(of(store, redis_)) as pages:
            assert "the store does not answer" not in await pages.html("/")
            os.kill(store.pid, signal.SIGSTOP)
            paths = ("/sessions?t=1h", "/events?t=1h", "/health", "/alerts", "/quality", "/arrivals")
            for path, page in zip(paths, await asyncio.gather(*(page_of(pages, path) for path in paths)), strict=True):
                assert f"gave no answer within {ANSWER_S:g} s" in page or "he store does not answer" in page, path
                assert not re.search(r"\b[Ss]tart it", page.partition("<main")[2]), (
                    f"{path} advises to start what hangs"
                )
            for path in (*paths, "/"):  # also around an answer of some seconds ago, which the overview may still show
                assert "▲ the store does not answer" in await page_of(pages, path), path
            os.kill(store.pid, signal.SIGCONT)

            async def is_back() -> bool:
                return "he store does not answer" not in await page_of(pages, "/")

            await until_async(is_back, "the page does not come back with the store")

    asyncio.run(look())


def test_a_console_without_its_store_is_ready_and_notes_it(store: StoreServer, tmp_path: Path) -> None:
    with running_console(tmp_path, store) as running:
        port = running.health_port
        assert said(port, "/readyz") == (200, '{"status":"ok","problems":[]}')
        os.kill(store.pid, signal.SIGSTOP)
        running.get("/events?t=1h")
        status, text = said(port, "/readyz")
        assert (status, "gave no answer within" in text, '"notes"' in text) == (200, True, True)
        os.kill(store.pid, signal.SIGCONT)
        until(lambda: "notes" not in said(port, "/readyz")[1], "the note stays")
        store.kill()
        running.get("/events?t=15m")
        assert "no answer at" in said(port, "/readyz")[1]


class Stopping:
    """A client whose store stops after the first answer."""

    def __init__(self, client: Client, pid: int) -> None:
        self._client, self._pid, self._asked = client, pid, 0

    def query(self, *arguments: Any, **options: Any) -> Any:
        self._asked += 1
        if self._asked == 2:
            os.kill(self._pid, signal.SIGSTOP)
        return self._client.query(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def test_checks_of_a_store_that_hangs_meanwhile_say_that_they_did_not_end(store: StoreServer) -> None:
    own = store.settings("console").store
    with connect(own.model_copy(update={"timeout_s": 10.0})) as client:
        stopping = cast("Client", Stopping(client, store.pid))
        found = store_findings(stopping, database="assay", nightly=False, waiting=None, seconds=1.0)
        assert [each.check for each in found][:3] == ["store", "schema", "watermark"]
        assert {each.status for each in found[1:]} == {Status.FAIL}
        assert {each.summary for each in found[1:]} == {"not known: the check did not end within 1 s"}
        os.kill(store.pid, signal.SIGCONT)
        found = store_findings(client, database="assay", nightly=False, waiting=None)
        assert [each.status for each in found if "did not end" in each.summary] == []


def test_checks_of_redis_end_while_it_hangs(redis_: RedisServer) -> None:
    settings = Settings(redis=RedisSettings.model_validate({"url": redis_.url}))

    async def look() -> None:
        client = connect_redis(settings.redis, attempts=0)
        try:
            assert [each.check for each in await redis_findings(client, settings)][:2] == ["redis", "redis version"]
            redis_.kill(signal.SIGSTOP)
            with pytest.raises(TimeoutError):
                await redis_findings(client, settings, 0.5)
        finally:
            await client.aclose()

    asyncio.run(look())


def test_after_one_page_without_an_answer_of_redis_no_other_page_waits_until_it_answers(redis_: RedisServer) -> None:
    asked = list[str]()

    async def noted(redis: Redis, name: str) -> bool:
        asked.append(name)
        return bool(await redis.ping())

    async def look() -> None:
        client = connect_redis(RedisSettings.model_validate({"url": redis_.url}), attempts=0)
        reads = RedisReads(client)
        try:
            assert await reads.ask_within(2.0, noted, "first")
            redis_.kill(signal.SIGSTOP)
            for name in ("second", "third"):
                with pytest.raises(TimeoutError):
                    await reads.ask_within(0.5, noted, name)
            assert asked == ["first", "second"], "a read was let through to a Redis that hangs"
            redis_.kill(signal.SIGCONT)

            async def is_back() -> bool:
                try:
                    return await reads.ask_within(2.0, noted, "fourth")
                except TimeoutError:
                    return False

            await until_async(is_back, "the probe does not see that Redis answers")
        finally:
            reads.close()
            await client.aclose()

    asyncio.run(look())


def test_a_viewer_of_the_live_tail_is_told_at_once_when_redis_hangs_and_when_it_is_back(redis_: RedisServer) -> None:
    """It does not wait for the next heartbeat, which never comes here."""

    async def look() -> None:
        live = Live(RedisSettings.model_validate({"url": redis_.url}))
        updates = live.watch(Wanted(), None, quiet_s=3_600)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await anext(updates)
                redis_.kill(signal.SIGSTOP)
                await anext(updates)
                assert live.away
                redis_.kill(signal.SIGCONT)
                await anext(updates)
                assert not live.away
        finally:
            await updates.aclose()
            await live.close()

    asyncio.run(look())


def test_every_page_names_a_redis_that_hangs_in_its_header(store: StoreServer, redis_: RedisServer) -> None:
    async def look() -> None:
        async with console(of(store, redis_)) as pages:
            assert "Redis does not answer" not in await pages.html("/events")
            redis_.kill(signal.SIGSTOP)
            for path in ("/events", "/quality", "/alerts", "/sessions", "/audit", "/failures"):
                page = await page_of(pages, path)
                assert "▲ Redis does not answer" in page.partition("<main")[0], path
                assert "no open alerts" in page, "what the store says stays"
            page = await pages.html("/alerts")
            assert "it is not known whether the detector runs" in page
            assert '<span class="warn">◆</span> No alert is open' in page
            assert '<span class="good">●</span>' not in page

    asyncio.run(look())
