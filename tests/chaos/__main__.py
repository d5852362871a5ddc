"""`make chaos`: break everything under load and count what arrived. Ends with 1 if anything was lost or seen twice, or a bound was missed.

Then the proof that it can fail: the same with one mechanism switched off, which has to come out wrong.
"""

import argparse
import logging
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.chaos import whole
from tests.chaos.catalogue import DEATHS, PROOFS, SCENARIOS, rig_of
from tests.chaos.rig import VISIBILITY_S, Rig
from tests.chaos.runner import Report, Run, chosen, run
from tests.chaos.scenario import Scenario

EVENTS = 1_050_000
#: In this time all must be as it should be after a death, in seconds, at the 99th percentile: what the dead held is claimed after the
#: visibility time-out.
RECOVERY_BOUND_S = VISIBILITY_S + 5
#: Events of one proof, and how long it waits for what will never come, in seconds.
PROOF_EVENTS, PROOF_PATIENCE_S = 12_000, 12.0
SEED = 20_260


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="what times and choices are drawn from (%(default)s)")
    parser.add_argument("--events", type=int, default=EVENTS, help="events in all, roughly (%(default)s)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this scenario; may be repeated"
    )
    parser.add_argument(
        "--sabotage", choices=PROOFS, help="switch one mechanism off and play the scenario that shows it"
    )
    parser.add_argument("--no-proofs", action="store_true", help="leave the proofs out")
    parser.add_argument(
        "--recovery-bound",
        type=float,
        default=RECOVERY_BOUND_S,
        metavar="S",
        help="seconds from a death until all is as it should be (%(default)s)",
    )
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave logs and data in this new directory")
    asked = parser.parse_args()
    logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL)  # a store that is away is no news here
    if asked.list:
        for scenario in (one for group in SCENARIOS.values() for one in group):
            print(f"{scenario.name:36} {scenario.description}")
        return 0
    try:
        apart = {whole.NAME, *(scenario.name for group in _apart().values() for scenario in group)}
        named = [name for name in asked.only if name not in apart]
        wanted = named
        scenarios = [] if asked.only and not named else chosen(wanted)
    except KeyError as unknown:
        parser.error(f"no scenario {unknown}; --list names them")
    console = Console(width=None if sys.stdout.isatty() else 130)
    with tempfile.TemporaryDirectory(prefix="assay-chaos-") as temporary:
        directory = asked.keep or Path(temporary)
        directory.mkdir(exist_ok=True)
        if asked.sabotage:
            found = _sabotaged(directory, asked.sabotage, asked.seed)
            console.print("\n".join(found) or "nothing was found")
            return 1 if found else 0
        started = time.monotonic()
        well = _suite(console, directory / "suite", scenarios, asked)
        if not (asked.only or asked.no_proofs):
            well &= _proofs(console, directory, asked.seed)
        console.print(
            f"{time.monotonic() - started:.0f} s, seed {asked.seed}: {'[green]well' if well else '[red]not well'}[/]"
        )
    return 0 if well else 1


def _suite(console: Console, directory: Path, scenarios: list[Scenario], asked: argparse.Namespace) -> bool:
    directory.mkdir()
    with_whole = not asked.only or whole.NAME in asked.only
    several = {
        kind: [one for one in group if not one.missing() and (not asked.only or one.name in asked.only)]
        for kind, group in _apart().items()
    }
    everything = [*scenarios, *(one for group in several.values() for one in group)]
    weight = sum(scenario.load.weight for scenario in everything) + with_whole
    for scenario in (one for group in SCENARIOS.values() for one in group):
        if missing := scenario.missing():
            console.print(f"[yellow]not run: {scenario.name} (needs {missing})[/]")
    played, wrong = run(
        directory,
        scenarios,
        seed=asked.seed,
        events=round(asked.events / weight),
        told=lambda report: _tell(console, report),
    )
    for kind, group in several.items():
        if group:
            home = directory / kind.__name__
            home.mkdir()
            events = round(asked.events / weight)
            more, faulty = run(
                home, group, seed=asked.seed, events=events, told=lambda report: _tell(console, report), kind=kind
            )
            played.reports += more.reports
            wrong += faulty
    if with_whole:
        home = directory / "whole"
        home.mkdir()
        played.reports.append(whole.play(home, asked.seed, round(asked.events / weight)))
        _tell(console, played.reports[-1])
    console.print(_table(played))
    found = all_faults(played.reports, wrong, asked.recovery_bound)
    _summarise(console, played, found)
    return not found


