"""The embedded store as a ClickHouse server: the real client, curl and plain HTTP against a real process."""

import asyncio
import base64
import http.client
import json
import subprocess
import time
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing

import clickhouse_connect
import lz4.frame
import psutil
import pytest
from backports import zstd
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError
from clickhouse_connect.driver.external import ExternalData

from tests.programs import found, lacking
from tests.support.store import PASSWORD, ROLES, StoreServer
from tests.support.wait import until

BASIC = "Basic " + base64.b64encode(f"owner:{PASSWORD}".encode()).decode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    server = StoreServer(tmp_path_factory.mktemp("protocol")).start()
    try:
        yield server
    finally:
        server.stop()


def _client(server: StoreServer, role: str = "owner", **options: object) -> Client:
    return clickhouse_connect.get_client(
        host="127.0.0.1", port=server.port, username=role, password=PASSWORD, **options
    )  # type: ignore[arg-type]


def _post(
    server: StoreServer, body: bytes, headers: dict[str, str] | None = None, **url: str
) -> tuple[int, dict[str, str], bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request(
            "POST", "/?" + urllib.parse.urlencode(url), body, {"Authorization": BASIC, **(headers or {})}
        )
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def _resident(server: StoreServer) -> int:
    [holder] = [
        connection.pid
        for connection in psutil.net_connections("tcp4")
        if connection.status == "LISTEN" and connection.laddr.port == server.port
    ]
    return int(psutil.Process(holder).memory_info().rss)


@pytest.mark.parametrize("compression", [False, "lz4", "zstd", "gzip"])
def test_an_insert_of_many_blocks_is_written_whole_and_says_so(server: StoreServer, compression: str | bool) -> None:
    """The client sends one frame per block; a server that reads only the first would store 4,096 rows and say 200."""
    count = 100_000
    with _client(server, compress=compression) as client:
        client.command("CREATE OR REPLACE TABLE many (id UInt64, text String) ENGINE = MergeTree ORDER BY id")
        summary = client.insert("many", [[number, f"text {number}"] for number in range(count)], ["id", "text"])
        assert summary.written_rows == count
        assert client.query("SELECT count(), uniqExact(id), sum(id) FROM many").result_rows == [
            (count, count, count * (count - 1) // 2)
        ]


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("lz4", lambda rows: lz4.frame.compress(rows[:50]) + lz4.frame.compress(rows[50:])),
        ("zstd", lambda rows: zstd.compress(rows[:50]) + zstd.compress(rows[50:])),
        ("gzip", lambda rows: _gzip(rows[:50]) + _gzip(rows[50:])),
        ("deflate", zlib.compress),
        ("identity", bytes),
    ],
)
def test_rows_pass_through_in_every_encoding(
    server: StoreServer, encoding: str, encode: Callable[[bytes], bytes]
) -> None:
    rows = b"".join(json.dumps({"id": number}).encode() + b"\n" for number in range(100))
    _post(server, b"CREATE OR REPLACE TABLE passed (id UInt64) ENGINE = Memory")
    status, headers, text = _post(
        server,
        encode(rows),
        {"Content-Encoding": encoding},
        query="INSERT INTO passed FORMAT JSONEachRow",
    )
    assert status == 200, text
    assert json.loads(headers["x-clickhouse-summary"])["written_rows"] == "100"
    assert _post(server, b"SELECT count(), sum(id) FROM passed")[2] == b"100\t4950\n"


def _gzip(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=31)
    return compressor.compress(data) + compressor.flush()


def test_a_body_cut_off_inside_a_frame_stores_nothing(server: StoreServer) -> None:
    _post(server, b"CREATE OR REPLACE TABLE cut (id UInt64) ENGINE = MergeTree ORDER BY id")
    body = lz4.frame.compress(b'{"id": 1}\n' * 1000)[:-8]
    status, headers, _ = _post(server, body, {"Content-Encoding": "lz4"}, query="INSERT INTO cut FORMAT JSONEachRow")
    assert (status, headers["x-clickhouse-exception-code"]) == (400, "117")
    assert _post(server, b"SELECT count() FROM cut")[2] == b"0\n"


