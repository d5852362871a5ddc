"""Words for the figures and verdicts of a comparison. Pure."""

from collections.abc import Mapping, Sequence

from assay_evals.compare.compare_runs import PairedRuns
from assay_evals.compare.comparison import MetricComparison
from assay_evals.compare.floors import FloorCheck
from assay_evals.compare.shrinkage import Shrinkage
from assay_evals.compare.slices import SHOWN_FIRST, SliceChange, SliceCheck
from assay_evals.compare.verdicts import Stage, Verdict
from assay_evals.metrics.answer_coverage import ABSTAINED, ANSWERED, COVERAGE, NO_CONTEXT, NULL_REFUSED, REPEATED
from assay_evals.metrics.case_metrics import PATH
from assay_evals.metrics.metric_names import QUANTILES
from assay_evals.metrics.retrieval import below
from assay_evals.run.model import Run
from assay_ui import formats

_P = (
    "p by random signs, below 0.05 if significant: the larger of the metric's own two-sided p and of the one-sided p "
    "that is adjusted for all metrics"
)
_INTERVALS = "Intervals of shares are Gaffke's bounds, others are those of the bootstrap"
#: Which cases a metric needs more of, where that is not all of them.
_CASES = dict.fromkeys(("null_accuracy", NULL_REFUSED), "null cases") | dict.fromkeys(
    (ANSWERED, REPEATED, NO_CONTEXT, COVERAGE, ABSTAINED), "answerable cases"
)
#: Names that a list spells out; the rest is counted.
_LISTED = 5
#: Meaning of a drop, for metrics whose name does not explain it.
_WORSE = {
    ANSWERED: "fewer answerable questions get an answer",
    NULL_REFUSED: "more unanswerable questions get an invented answer",
    REPEATED: "more questions get the same answer as another question",
    COVERAGE: "fewer answers could be judged",
    ABSTAINED: "more answerable questions get no answer",
    NO_CONTEXT: "more answers have no passages",
}


def shown_metric(paired: PairedRuns) -> str | None:
    """Return the metric shown in breakdowns: one that failed the comparison, if any did."""
    failed = [name for name in _decisive_metrics(paired, Verdict.FAIL) if name not in QUANTILES]
    names = failed or [each.metric for each in paired.comparison.metrics]
    return next((name for name in SHOWN_FIRST if name in names), names[0] if names else None)


def cases(count: int) -> str:
    """Count cases in words."""
    return formats.counted(count, "case")


def number(value: float | None, metric: str = "") -> str:
    """Format a figure for people: milliseconds without decimals, shares with three."""
    if value is None:
        return "–"
    return f"{value:,.0f} ms" if metric.endswith("_ms") else f"{value:.3f}"


def change(each: MetricComparison) -> str:
    """Format a change with its interval."""
    if each.metric.endswith("_ms"):
        return f"{each.delta:+,.0f} ms [{each.interval.low:+,.0f}, {each.interval.high:+,.0f}]"
    return f"{each.delta:+.3f} [{each.interval.low:+.3f}, {each.interval.high:+.3f}]"


def probability(each: MetricComparison) -> str:
    """Format the p-value of the change, which is below 0.05 if the change is significant."""
    return formats.probability(each.p)


def meaning(each: MetricComparison) -> str:
    """Describe a metric's verdict."""
    if each.metric.startswith(PATH) and each.verdict is Verdict.PASS:
        return "statistically significant change" if each.significant else "no significant change"
    if each.verdict is Verdict.FAIL:
        floor = each.rule.floor
        below = floor is not None and (each.candidate > floor if each.rule.lower_is_better else each.candidate < floor)
        if below:
            return f"misses its floor of {number(floor, each.metric)}"
        return f"significant: {_WORSE.get(each.metric, 'worse')}{_by_test(each)}"
    if each.verdict is Verdict.INCONCLUSIVE:
        measured = f"{each.n:,} measured"
        if each.interval.method == "degenerate" and not each.cases_needed:
            return f"inconclusive: too few independent cases, {measured}"
        needed = f"about {each.cases_needed:,} {_CASES.get(each.metric, 'cases')} needed, " if each.cases_needed else ""
        if each.is_regression:
            return f"significantly worse{_by_test(each)}, but perhaps by less than its threshold: {needed}{measured}"
        if each.worse and (each.interval.low > 0 or each.interval.high < 0 or each.reaches_threshold):
            return f"worse, but not significantly: {needed}{measured}"
        return f"inconclusive: {needed or 'too close to its threshold, '}{measured}"
    if each.is_regression:
        return f"significantly worse{_by_test(each)}, but by less than its threshold"
    return f"better{_by_test(each)}" if each.is_improvement else "not worse by more than its threshold"


