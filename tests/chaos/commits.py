"""Faults at single system calls, which kills at random moments never hit: a rename, a sync or a write that fails, or is the last."""

import contextlib
from pathlib import Path

import redis

from tests.chaos.scenario import Load, Scenario, Stage
from tests.support import system_calls

#: What the engine may move a part into place with.
RENAMES = "rename,renameat,renameat2"
SYNCS = "fsync,fdatasync,sync_file_range"
WRITES = "write,writev,pwrite64"


def _pid(stage: Stage, name: str) -> int:
    pid = stage.rig.processes[name].pid
    assert pid is not None
    return pid


def _log_of_redis(stage: Stage) -> Path:
    """The file that Redis appends to now."""
    return max((stage.rig.directory / "redis/appendonlydir").glob("*.incr.aof"), key=lambda file: file.stat().st_mtime)


def commits_fail(stage: Stage) -> None:
    """The store cannot move parts into place: the disk is full, or broken, again and again for a second."""
    for error in ("ENOSPC", "EIO", "ENOSPC", "EIO"):
        stage.pause(0.3, 0.6)
        # Calls are counted by thread, and the thread of an insert makes one such call; that of a merge makes several.
        with system_calls.broken(_pid(stage, "store"), RENAMES, f"error={error}:when=1+3"):
            stage.pause(1, 1.5)


def killed_at_commit(stage: Stage) -> None:
    """The store is killed when it is about to move a part into place, of an insert or a merge, with all said that it says before."""
    for which in (1, 2, 1):  # only the thread of a merge makes a second such call
        stage.pause(0.3, 0.8)
        _kill_at(stage, "store", RENAMES, which)
        stage.rig.until_store_ready()


def store_writes_fail(stage: Stage) -> None:
    """Writes and syncs of the store fail, some of them and anywhere; at last it is killed, and shows what it has on disk."""
    for calls, error in ((WRITES, "ENOSPC"), (WRITES, "EIO"), (SYNCS, "EIO"), (WRITES, "ENOSPC")):
        stage.pause(0.5, 1)
        when = f"{stage.rng.randint(5, 30)}+20"
        faulty = system_calls.broken(_pid(stage, "store"), calls, f"error={error}:when={when}")
        with contextlib.suppress(RuntimeError), faulty:  # it ends by itself
            stage.pause(2, 2.5)
        stage.rig.until_store_ready()
    stage.kill("store")
    stage.rig.until_store_ready()


def redis_writes_fail(stage: Stage) -> None:
    """Redis cannot write some pieces of its log: it takes nothing more until it can."""
    stage.pause(0.5, 1)
    with system_calls.broken(_pid(stage, "redis"), "write", "error=ENOSPC:when=5+5", path=_log_of_redis(stage)):
        stage.pause(3, 4)


def redis_killed_at_its_log(stage: Stage) -> None:
    """Redis is killed when it is about to write its log, with what it has carried out and not yet answered."""
    for _ in range(3):
        with stage.rig.redis() as client:
            # With `everysec` it answers before it writes as long as a sync runs, as docs/delivery.md says.
            client.config_set("appendfsync", "no")
        stage.pause(0.5, 1)
        _kill_at(stage, "redis", "write", stage.rng.randint(5, 40), _log_of_redis(stage))
        stage.rig.until(stage.rig.redis_answers, "redis is back")


def redis_cannot_rewrite_its_log(stage: Stage) -> None:
    """The log is rewritten under load, twice, and the new one cannot be moved into place; then it can, and Redis is killed."""
    stage.pause(0.5, 1)
    with stage.rig.redis() as client:
        for _ in range(2):
            with system_calls.broken(_pid(stage, "redis"), RENAMES, "error=EIO"):
                _rewrite(client)
                stage.pause(1, 1.5)
        _rewrite(client)
        stage.pause(1, 1.5)
    stage.kill("redis")
    stage.rig.until(stage.rig.redis_answers, "redis is back")


def _rewrite(client: "redis.Redis") -> None:
    with contextlib.suppress(redis.ResponseError):  # it may be at it, or have had enough of failing
        client.bgrewriteaof()


def slow_disk(stage: Stage) -> None:
    """Each sync of Redis's log and each rename of the store takes most of a second."""
    stage.pause(0.5, 1)
    slow = "delay_enter=700000"
    with (
        system_calls.broken(_pid(stage, "redis"), SYNCS, slow),
        system_calls.broken(_pid(stage, "store"), RENAMES, slow),
    ):
        stage.pause(4, 5)


def _kill_at(stage: Stage, name: str, calls: str, which: int, path: Path | None = None) -> None:
    """Kill a process at the `which`-th of its next such calls; one that makes fewer of them is killed by and by."""
    pid = _pid(stage, name)
    deadly = system_calls.broken(pid, calls, f"signal=SIGKILL:when={which}", path=path)
    with contextlib.suppress(RuntimeError, TimeoutError), deadly:
        stage.rig.until(lambda: stage.rig.processes[name].pid != pid, f"{name} met its call", 5)
    if stage.rig.processes[name].pid == pid:
        stage.kill(name)


SCENARIOS = (
    Scenario("store's commits fail", commits_fail, Load(seconds=9), missing=system_calls.missing, incident="other"),
    Scenario(
        "store killed at its commit",
        killed_at_commit,
        Load(seconds=12),
        missing=system_calls.missing,
        incident="db_down",
    ),
    Scenario("store's writes fail", store_writes_fail, Load(seconds=16), missing=system_calls.missing),
    Scenario("redis's writes fail", redis_writes_fail, Load(sdk=3, sdk_share=0.4), missing=system_calls.missing),
    Scenario("redis killed at its log", redis_killed_at_its_log, Load(seconds=10), missing=system_calls.missing),
    Scenario("redis cannot rewrite its log", redis_cannot_rewrite_its_log, missing=system_calls.missing),
    Scenario("slow disk", slow_disk, Load(seconds=9), missing=system_calls.missing),
)
