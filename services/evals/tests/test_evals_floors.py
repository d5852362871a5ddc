"""A floor is reached by all answers, also by those that a judge did not score."""

import pytest

from assay_evals.compare.floors import FloorCheck, floor_checks
from assay_evals.compare.verdicts import Rule, Verdict
from assay_evals.run.model import CaseResult, Run, RunConfig

METRIC = "score:kind"


def held(scores: list[float | None], floor: float, *, lower_is_better: bool = False) -> FloorCheck:
    results = [CaseResult(f"c{place}", "technical", [], 1.0, {METRIC: score}) for place, score in enumerate(scores)]
    results.append(CaseResult("errored", "technical", [], None, {}, error="gone"))
    run = Run("run", RunConfig("d", "1", "", "t"), "", None, results)
    rule = Rule(0.0, floor=floor, lower_is_better=lower_is_better)
    (check,) = [each for each in floor_checks(run, {METRIC: rule}, {METRIC}) if each.metric == METRIC]
    return check


@pytest.mark.parametrize(
    ("scores", "floor", "verdict"),
    [
        ([1.0] + [None] * 99, 0.9, Verdict.INCONCLUSIVE),
        ([1.0] * 99 + [None], 0.9, Verdict.PASS),
        ([1.0] * 90 + [None] * 10, 0.9, Verdict.PASS),
        ([1.0] * 89 + [None] * 11, 0.9, Verdict.INCONCLUSIVE),
        ([0.5] * 99 + [None], 0.9, Verdict.FAIL),
        ([None] * 5, 0.9, Verdict.FAIL),
    ],
)
def test_answers_without_a_score_count_as_the_worst(scores: list[float | None], floor: float, verdict: Verdict) -> None:
    check = held(scores, floor)
    assert (check.verdict, check.unscored) == (verdict, scores.count(None))
    assert check.undecided is (verdict is Verdict.INCONCLUSIVE)
    assert ("have no score" in str(check)) is check.undecided


def test_the_worst_of_what_should_be_low_is_1() -> None:
    assert held([0.0] * 95 + [None] * 5, 0.1, lower_is_better=True).verdict is Verdict.PASS
    assert held([0.0] * 80 + [None] * 20, 0.1, lower_is_better=True).verdict is Verdict.INCONCLUSIVE
