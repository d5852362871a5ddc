"""What each role of the embedded store may do, tried by every route known. Rows of the base tables are marked, so that a leak shows."""

import base64
import http.client
import urllib.parse
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.store import PASSWORD, StoreServer

MARK = "base-row-mark"
"""Stands only in base rows that no view shows."""

DENIED = {"497", "164", "452"}
"""ACCESS_DENIED, READONLY, SETTING_CONSTRAINT_VIOLATION."""


def ask(
    server: StoreServer,
    role: str,
    sql: str | bytes,
    *,
    method: str = "POST",
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    **url: str,
) -> tuple[str, str]:
    """The exception code ("" for none) and the body of an answer."""
    authorization = "Basic " + base64.b64encode(f"{role}:{PASSWORD}".encode()).decode()
    headers = {"Authorization": authorization, **(headers or {})}
    if body is not None:
        url["query"] = sql if isinstance(sql, str) else sql.decode()
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request(
            method,
            "/?" + urllib.parse.urlencode(url),
            body if body is not None else sql.encode() if isinstance(sql, str) else sql,
            headers,
        )
        answer = connection.getresponse()
        return answer.headers.get("X-ClickHouse-Exception-Code", ""), answer.read().decode("utf-8", "replace")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    directory: Path = tmp_path_factory.mktemp("rights")
    server = StoreServer(directory).start()
    try:
        for sql in (
            "CREATE DATABASE assay",
            "CREATE DATABASE assay_base",
            "CREATE TABLE assay_base.t (id UInt64, s String, v UInt64) ENGINE = ReplacingMergeTree(v) ORDER BY id",
            "CREATE TABLE assay_base.j (id UInt64, s String) ENGINE = Join(ANY, LEFT, id)",
            "CREATE VIEW assay.t DEFINER = CURRENT_USER SQL SECURITY DEFINER AS SELECT id FROM assay_base.t FINAL",
            f"INSERT INTO assay_base.t VALUES (1, '{MARK}', 1), (2, '{MARK}', 1)",
            f"INSERT INTO assay_base.j VALUES (1, '{MARK}')",
        ):
            assert ask(server, "owner", sql) == ("", "")
        (directory / "secret").write_text(MARK)
        yield server
    finally:
        server.stop()


READERS = ("sre", "exporter")

BASE_ROWS = [
    "SELECT * FROM assay_base.t",
    "SELECT * FROM `assay_base`.`t`",
    'SELECT * FROM "assay_base"."t"',
    "SELECT * FROM /**/ assay_base . t",
    "SELECT (SELECT any(s) FROM assay_base.t)",
    "SELECT id FROM t WHERE id IN (SELECT id FROM assay_base.t)",
    "SELECT id FROM t WHERE id IN assay_base.t",
    "SELECT id FROM t WHERE id GLOBAL IN (SELECT id FROM assay_base.t)",
    "SELECT * FROM t AS a JOIN assay_base.t AS b ON a.id = b.id",
    "WITH x AS (SELECT * FROM assay_base.t) SELECT * FROM x",
    "SELECT * FROM merge('assay_base', 't')",
    "SELECT * FROM merge(concat('assay', '_base'), '.*')",
    "SELECT * FROM view(SELECT * FROM assay_base.t)",
    "SELECT * FROM viewIfPermitted(SELECT s FROM assay_base.t ELSE null('s String')) WHERE s != ''",
    "SELECT * FROM loop('assay_base', 't') LIMIT 1",
    "SELECT * FROM mergeTreeIndex('assay_base', 't')",
    "SELECT * FROM remote('127.0.0.1', 'assay_base', 't')",
    "SELECT * FROM cluster('default', 'assay_base', 't')",
    "SELECT * FROM dictionary('assay_base.t')",
    "SELECT * FROM eval('SELECT * FROM assay_base.t')",
    "SELECT joinGet('assay_base.j', 's', toUInt64(1))",
    "SELECT dictGet('assay_base.t', 's', 1)",
    "SELECT * FROM t UNION ALL SELECT id FROM assay_base.t",
    "SELECT * FROM t INTERSECT SELECT id FROM assay_base.t",
    "EXPLAIN SELECT * FROM assay_base.t",
    "EXPLAIN ESTIMATE SELECT * FROM assay_base.t",
    "EXPLAIN QUERY TREE SELECT * FROM assay_base.t",
    "SELECT * FROM (EXPLAIN SELECT * FROM assay_base.t)",
    "DESCRIBE TABLE assay_base.t",
    "SHOW CREATE TABLE assay_base.t",
    "CHECK TABLE assay_base.t",
    "SHOW TABLES WHERE name IN (SELECT s FROM assay_base.t)",
    "SHOW COLUMNS FROM t WHERE field IN (SELECT s FROM assay_base.t)",
    "CREATE VIEW assay.mine AS SELECT * FROM assay_base.t",
    "CREATE VIEW assay.mine DEFINER = default SQL SECURITY DEFINER AS SELECT * FROM assay_base.t",
    "CREATE TEMPORARY TABLE mine AS SELECT * FROM assay_base.t",
    "CREATE TEMPORARY VIEW mine AS SELECT * FROM assay_base.t",
    "SELECT 1 SETTINGS additional_table_filters = {'assay.t': 'id IN (SELECT id FROM assay_base.t)'}",
]

