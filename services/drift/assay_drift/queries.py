"""Whether people ask about other things than before. Pure; numbers and ids, never a query's text.

Each day of queries becomes totals that add up: how many, the sum of their vectors, how many fall in each of 20 clusters. Clusters are made
once, of a sample from the reference days. A day and a week are compared with the reference days by two statistics: the distance of the
mean vectors (best for a new topic) and chi-square over the clusters (best for another mix). Each is held against what whole days,
shuffled, give: days differ from one another more than queries do, and only a difference beyond theirs is news. A day with fewer queries
than those of the reference is held against what they would give with as few.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from assay_drift.episodes import Episode
from assay_drift.series import dump_episode, load_episode
from assay_schema.settings import DriftSettings

CLUSTERS = 20
#: Queries of a day whose vectors are kept, to make clusters of: those whose ids hash lowest.
KEPT_A_DAY = 60
#: Days a week has, and shuffles that make its null.
WEEK, SHUFFLES = 7, 400
#: Queries named for each cluster that grew.
EXAMPLES = 3
#: Days beyond the reference that are kept.
_BEYOND = 8


@dataclass(slots=True)
class Day:
    """Totals of one day."""

    n: int
    vectors: np.ndarray
    clusters: np.ndarray
    #: (hash of the event id, event id, vector) of the sample.
    kept: list[tuple[int, str, np.ndarray]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shift:
    """How far a window is from the reference."""

    days: int
    n: int
    #: Greater of the two distances, in standard deviations of the shuffled days.
    deviations: float
    #: Distance of the mean vectors, between 0 and 2.
    distance: float
    #: Clusters that grew most, with ids of queries in them.
    grown: tuple[tuple[int, tuple[str, ...]], ...] = ()


@dataclass(slots=True)
class Queries:
    """State of one project's queries under one embedding."""

    days: dict[int, Day] = field(default_factory=dict)
    centroids: np.ndarray | None = None
    #: Days the reference is made of; empty while learning.
    reference: tuple[int, ...] = ()
    #: The day up to which days were closed.
    closed: int = 0
    episode: Episode = field(default_factory=Episode)
    #: The latest window that differed most.
    shift: Shift | None = None

    def add(self, day: int, event_ids: Sequence[str], vectors: np.ndarray) -> None:
        """Count queries of a day. Their vectors have length 1."""
        found = self.days.get(day)
        if found is None:
            found = self.days[day] = Day(0, np.zeros(vectors.shape[1]), np.zeros(CLUSTERS))
        found.n += len(event_ids)
        found.vectors = found.vectors + vectors.sum(axis=0)
        if self.centroids is not None:
            found.clusters = found.clusters + np.bincount(nearest(self.centroids, vectors), minlength=CLUSTERS)
        for event_id, vector in zip(event_ids, vectors, strict=True):
            key = int.from_bytes(blake2b(event_id.encode(), digest_size=6).digest())
            found.kept.append((key, event_id, vector))
        found.kept.sort(key=lambda each: each[0])
        del found.kept[KEPT_A_DAY:]

    def close(self, today: int, settings: DriftSettings) -> list[Shift]:
        """What the days before `today` say, called when a new day begins. Settles the reference when it is complete."""
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
        """Make clusters of the sample, and count the days' kept queries in them, scaled to the whole day."""
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
        random = np.random.default_rng(len(reference))  # the same answer whoever asks
        null = []
        for _ in range(SHUFFLES):
            shuffled = [reference[place] for place in random.permutation(len(reference))]
            like = [self._of_size(each.n, of, random) for each, of in zip(now, shuffled, strict=False)]
            null.append(_statistics(like, shuffled[len(now) :]))
        means, deviations = np.mean(null, axis=0), np.std(null, axis=0, ddof=1)
        score = float(np.max((np.array([distance, chi]) - means) / np.maximum(deviations, 1e-9)))
        return Shift(len(window), sum(each.n for each in now), score, distance, self._grown(window))

    def _of_size(self, n: int, day: Day, random: np.random.Generator) -> Day:
        """A day of the reference as it might have been with only `n` queries: its mean vector wanders more.

        The queries of a day spread as its clusters do, and within them alike in all directions.
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
        """As JSON, without the days."""
        return {
            "centroids": None if self.centroids is None else [_text(row) for row in self.centroids],
            "reference": self.reference,
            "closed": self.closed,
            "episode": dump_episode(self.episode),
            "shift": self.shift
            and [self.shift.days, self.shift.n, self.shift.deviations, self.shift.distance, self.shift.grown],
        }

    def dump_day(self, day: int) -> dict[str, Any]:
        """One day, as JSON."""
        each = self.days[day]
        kept = [[key, event_id, _text(vector, "<f2")] for key, event_id, vector in each.kept]
        return {"n": each.n, "vectors": _text(each.vectors), "clusters": each.clusters.tolist(), "kept": kept}

    @classmethod
    def load(cls, found: dict[str, Any], days: dict[int, dict[str, Any]]) -> "Queries":
        """From JSON."""
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

    def forget(self) -> None:
        """Learn anew: what is asked now is the new normal."""
        self.days, self.centroids, self.reference, self.shift = {}, None, (), None


def _statistics(now: Sequence[Day], before: Sequence[Day]) -> tuple[float, float]:
    """Distance of the mean vectors; chi-square over the clusters, for each query."""
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
    """The cluster of each vector."""
    distances: np.ndarray = (centroids**2).sum(axis=1)[None, :] - 2 * vectors @ centroids.T
    found: np.ndarray = distances.argmin(axis=1)
    return found


def k_means(vectors: np.ndarray, rounds: int = 20) -> np.ndarray:
    """Centroids of 20 clusters (k-means++ with a fixed seed, Lloyd's algorithm)."""
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