def _by_test(each: MetricComparison) -> str:
    """Explain a significant change whose interval includes 0."""
    if not each.interval.low <= 0 <= each.interval.high:
        return ""
    return " by the test that p is of; the interval is wider, because it allows for values that no case has shown"


#: Columns of a metric in every report, in order, after the verdict.
METRIC_COLUMNS = ("metric", "n", "baseline", "candidate", "change [95 %]", "p", "threshold", "stage", "meaning")


def metric_cells(each: MetricComparison) -> tuple[str, ...]:
    """Format a metric for the columns of `METRIC_COLUMNS`."""
    return (
        each.metric,
        f"{each.n:,}",
        number(each.baseline, each.metric),
        number(each.candidate, each.metric),
        change(each),
        probability(each),
        limits(each),
        each.rule.stage.value,
        meaning(each),
    )


def limits(each: MetricComparison) -> str:
    """Format the threshold and the floor of a metric; search paths have no threshold."""
    threshold = "–" if each.metric.startswith(PATH) else number(each.rule.threshold, each.metric)
    return threshold if each.rule.floor is None else f"{threshold}, floor {number(each.rule.floor, each.metric)}"


def verdict_in_words(paired: PairedRuns, verdict: Verdict) -> str:
    """Describe the verdict with everything that decided it."""
    return _because(verdict, _reasons(paired, verdict))


def _because(verdict: Verdict, reasons: Sequence[str]) -> str:
    return f"verdict: {verdict.value}{', because ' if reasons else ''}{'; '.join(reasons)}"


def _reasons(paired: PairedRuns, verdict: Verdict) -> list[str]:
    comparison = paired.comparison
    if verdict is Verdict.PASS:
        return []
    failed = []
    if comparison.errored:
        failed.append(f"{cases(len(comparison.errored))} ended in an error")
    if missing := len(comparison.only_baseline) + len(comparison.only_candidate):
        failed.append(f"{cases(missing)} {'is' if missing == 1 else 'are'} in only one run")
    failed += ["the runs are not comparable"] if comparison.unlike else []
    failed += [] if comparison.metrics else ["no metric could be compared"]
    if names := _decisive(paired, Verdict.FAIL):
        failed.append(f"{listed(names)} failed")
    if verdict is Verdict.FAIL and failed:
        return failed
    names = _decisive(paired, Verdict.INCONCLUSIVE)
    return [f"{listed(names)} {'is' if len(names) == 1 else 'are'} inconclusive"] if names else []


def run_verdict(run: Run, floors: Sequence[FloorCheck], checks: Sequence[SliceCheck]) -> tuple[Verdict, str]:
    """Return the verdict of a run by itself, and describe it with everything that decided it.

    It fails if a case ended in an error or a blocking floor was missed, and is inconclusive if a slice or a floor has
    too few cases or scores.
    """
    blocking = [each for each in checks if each.stage is Stage.BLOCK]
    failed = [f"{cases(len(run.errored))} ended in an error"] if run.errored else []
    missed = [each.metric for each in floors if each.blocks]
    missed += [each.name for each in blocking if each.verdict is Verdict.FAIL]
    failed += [f"below the floor: {listed(missed)}"] if missed else []
    few = [each.metric for each in floors if each.undecided]
    few += [each.name for each in blocking if each.verdict is Verdict.INCONCLUSIVE]
    verdict = Verdict.FAIL if failed else Verdict.INCONCLUSIVE if few else Verdict.PASS
    reasons = failed or ([f"too few cases or scores: {listed(few)}"] if few else [])
    return verdict, _because(verdict, reasons)


