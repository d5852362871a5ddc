"""How often printed 95 % intervals of contradictions hold the truth, and how often the naive ones do.

Naive is Wilson's interval over all intended pairs (or queries) as if they were independent, where a pair that was not judged counts as free
of contradictions. Each run draws new queries, documents and verdicts. A pair is contradictory with its query's probability, which varies
between queries (beta-distributed) so that the correlation of two pairs of a query is 0.14, as measured on real queries.

Where the judge fails on pairs, naive is the interval that leaves these out.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from assay_evals.contradictions.pairs import inclusion, systematic
from assay_evals.contradictions.rate import JudgedPair, Rate, corrected_rate, difference, pair_rate, query_rate
from assay_runtime.shares import Estimate, wilson
from tests.bench.result import result

QUERIES, PAIRS, MEAN, CORRELATION, RUNS, SEED = 120, 10, 0.05, 0.14, 1_000, 20_261_128
#: 93 %, of the nominal 95 %.
TARGET = ">= 0.979"
#: The judge, the true rate, and labels by verdict.
SENSITIVITY, SPECIFICITY, TRUE_RATE, LABELS = 0.85, 0.97, 0.033, {True: 60, False: 240}

Random = np.random.Generator
Pairs = list[JudgedPair]
World = Callable[[Random], tuple[Pairs, float]]


def _liabilities(random: Random, queries: int, mean: float = MEAN, correlation: float = CORRELATION) -> Any:
    total = 1 / correlation - 1
    return random.beta(mean * total, (1 - mean) * total, queries)


def _pairs(
    positive: Any, queries: Any, documents: Any = None, probabilities: Any = None, strata: Sequence[str] | None = None
) -> Pairs:
    names = np.arange(2 * len(positive)).reshape(-1, 2) if documents is None else documents
    shares = np.ones(len(positive)) if probabilities is None else probabilities
    return [
        JudgedPair(f"q{query}", (f"d{first}", f"d{second}"), stratum, float(share), bool(each))
        for each, query, (first, second), share, stratum in zip(
            positive, queries, names, shares, strata or ["all"] * len(positive), strict=True
        )
    ]


def clustered(
    random: Random, queries: int = QUERIES, mean: float = MEAN, correlation: float = CORRELATION
) -> tuple[Pairs, float]:
    """Each query has 10 pairs of documents that no other query retrieves."""
    places = np.repeat(np.arange(queries), PAIRS)
    chances = _liabilities(random, queries, mean, correlation)[places]
    return _pairs(random.random(len(places)) < chances, places), mean


def hot_documents(random: Random, documents: int = 300) -> tuple[Pairs, float]:
    """Documents are retrieved as by Zipf, and each has its share in what contradicts: from nothing to twice the mean."""
    popularity = np.cumsum(1 / np.arange(1, documents + 1) ** 0.8)
    places = np.repeat(np.arange(QUERIES), PAIRS)
    drawn = np.searchsorted(popularity / popularity[-1], random.random((len(places), 2)))
    drawn[:, 1] = np.where(drawn[:, 0] == drawn[:, 1], (drawn[:, 1] + 1) % documents, drawn[:, 1])
    factor = (2 * _liabilities(random, documents, 0.5, 0.4))[drawn].mean(axis=1)
    chances = _liabilities(random, QUERIES)[places] * factor
    return _pairs(random.random(len(places)) < chances, places, drawn), MEAN


def hot_document(random: Random, share: float = 0.5) -> tuple[Pairs, float]:
    """One document is in so many of all pairs."""
    places = np.repeat(np.arange(QUERIES), PAIRS)
    documents = np.arange(1, 2 * len(places) + 1).reshape(-1, 2)
    hot = random.random(len(places)) < share
    documents[hot, 0] = 0
    factor = np.where(hot, 2 * _liabilities(random, 1, 0.5, 0.3)[0], 1.0)
    chances = _liabilities(random, QUERIES)[places] * factor
    return _pairs(random.random(len(places)) < chances, places, documents), MEAN


def recurring_pairs(random: Random, couples: int = 300) -> tuple[Pairs, float]:
    """Queries retrieve the same pairs, as by Zipf, and each pair has one verdict."""
    popularity = np.cumsum(1 / np.arange(1, couples + 1) ** 0.8)
    drawn = np.searchsorted(popularity / popularity[-1], random.random(QUERIES * PAIRS))
    verdicts = random.random(couples) < MEAN
    documents = random.integers(0, couples // 2, (couples, 2)) + np.array([0, couples])
    return _pairs(verdicts[drawn], np.repeat(np.arange(QUERIES), PAIRS), documents[drawn]), MEAN


def wrong_documents(
    random: Random, queries: int = 50, documents: int = 60, wrong: float = 0.1, most: int | None = None
) -> tuple[Pairs, float]:
    """Some documents are wrong, and contradict each that is not; queries retrieve five documents each, as by Zipf.

    `most`: pairs that are judged of a query, drawn by what a pair looks like, which tells a little of its verdict.
    """
    popularity = 1 / np.arange(1, documents + 1) ** 0.8
    is_wrong = random.random(documents) < wrong
    pairs: Pairs = []
    for query in range(queries):
        retrieved = random.choice(documents, 5, replace=False, p=popularity / popularity.sum())
        of_query = list(combinations(sorted(retrieved.tolist()), 2))
        verdicts = np.array([is_wrong[one] != is_wrong[other] for one, other in of_query])
        shares = np.ones(len(of_query))
        if most is not None:
            alike = random.random(len(of_query)) < np.where(verdicts, 0.7, 0.3)
            shares = np.array(inclusion(np.where(alike, 4.0, 1.0).tolist(), most))
        drawn = systematic(shares.tolist(), random.random())
        pairs += _pairs(verdicts[drawn], np.full(len(drawn), query), np.array(of_query)[drawn], shares[drawn])
    return pairs, 2 * wrong * (1 - wrong)


def unequal(random: Random) -> tuple[Pairs, float]:
    """Pairs at the top, which contradict more often, are all judged; of the others 15 %."""
    places = np.repeat(np.arange(QUERIES), PAIRS)
    top = random.random(len(places)) < 0.4
    factor = _liabilities(random, QUERIES, 0.3)[places] / 0.3
    positive = random.random(len(places)) < np.where(top, 0.12, 0.03) * factor
    strata = ["top" if each else "rest" for each in top]
    truth = (0.12 * 0.4 + 0.03 * 0.6 / 0.15) / (0.4 + 0.6 / 0.15)
    return _pairs(positive, places, probabilities=np.where(top, 1.0, 0.15), strata=strata), truth


def partly_judged(random: Random) -> tuple[Pairs, float]:
    """The budget ends after 40 of 100 queries, in random order."""
    pairs, truth = clustered(random, 100)
    return [pair if int(pair.query[1:]) < 40 else replace(pair, positive=None) for pair in pairs], truth


def heavy_queries(random: Random) -> tuple[Pairs, float]:
    """Numbers of pairs are Pareto-distributed: most queries have 3 to 10, some 200."""
    sizes = np.minimum(200, np.ceil(2 * (1 + random.pareto(1.3, QUERIES)))).astype(int)
    return _sized(random, sizes)


def hot_query(random: Random) -> tuple[Pairs, float]:
    """One query has 300 pairs, as many as 30 others."""
    return _sized(random, np.where(np.arange(QUERIES) == 0, 300, PAIRS))


def _sized(random: Random, sizes: Any) -> tuple[Pairs, float]:
    places = np.repeat(np.arange(QUERIES), sizes)
    return _pairs(random.random(len(places)) < _liabilities(random, QUERIES)[places], places), MEAN


def failing(random: Random, pairs: Pairs, share: dict[bool, float]) -> Pairs:
    """The judge fails on so many of the pairs without (False) and with (True) a contradiction."""
    return [
        replace(pair, positive=None, failed=True) if random.random() < share[bool(pair.positive)] else pair
        for pair in pairs
    ]


def misjudged(
    random: Random,
    labels: dict[bool, int] = LABELS,
    sensitivity: float = SENSITIVITY,
    specificity: float = SPECIFICITY,
    source: World | None = None,
    errors: dict[bool, float] | None = None,
    labels_of_errors: int = 0,
) -> tuple[Pairs, float]:
    """A judge errs, and a person labels so many pairs of each verdict, and of those that it failed on."""
    pairs, truth = source(random) if source else clustered(random, mean=TRUE_RATE)
    judged = [
        pair
        if pair.positive is None
        else replace(pair, positive=bool(random.random() < (sensitivity if pair.positive else 1 - specificity)))
        for pair in (failing(random, pairs, errors) if errors else pairs)
    ]
    for failed, verdict, wanted in (*((False, *each) for each in labels.items()), (True, None, labels_of_errors)):
        places = [place for place, pair in enumerate(judged) if pair.positive is verdict and pair.failed is failed]
        for place in random.permutation(places)[:wanted].astype(int):
            share = min(1.0, wanted / len(places))
            judged[place] = replace(judged[place], label=pairs[place].positive, label_probability=share)
    return judged, truth


def changed(random: Random, resolved: float = 0.4, appeared: float = 0.01) -> tuple[Pairs, Pairs, float]:
    """Judge the same pairs twice: in some queries contradictions were resolved, others appeared."""
    old, rate = clustered(random)
    fixed = random.random(QUERIES) < resolved
    new = [
        replace(pair, positive=not fixed[int(pair.query[1:])] if pair.positive else bool(random.random() < appeared))
        for pair in old
    ]
    return old, new, (1 - rate) * appeared - rate * resolved


def edited(random: Random, resolved: float = 0.4) -> tuple[Pairs, Pairs, float]:
    """Resolve some of the pairs of documents, wherever they recur."""
    drawn, rate = recurring_pairs(random, couples=2_000)
    old = list({(pair.query, pair.documents): pair for pair in drawn}.values())
    gone = {documents: random.random() < resolved for documents in sorted({pair.documents for pair in old})}
    new = [replace(pair, positive=bool(pair.positive and not gone[pair.documents])) for pair in old]
    return old, new, -rate * resolved


def naive(pairs: Pairs) -> Estimate:
    """Wilson's interval over all intended pairs."""
    found = wilson(sum(pair.positive is True for pair in pairs), len(pairs))
    assert found is not None
    return found


