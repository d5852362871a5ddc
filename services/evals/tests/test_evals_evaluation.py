"""Evaluating from a notebook or a test."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import assay_evals
from assay_evals import Case, Dataset, Verdict, assert_no_regression, evaluate
from assay_evals.errors import EvalsError
from assay_evals.evaluation import evaluate_into
from assay_evals.run.folder import RunFolder
from assay_evals.run.model import RunConfig
from assay_evals.target.response import TargetResponse
from assay_evals.target.runner import RunnerOptions
from assay_evals.target.targets import CallableTarget

DATASET = Dataset(cases=[Case(id=f"c{n}", query=f"q{n}", expected_ids=[f"d{n}"]) for n in range(80)])


def right(query: str) -> list[str]:
    return [query.replace("q", "d")]


def half(query: str) -> list[str]:
    return right(query) if int(query[1:]) % 2 else []


def answering(query: str) -> dict[str, object]:
    return {"results": right(query), "answer": f"it is {query}", "contexts": [{"id": "p", "text": "text"}]}


def test_a_change_that_keeps_what_came_back_passes(tmp_path: Path) -> None:
    before = evaluate(DATASET, right, tmp_path, "main")
    evaluate(DATASET, right, tmp_path, "change")
    assert before.summary()["mrr"].mean == 1.0
    assert assert_no_regression(before, tmp_path / "change").comparison.verdict() is Verdict.PASS


def test_a_change_that_loses_half_fails_with_a_line_for_each_metric(tmp_path: Path) -> None:
    evaluate(DATASET, right, tmp_path, "main")
    evaluate(DATASET, half, tmp_path, "change")
    with pytest.raises(AssertionError, match=r"mrr: -0\.500 \[.*\]: significant: worse"):
        assert_no_regression(tmp_path / "main", tmp_path / "change")


def test_a_run_that_errored_is_a_regression(tmp_path: Path) -> None:
    def broken(query: str) -> list[str]:
        if query == "q7":
            raise LookupError
        return right(query)

    evaluate(DATASET, right, tmp_path, "main")
    change = evaluate(DATASET, broken, tmp_path, "change")
    assert [result.case_id for result in change.errored] == ["c7"]
    with pytest.raises(AssertionError, match=r"1 case ended in an error: c7"):
        assert_no_regression(tmp_path / "main", change)


def test_a_target_that_ends_the_process_is_an_error_of_its_case(tmp_path: Path) -> None:
    def leaves(query: str) -> list[str]:
        raise SystemExit(0)

    run = evaluate(Dataset(cases=DATASET.cases[:2]), leaves, tmp_path, "r")
    assert [str(result.error).partition(" (at ")[0] for result in run.errored] == ["SystemExit", "SystemExit"]


@pytest.mark.parametrize("name", ["../evil", "a b/c", "", ".", ".."])
def test_a_name_that_leads_out_of_the_folder_of_runs_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(EvalsError, match="is not the name of a folder"):
        evaluate(DATASET, right, tmp_path / "runs", name)
    assert not list(tmp_path.iterdir())


async def test_a_judge_is_asked_about_each_answer(tmp_path: Path) -> None:
    seen: list[str] = []

    async def judge(case: Case, answer: TargetResponse) -> Mapping[str, float | None]:
        assert list(answer.contexts) == [("p", "text")]
        seen.append(case.id)
        return {"faithfulness": 0.5}

    folder = RunFolder(tmp_path / "r", RunConfig.of(DATASET, "t", judge="f"))
    run = await evaluate_into(folder, DATASET, CallableTarget(answering), RunnerOptions(), judge=judge)
    assert sorted(seen) == sorted(case.id for case in DATASET.cases)
    assert run.summary()["faithfulness"].mean == 0.5


def test_the_package_offers_what_it_lists() -> None:
    assert all(getattr(assay_evals, name) for name in assay_evals.__all__)
    with pytest.raises(AttributeError):
        assay_evals.nothing_of_the_kind  # noqa: B018
