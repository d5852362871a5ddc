"""Intervals and verdicts where few cases move: coverage of the truth, and how often a harm as large as the threshold passes.

A share of 2, 5 or 20 % of the questions is touched by a change, n of them are drawn. Three kinds: touched questions lose all; of hits at
rank 10, four in five touched ones are lost and one is gained; and no change at all, but the interval of the one run's mean, where touched
questions have no hit. `compare` and `intervals` are called as `eval compare` and `eval run` call them. A harm that is exactly the
threshold is excluded wrongly in 2.5 % of comparisons by a bound of 97.5 %.
"""

from typing import Any

import numpy as np

from assay_evals.compare.comparison import compare
from assay_evals.compare.verdicts import Rule, Verdict
from assay_evals.metrics.intervals import intervals
from assay_evals.statistics.resampling import Floats
from tests.bench.result import result

METRIC = "hit@10"
SIZES = (20, 30, 50, 100, 225)
TOUCHED = (0.02, 0.05, 0.2)
RESAMPLES = 2_000
#: Of touched questions, how many a change helps, by kind.
HELPED = {"touched questions lose all": 0.0, "hits lost and gained 4:1": 0.2}
#: 93 %, and 1.5 times the nominal 2.5 %.
COVERAGE, FALSE_PASS = ">= 0.979", "<= 1.5"


def rows(runs: int) -> list[dict[str, Any]]:
    """Each cell's coverage, and for the two kinds of change also the share of false passes."""
    found = []
    for cases in SIZES:
        for touched in TOUCHED:
            where = f"{touched:.0%} of questions, n={cases}"
            for kind, helped in HELPED.items():
                covered, passed = _changes(cases, touched, helped, runs)
                found.append(
                    result(f"95 % interval covers the change, {kind}: {where}", covered, 0.95, "share", COVERAGE, runs)
                )
                found.append(
                    result(
                        f"a fall as large as the threshold passes, {kind}: {where}",
                        passed,
                        0.025,
                        "share",
                        FALSE_PASS,
                        runs,
                    )
                )
            covered = _shares(cases, touched, runs)
            found.append(
                result(
                    f"95 % interval of one run's mean covers it, no hit for {where}",
                    covered,
                    0.95,
                    "share",
                    COVERAGE,
                    runs,
                )
            )
    return found


def _changes(cases: int, touched: float, helped: float, runs: int) -> tuple[float, float]:
    fall = touched * (1 - 2 * helped)
    covered = passed = 0
    for run in range(runs):
        rng = np.random.default_rng([cases, round(touched * 100), round(helped * 100), run])
        draw = rng.random(cases)
        gains = draw < touched * helped
        losses = (draw < touched) & ~gains
        untouched = rng.random(cases) < 0.8
        before: Floats = np.where(gains, 0.0, np.where(losses, 1.0, untouched))
        after: Floats = np.where(gains, 1.0, np.where(losses, 0.0, untouched))
        (metric,) = compare(
            {METRIC: before}, {METRIC: after}, rules={METRIC: Rule(fall)}, seed=run, resamples=RESAMPLES
        ).metrics
        covered += metric.interval.low <= -fall <= metric.interval.high
        passed += metric.verdict is Verdict.PASS
    return covered / runs, passed / runs


def _shares(cases: int, touched: float, runs: int) -> float:
    covered = 0
    for run in range(runs):
        hits: Floats = (np.random.default_rng([cases, round(touched * 100), run]).random(cases) >= touched).astype(
            float
        )
        bounds = intervals({METRIC: hits}, (0.0, 1.0), resamples=RESAMPLES, seed=run)[METRIC]
        covered += bounds.low <= 1 - touched <= bounds.high
    return covered / runs
