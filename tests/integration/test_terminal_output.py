"""What strangers wrote commands no terminal, in any command and format; in a file or a pipe data stays exact."""

import csv
import io
import json
import os
import sys
import uuid
from pathlib import Path

import orjson
import pytest

from assay_runtime.store import connect, insert_json_rows
from assay_schema.streams import EVENTS, FIELD
from tests.support.cli import Cli
from tests.support.redis import RedisServer
from tests.support.sample_rows import candidate, lines
from tests.support.store import StoreServer
from tests.support.terminal import HOSTILE, commands_in, on_a_terminal

#: The same as SQL that holds none of it: the store answers it.
ANSWERS = "SELECT query AS text FROM candidates LIMIT 1"


@pytest.fixture(scope="module")
def server(migrated: StoreServer) -> StoreServer:
    with connect(migrated.settings().store) as owner:
        insert_json_rows(owner, "assay_base.candidates", lines([candidate(1, query=HOSTILE, project="p")]), 1)
        owner.command(f"INSERT INTO assay_base.watermarks VALUES (0, {2**53 - 1}, now64(3))")
        hostile_alert(owner)
    return migrated


def hostile_alert(owner: object) -> None:
    identity = str(uuid.uuid4())
    row = {
        "schema_version": 1, "alert_id": identity, "transition_id": str(uuid.uuid4()), "sequence": 1, "kind": "silence",
        "state": "warn", "previous": "ok", "severity": "warning", "project": "p", "service": HOSTILE, "since": "2026-01-05 00:00:00",
        "at": "2026-01-05 00:00:00", "group": "", "summary": HOSTILE + "\nforged", "query": HOSTILE, "acknowledge": HOSTILE, "interval": [],
    }  # fmt: skip
    insert_json_rows(owner, "assay_base.alerts", orjson.dumps(row) + b"\n", 1)  # type: ignore[arg-type]


def shown(cli: Cli, *arguments: str, role: str = "sre") -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    environment |= {"ASSAY_CONFIG": str(cli.settings_file(role)), "COLUMNS": "200"}
    program = str(Path(sys.executable).parent / "assay")
    return on_a_terminal([program, *arguments], cli.directory, environment)


@pytest.mark.parametrize(
    "arguments",
    [
        ("query", ANSWERS),
        ("query", ANSWERS, "--format", "csv"),
        ("query", ANSWERS, "--format", "json"),
        ("query", "SELECT toUInt8(query) FROM candidates"),  # the engine quotes the row in its error
        ("query", "SELECT throwIf(1, query) FROM (SELECT '\x1b[2J\u202e' AS query)"),
        ("query", f"SELECT 1 AS `{HOSTILE}`", "--format", "csv"),
        ("alerts", "list"),
        ("alerts", "list", "--json"),
        ("export",),
    ],
    ids=lambda arguments: " ".join(arguments).encode("unicode_escape").decode()[:60],
)
def test_a_terminal_is_not_commanded_by_the_store(
    server: StoreServer, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    role = "exporter" if arguments[0] == "export" else "sre"
    written = shown(Cli(tmp_path, store_url=server.url), *arguments, role=role)
    assert any(word in written for word in ("2J", "assay:"))
    # The progress of an export redraws its own line.
    assert commands_in(written.replace("\x1b[K", "") if role == "exporter" else written) == set()


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_terminal_is_not_commanded_by_the_live_tail(
    tmp_path: Path, redis_server: RedisServer, form: tuple[str, ...]
) -> None:
    event = {
        "kind": "retrieval", "project": "p", "service": HOSTILE, "created_at": "2026-01-05T00:00:00Z", "payload": {"query": HOSTILE},
    }  # fmt: skip
    with redis_server.client() as client:
        client.xadd(EVENTS.key(), {FIELD: orjson.dumps(event)})
    written = shown(Cli(tmp_path, redis_url=redis_server.url), "tail", "--no-follow", *form)
    assert "2J" in written
    assert commands_in(written) == set()


def test_a_terminal_is_not_commanded_by_datasets(tmp_path: Path) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    head = {"type": "dataset", "schema_version": 1, "name": "d", "version": "1"}
    case = {"id": HOSTILE, "query": "q", "relevant": [{"slug": "a"}]}
    for file, names in ((old, ["one"]), (new, ["one", HOSTILE])):
        cases = [case | {"id": name} for name in names]
        file.write_text("".join(json.dumps(each) + "\n" for each in (head, *cases)))
    written = shown(Cli(tmp_path), "dataset", "diff", str(old), str(new))
    assert "+ a [2Jb" in written
    assert commands_in(written) == set()


def test_data_in_a_pipe_is_exact(server: StoreServer, tmp_path: Path) -> None:
    cli = Cli(tmp_path, store_url=server.url)
    as_json = cli.run("query", ANSWERS, "--format", "json", role="sre")
    assert json.loads(as_json.stdout)["text"] == HOSTILE
    as_csv = cli.run("query", ANSWERS, "--format", "csv", role="sre")
    assert list(csv.reader(io.StringIO(as_csv.stdout.decode())))[1] == [HOSTILE]
    exported = cli.run("export", role="exporter")
    assert json.loads(exported.stdout.splitlines()[0])["query"] == HOSTILE


def test_text_for_people_in_a_pipe_is_filtered_too(server: StoreServer, tmp_path: Path) -> None:
    cli = Cli(tmp_path, store_url=server.url)
    for arguments in (("query", ANSWERS), ("alerts", "list"), ("query", "SELECT toUInt8(query) FROM candidates")):
        done = cli.run(*arguments, role="sre")
        assert commands_in((done.stdout + done.stderr).decode()) == set(), arguments


FORMULAS = ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\uff1d1"]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_spreadsheet_runs_no_formula_of_a_csv(server: StoreServer, tmp_path: Path, formula: str) -> None:
    cli = Cli(tmp_path, store_url=server.url)
    literal = formula.replace("\\", "\\\\").replace("'", "\\'").replace("\t", "\\t").replace("\r", "\\r")
    asked = ("query", f"SELECT '{literal}' AS a", "--format", "csv")

    def cell(*more: str) -> str:
        done = cli.call(*asked, *more, role="sre")
        return next(iter(list(csv.reader(io.StringIO(done.stdout.decode(), newline="")))[1:]))[0]

    assert cell() == "'" + formula
    assert cell("--keep-formulas") == formula


def test_numbers_in_a_csv_stay_numbers(server: StoreServer, tmp_path: Path) -> None:
    sql = "SELECT -1 AS a, toInt64(-9007199254740993) AS b, -1.5e-9 AS c, '+5' AS d, toDecimal64(-1.25, 2) AS e, 'x=1' AS f"
    done = Cli(tmp_path, store_url=server.url).call("query", sql, "--format", "csv", role="sre")
    assert list(csv.reader(io.StringIO(done.stdout.decode())))[1] == [
        "-1", "-9007199254740993", "-1.5e-9", "+5", "-1.25", "x=1",
    ]  # fmt: skip
