"""A Redis that comes back without the end of its log, as after a power loss, and an upgrade of the tables under load."""

import contextlib
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

from assay_runtime import migrate
from assay_schema.ids import entry_parts
from assay_schema.streams import CAPTURE, numbered_key
from tests.chaos.rig import Rig
from tests.chaos.scenario import TWO, Load, Scenario, Stage

#: How much of the log is lost, in seconds.
TAIL_S = 1.5
#: Entries that fill the scrubber's hands, and tries to find it with so many.
HANDFUL, TRIES = 100, 10
#: Between two losses, in seconds: more than an event may be on its way (`runner.ON_ITS_WAY_S`), or the second excuses the first.
APART_S = 7
#: In this time as many events come as were lost, in seconds.
PATIENCE_S = 15
#: The last migration of the first release.
FIRST_RELEASE = 8


def nothing() -> None:
    """What is done where nothing is to be done."""


def forget(stage: Stage, before_start: Callable[[], None] = nothing, before_kill: Callable[[], None] = nothing) -> None:
    """Kill Redis, and start it with what its log held a moment ago."""
    rig = stage.rig
    home, copy = rig.directory / "redis", rig.directory / "redis-earlier"
    with rig.redis() as client:  # a rewrite would replace the files while they are copied
        client.config_set("auto-aof-rewrite-percentage", 0)
        rig.until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "no rewrite of the log runs", 60)
    begun = time.time()
    shutil.copytree(home, copy)
    time.sleep(TAIL_S)
    before_kill()
    rig.processes["redis"].hold(signal.SIGKILL)
    stage.forgotten.append((begun, time.time()))
    shutil.rmtree(home)
    copy.rename(home)
    before_start()
    rig.start_redis(home)


def log_forgotten(stage: Stage) -> None:
    """The log loses its last one and a half seconds, three times."""
    for _ in range(3):
        stage.pause(0.7, 1.2)
        forget(stage)
    stage.pause(0.5, 1)


def log_forgotten_while_counting(stage: Stage) -> None:
    """The same while entries are numbered by a counter, since their stream is ten minutes ahead of the clock."""
    _set_ahead(stage)
    log_forgotten(stage)


def _set_ahead(stage: Stage) -> None:
    with stage.rig.redis() as client:
        seconds, _ = client.time()
        client.execute_command("XSETID", CAPTURE.key(), f"{(seconds + 600) * 1000}-0")


def ids_given_again(stage: Stage) -> None:
    """Twice the log loses its end while the scrubber has read entries of it, and what the services ask of Redis does not arrive; before it
    does, the ids of these entries, ten minutes ahead of the clock, are given to others."""
    _set_ahead(stage)
    with stage.rig.redis() as client:
        stage.rig.until(lambda: client.exists(numbered_key()), "the first ids are given")
    stage.pause(0.7, 1.2)
    _give_again_what_the_scrubber_holds(stage)
    stage.pause(APART_S, APART_S + 0.5)
    _give_again_what_the_scrubber_holds(stage)
    stage.pause(0.5, 1)


def _give_again_what_the_scrubber_holds(stage: Stage) -> None:
    newest = (0, 0)

    def stand_still() -> None:
        nonlocal newest
        _mute_with_hands_full(stage)
        newest = _newest(stage)

    forget(stage, before_kill=stand_still)
    with contextlib.suppress(TimeoutError):
        stage.rig.until(lambda: _newest(stage) >= newest, "the ids are given again", PATIENCE_S)
    stage.rig.to_redis.mute = False


def _newest(stage: Stage) -> tuple[int, int]:
    """The newest id of the raw stream."""
    with stage.rig.redis() as client:
        return entry_parts(client.xinfo_stream(CAPTURE.key())["last-generated-id"].decode())


def _mute_with_hands_full(stage: Stage) -> None:
    """Hold back what the services ask of Redis, at a moment when the scrubber has read entries that it has not finished."""
    network = stage.rig.to_redis

    def full() -> bool:
        return bool(client.xpending(CAPTURE.key(), CAPTURE.groups[0])["pending"] >= HANDFUL)

    with stage.rig.redis() as client:
        for _ in range(TRIES):
            network.mute = True
            stage.pause(0.5, 0.7)  # what was on its way arrives, and a backlog collects
            if full():
                return
            network.mute = False
            ended = time.monotonic() + 1
            while not full() and time.monotonic() < ended:
                pass
    network.mute = True


def log_forgotten_while_the_store_is_away(stage: Stage) -> None:
    """The same in an outage of the store, so that a backlog waits, and stays away from what trims."""
    stage.pause(0.3, 0.6)
    stage.rig.processes["store"].hold()
    log_forgotten(stage)
    stage.rig.processes["store"].start()
    stage.rig.until_store_ready()
    stage.pause(0.5, 1)
    forget(stage)


class AheadRig(Rig):
    """One whose streams stay ahead of the clock, which no other scenario wants."""


class OldTablesRig(Rig):
    """Tables as the first release made them."""

    def _migrate(self) -> None:
        everything = migrate.migrations()
        with patch.object(migrate, "migrations", lambda: everything[:FIRST_RELEASE]):
            migrate.migrate(self.owner_settings())


def tables_upgraded(stage: Stage) -> None:
    """The tables are brought to today's while events flow, twice at once; then services restart, one of each at a time."""
    stage.pause(1, 1.5)
    with ThreadPoolExecutor(2) as two:
        for done in [two.submit(migrate.migrate, stage.rig.owner_settings()) for _ in range(2)]:
            done.result()
    for name in ("writer-1", "writer-2", "scrubber-1", "scrubber-2"):
        stage.pause(0.3, 0.6)
        process = stage.rig.processes[name]
        process.hold(signal.SIGTERM)
        process.start()
        stage.rig.until_services_ready(name)


APART: dict[type[Rig], tuple[Scenario, ...]] = {
    OldTablesRig: (Scenario("tables upgraded under load", tables_upgraded, Load(seconds=12), **TWO),),
    AheadRig: (
        Scenario("redis forgets while ids are counted", log_forgotten_while_counting, Load(seconds=10)),
        Scenario("redis forgets, and gives its ids again", ids_given_again, Load(seconds=24)),
    ),
}
SCENARIOS = (
    Scenario("redis forgets its last seconds", log_forgotten, Load(seconds=10)),
    Scenario("redis forgets while the store is away", log_forgotten_while_the_store_is_away, Load(seconds=12)),
)
