"""Latency and cost: the time an answer or a retrieval takes, and the characters read and written.

Pure.

Amounts have long tails, so the mean is not monitored. The first two days give a limit, a tenth above their median or
their 95th percentile. After that each amount is 1 (within the limit) or 0, and the share within the limit is a series
like any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from assay_drift.episodes import Episode, Transition
from assay_drift.retrieval import hash_of
from assay_drift.series import Calendar, Series
from assay_schema.scores import COST, LATENCY, QUANTILES
from assay_schema.settings import DriftSettings

#: Days and samples needed to set a limit, unless the settings ask for fewer.
LIMIT_DAYS, LIMIT_SAMPLES = 2.0, 100
#: Raw amounts kept from these days. They are an unbiased sample: the ids with the lowest hashes.
KEPT_SAMPLES = 500
#: Factor from the quantile to the limit: smaller changes do not matter.
MARGIN = 1.1
#: Tolerance and critical ratio for a median: half of the amounts exceed it, so its share reacts at once when amounts
#: change.
MEDIAN_TOLERANCE, MEDIAN_CRITICAL = 0.1, 0.8


def amount_settings(settings: DriftSettings) -> Mapping[str, DriftSettings]:
    """Settings by metric: no plain rule (it is for scores), and wider tolerances for medians."""
    by_metric = {}
    for what in (LATENCY, COST):
        for name in QUANTILES:
            changed: dict[str, Any] = {"rule": "off"}
            if name == "p50":
                tolerance = max(settings.tolerance, MEDIAN_TOLERANCE)
                changed |= {"tolerance": tolerance, "critical_ratio": MEDIAN_CRITICAL}
            by_metric[f"{what}_{name}"] = settings.model_copy(update=changed)
    return by_metric


@dataclass(slots=True)
class Amount:
    """A series of amounts, with its limit once that is known."""

    series: Series = field(default_factory=Series)
    #: While the limit is learned: a heap of (negated hash, amount) samples. Empty afterwards.
    learning: list[tuple[int, float]] = field(default_factory=list)
    seen: int = 0
    limit: float | None = None

    def observe(
        self, raw: float, event_id: str, at_ms: float, share: float, settings: DriftSettings, calendar: Calendar
    ) -> None:
        """Count an amount. `share` is the share of amounts that are usually below the limit."""
        if self.limit is not None:
            self.series.observe(float(raw <= self.limit), at_ms, settings, calendar)
            return
        series = self.series
        series.first_ms = min(series.first_ms or at_ms, at_ms)
        series.last_ms = max(series.last_ms, at_ms)
        self.seen += 1
        heappush(self.learning, (-hash_of(event_id), raw))
        if len(self.learning) > KEPT_SAMPLES:
            heappop(self.learning)
        if self.seen >= self.samples_needed(settings) and self.days(calendar) >= self.days_needed(settings):
            self._settle(share)

    @staticmethod
    def samples_needed(settings: DriftSettings) -> int:
        """Number of samples needed to set a limit."""
        return min(LIMIT_SAMPLES, settings.learning_samples)

    @staticmethod
    def days_needed(settings: DriftSettings) -> float:
        """Number of days needed to set a limit."""
        return min(LIMIT_DAYS, settings.learning_days)

    def days(self, calendar: Calendar) -> float:
        """Number of days observed so far."""
        return (self.series.last_ms - self.series.first_ms) / calendar.day_ms

    def _settle(self, share: float) -> None:
        self.limit = limit_of([raw for _, raw in self.learning], share)
        self.learning, self.series.first_ms = [], self.series.last_ms

    @property
    def episode(self) -> Episode:
        """Episode of the series."""
        return self.series.episode

    def acknowledge(self, now_ms: float, settings: DriftSettings, calendar: Calendar) -> Transition | None:
        """Accept the current level: close the episode, forget the limit and learn it from scratch."""
        transition = self.series.acknowledge(now_ms, settings, calendar)
        self.learning = []
        self.seen = 0
        self.limit = None
        self.series.baseline = None
        self.series.days = {}
        self.series.hours = {}
        self.series.first_ms = self.series.last_ms
        return transition

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {**self.series.dump(), "learning": self.learning, "seen": self.seen, "limit": self.limit}

    @classmethod
    def load(cls, found: dict[str, Any]) -> "Amount":
        """Load the state from JSON."""
        learning = [(int(key), float(raw)) for key, raw in found["learning"]]
        return cls(Series.load(found), learning, found["seen"], found["limit"])


def limit_of(amounts: Sequence[float], share: float) -> float:
    """Return the limit: a margin above the quantile that `share` of the amounts do not exceed."""
    return MARGIN * quantile(sorted(amounts), share)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the `share` quantile of sorted values, with linear interpolation."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
