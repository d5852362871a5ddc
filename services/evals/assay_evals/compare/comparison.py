"""Compare two runs over the same cases, metric by metric: change, significance and verdict. Pure.

The verdict has three values, because few cases often do not allow a decision:

- `fail`: the change is significantly worse, by its interval and by the test of all metrics, and at least the threshold;
- `pass`: the interval excludes a change for the worse as large as the threshold (non-inferiority);
- `inconclusive`: neither; `cases_needed` is the number of cases needed for a decision.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay_evals.compare.shrinkage import Shrinkage
from assay_evals.compare.verdicts import ALPHA, DEFAULT_RULES, Rule, Stage, Verdict, decide, is_significant, rule_of
from assay_evals.metrics.intervals import cluster_count, intervals
from assay_evals.metrics.metric_names import LATENCY, QUANTILES, is_share
from assay_evals.metrics.retrieval import below
from assay_evals.statistics.intervals import Interval
from assay_evals.statistics.power import cases_needed, effect_size, unseen_cases
from assay_evals.statistics.resampling import RESAMPLES, Floats, resampled_quantile_changes
from assay_evals.statistics.significance import FlipTest, flip_tests, holm, quantile_tests

#: A number of cases needed is not stated if it is above both: this number, and so many times those that there are.
_MANY, _MANY_TIMES = 1_000, 10


@dataclass(frozen=True)
class MetricComparison:
    """One metric in both runs.

    `p_worse` and `p_better` are one-sided and adjusted for all blocking metrics (or for all others): they decide.
    `p_value` is two-sided and of this metric alone: it has to be significant too. `p_holm` is that with Holm's
    adjustment and decides nothing. The p-values of a quantile are not adjusted.
    """

    metric: str
    n: int
    baseline: float
    candidate: float
    delta: float
    interval: Interval
    p_value: float | None
    p_holm: float | None
    p_worse: float | None
    p_better: float | None
    effect_size: float | None
    verdict: Verdict
    rule: Rule
    cases_needed: int | None

    @property
    def delta_percent(self) -> float | None:
        """`delta` in percent of the baseline; None if that is 0."""
        return 100 * self.delta / self.baseline if self.baseline else None

    @property
    def p_one_sided(self) -> float | None:
        """Adjusted one-sided p-value of the change in its own direction."""
        return self.p_worse if self.worse else self.p_better

    @property
    def p(self) -> float | None:
        """Shown p-value, the larger of both tests': the change is significant if it is below 0.05."""
        one_sided = self.p_one_sided
        return None if self.p_value is None or one_sided is None else max(self.p_value, one_sided)

    @property
    def significant(self) -> bool:
        """True if the change is statistically significant in its direction: see `is_significant`."""
        return is_significant(self.interval, self.p_value, self.p_one_sided)

    @property
    def worse(self) -> bool:
        """True if the change is for the worse, however small."""
        return self.delta > 0 if self.rule.lower_is_better else self.delta < 0

    @property
    def reaches_threshold(self) -> bool:
        """True if the change for the worse is as large as its threshold, significant or not."""
        return self.worse and not below(abs(self.delta), self.rule.threshold)

    @property
    def is_regression(self) -> bool:
        """True for a significant change for the worse."""
        return self.worse and self.significant

    @property
    def is_improvement(self) -> bool:
        """True for a significant change for the better."""
        return self.delta != 0 and not self.worse and self.significant


@dataclass(frozen=True)
class Comparison:
    """All metrics of two runs.

    Cases that are in only one run, or ended in an error, are in no metric, and fail a gate.
    """

    metrics: list[MetricComparison]
    paired: int
    only_baseline: list[str] = field(default_factory=list)
    only_candidate: list[str] = field(default_factory=list)
    errored: list[str] = field(default_factory=list)
    #: Why the runs were not measured alike, in words; it fails a gate too.
    unlike: list[str] = field(default_factory=list)
    #: Metrics that one run alone has a value of. They are not compared; one that blocks and was lost is in `unlike`.
    metrics_only_baseline: list[str] = field(default_factory=list)
    metrics_only_candidate: list[str] = field(default_factory=list)
    #: By metric that both measured: how many cases have a value of it in one run alone, and so are not compared by it.
    unpaired: dict[str, int] = field(default_factory=dict)
    #: Metrics that block, and are measured of fewer cases than before.
    shrunk: list[Shrinkage] = field(default_factory=list)
    seed: int = 0
    resamples: int = RESAMPLES

    def verdict(self, *, inconclusive: Verdict = Verdict.INCONCLUSIVE) -> Verdict:
        """Return the verdict over the blocking metrics: fail before inconclusive before pass.

        `inconclusive` is the verdict that inconclusive metrics count as.
        """
        if self.only_baseline or self.only_candidate or self.errored or self.unlike:
            return Verdict.FAIL
        # A tail of a few slow cases excludes no increase of a percentile: only a significant one decides.
        decides = [m for m in self.metrics if m.metric not in QUANTILES or m.verdict is not Verdict.INCONCLUSIVE]
        blocking = [m.verdict for m in decides if m.rule.stage is Stage.BLOCK] + [m.verdict for m in self.shrunk]
        if not self.metrics:
            return Verdict.FAIL  # nothing was compared: silence is not health
        verdicts = [inconclusive if verdict is Verdict.INCONCLUSIVE else verdict for verdict in blocking]
        return next((verdict for verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE) if verdict in verdicts), Verdict.PASS)


