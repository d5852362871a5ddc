"""How many false alarms a year, and how soon is a drop found: Assay, the plain rule, CUSUM, and river's Page-Hinkley and ADWIN.

Simulated scores (500 a day, mean 0.85, standard deviation 0.2, weekends 3 % lower, 1 % noise by day), the same for all. Drops begin at any
time of the week. `build/bench/drift-detectors.json` has every detector's figures; the rows show Assay's beside each of the others.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from assay_drift.series import Series
from assay_drift.simulation import Scenario, run, samples
from assay_schema.alerts import AlertState
from assay_schema.settings import DriftSettings
from tests.bench import drift_amounts
from tests.bench.drift_project import PROJECTS, episodes
from tests.bench.result import result

YEARS, TRIES = 12, 21
#: Of each project, all of whose series are watched.
PROJECT_YEARS = 3
SCENARIOS = {
    "5 % drop": ("step", 0.05),
    "10 % drop": ("step", 0.10),
    "12 % drop": ("step", 0.12),
    "15 % drop": ("step", 0.15),
    "ramp 0.5 % a day": ("ramp", 0.005),
}
AFTER_DAYS = 40
#: What goes on without anything having changed, of 200 scores a day. A project has five series; each is a year of its own.
STEADY: dict[str, Any] = {"per_day": 200, "weekend": 1.0, "day_deviation": 0.0}
WRONG: dict[str, Any] = {"right_or_wrong": True}
NOISE: dict[str, dict[str, Any]] = {
    "independent": {},
    "right or wrong, 110 a day": WRONG | {"per_day": 110},
    "right or wrong, 150 a day, mean 0.6": WRONG | {"per_day": 150, "mean": 0.6},
    "weekends 8 % lower": {"weekend": 0.92},
    "weekends 8 % lower, busy times 10": {"weekend": 0.92, "volume": 10},
    "a tenth of the traffic on Sundays, 8 % lower": {"weekend": 0.92, "sunday": 0.1},
    "traffic times 0.1": {"volume": 0.1},
    "nights 15 % lower": {"night": 0.85},
    "days vary by 2 %": {"day_deviation": 0.02},
    "days vary by 2 %, busy times 10": {"day_deviation": 0.02, "volume": 10},
    "days vary by 2 %, each like the one before (0.5)": {"day_deviation": 0.02, "day_correlation": 0.5},
    "each score like the one before (0.5)": {"correlation": 0.5},
    "each score like the one before (0.5), right or wrong": WRONG | {"correlation": 0.5},
    "sessions of ten, right or wrong": WRONG | {"session": 10},
    "sessions of ten, right or wrong, 110 a day": WRONG | {"session": 10, "per_day": 110},
    "sessions of thirty, right or wrong": WRONG | {"session": 30},
    "all of these": WRONG | {"weekend": 0.97, "day_deviation": 0.01, "correlation": 0.5},
    "all of these, weekends 8 % lower, days 2 %, busy": WRONG
    | {"weekend": 0.92, "day_deviation": 0.02, "correlation": 0.5, "volume": 10},
}
SERIES, NOISE_YEARS = 5, 2
#: Noise under which the judge is changed.
JUDGED = (
    "independent",
    "right or wrong, 110 a day",
    "days vary by 2 %",
    "sessions of ten, right or wrong",
    "sessions of thirty, right or wrong",
)
#: A drop that was not found in the days after it.
NEVER = float("inf")
PEERS = Path(".venv-peers/bin/python")
OURS = "Assay, critical"
RULES = {"plain rule, 1 h": 1, "plain rule, 24 h": 24}


def scenario_of(shape: Any, drop: float, place: int) -> Scenario:
    """A drop that begins 42 to 49 days into the series, at any time of the week."""
    return Scenario(days=42 + 7 + AFTER_DAYS, shape=shape, drop=drop, at_day=42 + place * 7 / TRIES)


def rule_alarms(days: np.ndarray, scores: np.ndarray, hours: int) -> list[float]:
    """The plain rule: a window's mean more than 10 % below the mean of the 30 days before. Times at which it begins to hold."""
    slot = (days * 24 / hours).astype(int)
    count, total = np.bincount(slot), np.bincount(slot, weights=scores)
    past = 30 * 24 // hours
    found, raised = [], False
    for place in range(past, len(count)):
        before = total[place - past : place].sum() / max(1, count[place - past : place].sum())
        low = bool(count[place]) and total[place] / count[place] < 0.9 * before
        if low and not raised:
            found.append((place + 1) * hours / 24)
        raised = low
    return found


