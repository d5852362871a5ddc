"""Runs in other programs' formats, read back by those programs or by what Assay imports."""

import json
import random

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_evals.dataset.captured_rows import read_captured
from assay_evals.dataset.importing import from_known, read_judgements, read_trec_run
from assay_evals.dataset.model import Case, Dataset
from assay_evals.dataset.qrels import read_qrels
from assay_evals.run.case_results import case_error, case_result, score
from assay_evals.run.exporting import captured_rows, gate_qrels, trec_qrels, trec_run
from assay_evals.run.model import CaseResult, Run, RunConfig, RunError
from assay_evals.target.response import TargetResponse

STARTED = "2026-11-20T01:02:03.456+00:00"


def a_run(dataset: Dataset, rankings: dict[str, list[str] | None], name: str = "main") -> Run:
    """A run over a dataset; None stands for an error."""
    config = RunConfig.of(dataset, "module:search")
    results: list[CaseResult] = []
    for case in dataset.cases:
        ranking = rankings.get(case.id, [])
        if ranking is None:
            results.append(case_error(case, "timeout", 3))
        else:
            answer = TargetResponse(ranking, latency_ms=12.5)
            (metrics,) = score([case], [answer], config)
            results.append(case_result(case, answer, metrics, 1))
    return Run(name, config, STARTED, STARTED, results)


def golden(**relevance: dict[str, int]) -> Dataset:
    """A dataset with a question for each id."""
    kind = {True: "technical", False: "null"}
    return Dataset(
        cases=[
            Case.model_validate(
                {
                    "id": name,
                    "query": f"what is {name}?",
                    "graded_relevance": grades,
                    "query_type": kind[any(grades.values())],
                }
            )
            for name, grades in relevance.items()
        ]
    )


def test_trec_eval_computes_the_same_metrics_from_the_exported_files() -> None:
    dice = random.Random(7)  # noqa: S311
    documents = [f"docs/{n}" for n in range(40)]
    dataset = golden(
        **{
            f"q{n}": {name: dice.randint(1, 3) for name in dice.sample(documents, dice.randint(1, 9))}
            for n in range(150)
        }
    )
    run = a_run(dataset, {case.id: dice.sample(documents, dice.randint(1, 20)) for case in dataset.cases})
    results, judgements = trec_run(run).lines, trec_qrels(run, dataset).lines
    evaluator = pytrec_eval.RelevanceEvaluator(
        pytrec_eval.parse_qrel(judgements), {"recip_rank", "ndcg_cut", "P", "recall"}
    )
    theirs = evaluator.evaluate(pytrec_eval.parse_run(results))
    for ours, trec in (
        ("recall@10", "recall_10"),
        ("precision@5", "P_5"),
        ("ndcg@10", "ndcg_cut_10"),
        ("mrr", "recip_rank"),
    ):
        for result in run.results:
            expected = theirs[result.case_id][trec]
            if ours == "mrr" and expected < 1 / 10:
                expected = 0.0  # ours ends at the deepest cut-off
            assert result.metrics[ours] == pytest.approx(expected, abs=1e-9), (ours, result.case_id)


_WORDS = st.text(st.characters(exclude_categories=("Z", "C")), min_size=1, max_size=8)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(_WORDS, st.lists(_WORDS, unique=True, max_size=8), min_size=1, max_size=5))
def test_an_exported_run_is_imported_as_it_was(rankings: dict[str, list[str]]) -> None:
    dataset = golden(**{name: {"d": 1} for name in rankings})
    found = trec_run(a_run(dataset, dict(rankings)))
    answered = {name: ranking for name, ranking in rankings.items() if ranking}
    if answered:
        assert read_trec_run("\n".join(found.lines)) == answered
    assert len(found.notes) == (len(answered) < len(rankings))


@pytest.mark.parametrize("name", ["qid", "query-id", "QID", "0", "Q0", "#q", "{q}"])
def test_judgements_of_any_word_are_imported_as_they_were(name: str) -> None:
    dataset = golden(**{name: {"docs::a": 3, "b": 0}, "other": {"c": 1}})
    lines = trec_qrels(a_run(dataset, {}), dataset).lines
    assert read_judgements("\n".join(lines)) == {name: {"docs::a": 3, "b": 0}, "other": {"c": 1}}


@pytest.mark.parametrize(
    "spoilt", ["a b", "a\tb", "a\nb", "a\rb", "a\u00a0b", "a\u2028b", "\ufeffa", " a", "a ", "\x1c"]
)
def test_an_id_that_would_split_a_trec_line_is_refused(spoilt: str) -> None:
    documents, cases = golden(q={spoilt: 1}), golden(**{spoilt: {"a": 1}})
    for refused, what in (
        (lambda: trec_run(a_run(documents, {"q": ["a", spoilt]})), "case 'q': the id of a document"),
        (lambda: trec_qrels(a_run(documents, {}), documents), "case 'q': the id of a document"),
        (lambda: trec_run(a_run(cases, {spoilt: ["a"]})), "its id"),
        (lambda: trec_qrels(a_run(cases, {}), cases), "its id"),
    ):
        with pytest.raises(RunError, match="white space") as caught:
            refused()
        assert what in str(caught.value)
    (row,) = read_captured(captured_rows(a_run(documents, {"q": ["a", spoilt]}), documents).lines)
    assert row.slugs == ["a", spoilt]


