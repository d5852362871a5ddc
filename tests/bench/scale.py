"""Scale-out on one machine: shards, and consumers of one group, side by side. What two cores gain is bounded by two cores.

Services stand still while the events are laid out, so producers cost nothing of what is measured: from then until the last row is stored.
"""

import signal
import statistics
import tempfile
import time
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
import psutil

from assay_schema.ids import new_event_id
from assay_schema.streams import CAPTURE, FIELD
from tests.bench import consume
from tests.bench.result import result
from tests.chaos.rig import PASSWORD, Rig

EVENTS = 10_000
CHUNK = 1_000
ROUNDS = 3


class Plan(NamedTuple):
    """How many of each."""

    shards: int
    scrubbers: int
    writers: int

    def __str__(self) -> str:
        counts = zip(self, ("shard", "scrubber", "writer"), strict=True)
        return ", ".join(f"{count} {noun}{'s' * (count > 1)}" for count, noun in counts)


ONE = Plan(1, 1, 1)
PLANS = (
    ONE,
    *(Plan(shards, 1, 1) for shards in (2, 4)),
    *(Plan(1, scrubbers, 1) for scrubbers in (2, 4)),
    Plan(1, 1, 2),
    *(Plan(count, count, 1) for count in (2, 4)),
)


class ScaleRig(Rig):
    """The services with their default settings."""

    def settings_file(self, user: str, *, direct: bool = False, extra: str = "") -> Path:  # noqa: ARG002
        """Addresses and shards, and nothing else."""
        path = self.directory / f"{user}.toml"
        path.write_text(
            f'[redis]\nurl = "{self.redis_url()}"\nshards = {len(self.shards)}\n'
            f'[store]\nurl = "http://127.0.0.1:{self.store_port}"\nuser = "{user}"\npassword = "{PASSWORD}"\n'
        )
        path.chmod(0o600)
        return path

    def set_up(self, plan: Plan) -> None:
        """Services as planned, in new processes."""
        self.scale(0, 0)
        self.topology = MappingProxyType({"shards": plan.shards})
        self.scale(plan.scrubbers, plan.writers)

    def signal_services(self, which: signal.Signals) -> None:
        """To all of them."""
        for name in self.services():
            self.processes[name].send(which)

    def cpu_seconds(self) -> dict[str, float]:
        """What each kind of process has used so far."""
        used: dict[str, float] = {}
        for name, process in self.processes.items():
            if process.wanted and process.pid:
                times = psutil.Process(process.pid).cpu_times()
                kind = name.partition("-")[0]
                used[kind] = used.get(kind, 0.0) + times.user + times.system
        return used


def lay_out(rig: Rig, template: dict[str, Any], shards: int) -> None:
    """Events, spread over the shards."""
    with rig.redis() as client:
        for start in range(0, EVENTS, CHUNK):
            pipeline = client.pipeline(transaction=False)
            for number in range(start, start + CHUNK):
                data = orjson.dumps(template | {"event_id": new_event_id()})
                pipeline.xadd(CAPTURE.key(number % shards), {FIELD: data})
            pipeline.execute()


def play(rig: ScaleRig, plan: Plan, template: dict[str, Any]) -> tuple[float, dict[str, float]]:
    """Events per second, and the cores that each kind of process used."""
    rig.set_up(plan)
    store = rig.store()
    stored = "SELECT count() FROM assay_base.candidates"
    before = int(store.command(stored))
    rig.signal_services(signal.SIGSTOP)
    lay_out(rig, template, plan.shards)
    used, started = rig.cpu_seconds(), time.perf_counter()
    rig.signal_services(signal.SIGCONT)
    rig.until(lambda: int(store.command(stored)) >= before + EVENTS, f"{plan}: all is stored", 120)
    seconds = time.perf_counter() - started
    store.close()
    return EVENTS / seconds, {kind: (now - used[kind]) / seconds for kind, now in rig.cpu_seconds().items()}


def measure() -> list[dict[str, Any]]:
    """Medians of rounds, each of which plays every plan."""
    template = orjson.loads(consume.event())
    rates: dict[Plan, list[float]] = {plan: [] for plan in PLANS}
    cores: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as directory:
        rig = ScaleRig(Path(directory))
        try:
            rig.start()
            play(rig, ONE, template)  # warm up
            for turn in range(ROUNDS):
                for plan in PLANS if turn % 2 else reversed(PLANS):
                    rate, used = play(rig, plan, template)
                    rates[plan].append(rate)
                    if plan == ONE:
                        cores.append(used)
        finally:
            rig.stop()
    anchor = statistics.median(rates[ONE])
    count = EVENTS * ROUNDS
    rows = [
        result(str(plan), statistics.median(found), anchor, "events/s", None, count) for plan, found in rates.items()
    ]
    available = float(psutil.cpu_count() or 1)
    for kind in cores[0]:
        used_cores = statistics.median(found[kind] for found in cores)
        rows.append(result(f"cores used by the {kind}, {ONE}", used_cores, available, "cores", None, count))
    return rows
