"""What can go wrong, one small function each, and the scenarios they are part of. A fault returns when it is over.

Times are drawn from the run's seed, so that a run can be repeated.
"""

import contextlib
import functools
import importlib.util
import json
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import redis

from assay_schema.fields import Kind
from assay_schema.streams import CAPTURE, EVENTS, FIELD
from assay_store.options import StoreOptions
from tests.chaos.proxy import store_error
from tests.chaos.rig import BATCH_ROWS, HIGH_WATER_ENTRIES, HISTORY_ENTRIES, RESTART_PAUSE_S, VISIBILITY_S
from tests.chaos.scenario import TWO, Fault, Load, Scenario, Stage

#: Most entries of `events` while the writer stands still: its history, the mark, and what the scrubber passes on between two looks.
EVENTS_MOST = HISTORY_ENTRIES + HIGH_WATER_ENTRIES + 10 * BATCH_ROWS


def killed(*names: str, times: int = 2) -> Fault:
    """`kill -9` of one or several at once, again and again."""

    def fault(stage: Stage) -> None:
        for _ in range(times):
            stage.pause(0.7, 1.8)
            stage.kill(*names)
        stage.pause(RESTART_PAUSE_S, 1)

    return fault


def killed_in_pairs(stage: Stage) -> None:
    """Two at once, whichever."""
    for _ in range(3):
        stage.pause(0.8, 1.5)
        stage.kill(*stage.rng.sample(["redis", "store", "scrubber-1", "writer-1"], 2))
    stage.pause(0.5, 1)


def crash_loop(stage: Stage) -> None:
    """Both services die as often as an entry may be delivered, and again, with the work of each life unfinished."""
    stage.pause(0.5, 1)
    for _ in range(7):
        stage.kill("scrubber-1", "writer-1")
        stage.rig.until_services_ready("scrubber-1", "writer-1")
        stage.pause(0.05, 0.5)


def frozen(name: str) -> Fault:
    """SIGSTOP for longer than the visibility time-out: others take over; then it wakes, and finishes what is no longer its own."""

    def fault(stage: Stage) -> None:
        for _ in range(2):
            stage.pause(0.5, 1)
            stage.rig.processes[name].send(signal.SIGSTOP)
            time.sleep(VISIBILITY_S * stage.rng.uniform(1.5, 2))
            stage.rig.processes[name].send(signal.SIGCONT)

    return fault


def one_of_two_killed(stage: Stage) -> None:
    """One of two is killed and does not come back while the load lasts: the other takes over what it held."""
    for service in ("writer", "scrubber"):
        stage.pause(0.7, 1.5)
        stage.died = time.monotonic()
        stage.rig.processes[f"{service}-2"].hold()
    stage.pause(1, 2)


def store_down(seconds: float) -> Fault:
    """The store is away for longer than what the writer can hold."""

    def fault(stage: Stage) -> None:
        stage.pause(0.5, 1)
        stage.rig.processes["store"].hold()
        time.sleep(seconds)
        stage.rig.processes["store"].start()
        stage.rig.until_store_ready()

    return fault


def store_down_for_longer_than_redis_has_room(stage: Stage) -> None:
    """The store is away until the streams are full to their marks: the scrubber waits, then the SDK spools."""
    stage.pause(0.5, 1)
    stage.rig.processes["store"].hold()
    over, longest = time.monotonic() + 10, 0
    with stage.rig.redis() as client:
        while time.monotonic() < over:
            longest = max(longest, int(client.xlen(EVENTS.key())))
            time.sleep(0.1)
    if longest > EVENTS_MOST:
        stage.wrong.append(f"{longest} entries in events although the writer stood still")
    stage.rig.processes["store"].start()
    stage.rig.until_store_ready()


def store_down_and_writer_killed(stage: Stage) -> None:
    """While the store is away, the writer dies too, with all that it held."""
    stage.pause(0.5, 1)
    stage.rig.processes["store"].hold()
    for _ in range(2):
        stage.pause(2, 3)
        stage.kill("writer-1")
    stage.pause(1, 2)
    stage.rig.processes["store"].start()
    stage.rig.until_store_ready()


