"""The closed watermark of a shard, and trimming below it.

Watermark W: every capture entry with an `id` up to W is durably stored or recorded as a failure. Exports never read above it.
"""

import time
from collections import deque

from assay_runtime.connection import Client
from assay_runtime.scripts import QUIET, STRIDE, WATERMARK
from assay_schema.streams import CAPTURE, EVENTS, Stream, low_key, watermark_key

#: Seconds between two looks at shards without traffic: how far their watermark may be behind the clock.
QUIET_EVERY_S = 2.0
#: Most entries between two marks made of what earlier runs left.
STRIDE_ENTRIES = 500


class History:
    """Decides up to where a stream may be trimmed so that about `entries` stored ones stay. Pure; holds at most a mark for each of them."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._marks: deque[tuple[int, str]] = deque()

    def mark(self, stored: int, entry_id: str) -> str | None:
        """Note that `stored` entries in all are stored up to `entry_id`. Returns the id below which nothing need stay, if any."""
        if self._marks and self._marks[-1][0] == stored:
            self._marks.pop()  # nothing new was stored: an idle service must not collect marks
        self._marks.append((stored, entry_id))
        found = None
        while self._marks and self._marks[0][0] <= stored - self._entries:
            found = self._marks.popleft()[1]
        return found


class Watermark:
    """Reads and keeps the watermark of one shard. It never goes back, whoever asks and however often."""

    def __init__(self, client: Client, shard: int, group: str, history: int) -> None:
        self.shard = shard
        self._client, self._group = client, group
        self._script, self._stride = client.register_script(WATERMARK), client.register_script(STRIDE)
        self._keys = [EVENTS.key(shard), low_key(shard), watermark_key(shard)]
        self._history = History(history)
        self._steps = max(1, min(STRIDE_ENTRIES, history // 10))
        #: Stored entries that earlier runs left in the stream; None until they are counted.
        self._left: int | None = None

    async def advance(self, stored: int) -> int:
        """The watermark now. Trims events that are stored and no longer wanted for live tail; `stored` is this process's count."""
        watermark, entry_id = await self._script(keys=self._keys, args=[self._group])
        floor = None
        if self._left is None:
            left, floor = await self._count_left(entry_id)
            self._left = left - stored
        if entry_id and (found := self._history.mark(self._left + stored, entry_id.decode())):
            floor = found
        if floor:
            await self._client.xtrim(self._keys[0], minid=floor, approximate=True, limit=0)
        return int(watermark)

    async def _count_left(self, until: bytes) -> tuple[int, str | None]:
        """Count and mark what is stored already, and say up to where that is too much. Without it every restart would begin a history
        anew, and a service that is often restarted would never trim."""
        total, last, floor = 0, b"-", None
        while until:
            found, last = await self._stride(keys=self._keys[:1], args=[last, until, self._steps])
            if not found:
                break
            total += int(found)
            floor = self._history.mark(total, last.decode()) or floor
            last = b"(" + last
        return total, floor


async def trim_finished(client: Client, stream: Stream, shard: int, group: str) -> None:
    """Trim a stream that only one group reads up to what that group has finished.

    The delivered id is read before the pending ones: what is delivered in between is newer, so it cannot be cut.
    """
    key = stream.key(shard)
    delivered = {
        state["name"].decode(): state["last-delivered-id"].decode() for state in await client.xinfo_groups(key)
    }
    pending = await client.xpending_range(key, group, "-", "+", 1)
    if group in delivered:
        await client.xtrim(
            key, minid=pending[0]["message_id"].decode() if pending else delivered[group], approximate=True, limit=0
        )


class Quiet:
    """The scrubber's chore for shards without traffic: their watermark follows the clock (see the script)."""

    def __init__(self, client: Client, shards: int) -> None:
        self._script = client.register_script(QUIET)
        self._shards = shards
        self._next = 0.0

    async def run(self) -> None:
        """Look at every shard, once in `QUIET_EVERY_S`."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + QUIET_EVERY_S
        for shard in range(self._shards):
            await self._script(keys=[CAPTURE.key(shard), low_key(shard)], args=[shard, self._shards])
