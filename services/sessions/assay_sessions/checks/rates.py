"""Rates over sessions, with intervals that allow for forks. Pure.

A fork repeats the beginning of its session, so their results are not independent.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from assay_runtime.shares import Estimate, wilson


def rate(values: Sequence[float], clusters: Sequence[Hashable]) -> Estimate | None:
    """Return the mean of values from 0 to 1 with its 95 % interval; None without values.

    Wilson's interval at the effective sample size, which is the number of values divided by the design effect of the clusters
    (cluster-robust variance). If all values are equal, each cluster counts once.
    """
    n = len(values)
    if not n:
        return None
    totals = defaultdict[Hashable, list[float]](lambda: [0.0, 0.0])
    for value, cluster in zip(values, clusters, strict=True):
        totals[cluster][0] += value
        totals[cluster][1] += 1
    mean, count = sum(values) / n, len(totals)
    independent = mean * (1 - mean) / n
    size = float(n)
    if count < n and (count == 1 or not independent):
        size = float(count)
    elif count < n:
        spread = sum((total - mean * members) ** 2 for total, members in totals.values()) / n**2
        size = n / max(1.0, spread * count / (count - 1) / independent)
    estimate = wilson(mean * size, size)
    assert estimate is not None
    return estimate._replace(value=mean)


def families(links: Mapping[str, str | None]) -> dict[str, str]:
    """Return the family of each session: the session that it is a copy of, through any number of copies.

    `links`: by session, the one that it was forked from.
    """
    return {session: _root(session, links) for session in links}


def _root(session: str, links: Mapping[str, str | None]) -> str:
    seen = {session}
    while (origin := links.get(session)) is not None and origin not in seen:
        seen.add(origin)
        session = origin
    return session if links.get(session) is None else min(seen)
