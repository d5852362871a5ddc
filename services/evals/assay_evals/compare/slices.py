"""Slices of runs: by query type, tag, source or complexity, each with its interval and floors. Pure.

A floor has three verdicts. `fail`: the slice is significantly below it, by Gaffke's bound and with Holm's adjustment
over the slices of a field, so that many slices do not make a false alarm more likely. `pass`: its mean reaches the
floor and the interval excludes a mean that is lower by the metric's threshold. `inconclusive`: otherwise. A slice with
answerable cases that does not measure a metric is `inconclusive` too, and fails if its floor names it or no slice
measures the metric. A change of a slice is judged like that of all cases, also with Holm's adjustment.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay_evals.compare.verdicts import Rule, Stage, Verdict, decide, is_significant, rule_of
from assay_evals.dataset.case_slices import FIELDS, case_slices
from assay_evals.dataset.model import Case
from assay_evals.dataset.scorer_specs import SCORE
from assay_evals.metrics.answer_coverage import is_answerable
from assay_evals.metrics.metric_names import is_share
from assay_evals.metrics.retrieval import below
from assay_evals.run.model import CaseResult, Run
from assay_evals.statistics.bounded import bounded_draws, bounded_intervals
from assay_evals.statistics.intervals import Interval
from assay_evals.statistics.power import cases_needed, unseen_cases
from assay_evals.statistics.resampling import Floats
from assay_evals.statistics.significance import flip_tests, holm

#: Metric that slices show in addition to those with a floor and those of scorers: the first one measured.
SHOWN_FIRST = ("ndcg@10", "recall@10", "mrr", "faithfulness")
#: The level of a floor's test, one-sided.
LEVEL = 0.025


@dataclass(frozen=True)
class SliceFloor:
    """Floor of a metric for the slices of a field: that of one value, or each with an answerable case."""

    field: str
    metric: str
    floor: float
    value: str | None = None
    stage: Stage = Stage.BLOCK


@dataclass(frozen=True)
class SliceCheck:
    """One metric of one slice, and its floor, if any.

    `p_below`: adjusted p-value that the slice reaches it.
    """

    field: str
    value: str
    metric: str
    n: int
    mean: float | None
    low: float | None
    high: float | None
    floor: float | None = None
    p_below: float | None = None
    stage: Stage = Stage.INFORMATIONAL
    verdict: Verdict | None = None
    #: If inconclusive: how many cases like these would be enough; None if the mean is too close to the floor.
    cases_needed: int | None = None

    @property
    def name(self) -> str:
        """Name of the slice and the metric."""
        return f"{self.field}={self.value} {self.metric}"

    def __str__(self) -> str:
        if self.mean is None:
            return f"not measured, floor {self.floor:g}"
        floor = "" if self.floor is None else f", floor {self.floor:g}"
        floor += f": about {self.cases_needed:,} cases needed" if self.cases_needed else ""
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}] n={self.n}{floor}"


@dataclass(frozen=True)
class SliceChange:
    """Change of one metric of one slice between two runs. Only floors affect a verdict."""

    field: str
    value: str
    metric: str
    n: int
    baseline: float
    candidate: float
    delta: float
    low: float
    high: float
    p: float
    verdict: Verdict
    stage: Stage = Stage.INFORMATIONAL

    @property
    def name(self) -> str:
        """Name of the slice and the metric."""
        return f"change of {self.field}={self.value} {self.metric}"

    def __str__(self) -> str:
        return f"{self.baseline:.3f} to {self.candidate:.3f}, {self.delta:+.3f} [{self.low:+.3f}, {self.high:+.3f}] n={self.n}"


def values_of(result: CaseResult, field: str) -> Sequence[str]:
    """Return a case's values of a field; none if the run does not contain it."""
    return (result.query_type,) if field == "query_type" else result.slices.get(field, ())