def store_dies_before_answering(stage: Stage) -> None:
    """The store takes a batch and is killed before it can say so."""
    for _ in range(3):
        stage.pause(0.5, 1.2)
        stage.rig.to_store.instead_of_answer = lambda: stage.kill("store")
        with contextlib.suppress(TimeoutError):  # the load may be over before the third time
            stage.rig.until(lambda: stage.rig.to_store.instead_of_answer is None, "the store was about to answer", 4)
        stage.rig.to_store.instead_of_answer = None
        stage.rig.until_store_ready()


def store_answers_lost(stage: Stage) -> None:
    """The store takes every batch for a while, and no answer arrives."""
    stage.pause(0.5, 1)
    stage.rig.to_store.deaf = True
    stage.pause(3, 4)
    stage.rig.to_store.heal()


def store_read_only(stage: Stage) -> None:
    """The writer's user may only read."""
    stage.pause(0.5, 1)
    stage.rig.start_store(roles={"writer": "sre"})
    stage.rig.until_store_ready()
    stage.pause(3, 4)
    stage.rig.start_store()
    stage.rig.until_store_ready()


def store_out_of_memory(stage: Stage) -> None:
    """The engine's memory cap is too small for anything."""
    stage.pause(0.5, 1)
    stage.rig.start_store("--max-memory", "40000000")
    stage.pause(6, 7)
    stage.rig.start_store()
    stage.rig.until_store_ready()


def store_refuses(stage: Stage) -> None:
    """What a ClickHouse server says of a used-up quota, a replica that lost its keeper, too many parts, no memory, an overload."""
    stage.pause(0.5, 1)
    for code, name in (
        (201, "QUOTA_EXCEEDED"),
        (242, "TABLE_IS_READ_ONLY"),
        (252, "TOO_MANY_PARTS"),
        (241, "MEMORY_LIMIT_EXCEEDED"),
        (745, "SERVER_OVERLOADED"),
    ):
        stage.rig.to_store.answer = store_error(code, name)
        stage.rig.to_store.cut()
        stage.pause(0.8, 1.2)
    stage.rig.to_store.heal()


def store_disk_full(stage: Stage) -> None:
    """The store's file system has no room left. Needs root: it is a tmpfs that shrinks."""
    stage.pause(0.5, 1)
    folder = stage.rig.directory / "store"
    fill(folder, StoreOptions(folder, folder).keep_free_bytes)
    stage.pause(3, 4)
    empty(folder)


STORE_TMPFS_BYTES = 8 << 30


