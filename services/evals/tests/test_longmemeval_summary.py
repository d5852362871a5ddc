"""Summaries of LongMemEval runs: shares with intervals, errors, abstention, and the comparison of two runs."""

import json
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import binomtest

from assay_evals.errors import EvalsError
from assay_evals.longmemeval.comparison import compare
from assay_evals.longmemeval.results import Result, result_of
from assay_evals.longmemeval.rows import Row, read_row
from assay_evals.longmemeval.summary import (
    accuracy_summary,
    below_floor,
    recall,
    recall_by_type,
    retrieval_summary,
    summary,
)
from assay_evals.longmemeval.summary_text import summary_text
from assay_evals.statistics.mcnemar import mcnemar
from tests.support.longmemeval import TYPES, row


def a_row(name: str = "bike", **changes: Any) -> Row:
    return read_row(row(name, **changes), "row 1")


def a_result(name: str, *, kind: str = TYPES[0], hit: bool | None = True, **more: Any) -> Result:
    return Result(name, f"What is {name}?", kind, "_abs" in name, "blue", recall_hit=hit, **more)


def test_errors_count_as_wrong_and_a_second_rate_leaves_them_out() -> None:
    results = [
        *(a_result(f"right{n}", label=True, judge="m", hit=True) for n in range(6)),
        *(a_result(f"wrong{n}", label=False, judge="m", hit=False) for n in range(2)),
        a_result("gone", hit=False, error="HTTP 500"),
        a_result("unjudged", hit=True, judge_error="not judged", hypothesis="blue"),
    ]
    document = summary(results, {})
    overall = document["accuracy"]["overall"]
    assert (overall["right"], overall["total"], overall["rate"], overall["errors"]) == (6, 10, 0.6, 2)
    assert overall["without_errors"] == pytest.approx(
        {"total": 8, "rate": 0.75, "low": 0.40927, "high": 0.92852}, abs=1e-5
    )
    assert (overall["low"], overall["high"]) == pytest.approx((0.31267, 0.83182), abs=1e-5)
    recall = document["recall"]["aggregate"]
    assert (recall["hit"], recall["total"], recall["errors"]) == (7, 10, 1)
    assert recall["without_errors"]["rate"] == pytest.approx(7 / 9)
    assert (document["errors"], document["unjudged"]) == (1, 1)


def test_abstention_is_in_its_type_and_alone_and_not_in_recall() -> None:
    results = [
        a_result("a", kind=TYPES[0], label=True, judge="m"),
        a_result("b_abs", kind=TYPES[0], label=False, judge="m", hit=None),
        a_result("c", kind=TYPES[3], label=True, judge="m", hit=False),
    ]
    found = accuracy_summary(results)
    assert found is not None
    assert {name: (each["right"], each["total"]) for name, each in found["by_type"].items()} == {
        TYPES[0]: (1, 2),
        TYPES[3]: (1, 1),
    }
    assert (found["overall"]["rate"], found["task_averaged"]) == (pytest.approx(2 / 3), 0.75)
    assert (found["abstention"]["right"], found["abstention"]["total"], found["answerable"]["rate"]) == (0, 1, 1.0)
    document = recall_by_type(results)
    assert {name: (each["hit"], each["total"], each["rate"]) for name, each in document["recall_by_type"].items()} == {
        "multi-session": (0, 1, 0.0),
        "single-session-user": (1, 1, 1.0),
    }
    assert (document["schema_version"], document["kind"]) == (1, "by_type_summary")
    assert {name: document["aggregate"][name] for name in ("hit", "total", "rate")} == {
        "hit": 1,
        "total": 2,
        "rate": 0.5,
    }


def test_a_real_run_s_counts_have_the_rates_that_it_published() -> None:
    """glm-5.3-flash judged by gpt-4o-2024-08-06: 425 of 469 answerable questions, and 27 of 30 with abstention."""
    results = [a_result(f"q{n}", label=n < 425, judge="gpt-4o-2024-08-06") for n in range(469)]
    results += [a_result(f"q{n}_abs", label=n < 27, judge="gpt-4o-2024-08-06") for n in range(30)]
    found = accuracy_summary(results)
    assert found is not None
    assert round(found["answerable"]["rate"], 3) == 0.906
    assert found["abstention"]["rate"] == 0.9
    assert (round(found["abstention"]["low"], 3), round(found["abstention"]["high"], 3)) == (0.744, 0.965)