OUTSIDE = [
    "SELECT file('SECRET')",
    "SELECT `fi\\x6ce`('SECRET')",
    "SELECT arrayMap(x -> file(x), ['SECRET'])",
    "SELECT * FROM file('SECRET', 'LineAsString')",
    "INSERT INTO assay_base.t VALUES (9, file('SECRET'), 1)",
    "INSERT INTO assay_base.t FORMAT Values (9, file('SECRET'), 1)",
    "INSERT INTO assay_base.t VALUES (9, `fi\\x6ce`('SECRET'), 1)",
    "INSERT INTO assay_base.t SETTINGS input_format_values_interpret_expressions = 1 VALUES (9, (SELECT file('SECRET')), 1)",
    "INSERT INTO assay_base.t SELECT * FROM input('id UInt64, s String, v UInt64') FORMAT Values (9, file('SECRET'), 1)",
    "SELECT * FROM format(Values, 'a String', '(file(\\'SECRET\\'))')",
    "SELECT 1 WHERE '' IN format(Values, 'a String', '(file(\\'SECRET\\'))')",
    "SELECT 1 SETTINGS additional_result_filter = 'file(\\'SECRET\\') != \\'\\''",
    "SELECT 1 SETTINGS dialect = 'prql', allow_experimental_prql_dialect = 1",
    "SELECT 1 SETTINGS send_logs_level = 'trace'",
    "SELECT 1 SETTINGS input_format_record_errors_file_path = 'SECRET.out'",
    "SELECT * APPLY (file) FROM (SELECT 'SECRET' AS x)",
    "SELECT * APPLY file FROM (SELECT 'SECRET' AS x)",
    "SELECT t.* APPLY (file) FROM (SELECT 'SECRET' AS x) AS t",
    "SELECT COLUMNS('x') APPLY (x -> file(x)) FROM (SELECT 'SECRET' AS x)",
    "SELECT arrayMap(file, ['SECRET'])",
    "SELECT arrayMap(`fi\\x6ce`, ['SECRET'])",
    "WITH file AS f SELECT arrayMap(f, ['SECRET'])",
    "SELECT 1 AS a ORDER BY a WITH FILL INTERPOLATE (b AS arrayMap(file, ['SECRET']))",
    "SHOW TABLES LIMIT (SELECT length(file('SECRET')))",
    "SHOW COLUMNS FROM t LIMIT (SELECT length(file('SECRET')))",
    "SELECT * FROM (SELECT 1 SETTINGS additional_result_filter = 'file(\\'SECRET\\') != \\'\\'')",
    "SELECT * FROM values('a String DEFAULT file(\\'SECRET\\')', ('x'))",
    "INSERT INTO assay_base.t SETTINGS log_comment=‘ SELECT ’ VALUES (9, file('SECRET'), 1)",
    "INSERT INTO assay_base.t VALUES (9, (SELECT * APPLY (file) FROM (SELECT 'SECRET' AS x)), 1)",
    "SELECT * FROM _engine.`SECRET`",
    "EXISTS TABLE _engine.`SECRET`",
    "DESCRIBE TABLE _engine.`SECRET`",
    "SHOW CREATE TABLE `_engine`.`SECRET`",
    "USE _engine",
    "SELECT * FROM {f:Identifier}('SECRET')",
    "SELECT * FROM `SECRET`",
    'SELECT * FROM "SECRET"',
    "SELECT * FROM eval('SELECT file(\\'SECRET\\')')",
    "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
    "SELECT * FROM s3('http://127.0.0.1:1/x', 'LineAsString')",
    "SELECT * FROM remote('127.0.0.1', 'system', 'one')",
    "SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
    "SELECT * FROM postgresql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
    "SELECT * FROM sqlite('SECRET', 't')",
    "SELECT * FROM executable('id', 'TSV', 'a String')",
    "SELECT * FROM Python(runtime)",
    "SELECT * FROM python('runtime')",
    "SELECT 1 INTO OUTFILE 'SECRET.out'",
    "SELECT 1 INTO/**/OUTFILE 'SECRET.out' FORMAT CSV",
    "EXPLAIN SYNTAX SELECT 1 INTO OUTFILE 'SECRET.out'",
    "SHOW TABLES INTO OUTFILE 'SECRET.out'",
    "INSERT INTO FUNCTION file('SECRET.out', 'CSV', 'a Int8') SELECT 1",
    "INSERT INTO FUNCTION file('SECRET.out', 'CSV', 'a Int8') VALUES (1)",
    "INSERT INTO assay_base.t (s) FROM INFILE 'SECRET' FORMAT LineAsString",
    "CREATE TABLE assay_base.f (a String) ENGINE = File(LineAsString, 'SECRET')",
    "CREATE TABLE assay_base.f (a String) ENGINE = URL('http://127.0.0.1:1/', 'LineAsString')",
    "CREATE TABLE assay_base.f (a String) ENGINE = Executable('id', 'TSV')",
    "CREATE TABLE assay_base.f (a String DEFAULT file('SECRET')) ENGINE = Memory",
    "CREATE TABLE assay_base.f ENGINE = Memory AS SELECT file('SECRET')",
    "CREATE DATABASE f ENGINE = Filesystem('/')",
    "CREATE DATABASE f ENGINE = MySQL('127.0.0.1:1', 'a', 'b', 'c')",
    "CREATE FUNCTION f AS x -> file(x)",
    "CREATE DICTIONARY d (id UInt64) PRIMARY KEY id SOURCE(FILE(path 'SECRET' format 'TSV')) LAYOUT(FLAT()) LIFETIME(1)",
    "CREATE DICTIONARY d (id UInt64) PRIMARY KEY id SOURCE(EXECUTABLE(command 'id' format 'TSV')) LAYOUT(FLAT()) LIFETIME(1)",
    "BACKUP TABLE assay_base.t TO File('SECRET.out')",
    "BACKUP TABLE assay_base.t TO S3('http://127.0.0.1:1/x', 'a', 'b')",
]

