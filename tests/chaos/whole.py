"""The whole system as `assay up` runs it, with its own supervisor, users and settings: killed child by child, all at once, and itself."""

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import redis

from assay_runtime.config import load_settings
from assay_runtime.connection import address
from assay_schema.streams import CAPTURE
from tests.chaos.ledger import Books, reconcile
from tests.chaos.load import Order, noted
from tests.chaos.producers import PATIENCE_S
from tests.chaos.rig import ROOT, SYNC_S, VIEWS, has_written
from tests.chaos.runner import Report, column
from tests.chaos.sessions import Watch, read, unlike
from tests.chaos.sessions import whole as sent_whole
from tests.support.ports import free_ports
from tests.support.stack import PORTS, System

NAME = "assay up, killed"
SERVICE = "assay-up-killed"


def play(directory: Path, seed: int, events: int) -> Report:
    """Two producers, with the producer's own user, send `events` while everything around them is killed."""
    started, rng = time.monotonic(), random.Random(seed)
    data = directory / "data"
    data.mkdir(mode=0o700)
    system = System(data, free_ports(PORTS), "--no-quality").start()
    producers: list[subprocess.Popen[bytes]] = []
    watch = Watch(lambda: system.store("owner"), SERVICE)
    try:
        with watch:
            producers = [
                _producer(system, directory / f"ledger-{number}", seed + number, events // 2) for number in (0, 1)
            ]
            time.sleep(rng.uniform(1, 2))
            for child in rng.sample(system.processes()[1:], 2):
                _until(lambda: _written(system), SYNC_S)
                child.kill()
                time.sleep(rng.uniform(1, 2))
            _until(lambda: _written(system), SYNC_S)
            _kill(system, children_only=True)
            time.sleep(rng.uniform(1, 2))
            _until(lambda: _written(system), SYNC_S)
            _kill(system, children_only=False)
            over = time.monotonic()
            system.start()
            wrong = [
                f"a producer ended with {code}" for code in (process.wait(PATIENCE_S) for process in producers) if code
            ]
            ledgers = [directory / f"ledger-{number}" for number in (0, 1)]
            sent = frozenset(line for ledger in ledgers for line in noted(Path(f"{ledger}.sent")))
            _until(lambda: _visible_count(system) >= len(sent), PATIENCE_S)
        recovery = time.monotonic() - over
        with contextlib.closing(system.store("owner")) as store:
            visible = [
                event
                for view in VIEWS
                for event in column(store, f"SELECT toString(event_id) FROM assay.{view} WHERE service = '{SERVICE}'")
            ]
            failed = column(store, "SELECT entry_id FROM assay.capture_failures WHERE entry_id IS NOT NULL")
        tried = read(line for ledger in ledgers for line in noted(Path(f"{ledger}.sessions")))
        expected = sent_whole(tried, sent)
        wrong += unlike(expected, watch.look()) + watch.faults
        ledger = reconcile(Books(sent, sent, visible, failures=[("", entry) for entry in failed]))
        with system.redis("owner") as client:
            if left := client.xlen(CAPTURE.key()):
                wrong.append(f"{left} entries are left in capture")
        looks = (len(expected), watch.looks, watch.incomplete)
        return Report(NAME, ledger, time.monotonic() - started, recovery, len(visible), *looks, wrong + ledger.faults)
    finally:
        for process in producers:
            process.kill()
            process.wait(60)
        if system.stop() != 0:
            print("assay up did not stop cleanly", file=sys.stderr)


def _producer(system: System, ledger: Path, seed: int, events: int) -> "subprocess.Popen[bytes]":
    settings = load_settings(system.data / "secrets/producer.toml")
    order = Order("raw", address(settings.redis), str(ledger), events, events / 10, SERVICE, seed)
    return subprocess.Popen([sys.executable, "-m", "tests.chaos.load", order.text()], cwd=ROOT)


def _kill(system: System, *, children_only: bool) -> None:
    supervisor, *children = system.processes()
    if not children_only:
        supervisor.kill()
        supervisor.wait(60)
    for child in children:
        with contextlib.suppress(Exception):
            child.kill()


def _written(system: System) -> bool:
    """Whether Redis, if it answers, has written what it answered."""
    try:
        with system.redis("owner") as client:
            return has_written(client)
    except redis.RedisError:
        return False


def _visible_count(system: System) -> int:
    try:
        with contextlib.closing(system.store("owner")) as store:
            return sum(int(column(store, f"SELECT count() FROM assay.{view}")[0]) for view in VIEWS)
    except Exception:  # noqa: BLE001  # the store is still coming back
        return 0


def _until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
