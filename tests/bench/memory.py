"""What each process holds at worst: at saturation, with entries of a mebibyte, and in outages of the store and of Redis.

`MEMORY_SECONDS` is how long saturation and each outage last, 600 by default. Services give up on an answer after a second, so that an
outage has several times the tries that one of the same length has with the default settings.
"""

import os
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson
import psutil

from assay_runtime.memory import BOUND_BYTES
from assay_schema.ids import new_event_id
from assay_schema.streams import CAPTURE, FIELD
from tests.bench.pipeline import CHUNK, Producer, stored, wait_for
from tests.bench.result import result
from tests.support.stack import System, command_of, running

SECONDS = float(os.environ.get("MEMORY_SECONDS", "600"))
#: Settings of the services in this measurement.
IMPATIENT = {"ASSAY_REDIS_COMMAND_TIMEOUT_S": "1", "ASSAY_REDIS_CONNECT_TIMEOUT_S": "1", "ASSAY_STORE_TIMEOUT_S": "1"}
#: Most events on their way at saturation: below the mark at which the scrubber waits.
AHEAD = 60_000
#: As large as entries may be, nearly: a mebibyte, of four texts of a quarter of one.
LARGE_ENTRIES, LARGE_BYTES = 1_000, 1_040_000
#: Most of these on their way, as the SDK keeps to `capture.high_water_bytes`.
LARGE_AHEAD = 100
#: What the whole embedded system may hold, in bytes.
WHOLE_BYTES = 3 << 29
SERVICES = ("assay_scrubber", "assay_writer")


class Peaks(threading.Thread):
    """Samples each process's resident memory; `take` says the peaks since it was last asked, in bytes, by module."""

    def __init__(self, system: System) -> None:
        super().__init__(daemon=True)
        self._system, self._over = system, threading.Event()
        self._peaks: defaultdict[str, int] = defaultdict(int)

    def run(self) -> None:
        while not self._over.wait(0.2):
            whole = 0
            try:
                processes = self._system.processes()
            except psutil.Error:
                return
            for process in processes:
                try:
                    held, name = process.memory_info().rss, _name(command_of(process))
                    # A Redis that rewrites its log shares most of its pages with the child that does it.
                    whole += process.memory_full_info().pss
                except psutil.Error:
                    continue
                self._peaks[name] = max(self._peaks[name], held)
            self._peaks["whole"] = max(self._peaks["whole"], whole)

    def take(self) -> dict[str, int]:
        found, self._peaks = self._peaks, defaultdict(int)
        return dict(found)

    def stop(self) -> None:
        self._over.set()
        self.join()


def _name(command: str) -> str:
    words = command.split()
    return words[words.index("-m") + 1] if "-m" in words else Path(words[0]).name if words else ""


def saturated(system: System, producer: Producer, seconds: float) -> None:
    """As many events as the system takes."""
    store = system.store("owner")
    over, sent, before = time.monotonic() + seconds, 0, stored(store)
    while time.monotonic() < over:
        for _ in range(20):
            producer.send(producer.batch(CHUNK))
            sent += CHUNK
        while sent - (stored(store) - before) > AHEAD:
            time.sleep(0.05)
    wait_for(store, before + sent)


def large(system: System) -> None:
    """A backlog of large entries behind small ones, which a read that was sized by the small ones meets."""
    words = "a sentence that nobody needs to scrub, " * (LARGE_BYTES // 4 // 39)
    contexts = [{"id": f"page-{number}", "text": words} for number in range(3)]
    payload = {"query": "q", "answer": words, "contexts": contexts, "citations": [], "model": "m", "latency_ms": 1.0}
    event = {"schema_version": 1, "kind": "answer", "project": "p", "service": "s", "payload": payload}
    store = system.store("owner")
    with system.redis("producer") as client:
        for number in range(LARGE_ENTRIES):
            while number % 50 == 0 and number - _answers(store) > LARGE_AHEAD:
                time.sleep(0.05)
            named = event | {
                "event_id": new_event_id(),
                "occurred_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            client.xadd(CAPTURE.key(), {FIELD: orjson.dumps(named)})
    while _answers(store) < LARGE_ENTRIES:
        time.sleep(0.2)


def _answers(store: Any) -> int:
    return int(store.command("SELECT count() FROM assay_base.answers"))


def without(system: System, module: str, producer: Producer | None) -> None:
    """An outage: the process stands still, and answers nobody. With a producer, events come until the marks are reached."""
    process = system.child(module)
    over = time.monotonic() + SECONDS
    process.send_signal(signal.SIGSTOP)
    try:
        sent = 0
        while time.monotonic() < over:
            if producer and sent < 2 * AHEAD:
                producer.send(producer.batch(CHUNK))
                sent += CHUNK
            else:
                time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGCONT)


def measure() -> list[dict[str, Any]]:
    """One system, one phase after the other; the peak of each process in each."""
    rows: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory() as directory,
        running(Path(directory), "--no-quality", settings=IMPATIENT) as system,
    ):
        peaks = Peaks(system)
        peaks.start()
        with system.redis("producer") as client:
            producer = Producer(client)
            phases = {
                f"{SECONDS:.0f} s at saturation": lambda: saturated(system, producer, SECONDS),
                f"{LARGE_ENTRIES} entries of {LARGE_BYTES // 1000} kB": lambda: large(system),
                f"{SECONDS:.0f} s without the store": lambda: without(system, "assay_store", producer),
                f"{SECONDS:.0f} s without Redis": lambda: without(system, "-server 127.0.0.1:", None),
            }
            for name, phase in phases.items():
                print(f"  {name} ...", file=sys.stderr, flush=True)
                peaks.take()
                phase()
                time.sleep(3)  # what comes in a rush afterwards belongs to it
                rows += _rows(name, peaks.take())
        peaks.stop()
    return rows


def _rows(phase: str, peaks: dict[str, int]) -> list[dict[str, Any]]:
    mib = 1 << 20
    found = [
        result(f"{module.removeprefix('assay_')}, {phase}", peaks[module] / mib, BOUND_BYTES / mib, "MiB", "<= 1", 1)
        for module in SERVICES
    ]
    others = {name: held for name, held in peaks.items() if name in ("assay_store", "redis-server", "valkey-server")}
    found += [
        result(f"{name.removeprefix('assay_')}, {phase}", held / mib, WHOLE_BYTES / mib, "MiB", None, 1)
        for name, held in others.items()
    ]
    return [*found, result(f"whole, {phase}", peaks["whole"] / mib, WHOLE_BYTES / mib, "MiB", "<= 1", 1)]
