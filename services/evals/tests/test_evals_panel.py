"""The panel file, the sample of a batch, scores, verdicts, agreement, self-preference and the summary."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay_evals.panel.agreement import agreement, self_preference
from assay_evals.panel.batch import Batch, Item, read_batch
from assay_evals.panel.config import Panel, PanelError, read_panel
from assay_evals.panel.scoring import (
    Judged,
    Outcome,
    ReplyError,
    Scored,
    judged_of,
    means_of,
    request_of,
    schema_of,
    scores_in,
)
from assay_evals.panel.summary import Costs, summary_of, verdict_of

PANEL = Panel.model_validate(
    {
        "judges": [
            {"family": "anthropic", "backend": "anthropic", "model": "a"},
            {"family": "openai", "backend": "openai", "model": "b"},
            {"family": "local", "backend": "openai", "model": "c", "base_url": "http://127.0.0.1:1/v1"},
        ]
    }
)
ITEM = Item("q1", "Which valve?", "The red one.")


def said(family: str, correctness: float, directness: float | None = None, judge: str = "") -> Scored:
    scores = {"correctness": correctness, "directness": correctness if directness is None else directness}
    return Scored(family, judge or family, scores, dict.fromkeys(scores, ""))


def row(number: int, **fields: Any) -> str:
    return json.dumps({"question_id": f"q{number}", "question": "why?", "hypothesis": "because"} | fields) + "\n"


# The panel file


def of(*families: str, more: str = "") -> str:
    return "".join(f'[[judges]]\nfamily = "{family}"\nbackend = "openai"\nmodel = "m"\n{more}' for family in families)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("judges = [", "not TOML"),
        ("", "judges"),
        (of("a"), "judges"),
        (of("a", "a"), "one family only"),
        (of("a", "b", "b"), "one judge twice"),
        (of(*"abcdef"), "judges"),
        (of("a", "b").replace("openai", "lexical"), "judges.0.backend"),
        (of("a", "b", more='secret = "x"\n'), "judges.0.secret: unknown key"),
        (of("a", "b", more='effort = "low"\n'), "effort, which the backend openai does not use"),
        (
            of("a", "b", more="price_input_usd = 1\n").replace('"openai"', '"anthropic"'),
            "price_input_usd, which the backend anthropic",
        ),
        (of("a", "b", more='api_key_env = "K"\napi_key_file = "k"\n'), "two keys"),
        ("pass_mean = nan\n" + of("a", "b"), "pass_mean"),
    ],
)
def test_an_unusable_panel_file_names_the_key(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "panel.toml"
    file.write_text(text)
    with pytest.raises(PanelError) as refused:
        read_panel(file)
    assert problem in str(refused.value)
    assert "secret = " not in str(refused.value)


def test_a_panel_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(PanelError, match="no file"):
        read_panel(tmp_path / "none.toml")


# The batch


def test_the_sample_is_random_the_same_each_time_and_in_random_order() -> None:
    lines = [row(number) for number in range(100)]
    first, again, other = (read_batch(lines, 10, seed) for seed in (0, 0, 1))
    names = [item.question_id for item in first.items]
    assert names == [item.question_id for item in again.items]
    assert names != [item.question_id for item in other.items]
    assert names != [f"q{number}" for number in range(10)]
    assert names != sorted(names)
    assert (len(names), first.lines) == (10, 100)


def test_a_larger_sample_begins_with_the_smaller_one() -> None:
    lines = [row(number) for number in range(50)]
    few, many = ([item.question_id for item in read_batch(lines, limit, 0).items] for limit in (5, 20))
    assert many[:5] == few


def test_summaries_and_empty_lines_are_no_questions_and_errors_are_counted_apart() -> None:
    lines = [
        "\n",
        row(1, answer=7, family="openai"),
        row(2, error="timeout", hypothesis=""),
        json.dumps({"schema_version": 1, "kind": "by_type_summary", "recall_by_type": {}}) + "\n",
        row(3, hypothesis=" "),
        '{"question_id": "q4", "question": "cut',
        row(1),
        "[]\n",
        row(5, question="x" * 200_001),
        row(6, error=None, kind="answer"),
    ]
    batch = read_batch(lines, 100, 0, "anthropic")
    by_name = {item.question_id: item for item in batch.items}
    assert by_name.keys() == {"q1", "q6"}
    assert by_name["q6"].family == "anthropic"
    assert sorted(batch.upstream_errors) == ["q2", "q3"]
    assert len(batch.malformed) == 4
    assert all("why" not in reason and "xxx" not in reason for _, reason in batch.malformed)
    assert batch.lines == 8


def test_what_longmemeval_gives_as_the_answer_is_named_for_what_it_is() -> None:
    lines = [
        row(1, answer="blue"),
        row(2, answer="names the brand", question_type="single-session-preference"),
        json.dumps({"question_id": "q3_abs", "question": "?", "hypothesis": "unknown", "answer": "never said"}) + "\n",
        row(4, answer=""),
        row(5, question_id="q5_abs_2", answer="never said"),  # as `Row.abstention` and the reference have it
    ]
    given = {
        item.question_id: json.loads(request_of(item, PANEL, "0").message) for item in read_batch(lines, 9, 0).items
    }
    keys = {name: set(document) - {"question", "answer"} for name, document in given.items()}
    assert keys == {
        "q1": {"reference"},
        "q2": {"rubric"},
        "q3_abs": {"unanswerable"},
        "q4": set(),
        "q5_abs_2": {"unanswerable"},
    }


def test_lines_outside_the_sample_are_not_judged_malformed() -> None:
    lines = [row(1), *("broken\n" for _ in range(200))]
    assert len(read_batch(lines, 3, 0).malformed) + len(read_batch(lines, 3, 0).items) == 3


# Requests and replies


def test_a_judge_never_learns_who_answered_and_the_order_of_dimensions_differs() -> None:
    item = Item("q1", "Which <valve>?", "red", "blue", family="openai")
    requests = [request_of(item, PANEL, str(seed)) for seed in range(20)]
    assert {request.message for request in requests} == {requests[0].message}
    document = json.loads(requests[0].message)
    assert document == {"question": "Which <valve>?", "reference": "blue", "answer": "red"}
    assert "<" not in requests[0].message
    assert "openai" not in requests[0].system + requests[0].message
    assert len({request.system for request in requests}) == 2
    assert "reference" not in json.loads(request_of(ITEM, PANEL, "0").message)


def test_scores_are_from_1_to_10_for_each_dimension() -> None:
    good = {"correctness": {"score": 10, "reason": "x" * 900}, "directness": {"score": 1, "reason": None}, "more": 1}
    scores, reasons = scores_in(json.dumps(good), PANEL)
    assert scores == {"correctness": 10, "directness": 1}
    assert {len(reason) for reason in reasons.values()} == {300, 0}
    for bad in (0, 11, True, "9", None, [9]):
        with pytest.raises(ReplyError):
            scores_in(json.dumps(good | {"directness": {"score": bad}}), PANEL)
    for text in ("", "[]", "9", '{"correctness": {"score": 9}}', '{"correctness": 9, "directness": 9}', "{" * 5000):
        with pytest.raises(ReplyError):
            scores_in(text, PANEL)
    assert schema_of(PANEL.dimensions)["required"] == ["correctness", "directness"]


# Verdicts


@pytest.mark.parametrize(
    ("replies", "outcome"),
    [
        ([said("anthropic", 7), said("openai", 7)], Outcome.PASS),
        ([said("anthropic", 7), said("openai", 6.9)], Outcome.FAIL),  # a mean of 6.95 is not 7
        ([said("anthropic", 10), said("openai", 4)], Outcome.FAIL),  # a score below 5
        ([said("anthropic", 10), said("openai", 5)], Outcome.PASS),
        ([said("anthropic", 10), said("anthropic", 10, judge="other")], Outcome.INCONCLUSIVE),  # one family
        ([said("anthropic", 1)], Outcome.INCONCLUSIVE),  # neither pass nor fail
        ([], Outcome.INCONCLUSIVE),
        ([said("anthropic", 9, 6), said("openai", 9, 7)], Outcome.FAIL),  # each dimension for itself
    ],
)
def test_a_verdict_needs_two_families_and_unrounded_means(replies: list[Scored], outcome: Outcome) -> None:
    assert judged_of(ITEM, replies, {}, PANEL).outcome is outcome


def test_each_family_counts_once() -> None:
    replies = [
        said("anthropic", 9),
        said("anthropic", 9, judge="a2"),
        said("anthropic", 9, judge="a3"),
        said("openai", 5),
    ]
    assert means_of(replies)["correctness"] == 7
    cycles = [said("anthropic", 10), said("anthropic", 6), said("openai", 8)]
    assert means_of(cycles)["correctness"] == 8


# Agreement

#: Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability": four observers, twelve units; ordinal alpha .815.
OBSERVERS = {"A": "123321412...", "B": "1233224125.3", "C": ".3332342251.", "D": "12332441251."}


def test_alpha_is_that_of_the_published_example() -> None:
    judged = [
        Judged(
            ITEM,
            Outcome.PASS,
            tuple(said(name, int(line[unit])) for name, line in OBSERVERS.items() if line[unit] != "."),
        )
        for unit in range(12)
    ]
    found = agreement(judged, "correctness")
    assert found.alpha == pytest.approx(0.815, abs=5e-4)
    assert found.questions == 11
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.815 < found.high


def test_agreement_is_unknown_where_nothing_differs_or_nobody_scored_twice() -> None:
    same = [judged_of(ITEM, [said("a", 7), said("b", 7)], {}, PANEL)] * 20
    alone = [judged_of(ITEM, [said("a", score)], {}, PANEL) for score in (3, 9)]
    assert agreement(same, "correctness")[:3] == (None, None, None)
    assert agreement(alone, "correctness").questions == 0
    assert agreement([], "correctness").alpha is None


def test_agreement_is_1_for_equal_scores_and_low_for_opposite_ones() -> None:
    equal = [judged_of(ITEM, [said("a", score), said("b", score)], {}, PANEL) for score in (1, 5, 9) * 5]
    opposite = [judged_of(ITEM, [said("a", score), said("b", 11 - score)], {}, PANEL) for score in (1, 5, 9) * 5]
    assert agreement(equal, "directness").alpha == 1
    assert (agreement(opposite, "directness").alpha or 0) < 0


def test_a_judge_that_is_mild_with_everybody_prefers_nobody() -> None:
    def scored(own: float, family: str) -> Judged:
        return Judged(Item("q", "?", "!", family=family), Outcome.PASS, (said("a", own), said("b", 5), said("c", 5)))

    mild = self_preference([scored(8, "a"), scored(8, "b")], ("a", "b", "c"))
    assert mild["a"].preference == 0
    vain = self_preference([scored(8, "a"), scored(5, "b")], ("a", "b", "c"))
    assert vain["a"].preference == 3
    assert (vain["a"].own_n, vain["a"].others_n) == (1, 1)
    unknown = self_preference([Judged(ITEM, Outcome.PASS, (said("a", 8), said("b", 5)))], ("a", "b"))
    assert unknown["a"].preference is None


# The summary


def judged(outcome: Outcome) -> Judged:
    return Judged(ITEM, outcome)


@pytest.mark.parametrize(
    ("outcomes", "batch", "verdict"),
    [
        ([Outcome.PASS], Batch(), "pass"),
        ([Outcome.PASS, Outcome.INCONCLUSIVE], Batch(), "inconclusive"),
        ([Outcome.PASS, Outcome.UNJUDGED], Batch(), "inconclusive"),
        ([Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE], Batch(), "fail"),
        ([Outcome.FAIL, Outcome.ERROR], Batch(), "error"),
        ([Outcome.FAIL], Batch(upstream_errors=["q"]), "error"),
        ([Outcome.PASS], Batch(malformed=[(1, "no question")]), "error"),
        ([], Batch(), "error"),  # nothing was judged: not clean
    ],
)
def test_an_error_comes_before_a_failure_and_a_failure_before_what_is_unknown(
    outcomes: list[Outcome], batch: Batch, verdict: str
) -> None:
    assert verdict_of(batch, [judged(outcome) for outcome in outcomes]) == verdict


def test_the_rate_is_of_answers_with_a_verdict_and_coverage_stands_next_to_it() -> None:
    outcomes = [Outcome.PASS] * 12 + [Outcome.FAIL] * 38 + [Outcome.INCONCLUSIVE] * 10 + [Outcome.UNJUDGED] * 40
    batch = Batch(upstream_errors=["q0"], malformed=[(3, "no question")], lines=500)
    summary = summary_of(
        batch,
        [judged(outcome) for outcome in outcomes],
        PANEL,
        Costs(1.0, 0.5, 2.0, {"anthropic": 0.5}),
        cycles=1,
        concurrent=3,
        seed=0,
        at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert summary["total"] == 102
    assert summary["pass_rate"] == pytest.approx({"value": 0.24, "low": 0.14297, "high": 0.37413}, abs=1e-4)
    assert (summary["pass_rate_of"], summary["coverage"]) == (50, 0.5)
    assert summary["inconclusive_share"] == pytest.approx(10 / 60)
    assert {"pass", "fail", "inconclusive", "error", "upstream_error", "malformed"} <= summary.keys()
    assert len(summary["per_question"]) == 101
    json.dumps(summary, allow_nan=False)