WRITES = [
    "INSERT INTO assay_base.t VALUES (3, 'x', 1)",
    "INSERT INTO assay.t VALUES (3)",
    "INSERT INTO assay_base.t SELECT 3, 'x', 1",
    "DELETE FROM assay_base.t WHERE 1",
    "ALTER TABLE assay_base.t DELETE WHERE 1",
    "ALTER TABLE assay_base.t ADD COLUMN x UInt8",
    "UPDATE assay_base.t SET s = '' WHERE 1",
    "TRUNCATE TABLE assay_base.t",
    "DROP TABLE assay_base.t",
    "DROP VIEW assay.t",
    "DROP DATABASE assay",
    "CREATE DATABASE mine",
    "CREATE TABLE assay.mine (a UInt8) ENGINE = Memory",
    "RENAME TABLE assay.t TO assay.u",
    "EXCHANGE TABLES assay.t AND assay_base.t",
    "OPTIMIZE TABLE assay_base.t FINAL",
    "DETACH TABLE assay_base.t",
    "UNDROP TABLE assay_base.t",
    "SYSTEM STOP MERGES",
    "SYSTEM SHUTDOWN",
    "KILL QUERY WHERE 1",
    "KILL MUTATION WHERE 1",
    "BACKUP DATABASE assay TO Disk('backups', 'mine/')",
    "RESTORE DATABASE assay FROM Disk('backups', 'mine/')",
    "CREATE USER mine",
    "CREATE ROLE mine",
    "GRANT SELECT ON *.* TO default",
    "SET DEFAULT ROLE owner TO default",
    "SET ROLE owner",
    "SET ROLE ALL",
    "EXECUTE AS default SELECT 1",
    "EXECUTE AS default",
    "CREATE FUNCTION mine AS x -> x",
    "CREATE NAMED COLLECTION mine AS a = 1",
    "CREATE SETTINGS PROFILE mine",
]