@functools.cache
def no_mounting() -> str:
    """Why this user may not mount a small file system: only root may, and in a container only with the right to."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            mount(Path(folder))
        except (OSError, subprocess.CalledProcessError):
            return "the right to mount a small file system"
        unmount(Path(folder))
        return ""


def mount(folder: Path) -> None:
    """Put a tmpfs there."""
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={STORE_TMPFS_BYTES}", "tmpfs", folder], check=True, capture_output=True
    )


def unmount(folder: Path) -> None:
    """Take it away."""
    subprocess.run(["umount", "-l", folder], check=False)


def fill(folder: Path, reserve: int = 0) -> None:
    """Take all the room there is with a file, as a log that grows would; `reserve` is what somebody keeps free."""
    _resize(folder, shutil.disk_usage(folder).used + reserve + (256 << 20))
    with contextlib.suppress(OSError), (folder / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(1 << 20))


def empty(folder: Path) -> None:
    """Give the room back."""
    (folder / "ballast").unlink()
    _resize(folder, STORE_TMPFS_BYTES)


def _resize(folder: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True, stderr=subprocess.DEVNULL)


def redis_disk_full(stage: Stage) -> None:
    """Redis cannot write its log, so it refuses to take anything. Needs root: its directory moves to a small tmpfs and back."""
    rig, home, small = stage.rig, stage.rig.directory / "redis", stage.rig.directory / "redis-small"
    small.mkdir(exist_ok=True)
    mount(small)
    try:
        rig.processes["redis"].hold(signal.SIGTERM)
        shutil.copytree(home, small, dirs_exist_ok=True)
        rig.start_redis(small)
        stage.pause(0.5, 1)
        fill(small)
        stage.pause(3, 4)
        empty(small)
        stage.pause(2, 3)
        rig.processes["redis"].hold(signal.SIGTERM)
        shutil.rmtree(home)
        shutil.copytree(small, home)
        rig.start_redis(home)
    finally:
        unmount(small)


def redis_full(stage: Stage) -> None:
    """Redis has no memory left and refuses what would take more; then it has."""
    stage.pause(0.5, 1)
    with stage.rig.redis() as client:
        for _ in range(2):
            client.config_set("maxmemory", client.info("memory")["used_memory"])
            stage.rig.until(lambda: _refused(client), "Redis refuses an entry")
            stage.pause(2, 3)
            client.config_set("maxmemory", 0)
            stage.pause(0.5, 1)


def _refused(client: "redis.Redis") -> bool:
    try:
        client.xadd("assay:{0}:ballast", {"x": b"x" * 1_000})
    except redis.OutOfMemoryError:
        client.delete("assay:{0}:ballast")
        return True
    return False


def redis_frozen(stage: Stage) -> None:
    """Redis answers nobody for longer than anyone waits; then it carries out what it was sent."""
    stage.pause(0.5, 1)
    stage.rig.processes["redis"].send(signal.SIGSTOP)
    stage.pause(4, 5)
    stage.rig.processes["redis"].send(signal.SIGCONT)


def redis_demoted(stage: Stage) -> None:
    """Redis becomes a replica that takes no writes, as in the middle of a failover, and is promoted again."""
    stage.pause(0.5, 1)
    with stage.rig.redis() as client:
        client.replicaof("127.0.0.1", 1)
        stage.pause(3, 4)
        client.replicaof("no", "one")


def groups_lost(stage: Stage) -> None:
    """The consumer groups are gone, and with them what they had acknowledged."""
    with stage.rig.redis() as client:
        for stream in (CAPTURE, EVENTS):
            stage.pause(1, 2)
            client.xgroup_destroy(stream.key(), stream.groups[0])
    stage.pause(1, 2)


def network_slow(stage: Stage) -> None:
    """Every piece takes its time, to Redis and to the store."""
    for network in stage.rig.networks:
        network.delay_s = stage.rng.uniform(0.03, 0.1)
    stage.pause(5, 6)
    for network in stage.rig.networks:
        network.delay_s = 0.0


def network_cut(stage: Stage) -> None:
    """Connections break in the middle of whatever they carry."""
    for _ in range(12):
        stage.pause(0.2, 0.6)
        stage.rng.choice(stage.rig.networks).cut()


def network_silent(stage: Stage) -> None:
    """Nothing arrives for longer than anyone waits, and then all of it does, beside what was sent again meanwhile."""
    stage.pause(0.5, 1)
    for network in stage.rig.networks:
        network.silent = True
        stage.pause(4, 4.5)
        network.silent = False


def clock_set_back(stage: Stage) -> None:
    """Redis's clock was ahead by seconds and is set right: it numbers what comes by the last time it knew, far beyond 4,096 entries."""
    stage.pause(0.5, 1)
    with stage.rig.redis() as client:
        seconds, _ = client.time()
        client.execute_command("XSETID", CAPTURE.key(), f"{(seconds + 6) * 1000}-0")
    stage.pause(2, 3)


def nothing(stage: Stage) -> None:
    """Only the load: nothing is broken."""
    stage.pause(3, 4)


def sdk_answers_lost(stage: Stage) -> None:
    """Redis takes the SDK's entries and its answers vanish: the SDK times out and sends them again."""
    for _ in range(2):
        stage.pause(0.5, 1)
        stage.rig.to_capture.deaf = True
        stage.pause(3.2, 3.6)
        stage.rig.to_capture.heal()


def producer_killed_while_spooling(stage: Stage) -> None:
    """Redis is away for the SDK, which spools; the producers are killed while they write. The next one sends what they left."""
    stage.pause(0.5, 1)
    stage.rig.to_capture.refusing = True
    stage.rig.to_capture.cut()
    stage.pause(2, 3)
    stage.producers.kill_sdk(spare=1)
    stage.rig.to_capture.heal()
    stage.pause(1, 2)


