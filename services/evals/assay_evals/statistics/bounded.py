"""Gaffke's confidence bounds of the mean of bounded values, valid for few and for equal values too.

Pure numpy, seeded.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from assay_evals.statistics.intervals import Interval
from assay_evals.statistics.resampling import BLOCK_CELLS, RESAMPLES, Floats, by_cluster, generator_of


def bounded_intervals(
    values: Floats,
    least: float,
    most: float,
    *,
    resamples: int = RESAMPLES,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    weights: Floats | None = None,
) -> list[Interval | None]:
    """Return the 95 % interval of each column's mean, for values from `least` to `most`.

    None for a column without values.

    Each bound is Gaffke's (2005): the resampled mean of the observed units and of one unobserved unit at the limit,
    with random weights (exponential, as in Rubin's bootstrap of 1981). It is Clopper and Pearson's interval if values
    are only `least` and `most`, and its coverage was at least the nominal one wherever it was tried, for few and for
    equal values too: 20 unchanged cases leave room for a change of 0.17. Resampling the observed values cannot show
    that.

    `nan` marks a case that a metric does not apply to. Clusters get one weight each. With `weights`, the unobserved
    unit is as heavy as the heaviest observed one.
    """
    lows, highs, seen = _draws(values, least, most, resamples, seed, clusters, weights)
    low, high = np.quantile(lows, 0.025, axis=0), np.quantile(highs, 0.975, axis=0)
    return [
        Interval(float(low[place]), float(high[place]), "bounded") if seen[place] else None
        for place in range(len(seen))
    ]


def bounded_draws(
    values: Floats,
    least: float,
    most: float,
    *,
    resamples: int = RESAMPLES,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    weights: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return the draws behind both bounds of one column with a value.

    The share of `highs` at or above a mean is the p-value of that mean.
    """
    lows, highs, _ = _draws(values, least, most, resamples, seed, clusters, weights)
    return lows[:, 0], highs[:, 0]


def _draws(
    values: Floats,
    least: float,
    most: float,
    resamples: int,
    seed: int,
    clusters: Sequence[Hashable] | None,
    weights: Floats | None,
) -> tuple[Floats, Floats, Floats]:
    """Return draws of both bounds, and the weight of each column's heaviest unit, 0 without a value."""
    table = values[:, None] if values.ndim == 1 else values
    present = ~np.isnan(table)
    shares = present.astype(float) if weights is None else present * weights[:, None]
    sums = np.where(present, table, 0.0) * shares
    if clusters is not None:
        sums, shares = by_cluster(sums, clusters), by_cluster(shares, clusters)
    units, columns = sums.shape
    if units == 0:
        raise ValueError("no cases to resample")
    heaviest = shares.max(axis=0)
    both = np.ascontiguousarray(np.hstack([sums, shares]))
    lows, highs = np.empty((resamples, columns)), np.empty((resamples, columns))
    generator = generator_of(seed)
    step = max(1, BLOCK_CELLS // units)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        totals, shared = np.hsplit(generator.standard_exponential((rows, units)) @ both, 2)
        unseen = generator.standard_exponential((rows, 1)) * heaviest
        with np.errstate(invalid="ignore", divide="ignore"):
            lows[start : start + rows] = (totals + unseen * least) / (shared + unseen)
            highs[start : start + rows] = (totals + unseen * most) / (shared + unseen)
    return lows, highs, heaviest