def cusum_height(shift: float, run_length: float) -> float:
    """The threshold that Siegmund's approximation promises a run length for, scores being normal (which they are not)."""
    low, high = 0.0, 200.0
    for _ in range(80):
        height = (low + high) / 2
        b = height + 1.166
        low, high = (
            (height, high) if (exp(2 * shift * b) - 2 * shift * b - 1) / (2 * shift**2) < run_length else (low, height)
        )
    return low


def cusum_alarms(days: np.ndarray, scores: np.ndarray) -> list[float]:
    """CUSUM tuned for a drop of a tenth and one false alarm a year, after 30 days of reference; it starts anew after each alarm."""
    known = scores[days < 30]
    mean, deviation = known.mean(), known.std()
    shift = 0.05 * mean / deviation
    height, level, found = cusum_height(shift, 365 * 500), 0.0, []
    for at, score in zip(days[days >= 30].tolist(), scores[days >= 30].tolist(), strict=True):
        level = max(0.0, level + (mean - score) / deviation - shift)
        if level > height:
            found.append(at)
            level = 0.0
    return found


def figures(alarms: dict[str, list[float]], begins: dict[str, float]) -> dict[str, float]:
    """False alarms a year, and the median delay in days of each scenario. Alarms of the first 30 days are nobody's: that is learning."""
    quiet = [sum(at >= 30 for at in found) for key, found in alarms.items() if key.startswith("year")]
    made = {"false alarms a year": sum(quiet) / (len(quiet) * 335 / 365)}
    for name in SCENARIOS:
        delays = [
            next((at - begins[key] for at in found if at >= begins[key]), NEVER)
            for key, found in alarms.items()
            if key.startswith(f"{name}/")
        ]
        made[name] = statistics.median(delays)
    return made


def measure(years: int = YEARS, tries: int = TRIES) -> list[dict[str, Any]]:
    """The suite."""
    series = {f"year/{seed}": samples(Scenario(), seed) for seed in range(years)}
    begins = dict.fromkeys(series, 0.0)
    for name, (shape, drop) in SCENARIOS.items():
        for place in range(tries):
            scenario = scenario_of(shape, drop, place)
            series[f"{name}/{place}"], begins[f"{name}/{place}"] = samples(scenario, 1_000 + place), scenario.at_day
    alarms: dict[str, dict[str, list[float]]] = {OURS: {}, "Assay, warn": {}, "CUSUM": {}} | {
        name: {} for name in RULES
    }
    settings = DriftSettings()
    for key, (days, scores) in series.items():
        found = run(days, scores, settings)
        alarms[OURS][key] = [at for at, state in found.transitions if state is AlertState.CRITICAL]
        alarms["Assay, warn"][key] = [
            at for at, state in found.transitions if state in (AlertState.WARN, AlertState.CRITICAL)
        ]
        alarms["CUSUM"][key] = cusum_alarms(days, scores)
        for name, hours in RULES.items():
            alarms[name][key] = rule_alarms(days, scores, hours)
    alarms |= _peers(series)
    table = {name: figures(found, begins) for name, found in alarms.items()}
    _show(table)
    return (
        _rows(table, years, tries)
        + project_rows(PROJECT_YEARS)
        + noise_rows(settings)
        + judge_rows(settings)
        + drift_amounts.measure()
    )


def project_rows(years: int) -> list[dict[str, Any]]:
    """False episodes a year of all of a project's eleven series together, by project."""
    rows = []
    for seed, project in enumerate(PROJECTS):
        found = episodes(project, years, seed)
        name = f"false episodes a year, all series of a project: {project.name}"
        rows.append(result(name, sum(found.values()) / years, 1.0, "a year", "<= 1", years))
        print(f"{name}: {found or 'none'}", file=sys.stderr)
    return rows


