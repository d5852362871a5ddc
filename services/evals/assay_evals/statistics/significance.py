"""Significance tests of paired differences: sign flips of a family, Holm's adjustment, quantiles.

Pure.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assay_evals.statistics.intervals import _ROUNDING
from assay_evals.statistics.resampling import BLOCK_CELLS, RESAMPLES, Floats, by_cluster, generator_of

#: What rounding may make of equal changes of milliseconds.
TIE = 1e-9
#: A variance below this share of the mean square is none: the statistic is infinite, and rounding cannot tell two such apart.
_FLAT = 1e-4


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
    are adjusted stepwise by the smallest p-value of the remaining metrics (Westfall and Young 1993, algorithm 2.8):
    equivalent metrics cost no more than one, where Holm's adjustment (1979) counts each. The statistic
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

    The smallest p-value is compared with the smallest of all in each draw, the next with the smallest of the others,
    and so on. p-values and not statistics, because those of a metric with few cases have a different distribution: three
    equal changes have no variance, so their statistic is infinite in one draw of eight, and would hide all others.
    """
    drawn = np.vstack([observed, flipped])
    p = np.column_stack([_shares_reaching(column) for column in drawn.T])
    order = np.argsort(p[0], kind="stable")
    smallest = np.minimum.accumulate(p[:, order[::-1]], axis=1)[:, ::-1]
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(np.mean(smallest <= p[0, order], axis=0))
    return adjusted


def _shares_reaching(values: Floats) -> Floats:
    """Return for each value the share of values that are at least as large, itself included."""
    least = values - _ROUNDING * np.minimum(np.abs(values), 1 / _ROUNDING)
    return (len(values) - np.searchsorted(np.sort(values), least)) / len(values)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return Holm's step-down adjusted p-values (1979), which control the family-wise error."""
    adjusted: dict[str, float] = {}
    running = 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        running = max(running, min(1.0, (len(p_values) - place) * p))
        adjusted[name] = running
    return {name: adjusted[name] for name in p_values}


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
