"""Simulate a year of latencies from a seed, for tests and benchmarks. Pure.

Latencies are log-normal with a tail of slow ones. The detector must not alert on slower weekends and nights, variation
between days, correlation between consecutive answers, minutes in which everything is slow, or changes in traffic.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from assay_drift.amounts import Amount, amount_settings
from assay_drift.episodes import Level
from assay_drift.series import Calendar
from assay_drift.simulation import BUSY, DAY_MS, Found
from assay_schema.scores import QUANTILES
from assay_schema.settings import DriftSettings


@dataclass(frozen=True)
class Latencies:
    """A scenario: the permanent noise, and the change that begins on day `at_day`.

    From then on latencies are multiplied by `factor`, and `spikes_then` replaces `spikes`.
    """

    days: int = 365
    per_day: int = 200
    median: float = 800.0
    #: Standard deviation of the logarithm.
    spread: float = 0.5
    factor: float = 1.0
    #: Share of answers that take five times as long.
    spikes: float = 0.03
    spikes_then: float | None = None
    at_day: float = 60.0
    #: Factor on weekends, and in the first six hours of a day.
    weekend: float = 1.0
    night: float = 1.0
    #: Standard deviation of the days' logarithms, and the correlation of each day with the one before.
    day_deviation: float = 0.0
    day_correlation: float = 0.0
    #: Correlation of each answer with the previous one, and the number of consecutive answers that share half of their
    #: variance.
    correlation: float = 0.0
    session: int = 1
    #: Answers on Sundays, and from day 60 to 119, as a share of `per_day`.
    sunday: float = 1.0
    volume: float = 1.0


def latencies(scenario: Latencies, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw latencies. Returns sorted times in days, and milliseconds."""
    random = np.random.default_rng(seed)
    counts = [
        round(scenario.per_day * (scenario.sunday if day % 7 == 6 else 1) * (scenario.volume if day in BUSY else 1))
        for day in range(scenario.days)
    ]
    days = np.concatenate([np.sort(random.uniform(day, day + 1, count)) for day, count in enumerate(counts)])
    day = days.astype(int)
    each_day = scenario.day_deviation * _chain(random.normal(size=scenario.days), scenario.day_correlation)
    own = _chain(random.normal(size=len(days)), scenario.correlation)
    if scenario.session > 1:
        shared = random.normal(size=len(days) // scenario.session + 1)[np.arange(len(days)) // scenario.session]
        own = sqrt(0.5) * shared + sqrt(0.5) * own
    after = days >= scenario.at_day
    spikes = scenario.spikes if scenario.spikes_then is None else np.where(after, scenario.spikes_then, scenario.spikes)
    logs = log(scenario.median) + scenario.spread * own + each_day[day]
    logs += np.where(day % 7 >= 5, log(scenario.weekend), 0.0) + np.where(days % 1 < 0.25, log(scenario.night), 0.0)
    logs += np.where(after, log(scenario.factor), 0.0)
    logs += np.where(random.random(len(days)) < spikes, log(5), 0.0)
    return days, np.exp(logs)


def _chain(noise: np.ndarray, correlation: float) -> np.ndarray:
    """Correlate standard normal values: each with the previous one."""
    made = noise.copy()
    for place in range(1, len(made)) if correlation else ():
        made[place] = correlation * made[place - 1] + sqrt(1 - correlation**2) * noise[place]
    return made


def run_amounts(
    days: np.ndarray, values: np.ndarray, settings: DriftSettings, quantile: str, *, streams: int = 1
) -> Found:
    """Feed latencies into one series as the service does."""
    amount, calendar, watched = Amount(), Calendar(DAY_MS), amount_settings(settings)[f"latency_{quantile}"]
    transitions = []
    for number, (at, value) in enumerate(zip(days.tolist(), values.tolist(), strict=True)):
        amount.observe(value, str(number), at * DAY_MS, QUANTILES[quantile], watched, calendar)
        series = amount.series
        level: Level = "ok" if series.level(streams, watched, calendar) == "ok" else "warn"
        if transition := series.evaluate(at * DAY_MS, streams, watched, calendar, level=level):
            transitions.append((at, transition.state))
    return Found(tuple(transitions))
