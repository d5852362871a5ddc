"""Processes of the local system: order, identity, and readiness of each.

A process starts after those that it writes to, so that stopping in reverse order drains the system: producer, gateway, assembler,
scrubber, judge, OTLP exporter, drift, writer, notifier, auditor, store, Redis.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from assay_access.secrets import Passwords, write_private
from assay_access.settings_files import CONSUMER, Ports, secret_settings
from assay_local.preflight import RedisBinary
from assay_local.probes import LOADING, StoreQueries, StoreUnavailableError, http_status, redis_missing
from assay_local.supervisor import Spec
from assay_schema.settings import FILE_VARIABLE, SWITCH_VARIABLE, StoreSettings, variables

#: Settings that `assay up` sets itself; values in the environment would point the processes elsewhere.
_OWN_SECTIONS = ("redis", "store")
_KEPT = {"redis": {"shards", "connect_timeout_s", "command_timeout_s"}, "store": {"timeout_s"}}
_OWN = {
    ("scrubber", "port"),
    ("writer", "port"),
    ("judge", "port"),
    ("drift", "port"),
    ("notifier", "port"),
    ("gateway", "port"),
    ("gateway", "listen_port"),
    ("assembler", "port"),
    ("otlp_exporter", "port"),
    ("auditor", "port"),
    ("console", "port"),
    ("console", "listen_port"),
    ("telemetry", "host"),
    ("delivery", "consumer"),
    ("capture", "service"),
}
#: Variables that a process inherits: locations of programs, libraries, certificates, proxies and temporary files; language and time zone;
#: settings of Assay, Python and OpenTelemetry.
_INHERITED = {
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "MALLOC_ARENA_MAX", "PATH", "SHELL", "SSL_CERT_DIR", "SSL_CERT_FILE", "TEMP", "TERM", "TMP",
    "TMPDIR", "TZ", "USER", "VIRTUAL_ENV", "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "all_proxy", "https_proxy", "http_proxy",
    "no_proxy", "REQUESTS_CA_BUNDLE", "COLUMNS", "NO_COLOR",
}  # fmt: skip
_INHERITED_PREFIXES = ("ASSAY_", "LC_", "LD_", "OTEL_", "PYTHON", "XDG_")
#: Services that judge, monitor and notify: capturing and storing needs none of them.
QUALITY = ("judge", "drift", "notifier")
_CORE = (
    "redis",
    "store",
    "scrubber",
    "writer",
    "gateway_http",
    "gateway",
    "assembler",
    "console_http",
    "console",
    "auditor",
)
#: Name of the key that `assay up` makes.
GATEWAY_KEY_NAME = "assay up"
#: Deadline of a clean stop, in seconds.
_STOP_DEADLINES_S = {
    "scrubber": 15.0,
    "writer": 30.0,
    "judge": 30.0,
    "drift": 15.0,
    "notifier": 45.0,
    "gateway": 15.0,
    "assembler": 15.0,
    "otlp_exporter": 15.0,
    "console": 10.0,
    "auditor": 15.0,
}


@dataclass(frozen=True)
class LocalStack:
    """Directories, ports and credentials of one run."""

    data: Path
    ports: Ports
    redis: RedisBinary
    passwords: Passwords
    shards: int = 1
    #: True if the services of `QUALITY` run.
    quality: bool = True
    #: True if the OTLP exporter runs: the settings name a backend.
    exports_spans: bool = False
    #: Path of an Alertmanager to start as well.
    alertmanager: str | None = None
    #: Account of the store if root starts it on a kernel without Landlock.
    store_uid: int = StoreSettings().uid
    #: Certificate of the gateway; None if it speaks plain HTTP.
    gateway_cert: Path | None = None

    @property
    def ports_used(self) -> dict[str, int]:
        """Ports by name of the processes that are started."""
        return {
            name: port
            for name, port in vars(self.ports).items()
            if name in _CORE
            or self.runs(name)
            or (name == "alertmanager" and self.alertmanager)
            or (name == "otlp_exporter" and self.exports_spans)
        }

    def runs(self, service: str) -> bool:
        """Return True if a service of `QUALITY` is started."""
        return self.quality and service in QUALITY

    def redis_client(self, name: str) -> Redis:
        """Return a Redis client with one of the identities. Close it with `aclose`."""
        return Redis(
            host="127.0.0.1",
            port=self.ports.redis,
            username=name,
            password=self.passwords.redis[name],
            socket_timeout=5,
            socket_connect_timeout=2,
            retry=Retry(NoBackoff(), 1),  # the caller polls
        )

    def store_queries(self, name: str) -> StoreQueries:
        """Return a client of the store with one of the identities."""
        return StoreQueries(self.ports.store, name, self.passwords.store[name])

    def services(self, environment: Mapping[str, str], admin: Redis) -> list[list[Spec]]:
        """Return the processes in stages, and within a stage in starting order."""
        queries = self.store_queries("owner")
        plain = child_environment(environment)
        bare = without_secrets(plain)

        async def redis_ready() -> str | None:
            return await redis_missing(admin)

        async def redis_alive() -> bool:
            return await redis_missing(admin) == LOADING

        async def store_ready() -> str | None:
            try:
                await queries.rows("SELECT 1")
            except StoreUnavailableError as error:
                return str(error)
            return None

        redis = Spec(
            "redis",
            (self.redis.path, str(self.data / "run/redis.conf")),
            bare,
            redis_ready,
            alive=redis_alive,
            stop_deadline_s=30,
        )
        store = Spec(
            "store",
            (
                *(sys.executable, "-m", "assay_store"),
                *("--data", str(self.data / "store")),
                *("--port", str(self.ports.store)),
                *("--users", str(self.data / "secrets/store-users.json")),
                *("--uid", str(self.store_uid)),
            ),
            bare,
            store_ready,
            start_deadline_s=120,
            stop_deadline_s=30,
        )
        migrate = Spec(
            "migrate",
            # No confirmation: the retention was set by the person who starts the system. The record names the account of this process.
            (sys.executable, "-m", "assay_cli", "migrate", "--yes", "--data", str(self.data)),
            self._as(plain, "owner"),
            once=True,
            start_deadline_s=120,
        )
        names = [
            name
            for name in (
                "auditor",
                "notifier",
                "writer",
                "drift",
                "otlp_exporter",
                "judge",
                "scrubber",
                "assembler",
                "gateway",
                "console",
            )
            if name in self.ports_used
        ]
        receivers = [self._alertmanager(self.alertmanager, bare)] if self.alertmanager else []
        return [[redis, store, *receivers], [migrate], [self._service(name, plain) for name in names]]

    def _alertmanager(self, binary: str, bare: Mapping[str, str]) -> Spec:
        port, run = self.ports.alertmanager, self.data / "run"
        # It notifies no one; its page shows the alerts. JSON is valid YAML.
        route = {"receiver": "page", "group_wait": "1s"}
        write_private(run / "alertmanager.yml", json.dumps({"route": route, "receivers": [{"name": "page"}]}) + "\n")

        async def ready() -> str | None:
            status = await http_status(port, "/-/ready")
            return None if status == 200 else f"/-/ready answers {status}"

        command = (
            binary,
            f"--config.file={run / 'alertmanager.yml'}",
            f"--storage.path={run / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
            "--log.level=warn",
        )
        return Spec("alertmanager", command, bare, ready)

    def demo(self, environment: Mapping[str, str], *arguments: str) -> Spec:
        """Return the demo producer, whose last line on stdout is its report."""
        env = self._as(child_environment(environment), "producer") | {SWITCH_VARIABLE: "1"}
        return Spec("demo", (sys.executable, "-m", "assay_demo", *arguments), env, once=True, stdout_is_log=False)

    def instrumented(self, environment: Mapping[str, str], key: str) -> Spec:
        """Return the part of the demo that sends spans to the gateway.

        The last line on stdout is its report. It gets what any instrumented service gets: the address and a key, in the
        variables of OpenTelemetry.
        """
        plain = without_secrets(child_environment(environment))
        env = {
            name: value
            for name, value in plain.items()
            if not name.startswith("OTEL_") and not name.lower().endswith("_proxy")
        }
        env["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{self.ports.gateway_http}"
        if self.gateway_cert:
            env["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"https://127.0.0.1:{self.ports.gateway_http}"
            env["OTEL_EXPORTER_OTLP_CERTIFICATE"] = str(self.gateway_cert)
        env["OTEL_EXPORTER_OTLP_HEADERS"] = f"Authorization=Bearer%20{key}"
        command = (sys.executable, "-m", "assay_demo.instrumented")
        return Spec("otel", command, env, once=True, stdout_is_log=False)

    def new_key(self, environment: Mapping[str, str]) -> Spec:
        """Return the command that makes a key for the gateway, whose last line on stdout has the key."""
        command = (
            "keys",
            "create",
            "--name",
            GATEWAY_KEY_NAME,
            "--service",
            "curl",
            "--json",
            "--data",
            str(self.data),
        )
        env = self._as(child_environment(environment), "operator")
        return Spec("keys", (sys.executable, "-m", "assay_cli", *command), env, once=True, stdout_is_log=False)

    @property
    def agent_log(self) -> Path:
        """Path of the log of sessions that the demo's agent writes."""
        return self.data / "agent/sessions.jsonl"

    def session_import(self, environment: Mapping[str, str]) -> Spec:
        """Return the import of `agent_log`, whose last line on stdout is its outcome.

        In the data directory there is no `assay.toml`, which could point it to another system.
        """
        command = ("sessions", "import", "--from", "jsonl", str(self.agent_log), "--quiet", "--data", str(self.data))
        return Spec(
            "import", (sys.executable, "-m", "assay_cli", *command), without_secrets(child_environment(environment)),
            once=True, directory=self.data, stdout_is_log=False,
        )  # fmt: skip

    def _service(self, name: str, plain: Mapping[str, str]) -> Spec:
        port: int = getattr(self.ports, name)

        async def ready() -> str | None:
            status = await http_status(port, "/readyz")
            return None if status == 200 else f"/readyz answers {status}" if status else "no answer on its health port"

        async def alive() -> bool:
            return await http_status(port, "/healthz") == 200

        return Spec(
            name, (sys.executable, "-m", f"assay_{name}"), self._as(plain, name) | {"ASSAY_DELIVERY_CONSUMER": CONSUMER}, ready,
            alive=alive, start_deadline_s=60, stop_deadline_s=_STOP_DEADLINES_S[name],
        )  # fmt: skip

    def _as(self, plain: Mapping[str, str], name: str) -> dict[str, str]:
        """Return the environment of an identity: its settings file, and no secrets of others."""
        return without_secrets(plain, of_others_than=name) | {FILE_VARIABLE: str(self.data / f"secrets/{name}.toml")}