def test_an_upload_cut_off_by_a_lost_connection_stores_nothing(server: StoreServer) -> None:
    _post(server, b"CREATE OR REPLACE TABLE lost (id UInt64) ENGINE = MergeTree ORDER BY id")
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.putrequest("POST", "/?query=INSERT+INTO+lost+FORMAT+JSONEachRow")
        connection.putheader("Authorization", BASIC)
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        rows = b'{"id": 1}\n' * 100
        connection.send(b"%x\r\n%b\r\n" % (len(rows), rows))
    deadline = time.monotonic() + 60
    while b"assay_store_running_requests 0.0" not in _metrics(server):
        assert time.monotonic() < deadline, "the cut-off request is still running"
    assert _post(server, b"SELECT count() FROM lost")[2] == b"0\n"


def test_rows_that_break_a_constraint_are_an_error_and_not_a_success(server: StoreServer) -> None:
    _post(
        server,
        b"CREATE OR REPLACE TABLE strict (id UInt64, CONSTRAINT small CHECK id < 10) ENGINE = MergeTree ORDER BY id",
    )
    status, headers, _ = _post(server, b'{"id": 1}\n{"id": 11}\n', query="INSERT INTO strict FORMAT JSONEachRow")
    assert (status, headers["x-clickhouse-exception-code"]) == (500, "469")
    assert _post(server, b"SELECT count() FROM strict")[2] == b"0\n"


def _metrics(server: StoreServer) -> bytes:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("GET", "/metrics")
        return connection.getresponse().read()


@pytest.mark.parametrize("encoding", ["", "lz4", "zstd", "gzip", "deflate"])
def test_results_are_compressed_as_the_client_asks(server: StoreServer, encoding: str) -> None:
    decode = {"": bytes, "lz4": lz4.frame.decompress, "zstd": zstd.decompress, "deflate": zlib.decompress}.get(
        encoding, lambda data: zlib.decompress(data, 31)
    )
    _, headers, data = _post(
        server, b"SELECT number FROM numbers(300000)", {"Accept-Encoding": encoding}, enable_http_compression="1"
    )
    assert headers.get("content-encoding", "") == encoding
    assert decode(data).count(b"\n") == 300_000


def test_values_and_inline_rows_and_odd_bytes_arrive_as_sent(server: StoreServer) -> None:
    _post(server, b"CREATE OR REPLACE TABLE odd (a UInt8, b String) ENGINE = Memory")
    assert _post(server, b"INSERT INTO odd VALUES (1, 'FORMAT CSV'), (2, '\xff\xfe\x00')")[0] == 200
    assert _post(server, b"INSERT INTO odd FORMAT RowBinary\n\x03\x02\x00\xff")[0] == 200
    assert _post(server, b"4,x\n", query="INSERT INTO odd FORMAT CSV")[0] == 200
    assert _post(server, b"SELECT a, hex(b) FROM odd ORDER BY a")[2] == (
        b"1\t464F524D415420435356\n2\tFFFE00\n3\t00FF\n4\t78\n"
    )


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("TabSeparated", b"0\ta\n1\ta\n"),
        ("CSVWithNames", b'"number","a"\n0,"a"\n1,"a"\n'),
        ("JSONEachRow", b'{"number":0,"a":"a"}\n{"number":1,"a":"a"}\n'),
        ("JSONCompactEachRow", b'[0, "a"]\n[1, "a"]\n'),
    ],
)
def test_formats_come_from_the_query_the_url_or_the_header(server: StoreServer, output: str, expected: bytes) -> None:
    sql = b"SELECT number, 'a' AS a FROM numbers(2)"
    for _, headers, data in (
        _post(server, sql + f" FORMAT {output}".encode()),
        _post(server, sql, default_format=output),
        _post(server, sql, {"X-ClickHouse-Format": output}),
    ):
        assert (headers["x-clickhouse-format"], data) == (output, expected)


def test_one_document_formats_are_one_document_however_long(server: StoreServer) -> None:
    _, _, data = _post(server, b"SELECT number FROM numbers(200000) FORMAT JSONCompact")
    assert json.loads(data)["rows"] == 200_000
    _, _, data = _post(server, b"SELECT number FROM numbers(200000) FORMAT CSVWithNames")
    assert data.count(b"number") == 1


