"""The lines `assay tail --file` prints."""

from typing import Any

import pytest
from typer.testing import CliRunner

from assay_cli.commands.tail_file import detailed, pretty_line
from assay_cli.main import app

CALL: dict[str, Any] = {
    "timestamp": "2026-05-17T14:32:07.114523Z", "kind": "tool_call", "tool_name": "find_relevant_tables",
    "args_summary": {"query": "customer churn", "limit": 3}, "status": "success", "error_kind": None, "duration_ms": 47.3,
    "result_summary": {"matches": 3},
}  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "second"),
    [
        ({}, "→ matches=3 in 47ms"),
        ({"result_summary": {}}, "→ in 47ms"),
        ({"status": "degraded"}, "→ degraded matches=3 in 47ms"),
        ({"status": "error", "error_kind": "unknown_name"}, "→ ERROR unknown_name in 47ms"),
        ({"status": "refused", "error_kind": "pii_blocked", "duration_ms": None}, "→ REFUSED pii_blocked"),
        ({"status": "error"}, "→ ERROR in 47ms"),
        ({"status": None, "result_summary": "x"}, "→ - in 47ms"),
    ],
)
def test_a_tool_call_is_two_lines(fields: dict[str, Any], second: str) -> None:
    assert pretty_line(CALL | fields).split("\n") == [
        '14:32:07.114  find_relevant_tables      query="customer churn" limit=3',
        " " * 14 + second,
    ]


def test_long_values_and_names_are_cut() -> None:
    first, _ = pretty_line(CALL | {"tool_name": "t" * 40, "args_summary": {"a": "x" * 60, "b": "y" * 59}}).split("\n")
    assert first == f'14:32:07.114  {"t" * 21}…    a="{"x" * 57}…" b="{"y" * 59}"'


def test_details_show_every_field_that_is_set_uncut() -> None:
    call = CALL | {
        "status": "error", "error_kind": "timeout", "args_summary": {"query": "x" * 300, "filters": {"day": {"from": 1}}},
        "call_id": "call-7", "agent_name": "builder", "exit_code": 1, "seq": 4, "event_subtype": None,
    }  # fmt: skip
    first, *rest = detailed(call).split("\n")
    assert first == "14:32:07.114  find_relevant_tables"
    assert dict(line.split(maxsplit=1) for line in rest) == {
        "timestamp": CALL["timestamp"], "kind": "tool_call", "tool_name": "find_relevant_tables", "args_summary.query": "x" * 300,
        "args_summary.filters.day": '{"from":1}', "status": "error", "error_kind": "timeout", "duration_ms": "47.3",
        "result_summary.matches": "3", "call_id": "call-7", "agent_name": "builder", "exit_code": "1", "seq": "4",
    }  # fmt: skip


def test_the_details_of_another_event_are_those_of_its_payload_too() -> None:
    event = {"kind": "retrieval", "occurred_at": "2026-05-17T14:32:07Z", "payload": {"query": "a b", "hits": [1, 2]}}
    first, *rest = detailed(event).split("\n")
    assert first == "14:32:07.000  retrieval"
    assert [line.split(maxsplit=1) for line in rest][2:] == [["query", "a b"], ["hits", "[1,2]"]]


@pytest.mark.parametrize("fields", [{}, {"args_summary": {}}, {"args_summary": ["x"], "kind": 7}, {"payload": None}])
def test_details_of_odd_lines_do_not_fail(fields: dict[str, Any]) -> None:
    assert detailed(fields).startswith("--:--:--.---")


def test_a_server_event_is_one_line() -> None:
    event = {"timestamp": "2026-05-17T14:32:00.000000Z", "kind": "server_event", "event_subtype": "server_start"}
    assert pretty_line(event | {"message": "the server started"}) == "14:32:00.000  ▪ server_start: the server started"


def test_captured_values_cannot_control_the_terminal() -> None:
    hostile = "\x1b]0;title\x07\u202egone\n\r\x9b31m"
    names = ("tool_name", "error_kind", "status", "timestamp")
    shown = pretty_line(CALL | dict.fromkeys(names, hostile) | {"args_summary": {hostile: hostile}, "status": "error"})
    every = detailed(CALL | dict.fromkeys(names, hostile) | {hostile: hostile})
    assert all(character.isprintable() or character == "\n" for character in every)
    assert every.count("\n") == 10
    shown += pretty_line({"kind": hostile, "event_subtype": hostile, "message": hostile})
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert shown.count("\n") == 1


@pytest.mark.parametrize("event", [{}, {"kind": "tool_call"}, {"kind": "retrieval", "event_id": "x", "occurred_at": 7}])
def test_odd_lines_do_not_fail(event: dict[str, Any]) -> None:
    assert pretty_line(event).startswith("--:--:--.---")


@pytest.mark.parametrize(
    "options",
    [("--status", "error"), ("--tool", "t"), ("--file", "x", "--kind", "answer"), ("--file", "x", "--project", "p"),
     ("--file", "x", "--status", "ok"), ("--details",), ("--file", "x", "--details", "--json"), ("--file", "x", "--since", "soon")],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(options: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, ["tail", "--no-follow", *options])
    assert result.exit_code == 2 or result.exception is not None
