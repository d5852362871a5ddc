"""State shared by all exchanges of one store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from assay_store.engine import Engine, Handle
from assay_store.errors import TOO_MANY_SIMULTANEOUS_QUERIES, StoreError
from assay_store.logins import Logins
from assay_store.metrics import Metrics
from assay_store.options import StoreOptions
from assay_store.parser import EngineParser
from assay_store.roles import Role
from assay_store.sessions import Sessions
from assay_store.sql_policy import SqlPolicy
from assay_store.users import Users

_T = TypeVar("_T")


class Lane:
    """Threads for some of the users, so that the others' requests never wait for theirs.

    Args:
        threads: requests that run at a time.
        max_waiting: requests that may wait for one of them.
    """

    def __init__(self, name: str, threads: int, max_waiting: int) -> None:
        self.inserts = asyncio.Lock()
        """One INSERT at a time: parallel ones only cost more. Readers never wait for it."""
        self.uploads = asyncio.Semaphore(threads)
        """Maximum concurrent INSERTs that collect rows in memory; the network holds back the others."""
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"store-{name}")
        self._slots = asyncio.Semaphore(threads)
        self._waiting = 0
        self._max_waiting = max_waiting

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run blocking work of the engine in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Take a slot among the running requests.

        Raises:
            StoreError: too many wait already (202).
        """
        if self._waiting >= self._max_waiting:
            raise StoreError(
                TOO_MANY_SIMULTANEOUS_QUERIES, "Too many simultaneous queries: wait, or raise --max-waiting"
            )
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._slots.release()

    def close(self) -> None:
        """Wait for running work."""
        self._threads.shutdown(wait=True)


class Runtime:
    """The engine, the SQL policy, the sessions and the threads of one store."""

    def __init__(self, options: StoreOptions, users: Users, engine: Engine) -> None:
        self.options = options
        self.users = users
        self.engine = engine
        self.metrics = Metrics()
        self.sessions = Sessions(options.session_seconds, options.max_session_seconds, options.max_sessions_per_user)
        self.logins = Logins((user.name for user in users), lambda name: self.metrics.failed_logins.labels(name).inc())
        self.metrics.sessions.set_function(lambda: float(len(self.sessions)))
        self.display_name = "assay-store"
        self.ready = False
        self.accepting = False
        self._writers = Lane("writer", options.readers, options.max_waiting)
        self._others = Lane("reader", options.readers, options.max_waiting)
        self._control = ThreadPoolExecutor(1, thread_name_prefix="store-control")
        self._makers = ThreadPoolExecutor(1, thread_name_prefix="store-handle")
        self._codecs = ThreadPoolExecutor(2, thread_name_prefix="store-codec")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sql_policy: SqlPolicy | None = None

    @property
    def sql_policy(self) -> SqlPolicy:
        """The checker of statements, available once the store is ready."""
        if self._sql_policy is None:
            raise StoreError(236, "The store is starting")
        return self._sql_policy

    async def start(self) -> None:
        """Open the engine and warm it up."""
        self._loop = asyncio.get_running_loop()
        await self.run_control(self.engine.open)
        ask = self.engine.ask_parser
        tables, higher = await self.run_control(
            lambda: (
                ask("SELECT name FROM system.table_functions").split(),
                ask("SELECT name FROM system.functions WHERE higher_order = 1").split(),
            )
        )
        self._sql_policy = SqlPolicy(EngineParser(ask, self.engine.classify), tables, higher)
        self.ready = self.accepting = True

    async def stop(self) -> None:
        """Close sessions and the engine. Call when no request is running any more."""
        self.ready = self.accepting = False
        for handle in self.sessions.clear():
            await self.run_control(handle.close)
        self._makers.shutdown(wait=True)
        await self.run_control(self.engine.close)
        self._writers.close()
        self._others.close()
        self._codecs.shutdown(wait=True)
        self._control.shutdown(wait=True)

    async def sweep(self) -> None:
        """Close expired sessions, in an endless loop."""
        while True:
            await asyncio.sleep(1)
            for handle in self.sessions.expired():
                await self.run_control(handle.close)

    def lane(self, role: Role) -> Lane:
        """Return the threads of a role: writes of captured events do not compete with other requests."""
        return self._writers if role is Role.WRITER else self._others

    def discard(self, handle: Handle) -> None:
        """Discard a used handle and create a new one, while the client already has its response."""
        asyncio.get_running_loop().run_in_executor(self._makers, self.engine.release, handle)

    async def run_codec(self, work: Callable[[], _T]) -> _T:
        """Compress, decompress or parse data that is too long for the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._codecs, work)

    async def run_control(self, work: Callable[[], _T]) -> _T:
        """Run short blocking work in parallel with the clients' queries."""
        return await asyncio.get_running_loop().run_in_executor(self._control, work)

    def call(self, work: Callable[[], _T]) -> _T:
        """Run work in the event loop from a thread, for objects that only the loop may use."""
        if self._loop is None:
            raise StoreError(236, "The store is starting")

        async def wrapped() -> _T:
            return work()

        return asyncio.run_coroutine_threadsafe(wrapped(), self._loop).result()
