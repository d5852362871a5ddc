"""Report a comparison as JUnit XML: a test for each metric and for each slice. Pure."""

from assay_evals.compare.compare_runs import PairedRuns
from assay_evals.compare.slices import SliceChange, SliceCheck
from assay_evals.compare.verdicts import Stage, Verdict
from assay_evals.metrics.metric_names import QUANTILES
from assay_evals.report.wording import change, meaning, problems
from assay_runtime.junit import JUnitSuite, Outcome

_OUTCOMES: dict[Verdict, Outcome] = {
    Verdict.PASS: "pass",
    Verdict.FAIL: "fail",
    Verdict.INCONCLUSIVE: "inconclusive",
}


def junit(paired: PairedRuns, *, inconclusive: Verdict = Verdict.INCONCLUSIVE) -> str:
    """Return the JUnit XML of a comparison."""
    suite = JUnitSuite("assay gate", _OUTCOMES[inconclusive])
    for problem in problems(paired):
        suite.add("cases", problem, "fail")
    for each in paired.comparison.metrics:
        # A percentile without a verdict decides nothing at any stage.
        stage = Stage.WARN if each.metric in QUANTILES and each.verdict is Verdict.INCONCLUSIVE else each.rule.stage
        suite.add(each.metric, f"{change(each)}: {meaning(each)}", _OUTCOMES[each.verdict], advisory=_advisory(stage))
    sliced: list[SliceCheck | SliceChange] = [*paired.checks, *paired.changes]
    for one in sliced:
        if one.verdict is not None:
            suite.add(one.name, str(one), _OUTCOMES[one.verdict], advisory=_advisory(one.stage))
    return str(suite)


def _advisory(stage: Stage) -> str:
    return "" if stage is Stage.BLOCK else stage.value
