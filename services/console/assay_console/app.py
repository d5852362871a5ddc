"""The console service: its servers, its key, its health.

It reads the store and Redis as a separate identity, and writes only what a person asks it to. When it is away, no other
service notices.
"""

import asyncio
import gc
import logging
import secrets
import signal
import time

import uvicorn

from assay_access.console_links import KEY_MIN_BYTES, Signer
from assay_console.application import Console
from assay_console.login import Login, proxy_of
from assay_console.reads import KEPT_BYTES, Reads
from assay_console.rendering import environment
from assay_console.stream_reads import LOOK_BACK_BYTES
from assay_runtime import memory
from assay_runtime.config import secret
from assay_runtime.connection import connect
from assay_runtime.health import application, health_server, listen, server
from assay_runtime.server_process import main
from assay_schema.settings import ConsoleSettings, Settings, SettingsError

log = logging.getLogger(__name__)

NAME = "console"
#: Resident memory with templates and connections, before the first page, and of one answer of the store with the page that is made of it.
BASE_BYTES, ANSWER_BYTES = 90 << 20, 16 << 20
#: Seconds that requests may take to end after SIGTERM.
_DRAIN_S = 5
#: Seconds between returns of free memory to the system.
_GIVE_BACK_EVERY_S = 10.0


def signer_of(settings: ConsoleSettings) -> Signer:
    """Return the signer of links and sessions. Raises `SettingsError` for a key that is too short."""
    key = secret(settings.session_key, settings.session_key_file, "console.session_key_file").encode()
    if key and len(key) < KEY_MIN_BYTES:
        raise SettingsError(f"console.session_key: the key has fewer than {KEY_MIN_BYTES} bytes")
    return Signer(key or secrets.token_bytes(KEY_MIN_BYTES), time.time())


class Service:
    """The process: a server for browsers and one for health."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._redis = connect(settings.redis, attempts=0)
        self._reads = Reads(settings.store, settings.console.page_reads)
        login = Login(settings.console, signer_of(settings.console), proxy_of(settings.console), self._redis)
        self._console = Console(settings, self._reads, self._redis, login)
        self.application = self._console.application()
        self._stopping = False

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT, then let the requests end that have begun."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        console, host = self.settings.console, self.settings.telemetry.host
        inner = listen(host, console.port, "ASSAY_CONSOLE_PORT")
        outer = listen(console.listen_host, console.listen_port, "ASSAY_CONSOLE_LISTEN_PORT")
        health = health_server(application(list, self._unready, self._notes))
        pages = server(self._config())
        tasks = [
            asyncio.create_task(health.serve(sockets=[inner])),
            asyncio.create_task(pages.serve(sockets=[outer])),
        ]
        gc.freeze()
        chores = [asyncio.create_task(_give_back()), asyncio.create_task(_compile_templates())]
        log.info("listening on %s:%d", console.listen_host, console.listen_port)
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({stopped, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        ended_well = stop.is_set()
        self._stopping = True
        await self._console.close()
        pages.should_exit = health.should_exit = True
        stopped.cancel()
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*tasks, stopped, *chores, return_exceptions=True)
        self._reads.close()
        await self._redis.aclose()
        log.info("stopped")
        return 0 if ended_well else 1

    def _config(self) -> uvicorn.Config:
        return uvicorn.Config(
            self.application,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,  # a URL may quote captured text
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_DRAIN_S,
        )

    def _unready(self) -> list[str]:
        return ["stopping"] if self._stopping else []

    def _notes(self) -> list[str]:
        """Return why the store is away: pages still have their last answers, so the console stays ready."""
        return [self._reads.away] if self._reads.away else []


def bound_bytes(settings: Settings) -> int:
    """Return the resident memory that the console stays below. Pure."""
    return BASE_BYTES + (settings.console.page_reads + 1) * ANSWER_BYTES + KEPT_BYTES + 2 * LOOK_BACK_BYTES


def run() -> None:
    """Entry point of `python -m assay_console`."""
    main(NAME, _serve, bound_bytes)


async def _give_back() -> None:
    while True:
        await asyncio.sleep(_GIVE_BACK_EVERY_S)
        memory.give_back()


async def _compile_templates(after_s: float = 20.0) -> None:
    """Compile the templates one by one when the system has started, so that no first visit of a page waits for it."""
    await asyncio.sleep(after_s)
    for name in environment().list_templates(["html"]):
        await asyncio.to_thread(environment().get_template, name)


async def _serve(settings: Settings) -> int:
    return await Service(settings).run()
