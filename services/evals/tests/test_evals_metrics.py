"""Retrieval metrics: what each says of hand-made rankings, and that trec_eval agrees where the two mean the same."""

import random

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_evals.metrics.retrieval import judge, mean, ndcg, null_accuracy, recall, reciprocal_rank, retrieval_metrics

GRADED = {"a": 3, "b": 2, "c": 1}
TREC = {"mrr": "recip_rank"} | {
    f"{ours}@{k}": f"{theirs}_{k}"
    for ours, theirs in (("recall", "recall"), ("precision", "P"), ("ndcg", "ndcg_cut"), ("hit", "success"))
    for k in (5, 10)
}


def one(relevance: dict[str, int], ranking: list[str], metric: str) -> float:
    return float(retrieval_metrics(judge([relevance], [ranking]))[metric][0])


@pytest.mark.parametrize(
    ("ranking", "metric", "expected"),
    [
        (["a", "b", "c"], "mrr", 1.0),
        (["x", "b"], "mrr", 0.5),
        (["x", "y"], "mrr", 0.0),
        ([], "mrr", 0.0),
        (["a", "x", "b"], "recall@5", 2 / 3),
        (["a", "x", "b"], "precision@5", 2 / 5),
        (["v", "w", "x", "y", "a"], "hit@5", 1.0),
        (["v", "w", "x", "y", "z", "a"], "hit@5", 0.0),
        (["a", "b", "c"], "ndcg@5", 1.0),
        (["c", "b", "a"], "ndcg@5", (1 + 2 / np.log2(3) + 3 / 2) / (3 + 2 / np.log2(3) + 1 / 2)),
    ],
)
def test_a_ranking_has_the_value_its_definition_gives(ranking: list[str], metric: str, expected: float) -> None:
    assert one(GRADED, ranking, metric) == pytest.approx(expected, abs=1e-12)


def test_a_document_that_comes_back_twice_counts_once() -> None:
    judged = judge([{"a": 1, "b": 1}], [["a", "a", "a", "b"]])
    assert recall(judged, 5)[0] == 1.0
    assert ndcg(judged, 5)[0] == 1.0, "the ranks behind a repetition close up"


def test_a_null_query_is_outside_ranked_means_and_judged_by_what_came_back() -> None:
    judged = judge([{"a": 1}, {}, {}], [["a"], ["x"], []])
    assert mean(reciprocal_rank(judged)) == 1.0
    assert list(null_accuracy(judged)[1:]) == [0.0, 1.0]
    assert mean(null_accuracy(judged)) == 0.5


def test_a_query_without_an_answer_counts_as_nothing_found() -> None:
    assert mean(reciprocal_rank(judge([{"a": 1}, {"b": 1}], [["a"], []]))) == 0.5


def test_a_document_of_grade_0_is_not_relevant() -> None:
    assert one({"a": 0, "b": 1}, ["a", "b"], "mrr") == 0.5
    assert one({"a": 0, "b": 1}, ["b"], "recall@5") == 1.0


def test_the_burges_gain_is_to_be_asked_for() -> None:
    judged = judge([GRADED], [["c", "b", "a"]])
    assert ndcg(judged, 5, "burges")[0] == pytest.approx((1 + 3 / np.log2(3) + 7 / 2) / (7 + 3 / np.log2(3) + 1 / 2))


def test_there_is_a_mean_only_where_there_are_values() -> None:
    assert mean(np.array([np.nan])) is None
    assert mean(np.array([1.0, np.nan, 0.0]), np.array([3.0, 9.0, 1.0])) == 0.75


@pytest.mark.parametrize(
    ("relevance", "rankings", "depth", "words"),
    [
        ([{"a": 1}], [], 10, "1 queries have judgements and 0"),
        ([{"a": 1}], [["a"]], 0, "depth"),
        ([{"a": -1}], [["a"]], 10, "below 0"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    relevance: list[dict[str, int]], rankings: list[list[str]], depth: int, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        judge(relevance, rankings, depth=depth)


def test_a_cutoff_beyond_what_was_judged_is_refused() -> None:
    with pytest.raises(ValueError, match="cut-off 20"):
        retrieval_metrics(judge([GRADED], [["a"]]), cutoffs=(20,))


def as_trec_sees_it(relevance: list[dict[str, int]], rankings: list[list[str]]) -> dict[str, dict[str, float]]:
    """The same runs in trec_eval's form: scores that fall with the rank, each document once."""
    runs = {str(q): {d: -float(r) for r, d in enumerate(dict.fromkeys(ranking))} for q, ranking in enumerate(rankings)}
    wanted = {"recip_rank", "recall.5,10", "P.5,10", "ndcg_cut.5,10", "success.5,10"}
    judgements = {str(q): dict(judged) for q, judged in enumerate(relevance)}
    found: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(judgements, wanted).evaluate(runs)
    return found


def assert_the_same_as_trec(relevance: list[dict[str, int]], rankings: list[list[str]]) -> None:
    ours = retrieval_metrics(judge(relevance, rankings))
    theirs = as_trec_sees_it(relevance, rankings)
    for query, judged in enumerate(relevance):
        if not any(judged.values()):
            continue  # a null query: trec_eval says 0, we say it has no rank
        for name, trec in TREC.items():
            expected = theirs.get(str(query), {}).get(trec, 0.0)  # trec_eval leaves out queries without a ranking
            if name == "mrr" and ours["hit@10"][query] == 0:
                expected = 0.0  # trec_eval's reciprocal rank has no cut-off, ours has the depth
            assert ours[name][query] == pytest.approx(expected, abs=1e-9), (name, judged, rankings[query])


def test_a_thousand_random_runs_are_judged_as_trec_eval_does() -> None:
    rng = random.Random(20)  # noqa: S311
    documents = [f"d{n}" for n in range(40)]
    relevance = [{d: rng.randint(0, 3) for d in rng.sample(documents, rng.randint(1, 15))} for _ in range(1000)]
    rankings = [rng.choices(documents, k=rng.randint(0, 25)) for _ in range(1000)]
    assert_the_same_as_trec(relevance, rankings)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), min_size=1),
            st.lists(st.sampled_from("abcdefghij"), max_size=12),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_no_run_is_judged_otherwise_than_trec_eval_does(runs: list[tuple[dict[str, int], list[str]]]) -> None:
    assert_the_same_as_trec([judged for judged, _ in runs], [ranking for _, ranking in runs])


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=3), st.integers(0, 3)), st.lists(st.text(min_size=1, max_size=3)))
def test_every_metric_lies_between_0_and_1(relevance: dict[str, int], ranking: list[str]) -> None:
    for name, values in retrieval_metrics(judge([relevance], [ranking])).items():
        assert np.isnan(values[0]) or 0 <= values[0] <= 1 + 1e-12, name


def test_ties_are_where_we_and_trec_eval_differ() -> None:
    """trec_eval sorts by score and breaks ties by id, last first; we take the order that the system gave."""
    evaluator = pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {"recip_rank"})
    assert evaluator.evaluate({"q": {"a": 1.0, "b": 1.0, "c": 1.0}})["q"]["recip_rank"] == pytest.approx(1 / 3)
    assert one({"a": 1}, ["a", "b", "c"], "mrr") == 1.0
