"""Latency and cost: how long answers and retrievals take, and how much is read and written for them. Pure.

Amounts have long tails, so no mean is watched. Two days give a limit, a tenth above their median or their 95th percentile; from then on
each amount is 0 or 1, within its limit or not, and the share of those within is a series like any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from assay_drift.retrieval import hash_of
from assay_drift.series import Calendar, Series
from assay_schema.scores import COST, LATENCY, QUANTILES
from assay_schema.settings import DriftSettings

#: Days and samples that make a limit, where the settings do not ask for fewer.
LIMIT_DAYS, LIMIT_SAMPLES = 2.0, 100
#: Raw amounts of these days that are kept, a sample without bias: those whose ids hash lowest.
KEPT_SAMPLES = 500
#: How far above its quantile a limit lies: what is closer is too small to matter.
MARGIN = 1.1
#: What of a median's share may go unsaid. That share is half, so that it moves at once when amounts do.
MEDIAN_TOLERANCE, MEDIAN_CRITICAL = 0.1, 0.8


def amount_settings(settings: DriftSettings) -> Mapping[str, DriftSettings]:
    """The settings by metric: without the plain rule, which is for scores, and a median's are wider."""
    found = {}
    for what in (LATENCY, COST):
        for name in QUANTILES:
            changed: dict[str, Any] = {"rule": "off"}
            if name == "p50":
                tolerance = max(settings.tolerance, MEDIAN_TOLERANCE)
                changed |= {"tolerance": tolerance, "critical_ratio": MEDIAN_CRITICAL}
            found[f"{what}_{name}"] = settings.model_copy(update=changed)
    return found


@dataclass(slots=True)
class Amount:
    """A series of amounts, and its limit once that is known."""

    series: Series = field(default_factory=Series)
    #: While the limit is learned: (hash below 0, amount) of a sample, as a heap. Empty afterwards.
    learning: list[tuple[int, float]] = field(default_factory=list)
    seen: int = 0
    limit: float | None = None

    def observe(
        self, raw: float, event_id: str, at_ms: float, share: float, settings: DriftSettings, calendar: Calendar
    ) -> None:
        """Count an amount, of which `share` are usually below the limit."""
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
        """Samples that make a limit."""
        return min(LIMIT_SAMPLES, settings.learning_samples)

    @staticmethod
    def days_needed(settings: DriftSettings) -> float:
        """Days that make a limit."""
        return min(LIMIT_DAYS, settings.learning_days)

    def days(self, calendar: Calendar) -> float:
        """Days seen so far."""
        return (self.series.last_ms - self.series.first_ms) / calendar.day_ms

    def _settle(self, share: float) -> None:
        self.limit = limit_of([raw for _, raw in self.learning], share)
        self.learning, self.series.first_ms = [], self.series.last_ms

    def acknowledge(self) -> None:
        """Learn the limit anew."""
        self.learning, self.seen, self.limit, self.series.baseline = [], 0, None, None
        self.series.days, self.series.hours = {}, {}
        self.series.first_ms = self.series.last_ms

    def dump(self) -> dict[str, Any]:
        """As JSON."""
        return {**self.series.dump(), "learning": self.learning, "seen": self.seen, "limit": self.limit}

    @classmethod
    def load(cls, found: dict[str, Any]) -> "Amount":
        """From JSON."""
        learning = [(int(key), float(raw)) for key, raw in found["learning"]]
        return cls(Series.load(found), learning, found["seen"], found["limit"])


def limit_of(amounts: Sequence[float], share: float) -> float:
    """The limit that amounts give, of which `share` are usually below it."""
    return MARGIN * quantile(sorted(amounts), share)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value that `share` of sorted ones do not exceed, between two of them by their distance."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
