"""Judging on LongMemEval: criteria by question type, labels in every form, and the offline baseline."""

import json
from typing import Any

import pytest

from assay_evals.longmemeval.judging import (
    INSTRUCTIONS,
    answer_of,
    judge_message,
    kind_of,
    label_of,
    lexical_label,
    reader_message,
)
from assay_evals.longmemeval.rows import Row, read_row
from tests.support.longmemeval import row


def a_row(name: str = "bike", **changes: Any) -> Row:
    return read_row(row(name, **changes), "row 1")


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        (True, True), (False, False), ("Yes", True), ("Yes.", True), ("yes", True), ("No.", False), (" no\n", False), ("**Yes**", True),
        ("Answer: Yes.", True), ("**Correct**: no", False), ("Answer: yesterday", None), ("Correct, no objection", None),
        ("I have no opinion", None),
        ("Yes, it is correct.", True), ('{"correct": "yes"}', True), ('{"correct": "no"}', False), ({"label": True}, True),
        ({"model": "gpt-4o-2024-08-06", "label": False}, False), ({"llm_judge_correct": True, "llm_judge_raw": "Yes."}, True),
        ({"llm_judge_raw": "No."}, False),
        ("yesterday", None), ("nothing", None), ("", None), (None, None), (1, None), ("The answer is yes", None), ("{", None),
        ('{"correct": 1}', None), ({"model": "gpt-4o"}, None), (["yes"], None), ("{" * 5_000, None),
    ],
)  # fmt: skip
def test_a_label_is_read_in_every_form_and_nothing_else_is_one(reply: Any, label: bool | None) -> None:
    assert label_of(reply) is label


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("bike", "single-session-user", "gives an equivalent one"),
        ("bike", "single-session-assistant", "gives an equivalent one"),
        ("bike", "multi-session", "gives an equivalent one"),
        ("bike", "temporal-reasoning", "An error of one in a number of days"),
        ("bike", "knowledge-update", "the newest information"),
        ("bike", "single-session-preference", "rubric"),
        ("bike_abs", "multi-session", "cannot be answered"),
        ("bike_abs", "temporal-reasoning", "cannot be answered"),
    ],
)
def test_each_type_has_its_criteria_and_abstention_is_chosen_by_the_id(name: str, kind: str, words: str) -> None:
    one = a_row(name, kind=kind)
    instructions = INSTRUCTIONS[kind_of(one)]
    assert words in instructions
    message = json.loads(judge_message(one, "It is </response> green."))
    given = (
        {"single-session-preference": "rubric"}.get(kind, "expected_answer") if "_abs" not in name else "explanation"
    )
    assert message == {"question": one.question, given: "blue", "response": "It is </response> green."}
    assert f'"{given}"' in instructions
    assert "<" not in judge_message(one, "</response>")


def test_a_reader_s_message_has_dates_and_its_reply_one_answer() -> None:
    message = json.loads(reader_message(a_row(), [("2023/05/02", "user: blue")]))
    assert message["question_date"] == "2023/05/30 (Tue) 23:40"
    assert message["sessions"] == [{"date": "2023/05/02", "text": "user: blue"}]
    assert answer_of('{"answer": "blue"}') == "blue"
    for other in ("blue", "{}", "[]", '{"answer": 1}', "[" * 50_000):
        assert answer_of(other) is None


@pytest.mark.parametrize(
    ("answer", "response", "label"),
    [
        ("blue", "Your bike is Blue!", True),
        ("blue", "Your bike is green.", False),
        (15, "It took 15 weeks.", True),
        (15, "It took 150 weeks.", False),
        ("a red brick house", "It is a red brick house near the sea", True),
        ("a red brick house", "It is red", False),
        ("", "anything", False),
    ],
)
def test_the_offline_baseline_compares_words(answer: Any, response: str, label: bool) -> None:
    assert lexical_label(a_row(answer=answer), response) is label


def test_the_offline_baseline_expects_a_refusal_for_abstention() -> None:
    assert lexical_label(a_row("bike_abs"), "I don't know.")
    assert not lexical_label(a_row("bike_abs"), "Your bike is blue.")
