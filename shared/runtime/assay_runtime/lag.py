"""Lag of consumer groups: unread and unfinished entries, always as a number.

Redis counts both, but loses the count of unread entries when it is killed (its log does not contain the number of
entries read), when a replica takes over, and when unread entries are deleted. It then reports nothing, or a number that
stays wrong. A service therefore recounts the entries its group has read, and corrects the count in Redis (`recount`);
readers without this right use Redis's number as far as it is plausible (`groups`).
"""

import time
from dataclasses import dataclass

from redis.exceptions import NoPermissionError, ResponseError

from assay_runtime.connection import Client, server_of
from assay_runtime.scripts import COUNTED, STRIDE
from assay_schema.streams import CAPTURE, EVENTS, Stream, scrubbed_low_watermark_key, watermark_key

#: Entries examined in one step of counting, and restarts of the count because of trimming.
PAGE, TRIES = 500, 5
#: Seconds between recounts of a group whose number Redis does not keep.
RECOUNT_S = 5.0


@dataclass(frozen=True)
class Group:
    """Remaining work of a consumer group."""

    consumers: int
    #: Entries read and not acknowledged.
    pending: int
    #: Entries not read. If `counted` is false, Redis has lost count, and this is an upper bound.
    unread: int
    counted: bool = True

    @property
    def unfinished(self) -> int:
        """Entries still to be read or acknowledged."""
        return self.unread + self.pending


async def group_of(client: Client, stream: Stream, shard: int, name: str) -> Group | None:
    """Return one group of a shard of a stream, if it exists."""
    return (await groups(client, stream, shard, name)).get(name)


async def groups(client: Client, stream: Stream, shard: int = 0, only: str | None = None) -> dict[str, Group]:
    """Return the groups of a shard of a stream by name, or only one; none without a stream.

    Reads no entries.
    """
    key = stream.key(shard)
    try:
        states = await client.xinfo_groups(key)
    except ResponseError as error:
        if "no such key" not in str(error).lower():
            raise
        return {}
    length, found = int(await client.xlen(key)), {}
    for state in states:
        name, pending, lag = state["name"].decode(), int(state["pending"]), state.get("lag")
        if only not in (None, name):
            continue
        if stream is CAPTURE:  # finished entries are deleted
            unread, counted = max(0, length - pending), True
        else:
            unread, counted = length if lag is None else max(0, min(int(lag), length)), lag is not None
        if (
            stream is EVENTS
            and name == EVENTS.groups[0]
            and unread
            and not pending
            and await _all_stored(client, shard)
        ):
            unread, counted = 0, True
        found[name] = Group(int(state["consumers"]), pending, unread, counted)
    return found


async def _all_stored(client: Client, shard: int) -> bool:
    """True if the watermark shows that the writer is idle. False for users without the right to read it."""
    try:
        watermark, low = await client.get(watermark_key(shard)), await client.get(scrubbed_low_watermark_key(shard))
    except NoPermissionError:
        return False
    return low is not None and int(watermark or 0) >= int(low)


async def recount(client: Client, key: str, group: str) -> int | None:
    """Recount the entries that a group has read, and correct Redis, which continues from there.

    Returns the number of unread entries, or None if trimming interrupted the count. Needs the rights of the group's own
    service.
    """
    stride, counted = client.register_script(STRIDE), client.register_script(COUNTED)
    for _ in range(TRIES):
        delivered, state = b"0-0", b""
        last, read = b"-", 0
        while True:
            unread, delivered, state = await counted(keys=[key], args=[group, delivered, read, state])
            if int(unread) >= 0:
                return int(unread)
            if not delivered:
                break  # it was trimmed meanwhile
            while True:
                found, _, at = await stride(keys=[key], args=[last, delivered, PAGE])
                if not found:
                    break
                read, last = read + int(found), b"(" + at
    return None


class Count:
    """A service's count of its group on a shard of a stream.

    It recounts at its start, after a restart of Redis, and while Redis has no number.
    """

    def __init__(self, client: Client, stream: Stream, shard: int, group: str) -> None:
        self._client = client
        self._stream = stream
        self._shard = shard
        self._group = group
        #: The Redis server of the count, by replication id.
        self._redis: str | None = None
        self._next = 0.0
        self._unread: int | None = None

    async def unread(self, seen: Group) -> int:
        """Return the number of unread entries, beyond what `seen` reports."""
        if self._stream is CAPTURE:
            return seen.unread
        key = self._stream.key(self._shard)
        redis = (await server_of(self._client, self._shard).info("replication")).get("master_replid", "")
        if redis != self._redis or not seen.counted:
            if redis != self._redis or time.monotonic() >= self._next:
                self._unread = await recount(self._client, key, self._group)
                self._redis, self._next = redis, time.monotonic() + RECOUNT_S
            return seen.unread if self._unread is None else self._unread
        return seen.unread
