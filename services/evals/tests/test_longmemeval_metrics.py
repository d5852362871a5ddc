"""Retrieval metrics of LongMemEval in both conventions, and memories: what they receive, and what they return."""

import json
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import pytrec_eval

from assay_evals.longmemeval.memory import (
    Bm25Memory,
    MemoryQuestion,
    best_turn,
    bm25,
    opaque_id,
    passages,
    plain_session,
    ranking,
    with_names,
)
from assay_evals.longmemeval.results import result_of
from assay_evals.longmemeval.retrieval import cutoffs, measured, reference_metrics, standard_metrics
from assay_evals.longmemeval.rows import Row, read_row
from assay_evals.target.response import TargetResponse
from tests.support.longmemeval import row, turn


def a_row(name: str = "bike", **changes: Any) -> Row:
    return read_row(row(name, **changes), "row 1")


@pytest.mark.parametrize(
    ("ranked", "evidence", "expected"),
    [
        (["a", "b", "c"], ["a"], {"recall_any@1": 1.0, "recall_all@1": 1.0, "ndcg_any@1": 1.0}),
        (["x", "a"], ["a"], {"recall_any@1": 0.0, "recall_all@3": 1.0, "ndcg_any@3": 1.0}),
        (["x", "y", "a"], ["a"], {"ndcg_any@3": 1 / math.log2(3), "ndcg_any@1": 0.0}),
        (["a", "x", "b"], ["a", "b"], {"recall_any@1": 1.0, "recall_all@1": 0.0, "recall_all@3": 1.0}),
        (["a", "x", "b"], ["a", "b"], {"ndcg_any@1": 1.0, "ndcg_any@3": (1 + 1 / math.log2(3)) / 2}),
        ([], ["a"], {"recall_any@3": 0.0, "recall_all@3": 0.0, "ndcg_any@3": 0.0}),
        (["a", "a", "b"], ["a"], {"ndcg_any@3": 1.0}),
    ],
)
def test_the_reference_s_metrics_do_not_discount_the_second_rank(
    ranked: list[str], evidence: list[str], expected: dict[str, float]
) -> None:
    found = reference_metrics(ranked, evidence, (1, 3))
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-12)


def test_the_reference_s_metrics_equal_its_published_formula_on_random_rankings() -> None:
    """The formula with numpy: the first gain, plus each later gain at rank r divided by log2(r)."""
    generator = random.Random(5)  # noqa: S311

    def discounted(gains: list[float]) -> float:
        later = np.array(gains[1:])
        return float(gains[0] + np.sum(later / np.log2(np.arange(2, len(gains) + 1)))) if gains else 0.0

    for _ in range(300):
        corpus = [f"s{number}" for number in range(generator.randint(1, 60))]
        evidence = generator.sample(corpus, generator.randint(1, min(4, len(corpus))))
        ranked = generator.sample(corpus, len(corpus))
        gains = [float(each in evidence) for each in ranked]
        found = reference_metrics(ranked, evidence, (1, 3, 5, 10, 30, 50))
        for k in (1, 3, 5, 10, 30, 50):
            best = discounted(sorted(gains, reverse=True)[:k])
            assert found[f"ndcg_any@{k}"] == pytest.approx(discounted(gains[:k]) / best, abs=1e-12)
            assert found[f"recall_any@{k}"] == float(any(each in ranked[:k] for each in evidence))
            assert found[f"recall_all@{k}"] == float(all(each in ranked[:k] for each in evidence))


def test_the_standard_metrics_equal_those_of_trec_eval() -> None:
    generator = random.Random(6)  # noqa: S311
    for _ in range(100):
        ids = [f"s{number}" for number in range(40)]
        evidence, ranked = generator.sample(ids, generator.randint(1, 4)), generator.sample(ids, 20)
        found = standard_metrics(ranked, evidence, (5, 10))
        evaluator = pytrec_eval.RelevanceEvaluator(
            {"q": dict.fromkeys(evidence, 1)}, {"recall", "ndcg_cut", "P", "success"}
        )
        trec = evaluator.evaluate({"q": {each: 1.0 / rank for rank, each in enumerate(ranked, 1)}})["q"]
        for ours, theirs in (("recall", "recall"), ("ndcg", "ndcg_cut"), ("precision", "P"), ("hit", "success")):
            for k in (5, 10):
                assert found[f"{ours}@{k}"] == pytest.approx(trec[f"{theirs}_{k}"], abs=1e-9)


def test_the_two_conventions_differ_where_evidence_is_second() -> None:
    found = measured(a_row(), ["sharegpt_bike_0", "answer_bike_1"], 5)
    assert found["reference"]["ndcg_any@5"] == 1.0
    assert found["standard"]["ndcg@5"] == pytest.approx(1 / math.log2(3))


def test_cutoffs_end_at_the_number_of_requested_sessions() -> None:
    assert cutoffs(10) == (1, 3, 5, 10)
    assert cutoffs(8) == (1, 3, 5, 8)
    assert cutoffs(1) == (1,)
    assert cutoffs(100) == (1, 3, 5, 10, 30, 50, 100)


