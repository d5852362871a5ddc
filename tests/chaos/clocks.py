"""Clocks that are wrong: each process has one of its own, which can be stepped while it runs.

Needs a C compiler, for `clock.c`. The engine of the store asks the kernel itself; its clock cannot be moved.
"""

import shutil
import signal
import struct
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.chaos.forgetting import forget
from tests.chaos.rig import Rig
from tests.chaos.scenario import Fault, Load, Scenario, Stage

HOUR_S, DAY_S = 3_600, 86_400
SOURCE = Path(__file__).with_name("clock.c")


def missing() -> str:
    """Why no clock can be moved here."""
    return "" if shutil.which("cc") else "a C compiler"


class ClocksRig(Rig):
    """Redis and the services by clocks of their own."""

    def clock_of(self, name: str) -> Mapping[str, str]:
        """What gives a process its clock."""
        library = self.directory / "clock.so"
        if not library.exists():
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE], check=True, timeout=120)
        place = self._place(name)
        if not place.exists():
            place.write_bytes(bytes(8))
        return {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": str(place)}

    def step(self, name: str, offset_s: float) -> None:
        """Set a process's clock so many seconds ahead of the true one, at once."""
        with self._place(name).open("r+b", buffering=0) as place:
            place.write(struct.pack("=q", round(offset_s * 1e9)))

    def _place(self, name: str) -> Path:
        return self.directory / f"clock-{name}"


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
                rig.step(name, offset_s)
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
        rig.step("redis", 0)

    return fault


def _behind(rig: ClocksRig, seconds: float) -> Callable[[], None]:
    return lambda: rig.step("redis", -seconds)


_LOAD = Load(seconds=10)
SCENARIOS: dict[type[Rig], tuple[Scenario, ...]] = {
    ClocksRig: (
        Scenario(
            "clock of the scrubber a day behind", wrong("scrubber-1", by_s=(-26 * HOUR_S,)), _LOAD, missing=missing
        ),
        Scenario(
            "clock of the scrubber wrong from its start",
            wrong("scrubber-1", by_s=(-26 * HOUR_S, -67 * 60, 30 * DAY_S), restarted=True),
            Load(seconds=14),
            missing=missing,
        ),
        Scenario(
            "clock of the writer wrong",
            wrong("writer-1", by_s=(-26 * HOUR_S, 26 * HOUR_S), restarted=True),
            Load(seconds=12),
            missing=missing,
        ),
        Scenario(
            "clock of redis stepped", wrong("redis", by_s=(5, -5, HOUR_S, -HOUR_S)), Load(seconds=16), missing=missing
        ),
        Scenario(
            "clocks of all apart",
            wrong("redis", "scrubber-1", "writer-1", by_s=(70 * 60, -70 * 60)),
            Load(seconds=14),
            missing=missing,
        ),
        Scenario(
            "redis forgets, clock 3 s behind", redis_forgets_with_a_slow_clock(3), Load(seconds=14), missing=missing
        ),
        Scenario(
            "redis forgets, clock 5 s behind", redis_forgets_with_a_slow_clock(5), Load(seconds=14), missing=missing
        ),
    )
}