def test_a_run_without_judging_has_no_accuracy() -> None:
    assert accuracy_summary([a_result("a"), a_result("b", error="HTTP 500", hit=False)]) is None


def test_a_type_below_the_floor_is_found_and_equality_passes() -> None:
    results = [a_result(f"a{n}", kind=TYPES[0], hit=n < 8) for n in range(10)]
    results += [a_result(f"b{n}", kind=TYPES[3], hit=n < 9) for n in range(10)]
    assert below_floor(results, 0.8) == {}
    assert set(below_floor(results, 0.81)) == {TYPES[0]}
    assert set(below_floor([*results, a_result("gone", kind=TYPES[0], hit=False, error="HTTP 500")], 0.8)) == {TYPES[0]}


def test_means_of_retrieval_cover_the_questions_of_their_convention() -> None:
    marked, other = a_row(), a_row("car")
    results = [result_of(marked, ["answer_bike_1"], 5), result_of(other, [], 5, error="HTTP 500")]
    results.append(result_of(a_row("pen_abs"), ["answer_pen_abs_1"], 5))
    for convention, name in (("reference", "recall_all@5"), ("standard", "recall@5")):
        found = retrieval_summary(results, convention)
        assert found is not None
        assert (found["questions"], found[name]) == (2.0, 0.5)
    assert retrieval_summary(results[2:], "standard") is None


def test_a_result_is_the_same_after_writing_and_reading() -> None:
    whole = result_of(
        a_row(), ["answer_bike_1"], 5, hypothesis="blue", label=True, judge="m", latency_ms=1.5, ingest_ms=2.0
    )
    for each in (whole, a_result("a", error="HTTP 500", hit=False), a_result("b_abs", hit=None, judge_error="busy")):
        assert Result.of_json(json.loads(json.dumps(each.as_json()))) == each
    line = whole.as_json()
    assert line["autoeval_label"] == {"model": "m", "label": True}
    assert list(line)[:6] == [
        "question_id",
        "question",
        "question_type",
        "answer",
        "hypothesis",
        "retrieved_session_ids",
    ]


@pytest.mark.parametrize(
    "damage",
    [
        {"question_id": 1}, {"hypothesis": None}, {"retrieved_session_ids": [1]}, {"autoeval_label": {"label": "yes"}}, {"metrics": [1]},
        {"metrics": {"standard": {"mrr": "1"}}}, {"recall_hit": 1}, {"abstention": "no"}, {"error": 5}, {"autoeval_label": [1]},
        {"latency_ms": "fast"},
    ],
)  # fmt: skip
def test_a_line_with_a_wrong_type_is_no_result(damage: dict[str, Any]) -> None:
    line = result_of(a_row(), ["answer_bike_1"], 5, label=True, judge="m").as_json()
    with pytest.raises(ValueError, match="not a result"):
        Result.of_json(line | damage)


def test_the_text_names_the_offline_baseline_and_unknown_results() -> None:
    run = {
        "dataset": {"name": "s.json", "sha256": "", "questions": 2, "quirks": {"empty turns": 3}},
        "target": "bm25",
        "top_k": 5,
        "judge": {"models": ["lexical"], "offline_baseline": True, "comparable_with_published": False},
    }
    results = [
        result_of(a_row(), ["answer-bike-1"], 5, label=True, judge="lexical"),
        result_of(a_row("car"), [], 5, error="HTTP 500"),
    ]
    text = summary_text(summary(results, run))
    for words in (
        "s.json: 2 questions, 1 errors, 0 unjudged",
        "3 empty turns",
        "the offline baseline, which compares words and not meaning: no measure of quality",
        "1 of 2 0.500",
        "1 errors, without them 1.000",
        "1 results name no session of their history",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("gained", "lost"), [(0, 0), (1, 0), (0, 5), (3, 9), (10, 10), (40, 20), (300, 400), (3_000, 3_200)]
)
def test_mcnemar_s_p_is_that_of_an_exact_binomial_test(gained: int, lost: int) -> None:
    exact = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar(gained, lost) == pytest.approx(exact, rel=1e-9)


def labelled(right: list[bool], **more: Any) -> list[Result]:
    return [a_result(f"q{n}", label=each, judge="m", **more) for n, each in enumerate(right)]


