"""Outages of the store that meet restarts: what an engineer does first, and what a supervisor does all day."""

import signal
import time
from collections.abc import Callable

from assay_schema.streams import EVENTS
from assay_store.options import StoreOptions
from tests.chaos import faults
from tests.chaos.proxy import store_error
from tests.chaos.scenario import Load, Scenario, Stage

#: More than the deliveries and the tries alone after which an entry is given up.
RESTARTS = 10
#: A stream that has not grown for so long is at rest, in seconds.
AT_REST_S = 2.0
#: What ten restarts of a scrubber that waits may add: each a small batch, if it sees room below the mark.
ADDED_MOST = 500
REFUSALS = (
    (201, "QUOTA_EXCEEDED"),
    (242, "TABLE_IS_READ_ONLY"),
    (243, "NOT_ENOUGH_SPACE"),
    (252, "TOO_MANY_PARTS"),
    (241, "MEMORY_LIMIT_EXCEEDED"),
)


def _restarted(stage: Stage, name: str, times: int, *signals: signal.Signals) -> None:
    """End a service and let it come up, again and again; each life long enough to begin its work."""
    process = stage.rig.processes[name]
    for turn in range(times):
        before = process.pid
        process.send(signals[turn % len(signals)])
        # Not that it is seen dead: the keeper may be the first to look on a machine that is busy.
        stage.rig.until(lambda before=before: process.pid != before, f"{name} has ended and runs again")
        stage.rig.until_at_work(name)
        stage.pause(0.1, 0.6)


def inserts_refused(stage: Stage) -> None:
    """The store answers, and refuses every insert, in five ways; in each the writer is restarted ten times."""
    stage.pause(0.5, 1)
    for code, name in REFUSALS:
        stage.rig.to_store.answer_to_inserts = store_error(code, name)
        stage.rig.to_store.cut()
        _restarted(stage, "writer-1", RESTARTS, signal.SIGTERM)
    stage.rig.to_store.heal()


def inserts_refused_to_the_dying(stage: Stage) -> None:
    """The same with a full disk alone, and a writer that is killed as often as it is asked to end."""
    stage.pause(0.5, 1)
    stage.rig.to_store.answer_to_inserts = store_error(243, "NOT_ENOUGH_SPACE")
    stage.rig.to_store.cut()
    _restarted(stage, "writer-1", 2 * RESTARTS, signal.SIGTERM, signal.SIGKILL)
    stage.rig.to_store.heal()


def disk_full(stage: Stage) -> None:
    """The store's file system has no room left, and writer and scrubber are restarted ten times meanwhile."""
    stage.pause(0.5, 1)
    folder = stage.rig.directory / "store"
    faults.fill(folder, StoreOptions(folder, folder).keep_free_bytes)
    for name in ("writer-1", "scrubber-1"):
        _restarted(stage, name, RESTARTS, signal.SIGTERM)
    faults.empty(folder)


def _at_rest(length: Callable[[], int]) -> int:
    """How long a stream is once it grows no more, or after half a minute."""
    over, before, since = time.monotonic() + 30, -1, time.monotonic()
    while time.monotonic() < over and time.monotonic() - since < AT_REST_S:
        if (now := length()) != before:
            before, since = now, time.monotonic()
        time.sleep(0.05)
    return before


def restarts_above_the_mark(stage: Stage) -> None:
    """The store is away until the streams are full to their marks, and the scrubber that waits is restarted ten times."""
    stage.pause(0.5, 1)
    stage.rig.processes["store"].hold()
    with stage.rig.redis() as client:
        before = _at_rest(lambda: int(client.xlen(EVENTS.key())))
        for turn in range(RESTARTS):
            _restarted(stage, "scrubber-1", 1, (signal.SIGKILL, signal.SIGTERM)[turn % 2])
        added = int(client.xlen(EVENTS.key())) - before
    if added > ADDED_MOST:
        stage.wrong.append(f"{added} entries were added to events although the writer stood still")
    stage.rig.processes["store"].start()
    stage.rig.until_store_ready()


SCENARIOS = (
    Scenario("inserts refused, writer restarted", inserts_refused, Load(seconds=20), incident="rls_reject"),
    Scenario("inserts refused, writer killed", inserts_refused_to_the_dying, Load(seconds=15), incident="db_down"),
    Scenario(
        "store disk full, services restarted",
        disk_full,
        Load(seconds=12),
        missing=faults.no_mounting,
        incident="db_down",
    ),
    Scenario(
        "store down, scrubber restarted above its mark",
        restarts_above_the_mark,
        Load(weight=2, seconds=9, sdk=3, sdk_share=0.4, high_water=5_000),
        incident="db_down",
    ),
)