def all_faults(reports: Sequence[Report], of_the_whole: Sequence[str], recovery_bound_s: float) -> list[str]:
    """What ends the run with 1: faults of the whole, of each scenario, and bounds that all together did not hold."""
    found = [*of_the_whole, *(f"{report.scenario}: {fault}" for report in reports for fault in report.faults)]
    deaths = _recoveries(reports)
    if not deaths or _p99(deaths) < recovery_bound_s:
        return found
    slow = ", ".join(
        f"{report.scenario} {report.recovery:.1f} s"
        for report in reports
        if report.scenario in DEATHS and report.recovery >= recovery_bound_s
    )
    missed = f"missed: recovery from a death took {_p99(deaths):.1f} s at p99, bound {recovery_bound_s:.1f} s ({slow})"
    return [*found, missed]


def _recoveries(reports: Sequence[Report]) -> list[float]:
    """How long each death was felt, in seconds."""
    return [report.recovery for report in reports if report.scenario in DEATHS]


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[math.ceil(len(values) * 0.99) - 1]


def _apart() -> dict[type[Rig], tuple[Scenario, ...]]:
    """Scenarios that need another rig than the usual one."""
    return {kind: group for kind, group in SCENARIOS.items() if kind is not Rig}


def _proofs(console: Console, directory: Path, seed: int) -> bool:
    """Each mechanism switched off must show. True if each did."""
    table = Table(title="with one mechanism switched off", title_justify="left")
    for column in ("switched off", "scenario", "found"):
        table.add_column(column, overflow="fold")
    shown = True
    for mechanism, proof in PROOFS.items():
        if missing := rig_of(proof.scenario)[1].missing():
            console.print(f"[yellow]not shown: {mechanism} (needs {missing})[/]")
            continue
        found = _sabotaged(directory, mechanism, seed)
        noticed = proof.shown(found)
        shown &= noticed
        said = "; ".join(found) or "nothing"
        table.add_row(mechanism, proof.scenario, said if noticed else f"[red]{said}: this suite would not notice[/]")
    console.print(table)
    return shown


def _sabotaged(directory: Path, mechanism: str, seed: int) -> list[str]:
    """What is found with one mechanism switched off."""
    home = directory / mechanism
    home.mkdir()
    kind, scenario = rig_of(PROOFS[mechanism].scenario)
    patience_s = PROOF_PATIENCE_S
    played, wrong = run(
        home, [scenario], seed=seed, events=PROOF_EVENTS, sabotage=mechanism, patience_s=patience_s, kind=kind
    )
    return [fault for report in played.reports for fault in report.faults] + wrong


def _tell(console: Console, report: Report) -> None:
    verdict = "[green]well[/]" if report.well else f"[red]{'; '.join(report.faults)}[/]"
    console.print(f"{report.scenario}: {report.ledger.sent:,} sent, recovered in {report.recovery:.1f} s: {verdict}")


def _table(played: Run) -> Table:
    table = Table(title="the ledger", title_justify="left")
    table.add_column("scenario")
    for column in ("sent", "visible", "failed", "lost", "twice", "dropped", "rows in table", "recovery s", "all s"):
        table.add_column(column, justify="right")
    reports = played.reports
    for report in reports:
        _row(table, report.scenario, [report])
    table.add_section()
    _row(table, "all", reports)
    return table


def _row(table: Table, name: str, reports: list[Report]) -> None:
    counts = [
        f"{sum(getattr(report.ledger, column) for report in reports):,}"
        for column in ("sent", "visible", "failed", "lost", "duplicates", "dropped")
    ]
    written = f"{sum(report.rows_written for report in reports):,}"
    recovery = f"{max(report.recovery for report in reports):.1f}"
    seconds = f"{sum(report.seconds for report in reports):.0f}"
    table.add_row(name, *counts, written, recovery, seconds, style="" if all(r.well for r in reports) else "red")


def _summarise(console: Console, played: Run, found: list[str]) -> None:
    exporter = played.exporter
    windows = sum(map(len, exporter.windows.values()))
    rows = sum(len(window.rows) for chain in exporter.windows.values() for window in chain)
    console.print(f"export: {windows} windows chained, {rows:,} rows, {exporter.failed} runs failed and were repeated")
    peaks = ", ".join(f"{name} {p.peak_rss >> 20}" for name, p in played.rig.processes.items())
    console.print(f"most memory held (MiB): {peaks}")
    if played.reports:
        worst = max(played.reports, key=lambda report: report.recovery)
        middle = statistics.median(report.recovery for report in played.reports)
        console.print(f"recovery: median {middle:.1f} s, worst {worst.recovery:.1f} s ({worst.scenario})")
    complete, looks, incomplete = (
        sum(getattr(report, name) for report in played.reports) for name in ("sessions", "looks", "incomplete")
    )
    console.print(
        f"sessions: {complete:,} sent whole; looked at {looks:,} times, {incomplete:,} times before all were complete"
    )
    if deaths := _recoveries(played.reports):
        console.print(f"from a death: p99 {_p99(deaths):.1f} s of {len(deaths)}")
    for fault in found:
        console.print(f"[red]{fault}[/]")


if __name__ == "__main__":
    raise SystemExit(main())
