"""The live tail: each event once over restarts of the console and of Redis, slow viewers, limits, projects."""

import asyncio
import http.client
import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from assay_console.live import Live
from assay_console.passing import Wanted, entry_of
from assay_console.stream_position import parse_stream_position
from assay_console.viewer import QUEUE_MAX, Viewer
from assay_runtime.connection import connect
from assay_schema.ids import new_event_id
from assay_schema.settings import RedisSettings
from assay_schema.streams import EVENTS, FIELD
from tests.support.console import Console, running_console
from tests.support.redis import RedisServer
from tests.support.store import StoreServer
from tests.support.wait import until

KEY = EVENTS.key(0)


@pytest.fixture
def console(migrated: StoreServer, tmp_path: Path) -> Iterator[Console]:
    with running_console(tmp_path, migrated) as running:
        yield running


def event(number: int, **changes: Any) -> bytes:
    """An event as the scrubber writes it to the stream."""
    payload = {"query": f"question {number}", "retrieved_chunk_ids": [1], "latency_ms": 1.5} | changes.pop(
        "payload", {}
    )
    document = {
        "event_id": new_event_id(), "kind": "retrieval", "project": "shop", "service": "search",
        "created_at": "2026-11-27T12:00:00.000000Z", "pii_families": {}, "payload": payload,
    } | changes  # fmt: skip
    return json.dumps(document).encode()


def send(server: RedisServer, *events: bytes) -> list[str]:
    with server.client() as client:
        pipe = client.pipeline(transaction=False)
        for each in events:
            pipe.xadd(KEY, {FIELD: each})
        return [name.decode() for name in pipe.execute()]


class Watcher:
    """A browser's EventSource: reads events in a thread, and connects again with the last id."""

    def __init__(self, console: Console, query: str = "", role: str | None = "VIEWER", **headers: str) -> None:
        self.console, self.query, self.headers = console, query, headers
        self.role = role
        self.messages: list[dict[str, Any]] = []
        self.others: list[tuple[str, dict[str, Any]]] = []
        self.last_id = ""
        self.connections = 0
        self.statuses: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            with suppress(OSError, http.client.HTTPException):
                self._read()
            self._ended.wait(0.02)  # as a browser, which does not connect again at once

    def _read(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.console.port, timeout=20)
        told = {"Last-Event-ID": self.last_id} if self.last_id else {}
        session = self.console.session(self.role) if self.role else {}
        try:
            connection.request("GET", f"/api/v1/live{self.query}", None, session | told | self.headers)
            answer = connection.getresponse()
            self.statuses.append(answer.status)
            if answer.status != 200:
                answer.read()
                return
            self.connections += 1
            name, data = "message", ""
            while not self._ended.is_set() and (line := answer.readline()):
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    data = value
                elif field == "id":
                    place = value
                elif not field and data:
                    self.last_id = place
                    found = json.loads(data)
                    self.messages.append(found) if name == "message" else self.others.append((name, found))
                    name, data = "message", ""
        finally:
            connection.close()

    @property
    def questions(self) -> list[str]:
        return [each["text"] for each in self.messages]

    def connected(self, times: int = 1) -> "Watcher":
        until(lambda: self.connections >= times and self.others, f"not connected: {self.statuses}")
        return self

    def end(self) -> None:
        self._ended.set()


@contextmanager
def watching(*arguments: Any, **options: Any) -> Iterator[Watcher]:
    watcher = Watcher(*arguments, **options)
    try:
        yield watcher
    finally:
        watcher.end()


def test_events_arrive_in_order_with_what_a_row_shows(console: Console) -> None:
    with watching(console) as watcher:
        watcher.connected()
        send(console.redis, *(event(number) for number in range(20)))
        until(lambda: len(watcher.messages) == 20)
        assert watcher.questions == [f"question {number}" for number in range(20)]
        first = watcher.messages[0]
        assert (first["kind"], first["project"], first["status"], first["results"]) == ("retrieval", "shop", "found", 1)


def test_no_event_is_missing_or_twice_after_kills_of_console_and_redis(console: Console) -> None:
    """Events go on while the console is killed, while Redis is killed, and while both are away."""
    sent: list[str] = []
    stop = threading.Event()

    def produce() -> None:
        numbers = itertools.count()
        while not stop.is_set():
            number = next(numbers)
            try:
                send(console.redis, event(number))
            except redis.RedisError:
                continue  # it may be stored or not: only what Redis confirmed counts as sent
            sent.append(f"question {number}")
            stop.wait(0.002)  # some hundred events a second

    producer = threading.Thread(target=produce, daemon=True)
    with watching(console) as watcher:
        watcher.connected()
        producer.start()

        def more(than: int) -> None:
            until(lambda: len(watcher.messages) > than + 20, "the viewer gets nothing any more")

        more(0)
        console.kill()
        console.start()
        watcher.connected(2)
        more(len(watcher.messages))
        console.redis.kill()
        console.redis.start()
        more(len(watcher.messages))
        console.kill()
        console.redis.kill()
        console.redis.start()
        console.start()
        more(len(watcher.messages))
        stop.set()
        producer.join(60)
        [last] = send(console.redis, event(-1))
        until(lambda: "question -1" in watcher.questions)
        missing = set(sent) - set(watcher.questions)
        assert len(sent) > 80
        assert not missing
        assert len({each["event_id"] for each in watcher.messages}) == len(watcher.messages), "an event came twice"
        assert [name for name, _ in watcher.others if name == "skipped"] == []
        assert watcher.last_id == last