SYSTEM = [
    "SELECT query FROM system.processes",
    "SELECT query FROM `system`.`processes`",
    "SELECT 1 WHERE 'x' IN (SELECT query FROM system.processes)",
    "SELECT 1 WHERE 'x' IN system.processes",
    "SELECT * FROM merge('system', 'processes')",
    "SELECT * FROM merge(concat('sys', 'tem'), '.*')",
    "SELECT * FROM {t:Identifier}",
    "SELECT * FROM {d:Identifier}.processes",
    "SELECT query SETTINGS implicit_table_at_top_level = 'system.processes'",
    "INSERT INTO assay_base.t VALUES (9, (SELECT any(query) FROM system.processes), 1)",
    "SELECT * APPLY (x -> (SELECT groupArray(query) FROM system.processes)) FROM (SELECT 1 AS x)",
    "SHOW TABLES LIMIT (SELECT count() FROM system.processes)",
    "SHOW COLUMNS FROM t LIMIT (SELECT count() FROM system.processes)",
    "SHOW PROCESSLIST",
    "SHOW TABLES WHERE name IN (SELECT query FROM system.processes)",
    "USE system",
    "SELECT last_error_message FROM system.errors",
    "SELECT * FROM system.stack_trace",
    "SELECT * FROM system.query_cache",
    "SELECT * FROM system.asynchronous_inserts",
    "SELECT * FROM system.mutations",
    "SELECT * FROM system.backups",
    "SELECT * FROM system.server_settings",
    "SELECT * FROM system.user_query_log",
    "DESCRIBE TABLE system.processes",
]

LIMITS = [
    "SET readonly = 0",
    "SET max_execution_time = 0",
    "SET max_execution_time = 100000",
    "SET max_memory_usage = 0",
    "SET max_memory_usage = 1000000000000",
    "SET profile = 'default'",
    "SET profile = 'owner'",
    "SELECT 1 SETTINGS readonly = 0",
    "SELECT 1 SETTINGS max_execution_time = 0",
    "SELECT 1 SETTINGS max_memory_usage = 0",
    "SELECT 1 SETTINGS profile = 'default'",
    "SELECT 1 SETTINGS profile = 'owner'",
    "SELECT 1 FORMAT TSV SETTINGS max_memory_usage = 0",
    "SELECT 1 FORMAT TSV SETTINGS profile = 'owner'",
    "EXPLAIN SELECT 1 FORMAT TSV SETTINGS profile = 'owner'",
    "SHOW TABLES FORMAT TSV SETTINGS max_execution_time = 0",
    "SELECT * FROM (SELECT 1 SETTINGS max_memory_usage = 0)",
    "SELECT 1 SETTINGS allow_introspection_functions = 1",
    "SELECT 1 SETTINGS max_rows_in_set_to_optimize_join = 7",
]


def _assert_refused(server: StoreServer, role: str, sql: str) -> None:
    code, text = ask(server, role, sql, database="assay", param_t="system.processes", param_d="system")
    assert code, f"{role} ran it: {text[:200]}"
    assert MARK not in text.replace(sql, "")


def test_a_statement_that_was_allowed_is_checked_again_when_a_parameter_names_another_table(
    server: StoreServer,
) -> None:
    sql = "SELECT count() FROM {t:Identifier} WHERE {n:UInt8} = 1"
    for table, allowed in (("t", True), ("system.processes", False), ("assay_base.t", False), ("t", True)):
        for number in ("1", "2"):
            code, text = ask(server, "sre", sql, database="assay", param_t=table, param_n=number)
            assert (not code) == allowed, f"{table}: {text[:200]}"


@pytest.mark.parametrize("sql", BASE_ROWS)
@pytest.mark.parametrize("role", READERS)
def test_a_reader_gets_no_row_of_a_base_table(server: StoreServer, role: str, sql: str) -> None:
    code, text = ask(server, role, sql, database="assay")
    assert MARK not in text
    # A statement that fails for want of an object is as good as a refusal; one that succeeds must show nothing.
    assert code or text.strip() in ("", "1"), text[:200]


