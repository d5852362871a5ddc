"""Rows of LongMemEval: every defect of the released files is read and counted, and other benchmarks are refused by name."""

import contextlib
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from assay_evals.longmemeval import reading
from assay_evals.longmemeval.reading import read_rows, survey
from assay_evals.longmemeval.rows import DatasetError, Row, read_row
from tests.support.longmemeval import row, rows, turn, write


def read(**changes: Any) -> Row:
    return read_row(row("bike", **changes), "row 1")


def quirks_of(found: Row) -> dict[str, int]:
    return {name: count for name, count in found.quirks.items() if count}


def test_a_row_of_the_released_files_is_read_whole() -> None:
    found = read()
    assert (found.id, found.type, found.question) == ("bike", "single-session-user", "What colour is my bike?")
    assert (found.answer, found.date, found.evidence) == ("blue", "2023/05/30 (Tue) 23:40", ("answer_bike_1",))
    assert [session.id for session in found.sessions] == [
        "sharegpt_bike_0", "answer_bike_1", "sharegpt_bike_2", "sharegpt_bike_3", "sharegpt_bike_4",
    ]  # fmt: skip
    assert found.sessions[1].turns[0].evidence
    assert not found.sessions[1].turns[1].evidence
    assert quirks_of(found) == {}


@pytest.mark.parametrize(("answer", "text"), [(15, "15"), (2.5, "2.5"), ("15", "15")])
def test_an_answer_that_is_a_number_is_text(answer: Any, text: str) -> None:
    found = read(answer=answer)
    assert found.answer == text
    assert quirks_of(found) == ({} if answer == text else {"answers that are numbers": 1})


def test_sessions_are_in_the_order_of_time_with_their_own_dates() -> None:
    dates = ["2023/05/20 (Sat) 02:21", "2023/05/20 (Sat) 02:20", "2022/12/31 (Sat) 23:59", "2023/05/20 (Sat) 02:21"]
    found = read(sessions=4, haystack_dates=dates)
    assert [(each.id[-1], each.date) for each in found.sessions] == [
        ("2", dates[2]), ("1", dates[1]), ("0", dates[0]), ("3", dates[3]),
    ]  # fmt: skip
    assert quirks_of(found) == {"histories out of order": 1}


@pytest.mark.parametrize("date", [None, "", "yesterday", "2023", 20230520])
def test_a_history_with_an_unreadable_date_keeps_its_order(date: Any) -> None:
    found = read(sessions=3, haystack_dates=["2023/05/20 (Sat) 02:21", date, "2023/05/01 (Mon) 02:21"])
    assert [each.id[-1] for each in found.sessions] == ["0", "1", "2"]


def test_a_history_without_dates_keeps_its_order() -> None:
    found = read(haystack_dates=None)
    assert [each.date for each in found.sessions] == [None] * 5


def test_a_session_that_is_listed_twice_stays_twice_and_is_counted() -> None:
    ids = ["sharegpt_bike_0", "answer_bike_1", "sharegpt_bike_0"]
    found = read(sessions=3, haystack_session_ids=ids)
    assert [each.id for each in found.sessions] == ids
    assert quirks_of(found) == {"histories with a session twice": 1}


def test_empty_and_unreadable_turns_and_sessions_are_left_out_and_the_others_keep_their_dates() -> None:
    whole = row("bike", sessions=4)
    whole["haystack_sessions"][0] = [turn("user", " "), turn("user", "Hello."), {"role": "user"}, "text", None, {}]
    whole["haystack_sessions"][2] = None
    whole["haystack_sessions"][3] = []
    found = read_row(whole, "row 1")
    assert [len(each.turns) for each in found.sessions] == [1, 2, 0, 0]
    assert [each.date for each in found.sessions] == whole["haystack_dates"]
    assert quirks_of(found) == {"empty turns": 1, "unreadable turns": 4, "unreadable sessions": 1}


def test_sessions_can_be_objects_and_their_ids_can_be_missing() -> None:
    objects = [{"session_id": "s1", "turns": [turn("user", "Hi.")]}, {"session_id": "s2", "turns": []}]
    named = read(haystack_sessions=objects, haystack_session_ids=None, haystack_dates=None, answer_session_ids=["s2"])
    assert [each.id for each in named.sessions] == ["s1", "s2"]
    unnamed = read(haystack_sessions=[[], []], haystack_session_ids=None, haystack_dates=None)
    assert [each.id for each in unnamed.sessions] == ["lme_bike_0", "lme_bike_1"]


