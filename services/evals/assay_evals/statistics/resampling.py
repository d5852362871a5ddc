"""Paired statistics: resampled intervals, sign-flip tests of a family, effect size, power.

All metrics of a comparison share one set of resamples, so their intervals are comparable, and one matrix product
computes all of them, and their tests. Cases of one cluster (a session, a document) are resampled together.
"""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
RESAMPLES = 10_000
#: Cells of a matrix of resamples made at once (8 bytes each). So small that it stays in a core's cache: twice as fast as one large matrix.
#: The other factor must be contiguous; otherwise OpenBLAS starts threads for it, which take ten times the CPU.
BLOCK_CELLS = 30_000
#: Draws that share their arrangements of the cases, and the most that are made at once: where cases are few, one arrangement says little.
_BLOCK_ROWS = 200
#: Resamples that are made of one draw of counts.
_USES = 4


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
