"""Latency and cost series, a part of `make bench SUITE=drift` (`SUITE=drift_amounts` runs it alone).

False episodes a year under each kind of noise, and how soon a change is found. All twelve series of a project share one promise.
"""

import statistics
import sys
from dataclasses import replace
from typing import Any

from assay_schema.alerts import AlertState
from assay_schema.scores import QUANTILES
from assay_schema.settings import DriftSettings
from tests.bench.result import result
from tests.support.latency_series import Latencies, latencies, run_amounts

#: Series that share the promise; of each quantile half of them are years of their own.
STREAMS, YEARS = 12, 2
#: Of 200 answers a day, of which 3 in 100 take five times as long.
NOISE: dict[str, dict[str, Any]] = {
    "independent": {},
    "narrow": {"spread": 0.1},
    "wide": {"spread": 1.2},
    "weekends 20 % slower": {"weekend": 1.2},
    "nights 30 % slower": {"night": 1.3},
    "a tenth of the traffic on Sundays, 20 % slower": {"weekend": 1.2, "sunday": 0.1},
    "traffic times 0.1": {"volume": 0.1},
    "days vary by 5 %, busy times 10": {"day_deviation": 0.05, "volume": 10},
    "days vary by 10 %, each like the one before (0.5)": {"day_deviation": 0.1, "day_correlation": 0.5},
    "each answer like the one before (0.5)": {"correlation": 0.5},
    "sessions of ten": {"session": 10},
}
CHANGES: dict[str, dict[str, Any]] = {
    "latency doubles": {"factor": 2.0},
    "latency 30 % longer": {"factor": 1.3},
    "spikes from 3 to 8 in 100": {"spikes_then": 0.08},
}
TRIES, AFTER_DAYS = 14, 40


def noise_rows(settings: DriftSettings, years: int = YEARS) -> list[dict[str, Any]]:
    """For each kind of noise: false episodes a year of twelve series, half of them medians."""
    rows = []
    for name, noise in NOISE.items():
        found = 0
        for seed in range(years * STREAMS // 2):
            days, values = latencies(Latencies(**noise), seed)
            found += sum(run_amounts(days, values, settings, each, streams=STREAMS).episodes for each in QUANTILES)
        rows.append(
            result(f"false episodes a year, latency and cost: {name}", found / years, 1.0, "a year", "<= 1", years)
        )
        print(f"{name}: {found} in {years} years", file=sys.stderr, flush=True)
    return rows


def change_rows(settings: DriftSettings, tries: int = TRIES) -> list[dict[str, Any]]:
    """How many days until the first of the two series of a latency tells a change; the worst of the tries too."""
    rows = []
    for name, change in CHANGES.items():
        delays: list[float] = []
        for place in range(tries):
            scenario = replace(Latencies(), days=49 + AFTER_DAYS, at_day=42 + place * 7 / tries, **change)
            days, values = latencies(scenario, 700 + place)
            found = [run_amounts(days, values, settings, each, streams=STREAMS) for each in QUANTILES]
            firsts = [each.first(AlertState.WARN, after=scenario.at_day) for each in found]
            delays.append(min((each for each in firsts if each is not None), default=float(AFTER_DAYS)))
        rows.append(result(f"delay: {name}", statistics.median(delays), 1.0, "days", None, tries))
        rows.append(result(f"delay, worst: {name}", max(delays), 1.0, "days", None, tries))
    return rows


def measure() -> list[dict[str, Any]]:
    """The suite."""
    settings = DriftSettings()
    return change_rows(settings) + noise_rows(settings)
