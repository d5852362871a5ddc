"""The short version of `make chaos`: a few faults under a small load, and one proof that the ledger notices."""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.catalogue import PROOFS, SCENARIOS
from tests.chaos.rig import Rig
from tests.chaos.runner import chosen, run
from tests.chaos.scenario import Scenario

pytestmark = pytest.mark.timeout(600)

SEED = 20_260
EVENTS = 1_500


class OnAnyDisk(Rig):
    """What Redis has answered is in its log, however slow the disk is."""

    appendfsync = "no"


def small(names: Iterable[str]) -> list[Scenario]:
    """Scenarios with a short load of two producers."""
    return [replace(scenario, load=replace(scenario.load, seconds=5, raw=1, sdk=1)) for scenario in chosen(names)]


@pytest.mark.slow
def test_nothing_is_lost_or_seen_twice_whatever_dies(tmp_path: Path, tables: Path) -> None:
    shutil.copytree(tables, tmp_path / "store/data", symlinks=True)
    scenarios = small(["kill all at once", "store dies before answering", "poison"])
    played, wrong = run(tmp_path, scenarios, seed=SEED, events=EVENTS, kind=OnAnyDisk)
    assert {report.scenario: report.faults for report in played.reports} == {s.name: [] for s in scenarios}
    assert wrong == []
    for report in played.reports:
        assert report.ledger.sent == report.ledger.visible + report.ledger.failed >= EVENTS
    assert played.reports[-1].ledger.failed >= 100
    assert sum(len(window.rows) for chain in played.exporter.windows.values() for window in chain) >= 3 * EVENTS


@pytest.mark.slow
def test_an_acknowledgement_before_the_insert_is_found_out(tmp_path: Path, tables: Path) -> None:
    shutil.copytree(tables, tmp_path / "store/data", symlinks=True)
    mechanism = "ack-before-insert"
    proof = PROOFS[mechanism]
    played, _ = run(tmp_path, small([proof.scenario]), seed=SEED, events=EVENTS, sabotage=mechanism, patience_s=5)
    assert proof.shown(played.reports[0].faults)


def test_every_scenario_has_a_name_of_its_own_and_says_what_it_does() -> None:
    scenarios = [scenario for group in SCENARIOS.values() for scenario in group]
    names = [scenario.name for scenario in scenarios]
    assert len(names) == len(set(names))
    assert {proof.scenario for proof in PROOFS.values()} <= set(names)
    assert PROOFS["no-reclaim"].shown(["9 lost"])
    assert not PROOFS["no-reclaim"].shown(["the watermark did not pass the end of the fault within 12 s"])
    assert all(scenario.fault.__doc__ for scenario in scenarios if scenario.fault.__name__ != "fault")
