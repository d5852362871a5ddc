"""Follow the streams of scrubbed events with one reader of each shard, for many viewers.

The reader runs while someone watches. A position is the last id of each shard that a viewer has seen, as text; with it, a viewer
goes on after a restart of the console, of Redis or of its connection without a gap or a repetition, as far as the stream reaches back.
"""

import asyncio
import heapq
import logging
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Reversible
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from redis.exceptions import RedisError

from assay_console.passing import Entry, Passing, Wanted, entry_of
from assay_operations.errors import OperationError
from assay_runtime.connection import Client as Redis
from assay_runtime.connection import connect
from assay_schema.settings import RedisSettings
from assay_schema.streams import EVENTS

log = logging.getLogger(__name__)

#: Entries that are kept for the first screen of viewers, and entries that a slow viewer may be behind.
RING_MAX, QUEUE_MAX = 2_000, 500
#: Viewers at most; each holds a connection and a queue.
CLIENTS_MAX = 50
#: Entries of one read. An entry may have some hundred KiB.
_READ = 32
_BLOCK_MS = 1_000
_RETRY_FIRST_S, _RETRY_MAX_S = 0.1, 2.0
#: Seconds that a viewer waits for the readers to start before it is refused. Until then, the console does not see that it left.
_START_S = 10.0
#: Bytes of entries that the first screen looks at, at most: an entry can have some hundred KiB.
LOOK_BACK_BYTES = 32 << 20
_ID = re.compile(r"\d{1,20}-\d{1,20}")
StreamPosition = tuple[str, ...]


def parse_stream_position(text: str, shards: int) -> StreamPosition | None:
    """Return the position of a text; None if it is none, or of another number of shards. Pure."""
    ids = tuple(text.split(","))
    return ids if len(ids) == shards and all(_ID.fullmatch(each) for each in ids) else None


def order(entry_id: str) -> tuple[int, int]:
    """Return the key that sorts ids of entries. Pure."""
    ms, _, sequence = entry_id.partition("-")
    return int(ms), int(sequence)


@dataclass(eq=False)
class Viewer:
    """A queue of entries that one viewer wants."""

    wanted: Wanted
    queue: deque[Entry] = field(default_factory=deque)
    #: Entries that were dropped because the viewer was too slow, and are not told yet.
    skipped: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    #: Set when the console stops.
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, entry: Entry) -> None:
        """Add an entry if it is wanted. The oldest is dropped from a full queue."""
        if not self.wanted.has(entry):
            return
        if len(self.queue) >= QUEUE_MAX:
            self.queue.popleft()
            self.skipped += 1
        self.queue.append(entry)
        self.arrived.set()


@dataclass(frozen=True)
class Update:
    """An event for a viewer, a number of skipped ones, or neither, with the position after it."""

    position: str
    row: Passing | None = None
    skipped: int = 0
    #: The stream no longer has all entries after the viewer's position.
    trimmed: bool = False