def _decisive(paired: PairedRuns, verdict: Verdict) -> list[str]:
    """Return the blocking metrics, case counts and slices with this verdict."""
    metrics = _decisive_metrics(paired, verdict)
    shrunk = [
        f"number of cases with {name}"
        for each in paired.comparison.shrunk
        if each.verdict is verdict
        for name in each.metrics
    ]
    return [
        *metrics,
        *shrunk,
        *(each.name for each in paired.checks if each.stage is Stage.BLOCK and each.verdict is verdict),
    ]


def _decisive_metrics(paired: PairedRuns, verdict: Verdict) -> list[str]:
    return [
        each.metric
        for each in paired.comparison.metrics
        if each.rule.stage is Stage.BLOCK and each.verdict is verdict
        if each.metric not in QUANTILES or verdict is Verdict.FAIL
    ]


def listed(names: Sequence[str]) -> str:
    """Join names; of many, only the first are spelled out."""
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def problems(paired: PairedRuns) -> list[str]:
    """Describe reasons other than metrics that make a comparison fail."""
    comparison = paired.comparison
    sentences = [
        f"{cases(len(names))} {one if len(names) == 1 else many}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"
        for names, one, many in (
            (comparison.errored, "ended in an error", "ended in an error"),
            (comparison.only_baseline, "is only in the baseline", "are only in the baseline"),
            (comparison.only_candidate, "is only in the candidate", "are only in the candidate"),
        )
        if names
    ]
    sentences += comparison.unlike
    sentences += [shrinkage(each) for each in comparison.shrunk if each.verdict is Verdict.FAIL]
    return sentences if comparison.metrics else [*sentences, "no metric could be compared"]


def shrinkage(each: Shrinkage) -> str:
    """Describe the metrics that cover fewer cases than before."""
    counts = f"{each.after:,} of {each.cases:,} answerable cases, in the baseline of {each.before:,}"
    return f"{', '.join(each.metrics)}: measured for {counts}; cases without a value are in no mean"


def notes(paired: PairedRuns) -> list[str]:
    """Describe observations that do not fail a gate."""
    comparison = paired.comparison
    sampled = [run for run in (paired.baseline, paired.candidate) if run.config.sample]
    return (
        [
            f"{run.run_id} ran a sample of {run.config.sample['cases']:,} cases: only those are compared."
            for run in sampled
        ]
        + [
            f"Only the {side} measures {', '.join(names)}: not compared."
            for side, names in (
                ("baseline", comparison.metrics_only_baseline),
                ("candidate", comparison.metrics_only_candidate),
            )
            if names
        ]
        + [
            f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} compared without {cases(count)} that "
            f"{'has' if count == 1 else 'have'} a value in only one run."
            for count, names in _by_count(comparison.unpaired).items()
        ]
        + [
            f"{each.metric} fails only after a loss of {number(each.rule.threshold)}, its absolute threshold, which is more than half of "
            f"its baseline: lower it with --threshold {each.metric}=NUMBER."
            for each in comparison.metrics
            if each.rule.stage is Stage.BLOCK
            and not each.rule.lower_is_better
            and each.baseline > 0
            and below(each.baseline, 2 * each.rule.threshold)
        ]
        + [
            f"Too few cases to decide whether it matters that {shrinkage(each)}."
            for each in comparison.shrunk
            if each.verdict is Verdict.INCONCLUSIVE
        ]
        + [
            f"Metrics of the stage {stage.value} do not decide, and {', '.join(names)} failed."
            for stage in (Stage.INFORMATIONAL, Stage.WARN)
            if (names := [m.metric for m in comparison.metrics if m.rule.stage is stage and m.verdict is Verdict.FAIL])
        ]
    )


def _by_count(counts: Mapping[str, int]) -> dict[int, list[str]]:
    """Group names with the same count."""
    names: dict[int, list[str]] = {}
    for name, count in counts.items():
        names.setdefault(count, []).append(name)
    return names


def slices_in_words(found: Sequence[SliceCheck | SliceChange]) -> list[str]:
    """Return a line for each slice."""
    return [f"{each.verdict or '':13} {each.name:44} {each}  {each.stage.value}" for each in found]


def _between(paired: PairedRuns) -> str:
    config = paired.candidate.config
    cases = f"{paired.comparison.paired} cases of {config.dataset} {config.dataset_version}"
    return f"{_name(paired.candidate)} compared with {_name(paired.baseline)}, {cases}"


def _name(run: Run) -> str:
    return run.config.label or run.run_id