def test_parameters_are_values_never_text(server: StoreServer) -> None:
    with _client(server) as client:
        values = {"n": 4, "s": "it's\n\\ a \ttab'; DROP TABLE x", "l": ["a'b", "c\\d"], "none": None}
        found = client.query("SELECT {n:Int32} + 1, {s:String}, {l:Array(String)}, {none:Nullable(Int8)}", values)
        assert found.result_rows == [(5, values["s"], values["l"], None)]


def test_settings_of_a_request_end_with_it(server: StoreServer) -> None:
    ask = b"SELECT getSetting('max_block_size')"
    usual = _post(server, ask)[2]
    assert _post(server, ask, max_block_size="777")[2] == b"777\n"
    assert [_post(server, ask)[2] for _ in range(10)] == [usual] * 10
    status, headers, _ = _post(server, ask, no_such_setting="1")
    assert (status, headers["x-clickhouse-exception-code"]) == (404, "115")


def test_a_query_leaves_nothing_for_the_next_one_of_its_role(server: StoreServer) -> None:
    sre = {"Authorization": "Basic " + base64.b64encode(f"sre:{PASSWORD}".encode()).decode()}

    def asked(sql: bytes, **url: str) -> bytes:
        return _post(server, sql, sre, **url)[2]

    state = b"SELECT groupArray((name, value)), currentDatabase(), currentRoles() FROM system.settings WHERE name != 'log_comment'"
    usual = asked(state)
    assert b"max_block_size" in usual
    for sql, url in (
        (b"SELECT 1 SETTINGS max_block_size = 77", {}),
        (b"SELECT x FROM (SELECT 1 AS x SETTINGS max_block_size = 78)", {}),
        (b"SELECT 1", {"max_block_size": "79"}),
        (b"SELECT {value:UInt8}", {"param_value": "5"}),
        (b"SELECT 1", {"database": "default"}),
        (b"SELECT throwIf(1) SETTINGS max_block_size = 80", {}),
        (b"SET max_block_size = 81", {}),
        (b"USE default", {}),
        (b"SET ROLE owner", {}),
    ):
        asked(sql, **url)
        assert [asked(state) for _ in range(3)] == [usual] * 3, sql
    assert b"`value` is not set" in asked(b"SELECT {value:UInt8}")


def test_a_session_keeps_settings_and_temporary_tables_and_nobody_else_sees_them(server: StoreServer) -> None:
    ask = b"SELECT getSetting('max_block_size')"
    session = {"session_id": "mine"}
    _post(server, b"CREATE TEMPORARY TABLE kept (a UInt8)", **session)
    _post(server, b"INSERT INTO kept VALUES (7)", **session)
    _post(server, b"SET max_block_size = 555", **session)
    assert _post(server, b"SELECT a FROM kept", **session)[2] == b"7\n"
    assert _post(server, ask, max_block_size="777", **session)[2] == b"777\n"
    assert _post(server, ask, **session)[2] == b"555\n"
    assert _post(server, b"SELECT a FROM kept")[1]["x-clickhouse-exception-code"] == "60"
    assert _post(server, b"SELECT a FROM kept", session_id="other")[1]["x-clickhouse-exception-code"] == "60"


def test_a_session_ends_after_its_time(server: StoreServer) -> None:
    _post(server, b"CREATE TEMPORARY TABLE short (a UInt8)", session_id="short", session_timeout="1")
    deadline = time.monotonic() + 60
    while True:
        time.sleep(1.2)  # to look is to use it, and it lasts for a second from its last use
        status, headers, _ = _post(
            server, b"SELECT a FROM short", session_id="short", session_check="1", session_timeout="1"
        )
        if status != 200:
            break
        assert time.monotonic() < deadline
    assert (status, headers["x-clickhouse-exception-code"]) == (500, "372")


def _people(rows: bytes = b"1\tann\n2\tbob\n") -> ExternalData:
    return ExternalData(file_name="people", data=rows, fmt="TSV", structure=["id UInt8", "name String"])