def test_an_empty_document_id_is_refused() -> None:
    dataset = golden(q={"a": 1})
    with pytest.raises(RunError, match="is empty"):
        trec_run(a_run(dataset, {"q": ["a", ""]}))


def test_scores_fall_with_the_rank_and_the_tag_is_one_word() -> None:
    dataset = golden(q={"a": 1})
    assert trec_run(a_run(dataset, {"q": ["b", "a"]}, name="my run")).lines == [
        "q Q0 b 1 2 my_run",
        "q Q0 a 2 1 my_run",
    ]


def test_cases_that_a_format_cannot_contain_are_counted() -> None:
    dataset = golden(found={"a": 1}, broken={"a": 1}, nothing={})
    run = a_run(dataset, {"found": ["a"], "broken": None})
    assert trec_run(run).notes == ["2 case(s) without results have no line: trec_eval counts them only with -c"]
    assert trec_qrels(run, dataset).notes == ["1 case(s) without expected documents have no line"]
    assert captured_rows(run, dataset).notes == ["1 case(s) ended in an error and have no row"]
    assert gate_qrels(run, dataset).notes == ["1 case(s) without a relevant document are left out"]
    empty = golden(nothing={})
    assert gate_qrels(a_run(empty, {}), empty).lines == []


def test_captured_rows_are_those_that_a_replay_reads() -> None:
    dataset = golden(one={"docs::a": 1}, two={"docs::a": 1, "wiki::a": 1}, three={"b": 1})
    run = a_run(dataset, {"one": ["docs::a", "docs::b"], "two": ["docs::a", "wiki::a", "wiki::c"], "three": ["b"]})
    made = captured_rows(run, dataset)
    rows = list(read_captured(made.lines))
    assert [(row.query, row.slugs, row.source_ids, row.latency_ms) for row in rows] == [
        ("what is one?", ["a", "b"], ["docs"], 12.5),
        ("what is two?", ["a", "c"], ["docs", "wiki"], 12.5),
        ("what is three?", ["b"], [], 12.5),
    ]
    assert [json.loads(line)["case_id"] for line in made.lines] == ["one", "two", "three"]
    assert made.notes == ["1 case(s) have results of several sources: a row does not say which slug is of which"]


def test_a_run_without_latency_says_so() -> None:
    dataset = golden(q={"a": 1})
    run = a_run(dataset, {"q": ["a"]})
    timeless = Run(run.run_id, run.config, STARTED, None, [CaseResult("q", "technical", ["a"], None, {})])
    made = captured_rows(timeless, dataset)
    assert json.loads(made.lines[0])["latency_ms"] == 0
    assert made.notes == ["1 case(s) have no latency: 0 is written"]


def test_a_gates_judgements_come_back_with_their_sources_and_the_expected_first() -> None:
    dataset = golden(top={"docs::a": 3, "b": 1, "c": 0}, several={"a": 3, "b": 3}, plain={"std::vector": 1})
    found = read_qrels("\n".join(gate_qrels(a_run(dataset, {}), dataset).lines))
    assert [(known.relevant, known.expected_top1) for known in found] == [
        ([("docs", "a"), ("default", "b")], ("docs", "a")),
        ([("default", "a"), ("default", "b")], None),
        ([("std", "vector")], None),
    ]
    again = from_known(found, name="golden")
    assert [case.relevance for case in again.cases] == [{"docs::a": 3, "b": 1}, {"a": 1, "b": 1}, {"std::vector": 1}]
    assert [case.query for case in again.cases] == [case.query for case in dataset.cases]


def test_only_the_cases_of_the_run_are_exported() -> None:
    dataset = golden(one={"a": 1}, two={"b": 1})
    part = Dataset(cases=dataset.cases[:1])
    assert trec_qrels(a_run(part, {}), dataset).lines == ["one 0 a 1"]
    with pytest.raises(RunError, match="is not in the dataset"):
        trec_qrels(a_run(dataset, {}), part)


def test_ten_thousand_results_keep_their_order() -> None:
    dataset = golden(q={"d5": 1})
    order = [f"d{n}" for n in np.random.default_rng(3).permutation(10_000)]
    lines = trec_run(a_run(dataset, {"q": order})).lines
    scores = pytrec_eval.parse_run(lines)["q"]
    assert sorted(scores, key=lambda name: -scores[name]) == order
    assert read_trec_run("\n".join(reversed(lines)))["q"] == order