@pytest.mark.parametrize("sql", OUTSIDE)
@pytest.mark.parametrize("role", ["owner", "writer", "sre"])
def test_nobody_reaches_files_networks_or_programs(server: StoreServer, tmp_path: Path, role: str, sql: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(MARK)
    code, text = ask(server, role, sql.replace("SECRET", str(secret)), param_f="file")
    assert code, f"{role} ran it: {text[:200]}"
    assert MARK not in text
    assert list(tmp_path.iterdir()) == [secret]


@pytest.mark.parametrize("sql", WRITES)
@pytest.mark.parametrize("role", READERS)
def test_a_reader_changes_nothing(server: StoreServer, role: str, sql: str) -> None:
    _assert_refused(server, role, sql)


@pytest.mark.parametrize("sql", [sql for sql in WRITES if not sql.startswith("INSERT INTO assay_base")])
def test_a_writer_only_inserts(server: StoreServer, sql: str) -> None:
    _assert_refused(server, "writer", sql)


@pytest.mark.parametrize("sql", SYSTEM)
@pytest.mark.parametrize("role", ["sre", "exporter", "writer"])
def test_nobody_but_the_owner_sees_what_others_run(server: StoreServer, role: str, sql: str) -> None:
    _assert_refused(server, role, sql)


@pytest.mark.parametrize("sql", LIMITS)
@pytest.mark.parametrize("role", READERS)
def test_limits_cannot_be_raised(server: StoreServer, role: str, sql: str) -> None:
    code, _ = ask(server, role, sql)
    assert code in DENIED
    code, _ = ask(server, role, sql, session_id=f"limits-{role}")
    assert code in DENIED


@pytest.mark.parametrize("setting", [{"readonly": "0"}, {"max_execution_time": "0"}, {"profile": "default"}])
def test_limits_cannot_be_raised_in_the_url(server: StoreServer, setting: dict[str, str]) -> None:
    assert ask(server, "sre", "SELECT 1", **setting)[0] in DENIED


@pytest.mark.parametrize("role", ["owner", "writer", "sre", "exporter"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1; SET ROLE owner",
        "SELECT 1;\n\nDROP TABLE assay_base.t",
        "SELECT 1 PARALLEL WITH SELECT 2",
    ],
)
def test_one_statement_is_one_request(server: StoreServer, role: str, sql: str) -> None:
    assert ask(server, role, sql)[0] == "62"


@pytest.mark.parametrize("role", ["owner", "writer", "sre", "exporter"])
def test_nobody_changes_to_another_role(server: StoreServer, role: str) -> None:
    for sql in ("SET ROLE owner", "SET ROLE NONE", "SET ROLE ALL"):
        assert ask(server, role, sql, session_id=f"role-{role}")[0] == "497"


@pytest.mark.parametrize("role", ["writer", "sre", "exporter", "evaluator", "operator", "console", "auditor"])
def test_nobody_changes_what_is_not_named(server: StoreServer, role: str) -> None:
    for sql in ("SET profile = 'owner'", "SELECT 1 SETTINGS profile = 'owner'", "SET send_logs_level = 'trace'"):
        assert ask(server, role, sql)[0] in DENIED, sql
    assert ask(server, role, "SELECT 1", profile="owner")[0] in DENIED
    assert ask(server, role, "SELECT getSetting('max_threads')", max_threads="3") == ("", "3\n")
    listed = ask(server, role, "SELECT name FROM system.settings WHERE NOT readonly")[1].split()
    assert {"max_threads", "max_block_size"} <= set(listed)
    assert not {"log_comment", "dialect", "profile", "readonly", "allow_introspection_functions"} & set(listed)


@pytest.mark.parametrize(
    "name",
    [
        "TSV; SET ROLE owner",
        "TSV;SET ROLE owner;CREATE VIEW assay.leak AS SELECT * FROM assay_base.t",
        "TSV/**/;SET ROLE owner",
        "JSONEachRow\n;SET ROLE owner",
        "TSV SETTINGS max_threads = 1",
        "`TSV`",
        "TSV ",
    ],
)
@pytest.mark.parametrize("role", ["writer", "sre", "exporter", "evaluator", "operator", "console", "auditor"])
def test_a_name_of_a_format_is_a_name_and_no_statement(server: StoreServer, role: str, name: str) -> None:
    own = {"evaluator": "eval_outcomes", "console": "labels", "auditor": "audit_rows"}
    insert = f"INSERT INTO assay_base.{own.get(role, 't')}"
    assert ask(server, role, insert, body=b"{}", default_format=name)[0]
    assert ask(server, role, "SELECT 1", default_format=name)[0]
    assert ask(server, role, "SELECT 1", database=name)[0]
    assert ask(server, role, insert, body=b"{}", headers={"X-ClickHouse-Format": name.replace("\n", "\t")})[0]
    assert send_table(server, role, "a UInt8", "SELECT a FROM e", name)[0]
    for _ in range(8):
        assert ask(server, role, "SELECT currentRoles()") == ("", f"['{role}']\n")
        assert ask(server, role, "SELECT count() FROM assay_base.j")[0] == ("" if role == "writer" else "497")
    assert ask(server, "owner", "EXISTS TABLE assay.leak") == ("", "0\n")


@pytest.mark.parametrize("role", ["owner", "writer", "sre", "exporter", "evaluator", "operator", "console", "auditor"])
def test_the_database_that_reads_files_by_their_names_is_nobodys(
    server: StoreServer, role: str, tmp_path: Path
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(f"{MARK},1\n")
    for sql in (f"SELECT * FROM `{file}`", f"EXISTS TABLE `{file}`", f"DESCRIBE TABLE `{file}`", "SELECT 1"):
        assert ask(server, role, sql, database="_engine")[0] == "497"


def test_the_database_of_one_request_is_not_that_of_the_next(server: StoreServer) -> None:
    for role in ("owner", "writer", "sre"):
        for _ in range(5):
            assert ask(server, role, "SELECT currentDatabase()", database="assay") == ("", "assay\n")
            assert ask(server, role, "SELECT currentDatabase()") == ("", "default\n")
            assert ask(server, role, "SELECT currentDatabase()", session_id=f"database-{role}") == ("", "default\n")


def test_a_handle_used_by_one_role_never_serves_another(server: StoreServer) -> None:
    for _ in range(5):
        for role in READERS:
            assert ask(server, role, "SELECT count() FROM assay_base.t")[0] == "497"
        assert ask(server, "owner", "SELECT count() FROM assay_base.t") == ("", "2\n")
        assert ask(server, "writer", "SELECT count() FROM assay_base.t") == ("", "2\n")


@pytest.mark.parametrize("role", READERS)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count() FROM assay.t",
        "SELECT id FROM t WHERE id IN (SELECT number FROM numbers(10)) ORDER BY id LIMIT 1 BY id",
        "WITH x AS (SELECT id FROM t) SELECT a.id, row_number() OVER (PARTITION BY a.id) FROM x AS a JOIN t AS b USING (id)",
        "SELECT t.* EXCEPT (id), COLUMNS('id') FROM t",
        "SELECT id FROM t ARRAY JOIN [1, 2] AS n",
        "SELECT CASE WHEN id > 1 THEN 'a' ELSE 'b' END, toDateTime(id)::String, INTERVAL 1 DAY FROM t",
        "SELECT name FROM system.tables WHERE database = 'assay'",
        "SELECT name, value, readonly FROM system.settings LIMIT 3",
        "SELECT timezone(), version(), currentDatabase()",
        "SHOW TABLES",
        "SHOW DATABASES",
        "DESCRIBE TABLE t",
        "SHOW CREATE TABLE t",
        "EXISTS TABLE t",
        "EXPLAIN SELECT id FROM t",
        "SELECT table_name FROM information_schema.tables",
        "SELECT 1 SETTINGS max_threads = 1, max_execution_time = 5",
        "SELECT 1 FORMAT TSV SETTINGS max_threads = 1",
        "SELECT sumIf(id, id > 1), uniqExactIf(id, 1), quantiles(0.5, 0.9)(id), argMaxIf(id, id, 1), count(DISTINCT id) FROM t",
        "SELECT * REPLACE (id + 1 AS id) FROM t",
        "SELECT any(id) RESPECT NULLS, sum(id) FILTER (WHERE id > 1), grouping(id) FROM t GROUP BY id WITH ROLLUP WITH TOTALS",
        "SELECT lagInFrame(id) OVER (PARTITION BY id % 2 ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
        "SELECT number, 1 AS n FROM numbers(3) ORDER BY number WITH FILL FROM 0 TO 9 STEP 2 INTERPOLATE (n AS n + 1)",
        "SELECT arrayMap((a, b) -> a + b, [1], [2]), map('a', 1), tuple(1, 2).1, CAST(1 AS Nullable(String)), x'41'",
        "SELECT 1 WHERE EXISTS (SELECT 1) AND 'a' || 'b' NOT LIKE 'c%' AND 3 BETWEEN 1 AND 5 AND 1 = ANY (SELECT 1)",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
        "SELECT DISTINCT ON (id) id FROM t AS a ASOF LEFT JOIN t AS b ON a.id = b.id AND a.id >= b.id ORDER BY id LIMIT 1, 2",
        "SELECT * FROM values('a UInt8, b String', (1, 'x'))",
        "EXPLAIN json = 1, header = 1 SELECT id FROM t",
        "SHOW COLUMNS FROM t LIKE 'i%'",
        "SHOW CREATE VIEW assay.t FORMAT TSVRaw",
        "DESCRIBE (SELECT id, toString(id) AS s FROM t) FORMAT JSON",
        "SELECT * FROM generateRandom('a UInt8') LIMIT 1",
    ],
)
def test_a_reader_reads_views_and_asks_about_them(server: StoreServer, role: str, sql: str) -> None:
    code, text = ask(server, role, sql, database="assay")
    assert (code, bool(text)) == ("", True), text[:300]