def test_abstention_is_read_from_the_id_and_keeps_its_evidence() -> None:
    found = read_row(row("bike_abs"), "row 1")
    assert found.abstention
    assert found.evidence == ("answer_bike_abs_1",)
    assert quirks_of(found) == {"abstention questions": 1}


def test_evidence_outside_of_user_turns_is_no_evidence_for_the_reference() -> None:
    """The reference indexes the user's turns only, and renames such a session to `noans`."""
    whole = row("bike", kind="single-session-assistant")
    whole["haystack_sessions"][1] = [
        turn("user", "Which colour?", False),
        turn("assistant", "Your bike is blue.", True),
    ]
    found = read_row(whole, "row 1")
    assert found.reference_evidence == frozenset()
    assert found.evidence == ("answer_bike_1",)
    assert quirks_of(found) == {"questions whose evidence has no marked user turn": 1}
    assert read().reference_evidence == {"answer_bike_1"}
    elsewhere = read(haystack_session_ids=[f"chat_{place}" for place in range(5)], answer_session_ids=["chat_1"])
    assert (elsewhere.reference_evidence, elsewhere.evidence) == (frozenset(), ("chat_1",))


def test_missing_evidence_is_counted() -> None:
    gone = read(answer_session_ids=["answer_bike_1", "answer_gone"])
    assert gone.evidence == ("answer_bike_1", "answer_gone")
    assert quirks_of(gone) == {"questions with evidence that is not in the history": 1}
    for nothing in (None, []):
        assert quirks_of(read(answer_session_ids=nothing)) == {"questions without evidence": 1}


def test_sessions_after_the_question_are_counted() -> None:
    assert quirks_of(read(question_date="2023/05/02 (Tue) 00:00")) == {"histories with sessions after the question": 1}


def test_a_turn_stands_for_its_session() -> None:
    """Sessions of the released files end in a number themselves, so a session's own id comes first."""
    found = read()
    assert found.session_of("answer_bike_1") == "answer_bike_1"
    assert found.session_of("answer_bike_1_2") == "answer_bike_1"
    assert found.session_of("elsewhere_2") == "elsewhere_2"
    assert found.session_of("") == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"question_id": ""}, "row 1 has no question_id"),
        ({"question_id": None}, "row 1 has no question_id"),
        ({"question": None}, "row 1: question is missing or not text"),
        ({"question_type": 3}, "row 1: question_type is missing or not text"),
        ({"answer": ["blue"]}, "row 1: answer is a list: it must be text or a number"),
        ({"answer": True}, "row 1: answer is a boolean: it must be text or a number"),
        ({"haystack_sessions": {}}, "row 1: haystack_sessions is missing or not a list"),
        (
            {"haystack_session_ids": ["a"]},
            "row 1: 5 haystack_sessions and 1 haystack_session_ids: there must be as many",
        ),
        ({"haystack_dates": []}, "row 1: 5 haystack_sessions and 0 haystack_dates: there must be as many"),
        ({"haystack_dates": "2023"}, "row 1: haystack_dates is text, not a list"),
        ({"haystack_session_ids": [None] * 5}, "row 1: session 1 has an id that is not text"),
        ({"answer_session_ids": [{}]}, "row 1: answer_session_ids has an id that is not text"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_with_its_place_and_field(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DatasetError) as error:
        read(**changes)
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"sample_id": "conv-26", "conversation": {"session_1": []}, "qa": []}, "is of LoCoMo, another benchmark"),
        ({"id": "q1", "domain": "web", "question": "Where?", "image": None}, "is of LongMemEval-V2, another benchmark"),
        ({"id": "t1", "domain": "web", "states": []}, "is of LongMemEval-V2, another benchmark"),
        ({"q1": ["trajectory-1"], "q2": ["trajectory-2"]}, "is of LongMemEval-V2, another benchmark"),
        ({"question_id": "q1", "question": "Where?", "trajectory_ids": []}, "is of LongMemEval-V2, another benchmark"),
    ],
)
def test_other_benchmarks_are_refused_by_name(other: dict[str, Any], said: str) -> None:
    with pytest.raises(DatasetError, match=said):
        read_row(other, "row 1")


@pytest.mark.parametrize("form", ["array", "indented", "lines", "byte order mark", "empty lines"])
def test_a_file_is_an_array_or_json_lines(tmp_path: Path, form: str) -> None:
    content = rows(12)
    lines = [json.dumps(each) for each in content]
    text = {
        "array": json.dumps(content),
        "indented": json.dumps(content, indent=2),
        "lines": "\n".join(lines),
        "byte order mark": "\ufeff" + json.dumps(content),
        "empty lines": "\n\n" + "\r\n\r\n".join(lines) + "\n\n",
    }[form]
    (tmp_path / "file").write_text(text)
    assert [each.id for each in read_rows(tmp_path / "file")] == [each["question_id"] for each in content]
    assert [each.id for each in read_rows(tmp_path / "file", 3)] == ["thing0", "thing1", "thing2"]


