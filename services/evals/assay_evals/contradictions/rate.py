"""Rates of contradictions among judged pairs, with intervals that allow for clusters. Pure.

Pairs of one query, and pairs with a document in common, are not independent. Pairs are weighted by the inverse of their inclusion
probability (Hajek). A pair that was not judged (budget, error) lowers the coverage; it never counts as free of contradictions.

A budget leaves a random part. Pairs whose judging failed are not: only a pair with a finding can be misquoted. So a rate with
failed pairs also has bounds, for none and for all of them being contradictions, and labels are drawn among them too.

Intervals are Wilson's (1927) at an effective sample size, with Student's quantile. The variance that few clusters or few findings show is
too small and uncertain, so

- two clusters of average weight, each of one verdict, are added to it (as Agresti and Coull add four answers to a share),
- the degrees of freedom are Satterthwaite's (1946), which are few if few clusters make up the variance; at most as many as clusters,
- the effective size is at most the number of different pairs of documents, since a pair that recurs is one pair,
- if all verdicts are the same, the sample is as large as the number of clusters.

Of questions, a cluster is also those that one document decides: all of their contradictions are with it.

`make bench SUITE=contradictions` measures how often these intervals hold the truth.

Sources: variance under two-way clustering: Cameron, Gelbach and Miller 2011; of units with two documents: Aronow, Samii and Assenova 2015;
correction by labels stratified by verdict: Fisch et al. 2024 (StratPPI); intervals of sums and differences: Zou and Donner 2008; bounds of
what is missing not at random: Manski 1989.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import hypot
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from assay_evals.statistics.intervals import student_quantile
from assay_evals.statistics.resampling import Floats
from assay_runtime.shares import Estimate, wilson

Ints = npt.NDArray[np.intp]
#: `ppi_bounds`: corrected by labels, of which the pairs with an error have none: the interval allows for all that these may be.
Method = Literal["clustered", "ppi", "ppi_bounds", "paired", "none"]
#: Clusters that are added to the variance.
_UNSEEN = 2
#: Least degrees of freedom, unless there are fewer clusters: Wilson's interval already allows for few findings.
_FREEDOM_LEAST = 5


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
    #: Probability with which a pair with this verdict (or a failed one) was drawn for a label. A label without it does not count.
    label_probability: float | None = None
    #: Whether the judge was asked and gave no verdict.
    failed: bool = False


@dataclass(frozen=True)
class Rate:
    """A rate, or a difference of two rates, with its 95 % interval; all None if nothing was judged."""

    estimate: float | None
    lower: float | None
    upper: float | None
    #: Pairs (of `query_rate`: queries) behind the estimate, and those that were to be judged.
    judged: int
    intended: int
    #: `judged` by `intended`; None if nothing was intended.
    coverage: float | None
    #: Number of independent pairs (queries) of equal weight that would say as much.
    effective_n: float
    method: Method
    #: Pairs (of `query_rate`: queries) with an error of the judge.
    errors: int = 0
    #: Ends of the 95 % interval regardless of the pairs with an error: if none contradicts, and if all do. None without any.
    bounds: tuple[float, float] | None = None


def pair_rate(pairs: Iterable[JudgedPair]) -> Rate:
    """Return the share of contradictory pairs among the judged ones."""
    return _bounded(list(pairs), _pair_rate, len)


def _pair_rate(intended: Sequence[JudgedPair]) -> Rate:
    judged = [pair for pair in intended if pair.positive is not None]
    if not judged:
        return _nothing(len(intended))
    found = _share([pair.positive is True for pair in judged], _sample(judged))
    return _rate(found.estimate, found.size, len(judged), len(intended), "clustered")


def query_rate(pairs: Iterable[JudgedPair]) -> Rate:
    """Return the share of queries with at least one contradictory pair.

    Each query counts once. A query with a pair that was not judged is left out, even if a contradiction was found in
    another of its pairs: counting only these would raise the rate, and counting all would lower it. Where the same
    pairs of documents are retrieved for k queries on average, k queries count as one. Queries that would all have no
    contradiction without one document are as dependent as their verdicts. Queries with many pairs more often have an
    error, and more often a contradiction: where they are left out for an error, `bounds` hold.
    """
    return _bounded(list(pairs), _query_rate, lambda failed: len({pair.query for pair in failed}))


def _query_rate(pairs: Sequence[JudgedPair]) -> Rate:
    by_query: dict[str, list[JudgedPair]] = defaultdict(list)
    for pair in pairs:
        by_query[pair.query].append(pair)
    complete = [its for its in by_query.values() if all(pair.positive is not None for pair in its)]
    if not complete:
        return _nothing(len(by_query))
    count = len(complete)
    positive = [[set(pair.documents) for pair in its if pair.positive] for its in complete]
    value = sum(bool(its) for its in positive) / count
    spread = value * (1 - value)
    couples = Counter(couple for its in complete for couple in {_couple(pair) for pair in its})
    recurrence = sum(times**2 for times in couples.values()) / couples.total()
    cluster = max(1 / count, _sample([pair for its in complete for pair in its]).cluster)
    size, freedom = 1 / (recurrence / count + _UNSEEN * cluster**2), count - 1
    if spread:
        # queries that one document decides, because each of its contradictions is with that document; others count for themselves
        common = [set.intersection(*its) for its in positive if its]
        decided = np.array(list(Counter(name for names in common for name in names).values()), dtype=np.float64)
        size = 1 / (1 / size + float(decided @ (decided - 1)) / count**2 / spread)
        alone = np.ones(sum(not names for names in common))
        parts = np.append(np.square(np.append(decided, alone) / count), [cluster**2 * spread] * _UNSEEN)
        freedom = min(freedom, max(_FREEDOM_LEAST, int(_freedom(parts))))
    else:
        size = min(size, 1 / _query_cluster([{name for pair in its for name in pair.documents} for its in complete]))
    found = _wilson(value, size, freedom)
    return _rate(found, size, count, len(by_query), "clustered")


def _query_cluster(retrieved: Sequence[Collection[str]]) -> float:
    """Return the mean weight of a document's queries, if a query's verdict is in equal parts that of its documents.

    It is 1 divided by the number of queries if none have a document in common.
    """
    queries, parts = Counter[str](), defaultdict[str, float](float)
    for documents in retrieved:
        for name in documents:
            queries[name] += 1
            parts[name] += 1 / len(documents)
    return sum(times * parts[name] for name, times in queries.items()) / len(retrieved) ** 2


def corrected_rate(pairs: Iterable[JudgedPair]) -> Rate | None:
    """Return the share of contradictory pairs, corrected for the judge's errors by people's labels (PPI).

    Labels are drawn among the pairs with a probability that depends on the verdict. In each verdict, the labels tell
    which share is contradictory, and all pairs tell how frequent the verdict is. An error of the judge counts as a
    verdict: until a pair with one has a label, the interval allows for none and for all of these being contradictions.
    None unless each verdict that occurs has a label.
    """
    intended = list(pairs)
    judged = [pair for pair in intended if pair.positive is not None]
    failed = [pair for pair in intended if pair.failed]
    if not judged:
        return None
    frequency = _share([pair.positive is True for pair in judged], _sample(judged))
    among: list[Estimate] = []
    for verdict in (True, False):
        occurring = [pair for pair in judged if pair.positive is verdict]
        found = _labelled(occurring)
        if occurring and found is None:
            return None
        among.append(found or Estimate(0.0, 0.0, 1.0))  # of a verdict that does not occur
    method: Method = "ppi"
    estimate = _wider(_mixture(frequency.estimate, *among), judged)
    if failed:
        tried = [*judged, *failed]
        share = _share([pair.failed for pair in tried], _sample(tried)).estimate
        found = _labelled(failed)
        if found is not None:
            estimate = _wider(_mixture(share, found, estimate), tried)
        else:
            low, high = (_mixture(share, Estimate(each, each, each), estimate) for each in (0.0, 1.0))
            estimate, method = Estimate(estimate.value, low.low, high.high), "ppi_bounds"
    estimate = Estimate(estimate.value, max(0.0, estimate.low), min(1.0, estimate.high))
    return replace(
        _rate(estimate, frequency.size, len(judged), len(intended), method),
        errors=len(failed),
    )


def difference(old: Iterable[JudgedPair], new: Iterable[JudgedPair]) -> Rate:
    """Return how much the share of contradictory pairs rose, over the pairs that were judged both times.

    Weighted by the probabilities of `new`, whose pairs are the intended ones. Raises `ValueError` if a pair of a query
    occurs twice.
    """
    before, after = _by_documents(old), _by_documents(new)
    both = [
        (earlier.positive, pair)
        for key, pair in after.items()
        if (earlier := before.get(key)) and earlier.positive is not None and pair.positive is not None
    ]
    if not both:
        return _nothing(len(after))
    sample = _sample([pair for _, pair in both])
    appeared = _share([bool(pair.positive) and not was for was, pair in both], sample)
    resolved = _share([was and not pair.positive for was, pair in both], sample)
    up, down = appeared.estimate, resolved.estimate
    value = up.value - down.value
    low = max(-1.0, value - hypot(up.value - up.low, down.high - down.value))
    high = min(1.0, value + hypot(up.high - up.value, down.value - down.low))
    size = min(appeared.size, resolved.size)
    return _rate(Estimate(value, low, high), size, len(both), len(after), "paired")


def _by_documents(pairs: Iterable[JudgedPair]) -> dict[Hashable, JudgedPair]:
    found: dict[Hashable, JudgedPair] = {}
    for pair in pairs:
        if found.setdefault((pair.query, _couple(pair)), pair) is not pair:
            raise ValueError("a pair of documents of one query occurs twice: give each pair once")
    return found


def _bounded(
    pairs: Sequence[JudgedPair],
    rate: Callable[[Sequence[JudgedPair]], Rate],
    count: Callable[[Sequence[JudgedPair]], int],
) -> Rate:
    """Return a rate with its bounds over all that the pairs with an error may be. `count`: counts these."""
    found = rate(pairs)
    failed = [pair for pair in pairs if pair.failed]
    if not failed:
        return found
    found = replace(found, errors=count(failed))
    if not any(pair.positive is not None for pair in pairs):
        return found
    least, most = (
        rate([replace(pair, positive=each) if pair.failed else pair for pair in pairs]) for each in (False, True)
    )
    if least.lower is None or most.upper is None:
        return found
    return replace(found, bounds=(least.lower, most.upper))


def _mixture(share: Estimate, one: Estimate, other: Estimate) -> Estimate:
    """Return the rate of a whole of which a share has one rate, and the rest another."""
    slope = one.value - other.value
    value = other.value + share.value * slope
    ends = share if slope >= 0 else Estimate(share.value, share.high, share.low)
    parts = ((share.value, one), (1 - share.value, other))
    low = hypot(*(part * (each.value - each.low) for part, each in parts), slope * (share.value - ends.low))
    high = hypot(*(part * (each.high - each.value) for part, each in parts), slope * (ends.high - share.value))
    return Estimate(value, value - low, value + high)


def _wider(estimate: Estimate, pairs: Sequence[JudgedPair]) -> Estimate:
    """Return a corrected rate with the wider of two intervals.

    That of a mixture takes how often each verdict occurs, and what the labels say of it, for independent. They are not if a
    query has more of both, which many labels show. So there is also Wilson's interval by the variance of the corrected
    score of each pair, whose clusters contain both; alone, it is too narrow with few labels that are contradictions.
    """
    sample = _sample(pairs)
    weights = sample.weights
    labelled = np.array([pair.label is not None and pair.label_probability is not None for pair in pairs])
    says = np.array([float(pair.label is True) for pair in pairs])
    drawn = np.array([pair.label_probability or 1.0 for pair in pairs])
    expected, noise = np.zeros(len(pairs)), np.zeros(len(pairs))
    for verdict in (True, False, None):
        of = np.array([pair.positive is verdict for pair in pairs])
        known = of & labelled
        if not of.any():
            continue
        share = np.where(known, weights / drawn, 0.0)
        share *= weights[of].sum() / share.sum()
        expected[of] = float(share @ says) / share.sum()
        noise += share * (says - expected)
    value = float(weights @ expected)
    spread = value * (1 - value)
    if not spread:
        return estimate
    residuals = weights * (expected - value) + noise
    parts = np.append(sample.within(residuals), [sample.cluster**2 * spread] * _UNSEEN)
    size = spread / (float(parts.sum()) + sample.across(residuals))
    found = _wilson(value, size, min(1 / sample.query - 1, max(_FREEDOM_LEAST, _freedom(parts))))
    return Estimate(estimate.value, min(estimate.low, found.low), max(estimate.high, found.high))


def _nothing(intended: int) -> Rate:
    return Rate(None, None, None, 0, intended, 0.0 if intended else None, 0.0, "none")


def _rate(estimate: Estimate, size: float, judged: int, intended: int, method: Method) -> Rate:
    return Rate(*estimate, judged, intended, judged / intended, size, method)


class _Share(NamedTuple):
    estimate: Estimate
    #: Effective sample size.
    size: float


class _Sample:
    """Weights of pairs, which sum to 1, and what makes pairs dependent: their query, and their two documents."""

    def __init__(self, weights: Floats, pairs: Sequence[JudgedPair]) -> None:
        self.weights = weights / weights.sum()
        couples = [_couple(pair) for pair in pairs]
        self._queries, self._couples = _numbers([pair.query for pair in pairs]), _numbers(couples)
        self._documents = _numbers([name for couple in couples for name in couple])
        #: 0 for a pair whose two documents are the same: it has one.
        self._second = np.array([float(one != other) for one, other in couples])
        #: Mean weight of a pair's query, of its cluster (each document is half of its pair), and of its pair of documents.
        self.query = _sums(self.weights, self._queries)
        self.cluster = max(self.query, _sums(np.repeat(self.weights / 2, 2), self._documents))
        self.couple = _sums(self.weights, self._couples)

    def within(self, residuals: Floats) -> Floats:
        """Return the squared sum of each query's residuals. Their sum is the variance if only queries matter."""
        sums = np.asarray(np.bincount(self._queries, residuals), dtype=np.float64)
        return np.square(sums) * (len(sums) / max(1, len(sums) - 1))

    def across(self, residuals: Floats) -> float:
        """Return what pairs with a document in common add to the variance, if their queries differ.

        Two documents in common count once, so the couples are subtracted, and so is what the queries have counted.
        """
        second = residuals * self._second
        ends, queries = np.column_stack([residuals, second]).ravel(), np.repeat(self._queries, 2)
        everywhere = _sums(ends, self._documents) - _sums(second, self._couples)
        in_query = _sums(ends, _crossed(queries, self._documents)) - _sums(
            second, _crossed(self._queries, self._couples)
        )
        return max(0.0, everywhere - in_query)


