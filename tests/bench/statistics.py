"""Comparisons: how fast beside scipy, how often a change that is none is called one, and how many real ones are found.

Type-I error: both runs are drawn from the same distribution of skewed differences, most of them 0; `ours` is the share of simulated
comparisons that the sign-flip test calls significant at 5 %, or that the gate fails. Power: the same with a real drop.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats

from assay_evals.comparison import Rule, Verdict, decide
from assay_evals.statistics import Floats, interval, resampled_means, sign_flip_p
from tests.bench.result import result

CASES, METRICS, RESAMPLES = 300, 12, 10_000


def skewed(rng: np.random.Generator, cases: int, drop: float = 0.0) -> Floats:
    """Differences of a metric between two runs: 70 % are 0, the others of either sign; `drop` lowers their mean by so much."""
    moved = rng.random(cases) < 0.3
    return np.where(moved, rng.choice([-1.0, 1.0], cases) * rng.exponential(0.3, cases) - drop / 0.3, 0.0)


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Ratios: CPU of scipy by ours, shares by the nominal 5 %, and power."""
    rows = _speed(1 if quick else 9)
    runs = 100 if quick else 2_000
    for cases in (30, 50, 300):
        significant, failed, covered = _rates(cases, 0.0, runs)
        rows += [
            result(
                f"95 % interval covers the truth, skewed differences, n={cases}",
                covered,
                0.95,
                "share",
                ">= 0.97",
                runs,
            ),
            result(
                f"called significant though nothing changed, n={cases} (0.02 to 0.07)",
                significant,
                0.05,
                "share",
                "<= 1.4",
                runs,
            ),
            result(
                f"gate fails though nothing changed, no threshold, n={cases}", failed, 0.05, "share", "<= 1.4", runs
            ),
        ]
    for drop in (0.03, 0.05, 0.1):
        for cases in (50, 300):
            _, failed, _ = _rates(cases, drop, runs // 4)
            rows.append(
                result(f"power: gate fails a drop of {drop:g}, n={cases}", failed, 1.0, "share", None, runs // 4)
            )
    return rows


def _speed(rounds: int) -> list[dict[str, Any]]:
    table = np.random.default_rng(1).normal(size=(CASES, METRICS))

    def ours() -> None:
        means = resampled_means(table, resamples=RESAMPLES, seed=1)
        for column in range(METRICS):
            interval(table[:, column], means[:, column])

    def theirs() -> None:
        for column in range(METRICS):
            scipy.stats.bootstrap((table[:, column],), np.mean, n_resamples=RESAMPLES, rng=1)

    mine, scipys = [], []
    for _ in range(rounds):
        mine.append(_cpu(ours))
        scipys.append(_cpu(theirs))
    name = f"scipy.stats.bootstrap's CPU by ours: {RESAMPLES:,} resamples, {METRICS} metrics, n={CASES}"
    return [result(name, statistics.median(scipys), statistics.median(mine), "CPU s (theirs, ours)", ">= 20", rounds)]


def _rates(cases: int, drop: float, runs: int) -> tuple[float, float, float]:
    """Shares of simulated comparisons that are called significant, that fail a gate of threshold 0, and whose interval holds the truth."""
    significant = failed = covered = 0
    rule = Rule(0.0)
    for run in range(runs):
        deltas = skewed(np.random.default_rng([cases, run]), cases, drop)
        p_value = sign_flip_p(deltas, seed=run, resamples=1_000)
        bounds = interval(deltas, resampled_means(deltas, seed=run, resamples=2_000)[:, 0])
        significant += p_value < 0.05
        failed += decide(float(deltas.mean()), bounds, 1.0, rule, p_value) is Verdict.FAIL
        covered += bounds.low <= -drop <= bounds.high
    return significant / runs, failed / runs, covered / runs


def _cpu(work: Callable[[], None]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