@pytest.mark.parametrize("piece", [1, 7, 1_000])
def test_rows_that_are_read_in_pieces_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    whole = row("fahrrad", question='Wie heißt mein Fahrrad? 🚲 \\ " \u2028', answer=12345)
    path = write(tmp_path / "file", [whole, *rows(2)])
    monkeypatch.setattr(reading, "_PIECE", piece)
    found = list(read_rows(path))
    assert [each.id for each in found] == ["fahrrad", "thing0", "thing1"]
    assert (found[0].question, found[0].answer) == (whole["question"], "12345")


def test_a_lone_surrogate_becomes_a_question_mark(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps([row("bike", question="What \ud800 is it? \U0001f6b2")]))
    assert next(read_rows(tmp_path / "file")).question == "What ? is it? \U0001f6b2"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[: len(text) // 2], "the file is damaged or cut off"),
        (lambda text: text[:-1], "the list of rows has no end"),
        (lambda text: text + "x", "is followed by other text"),
        (lambda text: text.replace("}, {", "} {"), "is not followed by a comma|not JSON"),
        (lambda text: "[" + text, "row 1 is a list, not a JSON object"),
        (lambda _: "[" * 100_000, "nested too deeply"),
        (lambda _: "", "contains no questions"),
        (lambda _: "[]", "contains no questions"),
        (lambda _: "[1]", "row 1 is a number, not a JSON object"),
        (lambda _: "hello", "row 1: not JSON"),
        (lambda _: '[{"question_id": NaN}]', "NaN is not a JSON number"),
        (lambda text: text.replace("thing1", "thing0"), "two rows have the question_id thing0"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_before_a_question_is_asked(tmp_path: Path, damage: Any, said: str) -> None:
    (tmp_path / "file").write_text(damage(json.dumps(rows(3))))
    with pytest.raises(DatasetError, match=said) as error:
        survey(tmp_path / "file", None, judged=True)
    assert len(str(error.value)) < 400


def test_a_row_without_an_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "ROW_MAX_CHARS", 3_000_000)
    (tmp_path / "file").write_text('["' + "x" * 9_000_000)
    with pytest.raises(DatasetError, match="row 1 is not JSON, or has more than 3,000,000 characters"):
        survey(tmp_path / "file", None, judged=True)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b'[{"question_id": "\xe9"}]')
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        ("none", "no file"),
        (".", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("latin", "is not UTF-8 text"),
    ):
        with pytest.raises(DatasetError, match=said):
            survey(tmp_path / name, None, judged=True)


def test_a_judged_run_needs_answers_and_types_that_have_criteria(tmp_path: Path) -> None:
    for changes, said in (
        ({"answer": None}, "has no answer to judge by"),
        ({"question_type": "other"}, "'other' is not one of"),
    ):
        path = write(tmp_path / "file", [row("bike", **changes)])
        with pytest.raises(DatasetError, match=said):
            survey(path, None, judged=True)
        assert survey(path, None, judged=False).questions == 1


def test_a_survey_counts_questions_and_defects(tmp_path: Path) -> None:
    content = [row("one", answer=3), row("two_abs", answer=4), row("three", answer_session_ids=[])]
    found = survey(write(tmp_path / "file", content), None, judged=True)
    assert (found.questions, found.measurable) == (3, 1)
    assert found.quirks == {"answers that are numbers": 2, "abstention questions": 1, "questions without evidence": 1}
    assert survey(tmp_path / "file", 1, judged=True).questions == 1


@pytest.mark.parametrize("seed", range(40))
def test_a_file_damaged_anywhere_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    generator = random.Random(seed)  # noqa: S311
    text = bytearray(json.dumps(rows(3)).encode())
    for _ in range(generator.randint(1, 4)):
        place = generator.randrange(len(text))
        text[place : place + generator.randint(0, 40)] = generator.choice(
            [b"", b"null", b"[]", b"{}", b'"', b"\xff", b"9" * 400, b"1e999", b"\x00", b"\\ud800", b",", b"true"]
        )
    (tmp_path / "file").write_bytes(bytes(text))
    with contextlib.suppress(DatasetError):  # any other error fails
        assert survey(tmp_path / "file", None, judged=False).questions >= 1
