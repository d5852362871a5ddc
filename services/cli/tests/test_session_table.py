"""The list of sessions fits the terminal and says what each session is about."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.cells import cell_len

from assay_cli.output.session_table import fitted

USUAL = {
    "last_at": datetime(2026, 3, 4, 14, 5, 6, tzinfo=UTC), "source": "claude-code", "status": "unanswered", "complete": True,
    "turns": 12, "tools": 140, "tool_errors": 0, "cost_usd": None, "positive": 0, "negative": 0, "faithfulness": None,
    "title": None, "project": "default", "first_prompt": "",
}  # fmt: skip
FIRST, SECOND = "0b7c41d2-4a8f-4c52-9d0e-0123456789ab", "0b7c41d2-5f13-4f0e-8aa1-abcdef012345"


def row(session_id: str = FIRST, **fields: Any) -> dict[str, Any]:
    return {**USUAL, "session_id": session_id, **fields}


def width(rows: list[dict[str, Any]]) -> int:
    return sum(max(cell_len(str(value)) for value in (name, *(row[name] for row in rows))) + 3 for name in rows[0]) - 3


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 200])
def test_the_table_is_no_wider_than_the_terminal(columns: int) -> None:
    long = "Why does the nightly import of the catalogue fail since the weekend? " * 5
    rows = [
        row(title=long, tool_errors=3, cost_usd=1.25, project="shop"),
        row(SECOND, first_prompt="夜間インポート" * 20),
    ]
    shown = fitted(rows, columns)
    assert width(shown) <= columns
    assert [set(each) >= {"session_id", "title", "last_at"} for each in shown] == [True, True]
    assert [each["title"][-1] for each in shown] == ["…", "…"]


def test_the_first_prompt_stands_where_there_is_no_title_of_the_session() -> None:
    placeholder = "New session - 2026-03-04T14:05:06.000Z"
    rows = [
        row(title="Mend the import", first_prompt="It fails."),
        row(title=None, first_prompt="It fails."),
        row(title="", first_prompt="It fails."),
        row(title=placeholder, first_prompt="It fails."),
        row(title=placeholder, first_prompt=""),
    ]
    titles = [each["title"] for each in fitted(rows, 200)]
    assert titles == ["Mend the import", "It fails.", "It fails.", "It fails.", placeholder]


def test_ids_are_whole_if_there_is_room_and_otherwise_long_enough_to_differ() -> None:
    rows = [row(FIRST, title="One"), row(SECOND, title="Two")]
    assert [each["session_id"] for each in fitted(rows, 200)] == [FIRST, SECOND]
    assert [each["session_id"] for each in fitted(rows, 80)] == ["0b7c41d2-4", "0b7c41d2-5"]


def test_columns_that_say_nothing_are_left_out() -> None:
    usual = set(fitted([row(title="One")], 200)[0])
    assert usual == {"session_id", "title", "last_at", "status", "source", "turns", "tools"}
    rows = [row(title="One"), row(complete=False, faithfulness=0.5, project="shop", negative=1, tool_errors=2)]
    assert set(fitted(rows, 200)[0]) - usual == {"complete", "faithfulness", "project", "negative", "tool_errors"}


def test_control_characters_take_no_room() -> None:
    [shown] = fitted([row(title="a\x1b[2J\nb\u202ec")], 200)
    assert re.fullmatch(r"[ \[\w]+", shown["title"])
