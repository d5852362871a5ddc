"""Paired statistics for comparisons: bootstrap intervals, sign-flip tests, effect size, Holm, power. Pure numpy, seeded.

All metrics of a comparison share one set of resamples, so their intervals can be set beside each other, and one matrix product gives
all of them. Cases of one cluster (a session, a document) are resampled together.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
RESAMPLES = 10_000
#: Below this many cases intervals are bias-corrected and accelerated (Efron 1987); above, percentiles are as good and cheaper.
BCA_BELOW = 100
_NORMAL = NormalDist()
#: Cells of a matrix of resamples made at once (8 bytes each). So small that it stays in a core's cache: twice as fast as one large matrix.
_BLOCK_CELLS = 60_000


@dataclass(frozen=True)
class Interval:
    """A confidence interval and how it was made."""

    low: float
    high: float
    method: Literal["bca", "percentile", "degenerate"]


def resampled_means(
    values: Floats, *, resamples: int = RESAMPLES, seed: int, clusters: Sequence[Hashable] | None = None
) -> Floats:
    """Bootstrap means of each column: shape (resamples, columns), from values of shape (cases, columns).

    `nan` marks a case a metric does not apply to: it stays out of that column's mean in every resample. With `clusters` whole clusters
    are drawn, with replacement. A resample without any value in a column is `nan` there.
    """
    table = values[:, None] if values.ndim == 1 else values
    known = ~np.isnan(table)
    filled = np.where(known, table, 0.0)
    if clusters is not None:
        filled, known_sums = _by_cluster(filled, clusters), _by_cluster(known.astype(float), clusters)
    else:
        known_sums = known.astype(float)
    units, columns = filled.shape
    if units == 0:
        raise ValueError("no cases to resample")
    complete = clusters is None and bool(known.all())
    generator = _generator(seed)
    small = np.uint16 if units <= 0xFFFF else np.uint32
    means = np.empty((resamples, columns))
    step = max(1, _BLOCK_CELLS // units)
    offsets = np.arange(step)[:, None] * units
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = generator.integers(0, units, (rows, units), dtype=small) + offsets[:rows]
        weights = np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)
        sums = weights @ filled
        if complete:
            means[start : start + rows] = sums / units
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                means[start : start + rows] = sums / (weights @ known_sums)
    return means


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def _by_cluster(table: Floats, clusters: Sequence[Hashable]) -> Floats:
    if len(clusters) != len(table):
        raise ValueError(f"{len(table)} cases and {len(clusters)} clusters: give each case one")
    numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    sums = np.zeros((len(numbers), table.shape[1]))
    np.add.at(sums, [numbers[cluster] for cluster in clusters], table)
    return sums


def interval(values: Floats, means: Floats, *, level: float = 0.95, bca: bool | None = None) -> Interval:
    """The interval of a mean from its bootstrap means. `values` are the cases' own (or the clusters' means), without `nan`.

    `bca=None` chooses by the number of cases.
    """
    values, means = values[~np.isnan(values)], means[~np.isnan(means)]
    if not len(values) or not len(means):
        raise ValueError("no values: an interval needs at least one case")
    tail = (1 - level) / 2
    if len(values) == 1 or np.ptp(values) == 0:
        centre = float(values.mean())
        return Interval(centre, centre, "degenerate")
    if bca is None:
        bca = len(values) < BCA_BELOW
    if bca and (tails := _bca_tails(values, means, tail)) is not None:
        low, high = np.quantile(means, tails)
        return Interval(float(low), float(high), "bca")
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(low), float(high), "percentile")


def _bca_tails(values: Floats, means: Floats, tail: float) -> tuple[float, float] | None:
    """Efron's corrected tails; None where they are not defined (all resamples on one side, no skew to measure)."""
    below = (np.sum(means < values.mean()) + np.sum(means <= values.mean())) / (2 * len(means))
    if not 0 < below < 1:
        return None
    bias = _NORMAL.inv_cdf(float(below))
    jackknife = (values.sum() - values) / (len(values) - 1)
    centred = jackknife.mean() - jackknife
    spread = float((centred**2).sum())
    if spread == 0:
        return None
    acceleration = float((centred**3).sum()) / (6 * spread**1.5)
    corrected = []
    for share in (tail, 1 - tail):
        moved = bias + _NORMAL.inv_cdf(share)
        corrected.append(_NORMAL.cdf(bias + moved / (1 - acceleration * moved)))
    return corrected[0], corrected[1]