def naive_queries(pairs: Pairs) -> Estimate:
    """Wilson's interval over all queries."""
    found = wilson(len({pair.query for pair in pairs if pair.positive}), len({pair.query for pair in pairs}))
    assert found is not None
    return found


def naive_difference(old: Pairs, new: Pairs) -> Estimate:
    """Newcombe's interval of two independent rates."""
    one, two = naive(old), naive(new)
    value = two.value - one.value
    low = value - np.hypot(two.value - two.low, one.high - one.value)
    return Estimate(value, low, value + np.hypot(two.high - two.value, one.value - one.low))


PAIR_WORLDS: dict[str, World] = {
    "120 queries x 10 pairs": clustered,
    "hot documents recur": hot_documents,
    "unequal probabilities": unequal,
    "40 of 100 queries judged": partly_judged,
    "8 queries": partial(clustered, queries=8),
    "25 queries": partial(clustered, queries=25),
    "rate 1 %": partial(clustered, mean=0.01),
    "rate 0.3 %": partial(clustered, mean=0.003),
    "rate 0.5 %, 200 queries, correlation 0.4": partial(clustered, queries=200, mean=0.005, correlation=0.4),
    "rate 2 %, 80 queries, correlation 0.4": partial(clustered, queries=80, mean=0.02, correlation=0.4),
    "one query with 300 pairs": hot_query,
    "heavy-tailed queries": heavy_queries,
    "one document in half of all pairs": hot_document,
    "300 pairs recur": recurring_pairs,
}
_WRONG: dict[str, World] = {
    "50 queries, 60 documents, 3 % wrong": partial(wrong_documents, wrong=0.03),
    "50 queries, 200 documents, 3 % wrong": partial(wrong_documents, documents=200, wrong=0.03),
    "50 queries, 500 documents, 3 % wrong": partial(wrong_documents, documents=500, wrong=0.03),
    "50 queries, 60 documents, 10 % wrong": wrong_documents,
    "20 queries, 30 documents, 10 % wrong": partial(wrong_documents, queries=20, documents=30),
    "120 queries, 60 documents, 3 % wrong": partial(wrong_documents, queries=120, wrong=0.03),
}
PAIR_WORLDS |= _WRONG | {"50 queries, 60 documents, 10 % wrong, 3 pairs a query": partial(wrong_documents, most=3)}
QUERY_WORLDS: dict[str, World] = {
    name: PAIR_WORLDS[name]
    for name in (
        "120 queries x 10 pairs",
        "40 of 100 queries judged",
        "hot documents recur",
        "300 pairs recur",
        "one document in half of all pairs",
        "8 queries",
        "rate 0.3 %",
        *_WRONG,
    )
}
LABEL_WORLDS: dict[str, World] = {
    "300 labels": misjudged,
    "300 labels, hot documents": partial(misjudged, source=hot_documents),
    "300 labels, unequal probabilities": partial(misjudged, source=unequal),
    "300 labels, 40 of 100 queries judged": partial(misjudged, source=partly_judged),
    "40 labels": partial(misjudged, labels={True: 20, False: 20}),
    "300 labels, a judge without errors": partial(misjudged, sensitivity=1.0, specificity=1.0),
    "300 labels, rate 0.3 %": partial(misjudged, source=partial(clustered, mean=0.003)),
}
#: How often the judge fails without (False) and with (True) a contradiction.
AT_RANDOM, MORE_OFTEN, ONLY = {False: 0.1, True: 0.1}, {False: 0.06, True: 0.6}, {False: 0.0, True: 0.6}
MANY_LABELS = {True: 150, False: 750}
_FAILS: dict[str, tuple[World, dict[bool, float]]] = {
    "errors at random": (clustered, AT_RANDOM),
    "errors of contradictions 10 times as often": (clustered, MORE_OFTEN),
    "errors of contradictions alone": (clustered, ONLY),
    "errors of contradictions 10 times as often, heavy-tailed queries": (heavy_queries, MORE_OFTEN),
}
ERROR_WORLDS: dict[str, World] = {
    f"{sum(MANY_LABELS.values())} labels and {labels} of errors, {name}": partial(
        misjudged, labels=MANY_LABELS, source=source, errors=share, labels_of_errors=labels
    )
    for labels in (100, 0)
    for name, (source, share) in _FAILS.items()
}
CHANGES: dict[str, Callable[[Random], tuple[Pairs, Pairs, float]]] = {
    "40 % resolved": changed,
    "nothing changed": partial(changed, resolved=0.0, appeared=0.0),
    "few changes": partial(changed, resolved=0.05, appeared=0.001),
    "only new ones": partial(changed, resolved=0.0, appeared=0.02),
    "recurring pairs resolved": edited,
}


