"""Results of SQL as CSV, NDJSON and a chart."""

import csv
import io
import json
from typing import Any

import pytest

from assay_console.sql_results import chart_of, csv_lines, ndjson
from assay_operations.sql import SqlAnswer, SqlRows


def rows_of(columns: list[str], *rows: list[Any]) -> SqlRows:
    return SqlRows(tuple((name, "String") for name in columns), rows, more=False)


def as_csv(found: SqlRows) -> list[list[str]]:
    return list(csv.reader(io.StringIO(b"".join(csv_lines(found)).decode(), newline="")))


@pytest.mark.parametrize(
    "text",
    [
        '=HYPERLINK("https://attacker.example")', "+cmd|' /C calc'!A0", "@SUM(1)", "-2+3", "\t=1", "\r=1", "\n=1", " =1", "\uff1d1+1",
        "\x00=1",
    ],
)  # fmt: skip
def test_a_text_that_a_spreadsheet_runs_begins_with_an_apostrophe(text: str) -> None:
    assert as_csv(rows_of([text], [text]))[1] == ["'" + text]
    assert as_csv(rows_of([text], [text]))[0] == ["'" + text], "the name of a column, too"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("-2", "-2"), ("+1.5e3", "+1.5e3"), ("", ""), (None, ""), (-2, "-2"), (0.5, "0.5"), (["=1", "b"], '["=1","b"]'), (True, "true"),
        ('a,"b"\nc', 'a,"b"\nc'), ("plain", "plain"), ("a=b", "a=b"),
    ],
)  # fmt: skip
def test_other_values_stay_as_they_are(value: Any, cell: str) -> None:
    assert as_csv(
        rows_of(
            ["a"],
            [
                value,
            ],
        )
    )[1:] == ([[cell]] if cell else [[""]])


def test_files_have_every_row_in_order() -> None:
    found = rows_of(["n", "text"], *([number, f"=\u202e{number}"] for number in range(1_234)))
    assert [row[0] for row in as_csv(found)] == ["n", *map(str, range(1_234))]
    lines = [json.loads(line) for line in b"".join(ndjson(found)).splitlines()]
    assert lines == [{"n": number, "text": f"=\u202e{number}"} for number in range(1_234)]
    assert b"".join(ndjson(rows_of(["n"]))) == b""
    assert as_csv(rows_of(["n"])) == [["n"]]


def answer(time: str, number: str, *rows: tuple[str | None, str | None]) -> SqlAnswer:
    return SqlAnswer((("at", time), ("events", number)), rows, more=False, elapsed_ms=1.0, rows_read=None)


def test_a_time_and_a_number_are_a_chart_in_the_order_of_time() -> None:
    found = chart_of(
        answer(
            "DateTime64(3, 'UTC')",
            "UInt64",
            ("2026-01-01 00:02:00.000", "7"),
            ("2026-01-01 00:00:00.000", "3"),
            (None, "1"),
        )
    )
    assert found is not None
    assert (found.name, found.values, found.width_ms) == ("events", (3.0, 7.0), 120_000)
    assert found.starts_ms[0] == 1_767_225_600_000
    assert (
        chart_of(
            answer(
                "Nullable(Date)", "Nullable(Float64)", ("2026-01-01", "1.5"), ("2026-01-03", "nan"), ("2026-01-02", "2")
            )
        )
        is not None
    )


@pytest.mark.parametrize(
    "found",
    [
        answer("String", "UInt64", ("2026-01-01", "1"), ("2026-01-02", "2")),
        answer("Date", "String", ("2026-01-01", "1"), ("2026-01-02", "2")),
        answer("Date", "Array(UInt8)", ("2026-01-01", "[1]"), ("2026-01-02", "[2]")),
        answer("Date", "Int64", ("2026-01-01", "-1"), ("2026-01-02", "2")),
        answer("Date", "Int64", ("2026-01-01", "1"), ("2026-01-01", "2")),
        answer("Date", "Int64", ("2026-01-01", "1")),
        answer("Date", "Int64", (None, None), (None, "1")),
        answer("Date", "Float64", ("2026-01-01", "5e-324"), ("2026-01-02", "0")),
    ],
)
def test_what_is_no_series_over_time_has_no_chart(found: SqlAnswer) -> None:
    assert chart_of(found) is None