def test_neither_convention_measures_abstention_and_the_reference_needs_a_marked_user_turn() -> None:
    assert measured(a_row("bike_abs"), ["answer_bike_abs_1"], 5) == {}
    unmarked = row("bike")
    unmarked["haystack_sessions"][1] = [turn("user", "Which?", False), turn("assistant", "Blue.", True)]
    assert set(measured(read_row(unmarked, "row 1"), ["answer_bike_1"], 5)) == {"standard"}
    assert set(measured(a_row(answer_session_ids=None), ["answer_bike_1"], 5)) == {"reference"}


def test_evidence_that_is_not_in_the_history_stays_in_the_denominator() -> None:
    found = measured(a_row(answer_session_ids=["answer_bike_1", "answer_gone"]), ["answer_bike_1"], 5)
    assert found["standard"]["recall@5"] == 0.5
    assert found["reference"]["recall_all@5"] == 1.0


def test_a_hit_compares_the_ids_as_they_are_within_the_requested_sessions() -> None:
    one = a_row()
    assert result_of(one, ["answer_bike_1"], 5).recall_hit is True
    assert result_of(one, ["chat/answer-bike-1", "ANSWER_BIKE_1"], 5).recall_hit is False
    assert result_of(one, ["chat/answer-bike-1", "ANSWER_BIKE_1"], 5).unknown_results == 2
    assert result_of(one, ["sharegpt_bike_0", "answer_bike_1"], 1).recall_hit is False
    assert result_of(a_row("bike_abs"), ["answer_bike_abs_1"], 5).recall_hit is None
    assert result_of(a_row(answer_session_ids=None), [], 5).recall_hit is None


async def test_bm25_ranks_the_session_with_the_words_of_the_question_first() -> None:
    response = await Bm25Memory().ask(MemoryQuestion("What colour is my bike?", 3, row=a_row()))
    assert response.slugs[0] == "answer_bike_1"
    assert len(response.slugs) <= 3
    assert response.answer == "By the way, my bike is blue."


async def test_a_session_that_is_listed_twice_is_one_result() -> None:
    twice = a_row(sessions=3, haystack_session_ids=["sharegpt_bike_0", "answer_bike_1", "answer_bike_1"])
    response = await Bm25Memory().ask(MemoryQuestion("my bike", 10, row=twice))
    assert response.slugs.count("answer_bike_1") == 1


@pytest.mark.parametrize(
    "changes", [{"haystack_sessions": [[]] * 5}, {"sessions": 0, "evidence": ()}, {"question": "???"}]
)
async def test_bm25_survives_histories_and_questions_without_words(changes: dict[str, Any]) -> None:
    one = a_row(**changes)
    response = await Bm25Memory().ask(MemoryQuestion(one.question, 10, row=one))
    assert (response.slugs, response.answer) == ([], "")


def test_bm25_has_the_score_of_its_formula() -> None:
    scores = bm25("red bike", ["red red car", "bike", "tree"])
    weight = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    red = weight * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / (5 / 3)))
    bike = weight * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 / (5 / 3)))
    assert scores == pytest.approx([red, bike, 0.0])
    assert best_turn("bike", []) == ""


def test_a_hook_receives_no_mark_of_evidence() -> None:
    assert "answer" not in json.dumps([plain_session(each, "name") for each in a_row().sessions])
    assert plain_session(a_row().sessions[1], "name") == {
        "session_id": "name",
        "date": "2023/05/02 (Mon) 10:01",
        "turns": [
            {"role": "user", "content": "By the way, my bike is blue."},
            {"role": "assistant", "content": "Which film did you like?"},
        ],
    }


def test_opaque_names_of_sessions_and_turns_are_those_of_the_dataset_again() -> None:
    name = opaque_id("token", "bike", "answer_bike_1")
    assert name == opaque_id("token", "bike", "answer_bike_1")
    assert len({name, opaque_id("other", "bike", "answer_bike_1"), opaque_id("token", "car", "answer_bike_1")}) == 3
    found = with_names(
        TargetResponse([f"{name}_2", name, "nowhere_1"], 1.0, contexts=[(name, "Blue."), ("note", "Rain.")]),
        {name: "answer_bike_1"},
    )
    assert found.slugs == ["answer_bike_1_2", "answer_bike_1", "nowhere_1"]
    assert found.contexts == [("answer_bike_1", "Blue."), ("note", "Rain.")]


def test_a_model_reads_the_memory_s_texts_or_the_retrieved_sessions() -> None:
    one = a_row()
    retrieved = TargetResponse(["answer_bike_1_1", "answer_bike_1", "nowhere"], 1.0)
    assert ranking(one, retrieved) == ["answer_bike_1", "nowhere"]
    ((date, text),) = passages(one, retrieved, 5)
    assert (date, text.splitlines()[0]) == ("2023/05/02 (Mon) 10:01", "user: By the way, my bike is blue.")
    noted = replace(retrieved, contexts=[("answer_bike_1", "The bike is blue."), ("note", "It rains.")])
    assert passages(one, noted, 5) == [("2023/05/02 (Mon) 10:01", "The bike is blue."), ("", "It rains.")]