def sign_flip_p(
    deltas: Floats, *, resamples: int = RESAMPLES, seed: int, clusters: Sequence[Hashable] | None = None
) -> float:
    """Two-sided p of "the mean difference is 0": how often random signs give a mean as far from 0, `(1 + k) / (1 + resamples)`.

    With `clusters` whole clusters change sign. 1.0 when every difference is 0.
    """
    table = deltas[~np.isnan(deltas)][:, None]
    if not len(table):
        raise ValueError("no differences: a test needs at least one case")
    if clusters is not None:
        kept = [cluster for cluster, delta in zip(clusters, deltas, strict=True) if not math.isnan(delta)]
        table = _by_cluster(table, kept)
    sums = table[:, 0]
    observed = abs(float(sums.sum()))
    if not np.any(sums):
        return 1.0
    generator = _generator(seed)
    reached = 0
    step = max(1, _BLOCK_CELLS // len(sums))
    tolerance = 1e-12 * float(np.abs(sums).sum())
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        signs = generator.integers(0, 2, (rows, len(sums)), dtype=np.int8).astype(np.float64) * 2 - 1
        reached += int(np.sum(np.abs(signs @ sums) >= observed - tolerance))
    return (1 + reached) / (1 + resamples)


def effect_size(deltas: Floats) -> float | None:
    """Cohen's d for paired values, d_z = mean / standard deviation of the differences; None when they do not vary."""
    known = deltas[~np.isnan(deltas)]
    if len(known) < 2:
        return None
    spread = float(known.std(ddof=1))
    return float(known.mean()) / spread if spread > 0 else None


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjustment (1979): the family-wise error stays below the level each adjusted p is held against."""
    adjusted: dict[str, float] = {}
    running = 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        running = max(running, min(1.0, (len(p_values) - place) * p))
        adjusted[name] = running
    return {name: adjusted[name] for name in p_values}


def wilson(successes: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share (1927); (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    z = _NORMAL.inv_cdf((1 + level) / 2)
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    return low, 1.0 if successes == trials else min(1.0, centre + half)


def cases_needed(deltas: Floats, margin: float, *, level: float = 0.95, power: float = 0.8) -> int | None:
    """How many cases would tell a change of `margin` from none, by the normal approximation; None when differences do not vary."""
    known = deltas[~np.isnan(deltas)]
    if len(known) < 2 or margin <= 0:
        return None
    spread = float(known.std(ddof=1))
    if spread == 0:
        return None
    z = _NORMAL.inv_cdf((1 + level) / 2) + _NORMAL.inv_cdf(power)
    return max(2, math.ceil((z * spread / margin) ** 2))


def resampled_quantile_changes(
    before: Floats, after: Floats, shares: Sequence[float], *, resamples: int = 2_000, seed: int
) -> Floats:
    """Bootstrap changes of quantiles between two paired columns without `nan`: shape (resamples, shares)."""
    if not len(before) or len(before) != len(after):
        raise ValueError("two columns of the same length, with at least one case")
    generator = _generator(seed)
    changes = np.empty((resamples, len(shares)))
    step = max(1, _BLOCK_CELLS // len(before))
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = generator.integers(0, len(before), (rows, len(before)))
        changes[start : start + rows] = (
            np.quantile(after[drawn], shares, axis=1) - np.quantile(before[drawn], shares, axis=1)
        ).T
    return changes