def _is_needed(variable: str) -> bool:
    return variable in _INHERITED or variable.startswith(_INHERITED_PREFIXES)


def without_secrets(environment: Mapping[str, str], *, of_others_than: str = "") -> dict[str, str]:
    """Return an environment without secret settings, except those of one service."""
    theirs = {name: place for name, place in variables().items() if place in secret_settings()}
    return {
        name: value for name, value in environment.items() if name not in theirs or theirs[name][0] == of_others_than
    }


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a process needs.

    Variables that would override the settings file of its identity are left out.

    The shell that runs `assay up` can contain keys of clouds and registries, which no process of Assay needs.
    """
    dropped = {FILE_VARIABLE, SWITCH_VARIABLE}
    for variable, (section, name) in variables().items():
        if (section, name) in _OWN or (section in _OWN_SECTIONS and name not in _KEPT[section]):
            dropped.add(variable)
    needed = {name: value for name, value in environment.items() if _is_needed(name) and name not in dropped}
    return needed | {"PYTHONUNBUFFERED": "1"}


def write_redis_conf(system: LocalStack) -> None:
    """Write `<data>/run/redis.conf`: fsync every second, loopback only, no eviction."""
    directory = system.data / "redis"
    options = {
        "bind": "127.0.0.1",
        "port": str(system.ports.redis),
        "protected-mode": "yes",
        "dir": _quoted(directory),
        "aclfile": _quoted(system.data / "secrets/redis-users.acl"),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": '""',
        "maxmemory-policy": "noeviction",
        "stream-node-max-bytes": "65536",
        "daemonize": "no",
        "loglevel": "notice",
    }
    text = "# Written by `assay up` at every start.\n" + "".join(f"{name} {value}\n" for name, value in options.items())
    write_private(system.data / "run/redis.conf", text)


def _quoted(path: Path) -> str:
    return '"' + os.fspath(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
