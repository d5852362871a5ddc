"""Reads of the store for pages: bounded, shared, and kept for when the store is away.

A page asks with a function of the operations and its arguments. The same question that is in flight is asked once; an
answer may be kept for some seconds. At most `limit` reads run at a time, because every further one would slow the
store for those who write to it.
"""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from assay_operations.clients import store_errors
from assay_operations.errors import OperationError
from assay_runtime.store import Client, connect
from assay_schema.settings import StoreSettings

T = TypeVar("T")
P = ParamSpec("P")

#: Reads that may wait. Those above it are refused, so that a queue never outlasts its readers.
WAITING_MAX = 40
#: Answers that are kept for when the store is away.
KEPT_MAX = 512
#: Seconds for which the answer to a question about rollups is kept; they change once a minute.
ROLLUP_S = 15.0


@dataclass(frozen=True)
class Answer(Generic[T]):
    """An answer of the store, when it was given (Unix s), and what it cost."""

    value: T
    at: float
    took_ms: float
    rows_read: int


class _Metered:
    """A client that counts the rows which the store reads for it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.rows_read = 0

    def query(self, *arguments: Any, **options: Any) -> Any:
        answer = self._client.query(*arguments, **options)
        self.rows_read += int(answer.summary.get("read_rows", 0))
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class Reads:
    """Asks the store on behalf of pages."""

    def __init__(self, settings: StoreSettings, limit: int) -> None:
        self._settings = settings
        self._client: Client | None = None
        self._connecting = threading.Lock()
        self._slots = asyncio.Semaphore(limit)
        self._threads = ThreadPoolExecutor(limit, thread_name_prefix="reads")
        self._waiting = 0
        self._in_flight: dict[Hashable, asyncio.Task[Answer[Any]]] = {}
        self._kept: OrderedDict[Hashable, Answer[Any]] = OrderedDict()

    async def ask(
        self, function: Callable[Concatenate[Client, P], T], *arguments: P.args, **options: P.kwargs
    ) -> Answer[T]:
        """Call an operation that reads the store, without keeping its answer. Raises `OperationError`."""
        return await self._shared(_key(function, arguments, options), False, function, arguments, options)

    async def ask_within(
        self, seconds: float, function: Callable[Concatenate[Client, P], T], *arguments: P.args, **options: P.kwargs
    ) -> Answer[T]:
        """Call an operation, or return its answer of the last `seconds`. Raises `OperationError`."""
        key = _key(function, arguments, options)
        kept = self._kept.get(key)
        if kept is not None and time.time() - kept.at < seconds:
            return cast("Answer[T]", kept)
        return await self._shared(key, True, function, arguments, options)

    async def _shared(
        self, key: Hashable, keep: bool, function: Callable[..., T], arguments: Any, options: Any
    ) -> Answer[T]:
        """Ask, or wait for the same question that is in flight."""
        task = self._in_flight.get(key)
        if task is None:
            task = asyncio.create_task(self._read(function, arguments, options))
            self._in_flight[key] = task
            task.add_done_callback(lambda _: self._in_flight.pop(key, None))
        answer = cast("Answer[T]", await asyncio.shield(task))
        if keep:
            self._remember(key, answer)
        return answer

    def last(
        self, function: Callable[Concatenate[Client, P], T], *arguments: P.args, **options: P.kwargs
    ) -> Answer[T] | None:
        """Return the last answer to a question, however old; None if there is none."""
        return cast("Answer[T] | None", self._kept.get(_key(function, arguments, options)))

    def keep(self, place: Hashable, value: object) -> None:
        """Keep what a place of a page showed, for when the store is away."""
        self._remember(("shown", place), Answer(value, time.time(), 0.0, 0))

    def kept(self, place: Hashable) -> Answer[Any] | None:
        """Return what a place of a page showed last; None if it is not known."""
        return self._kept.get(("shown", place))

    def close(self) -> None:
        """Let the reads that run end, and start no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            self._client.close()

    async def _read(self, function: Callable[..., T], arguments: Any, options: Any) -> Answer[T]:
        if self._waiting >= WAITING_MAX:
            raise OperationError(
                "unavailable", f"the console is busy: {self._waiting} reads wait; try again in a moment"
            )
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._call, function, arguments, options)
        finally:
            self._slots.release()

    def _remember(self, key: Hashable, answer: Answer[Any]) -> None:
        self._kept[key] = answer
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)

    def _call(self, function: Callable[..., T], arguments: Any, options: Any) -> Answer[T]:
        started = time.perf_counter()
        with store_errors(self._settings, answered=self._client is not None):
            metered = _Metered(self._connected())
            value = function(cast("Client", metered), *arguments, **options)
        return Answer(value, time.time(), (time.perf_counter() - started) * 1000, metered.rows_read)

    def _connected(self) -> Client:
        """Return the client that all reads share; its pool opens connections again that the store has closed."""
        with self._connecting:
            if self._client is None:
                self._client = connect(self._settings)
            return self._client


def _key(function: Callable[..., object], arguments: tuple[Any, ...], options: dict[str, Any]) -> Hashable:
    return function, repr(arguments), repr(sorted(options.items()))
