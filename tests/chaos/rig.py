"""The system under test, each process in hand: Redis, the store, scrubbers, writers, and a network between them.

A keeper restarts what dies, as a supervisor would, unless it is held down on purpose.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import redis

from assay_access.api_keys import KeyKind, KeyRecord, as_fields, key_hash, new_key
from assay_runtime.migrate import migrate
from assay_runtime.store import Client, connect
from assay_schema.ids import PLACES, entry_parts, first_row_at, new_event_id, row_id
from assay_schema.settings import Settings
from assay_schema.streams import API_KEYS_VERSION, CAPTURE, DEAD, EVENTS, FAILURES, SPANS, api_keys_key, open_traces_key
from tests.chaos.proxy import Proxy
from tests.support.ports import free_port
from tests.support.redis import RedisServer
from tests.support.store import PASSWORD, ROLES

ROOT = Path(__file__).parents[2]
#: How long a sync of Redis's log may take, in seconds.
SYNC_S = 30.0
#: How long the keeper waits before it restarts a process, in seconds.
RESTART_PAUSE_S = 0.3
#: Settings of the services, shortened so that a fault that has to outlast them need not last long. In seconds where not said otherwise.
VISIBILITY_S = 2.0
REDIS_TIMEOUT_S = 3.0
STORE_TIMEOUT_S = 6.0
BATCH_ROWS = 2_000
HISTORY_ENTRIES = 1_000
HIGH_WATER_ENTRIES = 12_000
#: Most processes of one service.
MOST_OF_EACH = 4
VIEWS = ("candidates", "answers", "feedback", "tool_calls", "server_events", "session_parts")


class Managed:
    """One process that is kept running unless it is held."""

    def __init__(self, name: str, command: list[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.name, self.command = name, command
        self.wanted = False
        self.restarts = -1
        self.peak_rss = 0
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self._environment |= {"PYTHONPATH": path, **(environment or {})}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._died = 0.0
        self._lock = threading.RLock()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Its number, if it was started."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start it, and from now on keep it running."""
        with self._lock:
            self.wanted = True
            if not self.running:
                self.restarts += 1
                with self._log.open("ab") as log:
                    self._process = subprocess.Popen(
                        self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self._environment, cwd=ROOT
                    )

    def send(self, which: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal. After one that ends it the keeper starts it anew."""
        with self._lock:
            if self._process and self.running:
                self._process.send_signal(which)
                if which == signal.SIGKILL:
                    self._process.wait(60)

    def hold(self, which: signal.Signals = signal.SIGKILL) -> None:
        """End it, and keep it down until `start`."""
        with self._lock:
            self.wanted = False
            self.send(signal.SIGCONT)
            self.send(which)
            if self._process:
                try:
                    self._process.wait(60)
                except subprocess.TimeoutExpired:
                    self.send()

    def keep(self) -> None:
        """Called again and again by the keeper."""
        if not self.wanted or self._process is None:
            return
        if self.running:
            self._died = 0.0
            with contextlib.suppress(psutil.Error):
                self.peak_rss = max(self.peak_rss, psutil.Process(self._process.pid).memory_info().rss)
            return
        self._died = self._died or time.monotonic()
        if time.monotonic() - self._died > RESTART_PAUSE_S and self._lock.acquire(blocking=False):
            try:
                if self.wanted:
                    self.start()
            finally:
                self._lock.release()


def has_written(client: "redis.Redis") -> bool:
    """Whether Redis has written all it answered to its log. With `appendfsync everysec` it has not while a sync runs."""
    log = client.info("persistence")
    return not log["aof_pending_bio_fsync"] and not log["aof_buffer_length"]


class Rig:
    """Everything of one run, in a directory of its own. `sabotage` names a mechanism to switch off (see `sabotage.py`)."""

    #: Settings of Redis beside its address.
    topology: Mapping[str, str | int] = MappingProxyType({"shards": 1})
    #: When Redis has the disk write its log. With `everysec` a kill while the disk is slow loses entries, as docs/delivery.md says.
    appendfsync = "everysec"

    def __init__(self, directory: Path, sabotage: str | None = None) -> None:
        self.directory = directory
        self.sabotage = sabotage
        self.processes: dict[str, Managed] = {}
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)
        for folder in ("redis", "store", "ledger", "spool", "export", "log"):
            (directory / folder).mkdir(exist_ok=True)
        self.redis_port, self.store_port = free_port(), free_port()
        #: Between the services and Redis, the services and the store, the SDK's producers and Redis.
        self.to_redis, self.to_store = Proxy(self.redis_port), Proxy(self.store_port)
        self.to_capture = Proxy(self.redis_port)
        self.networks = (self.to_redis, self.to_store, self.to_capture)
        self.health: dict[str, int] = {}
        self.gateway_port, self.gateway_key = free_port(), ""

    # Life

    def start(self) -> "Rig":
        """Start all but the services, and make the tables."""
        for network in self.networks:
            network.start()
        self._keeper.start()
        self.start_redis(self.directory / "redis")
        self.start_store()
        self.until_store_ready()
        self._migrate()
        return self

    def stop(self) -> None:
        """End every process and network."""
        for process in reversed(self.processes.values()):
            process.hold()
        self._over.set()
        self._keeper.join(60)
        for network in self.networks:
            network.stop()

    def _keep(self) -> None:
        while not self._over.wait(0.1):
            for process in list(self.processes.values()):
                process.keep()

    def _managed(self, name: str, command: list[str], environment: Mapping[str, str] | None = None) -> Managed:
        environment = {**(environment or {}), **self.clock_of(name)}
        process = Managed(name, command, self.directory / "log" / f"{name}.log", environment)
        if old := self.processes.get(name):
            old.hold(signal.SIGTERM)
            process.peak_rss = old.peak_rss
        self.processes[name] = process
        process.start()
        return process

    def clock_of(self, name: str) -> Mapping[str, str]:  # noqa: ARG002
        """What gives a process a clock other than the machine's, in its environment."""
        return {}

    # Redis and the store

    def start_redis(self, directory: Path) -> None:
        """(Re)start Redis in a directory, as `assay up` configures it."""
        command = [
            RedisServer.usual_binary,
            "--port",
            str(self.redis_port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(directory),
        ]
        command += [
            "--appendonly",
            "yes",
            "--appendfsync",
            self.appendfsync,
            "--save",
            "",
            "--stream-node-max-bytes",
            "65536",
        ]
        self._managed("redis", command)
        self.until(self.redis_answers, "redis answers", 300)

    def start_store(self, *options: str, roles: Mapping[str, str] | None = None) -> None:
        """(Re)start the store; `roles` gives users other roles than the ones they are named after."""
        users = self.directory / "users.json"
        given = {role: role for role in ROLES} | dict(roles or {})
        users.write_text(json.dumps({user: {"role": role, "password": PASSWORD} for user, role in given.items()}))
        users.chmod(0o600)
        command = [sys.executable, "-m", "assay_store", "--data", str(self.directory / "store/data")]
        self._managed("store", [*command, "--port", str(self.store_port), "--users", str(users), *options])

    def until_store_ready(self) -> None:
        """Wait for the store's `/readyz`."""
        self.until(lambda: answers(self.store_port, "/readyz"), "the store is ready", 90)

    def redis_url(self, network: Proxy | None = None) -> str:
        """The address of Redis, straight or through a network."""
        return f"redis://127.0.0.1:{network.port if network else self.redis_port}/0"

    @property
    def shards(self) -> range:
        """Numbers of the shards."""
        return range(int(self.topology["shards"]))

    def redis(self, shard: int = 0) -> "redis.Redis":  # noqa: ARG002  # here all shards are on one server
        """A client straight to the Redis of a shard, past the network that faults are put into."""
        return redis.Redis(port=self.redis_port, socket_timeout=5, socket_connect_timeout=2)

    def redis_answers(self) -> bool:
        """Whether Redis serves commands."""
        try:
            with self.redis() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def until_redis_has_written(self) -> None:
        """Wait until Redis has written what it answered, at most `SYNC_S`: a kill before that loses it, as docs/delivery.md says."""
        deadline = time.monotonic() + SYNC_S
        while not self._redis_has_written() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _redis_has_written(self) -> bool:
        try:
            with self.redis() as client:
                return has_written(client)
        except redis.ConnectionError:  # it is down or starts: it answered nothing that is not written
            return True
        except redis.RedisError:
            return False

    def store(self, role: str = "owner") -> Client:
        """A client straight to the store."""
        values = {"url": f"http://127.0.0.1:{self.store_port}", "user": role, "password": PASSWORD}
        return connect(Settings.model_validate({"store": values}).store)

    def _migrate(self) -> None:
        if self.sabotage:
            environment = {**os.environ, "ASSAY_CONFIG": str(self.settings_file("owner", direct=True))}
            subprocess.run(self.program("migrate"), cwd=ROOT, env=environment, check=True, timeout=120)
            return
        migrate(self.owner_settings())

    def owner_settings(self) -> Settings:
        """To change the tables."""
        values = {"url": f"http://127.0.0.1:{self.store_port}", "user": "owner", "password": PASSWORD}
        return Settings.model_validate({"store": values})

    # Services

    def settings_file(self, user: str, *, direct: bool = False, extra: str = "") -> Path:
        """Settings of one identity; `direct` leaves the faulty networks out."""
        redis_url = self.redis_url(None if direct else self.to_redis)
        topology = "".join(f"{name} = {json.dumps(value)}\n" for name, value in self.topology.items())
        store_port = self.store_port if direct else self.to_store.port
        path = self.directory / f"{user}{'-direct' if direct else ''}.toml"
        path.write_text(
            f'[redis]\nurl = "{redis_url}"\n{topology}command_timeout_s = {REDIS_TIMEOUT_S}\nconnect_timeout_s = 1\n'
            f'[store]\nurl = "http://127.0.0.1:{store_port}"\nuser = "{user}"\npassword = "{PASSWORD}"\ntimeout_s = {STORE_TIMEOUT_S}\n'
            f"[delivery]\nvisibility_timeout_s = {VISIBILITY_S}\nhistory_entries = {HISTORY_ENTRIES}\n"
            f"high_water_entries = {HIGH_WATER_ENTRIES}\n"
            f"[writer]\nbatch_rows = {BATCH_ROWS}\nbatch_age_ms = 200\n{extra}"
        )
        path.chmod(0o600)
        return path

    def scale(self, scrubbers: int, writers: int) -> None:
        """Run so many of each service. A further one starts; one too many drains."""
        for service, wanted in (("scrubber", scrubbers), ("writer", writers)):
            for number in range(1, MOST_OF_EACH + 1):
                name = f"{service}-{number}"
                if number <= wanted and not (name in self.processes and self.processes[name].wanted):
                    self._start_service(service, name)
                elif number > wanted and name in self.processes:
                    self.processes[name].hold(signal.SIGTERM)
        self.until_services_ready()

    def services(self) -> list[str]:
        """Names of the services that are to run."""
        return [name for name, process in self.processes.items() if process.wanted and "-" in name]

    def until_services_ready(self, *names: str) -> None:
        """Wait until services have started (not until they have caught up)."""
        for name in names or self.services():
            self.until(lambda name=name: answers(self.health[name], "/healthz"), f"{name} has started")

    def until_at_work(self, name: str) -> None:
        """Wait until a service reads its streams; `/healthz` says yes before."""
        self.until(lambda: not starting(self.health[name]), f"{name} is at work")

    def _start_service(self, service: str, name: str) -> None:
        self.health.setdefault(name, free_port())
        environment = {
            "ASSAY_CONFIG": str(self.settings_file("writer")),
            "ASSAY_DELIVERY_CONSUMER": name,
            f"ASSAY_{service.upper()}_PORT": str(self.health[name]),
        }
        self._managed(name, self.program(f"assay_{service}"), environment)

    def start_gateway(self) -> None:
        """Start the gateway, with a key of the producers' project."""
        self.health.setdefault("gateway", free_port())
        if not self.gateway_key:
            self.gateway_key, key_id = new_key(KeyKind.INGEST)
            record = KeyRecord(
                id=key_id,
                sha256=key_hash(self.gateway_key),
                kind=KeyKind.INGEST,
                project="chaos",
                created_at=datetime.now(UTC),
            )
            with self.redis() as client:
                client.hset(api_keys_key(), mapping={**as_fields(record), API_KEYS_VERSION: new_event_id()})
        environment = {
            "ASSAY_CONFIG": str(self.settings_file("gateway", direct=True)),
            "ASSAY_GATEWAY_PORT": str(self.health["gateway"]),
            "ASSAY_GATEWAY_LISTEN_PORT": str(self.gateway_port),
        }
        self._managed("gateway", self.program("assay_gateway"), environment)
        self.until(lambda: answers(self.health["gateway"], "/readyz"), "the gateway is ready")

    def start_assembler(self) -> None:
        """Start the assembler, whose traces close soon."""
        self.health.setdefault("assembler", free_port())
        environment = {
            "ASSAY_CONFIG": str(self.settings_file("assembler", direct=True)),
            "ASSAY_ASSEMBLER_PORT": str(self.health["assembler"]),
            "ASSAY_ASSEMBLER_GRACE_S": "1",
            "ASSAY_ASSEMBLER_IDLE_S": "5",
        }
        self._managed("assembler", self.program("assay_assembler"), environment)
        self.until(lambda: answers(self.health["assembler"], "/readyz"), "the assembler is ready")

    def program(self, module: str, *arguments: str) -> list[str]:
        """The command that runs a module, with the mechanism switched off that this rig is without."""
        without = ["tests.chaos.sabotage", self.sabotage] if self.sabotage else []
        return [sys.executable, "-m", *without, module, *arguments]

    # What is in the streams

    def unfinished(self) -> dict[str, int]:
        """What is still on its way: entries unread or pending, by stream. Empty when drained. Raises `RedisError`."""
        left = {}
        for shard in self.shards:
            of = f" of shard {shard}" if shard else ""
            with self.redis(shard) as client:
                if raw := client.xlen(CAPTURE.key(shard)):
                    left[f"capture{of}"] = int(raw)
                if spans := client.xlen(SPANS.key(shard)) + client.zcard(open_traces_key(shard)):
                    left[f"spans{of}"] = int(spans)
                for stream in (EVENTS, FAILURES):
                    waiting = self._waiting(client, stream.key(shard), stream.groups[0])
                    if waiting:
                        left[f"{stream.name}{of}"] = waiting
        return left

    @staticmethod
    def _waiting(client: Any, key: str, group: str) -> int:
        try:
            groups = {state["name"].decode(): state for state in client.xinfo_groups(key)}
            newest = client.xinfo_stream(key)["last-generated-id"]
        except redis.ResponseError:
            return 0  # no such stream yet
        if group not in groups:
            return 1
        state = groups[group]
        unread = state["last-delivered-id"] != newest and client.xrevrange(
            key, "+", b"(" + state["last-delivered-id"], 1
        )
        return int(state["pending"]) + (1 if unread else 0)

    def dead_letters(self) -> int:
        """Entries given up."""
        found = 0
        for shard in self.shards:
            with self.redis(shard) as client:
                found += int(client.xlen(DEAD.key(shard)))
        return found

    def captured_up_to(self) -> int:
        """The `id` of the newest entry that producers have added; 0 if there is none."""
        return max(map(self._captured_up_to, self.shards))

    def _captured_up_to(self, shard: int) -> int:
        with self.redis(shard) as client:
            try:
                newest = client.xinfo_stream(CAPTURE.key(shard))["last-generated-id"].decode()
            except (redis.ResponseError, redis.ConnectionError):  # it may be loading its data
                return 0
        named = row_id(newest, shard, len(self.shards))
        return named or first_row_at(entry_parts(newest)[0]) + PLACES - 1

    def watermark(self) -> int:
        """Up to which `id` an export would go now; -1 while the store does not say."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.store_port}/", b"SELECT watermark FROM assay.watermark"
        )
        request.add_header("X-ClickHouse-User", "exporter")
        request.add_header("X-ClickHouse-Key", PASSWORD)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return int(answer.read() or 0)
        except (OSError, ValueError):
            return -1

    def until(self, condition: Callable[[], object], what: str, seconds: float = 60) -> float:
        """Wait; returns how long it took. Raises `TimeoutError`."""
        started = time.monotonic()
        while not condition():
            if time.monotonic() - started > seconds:
                raise TimeoutError(f"not within {seconds:.0f} s: {what}")
            time.sleep(0.05)
        return time.monotonic() - started


def answers(port: int, path: str) -> bool:
    """Whether a health port says yes."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def starting(port: int) -> bool:
    """Whether a service is not yet at work."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2):
            return False
    except urllib.error.HTTPError as unready:
        return b'"starting"' in unready.read()
    except OSError:
        return True


@contextlib.contextmanager
def running(directory: Path, sabotage: str | None = None, kind: type[Rig] = Rig) -> Iterator[Rig]:
    """A rig that is up, and gone afterwards."""
    rig = kind(directory, sabotage)
    try:
        yield rig.start()
    finally:
        rig.stop()
