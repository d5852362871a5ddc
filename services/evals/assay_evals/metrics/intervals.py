"""Confidence intervals of the means of several metrics. Pure."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from assay_evals.metrics.metric_names import is_share
from assay_evals.statistics.bounded import bounded_intervals
from assay_evals.statistics.intervals import Interval, interval
from assay_evals.statistics.resampling import RESAMPLES, Floats, resampled_means


def intervals(
    columns: Mapping[str, Floats],
    limits: tuple[float, float],
    *,
    bounded: Callable[[str], bool] = is_share,
    resamples: int = RESAMPLES,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    weights: Floats | None = None,
) -> dict[str, Interval]:
    """Return the 95 % interval of each metric's mean, by name, for metrics with a value.

    `limits` are those of `bounded` metrics; others have none.
    """
    by_name: dict[str, Interval] = {}
    shares = [name for name in columns if bounded(name)]
    if shares:
        table = np.column_stack([columns[name] for name in shares])
        bounds = bounded_intervals(table, *limits, resamples=resamples, seed=seed, clusters=clusters, weights=weights)
        by_name |= {name: each for name, each in zip(shares, bounds, strict=True) if each is not None}
    others = [name for name in columns if not bounded(name) and not np.isnan(columns[name]).all()]
    if others:
        table = np.column_stack([columns[name] for name in others])
        means = resampled_means(table, resamples=resamples, seed=seed, clusters=clusters, weights=weights)
        for place, name in enumerate(others):
            present = ~np.isnan(table[:, place])
            units = None if clusters is None else cluster_count(clusters, present)
            by_name[name] = interval(table[:, place], means[:, place], units=units, weights=weights)
    return by_name


def cluster_count(clusters: Sequence[Hashable], is_known: np.ndarray[Any, np.dtype[np.bool_]]) -> int:
    """Return the number of clusters with a case at which a metric is known."""
    return len({cluster for cluster, here in zip(clusters, is_known, strict=True) if here})
