"""Take over pending entries of an earlier run, and of dead or stalled consumers."""

import contextlib
import logging
from collections.abc import Sequence

from redis.exceptions import RedisError

from assay_runtime import metrics
from assay_runtime.batcher import Batcher
from assay_runtime.connection import Client
from assay_runtime.dead_letter_writer import DeadLetterWriter
from assay_runtime.entries import Entry
from assay_runtime.leases import Leases
from assay_runtime.lifetime import Lifetime
from assay_runtime.same_redis import OtherRedisError, SameEntries, beside_here
from assay_schema.settings import DeliverySettings
from assay_schema.streams import Stream

log = logging.getLogger(__name__)

#: Entries examined in one step of a takeover.
PAGE = 500
#: Isolated deliveries of an entry after `max_deliveries`.
ISOLATED_DELIVERIES = 3
#: Seconds between attempts of a recovery.
RECOVERY_PAUSE_S = 0.5


class Reclaimer:
    """Claims pending entries that this consumer does not hold, and adds them to its batches."""

    def __init__(
        self,
        client: Client,
        stream: Stream,
        shard: int,
        group: str,
        *,
        leases: Leases,
        batcher: Batcher,
        dead_letters: DeadLetterWriter,
        same: SameEntries,
        lifetime: Lifetime,
        settings: DeliverySettings,
    ) -> None:
        self._client = client
        self._stream = stream
        self._key = stream.key(shard)
        self._group = group
        self._leases = leases
        self._batcher = batcher
        self._dead_letters = dead_letters
        self._same = same
        self._lifetime = lifetime
        self._max_deliveries = settings.max_deliveries

    async def recover(self, consumer: str, until: str) -> None:
        """Take over the entries up to an id that an earlier run of a consumer left pending."""
        while not self._lifetime.stopping:
            try:
                await self.take_over(consumer=consumer, idle_ms=0, until=until)
                return
            except RedisError as error:
                log.warning(
                    "recovery failed; retrying", extra={"stream": self._key, "error_class": type(error).__name__}
                )
                await self._lifetime.pause(RECOVERY_PAUSE_S)

    async def take_over(self, *, consumer: str | None, idle_ms: int, until: str = "+") -> None:
        """Claim pending entries that are not held here, page by page."""
        self._dead_letters.is_full = False  # an operator may have made room
        start = "-"
        while not self._lifetime.stopping:
            where = self._key, self._group, start, until, PAGE
            page, redis = await beside_here(
                self._client, self._key, "xpending_range", *where, consumername=consumer, idle=idle_ms or None
            )
            if not page:
                return
            held = self._leases.ids
            start = "(" + page[-1]["message_id"].decode()
            counts: dict[int, list[str]] = {}
            for item in page:
                if (entry_id := item["message_id"].decode()) not in held:
                    counts.setdefault(item["times_delivered"], []).append(entry_id)
            for deliveries, ids in counts.items():
                if deliveries < self._max_deliveries:
                    await self._redeliver(ids, idle_ms, deliveries)
                    continue
                for entry_id in ids:
                    await self._isolate(entry_id, deliveries, idle_ms, redis)

    async def _redeliver(self, ids: Sequence[str], idle_ms: int, deliveries: int) -> None:
        claimed = await self._leases.claim(ids, idle_ms=idle_ms)
        while claimed:
            entries = await self._read(claimed)
            self._leases.hold(entries, deliveries)
            if not await self._batcher.add(entries):
                return

    async def _isolate(self, entry_id: str, deliveries: int, idle_ms: int, redis: str) -> None:
        """Process an entry in isolation after its consumers died too often.

        Only an entry that kills its consumer again is dead-lettered, and none of its neighbours.
        """
        if self._lifetime.stopping:
            return  # entries not examined stay unchanged
        if deliveries >= self._max_deliveries + ISOLATED_DELIVERIES:
            await self._give_up(entry_id, deliveries, redis)
            return
        claimed = await self._leases.claim([entry_id], idle_ms=idle_ms)
        if not claimed or not (entries := await self._read(claimed)):
            return
        [entry] = entries
        self._leases.hold(entries, deliveries)
        isolation = await self._batcher.isolate(entry, released=lambda: not self._leases.holds(entry))
        if isolation.proved:
            # The sink takes it together with others: one by one, a few thousand would take minutes. Its earlier
            # count is forgiven.
            self._leases.hold(entries, 1)
            await self._leases.claim([entry_id], deliveries=1)
            await self._batcher.add(entries)

    async def _give_up(self, entry_id: str, deliveries: int, redis: str) -> None:
        if self._dead_letters.is_full:
            return
        here, [data] = await self._same.fetch([entry_id])
        if here == redis and data is not None:  # else it is gone, or not the entry whose deliveries were counted
            with contextlib.suppress(OtherRedisError):
                await self._dead_letters.write(Entry(entry_id, data, redis), deliveries)

    async def _read(self, ids: list[str]) -> list[Entry]:
        """Read the first of the claimed entries, as many as fit in one read; their ids leave the list.

        A deleted entry is acknowledged, because there is nothing left to process.
        """
        entries = []
        redis, found = await self._same.fetch(ids)
        for data in found:
            entry_id = ids.pop(0)
            if data is not None:
                entries.append(Entry(entry_id, data, redis))
        metrics.RECLAIMED.labels(self._stream.name).inc(len(entries))
        return entries
