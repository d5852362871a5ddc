"""`assay query` against the real store, as the identity that only reads."""

import csv
import io
import json
import subprocess
from pathlib import Path

import pytest

from assay_runtime.queries import named_queries
from assay_runtime.store import connect, insert_json_rows
from tests.support.cli import Cli
from tests.support.sample_rows import candidate, lines
from tests.support.store import StoreServer


@pytest.fixture(scope="module")
def server(migrated: StoreServer) -> StoreServer:
    owner = connect(migrated.settings().store)
    rows = [candidate(n, query=f"question {n}", project=f"p{n % 2}") for n in range(20)]
    insert_json_rows(owner, "assay_base.candidates", lines(rows), len(rows))
    owner.close()
    return migrated


@pytest.fixture
def cli(server: StoreServer, tmp_path: Path) -> Cli:
    return Cli(tmp_path, store_url=server.url)


def ask(cli: Cli, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return cli.run("query", *arguments, role="sre")


def answer(cli: Cli, *arguments: str) -> str:
    done = cli.call("query", *arguments, role="sre")
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


@pytest.mark.parametrize("name", list(named_queries()))
def test_every_named_query_answers_in_every_format(cli: Cli, name: str) -> None:
    assert all(json.loads(line) for line in answer(cli, name, "--format", "json").splitlines())
    assert answer(cli, name, "--format", "csv").count("\n") >= 1
    assert cli.call("query", name, role="sre").returncode == 0


def test_a_table_without_rows_says_how_far_back_it_looked(cli: Cli) -> None:
    done = cli.call("query", "tools", role="sre")
    assert done.stderr.decode() == "no rows in the last 24 hours; look further back: --param hours=8760\n"
    assert cli.call("query", "tools", "--param", "hours=8760", role="sre").stderr == b""
    assert cli.call("query", "SELECT 1 WHERE 0", role="sre").stderr == b""
    assert cli.call("query", "retrieval-latency", role="sre").stderr == b""


def test_the_list_names_every_query_and_its_parameters(cli: Cli) -> None:
    listed = answer(cli, "--list")
    assert listed == answer(cli)
    for query in named_queries().values():
        assert query.name in listed
        assert query.summary in listed
        assert all(f"--param {parameter.name}=" in listed for parameter in query.parameters)


def test_a_parameter_reaches_the_query_and_cannot_break_out_of_it(cli: Cli) -> None:
    name = "retrieval-latency"
    assert "p1" in answer(cli, name, "--param", "project=p1")
    assert "p1" not in answer(cli, name, "--param", "project=p0")
    for hostile in ("p1' OR '1'='1", "p1\\' OR 1 --", "{hours:UInt32}"):
        assert "p1" not in answer(cli, name, "--param", f"project={hostile}", "--format", "csv").split("\n", 1)[1]


def test_sql_is_answered_in_each_format(cli: Cli) -> None:
    columns = "project, count() AS n, [1, 2] AS list, NULL AS nothing, 0.1 + 0.2 AS float"
    sql = f"SELECT {columns} FROM candidates GROUP BY project ORDER BY project;"
    rows = [json.loads(line) for line in answer(cli, sql, "--format", "json").splitlines()]
    assert rows[0] == {"project": "p0", "n": 10, "list": [1, 2], "nothing": None, "float": 0.1 + 0.2}
    table = list(csv.reader(io.StringIO(answer(cli, sql, "--format", "csv"))))
    assert table == [
        ["project", "n", "list", "nothing", "float"],
        ["p0", "10", "[1,2]", "", "0.30000000000000004"],
        ["p1", "10", "[1,2]", "", "0.30000000000000004"],
    ]
    lines_of_table = answer(cli, sql).splitlines()
    assert lines_of_table[0].split() == ["project", "n", "list", "nothing", "float"]
    assert lines_of_table[2].split() == ["p0", "10", "[1,2]", "null", "0.3"]


def test_captured_text_keeps_its_commas_quotes_and_lines_in_csv_and_loses_its_control_characters_in_a_table(
    cli: Cli,
) -> None:
    sql = "SELECT concat('a,\"b\"', char(10), char(27), '[2J') AS text"
    assert list(csv.reader(io.StringIO(answer(cli, sql, "--format", "csv"))))[1] == ['a,"b"\n\x1b[2J']
    assert "\x1b" not in answer(cli, sql)


def test_sql_may_take_parameters(cli: Cli) -> None:
    sql = "SELECT count() AS n FROM candidates WHERE project = {project:String}"
    assert json.loads(answer(cli, sql, "--param", "project=p1", "--format", "json")) == {"n": 10}


def test_no_rows_are_no_lines(cli: Cli) -> None:
    assert answer(cli, "SELECT 1 AS x WHERE 0", "--format", "json") == ""
    assert answer(cli, "SELECT 1 AS x WHERE 0", "--format", "csv") == "x\r\n"


@pytest.mark.parametrize(
    ("sql", "complaint"),
    [
        ("SELECT nonsense FROM candidates", b"Code: 47. "),
        ("SELEC 1", b"no query is named"),
        ("SELECT FROM WHERE", b"Code: 62. Syntax error"),
        ("SELECT * FROM assay_base.candidates", b"Code: 497. sre: Not enough privileges."),
        (
            "SELECT * FROM assay_base.answers",
            b"read the views, without a database in their names: assay query 'SHOW TABLES'",
        ),
        ("DROP TABLE candidates", b"Code: "),
        ("INSERT INTO candidates SELECT * FROM candidates", b"Code: "),
        ("SELECT * FROM file('/etc/passwd')", b"Code: "),
        ("SELECT throwIf(number = 100000, 'stop here') FROM numbers(1000000)", b"stop here"),
        ("SELECT {x:UInt8} AS y", b"Code: "),
        ("SELECT count() FROM candidates FORMAT JSON", b"leave FORMAT out; use --format table|json|csv"),
    ],
)
@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_what_the_engine_refuses_is_its_own_words_on_one_line_and_exit_2(
    cli: Cli, sql: str, complaint: bytes, form: str
) -> None:
    ask_here = cli.run if form == "json" else cli.call
    done = ask_here("query", sql if " " in sql else f"{sql} ", "--format", form, role="sre")
    assert done.returncode == 2
    assert complaint in done.stderr or sql.startswith("SELEC ")
    assert len(done.stderr.splitlines()) == 1
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-name"],
        ["watermark", "--param", "x=1"],
        ["watermark", "--param", "x"],
        ["watermark", "--format", "xml"],
    ],
)
def test_bad_usage_is_exit_2(cli: Cli, arguments: list[str]) -> None:
    done = ask(cli, *arguments)
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_long_answer_says_how_to_get_all_of_it(cli: Cli) -> None:
    done = ask(cli, "SELECT number FROM numbers(20000)")
    assert b"only the first 10,000 rows" in done.stderr
    assert answer(cli, "SELECT number FROM numbers(20000)", "--format", "csv").count("\n") == 20_001


def test_a_closed_pipe_ends_it_without_a_word(cli: Cli) -> None:
    process = cli.start("query", "SELECT number FROM numbers(900000)", "--format", "json", role="sre")
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait(60)
        assert process.stderr is not None
        process.stderr.close()
