"""Follow the streams of scrubbed events with one reader of each shard, for many viewers.

The reader runs while someone watches. A position is the last id of each shard that a viewer has seen, as text; with it, a viewer
goes on after a restart of the console, of Redis or of its connection without a gap or a repetition, as far as the stream reaches back.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Reversible
from contextlib import suppress
from itertools import islice

from redis.exceptions import RedisError

from assay_console.passing import Entry, Passing, Wanted
from assay_console.stream_position import StreamPosition
from assay_console.stream_reads import entries_between, is_trimmed, look_back, new_entries
from assay_console.viewer import Update, Viewer
from assay_operations.errors import OperationError
from assay_runtime.connection import Client as Redis
from assay_runtime.connection import connect
from assay_schema.ids import entry_parts
from assay_schema.settings import RedisSettings

log = logging.getLogger(__name__)

#: Entries that are kept for the first screen of viewers.
RING_MAX = 2_000
#: Viewers at most; each holds a connection and a queue.
CLIENTS_MAX = 50
_RETRY_FIRST_S, _RETRY_MAX_S = 0.1, 2.0
#: Seconds that a viewer waits for the readers to start before it is refused. Until then, the console does not see that it left.
_START_S = 10.0


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
                    entries, last = await look_back(redis, self._shards, RING_MAX, wanted, limit)
                    return _rows(entries, wanted, limit), ",".join(last)
        return _rows(self._ring, wanted, limit), ",".join(self._last)

    @property
    def _has_newest(self) -> bool:
        return bool(self._readers and self._ring)

    async def watch(self, wanted: Wanted, position: StreamPosition | None, quiet_s: float) -> AsyncGenerator[Update]:
        """Yield the position, then wanted events after it.

        The position comes again after `quiet_s` without any, and when Redis goes or comes.

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
        told_away = self.away
        while not viewer.closed.is_set():
            if not viewer.queue:
                viewer.arrived.clear()
                try:
                    async with asyncio.timeout(quiet_s if told_away == self.away else 0):
                        await viewer.arrived.wait()
                except TimeoutError:
                    if not viewer.queue and not viewer.skipped:
                        seen[:] = self._last
                    told_away = self.away
                    yield Update(",".join(seen))
                continue
            skipped, viewer.skipped = viewer.skipped, 0
            entry = viewer.queue.popleft()
            if entry_parts(entry.entry_id) <= entry_parts(seen[entry.shard]):
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
                trimmed = not compared and await is_trimmed(redis, seen)
                found = await entries_between(redis, seen, self._last)
            except (RedisError, OSError) as error:
                self._lost(error)
                yield Update(",".join(seen))
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await viewer.closed.wait()
                delay = min(delay * 2, _RETRY_MAX_S)
                continue
            self._answered()
            delay = _RETRY_FIRST_S
            if trimmed:
                yield Update(",".join(seen), trimmed=True)
            compared = True
            if not found:
                if all(entry_parts(mine) >= entry_parts(theirs) for mine, theirs in zip(seen, self._last, strict=True)):
                    viewer.queue.clear()
                    viewer.skipped = 0
                    return
                continue
            for entry in found:
                seen[entry.shard] = entry.entry_id
                if viewer.wanted.has(entry):
                    yield Update(",".join(seen), entry.row)

    async def _start(self) -> None:
        async with self._changing:
            if self._readers or self._closed:
                return
            self._redis = connect(self._settings)
            try:
                entries, last = await look_back(self._redis, self._shards, RING_MAX, Wanted(), RING_MAX)
            except BaseException:  # also if the viewer waited too long
                redis, self._redis = self._redis, None
                await redis.aclose()
                raise
            self._last = list(last)
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

    async def _read(self, shard: int, redis: Redis) -> None:
        """Offer the new entries of a shard to all viewers until it is cancelled. Redis may go and come again."""
        delay, task = _RETRY_FIRST_S, asyncio.current_task()
        while task is not None and not task.cancelling():  # redis-py can lose a cancellation that comes with an answer
            try:
                entries = await new_entries(redis, shard, self._last[shard])
            except (RedisError, OSError) as error:
                self._lost(error)
                await asyncio.sleep(delay)
                delay = min(delay * 2, _RETRY_MAX_S)
                continue
            self._answered()
            delay = _RETRY_FIRST_S
            for entry in entries:
                self._last[shard] = entry.entry_id
                self._ring.append(entry)
                for viewer in self._viewers:
                    viewer.offer(entry)

    def _lost(self, error: Exception) -> None:
        if not self.away:
            log.warning("Redis is unavailable; waiting for it", extra={"error_class": type(error).__name__})
            self._change(away=True)

    def _answered(self) -> None:
        if self.away:
            self._change(away=False)

    def _change(self, *, away: bool) -> None:
        """Tell all viewers at once, who may wait for events for a long time."""
        self.away = away
        for viewer in self._viewers:
            viewer.arrived.set()


def _rows(entries: Reversible[Entry], wanted: Wanted, limit: int) -> list[Passing]:
    """Return the wanted ones, newest first."""
    found = (entry.row for entry in reversed(entries) if wanted.has(entry) and entry.row is not None)
    return list(islice(found, limit))
