"""The faulty network itself, against a real Redis: a fault that is none would prove nothing."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis
from clickhouse_connect.driver.exceptions import DatabaseError

from assay_runtime.store import connect
from tests.chaos import clocks
from tests.chaos.proxy import Proxy, store_error
from tests.support.redis import RedisServer
from tests.support.store import StoreServer
from tests.support.wait import until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreServer]:
    with StoreServer(tmp_path / "store") as server:
        yield server


@pytest.fixture
def network(redis_server: RedisServer) -> Iterator[Proxy]:
    proxy = Proxy(redis_server.port).start()
    yield proxy
    proxy.stop()


@pytest.fixture
def client(network: Proxy) -> Iterator["redis.Redis"]:
    with redis.Redis(port=network.port, socket_timeout=60, retry=None) as client:
        yield client


def test_an_ordinary_network_passes_everything_both_ways(client: "redis.Redis") -> None:
    client.set("large", b"x" * 3_000_000)
    assert client.strlen("large") == 3_000_000
    assert client.get("large") == b"x" * 3_000_000


def test_a_cut_ends_connections_and_new_ones_work(
    network: Proxy, connection: socket.socket, client: "redis.Redis"
) -> None:
    network.cut()
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(100) == b""
    assert client.ping()


@pytest.fixture
def connection(network: Proxy) -> Iterator[socket.socket]:
    """A connection that works, to see what does not arrive."""
    with socket.create_connection(("127.0.0.1", network.port), timeout=60) as connection:
        connection.sendall(b"PING\r\n")
        assert connection.recv(100) == b"+PONG\r\n"
        yield connection


def hears_nothing(connection: socket.socket) -> None:
    connection.settimeout(0.5)
    with pytest.raises(TimeoutError):
        connection.recv(100)
    connection.settimeout(60)


def test_a_deaf_network_delivers_requests_and_no_answers(
    network: Proxy, connection: socket.socket, redis_server: RedisServer
) -> None:
    network.deaf = True
    connection.sendall(b"SET heard 1\r\n")
    with redis_server.client() as direct:
        until(lambda: direct.get("heard") == b"1")
    hears_nothing(connection)


def test_a_silent_network_delivers_late(network: Proxy, connection: socket.socket, redis_server: RedisServer) -> None:
    network.silent = True
    connection.sendall(b"SET late 1\r\n")
    with redis_server.client() as direct:
        hears_nothing(connection)
        assert direct.get("late") is None
        network.silent = False
        until(lambda: direct.get("late"))
    assert connection.recv(100) == b"+OK\r\n"


def test_a_refusing_network_lets_nobody_in(network: Proxy, client: "redis.Redis") -> None:
    network.refusing = True
    with pytest.raises(redis.ConnectionError):
        client.ping()
    network.heal()
    assert client.ping()


def test_something_can_happen_in_place_of_an_answer(
    network: Proxy, client: "redis.Redis", redis_server: RedisServer
) -> None:
    client.ping()
    happened = threading.Event()
    network.instead_of_answer = happened.set
    with pytest.raises(redis.ConnectionError):
        client.set("taken", 1)
    assert happened.is_set()
    with redis_server.client() as direct:
        assert direct.get("taken") == b"1"
    assert client.ping()


def test_a_store_error_reads_as_an_answer_of_http() -> None:
    head, _, body = store_error(201, "QUOTA_EXCEEDED").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 500 ")
    assert b"X-ClickHouse-Exception-Code: 201" in head
    assert f"Content-Length: {len(body)}".encode() in head


def test_inserts_can_be_refused_while_everything_else_passes(store: StoreServer) -> None:
    proxy = Proxy(store.port).start()
    try:
        settings = store.settings().store.model_copy(update={"url": f"http://127.0.0.1:{proxy.port}"})
        with closing(connect(settings, database="default")) as client:
            client.command("CREATE TABLE t (x UInt8) ENGINE = Memory")
        proxy.answer_to_inserts = store_error(252, "TOO_MANY_PARTS")
        with closing(connect(settings, database="default")) as client:
            with pytest.raises(DatabaseError, match="TOO_MANY_PARTS"):
                client.raw_insert("t", insert_block=b'{"x":1}\n', fmt="JSONEachRow")
            assert client.command("SELECT count() FROM t") == 0
        proxy.heal()
        with closing(connect(settings, database="default")) as client:
            client.raw_insert("t", insert_block=b'{"x":1}\n', fmt="JSONEachRow")
            assert client.command("SELECT count() FROM t") == 1
    finally:
        proxy.stop()


@pytest.mark.skipif(bool(clocks.missing()), reason=clocks.missing())
def test_a_process_goes_by_a_clock_of_its_own_that_can_be_stepped(tmp_path: Path) -> None:
    clock = clocks.Clock(tmp_path, "x")
    environment = {**os.environ, **clock.environment}
    says = "import time, datetime; print(time.time(), datetime.datetime.now().timestamp(), time.monotonic())"
    for offset_s in (0, -93_600, 3_600):
        clock.step(offset_s)
        told = subprocess.run(
            [sys.executable, "-c", says], env=environment, capture_output=True, check=True, timeout=60
        )
        now, same, span = map(float, told.stdout.split())
        assert abs(now - time.time() - offset_s) < 60
        assert abs(same - now) < 60
        assert abs(span - time.monotonic()) < 60