def gevent_patched(stage: Stage) -> None:
    """Producers are programs that gevent patched: Redis and both services die at once, twice; then producers die as they spool."""
    killed("redis", "scrubber-1", "writer-1")(stage)
    producer_killed_while_spooling(stage)


def no_gevent() -> str:
    """Why no producer can be patched here."""
    return "" if importlib.util.find_spec("gevent") else "gevent"


def rolling_restart(stage: Stage) -> None:
    """Each process in turn is asked to end and started again, as an upgrade does."""
    for name in ("scrubber-1", "scrubber-2", "writer-1", "writer-2", "store", "redis"):
        stage.pause(0.1, 0.4)
        process = stage.rig.processes[name]
        process.hold(signal.SIGTERM)
        process.start()
        if name == "store":
            stage.rig.until_store_ready()
        elif name == "redis":
            stage.rig.until(stage.rig.redis_answers, "redis is back")
        else:
            stage.rig.until_services_ready(name)


#: One entry of each kind that can only fail, with what must be missing from it for that.
POISON: dict[str, bytes | None] = {
    "no data field": None,
    "empty": b"",
    "not UTF-8": b"\xff\xfe{}",
    "not JSON": b'{"schema_version":1,',
    "not an object": b"[1,2]",
    "NaN": b'{"a":NaN}',
    "nested without end": b"[" * 5_000,
    "unknown version": b'{"schema_version":2,"kind":"retrieval"}',
    "unknown kind": b'{"schema_version":1,"kind":"nope"}',
    "half a character": b'{"schema_version":1,"kind":"\\ud800"}',
    "over a mebibyte": b'{"schema_version":1,"pad":"' + b"x" * (1 << 20) + b'"}',
}


def poisoned(stage: Stage) -> None:
    """Entries that can only fail, among the others: one failure row each, and nobody is held up."""
    with stage.rig.redis() as client:
        for turn in range(10):
            stage.pause(0.1, 0.4)
            for data in POISON.values():
                fields = {"other": "field"} if data is None else {FIELD: data}
                stage.poison.add(client.xadd(CAPTURE.key(), fields).decode())
            for data in _unfit(turn):
                stage.poison.add(client.xadd(CAPTURE.key(), {FIELD: data}).decode())
            if turn in (3, 6):
                stage.kill("scrubber-1", "writer-1")


def _unfit(turn: int) -> list[bytes]:
    """Well-formed events that break a rule; each with an id of its own, so that each is a failure of its own."""
    ahead = int((time.time() + 2 * 86_400) * 1000)
    fields = {"schema_version": 1, "project": "chaos", "service": "poison", "occurred_at": "2026-01-01T00:00:00Z"}
    payload = {
        "tool_name": "query",
        "query": "q",
        "retrieved_slugs": [],
        "retrieved_chunk_ids": [],
        "latency_ms": 1,
    }
    now = int(time.time() * 1000)
    broken = [
        (ahead, Kind.RETRIEVAL, payload),
        (now, Kind.RETRIEVAL, payload | {"query": "x" * 51_201}),
        (now, Kind.RETRIEVAL, payload | {"latency_ms": -1}),
        (now, Kind.RETRIEVAL, {"query": "q"}),
    ]
    return [
        json.dumps(fields | {"event_id": _id_at(ms, turn * 10 + n), "kind": kind.value, "payload": body}).encode()
        for n, (ms, kind, body) in enumerate(broken)
    ]


def _id_at(ms: int, number: int) -> str:
    return f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7000-8000-{number:012x}"