@pytest.mark.parametrize("role", ROLES)
def test_external_tables_come_with_a_query_and_go_with_it(server: StoreServer, role: str) -> None:
    """The client opens a session by default, and a session keeps its temporary tables."""
    with _client(server, role) as client:
        for rows, expected in ((b"1\tann\n2\tbob\n", "bob"), (b"2\tcarol\n", "carol")):
            found = client.query("SELECT name FROM people WHERE id = 2", external_data=_people(rows))
            assert found.result_rows == [(expected,)]
        assert "people" not in str(client.query("SHOW TABLES").result_rows)
        with pytest.raises(DatabaseError, match=r"[Uu]nknown table"):
            client.query("SELECT name FROM people")
        itself = client.query("SELECT a.name FROM people a JOIN people b USING id", external_data=_people())
        assert sorted(itself.result_rows) == [("ann",), ("bob",)]


def test_external_tables_are_gone_after_a_query_that_fails(server: StoreServer) -> None:
    for role in ROLES:
        with _client(server, role) as client:
            for _ in range(2):
                with pytest.raises(DatabaseError, match="395"):
                    client.query("SELECT throwIf(id = 2) FROM people", external_data=_people())
                with pytest.raises(DatabaseError, match=r"27|33|117"):
                    client.query("SELECT count() FROM people", external_data=_people(b"no number\tann\n"))
            assert client.query("SELECT count() FROM people", external_data=_people()).result_rows == [(2,)]


@pytest.mark.parametrize("role", ["owner", "writer", "sre"])
@pytest.mark.parametrize("session", [True, False])
def test_settings_of_a_request_hold_for_its_external_tables(server: StoreServer, role: str, session: bool) -> None:
    with _client(server, role, autogenerate_session_id=session) as client:
        found = client.query(
            "SELECT name FROM people",
            external_data=_people(b"broken\tann\n2\tbob\n"),
            settings={"input_format_allow_errors_num": 1},
        )
        assert found.result_rows == [("bob",)]
        with pytest.raises(DatabaseError):
            client.query("SELECT name FROM people", external_data=_people(b"broken\tann\n2\tbob\n"))


@pytest.mark.parametrize("role", ["owner", "sre"])
def test_external_tables_join_what_a_session_has(server: StoreServer, role: str) -> None:
    with _client(server, role) as client:
        client.command("SET max_block_size = 555")
        found = client.query("SELECT getSetting('max_block_size'), count() FROM people", external_data=_people())
        assert found.result_rows == [(555, 2)]
    with _client(server) as client:
        client.command("CREATE TEMPORARY TABLE kept (id UInt8)")
        client.command("INSERT INTO kept VALUES (2)")
        found = client.query("SELECT name FROM people WHERE id IN (SELECT id FROM kept)", external_data=_people())
        assert found.result_rows == [("bob",)]
        kept = ExternalData(file_name="kept", data=b"9\n", fmt="TSV", structure=["id UInt8"])
        with pytest.raises(DatabaseError, match="already exists"):
            client.query("SELECT id FROM kept", external_data=kept)
        assert client.query("SELECT id FROM kept").result_rows == [(2,)]


def test_a_select_without_rows_says_its_format(server: StoreServer) -> None:
    for sql in (b"SELECT 1 WHERE 0", b"SHOW TABLES LIKE 'nothing here'", b"SELECT 1 WHERE 0 FORMAT JSONEachRow"):
        status, headers, data = _post(server, sql)
        assert (status, data) == (200, b"")
        assert headers["x-clickhouse-format"] in ("TabSeparated", "JSONEachRow")
    for sql in (b"CREATE OR REPLACE TABLE no_result (a UInt8) ENGINE = Memory", b"SET max_threads = 1"):
        assert "x-clickhouse-format" not in _post(server, sql)[1]
    with _client(server) as client:
        assert client.command("SELECT 1 WHERE 0") == ""


