"""Comparisons: how fast beside scipy, how often a change that is none is called one, and how many real ones are found.

Rankings of 40 documents are simulated, before and after a change, and nine metrics of them are compared as users' runs are: by
`compare`, in one family, with no threshold. Each simulated comparison draws its cases from a pool of such pairs of rankings.

Type-I error: the pool is weighted (exponentially tilted) so that no metric's mean changes at all. In one pool the change reorders half of
the questions, so that differences are as often up as down; in another it also loses 10 % of them and helps the half a little, so that
they are skewed (its mirror image gives the same shares, worse and better exchanged). A third is far more skewed than rankings are, and
has no target. `ours` is the share of comparisons in which one or more metrics are called worse, or better. Power: the share in which one
or more are called worse when the mean reciprocal rank really fell by so much, and in which one of these also fell by the threshold of the
default rules. "By Holm" is what two-sided tests and Holm's adjustment would find.

Where few cases move: `few_cases`.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
import scipy.stats

from assay_evals.compare.comparison import MetricComparison, compare
from assay_evals.compare.verdicts import ALPHA, DEFAULT_RULES, Rule
from assay_evals.metrics.retrieval import Judged, retrieval_metrics
from assay_evals.statistics.intervals import interval
from assay_evals.statistics.resampling import Floats, resampled_means
from tests.bench import few_cases
from tests.bench.result import result

CASES, METRICS, RESAMPLES = 300, 12, 10_000
DOCUMENTS, DEPTH, POOL = 40, 10, 40_000
THRESHOLD = DEFAULT_RULES["mrr"].threshold
SIZES = (30, 50, 300)
#: 2 % to 7 %, beside the nominal 5 %.
BAND = "0.4 to 1.4"
#: How much relevant documents' scores sink where the change touches a question, by the fall of mean reciprocal rank that gives.
DROPS = {0.03: 0.26, 0.05: 0.43, 0.1: 0.88}


@dataclass(frozen=True)
class Pool:
    """Changes of the metrics, one row a case, and how often each is drawn."""

    names: list[str]
    changes: Floats
    cumulated: Floats

    def draw(self, rng: np.random.Generator, cases: int) -> dict[str, Floats]:
        """Changes of so many cases by metric, all of them 0 before."""
        places = np.searchsorted(self.cumulated, rng.random(cases)).clip(max=len(self.changes) - 1)
        return dict(zip(self.names, self.changes[places].T, strict=True))


def pool(*, touched: float = 0.5, lost: float = 0.0, helped: float = 0.0, drop: float = 0.0) -> Pool:
    """Rankings before and after: `touched` of the questions get new noise, `lost` lose what is relevant, scores of it rise or sink."""
    rng = np.random.default_rng(5)
    relevant = rng.integers(1, 4, POOL)
    wanted = np.arange(DOCUMENTS) < relevant[:, None]
    truth = rng.normal(size=wanted.shape) + wanted * rng.normal(1.7, 1, (POOL, 1))
    before = truth + 0.7 * rng.normal(size=truth.shape)
    moved = rng.random((POOL, 1)) < touched
    after = np.where(moved, truth + 0.7 * rng.normal(size=truth.shape) + wanted * (helped - drop), before)
    after = np.where((rng.random((POOL, 1)) < lost) & wanted, -np.inf, after)
    old, new = _metrics(before, relevant), _metrics(after, relevant)
    changes = np.column_stack([new[name] - old[name] for name in new])
    weights = np.full(POOL, 1 / POOL) if drop else _without_change(changes)
    return Pool(list(new), changes, np.cumsum(weights))


def exponential() -> Pool:
    """Nine columns, correlated 0.6 by their ranks: differences of mean 0 with few large losses and many small gains, none of them 0."""
    rng = np.random.default_rng(6)
    normal = np.sqrt(0.6) * rng.normal(size=(POOL, 1)) + np.sqrt(0.4) * rng.normal(size=(POOL, 9))
    changes = scipy.special.log_ndtr(normal)
    return Pool([f"m{number}" for number in range(9)], changes - changes.mean(axis=0), np.arange(1, POOL + 1) / POOL)


def _metrics(scores: Floats, relevant: Any) -> dict[str, Floats]:
    best = np.argsort(-scores, axis=1)[:, :DEPTH]
    grades = (best < relevant[:, None]).astype(float)
    ideal = (np.arange(DEPTH) < relevant[:, None]).astype(float)
    found = retrieval_metrics(Judged(grades, ideal, relevant, np.full(len(scores), DEPTH)))
    del found["null_accuracy"]
    return found


def _without_change(changes: Floats) -> Floats:
    """Weights `exp(changes @ tilt)`, such that every metric's weighted mean is 0: Newton's method."""
    tilt = np.zeros(changes.shape[1])
    for _ in range(50):
        weights = np.exp(changes @ tilt)
        weights /= weights.sum()
        mean = weights @ changes
        if np.abs(mean).max() < 1e-12:
            return weights
        spread = (changes * weights[:, None]).T @ changes - np.outer(mean, mean)
        tilt -= np.linalg.lstsq(spread, mean, rcond=1e-10)[0]
    raise AssertionError("no weights leave every metric unchanged")


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Ratios: CPU of scipy by ours, shares by the nominal 5 %, and power."""
    runs = 100 if quick else 2_000
    rows = [*_speed(1 if quick else 9), _noise(50 if quick else 500), *few_cases.rows(100 if quick else 2_000)]
    unchanged = {
        "symmetric": (pool(), BAND),
        "skewed": (pool(lost=0.1, helped=1.0), BAND),
        "skewness -2": (exponential(), None),
    }
    for shape, (source, band) in unchanged.items():
        for cases in SIZES:
            rates = _rates(source, cases, runs)
            for what in ("worse", "better"):
                name = f"one of nine metrics called {what} though none changed, {shape}, n={cases}"
                rows.append(result(name, rates[what], 0.05, "share", band, runs))
            name = f"... worse by Holm, {shape}, n={cases}"
            rows.append(result(name, rates["worse by Holm"], 0.05, "share", None, runs))
            name = f"a single metric called worse or better though it did not change, {shape}, n={cases}"
            rows.append(result(name, rates["alone"], 0.05, "share", band, runs))
            name = f"95 % interval of its change covers 0, {shape}, n={cases}"
            rows.append(result(name, rates["covered"], 0.95, "share", band and ">= 0.97", runs))
    for fall, drop in DROPS.items():
        source = pool(drop=drop)
        for cases in SIZES:
            rates = _rates(source, cases, runs // 4)
            for what in ("worse", "worse by Holm", "worse by the threshold"):
                name = f"power: found {what}, MRR fell by {fall:g}, n={cases}"
                rows.append(result(name, rates[what], 1.0, "share", None, runs // 4))
    return rows


def _speed(rounds: int) -> list[dict[str, Any]]:
    table = np.random.default_rng(1).normal(size=(CASES, METRICS))

    def ours() -> None:
        means = resampled_means(table, resamples=RESAMPLES, seed=1)
        for column in range(METRICS):
            interval(table[:, column], means[:, column])

    def theirs(method: str) -> Callable[[], None]:
        def work() -> None:
            for column in range(METRICS):
                scipy.stats.bootstrap((table[:, column],), np.mean, n_resamples=RESAMPLES, method=method, rng=1)

        return work

    rows = []
    for method, target in (("percentile", ">= 20"), ("BCa", None)):
        times = [(_cpu(theirs(method)), _cpu(ours)) for _ in range(rounds)]
        slow, quick = (statistics.median(each) for each in zip(*times, strict=True))
        name = f"scipy.stats.bootstrap's CPU ({method}) by ours: {RESAMPLES:,} resamples, {METRICS} metrics, n={CASES}"
        rows.append(result(name, slow, quick, "CPU s (theirs, ours)", target, rounds))
    return rows


def _noise(runs: int) -> dict[str, Any]:
    """How far the bounds of an interval wander with the seed, ours beside scipy's."""
    values, resamples = np.random.default_rng(2).exponential(size=CASES), 2_000
    ours, theirs = [], []
    for seed in range(runs):
        bounds = interval(values, resampled_means(values, resamples=resamples, seed=seed)[:, 0])
        ours.append((bounds.low, bounds.high))
        found = scipy.stats.bootstrap((values,), np.mean, n_resamples=resamples, method="percentile", rng=seed)
        theirs.append(tuple(found.confidence_interval))
    spreads = [float(np.std(each, axis=0).mean()) for each in (ours, theirs)]
    name = f"Monte-Carlo error of an interval's bounds beside scipy's, {resamples:,} resamples, n={CASES}"
    return result(name, *spreads, "standard deviation", "<= 1.1", runs)


def _rates(source: Pool, cases: int, runs: int) -> dict[str, float]:
    """Shares of simulated comparisons: see above. `alone` and `covered` are of the first metric, compared by itself."""
    rules = dict.fromkeys(source.names, Rule(0.0))
    before = dict.fromkeys(source.names, np.zeros(cases))
    first = source.names[0]
    counts = dict.fromkeys(("worse", "better", "worse by Holm", "worse by the threshold", "alone", "covered"), 0)
    for run in range(runs):
        after = source.draw(np.random.default_rng([cases, run]), cases)
        found = compare(before, after, rules=rules, seed=run, resamples=1_000).metrics
        (alone,) = compare(
            {first: before[first]}, {first: after[first]}, rules=rules, seed=run, resamples=1_000
        ).metrics
        counts["worse"] += any(metric.is_regression for metric in found)
        counts["better"] += any(metric.is_improvement for metric in found)
        counts["worse by Holm"] += any(_worse_by_holm(metric) for metric in found)
        counts["worse by the threshold"] += any(metric.is_regression and metric.delta <= -THRESHOLD for metric in found)
        counts["alone"] += alone.significant
        counts["covered"] += alone.interval.low <= 0 <= alone.interval.high
    return {name: count / runs for name, count in counts.items()}


def _worse_by_holm(metric: MetricComparison) -> bool:
    return metric.delta < 0 and metric.p_holm is not None and metric.p_holm < ALPHA


def _cpu(work: Callable[[], None]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
