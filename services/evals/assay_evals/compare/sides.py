"""Values of each run in a comparison: the level and distribution of each metric.

Pure.
"""

from dataclasses import dataclass

import numpy as np

from assay_evals.compare.compare_runs import PairedRuns
from assay_evals.metrics.intervals import intervals
from assay_evals.metrics.metric_names import LATENCY
from assay_evals.metrics.retrieval import mean


@dataclass(frozen=True)
class Side:
    """One metric in one run.

    `low` and `high` are the mean's 95 % interval; `median` and `p95` are unweighted.
    """

    n: int
    mean: float
    low: float
    high: float
    median: float
    p95: float


def sides(paired: PairedRuns) -> dict[str, tuple[Side, Side]]:
    """Return both sides by metric, and for `latency_ms`, over cases with a value in both."""
    names = [*(each.metric for each in paired.comparison.metrics), LATENCY]
    runs = [
        (paired.baseline, [pair[0] for pair in paired.pairs]),
        (paired.candidate, [pair[1] for pair in paired.pairs]),
    ]
    columns = [{name: run.column(name, results) for name in names} for run, results in runs]
    present = {name: ~np.isnan(columns[0][name]) & ~np.isnan(columns[1][name]) for name in names}
    shared = [name for name in names if present[name].any()]
    results = [pair[0] for pair in paired.pairs]
    clusters = [each.unit for each in results] if any(each.cluster for each in results) else None
    weights = paired.baseline.weights(results)
    both: list[dict[str, Side]] = []
    for column in columns:
        values = {name: np.where(present[name], column[name], np.nan) for name in shared}
        bounds = intervals(values, (0, 1), seed=paired.comparison.seed, clusters=clusters, weights=weights)
        both.append({})
        for name, each in bounds.items():
            measured = values[name][present[name]]
            average = mean(values[name], weights)
            assert average is not None
            middle, high = np.quantile(measured, [0.5, 0.95])
            both[-1][name] = Side(len(measured), average, each.low, each.high, float(middle), float(high))
    return {name: (both[0][name], both[1][name]) for name in shared if name in both[0]}