def noise_rows(settings: DriftSettings, projects: int = NOISE_YEARS) -> list[dict[str, Any]]:
    """For each kind of noise: false episodes a year over the five series of a project, and the delay of a drop of 10 %."""
    rows = []
    for name, noise in NOISE.items():
        quiet = Scenario(**STEADY | noise)
        years = [run(*samples(quiet, seed), settings, streams=SERIES).episodes for seed in range(SERIES * projects)]
        rows.append(result(f"false episodes a year: {name}", sum(years) / projects, 1.0, "a year", "<= 1", projects))
        delays = []
        for place in range(7):
            dropped = replace(quiet, days=42 + 7 + AFTER_DAYS, shape="step", drop=0.1, at_day=42 + place)
            found = run(*samples(dropped, 500 + place), settings, streams=SERIES)
            delays.append(found.first(AlertState.WARN, AlertState.CRITICAL, after=dropped.at_day) or AFTER_DAYS)
        rows.append(result(f"delay of a 10 % drop: {name}", statistics.median(delays), 1.0, "days", None, len(delays)))
    return rows


def judge_rows(settings: DriftSettings, tries: int = 40) -> list[dict[str, Any]]:
    """Of changes of the judge: how many are told as a drop though answers are as before, and how many that come with a drop of 20 %."""
    rows = []
    for name in JUDGED:
        quiet = Scenario(**STEADY | NOISE[name])
        for drop, target in ((0.0, "<= 1"), (0.2, None)):
            told = sum(told_while_learning(quiet, seed, settings, drop) for seed in range(tries))
            what = f"told under another judge, {drop:.0%} drop: {name}"
            rows.append(result(what, told / tries, 0.05, "share", target, tries))
    return rows


def told_while_learning(quiet: Scenario, seed: int, settings: DriftSettings, drop: float = 0.0) -> bool:
    """Whether another judge's series says, before it has learned, that answers are worse than 30 days of the first judge's."""
    first = Series()
    run(*samples(replace(quiet, days=30), seed), settings, series=first)
    later = replace(quiet, days=int(settings.learning_days), mean=quiet.mean * (1 - drop))
    days, scores = samples(later, seed + 1_000)
    return run(days + 30, scores, settings, series=Series.after(first)).episodes > 0


def _rows(table: dict[str, dict[str, float]], years: int, tries: int) -> list[dict[str, Any]]:
    ours = {"false alarms a year": table["Assay, warn"]["false alarms a year"]} | {
        name: table[OURS][name] for name in SCENARIOS
    }
    rows = [
        result("false alarms a year, warnings too", ours["false alarms a year"], 0.3, "a year", "<= 1", years),
        result("delay of a 10 % drop until critical, median", ours["10 % drop"], 0.6, "days", "<= 1", tries),
    ]
    for name, theirs in table.items():
        if name.startswith("Assay"):
            continue
        for what in ("false alarms a year", "10 % drop", "15 % drop"):
            anchor = min(theirs[what], 365.0) or 0.01
            unit = "a year" if what.startswith("false") else "days"
            rows.append(result(f"{what}, beside {name}", min(ours[what], 365.0), anchor, unit, None, tries))
    return rows


def _peers(series: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, dict[str, list[float]]]:
    if not PEERS.exists():
        print("river is not measured: run `make peers`", file=sys.stderr)
        return {}
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory) / "scores.npz", Path(directory) / "alarms.json"
        np.savez(source, **{key.replace("/", "|"): scores for key, (_, scores) in series.items()})  # type: ignore[arg-type]
        subprocess.run([str(PEERS), "tests/bench/drift_peers.py", str(source), str(target)], check=True)
        found = json.loads(target.read_text())
    return {
        name: {
            key.replace("|", "/"): [float(series[key.replace("|", "/")][0][place]) for place in places]
            for key, places in each.items()
        }
        for name, each in found.items()
    }


def _show(table: dict[str, dict[str, float]]) -> None:
    shown = Table(title="drift: false alarms a year, and days until a drop is found (median)", title_justify="left")
    for column in ("detector", "false alarms a year", *SCENARIOS):
        shown.add_column(column, justify="left" if column == "detector" else "right")
    for name, found in table.items():
        shown.add_row(name, *("never" if value == NEVER else f"{value:.3g}" for value in found.values()))
    console = Console()
    (console if console.is_terminal else Console(width=160)).print(shown)
    plain = {
        name: {what: None if value == NEVER else value for what, value in each.items()} for name, each in table.items()
    }
    directory = Path("build/bench")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "drift-detectors.json").write_text(json.dumps(plain, indent=2) + "\n")
