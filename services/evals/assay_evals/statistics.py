"""Paired statistics: resampled intervals, sign-flip tests of a family, effect size, power.

All metrics of a comparison share one set of resamples, so their intervals are comparable, and one matrix product
computes all of them, and their tests. Cases of one cluster (a session, a document) are resampled together.
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
#: What it is multiplied by is contiguous; else OpenBLAS starts threads for it, which take ten times the CPU.
BLOCK_CELLS = 30_000
#: What rounding may make of equal changes of milliseconds.
TIE = 1e-9
#: Draws that share their arrangements of the cases, and the most that are made at once: where cases are few, one arrangement says little.
_BLOCK_ROWS = 200
#: Statistics with a smaller relative difference are equal: sums with the same signs differ by rounding.
_ROUNDING = 1e-6
#: A variance below this share of the mean square is none: the statistic is infinite, and rounding cannot tell two such apart.
_FLAT = 1e-4
#: Resamples that are made of one draw of counts.
_USES = 4


@dataclass(frozen=True)
class Interval:
    """A confidence interval and its method."""

    low: float
    high: float
    method: Literal["bounded", "student", "percentile", "degenerate"]


def resampled_means(
    values: Floats,
    *,
    resamples: int = RESAMPLES,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Return bootstrap means: shape (resamples, columns), from values of shape (cases, columns).

    `nan` marks a case that a metric does not apply to: it is left out of that column's mean in every resample. With
    `clusters`, whole clusters are drawn, with replacement. With `weights`, one per case, the means are weighted
    (Hajek). A resample without any value in a column is `nan` there.

    The resampling counts are drawn once and used four times: for the original cases, and for three random permutations.
    Each resample has exactly the bootstrap's (multinomial) distribution, and their means are practically uncorrelated,
    so the bounds of intervals have the noise of as many separate draws; `make bench SUITE=statistics` compares that
    with scipy's.
    """
    table = values[:, None] if values.ndim == 1 else values
    present = ~np.isnan(table)
    shares = present.astype(float) if weights is None else present * weights[:, None]
    filled = np.ascontiguousarray(np.where(present, table, 0.0) * shares)
    if clusters is not None:
        filled, shares = by_cluster(filled, clusters), by_cluster(shares, clusters)
    units, columns = filled.shape
    if units == 0:
        raise ValueError("no cases to resample")
    complete = clusters is None and weights is None and bool(present.all())
    generator = generator_of(seed)
    small = np.uint16 if units <= 0xFFFF else np.uint32
    means = np.empty((resamples, columns))
    uses = _USES if units < BLOCK_CELLS else 1  # permuting very many cases costs more than new draws
    draws = -(-resamples // uses)
    step = max(1, min(_BLOCK_ROWS, BLOCK_CELLS // units))
    offsets = np.arange(step)[:, None] * units
    arranged = [(filled, shares)]
    for start in range(0, draws, step):
        if start % _BLOCK_ROWS < step:
            orders = [generator.permutation(units) for _ in range(uses - 1)]
            arranged[1:] = [(filled[order], shares[order]) for order in orders]
        rows = min(step, draws - start)
        drawn = generator.integers(0, units, (rows, units), dtype=small) + offsets[:rows]
        times = np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)
        for use, (values_of, shares_of) in enumerate(arranged):
            block = means[use * draws + start :][:rows]  # of the last use, shorter where the number is no multiple
            sums = (times @ values_of)[: len(block)]
            if complete:
                np.divide(sums, units, out=block)
            else:
                with np.errstate(invalid="ignore", divide="ignore"):
                    np.divide(sums, (times @ shares_of)[: len(block)], out=block)
    return means


def generator_of(seed: int) -> np.random.Generator:
    """Return the generator for all random draws in this module."""
    return np.random.Generator(np.random.SFC64(seed))


def by_cluster(table: Floats, clusters: Sequence[Hashable]) -> Floats:
    """Return the sums of each cluster's rows, in order of the clusters' first cases."""
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
    """Return the 95 % interval of a mean, from the cases' values and its bootstrap means, ignoring `nan`.

    `units`: the number of independent units, if cases are clustered. `student` selects the method; None selects it by
    the units. `weights`: those of the bootstrap means. The effective sample size counts (Kish 1965): few heavy cases
    among many light ones count as few.
    """
    present = ~np.isnan(values)
    values, means = values[present], means[~np.isnan(means)]
    if not len(values) or not len(means):
        raise ValueError("no values: an interval needs at least one case")
    shares = np.ones(len(values)) if weights is None else weights[present]
    centre = float(np.average(values, weights=shares))
    count = min(units or len(values), int(shares.sum() ** 2 / np.sum(shares**2) + _ROUNDING))
    if (units or len(values)) == 1 or np.ptp(values) == 0:
        return Interval(centre, centre, "degenerate")
    if student if student is not None else count < STUDENT_BELOW:
        # The variance of resampled means is that of the mean, except for the factor by which a sample's variance is too small.
        count = max(count, 2)
        half = student_quantile(count - 1) * float(means.std()) * math.sqrt(count / (count - 1))
        return Interval(centre - half, centre + half, "student")
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(low), float(high), "percentile")


def student_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t (Cornish and Fisher's series)."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = _NORMAL.inv_cdf(0.975)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


@dataclass(frozen=True)
class FlipTest:
    """Result of a sign-flip test of one metric's mean difference, in a family.

    `two_sided`: p of "it is 0", of this metric alone. `fell`, `rose`: p of "it is not below 0" and "it is not above 0",
    adjusted: if no metric of the family fell, one or more of `fell` are below 5 % in 5 % of comparisons; `rose`
    likewise.
    """

    two_sided: float
    fell: float
    rose: float


def flip_tests(
    deltas: Floats,
    *,
    resamples: int = RESAMPLES,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    weights: Floats | None = None,
) -> list[FlipTest]:
    """Test a family of differences (cases, metrics) by random signs: p is `(1 + k) / (1 + resamples)`.

    All metrics of a case change sign together, so that chance moves them together as the metrics do. One-sided p-values
    are adjusted stepwise by the largest statistic of the remaining metrics (Westfall and Young 1993, chapter 2; Romano
    and Wolf 2005): equivalent metrics cost no more than one, where Holm's adjustment (1979) counts each. The statistic
    is Student's after Hall's transformation (1992), which removes its skewness; otherwise a few large losses among many
    small gains would look like a fall.

    `nan` marks a case that a metric does not apply to. With `clusters`, whole clusters change sign; with `weights`,
    means are weighted. The test is exact if differences are symmetric, as they are under no change; otherwise it is
    valid for many cases.
    """
    table = deltas[:, None] if deltas.ndim == 1 else deltas
    present = ~np.isnan(table)
    if not present.any(axis=0).all():
        raise ValueError("no differences: a test needs at least one case")
    shares = present.astype(float) if weights is None else present * weights[:, None]
    units = np.where(present, table, 0.0) * shares
    if clusters is not None:
        units, shares = by_cluster(units, clusters), by_cluster(shares, clusters)
    counts = np.count_nonzero(shares, axis=0)
    scale = np.sqrt(np.sum(units**2, axis=0))
    units = units / np.where(scale > 0, scale, 1.0)
    powers = np.ascontiguousarray(np.hstack([units, units**3]))

    def statistics(signed: Floats) -> tuple[Floats, Floats]:
        sums, cubes = np.hsplit(signed, 2)
        return sums, _unskewed(sums, cubes, np.where(scale > 0, 1.0, 0.0), counts)

    observed, transformed = (row[0] for row in statistics(powers.sum(axis=0, keepdims=True)))
    flipped = np.empty((resamples, len(scale)))
    reached = np.zeros(len(scale))
    generator = generator_of(seed)
    step = max(1, BLOCK_CELLS // len(units))
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        eights = generator.integers(0, 256, (rows, -(-len(units) // 8)), dtype=np.uint8)
        signs = 1.0 - 2.0 * np.unpackbits(eights, axis=1, count=len(units))
        sums, flipped[start : start + rows] = statistics(signs @ powers)
        reached += np.sum(np.abs(sums) >= np.abs(observed) - _ROUNDING, axis=0)
    columns = ((1 + reached) / (1 + resamples), _step_down(-transformed, -flipped), _step_down(transformed, flipped))
    return [FlipTest(*row) for row in np.column_stack(columns).tolist()]


def _unskewed(sums: Floats, cubes: Floats, squares: Floats, counts: npt.NDArray[np.int64]) -> Floats:
    """Return Hall's transformation of Student's statistic, from sums of values, cubes and squares.

    Infinite without variance.

    With `u` the mean by the standard deviation and `g` the skewness: `sqrt(n) (u + g u^2 / 3 + g^2 u^3 / 27 + g / 6n)`.
    """
    mean, square = sums / counts, squares / counts
    variance = square - mean**2
    flat = variance <= _FLAT * square
    spread = np.sqrt(np.where(flat, 1.0, variance))
    skewness = (cubes / counts - 3 * mean * square + 2 * mean**3) / spread**3
    ratio = mean / spread
    value = np.sqrt(counts) * (ratio + skewness * ratio**2 / 3 + skewness**2 * ratio**3 / 27 + skewness / (6 * counts))
    with np.errstate(invalid="ignore"):
        return np.where(flat, np.where(square > 0, np.sign(mean) * np.inf, 0.0), value)


def _step_down(observed: Floats, flipped: Floats) -> Floats:
    """Return the adjusted p-value of each statistic by step-down.

    The largest is compared with the largest of all, the next with the largest of the others, and so on.
    """
    order = np.argsort(-observed, kind="stable")
    largest = np.maximum.accumulate(flipped[:, order[::-1]], axis=1)[:, ::-1]
    least = observed[order] - _ROUNDING * np.minimum(np.abs(observed[order]), 1 / _ROUNDING)
    p = np.empty(len(order))
    p[order] = np.maximum.accumulate((1 + np.sum(largest >= least, axis=0)) / (1 + len(flipped)))
    return p


def effect_size(deltas: Floats) -> float | None:
    """Return Cohen's d for paired values, d_z = mean / standard deviation of the differences.

    None if they do not vary.
    """
    present = deltas[~np.isnan(deltas)]
    if len(present) < 2:
        return None
    spread = float(present.std(ddof=1))
    return float(present.mean()) / spread if spread > 0 else None


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return Holm's step-down adjusted p-values (1979), which control the family-wise error."""
    adjusted: dict[str, float] = {}
    running = 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        running = max(running, min(1.0, (len(p_values) - place) * p))
        adjusted[name] = running
    return {name: adjusted[name] for name in p_values}


def wilson(successes: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a share (1927); (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    z = _NORMAL.inv_cdf((1 + level) / 2)
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    return low, 1.0 if successes == trials else min(1.0, centre + half)


def cases_needed(deltas: Floats, margin: float, *, level: float = 0.95, power: float = 0.8) -> int | None:
    """Return the cases needed to detect a change of `margin`, by the normal approximation.

    None if the differences do not vary.
    """
    present = deltas[~np.isnan(deltas)]
    if len(present) < 2 or margin <= 0:
        return None
    spread = float(present.std(ddof=1))
    if spread == 0:
        return None
    z = _NORMAL.inv_cdf((1 + level) / 2) + _NORMAL.inv_cdf(power)
    return max(2, math.ceil((z * spread / margin) ** 2))


def unseen_cases(margin: float) -> int:
    """Return the number of equal cases that exclude a change of `margin` in a share.

    If it existed, one of them would have shown it with a probability of 97.5 %.
    """
    return math.ceil(math.log(0.025) / math.log1p(-margin)) if 0 < margin < 1 else 1


def quantile_tests(
    before: Floats, after: Floats, shares: Sequence[float], *, resamples: int = 2_000, seed: int
) -> list[tuple[float, float]]:
    """Test changes of quantiles between two paired columns without `nan`.

    Returns by share the p-values of a fall and of a rise.

    The two values of a case are swapped at random. This is exact if there is no change, for any number of cases and any
    noise that is independent of the side. Each p is `(1 + k) / (1 + resamples)`, one-sided, of that quantile alone.
    """
    observed = np.quantile(after, shares) - np.quantile(before, shares)
    generator, fell, rose = generator_of(seed), np.zeros(len(shares)), np.zeros(len(shares))
    step = max(1, BLOCK_CELLS // len(before))
    for start in range(0, resamples, step):
        swapped = generator.random((min(step, resamples - start), len(before))) < 0.5
        one, other = np.where(swapped, after, before), np.where(swapped, before, after)
        changes = np.quantile(other, shares, axis=1) - np.quantile(one, shares, axis=1)
        fell += np.count_nonzero(changes <= observed[:, None] + TIE, axis=1)
        rose += np.count_nonzero(changes >= observed[:, None] - TIE, axis=1)
    return [
        (float(one), float(other))
        for one, other in zip((1 + fell) / (1 + resamples), (1 + rose) / (1 + resamples), strict=True)
    ]


def resampled_quantile_changes(
    before: Floats, after: Floats, shares: Sequence[float], *, resamples: int = 2_000, seed: int
) -> Floats:
    """Return bootstrap changes of quantiles between two paired columns without `nan`.

    Shape (resamples, shares).
    """
    if not len(before) or len(before) != len(after):
        raise ValueError("two columns of the same length, with at least one case")
    generator = generator_of(seed)
    changes = np.empty((resamples, len(shares)))
    step = max(1, BLOCK_CELLS // len(before))
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = generator.integers(0, len(before), (rows, len(before)))
        changes[start : start + rows] = (
            np.quantile(after[drawn], shares, axis=1) - np.quantile(before[drawn], shares, axis=1)
        ).T
    return changes