def compare(
    baseline: Mapping[str, Floats],
    candidate: Mapping[str, Floats],
    *,
    rules: Mapping[str, Rule] | None = None,
    clusters: Sequence[Hashable] | None = None,
    weights: Floats | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare paired values: by metric, one value per case, cases in the same order.

    A value is `nan` if a metric does not apply. A case counts for a metric if both runs have a value for it, weighted
    by `weights` if given. A column `latency_ms` becomes the quantiles of `QUANTILES`, where all cases count equally. A
    metric in only one run, such as from an older Assay, is listed but not compared. Raises `ValueError` for different
    numbers of cases.
    """
    lengths = {len(values) for side in (baseline, candidate) for values in side.values()}
    if len(lengths) > 1:
        raise ValueError("the runs have different numbers of cases: pair them by id first")
    chosen = {**DEFAULT_RULES, **(rules or {})}
    measured = [
        {name: None for name, values in side.items() if not np.isnan(values).all()} for side in (baseline, candidate)
    ]
    alone = [[name for name in one if name not in other] for one, other in (measured, measured[::-1])]
    both = [name for name in measured[0] if name in measured[1]]
    names = [name for name in both if name != LATENCY and _both(baseline[name], candidate[name]).any()]
    metrics = _means(names, baseline, candidate, chosen, clusters, weights, seed, resamples) if names else []
    if LATENCY in both and _both(baseline[LATENCY], candidate[LATENCY]).any():
        metrics += _quantiles(baseline[LATENCY], candidate[LATENCY], chosen, seed)
    return Comparison(
        metrics,
        paired=lengths.pop() if lengths else 0,
        metrics_only_baseline=alone[0],
        metrics_only_candidate=alone[1],
        seed=seed,
        resamples=resamples,
    )


def _both(one: Floats, other: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return ~(np.isnan(one) | np.isnan(other))


def _means(
    names: Sequence[str],
    baseline: Mapping[str, Floats],
    candidate: Mapping[str, Floats],
    rules: Mapping[str, Rule],
    clusters: Sequence[Hashable] | None,
    weights: Floats | None,
    seed: int,
    resamples: int,
) -> list[MetricComparison]:
    deltas = np.column_stack([candidate[name] - baseline[name] for name in names])
    bounds_of = intervals(
        {name: deltas[:, place] for place, name in enumerate(names)},
        (-1, 1),
        resamples=resamples,
        seed=seed,
        clusters=clusters,
        weights=weights,
    )
    tests = _tests(names, deltas, rules, clusters, weights, seed, resamples)
    adjusted = _holm(tests, rules)
    metrics = []
    for place, name in enumerate(names):
        rule, column = rule_of(name, rules), deltas[:, place]
        paired = ~np.isnan(column)
        units = int(paired.sum()) if clusters is None else cluster_count(clusters, paired)
        bounds = bounds_of[name]
        share = None if weights is None else weights[paired]
        delta, before, after = (
            float(np.average(values[paired], weights=share)) for values in (column, baseline[name], candidate[name])
        )
        test = tests[name]
        worse = delta > 0 if rule.lower_is_better else delta < 0
        significant = is_significant(bounds, test.two_sided, test.fell if worse else test.rose)
        verdict = decide(delta, bounds, after, rule, significant=significant)
        metrics.append(
            MetricComparison(
                metric=name,
                n=int(paired.sum()),
                baseline=before,
                candidate=after,
                delta=delta,
                interval=bounds,
                p_value=test.two_sided,
                p_holm=adjusted[name],
                p_worse=test.fell,
                p_better=test.rose,
                effect_size=effect_size(column),
                verdict=verdict,
                rule=rule,
                cases_needed=_more_cases(name, column, delta, rule, units, len(names))
                if verdict is Verdict.INCONCLUSIVE
                else None,
            )
        )
    return metrics


def _tests(
    names: Sequence[str],
    deltas: Floats,
    rules: Mapping[str, Rule],
    clusters: Sequence[Hashable] | None,
    weights: Floats | None,
    seed: int,
    resamples: int,
) -> dict[str, FlipTest]:
    """Test gains in two families, so that non-blocking metrics make no gate less sensitive."""
    by_name: dict[str, FlipTest] = {}
    for blocks in (True, False):
        family = [name for name in names if (rule_of(name, rules).stage is Stage.BLOCK) is blocks]
        if family:
            signs = [-1.0 if rule_of(name, rules).lower_is_better else 1.0 for name in family]
            gains = deltas[:, [names.index(name) for name in family]] * np.array(signs)
            tests = flip_tests(gains, resamples=resamples, seed=seed, clusters=clusters, weights=weights)
            by_name |= dict(zip(family, tests, strict=True))
    return by_name


def _holm(tests: Mapping[str, FlipTest], rules: Mapping[str, Rule]) -> dict[str, float]:
    """Return Holm's adjustment of the two-sided p-values, in the same families."""
    blocking = {name: test.two_sided for name, test in tests.items() if rule_of(name, rules).stage is Stage.BLOCK}
    return holm(blocking) | holm({name: test.two_sided for name, test in tests.items() if name not in blocking})


def _more_cases(name: str, deltas: Floats, delta: float, rule: Rule, units: int, tested: int) -> int | None:
    """Return the number of cases needed for a verdict, in clusters of the same size.

    A loss as large as the threshold lacks significance: the number is that to detect the loss, by the tests of this metric
    and of all (Bonferroni). For a smaller loss, it is the number to detect a change as large as the threshold. If there are as
    many already, it is the number to tell this change from the threshold. None if that would be very many: the change is too
    close to the threshold.
    """
    loss = delta if rule.lower_is_better else -delta
    margins: tuple[float, ...] = (rule.threshold, rule.threshold - loss)
    if loss > 0 and not below(loss, rule.threshold):
        if detecting := cases_needed(deltas, loss, level=1 - min(ALPHA, 2 * ALPHA / tested)):
            return _of_cases(deltas, detecting, units) if detecting > units else None
        margins = margins[:1]  # the cases did not vary
    for margin in margins:
        needed = (cases_needed(deltas, margin) or 0) + (unseen_cases(margin) if is_share(name) else 0)
        if units < needed <= max(_MANY, _MANY_TIMES * units):
            return _of_cases(deltas, needed, units)
    return None


def _of_cases(deltas: Floats, units: int, known: int) -> int:
    """Return the cases of so many clusters, if those that are known have as many cases as others."""
    return math.ceil(units * np.count_nonzero(~np.isnan(deltas)) / known)


def _quantiles(before: Floats, after: Floats, rules: Mapping[str, Rule], seed: int) -> list[MetricComparison]:
    paired = _both(before, after)
    before, after = before[paired], after[paired]
    changes = resampled_quantile_changes(before, after, list(QUANTILES.values()), seed=seed)
    tests = quantile_tests(before, after, list(QUANTILES.values()), seed=seed)
    metrics = []
    for place, (name, share) in enumerate(QUANTILES.items()):
        rule = rule_of(name, rules)
        low, high = (float(bound) for bound in np.quantile(changes[:, place], [0.025, 0.975]))
        one, other = float(np.quantile(before, share)), float(np.quantile(after, share))
        bounds = Interval(low, high, "percentile" if low != high else "degenerate")
        fell, rose = tests[place]
        worse, better = (rose, fell) if rule.lower_is_better else (fell, rose)
        two_sided = min(1.0, 2 * min(fell, rose))
        significant = is_significant(bounds, two_sided, worse if (other > one) is rule.lower_is_better else better)
        verdict = decide(other - one, bounds, other, rule, significant=significant)
        p_values = (two_sided, None, worse, better, None)
        metrics.append(
            MetricComparison(name, len(before), one, other, other - one, bounds, *p_values, verdict, rule, None)
        )
    return metrics
