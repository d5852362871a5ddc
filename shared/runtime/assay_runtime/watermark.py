"""The closed watermark of a shard, and trimming below it.

Watermark W: every capture entry with an `id` up to W is durably stored or recorded as a failure. Exports never read
above it.
"""

import time
from collections import deque

from redis.exceptions import NoPermissionError

from assay_runtime.connection import Client
from assay_runtime.each import each
from assay_runtime.scripts import QUIET, STRIDE, TRIM, WATERMARK
from assay_schema.ids import entry_parts
from assay_schema.settings import DeliverySettings
from assay_schema.streams import (
    CAPTURE,
    EVENTS,
    Stream,
    numbered_key,
    overflow_key,
    scrubbed_low_watermark_key,
    watermark_key,
)

#: Seconds between checks of shards without traffic: the maximum delay of their watermark.
QUIET_EVERY_S = 2.0
#: Maximum number of entries between two marks for entries of earlier runs.
STRIDE_ENTRIES = 500
#: Approximate maximum number of marks in a history.
MARKS_MOST = 10_000
#: Assumed size of an entry of a stream other than `events`, in bytes, and the number of entries checked in one trim.
SMALL_ENTRY_BYTES = 2_048
OLDEST_ENTRIES = 1_000
#: Milliseconds that replicas have to receive a watermark; a later check asks again.
WAIT_MS = 500
#: Maximum bytes of a stream held for a stopped group, unless the settings set another limit.
HELD_BYTES = DeliverySettings().held_bytes


