"""The embedded store among clients that send too much, too slowly or the wrong password: others notice nothing."""

import base64
import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.store import PASSWORD, StoreServer
from tests.support.wait import until

ENDLESS = b"SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))"


def _basic(role: str, password: str = PASSWORD) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{role}:{password}".encode()).decode()}


def _post(
    server: StoreServer, body: bytes, role: str = "owner", url: str = "/", password: str = PASSWORD
) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("POST", url, body, _basic(role, password))
        answer = connection.getresponse()
        return answer.status, answer.read()


def _get(server: StoreServer, path: str) -> bytes:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read()


@contextmanager
def _store(directory: Path, *options: str) -> Iterator[StoreServer]:
    with StoreServer(directory, *options) as server:
        assert _post(server, b"CREATE DATABASE assay_base")[0] == 200
        sql = b"CREATE TABLE assay_base.t (id UInt64, text String) ENGINE = MergeTree ORDER BY id"
        assert _post(server, sql)[0] == 200
        yield server


def _insert(server: StoreServer, role: str = "writer") -> None:
    assert _post(server, b"INSERT INTO assay_base.t FORMAT TSV\n1\ta\n", role) == (200, b"")


@contextmanager
def _begun(server: StoreServer, role: str, sql: str, rows: bytes) -> Iterator[http.client.HTTPConnection]:
    """A request whose body has begun and does not end."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.putrequest("POST", "/?query=" + sql.replace(" ", "+"))
        for name, value in (_basic(role) | {"Transfer-Encoding": "chunked"}).items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(b"%x\r\n%b\r\n" % (len(rows), rows))
        yield connection


def _raw(server: StoreServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def _rest(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    found = b""
    with suppress(ConnectionError):
        while piece := connection.recv(65536):
            found += piece
    return found


@pytest.mark.parametrize("of", ["one long", "many", "empty"])
def test_a_head_that_is_too_long_is_refused(tmp_path: Path, of: str) -> None:
    head = {"one long": b"X: " + b"x" * (4 << 20), "many": b"X: y\r\n" * 20_000, "empty": b"X: \r\n" * 500_000}[of]
    with _store(tmp_path, "--max-head-bytes", "100000") as server, closing(_raw(server)) as connection:
        with suppress(ConnectionError):
            connection.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\n" + head)
        assert _rest(connection)[:12] in (b"HTTP/1.1 431", b"")
        assert _get(server, "/ping") == b"Ok.\n"


def test_a_url_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with _store(tmp_path, "--max-head-bytes", "100000") as server:
        assert _post(server, b"", url="/?query=SELECT+1&" + "a=1&" * 2000)[0] == 400
        with closing(_raw(server)) as connection:
            connection.sendall(b"GET /?query=" + b"x" * 300_000)
            assert _rest(connection).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize("sent", [b"", b"GET /ping HTTP/1.1\r\nX: "])
def test_a_head_that_does_not_end_is_not_waited_for(tmp_path: Path, sent: bytes) -> None:
    with _store(tmp_path, "--head-timeout-seconds", "0.5") as server, closing(_raw(server)) as connection:
        connection.sendall(sent)
        assert _rest(connection)[:12] == (b"HTTP/1.1 408" if sent else b"")


def test_the_oldest_connection_without_a_request_makes_room(tmp_path: Path) -> None:
    with _store(tmp_path, "--max-idle-connections", "20") as server, ExitStack() as opened:
        connections = []
        for _ in range(60):
            connection = opened.enter_context(closing(_raw(server)))
            connection.sendall(b"GET /")
            connections.append(connection)
        assert [_rest(connection) for connection in connections[:40]] == [b""] * 40
        assert _get(server, "/ping") == b"Ok.\n"
        connections[-1].sendall(b"ping HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert _rest(connections[-1]).startswith(b"HTTP/1.1 200")


def test_failed_logins_are_slowed_counted_and_logged_without_what_was_sent(tmp_path: Path) -> None:
    with _store(tmp_path) as server:
        for role, password in (("owner", "wrong-secret"), ("secret-typed-as-name", PASSWORD)):
            status, said = _post(server, b"SELECT 1", role, password=password)
            assert (status, said[:9]) == (403, b"Code: 516")
        metrics = _get(server, "/metrics").decode()
        assert 'assay_store_failed_logins_total{user="owner"} 1.0' in metrics
        assert 'assay_store_failed_logins_total{user="unknown"} 1.0' in metrics
        quick = [line for line in metrics.splitlines() if 'query_seconds_bucket{kind="unknown",le="0.5"}' in line]
        assert quick[0].endswith(" 0.0"), "none was answered within half a second"
    log = (tmp_path / "store.log").read_text()
    assert "failed login of user 'owner' from 127.0.0.1" in log
    assert "failed login of a name that no user has" in log
    assert "secret" not in log


def test_a_user_has_so_many_sessions(tmp_path: Path) -> None:
    with _store(tmp_path, "--max-sessions-per-user", "3") as server:
        for number in range(3):
            assert _post(server, b"SELECT 1", "sre", f"/?session_id={number}")[0] == 200
        status, said = _post(server, b"SELECT 1", "sre", "/?session_id=3")
        assert (status, said[:9]) == (500, b"Code: 700")
        assert b"--max-sessions-per-user" in said
        assert _post(server, b"SELECT 1", "sre", "/?session_id=0")[0] == 200
        assert _post(server, b"SELECT 1", "writer", "/?session_id=3")[0] == 200
        assert _post(server, b"SELECT 1", "sre")[0] == 200


def test_uploads_of_others_take_no_place_of_the_writer(tmp_path: Path) -> None:
    """More of them than there are threads, each in the middle of its rows."""
    with _store(tmp_path, "--readers", "2") as server, ExitStack() as opened:
        for _ in range(4):
            begun = _begun(server, "sre", "INSERT INTO assay_base.t FORMAT TSV", b"1\ta\n")
            connection = opened.enter_context(begun)
            connection.send(b"0\r\n\r\n")
            assert connection.getresponse().status == 403
            opened.enter_context(_begun(server, "sre", "INSERT INTO assay_base.t FORMAT TSV", b"1\ta\n"))
            opened.enter_context(_begun(server, "owner", "INSERT INTO assay_base.t FORMAT TSV", b"1\ta\n"))
        _insert(server)


def test_queries_of_readers_take_no_place_of_the_writer(tmp_path: Path) -> None:
    with _store(tmp_path, "--readers", "2") as server, ExitStack() as opened:
        for _ in range(4):
            connection = opened.enter_context(closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)))
            connection.request("POST", "/", ENDLESS, _basic("exporter"))
        running = (
            b"SELECT count() FROM system.processes WHERE query LIKE '%sipHash64%' AND query NOT LIKE '%processes%'"
        )
        until(lambda: _post(server, running.replace(b"system.processes", b"system.metrics"), "writer"))
        until(lambda: b"assay_store_running_requests 4.0" in _get(server, "/metrics"))
        _insert(server)
        assert _post(server, b"SELECT count() FROM assay_base.t", "writer") == (200, b"1\n")
        assert b"assay_store_running_requests 4.0" in _get(server, "/metrics")


def test_a_client_that_reads_nothing_gives_up_its_thread(tmp_path: Path) -> None:
    with _store(tmp_path, "--readers", "1", "--body-timeout-seconds", "1") as server, ExitStack() as opened:
        for _ in range(3):
            connection = opened.enter_context(closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)))
            connection.request("POST", "/", b"SELECT repeat('x', 1000) FROM numbers(1000000000)", _basic("owner"))
        assert _post(server, b"SELECT 1") == (200, b"1\n")


def test_an_insert_a_byte_at_a_time_ends(tmp_path: Path) -> None:
    options = ("--body-timeout-seconds", "1", "--insert-buffer-bytes", "1000")
    with _store(tmp_path, *options) as server:
        rows = b"1\ta\n" * 1000
        with _begun(server, "owner", "INSERT INTO assay_base.t FORMAT TSV", rows) as connection:
            deadline = time.monotonic() + 60
            with suppress(ConnectionError):
                while b"assay_store_running_requests 0.0" not in _get(server, "/metrics"):
                    assert time.monotonic() < deadline, "the insert goes on"
                    connection.send(b"1\r\n1\r\n")
                    time.sleep(0.2)
        _insert(server, "owner")
        assert _post(server, b"SELECT count() FROM assay_base.t") == (200, b"1\n")


def test_a_result_that_is_waited_for_is_bounded(tmp_path: Path) -> None:
    with _store(tmp_path, "--max-result-buffer-bytes", "1000000") as server:
        url = "/?wait_end_of_query=1"
        assert _post(server, b"SELECT number FROM numbers(1000)", url=url)[0] == 200
        status, said = _post(server, b"SELECT repeat('x', 1000) FROM numbers(100000)", url=url)
        assert (status, said[:9]) == (500, b"Code: 396")


def test_rows_that_come_in_one_piece_with_their_statement_do_not_count_as_statement(tmp_path: Path) -> None:
    with _store(tmp_path) as server:
        rows = b"1\ta\n" * 50_000
        assert _post(server, b"INSERT INTO assay_base.t FORMAT TSV\n" + rows, "writer") == (200, b"")
        head = b"INSERT INTO assay_base.t " + b" " * 65_536 + b" FORMAT TSV\n"
        status, said = _post(server, head + rows, "writer")
        assert (status, b"--max-reader-statement-bytes" in said) == (413, True)


def test_a_statement_of_semicolons_and_blanks_is_read_once(tmp_path: Path) -> None:
    with _store(tmp_path) as server:
        assert _post(server, b"SELECT 1" + b"; " * 30_000, "sre") == (200, b"1\n")
        status, said = _post(server, b"SELECT 1" + b" " * 300_000, "sre")
        assert (status, b"--max-reader-statement-bytes" in said) == (413, True)
