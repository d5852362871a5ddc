"""Reads of the store for pages: bounded, shared, and kept for when the store is away.

A page asks with a function of the operations and its arguments. The same question that is in flight is asked once; an
answer may be kept for some seconds. At most `limit` reads run at a time, because every further one would slow the
store for those who write to it, and one search apart from them, because it may take seconds. A read whose last client
has left is cancelled, in the store too. After a request without an answer in time, reads are refused at once until the
store answers again: one page waits for a store that hangs, and no second one.
"""

import asyncio
import gc
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from types import FunctionType, ModuleType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

import orjson
from urllib3 import Timeout
from urllib3.exceptions import HTTPError, NewConnectionError
from urllib3.exceptions import TimeoutError as NoAnswerError

from assay_console.running import Running, note_requests
from assay_operations.clients import STARTS_OR_STOPS, store_errors
from assay_operations.errors import OperationError
from assay_runtime.causes import causes
from assay_runtime.store import Client, connect
from assay_schema.settings import StoreSettings

T = TypeVar("T")
P = ParamSpec("P")

#: Reads that may wait. Those above it are refused, so that a queue never outlasts its readers.
WAITING_MAX = 40
#: Seconds that the store has to answer one request of a page, and to accept its connection. It ends the console's queries after 5 s.
ANSWER_S, _CONNECT_S = 7.0, 2.0
#: Seconds between two attempts to reach a store that is away, and seconds that it has for each.
_PROBE_EVERY_S, _PROBE_S = 1.0, 2.0
#: Memory of the answers that are kept for when the store is away, and of the largest one that is kept.
KEPT_BYTES = 8 * 1024 * 1024
KEPT_ANSWER_BYTES = 1024 * 1024
_HANGS_FIX = "see its log and `assay doctor`, or restart it"
#: Memory that a kept answer takes with its key, apart from its value.
_ENTRY_BYTES = 1024
#: Seconds for which the answer to a question about rollups is kept; they change once a minute.
ROLLUP_S = 15.0
#: Most answers of rollups that are kept by their SQL: many pages ask for the same hours, of ranges that end at different seconds.
_RECENT_MAX = 32


@dataclass(frozen=True)
class Answer(Generic[T]):
    """An answer of the store, when it was given (Unix s), and what it cost.

    `size` is its approximate memory in bytes; above `KEPT_ANSWER_BYTES` it is only known to be larger.
    """

    value: T
    at: float
    took_ms: float
    rows_read: int
    size: int


class BusyError(OperationError):
    """So many reads wait that another one is refused."""