@pytest.mark.parametrize("away", ["console", "redis"])
def test_no_event_of_any_shard_is_missing_or_twice_after_a_kill(
    migrated: StoreServer, tmp_path: Path, away: str
) -> None:
    """Each shard has its own ids: events of one go on while another one is silent."""
    sent: list[str] = []

    with running_console(tmp_path, migrated, ASSAY_REDIS_SHARDS="3") as console, watching(console) as watcher:
        watcher.connected()

        def some(count: int) -> None:
            with console.redis.client() as client:
                for _ in range(count):
                    number = len(sent)
                    shard = 0 if number % 50 < 25 else (1, 2, 1, 1)[number % 4]
                    client.xadd(EVENTS.key(shard), {FIELD: event(number)})
                    sent.append(f"question {number}")

        some(200)
        until(lambda: len(watcher.messages) == 200)
        if away == "console":
            console.kill()
            some(300)
            console.start()
        else:
            console.redis.kill()
            console.redis.start()
            some(300)
        until(lambda: set(sent) <= set(watcher.questions))
        some(1)
        until(lambda: sent[-1] in watcher.questions)
        assert sorted(watcher.questions) == sorted(sent)
        assert [name for name, _ in watcher.others if name == "skipped"] == []


def test_a_page_and_its_stream_together_have_each_event_once(console: Console) -> None:
    send(console.redis, *(event(number) for number in range(150)))
    page = console.get("/api/v1/live/newest").json["newest"]["value"]
    assert [each["text"] for each in page["rows"]] == [f"question {number}" for number in range(149, 49, -1)]
    send(console.redis, *(event(number) for number in range(150, 250)))  # between page and stream
    with watching(console, f"?after={page['position']}") as watcher:
        until(lambda: len(watcher.messages) == 100)
        send(console.redis, event(250))
        until(lambda: len(watcher.messages) == 101)
        assert watcher.questions == [f"question {number}" for number in range(150, 251)]