def test_rows_after_with_and_insert_arrive_as_sent(server: StoreServer) -> None:
    _post(server, b"CREATE OR REPLACE TABLE ends (a String) ENGINE = Memory")
    for sql in (
        b"WITH 1 AS x INSERT INTO ends FORMAT TSV\na;\n",
        b"WITH x AS (SELECT 1) INSERT INTO ends FORMAT TSV\nb;\n",
        b"/* INSERT */ WITH 'INSERT INTO t FORMAT' AS insert INSERT INTO ends FORMAT RowBinary\n\x02\xff;",
    ):
        status, headers, text = _post(server, sql)
        assert (status, json.loads(headers.get("x-clickhouse-summary", "{}")).get("written_rows")) == (200, "1"), text
    assert _post(server, b"WITH 'd;' AS x INSERT INTO ends SELECT x")[0] == 200
    assert _post(server, b"SELECT hex(a) FROM ends ORDER BY a")[2].split() == [b"613B", b"623B", b"643B", b"FF3B"]


def test_bytes_in_a_statement_that_are_no_utf8_arrive_as_sent(server: StoreServer) -> None:
    assert _post(server, b"SELECT hex('\xff\xfe\x80')")[2] == b"FFFE80\n"
    assert _post(server, b"", query=b"SELECT hex('\xff')")[2] == b"FF\n"  # type: ignore[arg-type]
    _post(server, b"CREATE OR REPLACE TABLE raw (a String) ENGINE = Memory")
    assert _post(server, b"INSERT INTO raw SELECT '\xff\xfe'")[0] == 200
    assert _post(server, b"INSERT INTO raw SETTINGS log_queries = 0 FORMAT TSV\n\xff\n")[0] == 200
    assert _post(server, b"SELECT hex(a) FROM raw ORDER BY a")[2] == b"FF\nFFFE\n"


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/", 200, b"Ok.\n"),
        ("HEAD", "/", 200, b""),
        ("HEAD", "/?query=SELECT+1", 200, b""),
        ("OPTIONS", "/", 204, b""),
        ("OPTIONS", "/?query=SELECT+1", 204, b""),
    ],
)
def test_a_request_that_asks_nothing_is_answered_as_a_server_does(
    server: StoreServer, method: str, path: str, status: int, body: bytes
) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request(method, path, headers={"Authorization": BASIC} if "query" in path else {})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (status, body)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert not any(name.lower().startswith("access-control") for name in answer.headers)


