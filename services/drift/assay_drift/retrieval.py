"""Retrieval scores on a common scale. Pure.

Each search engine has its own scale, so the raw scores of the learning period become a reference. Later scores are
expressed as their quantile in it: 0.5 is the middle, on any scale. A drop of the quantiles is then tested like
any score. It must also be large: the effect size is the two-sample Kolmogorov-Smirnov distance between recent scores
and the reference, since every difference is significant with enough traffic.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any

from assay_drift.baseline import Baseline
from assay_drift.episodes import Episode, Transition
from assay_drift.series import Calendar, Series
from assay_schema.settings import DriftSettings

#: Raw scores kept from the learning period. They are an unbiased sample: the ids with the lowest hashes.
REFERENCE_SAMPLES = 1_000
#: Number of quantiles in the reference.
QUANTILES = 101
#: Number of recent raw scores used for the effect size.
RECENT_SAMPLES = 300
#: Names of the metrics in alerts and charts.
TOP, MEAN = "top_1", "mean_of_k"


def raw_metrics(scores: Sequence[float]) -> dict[str, float]:
    """Return the metrics of a retrieval: the score of the first hit, and the mean of all."""
    return {TOP: scores[0], MEAN: sum(scores) / len(scores)} if scores else {}


def hash_of(event_id: str) -> int:
    """Hash an id to a number independent of the event: the lowest ones are an unbiased sample."""
    return int.from_bytes(blake2b(event_id.encode(), digest_size=6).digest())


def place_in(quantiles: Sequence[float], value: float) -> float:
    """Return the position of a value among quantiles, in [0, 1]; the middle of equal ones."""
    low, high = bisect_left(quantiles, value), bisect_right(quantiles, value)
    if low == high and 0 < low < len(quantiles):  # interpolate
        below, above = quantiles[low - 1], quantiles[low]
        return (low - 1 + (value - below) / (above - below)) / (len(quantiles) - 1)
    return min(1.0, max(0.0, ((low + high) / 2 - 0.5) / (len(quantiles) - 1)))


def ks_distance(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sample Kolmogorov-Smirnov statistic of sorted samples: the largest gap between their CDFs."""
    return max(
        (abs(bisect_right(first, x) / len(first) - bisect_right(second, x) / len(second)) for x in {*first, *second}),
        default=0.0,
    )


@dataclass(slots=True)
class Scaled:
    """A series of raw scores, with its scale once that is known."""

    series: Series = field(default_factory=Series)
    #: While learning: a heap of (negated hash, raw score) samples. Empty afterwards.
    learning: list[tuple[int, float]] = field(default_factory=list)
    seen: int = 0
    quantiles: list[float] = field(default_factory=list)
    recent: list[float] = field(default_factory=list)

    def observe(self, raw: float, event_id: str, at_ms: float, settings: DriftSettings, calendar: Calendar) -> None:
        """Count a raw score."""
        if self.quantiles:
            self.recent = [*self.recent[-RECENT_SAMPLES + 1 :], raw]
            self.series.observe(place_in(self.quantiles, raw), at_ms, settings, calendar)
            return
        series = self.series
        series.first_ms = min(series.first_ms or at_ms, at_ms)
        series.last_ms = max(series.last_ms, at_ms)
        self.seen += 1
        heappush(self.learning, (-hash_of(event_id), raw))
        if len(self.learning) > REFERENCE_SAMPLES:
            heappop(self.learning)
        days = (series.last_ms - series.first_ms) / calendar.day_ms
        if days >= settings.learning_days and self.seen >= settings.learning_samples:
            self._settle(max(days, 1.0), calendar)

    def _settle(self, days: float, calendar: Calendar) -> None:
        raws = sorted(raw for _, raw in self.learning)
        self.quantiles = [raws[round(place * (len(raws) - 1) / (QUANTILES - 1))] for place in range(QUANTILES)]
        places = [place_in(self.quantiles, raw) for raw in raws]
        mean = sum(places) / len(places)
        deviation = (sum((place - mean) ** 2 for place in places) / len(places)) ** 0.5
        first, last = calendar.day(self.series.first_ms), calendar.day(self.series.last_ms)
        self.series.baseline = Baseline(mean, deviation, len(raws), self.seen / days, first, last, full=True)
        self.learning = []

    @property
    def effect(self) -> float:
        """Effect size: the Kolmogorov-Smirnov distance of recent scores from the reference."""
        return ks_distance(self.quantiles, sorted(self.recent)) if self.quantiles and self.recent else 0.0

    @property
    def episode(self) -> Episode:
        """Episode of the series."""
        return self.series.episode

    def acknowledge(self, now_ms: float, settings: DriftSettings, calendar: Calendar) -> Transition | None:
        """Accept the current level: close the episode, forget the scale and learn it from scratch."""
        transition = self.series.acknowledge(now_ms, settings, calendar)
        self.series.baseline = None
        self.learning, self.seen, self.quantiles, self.recent = [], 0, [], []
        return transition

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {
            **self.series.dump(),
            "learning": self.learning,
            "seen": self.seen,
            "quantiles": self.quantiles,
            "recent": self.recent,
        }

    @classmethod
    def load(cls, found: dict[str, Any]) -> "Scaled":
        """Load the state from JSON."""
        learning = [(int(key), float(raw)) for key, raw in found["learning"]]
        return cls(Series.load(found), learning, found["seen"], found["quantiles"], found["recent"])