class _Recent:
    """Rows of rollups, by the question, for some seconds. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()

    def rows(self, question: Hashable, read: Callable[[], T]) -> T:
        """Return the rows that are kept for a question, or read them."""
        with self._lock:
            at, kept = self._rows.get(question, (0.0, None))
        if time.monotonic() - at < ROLLUP_S and kept is not None:
            return cast("T", kept)
        began = time.monotonic()
        found = read()
        with self._lock:
            self._rows[question] = began, found
            self._rows.move_to_end(question)
            if len(self._rows) > _RECENT_MAX:
                self._rows.popitem(last=False)
        return found


class _Metered:
    """A client that counts the rows which the store reads for it.

    Of a stream it counts what the store had read when the stream began. SQL that people write is counted by its page.
    """

    def __init__(self, client: Client, recent: _Recent) -> None:
        self._client = client
        self.recent_rows = recent.rows
        self.rows_read = 0

    def query(self, *arguments: Any, **options: Any) -> Any:
        answer = self._client.query(*arguments, **options)
        self._count(answer.summary)
        return answer

    def query_row_block_stream(self, *arguments: Any, **options: Any) -> Any:
        stream: Any = self._client.query_row_block_stream(*arguments, **options)
        self._count(stream.source.summary)
        return stream

    def raw_query(self, sql: str, *, settings: dict[str, Any] | None = None, **options: Any) -> bytes:
        """Return a whole answer as the client does, which drops the summary."""
        settings = {**(settings or {}), "wait_end_of_query": 1}
        answer: Any = self._client.raw_stream(sql, settings=settings, **options)
        try:
            body = bytes(answer.data)
        except HTTPError as error:
            raise OperationError("unavailable", f"store: the answer broke off ({type(error).__name__})") from None
        finally:
            answer.close()
        self._count(orjson.loads(answer.headers.get("X-ClickHouse-Summary") or "{}"))
        return body

    def _count(self, summary: dict[str, Any]) -> None:
        self.rows_read += int(summary.get("read_rows", 0))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@dataclass
class _Flight:
    """A read in flight, and the number of those who wait for it."""

    task: asyncio.Task[Answer[Any]]
    waiting: int = 0


class Reads:
    """Asks the store on behalf of pages.

    Each request has `answer_s` seconds, or `store.timeout_s` if that is shorter.
    """

    def __init__(self, settings: StoreSettings, limit: int, answer_s: float = ANSWER_S) -> None:
        self._settings = settings.model_copy(update={"timeout_s": min(settings.timeout_s, answer_s)})
        #: Why the store cannot be read; empty while it answers. `_hangs`: it keeps those who ask waiting.
        self._away, self._hangs = "", False
        self._probing: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._connecting = threading.Lock()
        self._slots = asyncio.Semaphore(limit)
        self._searches = asyncio.Semaphore(1)
        self._threads = ThreadPoolExecutor(limit + 1, thread_name_prefix="reads")
        self._recent = _Recent()
        self._waiting = 0
        self._in_flight: dict[Hashable, _Flight] = {}
        self._kept: OrderedDict[Hashable, Answer[Any]] = OrderedDict()
        self._kept_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """Approximate memory of the answers that are kept."""
        return self._kept_bytes

    @property
    def away(self) -> str:
        """Why the store cannot be read, as far as the last read or probe showed; empty if it answers."""
        return self._away

    async def ask(
        self, function: Callable[Concatenate[Client, P], T], *arguments: P.args, **options: P.kwargs
    ) -> Answer[T]:
        """Call an operation that reads the store, without keeping its answer. Raises `OperationError`."""
        return await self._shared(_key(function, arguments, options), False, self._slots, function, arguments, options)

    async def ask_within(
        self, seconds: float, function: Callable[Concatenate[Client, P], T], *arguments: P.args, **options: P.kwargs
    ) -> Answer[T]:
        """Call an operation, or return its answer of the last `seconds`. Raises `OperationError`."""
        return await self._within(seconds, self._slots, function, arguments, options)

    async def search_within(
        self, seconds: float, function: Callable[Concatenate[Client, P], T], *arguments: P.args, **options: P.kwargs
    ) -> Answer[T]:
        """Do as `ask_within` for an operation that may take seconds: one of these runs at a time."""
        return await self._within(seconds, self._searches, function, arguments, options)

    async def _within(
        self, seconds: float, slots: asyncio.Semaphore, function: Callable[..., T], arguments: Any, options: Any
    ) -> Answer[T]:
        key = _key(function, arguments, options)
        kept = self._kept.get(key)
        if kept is not None and time.time() - kept.at < seconds:
            return cast("Answer[T]", kept)
        return await self._shared(key, True, slots, function, arguments, options)

    async def _shared(
        self,
        key: Hashable,
        keep: bool,
        slots: asyncio.Semaphore,
        function: Callable[..., T],
        arguments: Any,
        options: Any,
    ) -> Answer[T]:
        """Ask, or wait for the same question that is in flight."""
        flight = self._in_flight.get(key)
        if flight is None:
            flight = _Flight(asyncio.create_task(self._read(slots, function, arguments, options)))
            self._in_flight[key] = flight
        flight.waiting += 1
        try:
            answer = cast("Answer[T]", await asyncio.shield(flight.task))
        finally:
            flight.waiting -= 1
            if (flight.task.done() or not flight.waiting) and self._in_flight.get(key) is flight:
                del self._in_flight[key]
            if not flight.waiting:
                flight.task.cancel()  # nothing if it is done
        if keep:
            self._remember(key, answer)
        return answer

    def last(
        self, function: Callable[Concatenate[Client, P], T], *arguments: P.args, **options: P.kwargs
    ) -> Answer[T] | None:
        """Return the last answer to a question, however old; None if there is none."""
        return cast("Answer[T] | None", self._kept.get(_key(function, arguments, options)))

    def keep(self, place: tuple[Any, ...], answer: Answer[Any]) -> None:
        """Keep what a place of a page showed, for when the store is away. The `repr` names a place."""
        self._remember(_digest("shown", place), answer)

    def kept(self, place: tuple[Any, ...]) -> Answer[Any] | None:
        """Return what a place of a page showed last; None if it is not known."""
        return self._kept.get(_digest("shown", place))

    def close(self) -> None:
        """Let the reads that run end, and start no more."""
        if self._probing is not None:
            self._probing.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            self._client.close()

    async def _read(
        self, slots: asyncio.Semaphore, function: Callable[..., T], arguments: Any, options: Any
    ) -> Answer[T]:
        self._refuse_while_it_hangs()
        if self._waiting >= WAITING_MAX:
            raise BusyError("unavailable", f"the console is busy: {self._waiting} reads wait; try again in a moment")
        self._waiting += 1
        try:
            await slots.acquire()
        finally:
            self._waiting -= 1
        running = Running()
        try:
            self._refuse_while_it_hangs()  # the read before this one may have waited in vain
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._call, running, function, arguments, options)
        except asyncio.CancelledError:
            running.cancel()
            raise
        except Exception:
            if self._away and (self._probing is None or self._probing.done()):
                self._probing = asyncio.create_task(self._probe())
            raise
        finally:
            slots.release()

    def _refuse_while_it_hangs(self) -> None:
        if self._hangs:
            raise OperationError("unavailable", self._away, _HANGS_FIX)

    async def _probe(self) -> None:
        """Try to reach the store until it answers. No page waits for this."""
        while self._away:
            await asyncio.sleep(_PROBE_EVERY_S)
            await asyncio.to_thread(self._reach)

    def _reach(self) -> None:
        try:
            connect(self._settings.model_copy(update={"timeout_s": min(self._settings.timeout_s, _PROBE_S)})).close()
        except Exception as error:  # noqa: BLE001 - any other error shows that the store answers
            if _is_away(error):
                return
        self._away, self._hangs = "", False

    def _note(self, error: BaseException) -> None:
        """Remember that the store is away, if an error shows it."""
        if _is_away(error):
            # A refused connection is a `TimeoutError` of this library too.
            self._hangs = any(
                isinstance(each, NoAnswerError) and not isinstance(each, NewConnectionError) for each in causes(error)
            )
            self._away = (
                f"store: {self._settings.url} gave no answer within {self._settings.timeout_s:g} s: it hangs or is overloaded"
                if self._hangs
                else f"store: {self._settings.url} is starting or stopping"
                if _is_between(error)
                else f"store: no answer at {self._settings.url}"
            )

    def _remember(self, key: Hashable, answer: Answer[Any]) -> None:
        """Keep an answer instead of the earlier one, unless it is too large; the oldest answers make room."""
        earlier = self._kept.pop(key, None)
        if earlier is not None:
            self._kept_bytes -= earlier.size + _ENTRY_BYTES
        if answer.size > KEPT_ANSWER_BYTES:
            return
        self._kept[key] = answer
        self._kept_bytes += answer.size + _ENTRY_BYTES
        while self._kept_bytes > KEPT_BYTES:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= oldest.size + _ENTRY_BYTES

    def _call(self, running: Running, function: Callable[..., T], arguments: Any, options: Any) -> Answer[T]:
        started = time.perf_counter()
        try:
            # No query of the console lasts as long as `answer_s`: a store that does not answer hangs, whether it answered before or not.
            with running.here(), store_errors(self._settings, answered=False):
                metered = _Metered(self._connected(), self._recent)
                value = function(cast("Client", metered), *arguments, **options)
        except Exception as error:
            if not running.cancelled:
                self._note(error)
            raise
        took_ms = (time.perf_counter() - started) * 1000
        return Answer(value, time.time(), took_ms, metered.rows_read, size_of(value, KEPT_ANSWER_BYTES))

    def _connected(self) -> Client:
        """Return the client that all reads share; its pool opens connections again that the store has closed."""
        with self._connecting:
            if self._client is None:
                self._refuse_while_it_hangs()  # another read has found out meanwhile
                try:
                    client = connect(self._settings)
                except Exception as error:
                    self._note(error)
                    raise
                wait_s = self._settings.timeout_s
                client.timeout = Timeout(connect=min(wait_s, _CONNECT_S), read=wait_s)  # type: ignore[attr-defined]
                self._client = note_requests(client)
            return self._client


def _is_away(error: BaseException) -> bool:
    """Return True if the store could not be reached, did not answer, or is starting or stopping."""
    return _is_between(error) or any(isinstance(each, HTTPError) for each in causes(error))


def _is_between(error: BaseException) -> bool:
    return any(getattr(each, "code", None) == STARTS_OR_STOPS for each in causes(error))


def size_of(value: object, most: int) -> int:
    """Return the approximate memory of a value, in bytes. It stops counting above `most`."""
    seen: set[int] = set()
    left = [value]
    total = 0
    while left and total <= most:
        each = left.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | FunctionType):
            continue
        seen.add(id(each))
        total += sys.getsizeof(each)
        left += gc.get_referents(each)
    return total


def _key(function: Callable[..., object], arguments: tuple[Any, ...], options: dict[str, Any]) -> Hashable:
    return function, _digest(arguments, sorted(options.items()))


def _digest(*parts: object) -> bytes:
    """Return a key of fixed size, because parameters of a URL may be long."""
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()