def known_values(of: Iterable[Case | CaseResult]) -> dict[str, set[str]]:
    """Return all values of each field."""
    by_field: dict[str, set[str]] = {field: set() for field in FIELDS}
    for each in of:
        by_field["query_type"].add(each.query_type)
        for field, values in (case_slices(each) if isinstance(each, Case) else each.slices).items():
            by_field.setdefault(field, set()).update(values)
    return by_field


def slices_of(results: Iterable[CaseResult], field: str) -> dict[str, list[int]]:
    """Return positions of the results by value of the field, ordered by value."""
    by_value: dict[str, list[int]] = defaultdict(list)
    for place, result in enumerate(results):
        for value in dict.fromkeys(values_of(result, field)):
            by_value[value].append(place)
    return dict(sorted(by_value.items()))


def metrics_shown(names: Sequence[str], floors: Iterable[SliceFloor]) -> list[str]:
    """Return the metrics shown for slices: the first one measured, scorers', and those with a floor."""
    first = next((name for name in SHOWN_FIRST if name in names), None)
    held = [each.metric for each in floors]
    own = [name for name in names if name.startswith(SCORE)]
    return [name for name in dict.fromkeys([*([first] if first else []), *own, *held]) if is_share(name)]


def slice_checks(
    run: Run, fields: Iterable[str], floors: Sequence[SliceFloor], rules: Mapping[str, Rule]
) -> list[SliceCheck]:
    """Return a run's slices by each field, and by those in floors."""
    found: list[SliceCheck] = []
    for field in dict.fromkeys([*fields, *(each.field for each in floors)]):
        of_field = [each for each in floors if each.field == field]
        for metric in metrics_shown(run.names, of_field):
            checks = [
                _check(run, field, value, metric, places, of_field, rule_of(metric, rules))
                for value, places in slices_of(run.results, field).items()
            ]
            held = [each for each in checks if each is not None]
            if all(each.mean is None for each in held):
                held = [replace(each, verdict=Verdict.FAIL) for each in held]
            found += _adjusted(held, rule_of(metric, rules))
    return found


def _check(
    run: Run,
    field: str,
    value: str,
    metric: str,
    places: Sequence[int],
    floors: Sequence[SliceFloor],
    rule: Rule,
) -> SliceCheck | None:
    ours = [each for each in floors if each.metric == metric and each.value in (value, None)]
    held = next((each for each in ours if each.value == value), ours[0] if ours else None)
    results = [run.results[place] for place in places]
    values, weights = run.column(metric, results), run.weights(results)
    present = ~np.isnan(values)
    if not present.any():
        if held is None or (held.value is None and not any(is_answerable(result.query_type) for result in results)):
            return None
        verdict = Verdict.INCONCLUSIVE if held.value is None else Verdict.FAIL
        return SliceCheck(field, value, metric, 0, None, None, None, held.floor, None, held.stage, verdict)
    lows, highs = bounded_draws(values, 0, 1, seed=run.config.seed, clusters=_clusters(results), weights=weights)
    low, high = float(np.quantile(lows, 0.025)), float(np.quantile(highs, 0.975))
    mean = float(np.average(values[present], weights=None if weights is None else weights[present]))
    check = SliceCheck(field, value, metric, int(present.sum()), mean, low, high)
    if held is None:
        return check
    reached = lows <= held.floor if rule.lower_is_better else highs >= held.floor
    p = float((1 + np.count_nonzero(reached)) / (1 + len(reached)))
    margin = mean - held.floor if not rule.lower_is_better else held.floor - mean
    needed = _needed(values, margin + rule.threshold if margin >= 0 else -margin)
    return replace(check, floor=held.floor, p_below=p, stage=held.stage, cases_needed=needed)


def _needed(values: Floats, margin: float) -> int | None:
    """Return the number of cases like these that would tell their mean from a value that is so far from it."""
    needed = (cases_needed(values, margin) or 0) + unseen_cases(margin)
    return needed if margin > 0 and needed > np.count_nonzero(~np.isnan(values)) else None


def _clusters(results: Sequence[CaseResult]) -> list[Hashable] | None:
    return [result.unit for result in results] if any(result.cluster for result in results) else None


