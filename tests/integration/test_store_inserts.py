"""Inserts into the embedded store say the truth: what was written, what was refused, and that a broken-off one wrote nothing."""

import re
import socket
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator

import clickhouse_connect
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from tests.support.store import PASSWORD, StoreServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    with StoreServer(tmp_path_factory.mktemp("store")) as server:
        yield server


@pytest.fixture
def client(server: StoreServer) -> Iterator[Client]:
    client = clickhouse_connect.get_client(host="127.0.0.1", port=server.port, username="owner", password=PASSWORD)
    client.command(
        "CREATE OR REPLACE TABLE t (x Int64, CONSTRAINT small CHECK x < 1000000) ENGINE = MergeTree ORDER BY x"
    )
    yield client
    client.close()


def lines(start: int, count: int) -> bytes:
    return b"".join(b'{"x":%d}\n' % x for x in range(start, start + count))


def test_the_rows_written_are_the_rows_sent_in_many_blocks(client: Client) -> None:
    summary = client.raw_insert(
        "t", insert_block=lines(0, 300_000), fmt="JSONEachRow", settings={"max_insert_block_size": 50_000}
    )
    assert summary.written_rows == 300_000
    assert client.command("SELECT count() FROM t") == 300_000


@pytest.mark.parametrize("rows", [1, 100_000])
def test_rows_that_break_a_constraint_are_refused_aloud(client: Client, rows: int) -> None:
    with pytest.raises(DatabaseError, match="469"):
        client.raw_insert("t", insert_block=lines(1_000_000, rows), fmt="JSONEachRow")
    assert client.command("SELECT count() FROM t") == 0


def test_rows_for_more_partitions_than_allowed_are_refused_aloud(client: Client) -> None:
    client.command("CREATE OR REPLACE TABLE p (x Int64) ENGINE = MergeTree PARTITION BY x ORDER BY x")
    with pytest.raises(DatabaseError, match="252"):
        client.raw_insert("p", insert_block=lines(0, 500), fmt="JSONEachRow")
    assert client.command("SELECT count() FROM p") == 0


def test_a_statement_with_settings_keeps_them(client: Client) -> None:
    sql = 'INSERT INTO t SETTINGS input_format_skip_unknown_fields = 1 FORMAT JSONEachRow\n{"x":1,"other":2}'
    client.command(sql)
    assert client.command("SELECT count() FROM t") == 1


def test_an_insert_into_a_table_that_is_not_there_fails_at_once(client: Client) -> None:
    with pytest.raises(DatabaseError, match="60"):
        client.raw_insert("nowhere", insert_block=lines(0, 10), fmt="JSONEachRow")


def bytes_in_the_engine(server: StoreServer) -> float:
    """Bytes of rows that the store has passed to its engine so far."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as answer:
        found = re.search(r"^assay_store_received_bytes_total (\S+)$", answer.read().decode(), re.MULTILINE)
    assert found
    return float(found[1])


@pytest.mark.parametrize("in_the_engine", [False, True], ids=["before the engine has any of it", "half in the engine"])
def test_an_insert_that_is_broken_off_writes_nothing_and_frees_the_writer(
    server: StoreServer, client: Client, in_the_engine: bool
) -> None:
    body = (
        lines(0, 400_000) * 4 if in_the_engine else lines(0, 10)
    )  # more, and less, than the store gathers before it inserts
    before = bytes_in_the_engine(server)
    secret = b64encode(f"owner:{PASSWORD}".encode()).decode()
    head = f"POST /?query=INSERT%20INTO%20t%20FORMAT%20JSONEachRow HTTP/1.1\r\nHost: store\r\nAuthorization: Basic {secret}\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(f"{head}Content-Length: {2 * len(body)}\r\n\r\n".encode() + body)
        deadline = time.monotonic() + 60
        while in_the_engine and bytes_in_the_engine(server) == before:
            assert time.monotonic() < deadline, "nothing reached the engine"
            time.sleep(0.02)
    assert (bytes_in_the_engine(server) > before) is in_the_engine
    summary = client.raw_insert("t", insert_block=lines(7, 1), fmt="JSONEachRow")
    assert summary.written_rows == 1
    assert client.query("SELECT x FROM t").result_rows == [(7,)]


def test_an_insert_of_no_rows_writes_none(client: Client) -> None:
    assert client.raw_insert("t", insert_block=b"", fmt="JSONEachRow").written_rows == 0
