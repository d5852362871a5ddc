"""Detect metrics with values in fewer cases of the candidate than of the baseline. Pure."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay_evals.compare.verdicts import MEASURED, Verdict, decide, is_significant
from assay_evals.statistics.bounded import bounded_intervals
from assay_evals.statistics.intervals import Interval
from assay_evals.statistics.resampling import RESAMPLES, Floats
from assay_evals.statistics.significance import flip_tests


@dataclass(frozen=True)
class Shrinkage:
    """Answerable cases with values of these metrics in the baseline only.

    A mean over fewer cases may look better than before, so the number of measured cases is compared too, by the rule
    `MEASURED`.
    """

    metrics: list[str]
    cases: int
    before: int
    after: int
    interval: Interval
    verdict: Verdict


def shrinkages(
    names: Sequence[str],
    baseline: Mapping[str, Floats],
    candidate: Mapping[str, Floats],
    counts: np.ndarray[Any, np.dtype[np.bool_]],
    *,
    clusters: Sequence[Hashable] | None = None,
    weights: Floats | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[Shrinkage]:
    """Return the metrics that the candidate has in fewer of the `counts` cases; similar ones grouped."""
    measured = {name: tuple((~np.isnan(side[name]))[counts] for side in (baseline, candidate)) for name in names}
    alike: dict[bytes, list[str]] = {}
    for name, (before, after) in measured.items():
        if after.sum() < before.sum():
            alike.setdefault(before.tobytes() + after.tobytes(), []).append(name)
    if not alike:
        return []
    groups = list(alike.values())
    deltas = np.column_stack([measured[first][1] * 1.0 - measured[first][0] for first, *_ in groups])
    share = None if weights is None else weights[counts]
    units = None if clusters is None else [each for each, counted in zip(clusters, counts, strict=True) if counted]
    bounds = bounded_intervals(deltas, -1, 1, resamples=resamples, seed=seed, clusters=units, weights=share)
    tests = flip_tests(deltas, resamples=resamples, seed=seed, clusters=units, weights=share)
    found = []
    for place, group in enumerate(groups):
        before, after = measured[group[0]]
        interval_of = bounds[place]
        assert interval_of is not None
        delta = float(np.average(deltas[:, place], weights=share))
        significant = is_significant(interval_of, tests[place].two_sided, tests[place].fell)
        verdict = decide(delta, interval_of, float(after.mean()), MEASURED, significant=significant)
        found.append(Shrinkage(group, len(after), int(before.sum()), int(after.sum()), interval_of, verdict))
    return found
