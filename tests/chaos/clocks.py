"""Clocks that are wrong: each process has one of its own, which can be stepped while it runs.

Needs a C compiler, for `clock.c`. The engine of the store asks the kernel itself; its clock cannot be moved.
"""

import signal
import struct
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.chaos.forgetting import forget
from tests.chaos.rig import Rig
from tests.chaos.scenario import Fault, Load, Scenario, Stage
from tests.programs import found, lacking

HOUR_S, DAY_S = 3_600, 86_400
SOURCE = Path(__file__).with_name("clock.c")


def missing() -> str:
    """Why no clock can be moved here."""
    return "" if found("cc") else lacking("cc")


class Clock:
    """The clock of one process, in a directory that processes may share."""

    def __init__(self, directory: Path, name: str) -> None:
        self._offset = directory / f"clock-{name}"
        self._library = directory / "clock.so"
        if not self._library.exists():
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", self._library, SOURCE], check=True, timeout=120)
        self.step(0)

    @property
    def environment(self) -> dict[str, str]:
        """What gives a process this clock."""
        return {"LD_PRELOAD": str(self._library), "CLOCK_OFFSET_FILE": str(self._offset)}

    def step(self, offset_s: float) -> None:
        """Set it so many seconds ahead of the true time, at once."""
        with self._offset.open("r+b" if self._offset.exists() else "wb", buffering=0) as offset:
            offset.write(struct.pack("=q", round(offset_s * 1e9)))


class ClocksRig(Rig):
    """Redis and the services by clocks of their own."""

    def __init__(self, directory: Path, sabotage: str | None = None) -> None:
        super().__init__(directory, sabotage)
        self.clocks: dict[str, Clock] = {}

    def clock_of(self, name: str) -> Mapping[str, str]:
        """What gives a process its clock."""
        if name not in self.clocks:
            self.clocks[name] = Clock(self.directory, name)
        return self.clocks[name].environment


def _rig(stage: Stage) -> ClocksRig:
    assert isinstance(stage.rig, ClocksRig)
    return stage.rig


def wrong(*names: str, by_s: tuple[float, ...], restarted: bool = False) -> Fault:
    """The clocks of processes are wrong by this much, one step after the other, and then right."""

    def fault(stage: Stage) -> None:
        rig = _rig(stage)
        for offset_s in (*by_s, 0):
            stage.pause(0.3, 0.6)
            for name in names:
                rig.clocks[name].step(offset_s)
                if restarted:
                    rig.processes[name].send(signal.SIGTERM)
            stage.pause(2, 3)

    return fault


def redis_forgets_with_a_slow_clock(seconds: float) -> Fault:
    """Redis comes back without the end of its log, and by a clock that is behind, while a backlog waits for the store."""

    def fault(stage: Stage) -> None:
        rig = _rig(stage)
        stage.pause(0.3, 0.6)
        for store_is_away in (False, True):
            if store_is_away:
                rig.processes["store"].hold()
                stage.pause(1, 1.5)
            forget(stage, before_start=_behind(rig, seconds))
            stage.pause(1, 1.5)
        rig.processes["store"].start()
        rig.until_store_ready()
        rig.clocks["redis"].step(0)

    return fault


def _behind(rig: ClocksRig, seconds: float) -> Callable[[], None]:
    return lambda: rig.clocks["redis"].step(-seconds)


_LOAD = Load(seconds=10)
SCENARIOS: dict[type[Rig], tuple[Scenario, ...]] = {
    ClocksRig: (
        Scenario(
            "clock of the scrubber a day behind",
            wrong("scrubber-1", by_s=(-26 * HOUR_S,)),
            _LOAD,
            missing=missing,
            about="The clock of the scrubber's host is 26 hours behind, then right.",
        ),
        Scenario(
            "clock of the scrubber wrong from its start",
            wrong("scrubber-1", by_s=(-26 * HOUR_S, -67 * 60, 30 * DAY_S), restarted=True),
            Load(seconds=14),
            missing=missing,
            about="The scrubber is started with clocks that are hours behind, an hour behind, a month ahead, then right.",
        ),
        Scenario(
            "clock of the writer wrong",
            wrong("writer-1", by_s=(-26 * HOUR_S, 26 * HOUR_S), restarted=True),
            Load(seconds=12),
            missing=missing,
            about="The writer is started with a clock that is 26 hours behind, 26 hours ahead, then right.",
        ),
        Scenario(
            "clock of redis stepped",
            wrong("redis", by_s=(5, -5, HOUR_S, -HOUR_S)),
            Load(seconds=16),
            missing=missing,
            about="Redis's clock steps by five seconds and by an hour, forth and back.",
        ),
        Scenario(
            "clocks of all apart",
            wrong("redis", "scrubber-1", "writer-1", by_s=(70 * 60, -70 * 60)),
            Load(seconds=14),
            missing=missing,
            about="The clocks of Redis and both services jump 70 minutes ahead, then 70 minutes behind, then are right.",
        ),
        Scenario(
            "redis forgets, clock 3 s behind",
            redis_forgets_with_a_slow_clock(3),
            Load(seconds=14),
            missing=missing,
            about="Redis loses the end of its log and comes back with a clock that is 3 seconds behind, once while the store is away.",
        ),
        Scenario(
            "redis forgets, clock 5 s behind",
            redis_forgets_with_a_slow_clock(5),
            Load(seconds=14),
            missing=missing,
            about="Redis loses the end of its log and comes back with a clock that is 5 seconds behind, once while the store is away.",
        ),
    )
}