def pair_coverage(world: World, runs: int) -> dict[str, tuple[float, float]]:
    """Share of runs whose interval holds the truth, and the mean width: of the printed rate and of the naive one."""
    return _coverage([_of_pairs(world, run, pair_rate) for run in range(runs)])


def label_coverage(world: World, runs: int) -> dict[str, tuple[float, float]]:
    """The same of the corrected rate."""
    return _coverage([_of_pairs(world, run, corrected_rate) for run in range(runs)])


def error_coverage(world: World, runs: int) -> dict[str, tuple[float, float]]:
    """The same of the corrected rate where the judge fails; naive is the corrected rate without these pairs."""
    rows: list[tuple[float, Rate | None, Estimate]] = []
    for run in range(runs):
        pairs, truth = world(np.random.default_rng([SEED, run]))
        rows.append((truth, corrected_rate(pairs), _ends(corrected_rate([pair for pair in pairs if not pair.failed]))))
    return _coverage(rows)


def bounds_coverage(
    source: World, share: dict[bool, float], runs: int, rate: Callable[[Pairs], Rate] = pair_rate
) -> dict[str, tuple[float, float]]:
    """The same of the bounds of a rate where the judge fails; naive is its interval without these pairs.

    The truth of a share of queries is the mean over the runs of what a judge that never fails finds.
    """
    drawn = [source(np.random.default_rng([SEED, run])) for run in range(runs)]
    mean = float(np.mean([rate(pairs).estimate for pairs, _ in drawn]))
    rows: list[tuple[float, Rate | None, Estimate]] = []
    for run, (pairs, truth) in enumerate(drawn):
        found = rate(failing(np.random.default_rng([SEED, run, 1]), pairs, share))
        low, high = found.bounds or (found.lower, found.upper)
        printed = replace(found, lower=low, upper=high)
        rows.append((truth if rate is pair_rate else mean, printed, _ends(found)))
    return _coverage(rows)


