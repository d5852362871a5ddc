"""Redis loses the end of its log, again and again, and then everything, while producers, services and exports go on."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from assay_schema.streams import CAPTURE, EVENTS
from tests.chaos.faults import Scenario
from tests.chaos.rig import Rig, running
from tests.chaos.runner import Run, chosen

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

#: How far Redis's clock was set back, in milliseconds: what it gives again are the same places in the log.
BACK_MS = 600_000


class OnAnyDisk(Rig):
    """What Redis has answered is in its log, however slow the disk is."""

    appendfsync = "no"


def load(number: int) -> Scenario:
    [alone] = chosen(["load alone"])
    return replace(alone, name=f"load {number}", load=replace(alone.load, seconds=3, raw=1, sdk=1))


def test_no_id_is_given_twice_and_exports_chain_whatever_redis_forgets(tmp_path: Path) -> None:
    with running(tmp_path, kind=OnAnyDisk) as rig:
        run = Run(rig, 20_260, 1_500)
        run.play(load(0))
        with rig.redis() as client:
            ahead = int(client.time()[0]) * 1_000 + BACK_MS
            for stream in (CAPTURE, EVENTS):
                client.execute_command("XSETID", stream.key(), f"{ahead}-0")
        log, kept = tmp_path / "redis" / "appendonlydir", tmp_path / "kept"
        for number in (1, 2, 3):
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(log, kept)
            run.play(load(number))  # all of it is stored, then Redis forgets it
            rig.processes["redis"].hold()
            shutil.rmtree(log)
            shutil.copytree(kept, log)
            rig.start_redis(tmp_path / "redis")
        run.play(load(4))
        with rig.redis() as client:
            client.flushall()
        run.play(load(5))
        assert run.finish() == []
        assert {report.scenario: report.faults for report in run.reports} == {f"load {n}": [] for n in range(6)}
