"""Detect changes in the topics of queries. Pure; numbers and ids, never the text of a query.

Each day of queries becomes totals that can be added: the number of queries, the sum of their vectors, and the number in
each of 20 clusters. The clusters are computed once, from a sample of the reference days. A day and a week are compared
with the reference days by two statistics: the distance of the mean vectors (best for a new topic) and chi-square over
the clusters (best for a different mix). Each statistic is compared with its distribution over shuffled whole days,
because days differ more than queries do; only a larger difference counts. For a day with fewer queries than the
reference days, the distribution is that of equally small days.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from assay_drift.episodes import Episode, Hysteresis, Transition, resolve
from assay_drift.series import Calendar, dump_episode, load_episode
from assay_schema.settings import DriftSettings

CLUSTERS = 20
#: Queries of a day whose vectors are kept for clustering: the ids with the lowest hashes.
KEPT_A_DAY = 60
#: Days of a week, and the number of shuffles for the null distribution.
WEEK, SHUFFLES = 7, 400
#: Example queries for each cluster that grew.
EXAMPLES = 3
#: Days kept in addition to the reference days.
_BEYOND = 8


@dataclass(slots=True)
class Day:
    """Totals of one day."""

    n: int
    vectors: np.ndarray
    clusters: np.ndarray
    #: The sample: (hash of the event id, event id, vector).
    kept: list[tuple[int, str, np.ndarray]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shift:
    """Distance of a window from the reference."""

    days: int
    n: int
    #: The greater of the two statistics, in standard deviations of the shuffled days.
    deviations: float
    #: Distance of the mean vectors, from 0 to 2.
    distance: float
    #: Clusters that grew most, with the ids of some of their queries.
    grown: tuple[tuple[int, tuple[str, ...]], ...] = ()


@dataclass(slots=True)
class Queries:
    """Queries of one project under one embedding."""

    days: dict[int, Day] = field(default_factory=dict)
    centroids: np.ndarray | None = None
    #: Days of the reference; empty while learning.
    reference: tuple[int, ...] = ()
    #: Days before this one are closed.
    closed: int = 0
    episode: Episode = field(default_factory=Episode)
    #: The latest window with the largest difference.
    shift: Shift | None = None

    def add(self, day: int, event_ids: Sequence[str], vectors: np.ndarray) -> None:
        """Count the queries of a day. Their vectors have length 1."""
        totals = self.days.get(day)
        if totals is None:
            totals = self.days[day] = Day(0, np.zeros(vectors.shape[1]), np.zeros(CLUSTERS))
        totals.n += len(event_ids)
        totals.vectors = totals.vectors + vectors.sum(axis=0)
        if self.centroids is not None:
            totals.clusters = totals.clusters + np.bincount(nearest(self.centroids, vectors), minlength=CLUSTERS)
        for event_id, vector in zip(event_ids, vectors, strict=True):
            key = int.from_bytes(blake2b(event_id.encode(), digest_size=6).digest())
            totals.kept.append((key, event_id, vector))
        totals.kept.sort(key=lambda each: each[0])
        del totals.kept[KEPT_A_DAY:]

    def close(self, today: int, settings: DriftSettings) -> list[Shift]:
        """Compare the days before `today` with the reference; called when a new day begins.

        Completes the reference once there are enough days.
        """
        enough = sorted(day for day, each in self.days.items() if day < today and each.n >= settings.query_samples)
        if not self.reference:
            if len(enough) >= settings.query_reference_days:
                self._settle(tuple(enough))
            return []
        keep = {*self.reference, *range(today - _BEYOND, today + 1)}
        self.days = {day: each for day, each in self.days.items() if day in keep}
        shifts = []
        for length in (1, WEEK):
            window = [day for day in enough if today - length <= day < today and day not in self.reference]
            if len(window) == length:
                shifts.append(self._compare(window))
        return shifts

    def _settle(self, days: tuple[int, ...]) -> None:
        """Cluster the sample, and estimate the clusters of each reference day from its kept queries."""
        self.reference = days
        self.centroids = k_means(np.array([vector for day in days for _, _, vector in self.days[day].kept]))
        for day, each in self.days.items():
            counts = np.bincount(nearest(self.centroids, np.array([v for _, _, v in each.kept])), minlength=CLUSTERS)
            each.clusters = counts * (each.n / max(1, len(each.kept)))
            if day in days:
                each.kept = []

    def _compare(self, window: Sequence[int]) -> Shift:
        now, reference = [self.days[day] for day in window], [self.days[day] for day in self.reference]
        distance, chi = _statistics(now, reference)
        random = np.random.default_rng(len(reference))  # the seed makes the result reproducible
        null = []
        for _ in range(SHUFFLES):
            shuffled = [reference[place] for place in random.permutation(len(reference))]
            like = [self._of_size(each.n, of, random) for each, of in zip(now, shuffled, strict=False)]
            null.append(_statistics(like, shuffled[len(now) :]))
        means, deviations = np.mean(null, axis=0), np.std(null, axis=0, ddof=1)
        score = float(np.max((np.array([distance, chi]) - means) / np.maximum(deviations, 1e-9)))
        return Shift(len(window), sum(each.n for each in now), score, distance, self._grown(window))

    def _of_size(self, n: int, day: Day, random: np.random.Generator) -> Day:
        """Resample a day of the reference as if it had only `n` queries: its mean vector varies more.

        The queries vary as their clusters do, and equally in all directions within a cluster.
        """
        missing = 1 / n - 1 / day.n
        if missing <= 0 or self.centroids is None:
            return day
        shares = day.clusters / day.clusters.sum()
        within = max(0.0, 1 - float(shares @ (self.centroids**2).sum(axis=1)))  # vectors have length 1
        apart = self.centroids - shares @ self.centroids
        noise = (random.normal(size=CLUSTERS) * np.sqrt(shares)) @ apart
        noise = noise + random.normal(size=len(day.vectors)) * np.sqrt(within / len(day.vectors))
        return Day(day.n, day.vectors + day.n * np.sqrt(missing) * noise, day.clusters)

    def _grown(self, window: Sequence[int]) -> tuple[tuple[int, tuple[str, ...]], ...]:
        assert self.centroids is not None
        n, m = (sum(self.days[day].n for day in days) for days in (window, self.reference))
        share = np.sum([self.days[day].clusters for day in window], axis=0) / n
        growth: np.ndarray = share - np.sum([self.days[day].clusters for day in self.reference], axis=0) / m
        most = np.argsort(growth)[::-1][:3]
        kept = [each for day in window for each in self.days[day].kept]
        of = nearest(self.centroids, np.array([vector for _, _, vector in kept]))
        return tuple(
            (
                int(cluster),
                tuple(event_id for (_, event_id, _), c in zip(kept, of, strict=True) if c == cluster)[:EXAMPLES],
            )
            for cluster in most
            if growth[cluster] > 0
        )

    def dump(self) -> dict[str, Any]:
        """Return the state without the days, as JSON."""
        return {
            "centroids": None if self.centroids is None else [_text(row) for row in self.centroids],
            "reference": self.reference,
            "closed": self.closed,
            "episode": dump_episode(self.episode),
            "shift": self.shift
            and [self.shift.days, self.shift.n, self.shift.deviations, self.shift.distance, self.shift.grown],
        }

    def dump_day(self, day: int) -> dict[str, Any]:
        """Return one day as JSON."""
        each = self.days[day]
        kept = [[key, event_id, _text(vector, "<f2")] for key, event_id, vector in each.kept]
        return {"n": each.n, "vectors": _text(each.vectors), "clusters": each.clusters.tolist(), "kept": kept}

    @classmethod
    def load(cls, found: dict[str, Any], days: dict[int, dict[str, Any]]) -> "Queries":
        """Load the state from JSON."""
        return cls(
            {
                day: Day(
                    each["n"],
                    _vector(each["vectors"]),
                    np.array(each["clusters"]),
                    [(key, event_id, _vector(text, "<f2")) for key, event_id, text in each["kept"]],
                )
                for day, each in days.items()
            },
            None if found["centroids"] is None else np.array([_vector(row) for row in found["centroids"]]),
            tuple(found["reference"]),
            found["closed"],
            load_episode(found["episode"]),
            _shift(found["shift"]),
        )

    def acknowledge(self, now_ms: float, _settings: DriftSettings, _calendar: Calendar) -> Transition | None:
        """Accept the current queries: close the episode and forget the reference."""
        transition = resolve(self.episode, now_ms, Hysteresis(clean_evaluations=1, cooldown_ms=0.0))
        self.days, self.centroids, self.reference, self.shift = {}, None, (), None
        return transition


def _statistics(now: Sequence[Day], before: Sequence[Day]) -> tuple[float, float]:
    """Return the distance of the mean vectors, and chi-square over the clusters per query."""
    n, m = sum(each.n for each in now), sum(each.n for each in before)
    distance = np.linalg.norm(sum(each.vectors for each in now) / n - sum(each.vectors for each in before) / m)
    observed = sum(each.clusters for each in now) / n
    expected = (sum(each.clusters for each in before) + 0.5) / (m + CLUSTERS / 2)
    return float(distance), float(np.sum((observed - expected) ** 2 / expected))


def _shift(found: list[Any] | None) -> Shift | None:
    if found is None:
        return None
    days, n, deviations, distance, grown = found
    return Shift(days, n, deviations, distance, tuple((cluster, tuple(ids)) for cluster, ids in grown))


def nearest(centroids: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the index of the nearest centroid for each vector."""
    distances: np.ndarray = (centroids**2).sum(axis=1)[None, :] - 2 * vectors @ centroids.T
    clusters: np.ndarray = distances.argmin(axis=1)
    return clusters


def k_means(vectors: np.ndarray, rounds: int = 20) -> np.ndarray:
    """Compute the centroids of 20 clusters (k-means++ with a fixed seed, Lloyd's algorithm)."""
    random = np.random.default_rng(7)
    centroids = vectors[[int(random.integers(len(vectors)))]]
    while len(centroids) < CLUSTERS:
        gap = np.maximum(0.0, 1e-12 + ((vectors[:, None, :] - centroids[None, :, :]) ** 2).sum(axis=2).min(axis=1))
        centroids = np.vstack([centroids, vectors[int(random.choice(len(vectors), p=gap / gap.sum()))]])
    for _ in range(rounds):
        of = nearest(centroids, vectors)
        for cluster in range(CLUSTERS):
            if (members := vectors[of == cluster]).size:
                centroids[cluster] = members.mean(axis=0)
    return centroids


def _text(vector: np.ndarray, form: str = "<f4") -> str:
    return base64.b64encode(vector.astype(form).tobytes()).decode()


def _vector(text: str, form: str = "<f4") -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=form).astype(np.float64)