def _sample(pairs: Sequence[JudgedPair], divisors: Sequence[float] | None = None) -> _Sample:
    weights = np.array([1 / pair.probability for pair in pairs])
    if divisors is not None:
        weights /= np.array(divisors)
    return _Sample(weights, pairs)


def _couple(pair: JudgedPair) -> tuple[str, ...]:
    return tuple(sorted(pair.documents))


def _share(values: Sequence[bool], sample: _Sample) -> _Share:
    """Return the weighted share of true values with its interval."""
    marks = np.array(values, dtype=np.float64)
    value = min(1.0, float(sample.weights @ marks))
    spread, freedom = value * (1 - value), 1 / sample.query - 1
    if all(values) or not any(values) or not spread:
        size = 1 / sample.cluster
    else:
        residuals = sample.weights * (marks - value)
        parts = np.append(sample.within(residuals), [sample.cluster**2 * spread] * _UNSEEN)
        size = spread / (float(parts.sum()) + sample.across(residuals))
        freedom = min(freedom, max(_FREEDOM_LEAST, _freedom(parts)))
    size = min(size, 1 / sample.couple)
    return _Share(_wilson(value, size, freedom), size)


def _freedom(parts: Floats) -> float:
    """Return Satterthwaite's degrees of freedom of a variance that is the sum of squares, from their spread."""
    total = float(parts.sum()) ** 2
    noise = float(parts @ parts) - total / len(parts)
    return 2 * total / noise if noise > 0 else len(parts)


def _wilson(value: float, size: float, freedom: float) -> Estimate:
    found = wilson(value * size, size, student_quantile(max(1, int(freedom))))
    assert found is not None
    return Estimate(value, min(value, found.low), max(value, found.high))


def _labelled(pairs: Sequence[JudgedPair]) -> Estimate | None:
    """Return the share of contradictions by the labels of pairs with one verdict; None without a label."""
    drawn = [(pair, pair.label_probability) for pair in pairs if pair.label is not None]
    known = [(pair, probability) for pair, probability in drawn if probability is not None]
    if not known:
        return None
    sample = _sample([pair for pair, _ in known], [probability for _, probability in known])
    return _share([pair.label is True for pair, _ in known], sample).estimate


def _sums(values: Floats, groups: Ints) -> float:
    """Return the sum of the squared sums of each group."""
    return float(np.sum(np.bincount(groups, values) ** 2))


def _numbers(names: Sequence[Hashable]) -> Ints:
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.intp)


def _crossed(one: Ints, other: Ints) -> Ints:
    groups: Ints = np.unique(one * (int(other.max()) + 1) + other, return_inverse=True)[1]
    return groups