SCENARIOS = (
    Scenario("load alone", nothing, Load(seconds=5)),
    Scenario("kill scrubber", killed("scrubber-1", times=3), about="The scrubber is killed (`kill -9`) three times."),
    Scenario("kill writer", killed("writer-1", times=3), about="The writer is killed (`kill -9`) three times."),
    Scenario("kill store", killed("store"), incident="db_down", about="The store is killed (`kill -9`) twice."),
    Scenario(
        "kill redis",
        killed("redis", times=3),
        about="Redis is killed (`kill -9`) three times and comes back with its log.",
    ),
    Scenario(
        "kill scrubber and writer",
        killed("scrubber-1", "writer-1", times=3),
        about="Both services are killed at once, three times.",
    ),
    Scenario(
        "kill all at once",
        killed("redis", "store", "scrubber-1", "writer-1"),
        about="Redis, the store and both services are killed at once, twice.",
    ),
    Scenario("kill pairs", killed_in_pairs),
    # No life lasts long enough to work off what came during the start before it. Under the usual load what is timed after the last death
    # would be how fast the machine drains nearly all of it, not how long a death is felt.
    Scenario("crash loop", crash_loop, Load(weight=0.3, seconds=12)),
    Scenario(
        "freeze scrubber",
        frozen("scrubber-1"),
        Load(seconds=10),
        **TWO,
        about="One of two scrubbers is stopped for longer than the visibility time-out; the other takes over, then the first one goes on.",
    ),
    Scenario(
        "freeze writer",
        frozen("writer-1"),
        Load(seconds=10),
        **TWO,
        about="One of two writers is stopped for longer than the visibility time-out; the other takes over, then the first one goes on.",
    ),
    Scenario("two of each, one killed", one_of_two_killed, **TWO),
    Scenario("redis frozen", redis_frozen),
    Scenario("redis read-only", redis_demoted),
    Scenario("redis full", redis_full, Load(sdk=3, sdk_share=0.4)),
    Scenario("redis disk full", redis_disk_full, Load(seconds=10), missing=no_mounting),
    Scenario("consumer groups lost", groups_lost),
    Scenario("redis clock set back", clock_set_back),
    Scenario(
        "producers' clocks wrong",
        nothing,
        Load(seconds=5, skew_s=-3 * 86_400),
        about="The clocks of producers are three days behind.",
    ),
    Scenario(
        "store down",
        store_down(8.0),
        Load(seconds=10),
        incident="db_down",
        about="The store is away for eight seconds.",
    ),
    Scenario(
        "store down, redis filled to its marks",
        store_down_for_longer_than_redis_has_room,
        Load(weight=1.5, seconds=9, sdk=3, sdk_share=0.4, high_water=5_000),
        incident="db_down",
    ),
    Scenario("store down, writer killed", store_down_and_writer_killed, incident="db_down"),
    Scenario("store dies before answering", store_dies_before_answering, incident="db_down"),
    Scenario("store's answers lost", store_answers_lost),
    Scenario("store read-only", store_read_only, Load(seconds=9), incident="rls_reject"),
    Scenario("store out of memory", store_out_of_memory, Load(seconds=10), incident="db_down"),
    Scenario("store refuses", store_refuses, incident="rls_reject"),
    Scenario("store disk full", store_disk_full, missing=no_mounting, incident="db_down"),
    Scenario("network slow", network_slow),
    Scenario("network cut", network_cut),
    Scenario("network silent", network_silent, Load(seconds=14)),
    Scenario("SDK's answers lost", sdk_answers_lost, Load(sdk=3, sdk_share=0.4)),
    Scenario("producers killed while spooling", producer_killed_while_spooling, Load(sdk=3, sdk_share=0.4)),
    Scenario(
        "gevent producers", gevent_patched, Load(seconds=10, sdk=3, sdk_share=0.4, gevent=True), missing=no_gevent
    ),
    Scenario(
        "high water",
        killed("scrubber-1", times=3),
        Load(sdk=3, sdk_share=0.4, high_water=500),
        about="The SDK waits at 500 entries in Redis and spools, while the scrubber is killed three times.",
    ),
    Scenario(
        "large entries",
        killed("scrubber-1", "writer-1"),
        Load(weight=0.006, seconds=6, sdk_share=0.3, large=True),
        about="Events of up to a mebibyte each, while both services are killed at once, twice.",
    ),
    Scenario(
        "large entries after small ones",
        nothing,
        Load(weight=0.03, seconds=8, sdk=0, large_after=0.8),
        about="Ordinary events, then only large ones: memory has to stay bounded.",
    ),
    Scenario("poison", poisoned, Load(seconds=6)),
    Scenario("rolling restart", rolling_restart, Load(seconds=12), **TWO),
)
