"""The gateway service: its server, its health, and the tasks that keep its knowledge current.

Delivery: an event is acknowledged to the client after Redis has acknowledged it, and validated in full before. A client
that gets no answer sends the same event again; it is stored once.
"""

import asyncio
import gc
import logging
import signal
import time
from collections.abc import Awaitable, Callable

import uvicorn
import uvloop
from redis.exceptions import RedisError

from assay_gateway.append import Lane
from assay_gateway.application import Application
from assay_gateway.connection import bounded
from assay_gateway.known_keys import LOOK_EVERY_S, KnownKeys
from assay_gateway.rates import Rates
from assay_gateway.targets import Targets
from assay_runtime import memory
from assay_runtime.clock import clock
from assay_runtime.connection import connect, evicts, servers
from assay_runtime.health import application, health_server, listen, server
from assay_runtime.server_process import main
from assay_runtime.transport import host_in_clear
from assay_schema.settings import Settings, SettingsError

log = logging.getLogger(__name__)

NAME = "gateway"
#: Resident memory without requests, and the copies of a body: as received, joined, cut into events, packed for Redis.
BASE_BYTES, COPIES = 120 << 20, 4
#: Seconds between looks at the length of the streams.
LOOK_AT_STREAMS_S = 0.5
#: Seconds between checks of Redis's settings.
FITNESS_EVERY_S = 5.0
#: Seconds over a high-water mark after which the gateway is not ready.
FULL_S = 10.0
#: Connections that are accepted in a turn of the event loop: uvloop accepts one for each listening socket. With one
#: alone, clients that connect wait for all who came before, a turn each.
ACCEPTED_AT_ONCE = 16
#: Seconds that an idle connection is kept.
KEEP_ALIVE_S = 75


class Gateway:
    """The process: two servers, one for clients and one for health, and tasks in the background."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._client = connect(settings.redis, attempts=0)
        self.keys = KnownKeys(self._client)
        self.lanes = [Lane(self._client, shard, settings) for shard in range(settings.redis.shards)]
        self.rates = Rates(settings.gateway.feedback_per_minute)
        targets = Targets(self._client, settings.redis.shards)
        self.application = Application(settings.gateway, self.keys, self.lanes, targets, self.rates)
        self._evicts, self._evicts_due = "", 0.0
        self._full_since: float | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT, then let the requests end that have begun."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        gateway, host = self.settings.gateway, self.settings.telemetry.host
        health = health_server(application(self._dead, self._unready))
        inner = listen(host, gateway.port, "ASSAY_GATEWAY_PORT")
        outer = listen(gateway.listen_host, gateway.listen_port, "ASSAY_GATEWAY_LISTEN_PORT")
        api = server(self._config())
        self._tasks = [asyncio.create_task(lane.run()) for lane in self.lanes]
        self._tasks += [
            asyncio.create_task(self._repeat(LOOK_EVERY_S, self._look_at_keys)),
            asyncio.create_task(self._repeat(LOOK_AT_STREAMS_S, self._look_at_streams)),
            asyncio.create_task(self._repeat(memory.GIVE_BACK_EVERY_S, _give_back)),
        ]
        health_task = asyncio.create_task(health.serve(sockets=[inner]))
        doors = [outer, *(outer.dup() for _ in range(ACCEPTED_AT_ONCE - 1))]
        api_task = asyncio.create_task(api.serve(sockets=doors))
        gc.freeze()  # as in every service: collecting these objects takes a tenth of a second each time
        gc.set_threshold(20_000, 50, 50)  # collecting so many young objects takes milliseconds
        log.info("listening on port %d, %s", gateway.listen_port, "HTTPS" if gateway.tls_cert_file else "HTTP")
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({stopped, health_task, api_task, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        ended_well = stop.is_set()
        if not ended_well:
            log.error("cannot continue: a task of the service ended")
        self.application.draining = True
        api.should_exit = True
        await api_task
        for task in (*self._tasks, stopped):
            task.cancel()
        await asyncio.gather(*self._tasks, stopped, return_exceptions=True)
        health.should_exit = True
        await health_task
        await self._client.aclose()
        log.info("stopped")
        return 0 if ended_well else 1

    def _config(self) -> uvicorn.Config:
        gateway = self.settings.gateway
        return uvicorn.Config(
            self.application,
            http=bounded(gateway.body_timeout_s),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=max(1, round(gateway.drain_s)),
            backlog=1024,
            ssl_certfile=gateway.tls_cert_file,
            ssl_keyfile=gateway.tls_key_file,
        )

    async def _repeat(self, seconds: float, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except (RedisError, OSError, TimeoutError) as error:
                log.warning("redis did not answer", extra={"error_class": type(error).__name__})
            await asyncio.sleep(seconds)

    async def _look_at_keys(self) -> None:
        await self.keys.look()
        self.rates.forget(self.keys.ids)

    async def _look_at_streams(self) -> None:
        for lane in self.lanes:
            await lane.look()
        clock.set(*await servers(self._client)[0].time())
        if time.monotonic() > self._evicts_due:
            self._evicts, self._evicts_due = await evicts(self._client), time.monotonic() + FITNESS_EVERY_S
        full = any(lane.full for lane in self.lanes)
        self._full_since = (self._full_since or time.monotonic()) if full else None

    def _dead(self) -> list[str]:
        return ["a task of the service ended"] if any(task.done() for task in self._tasks) else []

    def _unready(self) -> list[str]:
        if self.application.draining:
            return ["stopping"]
        problems = [*dict.fromkeys(lane.away for lane in self.lanes if lane.away)]
        problems += [self._evicts] if self._evicts else []
        if self._full_since is not None and time.monotonic() - self._full_since > FULL_S:
            problems += [f"{lane.full}: check that the scrubber runs" for lane in self.lanes if lane.full]
        return problems


async def _give_back() -> None:
    memory.give_back()


def check(settings: Settings) -> None:
    """Raise `SettingsError` if the settings of TLS do not go together or cannot be read."""
    gateway = settings.gateway
    if (gateway.tls_cert_file is None) != (gateway.tls_key_file is None):
        raise SettingsError("set both gateway.tls_cert_file and gateway.tls_key_file, or neither")
    for name in ("tls_cert_file", "tls_key_file"):
        path = getattr(gateway, name)
        try:
            if path is not None:
                path.open("rb").close()
        except OSError as error:
            raise SettingsError(f"cannot read the file in gateway.{name}: {error.strerror}") from None


def warnings(settings: Settings) -> list[str]:
    """List the settings of the gateway with which keys would cross a network unencrypted."""
    gateway = settings.gateway
    if gateway.tls_cert_file is not None or not host_in_clear(f"http://{gateway.listen_host}"):
        return []
    clear = "clients send their keys to this gateway unencrypted; set gateway.tls_cert_file and gateway.tls_key_file"
    return [f"{clear}, or put a proxy with TLS in front of it"]


def bound_bytes(settings: Settings) -> int:
    """Return the resident memory that the gateway stays below. Pure."""
    return BASE_BYTES + COPIES * settings.gateway.in_flight_bytes


def run() -> None:
    """Entry point of `python -m assay_gateway`."""
    main(NAME, _serve, bound_bytes, check=check, warnings=warnings, loop_factory=uvloop.new_event_loop)


async def _serve(settings: Settings) -> int:
    return await Gateway(settings).run()