def test_a_reader_sees_neither_names_nor_columns_of_base_tables(server: StoreServer) -> None:
    for sql in (
        "SELECT count() FROM system.tables WHERE database = 'assay_base'",
        "SELECT count() FROM system.columns WHERE database = 'assay_base'",
        "SELECT count() FROM information_schema.columns WHERE table_schema = 'assay_base'",
    ):
        assert ask(server, "sre", sql) == ("", "0\n")


def test_a_writer_inserts_reads_and_keeps_temporary_tables(server: StoreServer) -> None:
    assert (
        ask(server, "writer", "INSERT INTO assay_base.t FORMAT JSONEachRow", body=b'{"id": 1, "s": "new", "v": 2}')[0]
        == ""
    )
    assert ask(server, "writer", "SELECT s FROM assay_base.t FINAL WHERE id = 1") == ("", "new\n")
    assert ask(server, "writer", "SELECT count() FROM assay.t") == ("", "2\n")
    session = {"session_id": "writer-temporary"}
    assert ask(server, "writer", "CREATE TEMPORARY TABLE mine (a UInt8)", **session)[0] == ""
    assert ask(server, "writer", "INSERT INTO mine VALUES (7)", **session)[0] == ""
    assert ask(server, "writer", "SELECT a FROM mine", **session) == ("", "7\n")
    assert ask(server, "writer", "DROP TEMPORARY TABLE mine", **session)[0] == ""