def _ends(rate: Rate | None) -> Estimate:
    """A rate that is None holds nothing."""
    if rate is None or rate.estimate is None or rate.lower is None or rate.upper is None:
        return Estimate(-1.0, -1.0, -1.0)
    return Estimate(rate.estimate, rate.lower, rate.upper)


def query_coverage(world: World, runs: int) -> dict[str, tuple[float, float]]:
    """The same of the share of queries. The truth is the mean over the runs."""
    drawn = [world(np.random.default_rng([SEED, run]))[0] for run in range(runs)]
    found = [query_rate(pairs) for pairs in drawn]
    truth = float(np.mean([rate.estimate for rate in found]))
    return _coverage([(truth, rate, naive_queries(pairs)) for rate, pairs in zip(found, drawn, strict=True)])


def change_coverage(world: Callable[[Random], tuple[Pairs, Pairs, float]], runs: int) -> dict[str, tuple[float, float]]:
    """The same of a difference."""
    rows: list[tuple[float, Rate | None, Estimate]] = []
    for run in range(runs):
        old, new, truth = world(np.random.default_rng([SEED, run]))
        rows.append((truth, difference(old, new), naive_difference(old, new)))
    return _coverage(rows)


def _of_pairs(world: World, run: int, rate: Callable[[Pairs], Rate | None]) -> tuple[float, Rate | None, Estimate]:
    pairs, truth = world(np.random.default_rng([SEED, run]))
    return truth, rate(pairs), naive(pairs)