class TrimPlanner:
    """Decides how far a stream may be trimmed so that about `entries` stored ones (or bytes) remain.

    Pure; the number of its marks is bounded.
    """

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._step = max(1, entries // MARKS_MOST)
        self._marks: deque[tuple[int, str]] = deque()

    def mark(self, stored: int, entry_id: str) -> str | None:
        """Record that `stored` entries in total are stored up to `entry_id`.

        Returns the id to trim below, if any.
        """
        if not self._marks or stored >= self._marks[-1][0] + self._step:  # an idle service must not collect marks
            self._marks.append((stored, entry_id))
        trim_below = None
        while self._marks and self._marks[0][0] <= stored - self._entries:
            trim_below = self._marks.popleft()[1]
        return trim_below


class Watermark:
    """Reads and stores the watermark of one shard, which never decreases."""

    def __init__(
        self, client: Client, shard: int, group: str, history: int, held_bytes: int = HELD_BYTES, replicas: int = 0
    ) -> None:
        self.shard = shard
        #: The shard's state in the store: its watermark (None if unknown) and the greatest `id` seen. Redis gets it, so
        #: that it does not issue such an `id` again.
        self.stored: int | None = None
        self.given = 0
        #: The Redis that answered last, by replication id, and whether it could be told.
        self.redis = b""
        self.told = True
        self._told_redis = b""
        self._client = client
        self._group = group
        self._replicas = replicas
        self._stride = client.register_script(STRIDE)
        self._cut = client.register_script(TRIM)
        self._safe = 0
        self._keys = [EVENTS.key(shard), scrubbed_low_watermark_key(shard), watermark_key(shard)]
        self._history = TrimPlanner(history)
        #: Maximum kept for live tail and for groups that have not finished it; anything beyond is trimmed anyway.
        self._held = TrimPlanner(held_bytes)
        self._floor = self._held_floor = "0-0"
        self._trimmed = "0-0"
        self._steps = max(1, min(STRIDE_ENTRIES, history // 10))
        #: Stored entries that earlier runs left in the stream; None until they are counted.
        self._left: int | None = None
        self._left_bytes = 0

    async def advance(self, stored: int, stored_bytes: int = 0) -> int:
        """Return the current watermark that enough replicas have, and trim stored events.

        Events are trimmed if they are stored, no longer needed for live tail, and finished by every existing group.
        `stored` and `stored_bytes` are this process's counts.
        """
        entry_id = await self._reach()
        if self._left is None:
            left, left_bytes = await self._count_left(entry_id)
            self._left, self._left_bytes = left - stored, left_bytes - stored_bytes
        if entry_id:
            self._mark(self._left + stored, self._left_bytes + stored_bytes, entry_id.decode())
        if max(self._floor, self._held_floor, key=entry_parts) != self._trimmed:
            await self._trim()
        return self._safe

    async def _reach(self) -> bytes:
        """Query the watermark, and report the store's state.

        Returns the id of the newest entry below which everything is stored.
        """
        stored = "" if self.stored is None else self.stored
        pipeline = self._client.pipeline(transaction=False, shard_hint=self._keys[0])
        pipeline.eval(WATERMARK, len(self._keys), *self._keys, self._group, stored, self.given, self._told_redis)
        if self._replicas:  # on this connection: the writes of another one may be on another server
            pipeline.execute_command("WAIT", self._replicas, WAIT_MS)
        answer, *have = await pipeline.execute(raise_on_error=False)
        if isinstance(answer, Exception):
            raise answer
        watermark, entry_id, self.redis, told = answer
        if self.stored is not None and told:
            self._told_redis = self.redis
        # A user of an earlier version lacks the right. This is no worse than before, and is shown.
        refused = bool(have) and isinstance(have[0], NoPermissionError)
        self.told = bool(told) and not refused
        if not have or refused or int(have[0]) >= self._replicas:
            self._safe = max(self._safe, int(watermark))
        return bytes(entry_id)

    def _mark(self, stored: int, stored_bytes: int, entry_id: str) -> None:
        self._floor = self._history.mark(stored, entry_id) or self._floor
        self._held_floor = self._held.mark(stored_bytes, entry_id) or self._held_floor

    async def _trim(self) -> None:
        # Marks are old: a Redis that lost the end of its log, or whose clock was set back, has later entries below
        # them.
        arguments = [self._group, self._floor, self._held_floor, "", ""]
        self._trimmed = (await self._cut(keys=self._keys[:1], args=arguments)).decode()

    async def _count_left(self, until: bytes) -> tuple[int, int]:
        """Count and mark entries that are already stored.

        Otherwise every restart would begin a new history, and a service that is often restarted would never trim.
        """
        total, total_bytes, last = 0, 0, b"-"
        while until:
            found, found_bytes, last = await self._stride(keys=self._keys[:1], args=[last, until, self._steps])
            if not found:
                break
            total, total_bytes = total + int(found), total_bytes + int(found_bytes)
            self._mark(total, total_bytes, last.decode())
            last = b"(" + last
        return total, total_bytes


async def trim_finished(client: Client, stream: Stream, shard: int, held_bytes: int = HELD_BYTES) -> None:
    """Trim a stream of small entries up to what all its groups have finished.

    The first group always keeps its unfinished entries. For the others, entries beyond about `held_bytes` are trimmed,
    oldest first.
    """
    arguments = [stream.groups[0], "", "", held_bytes // SMALL_ENTRY_BYTES, OLDEST_ENTRIES]
    await client.register_script(TRIM)(keys=[stream.key(shard)], args=arguments)


class IdleShardTicker:
    """Advances the watermark of shards without traffic with the clock (see the script `QUIET`).

    `await_writer` as in `forward_finish`.
    """

    def __init__(self, client: Client, shards: int, *, await_writer: bool = False) -> None:
        self._script = client.register_script(QUIET)
        self._shards = shards
        self._await_writer = await_writer
        self._next = 0.0

    async def run(self) -> None:
        """Check every shard, once in `QUIET_EVERY_S` seconds."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + QUIET_EVERY_S
        await each(range(self._shards), self._look)

    async def _look(self, shard: int) -> None:
        keys = [CAPTURE.key(shard), scrubbed_low_watermark_key(shard), overflow_key(shard), numbered_key(shard)]
        await self._script(keys=keys, args=[shard, self._shards, CAPTURE.groups[0], int(self._await_writer)])
