"""A year of scores that never happened: seeded, so that everybody's is the same. Pure.

Scores are drawn from a Beta distribution (mean 0.85, standard deviation 0.2, most of it near 1), as a judge's are. With noise, weekends
are 3 % lower and every day has its own 1 %: what a detector must not report.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay_drift.series import Calendar, Series
from assay_schema.alerts import AlertState
from assay_schema.settings import DriftSettings

DAY_MS = 86_400_000.0
Shape = Literal["none", "step", "ramp"]


@dataclass(frozen=True)
class Scenario:
    """What happens: `drop` at the start of day `at_day` at once, or as a ramp of `drop` a day."""

    days: int = 365
    per_day: int = 500
    mean: float = 0.85
    deviation: float = 0.2
    shape: Shape = "none"
    drop: float = 0.0
    at_day: float = 60.0
    noise: bool = True

    def mean_at(self, days: np.ndarray) -> np.ndarray:
        """The true mean, before noise, at times in days."""
        if self.shape == "step":
            return self.mean * np.where(days >= self.at_day, 1 - self.drop, 1.0)
        if self.shape == "ramp":
            return self.mean * np.maximum(0.05, 1 - self.drop * np.maximum(0.0, days - self.at_day))
        return np.full(days.shape, self.mean)


def samples(scenario: Scenario, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times in days, in order, and scores in [0, 1]."""
    random = np.random.default_rng(seed)
    count = scenario.days * scenario.per_day
    days = np.sort(random.uniform(0, scenario.days, count))
    means = scenario.mean_at(days)
    if scenario.noise:
        each_day = 1 + random.normal(0, 0.01, scenario.days + 1)
        day = days.astype(int)
        means = means * each_day[day] * np.where(day % 7 >= 5, 0.97, 1.0)
    means = np.clip(means, 0.02, 0.98)
    strength = scenario.mean * (1 - scenario.mean) / scenario.deviation**2 - 1
    return days, random.beta(means * strength, (1 - means) * strength)


@dataclass(frozen=True)
class Found:
    """What Assay made of it: the time (days) and new state of each transition."""

    transitions: tuple[tuple[float, AlertState], ...]

    def first(self, state: AlertState, after: float) -> float | None:
        """When an episode first reached a state after a time, in days since then."""
        return next((at - after for at, found in self.transitions if found is state and at >= after), None)

    def opened(self, before: float) -> int:
        """How many episodes opened before a time, in days."""
        return sum(at < before and state is not AlertState.RESOLVED for at, state in self._openings())

    def _openings(self) -> Iterator[tuple[float, AlertState]]:
        open_now = False
        for at, state in self.transitions:
            if not open_now:
                yield at, state
            open_now = state is not AlertState.RESOLVED


Watch = Callable[[float, Series], None]


def run(
    days: np.ndarray, scores: np.ndarray, settings: DriftSettings, *, streams: int = 1, watch: Watch | None = None
) -> Found:
    """Put samples through a series as the service does. `watch` sees the series at every full hour."""
    series, calendar = Series(), Calendar(DAY_MS)
    transitions = []
    hour = 0
    for at, score in zip(days.tolist(), scores.tolist(), strict=True):
        at_ms = at * DAY_MS
        series.observe(score, at_ms, settings, calendar)
        if transition := series.evaluate(at_ms, streams, settings, calendar):
            transitions.append((at, transition.state))
        if watch and calendar.hour(at_ms) != hour:
            hour = calendar.hour(at_ms)
            watch(at, series)
    return Found(tuple(transitions))
