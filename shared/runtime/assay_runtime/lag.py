"""How many entries of a stream a group has not read, and how many it has not finished: the one place that says so. Always a number.

Redis counts both, but loses count of the unread when it is killed (its log does not hold the number of entries read), when a replica takes
over, and when somebody deletes entries that are not read yet. It then says nothing, or a number that stays wrong. So a service counts
anew what its group has read, and puts it right in Redis (`recount`); whoever looks without the right to do so takes what Redis says as
far as it can be so (`groups`).
"""

import time
from dataclasses import dataclass

from redis.exceptions import NoPermissionError, ResponseError

from assay_runtime.connection import Client, server_of
from assay_runtime.scripts import COUNTED, STRIDE
from assay_schema.streams import CAPTURE, EVENTS, Stream, low_key, watermark_key

#: Entries looked at in one step of counting, and how often it begins anew because the stream was trimmed meanwhile.
PAGE, TRIES = 500, 5
#: Seconds between two counts of a group whose number Redis does not keep though it is told.
RECOUNT_S = 5.0


@dataclass(frozen=True)
class Group:
    """What a consumer group has still to do."""

    consumers: int
    #: Entries read and not acknowledged.
    pending: int
    #: Entries not read. Where `counted` is false, Redis has lost count, and there are no more than these.
    unread: int
    counted: bool = True

    @property
    def unfinished(self) -> int:
        """Entries it has still to read or to acknowledge."""
        return self.unread + self.pending


async def group_of(client: Client, stream: Stream, shard: int, name: str) -> Group | None:
    """One group of a shard of a stream, if it is there."""
    return (await groups(client, stream, shard, name)).get(name)


async def groups(client: Client, stream: Stream, shard: int = 0, only: str | None = None) -> dict[str, Group]:
    """The groups of a shard of a stream, by name, or one; none if there is no stream. Reads no entry."""
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
        if stream is CAPTURE:  # what is finished is deleted
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
    """Whether the watermark says that the writer has nothing to do. Not for those who may not see it."""
    try:
        watermark, low = await client.get(watermark_key(shard)), await client.get(low_key(shard))
    except NoPermissionError:
        return False
    return low is not None and int(watermark or 0) >= int(low)


async def recount(client: Client, key: str, group: str) -> int | None:
    """Count what a group has read, and tell Redis, which goes on from there. Returns how many entries are unread, or None where trimming
    did not let it come to an end. Needs the rights of the group's own service.
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
    """What a service knows of its own group on a shard of a stream: counted at its start, when Redis came up anew, and while that does not
    say."""

    def __init__(self, client: Client, stream: Stream, shard: int, group: str) -> None:
        self._client, self._stream, self._shard, self._group = client, stream, shard, group
        #: Which Redis it was counted on, by its replication id.
        self._redis: str | None = None
        self._next = 0.0
        self._unread: int | None = None

    async def unread(self, seen: Group) -> int:
        """Entries that are not read, as far as `seen` does not say it."""
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