def test_rows_of_a_slow_query_are_sent_as_they_come(server: StoreServer) -> None:
    """The query would take a minute; its first rows are read, and then the reader leaves."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        sql = b"SELECT sleepEachRow(0.05) + number FROM numbers(1200) SETTINGS max_block_size = 1"
        connection.request("POST", "/", sql, {"Authorization": BASIC})
        answer = connection.getresponse()
        assert answer.headers["X-ClickHouse-Format"] == "TabSeparated"
        assert [answer.readline() for _ in range(3)] == [b"0\n", b"1\n", b"2\n"]
        assert b"assay_store_running_requests 1.0" in _metrics(server), "the query had ended when its rows came"


def test_an_error_after_the_first_rows_of_a_slow_query_is_an_error_in_the_middle(server: StoreServer) -> None:
    sql = "SELECT sleepEachRow(0.02), throwIf(number = 100) FROM numbers(200)"
    with _client(server) as client, pytest.raises(StreamFailureError, match="395"):
        _ = client.query(sql, settings={"max_block_size": 1, "wait_end_of_query": 0}).result_rows


def test_a_million_rows_stream_both_ways_in_bounded_memory(server: StoreServer) -> None:
    with _client(server) as client:
        client.command("CREATE OR REPLACE TABLE wide (id UInt64, text String) ENGINE = MergeTree ORDER BY id")
        client.command("INSERT INTO wide SELECT number, repeat('x', 200) FROM numbers(1000000)")
        before = _resident(server)
        peak, rows = before, 0
        with client.query_row_block_stream("SELECT * FROM wide", settings={"max_threads": 1}) as stream:
            for block in stream:
                rows += len(block)
                peak = max(peak, _resident(server)) if rows % 10 == 0 or rows < 200_000 else peak
        assert rows == 1_000_000
        assert peak - before < 150 << 20, f"grew by {(peak - before) >> 20} MiB while sending 200 MB"


def test_a_long_upload_is_not_gathered_in_memory(server: StoreServer) -> None:
    _post(server, b"CREATE OR REPLACE TABLE sink (text String) ENGINE = Null")
    before, peak = 0, _resident(server)
    row = json.dumps({"text": "x" * 1000}).encode() + b"\n"
    piece = row * 1000

    def parts() -> Iterator[bytes]:
        nonlocal before, peak
        for number in range(400):
            if number % 25 == 0:
                peak = max(peak, _resident(server))
            if number == 100:
                before = peak  # what the engine takes to read and write blocks it has by now
            yield piece

    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=100)) as connection:
        connection.request(
            "POST",
            # The engine itself gathers blocks of 256 MiB before it writes, unless told otherwise.
            "/?query=INSERT+INTO+sink+FORMAT+JSONEachRow&min_insert_block_size_bytes=16777216",
            parts(),
            {"Authorization": BASIC},
            encode_chunked=True,
        )
        answer = connection.getresponse()
        answer.read()
    assert json.loads(answer.headers["X-ClickHouse-Summary"])["written_rows"] == "400000"
    assert peak - before < 150 << 20, f"grew by {(peak - before) >> 20} MiB while receiving further 300 MB"


def test_an_error_in_the_middle_of_a_result_reaches_the_client(server: StoreServer) -> None:
    sql = "SELECT number, throwIf(number = 5000000) FROM numbers(10000000)"
    for compression in (False, "lz4", "gzip"):
        with _client(server, compress=compression) as client, pytest.raises(DatabaseError, match="395"):
            client.query(sql)


def test_an_error_in_the_middle_stands_between_two_tags_and_the_body_has_no_end(server: StoreServer) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        sql = b"SELECT number, throwIf(number = 5000000) FROM numbers(10000000)"
        connection.request("POST", "/", sql, {"Authorization": BASIC})
        answer = connection.getresponse()
        tag = answer.headers["X-ClickHouse-Exception-Tag"].encode()
        with pytest.raises(http.client.IncompleteRead) as caught:
            answer.read()
    end = caught.value.partial[-2000:]
    message = end.partition(b"\r\n__exception__\r\n" + tag + b"\r\n")[2]
    text, _, closing_part = message.rpartition(b"\n" if not message.endswith(b"\n") else b"\r\n__exception__\r\n")
    assert b"Code: 395" in text
    assert end.endswith(tag + b"\r\n__exception__\r\n"), closing_part


def test_an_error_before_the_result_has_its_code_and_status(server: StoreServer) -> None:
    for sql, status, code in (
        (b"SELECT * FROM nothing_here", 404, "60"),
        (b"SELECT 1 +", 400, "62"),
        (b"", 400, "62"),
        (b"SELECT throwIf(1)", 500, "395"),
        (b"SELECT 1 FORMAT NoSuchFormat", 404, "73"),
    ):
        found, headers, text = _post(server, sql)
        assert (found, headers["x-clickhouse-exception-code"]) == (status, code), sql
        assert text.startswith(f"Code: {code}. DB::Exception: ".encode())
        assert b"(version " in text


def test_a_query_whose_client_left_is_cancelled(server: StoreServer) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        sql = b"SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number), 'left alone')"
        connection.request("POST", "/", sql, {"Authorization": BASIC})
        _until(server, b"1\n")
    _until(server, b"0\n")


def test_a_query_whose_client_left_before_it_began_is_cancelled(server: StoreServer) -> None:
    """Such a long list is read for a while before the engine runs the query."""
    numbers = ",".join(map(str, range(50_000)))
    sql = f"SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number), 'left alone', [{numbers}])"
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("POST", "/?max_query_size=1000000", sql.encode(), {"Authorization": BASIC})
        until(lambda: b"assay_store_running_requests 1.0" in _metrics(server), "it has not come")
    until(lambda: b"assay_store_running_requests 0.0" in _metrics(server), "it runs on", 60)


def _until(server: StoreServer, expected: bytes) -> None:
    running = b"SELECT count() FROM system.processes WHERE position(query, 'left alone') > 0 AND position(query, 'processes') = 0"
    deadline = time.monotonic() + 60
    while (found := _post(server, running)[2]) != expected:
        assert time.monotonic() < deadline, found


def test_the_query_id_is_the_clients_or_a_new_one(server: StoreServer) -> None:
    assert _post(server, b"SELECT 1", query_id="mine-1")[1]["x-clickhouse-query-id"] == "mine-1"
    first, second = (_post(server, b"SELECT 1")[1]["x-clickhouse-query-id"] for _ in range(2))
    assert first != second


def test_a_query_id_cannot_smuggle_a_header(server: StoreServer) -> None:
    _, headers, _ = _post(server, b"SELECT 1", query_id="a\r\nX-Mine: 1")
    assert "x-mine" not in headers
    assert headers["x-clickhouse-query-id"] == "a??X-Mine: 1"


def test_the_summary_counts_what_was_read(server: StoreServer) -> None:
    _, headers, _ = _post(server, b"SELECT sum(number) FROM numbers(1000000)", wait_end_of_query="1")
    summary = json.loads(headers["x-clickhouse-summary"])
    assert (summary["read_rows"], summary["result_rows"], summary["written_rows"]) == ("1000000", "1", "0")


def test_a_statement_that_is_too_long_is_refused_with_the_flag_to_raise(server: StoreServer) -> None:
    status, _, text = _post(server, b"SELECT '" + b"x" * (17 << 20) + b"'")
    assert status == 413
    assert b"--max-statement-bytes" in text


def test_many_readers_run_beside_a_writer(server: StoreServer) -> None:
    aiohttp_missing = not _has("aiohttp")
    if aiohttp_missing:
        pytest.skip("the asynchronous client needs aiohttp")

    async def run() -> list[int]:
        client = await clickhouse_connect.get_async_client(
            host="127.0.0.1", port=server.port, username="owner", password=PASSWORD, autogenerate_session_id=False
        )
        try:
            await client.command("CREATE OR REPLACE TABLE busy (id UInt64) ENGINE = MergeTree ORDER BY id")

            async def write() -> None:
                for batch in range(10):
                    rows = [[batch * 1000 + number] for number in range(1000)]
                    assert (await client.insert("busy", rows, ["id"])).written_rows == 1000

            async def read() -> int:
                return int((await client.query("SELECT count() FROM busy")).result_rows[0][0])

            results = await asyncio.gather(write(), *(read() for _ in range(50)))
            return [*results[1:], await read()]
        finally:
            await client.close()

    counts = asyncio.run(run())
    assert all(count % 1000 == 0 for count in counts)
    assert counts[-1] == 10_000


def _has(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


@pytest.mark.skipif(found("curl") is None, reason=lacking("curl"))
def test_curl_is_a_client_too(server: StoreServer) -> None:
    def curl(*arguments: str) -> str:
        command = ["curl", "-sS", "--max-time", "20", "-u", f"owner:{PASSWORD}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    assert curl(f"{server.url}/?query=SELECT+1") == "1\n"
    assert curl(server.url, "-d", "SELECT 'body'") == "body\n"
    assert curl("--compressed", f"{server.url}/?enable_http_compression=1", "-d", "SELECT 2") == "2\n"
    assert curl("-F", "t=1;filename=t", f"{server.url}/?query=SELECT+count()+FROM+t&t_structure=a+UInt8") == "1\n"
    assert curl(f"{server.url}/ping") == "Ok.\n"
    assert "HTTP/1.1 200" in curl("-I", f"{server.url}/?query=SELECT+1")


ZONED = """
SELECT toDateTime('2026-01-02 03:04:05', 'UTC') AS plain, 'DateTime' AS `DateTime`,
    toDateTime(1767322800, 'Asia/Tokyo') AS tokyo, ['x', '\\x08DateTime'] AS list,
    map('k', 1::Nullable(UInt8)) AS pairs, tuple(1 AS a, 'b') AS pair,
    toLowCardinality(toString(number)) AS low,
    CAST(NULL AS Nullable(Decimal(20, 2))) AS money, toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') AS id, toFixedString('ab', 3) AS fixed,
    CAST('a' AS LowCardinality(Nullable(String))) AS nothing, arrayMap(x -> (x, [toString(x)]), range(number % 3)) AS deep,
    toDateTime(1767322800, 'America/New_York') AS york
