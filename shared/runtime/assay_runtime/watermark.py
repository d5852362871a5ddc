"""The closed watermark of a shard, and trimming below it.

Watermark W: every capture entry with an `id` up to W is durably stored or recorded as a failure. Exports never read above it.
"""

from collections import deque

from assay_runtime.connection import Client
from assay_runtime.scripts import WATERMARK
from assay_schema.streams import EVENTS, Stream, low_key, watermark_key


class History:
    """Decides up to where a stream may be trimmed so that about `entries` stored ones stay. Pure; holds a mark for every call."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._marks: deque[tuple[int, str]] = deque()

    def mark(self, stored: int, entry_id: str) -> str | None:
        """Note that `stored` entries in all are stored up to `entry_id`. Returns the id below which nothing need stay, if any."""
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
        self._script = client.register_script(WATERMARK)
        self._keys = [EVENTS.key(shard), low_key(shard), watermark_key(shard)]
        self._history = History(history)

    async def advance(self, stored: int) -> int:
        """The watermark now. Trims events that are stored and no longer wanted for live tail; `stored` is this process's count."""
        watermark, entry_id = await self._script(keys=self._keys, args=[self._group])
        if entry_id and (floor := self._history.mark(stored, entry_id.decode())):
            await self._client.xtrim(self._keys[0], minid=floor, approximate=True)
        return int(watermark)


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
            key, minid=pending[0]["message_id"].decode() if pending else delivered[group], approximate=True
        )