def _coverage(rows: Sequence[tuple[float, Rate | None, Estimate]]) -> dict[str, tuple[float, float]]:
    """A rate that is None holds nothing."""
    held: dict[str, list[bool]] = {"printed": [], "naive": []}
    widths: dict[str, list[float]] = {"printed": [], "naive": []}
    for truth, rate, other in rows:
        ends = {"naive": (other.low, other.high)}
        if rate is not None and rate.lower is not None and rate.upper is not None:
            ends["printed"] = (rate.lower, rate.upper)
        for name, (low, high) in ends.items():
            held[name].append(low - 1e-12 <= truth <= high + 1e-12)
            widths[name].append(high - low)
    return {name: (sum(held[name]) / len(rows), float(np.mean(widths[name]))) for name in held}


def measure(runs: int = RUNS) -> list[dict[str, Any]]:
    """Coverage of each interval beside the 95 % that is claimed."""
    suites: list[tuple[str, dict[str, Any], Callable[[Any, int], dict[str, tuple[float, float]]]]] = [
        ("pairs", PAIR_WORLDS, pair_coverage),
        ("queries", QUERY_WORLDS, query_coverage),
        ("corrected", LABEL_WORLDS, label_coverage),
        ("corrected, errors", ERROR_WORLDS, error_coverage),
        ("bounds of pairs", _FAILS, lambda world, runs: bounds_coverage(*world, runs)),
        ("bounds of queries", _FAILS, lambda world, runs: bounds_coverage(*world, runs, query_rate)),
        ("difference", CHANGES, change_coverage),
    ]
    rows = []
    for what, worlds, coverage in suites:
        for name, world in worlds.items():
            for kind, (share, width) in coverage(world, runs).items():
                target = TARGET if kind == "printed" else None
                rows.append(result(f"{what}, {kind}: {name}, width {width:.4f}", share, 0.95, "coverage", target, runs))
    return rows