class Live:
    """The readers and viewers of one process."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._shards = settings.shards
        self._viewers: set[Viewer] = set()
        self._readers: list[asyncio.Task[None]] = []
        self._redis: Redis | None = None
        #: Last entry that the reader of each shard has offered.
        self._last: list[str] = []
        self._ring: deque[Entry] = deque(maxlen=RING_MAX)
        self._changing = asyncio.Lock()
        #: Held by the page that looks back in the streams: it parses up to 2,000 entries.
        self._looking = asyncio.Lock()
        self._ending: asyncio.Task[None] | None = None
        self._closed = False
        #: True while Redis does not answer.
        self.away = False

    @property
    def viewers(self) -> int:
        """Number of viewers."""
        return len(self._viewers)

    async def newest(self, redis: Redis, wanted: Wanted, limit: int) -> tuple[list[Passing], str]:
        """Return the wanted ones of the last entries, newest first, and the position after them."""
        if not self._has_newest:
            async with self._looking:  # one page at a time, because parsing keeps everyone else waiting
                if not self._has_newest:
                    entries, last = await self._look_back(redis, RING_MAX, wanted, limit)
                    return _rows(entries, wanted, limit), ",".join(last)
        return _rows(self._ring, wanted, limit), ",".join(self._last)

    @property
    def _has_newest(self) -> bool:
        return bool(self._readers and self._ring)

    async def watch(self, wanted: Wanted, position: StreamPosition | None, quiet_s: float) -> AsyncGenerator[Update]:
        """Yield the position, then wanted events after it; after `quiet_s` without any, the position.

        The first position comes without waiting for events or for a Redis that went away, so that the response begins and a viewer
        that leaves is seen. Ends when the console stops. Raises `OperationError` if there are too many viewers, or Redis is away at the
        start.
        """
        viewer = Viewer(wanted)
        if len(self._viewers) >= CLIENTS_MAX:
            raise OperationError("unavailable", f"{CLIENTS_MAX} viewers watch already; close one, or use `assay tail`")
        self._viewers.add(viewer)  # before anything waits, so that the limit holds; it is offered entries from now on
        try:
            try:
                async with asyncio.timeout(_START_S):
                    await self._start()
            except (RedisError, OSError) as error:  # TimeoutError too
                raise OperationError(
                    "unavailable", f"Redis does not answer ({type(error).__name__})", "is it running? see redis.url"
                ) from None
            async for update in self._from(viewer, position, quiet_s):
                yield update
        finally:
            self._viewers.discard(viewer)
            if not self._viewers:
                # A viewer that leaves is cancelled, and must not wait.
                self._ending = asyncio.create_task(self._stop())

    async def close(self) -> None:
        """End all viewers and readers."""
        self._closed = True
        for viewer in self._viewers:
            viewer.closed.set()
            viewer.arrived.set()
        await self._stop()

    async def _from(self, viewer: Viewer, position: StreamPosition | None, quiet_s: float) -> AsyncIterator[Update]:
        seen = list(position or self._last)
        yield Update(",".join(seen))
        if position is not None:
            async for update in self._gap(viewer, seen):
                yield update
            yield Update(",".join(seen))
        while not viewer.closed.is_set():
            if not viewer.queue:
                viewer.arrived.clear()
                try:
                    async with asyncio.timeout(quiet_s):
                        await viewer.arrived.wait()
                except TimeoutError:
                    if not viewer.queue and not viewer.skipped:
                        seen[:] = self._last
                    yield Update(",".join(seen))
                continue
            skipped, viewer.skipped = viewer.skipped, 0
            entry = viewer.queue.popleft()
            if order(entry.entry_id) <= order(seen[entry.shard]):
                continue  # the gap was read up to here
            if skipped:
                yield Update(",".join(seen), skipped=skipped)
            seen[entry.shard] = entry.entry_id
            yield Update(",".join(seen), entry.row)

    async def _gap(self, viewer: Viewer, seen: list[str]) -> AsyncIterator[Update]:
        """Yield what came after a position, until the reader has no more; then the viewer's queue goes on.

        While Redis is away, yield the position before each attempt: it tells the viewer, and shows if it is still there.
        """
        redis = self._redis
        if redis is None:
            return
        compared, delay = False, _RETRY_FIRST_S
        while not viewer.closed.is_set():
            # What was queued meanwhile is in the gap too: it is read from the stream, where nothing is dropped.
            viewer.queue.clear()
            viewer.skipped = 0
            try:
                trimmed = not compared and await self._is_trimmed(redis, seen)
                found = await self._after(redis, seen)
            except (RedisError, OSError) as error:
                self._lost(error)
                yield Update(",".join(seen))
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await viewer.closed.wait()
                delay = min(delay * 2, _RETRY_MAX_S)
                continue
            self.away, delay = False, _RETRY_FIRST_S
            if trimmed:
                yield Update(",".join(seen), trimmed=True)
            compared = True
            if not found:
                if all(order(mine) >= order(theirs) for mine, theirs in zip(seen, self._last, strict=True)):
                    viewer.queue.clear()
                    viewer.skipped = 0
                    return
                continue
            for entry in found:
                seen[entry.shard] = entry.entry_id
                if viewer.wanted.has(entry):
                    yield Update(",".join(seen), entry.row)

    async def _is_trimmed(self, redis: Redis, seen: list[str]) -> bool:
        """Return True if a stream begins after the position."""
        for shard in range(self._shards):
            first = await redis.xrange(EVENTS.key(shard), "-", "+", count=1)
            if first and (0, 0) < order(seen[shard]) < order(_id(first[0][0])):
                return True
        return False

    async def _after(self, redis: Redis, seen: list[str]) -> list[Entry]:
        """Return the next entries after a position, up to those that the readers offered."""
        found: list[Entry] = []
        for shard in range(self._shards):
            last = self._last[shard]
            if order(seen[shard]) >= order(last):
                continue
            page = await redis.xrange(EVENTS.key(shard), f"({seen[shard]}", last, count=_READ)
            if not page:  # trimmed since
                seen[shard] = last
            found += [entry_of(shard, _id(name), fields) for name, fields in page]
        return sorted(found, key=lambda each: order(each.entry_id))

    async def _start(self) -> None:
        async with self._changing:
            if self._readers or self._closed:
                return
            self._redis = connect(self._settings)
            try:
                entries, self._last = await self._look_back(self._redis, RING_MAX, Wanted(), RING_MAX)
            except BaseException:  # also if the viewer waited too long
                redis, self._redis = self._redis, None
                await redis.aclose()
                raise
            self._ring.extend(entries)
            self._readers = [asyncio.create_task(self._read(shard, self._redis)) for shard in range(self._shards)]

    async def _stop(self) -> None:
        async with self._changing:
            if self._viewers and not self._closed:
                return  # someone came while the last one left
            readers, self._readers = self._readers, []
            redis, self._redis = self._redis, None
            self._ring.clear()
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
            if redis is not None:
                await redis.aclose()

    async def _look_back(self, redis: Redis, most: int, wanted: Wanted, limit: int) -> tuple[list[Entry], list[str]]:
        """Return the newest entries of all shards, oldest first, and the newest id of each shard.

        Ends after `most` entries or 32 MiB of them, or with `limit` wanted ones of each shard.
        """
        lists, last = [], []
        for shard in range(self._shards):
            end, found, matching, size = "+", list[Entry](), 0, 0
            while len(found) < most // self._shards and matching < limit and size < LOOK_BACK_BYTES // self._shards:
                page = await redis.xrevrange(EVENTS.key(shard), end, "-", count=_READ)
                found += [entry_of(shard, _id(name), fields) for name, fields in page]
                size += sum(len(value) for _, fields in page for value in fields.values())
                matching += sum(map(wanted.has, found[-len(page) :])) if page else 0
                if len(page) < _READ:
                    break
                end = f"({found[-1].entry_id}"
            last.append(found[0].entry_id if found else "0-0")
            lists.append(found[::-1])
        return list(heapq.merge(*lists, key=lambda each: order(each.entry_id))), last

    async def _read(self, shard: int, redis: Redis) -> None:
        """Offer the new entries of a shard to all viewers, without end. Redis may go and come again."""
        key = EVENTS.key(shard)
        while True:
            answer = await self._patiently(redis.xread, {key: self._last[shard]}, count=_READ, block=_BLOCK_MS)
            for name, fields in answer[0][1] if answer else ():
                entry = entry_of(shard, _id(name), fields)
                self._last[shard] = entry.entry_id
                self._ring.append(entry)
                for viewer in self._viewers:
                    viewer.offer(entry)

    async def _patiently(self, ask: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
        """Ask Redis until it answers."""
        delay = _RETRY_FIRST_S
        while True:
            try:
                answer = await ask(*arguments, **options)
            except (RedisError, OSError) as error:
                self._lost(error)
                await asyncio.sleep(delay)
                delay = min(delay * 2, _RETRY_MAX_S)
            else:
                self.away = False
                return answer

    def _lost(self, error: Exception) -> None:
        if not self.away:
            log.warning("Redis is unavailable; waiting for it", extra={"error_class": type(error).__name__})
        self.away = True


def _rows(entries: Reversible[Entry], wanted: Wanted, limit: int) -> list[Passing]:
    """Return the wanted ones, newest first."""
    found = (entry.row for entry in reversed(entries) if wanted.has(entry) and entry.row is not None)
    return list(islice(found, limit))


def _id(name: bytes | str) -> str:
    return name.decode() if isinstance(name, bytes) else name
