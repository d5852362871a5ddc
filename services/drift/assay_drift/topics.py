"""Find the topics that grew, and the groups behind them, by clustering stored queries of two periods.

Pure.

It handles numbers and ids, never the text of a query. Some queries of both periods make the clusters, so that a new
topic gets its own; all other queries are counted in them, because the queries that made a cluster say nothing about its
size. A cluster is named if its growth is significant among twenty and given the difference between days. Membership in
one of those is then 0 or 1, and is split like any other metric.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assay_drift.attribution import ERRORS, LEAST, Split, error_of_change, groups, split
from assay_drift.baseline import Total
from assay_drift.queries import CLUSTERS, EXAMPLES, k_means, nearest

#: Queries of each period used for clustering, and the largest share of them that may be used.
CLUSTERED, CLUSTERED_SHARE = 420, 0.4


@dataclass(frozen=True, slots=True)
class Query:
    """A stored query without its text: the days since the change, and its group in each dimension."""

    event_id: str
    day: int
    parts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Topic:
    """A cluster that grew: its share of the queries, and the ids of some current ones."""

    before: float
    after: float
    examples: tuple[str, ...]


def grown(queries: Sequence[Query], vectors: np.ndarray) -> tuple[list[Topic], list[Split]] | None:
    """Return the clusters that grew, largest first, and the split of their combined share by group.

    `vectors` has one row of length 1 for each query. None if there are too few queries.
    """
    is_late = np.array([each.day >= 0 for each in queries], dtype=bool)
    makers = np.concatenate([_some(np.flatnonzero(is_late == time)) for time in (False, True)])
    rest = np.setdiff1d(np.arange(len(queries)), makers)
    late = is_late[rest]
    if late.sum() < LEAST or len(late) - late.sum() < LEAST:
        return None
    of = nearest(k_means(vectors[makers]), vectors[rest])
    queries = [queries[place] for place in rest]
    topics: list[tuple[float, int, Topic]] = []
    for cluster in range(CLUSTERS):
        before, after = (_days(queries, of == cluster, late == time) for time in (False, True))
        old, new = (sum(days.values(), Total()) for days in (before, after))
        growth = new.mean - old.mean
        if growth > ERRORS * error_of_change(before, after):
            examples = np.flatnonzero((of == cluster) & late)[:EXAMPLES]
            topics.append(
                (growth, cluster, Topic(old.mean, new.mean, tuple(queries[place].event_id for place in examples)))
            )
    topics.sort(key=lambda each: (-each[0], each[1]))
    inside = np.isin(of, [cluster for _, cluster, _ in topics])
    return [topic for _, _, topic in topics], _splits(queries, inside, late)


def _some(places: np.ndarray) -> np.ndarray:
    """Return evenly spaced positions."""
    wanted = min(CLUSTERED, int(CLUSTERED_SHARE * len(places)))
    chosen: np.ndarray = places[np.linspace(0, max(0, len(places) - 1), wanted).astype(int)]
    return chosen


def _splits(queries: Sequence[Query], inside: np.ndarray, late: np.ndarray) -> list[Split]:
    found = []
    for dimension in queries[0].parts:
        times = [
            groups(
                (each.parts[dimension], each.day, 1, float(is_in), float(is_in))
                for each, is_in, is_late in zip(queries, inside.tolist(), late.tolist(), strict=True)
                if is_late is time
            )
            for time in (False, True)
        ]
        if made := split(dimension, times[0], times[1]):
            found.append(made)
    return found


def _days(queries: Sequence[Query], inside: np.ndarray, chosen: np.ndarray) -> dict[int, Total]:
    """Return by day the number of chosen queries, and the number of those inside."""
    by_day: dict[int, Total] = {}
    for place in np.flatnonzero(chosen).tolist():
        by_day.setdefault(queries[place].day, Total()).add(float(inside[place]))
    return by_day