class Counting:
    """A client that counts the reads of the stream which wait for an answer at the same time."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.asked = self.waiting = self.most = 0

    async def xrevrange(self, *arguments: Any, **options: Any) -> Any:
        self.asked += 1
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            return await self._client.xrevrange(*arguments, **options)
        finally:
            self.waiting -= 1


def test_pages_without_a_viewer_look_back_one_at_a_time(redis_server: RedisServer) -> None:
    send(redis_server, *(event(number) for number in range(200)))
    settings = RedisSettings.model_validate({"url": redis_server.url})

    async def look() -> None:
        live, client = Live(settings), connect(settings)
        counting = Counting(client)
        try:
            pages = await asyncio.gather(*(live.newest(counting, Wanted(), 100) for _ in range(20)))
        finally:
            await client.aclose()
        assert [[row.text for row in rows[:2]] for rows, _ in pages] == [["question 199", "question 198"]] * 20
        assert (counting.most, counting.asked > 20) == (1, True)

    asyncio.run(look())


def test_filters_choose_by_project_kind_service_and_text(console: Console) -> None:
    with watching(console, "?project=shop&kind=answer&service=chat&q=STRASSE") as watcher:
        watcher.connected()
        fits = {"kind": "answer", "service": "chat", "payload": {"query": "Wo ist die Straße?", "contexts": []}}
        for change in (
            {},
            {"project": "other"},
            {"kind": "feedback"},
            {"service": "search"},
            {"payload": {"query": "no"}},
        ):
            send(console.redis, event(0, **fits | change))
        send(console.redis, event(0, **fits | {"payload": {"query": "", "answer": "in dieser straße"}}))
        until(lambda: len(watcher.messages) == 2)
        assert {(each["project"], each["kind"], each["service"]) for each in watcher.messages} == {
            ("shop", "answer", "chat")
        }
    page = console.get("/live?project=shop&kind=answer&service=chat&q=STRASSE")
    assert page.text.count("<tr data-href") == 2


def test_a_key_of_a_project_gets_that_project_only(console: Console) -> None:
    key = console.key(project="shop")
    authorization = {"Authorization": f"Bearer {key}"}
    with watching(console, role=None, **authorization) as watcher:
        watcher.connected()
        send(console.redis, event(1, project="other"), event(2))
        until(lambda: watcher.messages)
        assert watcher.questions == ["question 2"]
    assert console.get("/api/v1/live?project=other", role=None, **authorization).status == 403
    assert console.get("/api/v1/live", role=None).status == 401


def test_entries_that_are_no_events_are_passed_over(console: Console) -> None:
    with watching(console) as watcher:
        watcher.connected()
        send(console.redis, b"not JSON", b"[]", b'{"payload": 3}', b"{}", event(1))
        until(lambda: "question 1" in watcher.questions)
    assert console.get("/live").status == 200


def test_the_fifty_first_viewer_is_refused_until_one_leaves(console: Console) -> None:
    open_ones = []
    for _ in range(50):
        connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
        connection.request("GET", "/api/v1/live", None, console.session())
        answer = connection.getresponse()
        assert answer.status == 200
        open_ones.append((connection, answer))
    refused = console.get("/api/v1/live")
    assert (refused.status, "50 viewers" in refused.text) == (503, True)
    connection, answer = open_ones.pop()
    answer.close()
    connection.close()
    with watching(console) as watcher:
        watcher.connected()
    for connection, answer in open_ones:
        answer.close()
        connection.close()


def opened(console: Console, query: str = "") -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
    connection.request("GET", f"/api/v1/live{query}", None, console.session())
    return connection


def status(console: Console) -> int:
    """Status that a viewer gets who leaves at once."""
    connection = opened(console)
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def test_viewers_that_leave_while_redis_is_away_free_their_places(console: Console) -> None:
    """They come back with a position, as browsers do, and wait for what came after it."""
    [first, *_] = send(console.redis, *(event(number) for number in range(10)))
    with watching(console) as watcher:
        watcher.connected()
        console.redis.kill()
        leaving = [opened(console, f"?after={first}") for _ in range(55)]
        until(lambda: status(console) == 503, "the places are not taken")
        for each in leaving:
            each.close()
        until(lambda: status(console) == 200, "the places are not free again")
        with watching(console, f"?after={first}") as late:
            late.connected()
            until(lambda: ("state", {"redis": "away"}) in late.others)
            console.redis.start()
            until(lambda: len(late.messages) == 9)
            assert late.questions == [f"question {number}" for number in range(1, 10)]
            assert (late.connections, set(late.statuses)) == (1, {200})


def test_the_console_stops_in_order_while_viewers_wait_for_redis(console: Console) -> None:
    [first, *_] = send(console.redis, event(1), event(2))
    with watching(console) as watcher:
        watcher.connected()
        console.redis.kill()
        with watching(console, f"?after={first}") as late:
            until(lambda: ("state", {"redis": "away"}) in late.others)
            assert console.stop() == 0


def test_the_console_stops_in_order_while_someone_watches(console: Console) -> None:
    with watching(console) as watcher:
        watcher.connected()
        assert console.stop() == 0


def test_without_redis_the_page_says_so_and_the_stream_is_not_available(console: Console) -> None:
    console.redis.kill()
    page = console.get("/live")
    assert (page.status, "Redis does not answer" in page.text) == (200, True)
    assert console.get("/api/v1/live").status == 503
    console.redis.start()
    with watching(console) as watcher:
        watcher.connected()


def test_the_head_of_the_stream_is_refused_instead_of_never_ending(console: Console) -> None:
    assert console.request("HEAD", "/api/v1/live", "VIEWER", None).status == 404


def test_a_position_of_another_stream_is_refused(console: Console) -> None:
    for text in ("x", "1-0,2-0", "1", "-", "1-0,", "1-18446744073709551616", "99999999999999999999-0", "١-٠"):
        assert console.get(f"/api/v1/live?after={quote(text)}").status == 422, text


def test_a_trimmed_stream_is_told(console: Console) -> None:
    ids = send(console.redis, *(event(number) for number in range(20)))
    with console.redis.client() as client:
        client.xtrim(KEY, minid=ids[10], approximate=False)
    with watching(console, f"?after={ids[4]}") as watcher:
        until(lambda: len(watcher.messages) == 10)
        assert watcher.questions == [f"question {number}" for number in range(10, 20)]
        assert ("skipped", {"skipped": None}) in watcher.others


@given(st.lists(st.booleans(), max_size=1_500))
def test_a_slow_viewer_loses_the_oldest_and_is_told_how_many(wanted: list[bool]) -> None:
    viewer = Viewer(Wanted(project="shop"))
    for number, fits in enumerate(wanted):
        viewer.offer(entry_of(0, f"{number}-0", {b"data": event(number, project="shop" if fits else "other")}))
    fitting = [f"{number}-0" for number, fits in enumerate(wanted) if fits]
    assert [each.entry_id for each in viewer.queue] == fitting[-QUEUE_MAX:]
    assert viewer.skipped == max(0, len(fitting) - QUEUE_MAX)


def test_positions_are_read_back() -> None:
    assert parse_stream_position("1-0,22-3", 2) == ("1-0", "22-3")
    assert parse_stream_position("1-0", 2) is None
