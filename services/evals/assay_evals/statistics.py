"""Paired statistics for comparisons: resampled intervals, sign-flip tests, effect size, Holm, power. Pure numpy, seeded.

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
#: Below this many cases (or clusters) an interval is Student's, above it is that of the percentiles. Changes of retrieval are mostly 0
#: with a few large ones. On 30 such differences 95 % intervals cover the truth in 96 % of simulations by Student, in 89 % by percentiles,
#: and in 82 % by the bias-corrected and accelerated bootstrap.
STUDENT_BELOW = 100
#: 97.5 % quantiles of Student's t for 1 to 9 degrees of freedom; from 10 on a series is exact to three places.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
_NORMAL = NormalDist()
#: Cells of a matrix of resamples made at once (8 bytes each). So small that it stays in a core's cache: twice as fast as one large matrix.
_BLOCK_CELLS = 60_000


@dataclass(frozen=True)
class Interval:
    """A confidence interval and how it was made."""

    low: float
    high: float
    method: Literal["student", "percentile", "degenerate"]


def resampled_means(
    values: Floats,
    *,
    resamples: int = RESAMPLES,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Bootstrap means of each column: shape (resamples, columns), from values of shape (cases, columns).

    `nan` marks a case a metric does not apply to: it stays out of that column's mean in every resample. With `clusters` whole clusters
    are drawn, with replacement. With `weights`, one a case, the means are weighted (Hajek). A resample without any value in a column is
    `nan` there.
    """
    table = values[:, None] if values.ndim == 1 else values
    known = ~np.isnan(table)
    shares = known.astype(float) if weights is None else known * weights[:, None]
    filled = np.where(known, table, 0.0) * shares
    if clusters is not None:
        filled, shares = _by_cluster(filled, clusters), _by_cluster(shares, clusters)
    units, columns = filled.shape
    if units == 0:
        raise ValueError("no cases to resample")
    complete = clusters is None and weights is None and bool(known.all())
    generator = _generator(seed)
    small = np.uint16 if units <= 0xFFFF else np.uint32
    means = np.empty((resamples, columns))
    step = max(1, _BLOCK_CELLS // units)
    offsets = np.arange(step)[:, None] * units
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = generator.integers(0, units, (rows, units), dtype=small) + offsets[:rows]
        times = np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)
        sums = times @ filled
        if complete:
            means[start : start + rows] = sums / units
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                means[start : start + rows] = sums / (times @ shares)
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


def interval(
    values: Floats,
    means: Floats,
    *,
    units: int | None = None,
    student: bool | None = None,
    weights: Floats | None = None,
) -> Interval:
    """The 95 % interval of a mean, from the cases' values and its bootstrap means; `nan` in either is passed over.

    `units`: how many independent units there are, where cases come in clusters. `student` chooses the method; None, by the units.
    `weights`: those the bootstrap means were made with.
    """
    known = ~np.isnan(values)
    values, means = values[known], means[~np.isnan(means)]
    if not len(values) or not len(means):
        raise ValueError("no values: an interval needs at least one case")
    centre = float(np.average(values, weights=None if weights is None else weights[known]))
    count = units or len(values)
    if count == 1 or np.ptp(values) == 0:
        return Interval(centre, centre, "degenerate")
    if student if student is not None else count < STUDENT_BELOW:
        # The spread of resampled means is that of the mean, but for the factor by which a sample's own spread is too small.
        half = student_quantile(count - 1) * float(means.std()) * math.sqrt(count / (count - 1))
        return Interval(centre - half, centre + half, "student")
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(low), float(high), "percentile")


def student_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t (Cornish and Fisher's series)."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = _NORMAL.inv_cdf(0.975)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def sign_flip_p(
    deltas: Floats,
    *,
    resamples: int = RESAMPLES,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    weights: Floats | None = None,
) -> float:
    """Two-sided p of "the mean difference is 0": how often random signs give a mean as far from 0, `(1 + k) / (1 + resamples)`.

    With `clusters` whole clusters change sign; with `weights` the mean is weighted. 1.0 when every difference is 0.
    """
    table = (deltas if weights is None else deltas * weights)[~np.isnan(deltas)][:, None]
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
