"""Steps of a session whose document any producer may have sent: the form is kept, the values are free."""

from typing import Any

import pytest

from assay_console.views.sessions import Step, steps_of
from assay_operations.sessions.listing import lines
from assay_sessions.form import malformed
from tests.support.sample_rows import imported_call


def document(*calls: dict[str, Any], said: tuple[str, ...] = ("Why?", "So.")) -> dict[str, Any]:
    contents = [{"role": "user", "parts": [{"text": text}]} for text in said]
    found = {
        "request": {"contents": contents},
        "response": {"candidates": []},
        "intermediate_events": list(calls),
        "metadata": {},
    }
    assert malformed(found) == "", "the store reads only documents of this form"
    return found


def places(*calls: dict[str, Any]) -> list[tuple[int, str]]:
    """Turn and tool of each step; both readers of a document have the same order."""
    steps = list(steps_of(document(*calls)))
    assert [each.who for each in lines(document(*calls))] == [each.who for each in steps]
    return [(each.turn, each.tool) for each in steps]


def only(call: dict[str, Any]) -> Step:
    [step] = steps_of(document(call, said=()))
    [line] = lines(document(call, said=()))
    assert line.who == step.who
    return step


def shown(step: Step) -> str | None:
    return None if step.output is None else "".join(piece.text for piece in step.output.pieces)


def test_a_call_of_a_turn_that_is_far_away_comes_last() -> None:
    far = 2**64 - 1
    assert places(imported_call("late", turn=far), imported_call("bash", turn=2)) == [
        (1, ""),
        (2, "bash"),
        (2, ""),
        (far, "late"),
    ]


def test_a_call_before_all_turns_comes_first() -> None:
    assert places(imported_call("setup", turn=0)) == [(0, "setup"), (1, ""), (2, "")]


def test_a_session_without_anything_has_no_steps() -> None:
    assert list(steps_of(document(said=()))) == []


@pytest.mark.parametrize("value", ["abc", "", True, [], {}, None, float("inf"), float("nan")])
def test_a_number_that_is_none_is_left_out(value: object) -> None:
    step = only(imported_call("bash", duration_ms=value, exit_code=value))
    assert (step.duration_ms, step.exit_code) == (None, None)


def test_numbers_are_kept() -> None:
    step = only(imported_call("bash", duration_ms=1.5, exit_code=127))
    assert (step.duration_ms, step.exit_code) == (1.5, 127)
    [line] = lines(document(imported_call("bash", duration_ms=1.6, exit_code=127), said=()))
    assert line.text == "bash(): success, exit code 127, 2 ms"
    assert only(imported_call("bash", exit_code=1.5)).exit_code is None


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"output": 0}, "0"),
        ({"output": False}, "false"),
        ({"output": []}, "[]"),
        ({"output": {}}, "{}"),
        ({"output": "done"}, "done"),
        ({"output": None, "error": "gone"}, "gone"),
        ({"error": 0}, "0"),
        ({"output": ""}, None),
        ({"output": None}, None),
        ({}, None),
    ],
)
def test_every_output_but_an_empty_one_is_shown(response: dict[str, Any], text: str | None) -> None:
    call = imported_call("bash", function_response={"name": "bash", "response": response})
    assert shown(only(call)) == text
    assert (next(iter(lines(document(call, said=())))).detail == "") == (text is None)


def test_a_call_without_name_and_arguments_is_still_a_call() -> None:
    step = only(imported_call("", function_call={"name": "", "args": None}))
    assert (step.who, step.tool, step.arguments) == ("tool", "(no name)", None)
