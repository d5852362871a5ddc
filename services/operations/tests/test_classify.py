"""Columns of a database are classified by names, types and a sample, and people decide where they disagree."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay_cli.main import app
from assay_operations.classify import classify, columns_of, read_overrides
from assay_operations.errors import OperationError

SECRET = "ann.planted@example.com"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as database:
        database.execute(
            "CREATE TABLE staff (id INTEGER PRIMARY KEY, work_email TEXT, salary REAL, address_id BIGINT, who TEXT)"
        )
        database.execute('CREATE TABLE "odd ""name" (token_count INTEGER, password TEXT)')
        database.execute("INSERT INTO staff VALUES (1, 'a', 5.0, 7, ?)", (SECRET,))
    database.close()
    return file


def classified(source: str, overrides: Path | None = None) -> dict[tuple[str, str], dict[str, Any]]:
    given = read_overrides(overrides) if overrides else {}
    rows = [each.row() for each in classify(columns_of(source, 200), given)]
    assert SECRET not in str(rows)
    return {(row["table"], row["column"]): row for row in rows}


def test_names_types_and_values_of_sqlite_tables_count(shop: Path) -> None:
    found = classified(f"sqlite:///{shop}")
    levels = {column: (row["sensitivity"], row["categories"]) for (_, column), row in found.items()}
    assert levels == {
        "id": ("internal", []),
        "work_email": ("pii", ["contact"]),
        "salary": ("pii", ["financial"]),
        "address_id": ("internal", []),
        "who": ("pii", ["contact"]),
        "token_count": ("public", []),
        "password": ("pii", ["credential"]),
    }


def test_an_override_replaces_what_would_be_found(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "columns.toml"
    file.write_text('["staff.salary"]\nsensitivity = "internal"\n["staff.address_id"]\ncategories = ["location"]\n')
    found = classified(f"sqlite:///{shop}", file)
    salary, address = found["staff", "salary"], found["staff", "address_id"]
    assert (salary["sensitivity"], salary["categories"], salary["source"]) == ("internal", [], "override")
    assert (address["sensitivity"], address["categories"]) == ("pii", ["location"])
    assert found["staff", "who"]["source"] == "name and values"


def test_overrides_of_columns_that_do_not_exist_are_named_and_the_exit_code_is_1(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "columns.toml"
    level = 'sensitivity = "internal"\n'
    file.write_text(f'["staff.salary"]\n{level}["staff.salery"]\n{level}["who"]\n{level}["orders.total"]\n{level}')
    arguments = ["pii", "classify", f"sqlite:///{shop}", "--json"]
    done = CliRunner().invoke(app, [*arguments, "--overrides", str(file)])
    assert done.exit_code == 1
    assert [row["source"] for row in map(json.loads, done.stdout.splitlines())].count("override") == 1
    said = "no such column: 'staff.salery' (perhaps 'staff.salary'), 'who' (perhaps 'staff.who'), 'orders.total'; name it as TABLE.COLUMN"
    assert f"{file}: {said}" in done.stderr
    file.write_text(f'["staff.salary"]\n{level}')
    assert CliRunner().invoke(app, [*arguments, "--overrides", str(file)]).exit_code == 0


def test_rows_of_any_other_database_are_read_as_ndjson(tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    file.write_text(json.dumps({"who": SECRET, "n": 1}) + "\n" + json.dumps({"n": 2, "note": "x"}) + "\n")
    found = classified(str(file))
    assert {column: row["sensitivity"] for (_, column), row in found.items()} == {
        "who": "pii", "n": "public", "note": "confidential",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('["a.b"]\nsensitivity = "secret"\n', "sensitivity is one of public, internal, confidential, pii"),
        ('["a.b"]\ncategories = ["mail"]\n', "contact"),
        ('["a.b"]\nsensitivity = "pii"\n', "pii with at least one of the categories"),
        ('["a.b"]\nlevel = "pii"\n', 'give it sensitivity = "internal" or categories'),
        ("a.b = 1\n", "give it sensitivity"),
        ("[", "not TOML"),
    ],
)
def test_an_override_that_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "columns.toml"
    file.write_text(text)
    with pytest.raises(OperationError) as refused:
        read_overrides(file)
    assert said in str(refused.value)
    assert str(file) in str(refused.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("sqlite:///nowhere.db", "no such file"),
        ("postgres://host/db", "is not supported; use sqlite:///file.db"),
        ("nowhere.ndjson", "cannot be read"),
        ("http://127.0.0.1:9/db", "check the address, user and password"),
        ("http://u:hunter2/secret@127.0.0.1:9/db", "no valid port"),
    ],
)
def test_a_source_that_cannot_be_read_says_what_can(source: str, said: str) -> None:
    with pytest.raises(OperationError) as refused:
        list(columns_of(source, 5))
    assert said in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_no_database_or_no_rows_is_an_error_without_its_content(tmp_path: Path) -> None:
    for name, source in (("a.db", "sqlite:///{}"), ("a.ndjson", "{}")):
        file = tmp_path / name
        file.write_text(f"{SECRET} is no row")
        with pytest.raises(OperationError) as refused:
            list(columns_of(source.format(file), 5))
        assert SECRET not in str(refused.value)