def test_values_of_the_owner_are_expressions_that_may_calculate(server: StoreServer) -> None:
    values = "(101, upper('a file of profiles'), 1), (102, toString(1 + 1), 1);"
    assert ask(server, "owner", f"INSERT INTO assay_base.t VALUES {values}") == ("", "")
    found = ask(server, "writer", "SELECT s FROM assay_base.t WHERE id > 100 ORDER BY id")
    assert found == ("", "A FILE OF PROFILES\n2\n")
    assert ask(server, "owner", "DELETE FROM assay_base.t WHERE id > 100")[0] == ""


def test_values_of_everybody_else_are_literals(server: StoreServer) -> None:
    literals = "(111, 'it''s', 1), (112, NULL, 2), (113, '\\\\', 1);"
    assert ask(server, "writer", f"INSERT INTO assay_base.t VALUES {literals}") == ("", "")
    found = ask(server, "writer", "SELECT s FROM assay_base.t WHERE id > 110 ORDER BY id")
    assert found == ("", "it\\'s\n\n\\\\\n")
    for expression in (
        "upper('x')",
        "(SELECT 'x')",
        "`fi\\x6ce`('/etc/passwd')",
        "(SELECT * APPLY(file) FROM (SELECT '/etc/passwd'))",
    ):
        code, text = ask(server, "writer", f"INSERT INTO assay_base.t VALUES (114, {expression}, 1)")
        assert code, text
    assert ask(server, "owner", "DELETE FROM assay_base.t WHERE id > 110")[0] == ""