FROM numbers({rows})
"""


@pytest.mark.parametrize("rows", [1, 70_000])  # in one block, and in two
@pytest.mark.parametrize("role", ["owner", "sre"])
def test_times_keep_their_zone_for_a_client_that_names_a_protocol_version(
    server: StoreServer, role: str, rows: int
) -> None:
    with _client(server, role) as client:
        assert client.protocol_version == 54405
        found = client.query(ZONED.format(rows=rows), column_oriented=True)
        described = client.query(f"DESCRIBE ({ZONED.format(rows=rows)})").result_rows
        assert [kind.name for kind in found.column_types] == [row[1] for row in described]
        columns = dict(zip(found.column_names, found.result_columns, strict=True))
        assert {str(when.tzinfo) for when in columns["york"]} == {"America/New_York"}
        assert {when.isoformat() for when in columns["tokyo"]} == {"2026-01-02T12:00:00+09:00"}
        assert columns["low"][-1] == str(rows - 1)
        assert columns["deep"][-1] == [(x, [str(x)]) for x in range((rows - 1) % 3)]
        assert client.query("SELECT 1 WHERE 0").result_rows == []


@pytest.mark.parametrize("role", ["owner", "sre"])
@pytest.mark.parametrize(
    "end",
    [
        " SETTINGS max_threads = 1, limit = 1",
        " SETTINGS max_threads = 1 FORMAT Native",
        " FORMAT Native SETTINGS max_threads = 1",
        " UNION ALL SELECT toDateTime(0, 'Asia/Tokyo') SETTINGS max_threads = 1",
    ],
)
def test_times_keep_their_zone_in_a_query_with_settings_of_its_own(server: StoreServer, role: str, end: str) -> None:
    sql = f"SELECT toDateTime(0, 'Asia/Tokyo') AS settings{end}".encode()
    login = {"Authorization": "Basic " + base64.b64encode(f"{role}:{PASSWORD}".encode()).decode()}
    status, _, answer = _post(server, sql, login, client_protocol_version="54337", default_format="Native")
    assert status == 200, answer
    assert b"DateTime('Asia/Tokyo')" in answer


def test_times_of_tables_that_only_a_session_or_a_request_has_keep_their_zone(server: StoreServer) -> None:
    with _client(server) as client:
        client.command("CREATE TEMPORARY TABLE zoned (at DateTime('Asia/Tokyo'))")
        client.command("INSERT INTO zoned VALUES (1000000000)")
        assert str(client.query("SELECT at FROM zoned").result_rows[0][0].tzinfo) == "Asia/Tokyo"
        sent = ExternalData(
            file_name="sent", data=b"2026-01-02 03:04:05\n", fmt="TSV", structure=["at DateTime('Asia/Tokyo')"]
        )
        assert str(client.query("SELECT at FROM sent", external_data=sent).result_rows[0][0].tzinfo) == "Asia/Tokyo"


def test_a_block_has_its_information_where_a_protocol_version_is_named(server: StoreServer) -> None:
    sql = b"SELECT toDateTime(1676369730, 'Asia/Shanghai') AS dt FORMAT Native"
    assert _post(server, sql)[2].hex() == "0101026474084461746554696d65425feb63"
    version = {"client_protocol_version": "54337"}
    zoned = _post(server, sql, **version)[2]
    assert zoned.hex().startswith("010002ffffffff00" + "0101026474")
    assert zoned[14:39] == b"DateTime('Asia/Shanghai')"
    assert (
        _post(server, b"SHOW DATABASES LIKE 'default' FORMAT Native", **version)[2][:10].hex() == "010002ffffffff000101"
    )
    assert _post(server, b"(SELECT 1 AS x) FORMAT Native", **version)[2][8:] == b"\x01\x01\x01x\x05UInt8\x01"
    assert _post(server, b"SELECT 1 FORMAT Native", client_protocol_version="x")[0] == 400