def test_two_runs_are_compared_question_by_question() -> None:
    before, after = labelled([True] * 10 + [False] * 10), labelled([True] * 9 + [False] + [True] * 8 + [False] * 2)
    found = compare(before, [*after, a_result("extra")])
    assert (found.questions, found.only_baseline, found.only_run) == (20, 0, 1)
    change = found.changes["correct"]
    assert (change.n, change.baseline, change.run, change.change) == (20, 0.5, 0.85, pytest.approx(0.35))
    assert (change.gained, change.lost, change.test) == (8, 1, "mcnemar")
    assert change.p_value == pytest.approx(binomtest(1, 9).pvalue)
    assert change.low < 0.35 < change.high
    assert change.low > 0


def test_runs_without_a_change_have_an_interval_that_allows_for_one() -> None:
    change = compare(labelled([True] * 20), labelled([True] * 20)).changes["correct"]
    assert (change.change, change.low, change.high, change.method, change.p_value) == (0, 0, 0, "degenerate", 1)
    assert change.bounded_low < -0.1 < 0.1 < change.bounded_high


def test_metrics_that_are_not_right_or_wrong_are_tested_by_sign_flips() -> None:
    rows = [a_row(f"bike{n}", evidence=(1, 2)) for n in range(30)]
    ids = [[f"answer_bike{n}_1", f"answer_bike{n}_2"] for n in range(30)]
    before = [
        result_of(each, [names[0]] if n % 3 else names, 5)
        for n, (each, names) in enumerate(zip(rows, ids, strict=True))
    ]
    after = [result_of(each, names, 5) for each, names in zip(rows, ids, strict=True)]
    found = compare(before, after)
    assert found.changes["recall@5"].test == "sign-flip"
    assert found.changes["recall@5"].change == pytest.approx(1 / 3)
    assert found.changes["recall_all@5"].test == "mcnemar"
    assert found.changes["recall_hit"].p_value == 1.0
    assert all(each.p_holm >= each.p_value for each in found.changes.values())
    assert "recall@10" not in found.changes


def test_an_error_is_wrong_in_a_comparison() -> None:
    after = [a_result("q0", hit=False, error="HTTP 500"), *labelled([True] * 4)[1:]]
    assert compare(labelled([True] * 4), after).changes["correct"].lost == 1


def test_what_one_run_did_not_judge_is_left_out_of_the_comparison_of_accuracy() -> None:
    unjudged = [replace(each, label=None, judge_error="the budget is used up") for each in labelled([True] * 20)[10:]]
    before = [*labelled([True] * 10 + [False] * 10)[:10], *unjudged]
    found = compare(before, labelled([True] * 20))
    assert (found.changes["correct"].n, found.changes["correct"].change) == (10, 0)
    assert found.notes == ["accuracy is compared without 10 question(s) that one of the runs did not judge"]


def test_recall_of_different_numbers_of_results_is_not_compared() -> None:
    rows = [a_row(f"bike{n}") for n in range(30)]
    ranked = [[f"other{n}" for n in range(9)] + list(each.evidence) for each in rows]
    five, ten = ([result_of(each, names[:k], k) for each, names in zip(rows, ranked, strict=True)] for k in (5, 10))
    found = compare(five, ten)
    assert "recall_hit" not in found.changes
    assert any("--top-k" in note for note in found.notes)
    assert "recall_hit" in compare(ten, ten).changes


def test_a_memory_that_found_the_evidence_and_gave_no_answer_has_no_error_of_recall() -> None:
    results = [
        a_result("q0", hit=True),
        a_result("q1", hit=True, error="no answer"),
        a_result("q2", hit=False, error="?"),
    ]
    found = recall(results)
    assert (found.right, found.total, found.errors) == (2, 3, 1)
    assert found.as_json()["without_errors"]["rate"] == 1


def test_accuracy_by_different_judges_is_not_compared() -> None:
    other = [replace(each, judge="other") for each in labelled([True, False])]
    found = compare(labelled([True, True]), other)
    assert "correct" not in found.changes
    assert found.notes == ["accuracy is not compared: the baseline was judged by m, this run by other"]


def test_runs_of_different_datasets_are_not_compared() -> None:
    with pytest.raises(EvalsError, match="no question in common"):
        compare([a_result("a")], [a_result("b")])
    with pytest.raises(EvalsError, match="question a differs"):
        compare([a_result("a")], [replace(a_result("a"), question="Another?")])