def send_table(server: StoreServer, role: str, structure: str, sql: str, input_format: str = "TSV") -> tuple[str, str]:
    """As `ask`, with an external table `e` of one row, 5."""
    form = b'--xx\r\nContent-Disposition: form-data; name="e"; filename="e"\r\n\r\n5\r\n--xx--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=xx"}
    return ask(server, role, sql, body=form, headers=headers, e_structure=structure, e_format=input_format)


def test_an_external_table_gives_its_sender_no_rights(server: StoreServer) -> None:
    def send(structure: str, sql: str, input_format: str = "TSV") -> tuple[str, str]:
        return send_table(server, "sre", structure, sql, input_format)

    assert send("a UInt8", "SELECT a FROM e") == ("", "5\n")
    assert send("a UInt8", "SELECT a FROM e", "Values")[0] == "48"
    for structure in (
        "a UInt8) AS SELECT id FROM assay_base.t --",
        "a UInt8) ENGINE = Memory AS SELECT id FROM assay_base.t --",
        "a String DEFAULT file('/etc/passwd')",
        "a UInt8 DEFAULT (SELECT max(id) FROM assay_base.t)",
        "a UInt8, b Array(String) DEFAULT arrayMap(file, ['/etc/passwd'])",
        "a UInt8, b Array(String) ALIAS arrayMap(file, ['/etc/passwd'])",
        "a UInt8, b String MATERIALIZED `fi\\x6ce`('/etc/passwd')",
        "a UInt8); DROP TABLE assay_base.t; --",
    ):
        code, text = send(structure, "SELECT * FROM e")
        assert code, text
        assert MARK not in text


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE DATABASE by_get",
        "INSERT INTO assay_base.t VALUES (9, '', 1)",
        "DROP TABLE assay_base.t",
        "SYSTEM STOP MERGES",
    ],
)
def test_a_get_changes_nothing_even_for_the_owner(server: StoreServer, sql: str) -> None:
    assert ask(server, "owner", b"", method="GET", query=sql)[0] == "164"


@pytest.mark.parametrize(("user", "password"), [("sre", "wrong"), ("nobody", "test"), ("default", ""), ("sre", "")])
def test_a_wrong_name_or_password_is_code_516_and_status_403(server: StoreServer, user: str, password: str) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("POST", "/", "SELECT 1", {"X-ClickHouse-User": user, "X-ClickHouse-Key": password})
        answer = connection.getresponse()
        assert (answer.status, answer.headers["X-ClickHouse-Exception-Code"]) == (403, "516")
        assert "Authentication failed" in answer.read().decode()


def test_a_readers_query_is_limited_in_memory_time_and_rows(server: StoreServer) -> None:
    assert ask(server, "sre", "SELECT groupArray(repeat('x', 100000)) FROM numbers(1000000)")[0] == "241"
    assert ask(server, "sre", "SELECT number FROM numbers(2000000) FORMAT Null")[0] == "396"
    assert (
        ask(
            server, "sre", "SELECT count() FROM numbers(100000000000) WHERE NOT ignore(number)", max_execution_time="1"
        )[0]
        == "159"
    )
    assert ask(server, "exporter", "SELECT count() FROM (SELECT number FROM numbers(2000000))") == ("", "2000000\n")


PLACES = {"writer": 1, "console": 1, "operator": 2, "sre": 2, "evaluator": 3, "auditor": 3, "exporter": 3}


@pytest.mark.parametrize(("role", "place"), PLACES.items())
def test_a_role_has_its_place_in_the_order_of_queries_and_can_only_step_back(
    server: StoreServer, role: str, place: int
) -> None:
    assert ask(server, role, "SELECT getSetting('priority')") == ("", f"{place}\n")
    assert ask(server, role, "SELECT getSetting('priority')", priority="9") == ("", "9\n")
    for better in range(place):
        assert ask(server, role, "SELECT 1", priority=str(better))[0] in DENIED
        assert ask(server, role, f"SELECT 1 SETTINGS priority = {better}")[0] in DENIED
        assert ask(server, role, f"SET priority = {better}", session_id=f"place-{role}")[0] in DENIED


def test_metrics_and_health_tell_nothing_of_queries(server: StoreServer) -> None:
    ask(server, "sre", f"SELECT '{MARK}'")
    for path in ("/metrics", "/healthz", "/readyz", "/ping"):
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read().decode()
            assert answer.status == 200
            assert MARK not in text
