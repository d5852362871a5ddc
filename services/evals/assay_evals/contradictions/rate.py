"""Rates of contradictions among the judged pairs of documents, with intervals that allow for clusters. Pure.

Pairs of one query, and pairs with a document in common, are not independent. Pairs are weighted by the inverse of their inclusion
probability (Hajek). A pair that was not judged (budget, error) counts in the coverage, never as free of contradictions.

Sources: variance under two-way clustering: Cameron, Gelbach and Miller 2011, with both documents of a pair: Aronow, Samii and Assenova
2015; interval of a share: Wilson 1927, at the effective sample size.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from assay_evals.statistics.intervals import student_quantile
from assay_evals.statistics.resampling import Floats
from assay_runtime.shares import wilson

Ints = npt.NDArray[np.intp]


@dataclass(frozen=True)
class JudgedPair:
    """A pair of documents of one query that was to be judged."""

    query: str
    documents: tuple[str, str]
    stratum: str
    #: Inclusion probability of the pair, above 0 and at most 1.
    probability: float
    #: Whether the judge found a strict contradiction; None for a pair that was not judged.
    positive: bool | None
    #: A person's verdict.
    label: bool | None = None
    #: Probability with which this pair was drawn for a label, given its verdict.
    label_probability: float | None = None


@dataclass(frozen=True)
class Rate:
    """A rate, or a difference of rates, with its 95 % interval; None without anything judged."""

    estimate: float | None
    lower: float | None
    upper: float | None
    #: Pairs (or queries) behind the estimate, and those that were to be judged.
    judged: int
    intended: int
    #: Judged by intended; None if nothing was intended.
    coverage: float | None
    #: Independent pairs (or queries) of equal weight that would say as much.
    effective_n: float
    method: str


def pair_rate(pairs: Iterable[JudgedPair]) -> Rate:
    """Return the share of contradictory pairs among the judged ones."""
    intended = list(pairs)
    judged = [pair for pair in intended if pair.positive is not None]
    if not judged:
        return _nothing(len(intended))
    values = np.array([pair.positive for pair in judged], dtype=np.float64)
    return _rate(values, judged, len(intended))


def _nothing(intended: int) -> Rate:
    return Rate(None, None, None, 0, intended, 0.0 if intended else None, 0.0, "none")


def _rate(values: Floats, pairs: Sequence[JudgedPair], intended: int) -> Rate:
    weights = np.array([1 / pair.probability for pair in pairs])
    weights /= weights.sum()
    share = float(weights @ values)
    queries = _numbers([pair.query for pair in pairs])
    clusters = 1 / float(np.sum(np.bincount(queries, weights) ** 2))
    spread = share * (1 - share)
    if spread > 0:
        variance = _variance(weights * (values - share), pairs, queries)
        size = min(spread / variance, 1 / float(np.sum(weights**2))) if variance > 0 else clusters
    else:
        size = clusters
    found = wilson(share * size, size, student_quantile(max(1, int(clusters) - 1)))
    assert found is not None
    return Rate(share, found.low, found.high, len(pairs), intended, len(pairs) / intended, size, "wilson-clustered")


def _variance(residuals: Floats, pairs: Sequence[JudgedPair], queries: Ints) -> float:
    """Return the variance of a sum of residuals that are dependent if they share the query or a document."""
    by_query = _squares(residuals, queries)
    count = int(queries.max()) + 1
    by_query *= count / max(1, count - 1)
    # Pairs with one document in common are counted once for it, those with both in common once too: what is counted twice is subtracted,
    # and so is what the queries have already counted.
    both = [tuple(sorted(pair.documents)) for pair in pairs]
    couples, documents = _numbers(both), _numbers([name for names in both for name in names])
    different = residuals * np.array([one != other for one, other in both])
    twice, query_twice = np.column_stack([residuals, different]).ravel(), np.repeat(queries, 2)
    shared = _squares(twice, documents) - _squares(different, couples)
    shared -= _squares(twice, _crossed(query_twice, documents)) - _squares(different, _crossed(queries, couples))
    return max(by_query, by_query + shared)


def _squares(residuals: Floats, groups: Ints) -> float:
    return float(np.sum(np.bincount(groups, residuals) ** 2))


def _numbers(names: Sequence[Hashable]) -> Ints:
    known: dict[Any, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.intp)


def _crossed(one: Ints, other: Ints) -> Ints:
    return np.unique(one * (int(other.max()) + 1) + other, return_inverse=True)[1]
