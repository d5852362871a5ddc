"""Watermarks of the shards: advanced in Redis, stored in the store, recovered after a loss of Redis."""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Sequence

from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_runtime.entries import Entry, SinkUnavailableError
from assay_runtime.leases import Name
from assay_runtime.service import Service
from assay_runtime.watermark import Watermark, trim_finished
from assay_schema.failures import Reason
from assay_schema.ids import row_ms
from assay_schema.settings import Settings
from assay_schema.streams import EVENTS, Stream
from assay_writer.sink import STAGE, Sink

log = logging.getLogger(__name__)

#: Seconds for which a replaced master may continue to hand out events that its successor never had:
#: `min-replicas-max-lag` (10 in our documents), and a few seconds for both to notice. These events must be stored
#: before a watermark is.
REPLACED_S = 15.0
#: Seconds between queries to a store that does not report its ids.
ASK_AGAIN_S = 5.0
_ID = re.compile(rb'\{"id":(\d+)')


class Watermarks:
    """Watermarks and trimming, shard by shard. A shard whose Redis is away does not stop the others."""

    def __init__(self, service: Service, sink: Sink, trimmed: Sequence[Stream]) -> None:
        self._service = service
        self._sink = sink
        self._trimmed = trimmed
        settings = service.settings
        delivery = service.settings.delivery
        self._shards = [
            _Shard(
                Watermark(
                    service.client, shard, STAGE, delivery.history_entries, delivery.held_bytes, replicas(settings)
                )
            )
            for shard in range(settings.redis.shards)
        ]
        #: When to query the store; None once it has answered.
        self._ask_at: float | None = 0.0
        self._answer: asyncio.Task[None] | None = None
        self._refused = ""

    def reading(self, shard: int, entries: Sequence[Entry]) -> None:
        """Record that these events of a shard are about to be stored: their ids must not be reused."""
        ids = [int(found[1]) for entry in entries if (found := _ID.match(entry.data))]
        watermark = self._shards[shard].watermark
        watermark.given = max(watermark.given, *ids, 0)

    def written(self, shard: int, entries: Sequence[Entry]) -> None:
        """Record that these events of a shard are stored."""
        counts = self._shards[shard].written
        counts["entries"] += len(entries)
        counts["bytes"] += sum(len(entry.data) for entry in entries)

    def problems(self) -> list[str]:
        """List problems that an operator should fix although the writer works."""
        told = all(shard.watermark.told for shard in self._shards)
        return [problem for problem in (self._refused, "" if told else _REDIS_REFUSES) if problem]

    async def keep(self, shard: int) -> None:
        """Advance a shard's watermark, in Redis and then in the store; trim stored entries."""
        self._ask()
        own = self._shards[shard]
        reached = await own.watermark.advance(own.written["entries"], own.written["bytes"])
        # Ids may be ahead of the clock for a minute after a restart of Redis.
        metrics.WATERMARK_MS.labels(str(shard)).set(min(row_ms(reached), clock.now_ms()))
        for stream in self._trimmed:
            await trim_finished(self._service.client, stream, shard, self._service.settings.delivery.held_bytes)
        if self._waits(shard, own) or reached <= own.kept:
            return
        try:
            await asyncio.to_thread(self._sink.keep_watermark, shard, reached)
        except SinkUnavailableError as error:
            log.warning("the watermark is not stored yet", extra={"error_class": error.error_class})
        else:
            own.kept = reached
            if own.watermark.stored is not None:
                own.watermark.stored = reached

    def _waits(self, shard: int, own: "_Shard") -> bool:
        """True if an earlier Redis may have handed out events that this one does not know.

        They must be stored first. Otherwise an export that has passed their ids would never show them.
        """
        consumer = next(each for each in self._service.consumers if each.stream is EVENTS and each.shard == shard)
        if own.redis != own.watermark.redis:
            first, own.redis = not own.redis, own.watermark.redis
            replicated = self._service.settings.redis.mode != "standalone"
            own.wait_until = None if first else time.monotonic() + (REPLACED_S if replicated else 0)
        if own.wait_until is not None:
            if time.monotonic() < own.wait_until:
                return True
            own.wait_until, own.unknown = None, consumer.held
        own.unknown &= consumer.held
        return bool(own.unknown)

    def _ask(self) -> None:
        """Query the store once for its ids. Only the steps that need the answer wait for it."""
        if self._answer is not None and self._answer.done():
            self._answer.result()  # a bug is raised and reported by the caller
            self._answer = None
        if self._answer is None and self._ask_at is not None and time.monotonic() >= self._ask_at:
            self._answer = asyncio.create_task(self._ask_the_store())

    async def _ask_the_store(self) -> None:
        try:
            stored, greatest = await asyncio.to_thread(self._sink.numbers)
            for shard in set(range(len(self._shards))) - stored.keys():
                # Exports use the lowest watermark of all shards.
                await asyncio.to_thread(self._sink.keep_watermark, shard, 0)
        except SinkUnavailableError as error:
            self._ask_at = time.monotonic() + ASK_AGAIN_S
            self._refused = _STORE_REFUSES if error.reason is Reason.RLS_REJECT else ""
            log.warning("the store does not report its ids", extra={"error_class": error.error_class})
            return
        for shard, own in enumerate(self._shards):
            own.watermark.stored = own.kept = max(own.kept, stored.get(shard, 0))
            own.watermark.given = max(own.watermark.given, greatest)
        self._ask_at, self._refused = None, ""


class _Shard:
    """State of one shard."""

    def __init__(self, watermark: Watermark) -> None:
        self.watermark = watermark
        #: The watermark that this process has stored, or found there.
        self.kept = 0
        #: Entries and bytes stored by this process.
        self.written: Counter[str] = Counter()
        #: The Redis seen last, until when its watermark waits for events of an earlier one, and those events still
        #: pending.
        self.redis = b""
        self.wait_until: float | None = None
        self.unknown: frozenset[Name] = frozenset()


_STORE_REFUSES = (
    "the store's user is not allowed to read watermarks and IDs; without them a Redis that lost its data may give an id twice: "
    "load deploy/clickhouse/users.d/assay.xml"
)
_REDIS_REFUSES = (
    "Redis's user is not allowed to set the low watermark, or to WAIT; without these a Redis that lost its data may give an id twice: "
    "load deploy/redis/users.acl.template"
)


def replicas(settings: Settings) -> int:
    """Return the number of replicas that must have a watermark before it is stored."""
    return settings.delivery.watermark_replicas if settings.redis.mode == "sentinel" else settings.redis.replicas
