"""Entries that a consumer holds, and the deliveries that Redis counts for them.

Redis counts a new entry's first delivery as it is read. Every later one is counted before the work, in case that kills
the process, and taken back from entries that are known to be sound.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from assay_runtime.connection import Client
from assay_runtime.entries import Entry
from assay_runtime.lifetime import Lifetime

#: An entry's id, and the Redis server that gave it (see `same_redis`).
Name = tuple[str, str]
#: Entries claimed in one step.
PAGE = 500


class Leases:
    """Held entries of one member of a group."""

    def __init__(self, client: Client, key: str, group: str, member: str, lifetime: Lifetime) -> None:
        self._client = client
        self._key = key
        self._group = group
        self._member = member
        self._lifetime = lifetime
        #: Held entries with the deliveries of earlier runs and other consumers; 0 for a new entry.
        self._held: dict[Name, int] = {}
        #: Held entries whose current delivery is already counted in Redis.
        self._counted: set[Name] = set()

    @property
    def names(self) -> frozenset[Name]:
        """Names of the held entries: waiting, being processed, or being finished."""
        return frozenset(self._held)

    @property
    def ids(self) -> set[str]:
        """Ids of the held entries."""
        return {entry_id for entry_id, _ in self._held}

    def holds(self, entry: Entry) -> bool:
        """True while an entry is held."""
        return entry.name in self._held

    def deliveries(self, entry: Entry) -> int:
        """Return the deliveries of a held entry before this one."""
        return self._held[entry.name]

    def hold(self, entries: Iterable[Entry], deliveries: int = 0) -> None:
        """Mark entries as held, so that they are not reclaimed from ourselves."""
        self._held.update((entry.name, deliveries) for entry in entries)

    def release(self, entries: Iterable[Entry]) -> None:
        """Forget entries that are finished or stay pending."""
        for entry in entries:
            self._held.pop(entry.name, None)
            self._counted.discard(entry.name)

    def keep_count(self, entry: Entry) -> None:
        """Leave the count of an entry that failed as it is."""
        self._counted.discard(entry.name)

    async def begin(self, batch: Sequence[Entry]) -> bool:
        """Count this delivery of redelivered entries. False if a stop comes first."""
        redelivered = [entry.name for entry in batch if self._held.get(entry.name)]
        self._counted.update(redelivered)
        return not redelivered or bool(await self._lifetime.retry(partial(self._count, redelivered, 1)))

    async def acquit(self, batch: Sequence[Entry]) -> None:
        """Undo the count of this delivery for sound entries: a later crash or stop is not their fault."""
        sound = [entry.name for entry in batch if entry.name in self._counted]
        self._counted.difference_update(sound)
        if sound:
            await self._lifetime.retry(partial(self._count, sound, 0))

    async def _count(self, names: Sequence[Name], current: int) -> int:
        """Set the delivery count of entries: the earlier count, plus `current`."""
        counts: dict[int, list[str]] = {}
        for name in names:
            counts.setdefault(self._held[name] + current, []).append(name[0])
        for deliveries, ids in counts.items():
            for start in range(0, len(ids), PAGE):
                await self.claim(ids[start : start + PAGE], deliveries=deliveries)
        return len(names)

    async def claim(self, ids: Sequence[str], *, idle_ms: int = 0, deliveries: int | None = None) -> list[str]:
        """Claim entries; returns those that are now ours. Claiming does not count as a delivery.

        `deliveries` sets their count.
        """
        claimed = await self._client.xclaim(
            self._key, self._group, self._member, idle_ms, ids, retrycount=deliveries, justid=True
        )
        return [entry_id.decode() for entry_id in claimed]

    async def renew(self) -> None:
        """Claim the held entries again, so that no other consumer takes them over."""
        ids = [entry_id for entry_id, _ in self._held]
        for start in range(0, len(ids), PAGE):
            await self.claim(ids[start : start + PAGE])
