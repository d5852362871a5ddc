"""Simulate a year of scores from a seed, for tests and benchmarks. Pure.

Scores follow a Beta distribution (mean 0.85, standard deviation 0.2, most of it near 1), like a judge's scores, or are
right or wrong. The detector must not alert on lower weekends and nights, variation between days, correlation between
consecutive scores or within a session, or changes in traffic.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import erf, sqrt
from typing import Literal

import numpy as np

from assay_drift.series import Calendar, Series
from assay_schema.alerts import AlertState
from assay_schema.settings import DriftSettings

DAY_MS = 86_400_000.0
Shape = Literal["none", "step", "ramp"]
#: Days on which traffic is multiplied by `Scenario.volume`.
BUSY = range(60, 120)
_TABLE = 10_000
_normal_cdf = np.frompyfunc(lambda z: 0.5 * (1 + erf(z / sqrt(2))), 1, 1)


@dataclass(frozen=True)
class Scenario:
    """A scenario: the permanent noise, and the drop from day `at_day` on, in one step or as a ramp.

    A ramp loses `drop` every day.
    """

    days: int = 365
    per_day: int = 500
    mean: float = 0.85
    deviation: float = 0.2
    shape: Shape = "none"
    drop: float = 0.0
    at_day: float = 60.0
    #: Scores are 0 or 1 with the given `mean`; `deviation` is not used.
    right_or_wrong: bool = False
    #: Factor of the mean on weekends, and in the first six hours of a day.
    weekend: float = 0.97
    night: float = 1.0
    #: Standard deviation of the days' means, relative to the mean, and the correlation of each day with the previous
    #: one.
    day_deviation: float = 0.01
    day_correlation: float = 0.0
    #: Correlation of each score with the previous one, and the number of consecutive scores that share half of their
    #: variance.
    correlation: float = 0.0
    session: int = 1
    #: Samples on Sundays, and from day 60 to 119, as a share of `per_day`.
    sunday: float = 1.0
    volume: float = 1.0

    def mean_at(self, days: np.ndarray) -> np.ndarray:
        """Return the true mean, before noise, at times in days."""
        if self.shape == "step":
            return self.mean * np.where(days >= self.at_day, 1 - self.drop, 1.0)
        if self.shape == "ramp":
            return self.mean * np.maximum(0.05, 1 - self.drop * np.maximum(0.0, days - self.at_day))
        return np.full(days.shape, self.mean)


def samples(scenario: Scenario, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw scores in [0, 1]. Returns sorted times in days, and the scores."""
    random = np.random.default_rng(seed)
    counts = [round(scenario.per_day * _traffic(scenario, day)) for day in range(scenario.days)]
    days = np.concatenate([np.sort(random.uniform(day, day + 1, count)) for day, count in enumerate(counts)])
    day = days.astype(int)
    each_day = 1 + scenario.day_deviation * _chain(random.normal(size=scenario.days), scenario.day_correlation)
    usual = np.where(day % 7 >= 5, scenario.weekend, 1.0) * np.where(days % 1 < 0.25, scenario.night, 1.0)
    means = np.clip(scenario.mean_at(days) * each_day[day] * usual, 0.02, 0.98)
    place = _normal_cdf(_resembling(scenario, random, len(days))).astype(float)
    if scenario.right_or_wrong:
        return days, (place < means).astype(float)
    return days, _beta(scenario, random, means, place)


def _traffic(scenario: Scenario, day: int) -> float:
    return (scenario.sunday if day % 7 == 6 else 1.0) * (scenario.volume if day in BUSY else 1.0)


def _chain(noise: np.ndarray, correlation: float) -> np.ndarray:
    """Correlate standard normal values: each with the previous one."""
    if not correlation:
        return noise
    fresh, made = sqrt(1 - correlation**2), noise.copy()
    for place in range(1, len(made)):
        made[place] = correlation * made[place - 1] + fresh * noise[place]
    return made


def _resembling(scenario: Scenario, random: np.random.Generator, count: int) -> np.ndarray:
    """Return one correlated standard normal value for each score."""
    own = _chain(random.normal(size=count), scenario.correlation)
    if scenario.session == 1:
        return own
    session = np.arange(count) // scenario.session
    shared = random.normal(size=count // scenario.session + 1)
    return sqrt(0.5) * shared[session] + sqrt(0.5) * own


def _beta(scenario: Scenario, random: np.random.Generator, means: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return scores at given quantiles of Beta distributions (one table per mean, rounded to 0.001)."""
    strength = scenario.mean * (1 - scenario.mean) / scenario.deviation**2 - 1
    grid, scores = np.linspace(0, 1, _TABLE), np.empty(len(means))
    rounded = np.round(means, 3)
    for mean in np.unique(rounded):
        here = rounded == mean
        table = np.sort(random.beta(mean * strength, (1 - mean) * strength, _TABLE))
        scores[here] = np.interp(place[here], grid, table)
    return scores


@dataclass(frozen=True)
class Found:
    """Transitions of a simulation: the time (days) and the new state of each."""

    transitions: tuple[tuple[float, AlertState], ...]

    def first(self, *states: AlertState, after: float) -> float | None:
        """Return the days from `after` until an episode first reached one of some states."""
        return next((at - after for at, found in self.transitions if found in states and at >= after), None)

    @property
    def episodes(self) -> int:
        """Number of episodes opened."""
        return sum(1 for _ in self._openings())

    def _openings(self) -> Iterator[tuple[float, AlertState]]:
        open_now = False
        for at, state in self.transitions:
            if not open_now:
                yield at, state
            open_now = state is not AlertState.RESOLVED


ShardSeries = Callable[[float, Series], None]


def run(
    days: np.ndarray,
    scores: np.ndarray,
    settings: DriftSettings,
    *,
    streams: int = 1,
    watch: ShardSeries | None = None,
    series: Series | None = None,
) -> Found:
    """Feed samples into a series (by default a new one) as the service does.

    `watch` is called at every full hour.
    """
    series, calendar = series or Series(), Calendar(DAY_MS)
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
