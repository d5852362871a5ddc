"""The store client: exact inserts, and what each error means. The errors are the engine's and the network's own."""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from assay_runtime.store import Client, WrittenRowsError, connect, describe, insert_json_rows, reason_of
from assay_runtime.store_errors import REASONS
from assay_schema.failures import Reason
from assay_schema.settings import SettingsError, StoreSettings
from tests.support.ports import free_port
from tests.support.sample_rows import candidate, feedback, lines
from tests.support.store import StoreServer

TABLE = "assay_base.candidates"


@pytest.fixture(scope="module")
def client(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings("writer").store) as client:
        yield client


@pytest.fixture(scope="module")
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        yield client


def error_of(act: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as raised:  # noqa: PT011  # its meaning is what is tested
        act()
    assert isinstance(raised.value, Exception)
    return raised.value


def put(client: Client, *rows: dict[str, Any], table: str = TABLE) -> None:
    insert_json_rows(client, table, lines(list(rows)), len(rows))


def count(client: Client, condition: str) -> int:
    return int(client.query(f"SELECT count() FROM candidates WHERE {condition}").result_rows[0][0])  # noqa: S608


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that accepts connections and does to each what `answer` does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with closing(connection), suppress(OSError):  # whoever asked may be gone
                    answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy(port: int, change: Callable[[str, str], str | None]) -> Iterator[str]:
    """A proxy in front of the store that may change or drop headers of its answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as upstream:
                upstream.request(self.command, self.path, body, dict(self.headers))
                answer = upstream.getresponse()
                content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                    changed = change(name, value)
                    if changed is not None:
                        self.send_header(name, changed)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST  # noqa: N815  # the base class's name

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def silence(connection: socket.socket) -> None:
    connection.settimeout(60)
    while connection.recv(65_536):
        pass


def hang_up(connection: socket.socket) -> None:
    connection.close()


def status(code: int) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(f"HTTP/1.1 {code} Status\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy".encode())

    return answer


def test_a_batch_is_written_and_an_empty_one_is_no_request(client: Client, owner: Client) -> None:
    put(client, candidate(1, project="written"), candidate(2, project="written"))
    insert_json_rows(client, "no.such_table", b"", 0)
    assert count(owner, "project = 'written'") == 2


def test_a_batch_sent_again_is_shown_once(client: Client, owner: Client) -> None:
    rows = [candidate(number, project="again") for number in range(3)]
    owner.command(
        f"ALTER TABLE {TABLE} MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1"
    )  # copies stay copies
    put(client, *rows)
    put(client, *rows)
    base = owner.query("SELECT count() FROM assay_base.candidates WHERE project = 'again'").result_rows[0][0]
    assert (base, count(owner, "project = 'again'")) == (6, 3)


def test_copies_within_one_batch_wait_for_a_merge_and_are_shown_once(client: Client, owner: Client) -> None:
    owner.command(f"ALTER TABLE {TABLE} MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1")
    row = candidate(1, project="within")
    put(client, row, row)
    base = owner.query("SELECT count() FROM assay_base.candidates WHERE project = 'within'").result_rows[0][0]
    assert (base, count(owner, "project = 'within'")) == (2, 1)


def test_no_table_recognises_a_repeated_insert_by_itself(owner: Client) -> None:
    tables = owner.query("SELECT name, engine_full FROM system.tables WHERE database = 'assay_base'").result_rows
    assert len(tables) > 10
    assert [name for name, engine in tables if "deduplication_window = 1" in engine] == []


@pytest.mark.parametrize("reported", ['{"written_rows":"1"}', None], ids=["fewer rows", "no summary"])
def test_success_reported_for_another_number_of_rows_is_an_error_of_its_own(
    migrated: StoreServer, reported: str | None
) -> None:
    def change(name: str, value: str) -> str | None:
        return reported if name.lower() == "x-clickhouse-summary" else value

    with (
        proxy(migrated.port, change) as url,
        connect(migrated.settings("writer", url=url).store) as client,
        pytest.raises(WrittenRowsError, match=r"sent 2 rows, the store reports [01]; nothing of the batch is ack"),
    ):
        put(client, candidate(), candidate(1))


def test_an_unreachable_store_is_db_down(migrated: StoreServer) -> None:
    def connecting(url: str) -> Callable[[], object]:
        return lambda: connect(StoreSettings(url=url, timeout_s=1))

    assert reason_of(error_of(connecting(f"http://127.0.0.1:{free_port()}"))) is Reason.DB_DOWN
    assert reason_of(error_of(connecting("http://no-such-host.invalid:8123"))) is Reason.DB_DOWN
    for answer in (silence, hang_up, status(503), status(502), status(429)):
        with listening(answer) as url:
            assert reason_of(error_of(connecting(url))) is Reason.DB_DOWN


def test_a_store_that_is_killed_is_db_down_until_it_is_back(
    migrated: StoreServer, client: Client, owner: Client
) -> None:
    row = candidate(project="killed")
    migrated.kill()
    assert reason_of(error_of(lambda: put(client, row))) is Reason.DB_DOWN
    migrated.start()
    put(client, row)
    assert count(owner, "project = 'killed'") == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT groupArray(number) FROM numbers(10000000) SETTINGS max_memory_usage = 1000000",
        "SELECT sleepEachRow(0.2) FROM numbers(20) SETTINGS max_execution_time = 1, max_block_size = 1",
    ],
    ids=["memory limit", "time-out"],
)
def test_a_store_at_its_limits_is_db_down(owner: Client, sql: str) -> None:
    assert reason_of(error_of(lambda: owner.query(sql))) is Reason.DB_DOWN


def test_a_refused_user_or_right_is_rls_reject(migrated: StoreServer) -> None:
    def wrong_password() -> object:
        return connect(migrated.settings("nobody").store)

    assert reason_of(error_of(wrong_password)) is Reason.RLS_REJECT
    with listening(status(403)) as url:
        assert reason_of(error_of(lambda: connect(StoreSettings(url=url)))) is Reason.RLS_REJECT
    with connect(migrated.settings("evaluator").store) as evaluator:
        assert reason_of(error_of(lambda: put(evaluator, candidate()))) is Reason.RLS_REJECT


@pytest.mark.parametrize(
    "fields",
    [
        {"query": "x" * 51_201},
        {"id": "seven"},
        {"id": -1},
        {"tool_name": "delete"},
        {"tool_name": None},
        {"query": None},
        {"event_id": "no-uuid"},
        {"retrieved_chunk_ids": "no-list"},
        {"vector_enabled": "perhaps"},
        {"created_at": "yesterday"},
        {"pii_families": [1]},
        {"latency_ms": "slow"},
    ],
    ids=lambda fields: ",".join(f"{name}={str(value)[:8]}" for name, value in fields.items()),
)
def test_a_row_the_table_refuses_is_check_violation_and_stores_nothing(
    client: Client, owner: Client, fields: dict[str, Any]
) -> None:
    good, bad = candidate(project="violated"), candidate(1, project="violated")
    error = error_of(lambda: put(client, good, {**bad, **fields}))
    assert (reason_of(error), count(owner, "project = 'violated'")) == (Reason.CHECK_VIOLATION, 0)


def test_a_schema_that_lacks_what_the_code_needs_is_other_so_that_no_row_is_blamed(
    client: Client, owner: Client
) -> None:
    new_column = error_of(lambda: put(client, candidate(column_of_tomorrow=1)))
    new_table = error_of(lambda: put(owner, feedback(), table="assay_base.table_of_tomorrow"))
    assert (reason_of(new_column), reason_of(new_table)) == (Reason.OTHER, Reason.OTHER)


def test_an_error_keeps_its_meaning_however_it_was_wrapped(client: Client) -> None:
    def wrapped() -> None:
        try:
            put(client, candidate(query="x" * 51_201))
        except Exception as error:
            raise RuntimeError("batch failed") from error

    assert reason_of(error_of(wrapped)) is Reason.CHECK_VIOLATION
    assert reason_of(ConnectionResetError()) is Reason.DB_DOWN
    assert reason_of(KeyError("x")) is Reason.OTHER


def test_the_description_of_an_error_names_the_rule_and_never_quotes_the_row(client: Client) -> None:
    secret = "hunter2"
    for fields, expected in (
        ({"query": secret * 10_000}, ("VIOLATED_CONSTRAINT", "violates the constraint query_length")),
        ({"tool_name": secret}, ("UNKNOWN_ELEMENT_OF_ENUM", "code 691")),
    ):
        error = error_of(lambda fields=fields: put(client, candidate(**fields)))  # type: ignore[misc]
        assert secret in str(error), "the engine quotes rows, so its message must never be kept"
        assert describe(error) == expected


def test_every_code_has_the_name_the_engine_gives_it(owner: Client) -> None:
    from assay_runtime import store_errors

    ours = {
        code: name
        for table in (store_errors.DOWN, store_errors.REFUSED, store_errors.VIOLATED)
        for name, code in table.items()
    }
    assert ours.keys() == REASONS.keys(), "no code has two meanings"
    engine = owner.query(
        "SELECT code, errorCodeToName(code) FROM (SELECT arrayJoin({codes:Array(UInt32)}) AS code)",
        parameters={"codes": list(ours)},
    ).result_rows
    assert ours == dict(engine)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8123", "clickhouse://host", "http://", "http://user:pw@host:8123", "http://host:port"]
)
def test_an_address_that_is_none_names_the_setting(url: str) -> None:
    with pytest.raises(SettingsError, match=r"store\.url \(or ASSAY_STORE_URL\)"):
        connect(StoreSettings(url=url))