def _adjusted(checks: Sequence[SliceCheck], rule: Rule) -> list[SliceCheck]:
    adjusted = holm({each.value: each.p_below for each in checks if each.p_below is not None})
    judged = [
        replace(each, p_below=adjusted[each.value], verdict=_verdict(each, adjusted[each.value], rule))
        if each.value in adjusted
        else each
        for each in checks
    ]
    return [each if each.verdict is Verdict.INCONCLUSIVE else replace(each, cases_needed=None) for each in judged]


def _verdict(each: SliceCheck, p_below: float, rule: Rule) -> Verdict:
    assert each.mean is not None
    assert each.low is not None
    assert each.high is not None
    assert each.floor is not None
    if p_below < LEVEL:
        return Verdict.FAIL
    sign = -1.0 if rule.lower_is_better else 1.0
    worst = sign * (each.high if rule.lower_is_better else each.low)
    reached = not below(sign * each.mean, sign * each.floor)
    return Verdict.PASS if reached and worst >= sign * each.floor - rule.threshold else Verdict.INCONCLUSIVE


def slice_changes(
    pairs: Sequence[tuple[CaseResult, CaseResult]],
    columns: Sequence[Mapping[str, Floats]],
    fields: Iterable[str],
    metrics: Iterable[str],
    rules: Mapping[str, Rule],
    seed: int,
) -> list[SliceChange]:
    """Return the changes of slices between two runs.

    `columns` contains their values, both by metric and in the pairs' order.
    """
    changes: list[SliceChange] = []
    before, after = columns
    baselines = [pair[0] for pair in pairs]
    for field in fields:
        for metric in (name for name in metrics if name in before and name in after):
            rule = replace(rule_of(metric, rules), floor=None)
            deltas, tested = after[metric] - before[metric], {}
            for value, places in slices_of(baselines, field).items():
                present = [place for place in places if not np.isnan(deltas[place])]
                if present:
                    tested[value] = _change(baselines, before[metric], after[metric], present, rule, seed)
            fell = holm({value: each[4] for value, each in tested.items()})
            for value, (n, one, other, bounds, _, own) in tested.items():
                delta = other - one
                significant = is_significant(bounds, own, fell[value])
                verdict = decide(delta, bounds, other, rule, significant=significant)
                ends = (bounds.low, bounds.high, fell[value], verdict)
                changes.append(SliceChange(field, value, metric, n, one, other, delta, *ends))
    return changes


def _change(
    baselines: Sequence[CaseResult], before: Floats, after: Floats, known: list[int], rule: Rule, seed: int
) -> tuple[int, float, float, Interval, float, float]:
    """Return cases, both means, the change's interval, and p-values: of a worsening, and two-sided."""
    results = [baselines[place] for place in known]
    shares = np.array([result.weight for result in results])
    deltas, clusters = after[known] - before[known], _clusters(results)
    (bounds,) = bounded_intervals(deltas, -1, 1, seed=seed, clusters=clusters, weights=shares)
    gains = -deltas if rule.lower_is_better else deltas
    (test,) = flip_tests(gains, seed=seed, clusters=clusters, weights=shares)
    assert bounds is not None
    means = (float(np.average(side[known], weights=shares)) for side in (before, after))
    one, other = means
    return len(known), one, other, bounds, test.fell, test.two_sided


def worst(verdict: Verdict, checks: Iterable[SliceCheck], inconclusive: Verdict = Verdict.INCONCLUSIVE) -> Verdict:
    """Combine a verdict with the blocking floors. `inconclusive`: what inconclusive ones count as."""
    verdicts = [verdict, *(each.verdict for each in checks if each.verdict is not None and each.stage is Stage.BLOCK)]
    counted = [inconclusive if each is Verdict.INCONCLUSIVE else each for each in verdicts]
    return next((each for each in (Verdict.FAIL, Verdict.INCONCLUSIVE) if each in counted), Verdict.PASS)
