"""What `assay query` makes of what was typed."""

import pytest

from assay_cli.output.tables import cell
from assay_operations.clients import engine_message
from assay_operations.errors import OperationError
from assay_operations.query import names_a_format, resolve
from assay_runtime.queries import named_queries

NAMED = next(query for query in named_queries().values() if query.parameters)


def test_a_name_stands_for_its_sql_with_its_defaults() -> None:
    assert resolve(NAMED.name, []) == (NAMED.sql, NAMED.defaults)


def test_a_parameter_replaces_a_default_and_may_hold_an_equals_sign() -> None:
    name = NAMED.parameters[0].name
    assert resolve(NAMED.name, [f"{name}=a=b"])[1][name] == "a=b"


@pytest.mark.parametrize(
    ("parameter", "complaint"),
    [("nonsense=1", "has no parameter 'nonsense'"), ("hours", "NAME=VALUE"), ("=1", "NAME=VALUE")],
)
def test_a_parameter_that_is_not_known_is_refused(parameter: str, complaint: str) -> None:
    with pytest.raises(OperationError, match=complaint):
        resolve(NAMED.name, [parameter])


def test_anything_with_a_space_is_sql_and_loses_its_last_semicolon() -> None:
    assert resolve(" select {x:UInt8} ; ", ["x=1"]) == ("select {x:UInt8} ", {"x": "1"})


def test_a_name_that_is_not_known_is_answered_with_the_nearest() -> None:
    with pytest.raises(OperationError, match=f"did you mean {NAMED.name}"):
        resolve(NAMED.name[:-1], [])


def test_the_engine_is_heard_without_the_drivers_words() -> None:
    text = (
        "Received ClickHouse exception, code: 62, server response: Code: 62. DB::Exception: Syntax error: failed at position 8:\n"
        "Expected one of: token. (SYNTAX_ERROR) (version 26.9.2.1 (official build)) (for url http://127.0.0.1:9101)"
    )
    assert (
        engine_message(text) == "Code: 62. Syntax error: failed at position 8: Expected one of: token. (SYNTAX_ERROR)"
    )


def test_a_driver_error_without_an_engine_message_is_passed_on() -> None:
    assert engine_message("connection refused") == "connection refused"


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT 1 FORMAT JSON", True),
        ("select 1 format CSVWithNames ; ", True),
        ("SELECT count() FROM candidates\nFORMAT Pretty -- for me", True),
        ("SELECT 'x'FORMAT JSON", True),
        ("SELECT format FROM candidates", False),
        ("SELECT 1 AS format ORDER BY format DESC", False),
        ("SELECT format('{}', project) FROM candidates", False),
        ("SELECT 'leave the FORMAT JSON'", False),
        ("SELECT 1 AS reformat", False),
    ],
)
def test_a_format_clause_is_noticed(sql: str, named: bool) -> None:
    assert names_a_format(sql) is named


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (752.5999999999999, "752.6"),
        (0.1 + 0.2, "0.3"),
        (1 / 3, "0.333333"),
        (1 / 3e6, "3.33333e-7"),
        (1e6 / 3, "333333.333333"),
        (12.0, "12.0"),
        (2**53, str(2**53)),
        (None, "null"),
        (True, "true"),
        ("1.10", "1.10"),
    ],
)
def test_a_table_shows_floats_as_people_write_them(value: object, shown: str) -> None:
    assert cell(value) == shown
