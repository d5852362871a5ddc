"""The writer's chore for each shard: advance its watermark in Redis, keep it in the store, and tell Redis which numbers the store has."""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Sequence

from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_runtime.delivery import Name
from assay_runtime.entries import Entry, SinkUnavailableError
from assay_runtime.service import Service
from assay_runtime.watermark import Watermark, trim_finished
from assay_schema.failures import Reason
from assay_schema.ids import row_ms
from assay_schema.settings import Settings
from assay_schema.streams import EVENTS, Stream
from assay_writer.sink import STAGE, Sink

log = logging.getLogger(__name__)

#: Seconds for which a master that was replaced may go on and hand out events that its successor never had: `min-replicas-max-lag`
#: (10 in our documents), and a few for both to notice. They must be stored before a watermark is.
REPLACED_S = 15.0
#: Seconds between two questions to a store that does not say which numbers it has.
ASK_AGAIN_S = 5.0
_ID = re.compile(rb'\{"id":(\d+)')


class Watermarks:
    """Watermarks and trimming, shard by shard: one whose Redis is away stops no other."""

    def __init__(self, service: Service, sink: Sink, trimmed: Sequence[Stream]) -> None:
        self._service, self._sink, self._trimmed = service, sink, trimmed
        settings, delivery = service.settings, service.settings.delivery
        self._shards = [
            _Shard(
                Watermark(
                    service.client, shard, STAGE, delivery.history_entries, delivery.held_bytes, replicas(settings)
                )
            )
            for shard in range(settings.redis.shards)
        ]
        #: When to ask the store; None once it has answered.
        self._ask_at: float | None = 0.0
        self._answer: asyncio.Task[None] | None = None
        self._refused = ""

    def reading(self, shard: int, entries: Sequence[Entry]) -> None:
        """These events of a shard are about to be stored: no number of theirs may be given again."""
        ids = [int(found[1]) for entry in entries if (found := _ID.match(entry.data))]
        watermark = self._shards[shard].watermark
        watermark.given = max(watermark.given, *ids, 0)

    def written(self, shard: int, entries: Sequence[Entry]) -> None:
        """These events of a shard are stored."""
        counts = self._shards[shard].written
        counts["entries"] += len(entries)
        counts["bytes"] += sum(len(entry.data) for entry in entries)

    def problems(self) -> list[str]:
        """What somebody should mend though the writer does its work."""
        told = all(shard.watermark.told for shard in self._shards)
        return [problem for problem in (self._refused, "" if told else _REDIS_REFUSES) if problem]

    async def keep(self, shard: int) -> None:
        """Advance a shard's watermark, in Redis and then in the store; trim what is stored."""
        self._ask()
        own = self._shards[shard]
        reached = await own.watermark.advance(own.written["entries"], own.written["bytes"])
        # Numbers may be ahead of the clock for a minute after Redis came up anew.
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
        """Whether there may be events that an earlier Redis handed out and this one does not know: they are stored first, or an export
        that has passed their numbers would never show them."""
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
        """Ask the store once which numbers it has. Nothing waits for its answer but what needs it."""
        if self._answer is not None and self._answer.done():
            self._answer.result()  # a defect is the chore's, and told
            self._answer = None
        if self._answer is None and self._ask_at is not None and time.monotonic() >= self._ask_at:
            self._answer = asyncio.create_task(self._ask_the_store())

    async def _ask_the_store(self) -> None:
        try:
            stored, greatest = await asyncio.to_thread(self._sink.numbers)
            for shard in set(range(len(self._shards))) - stored.keys():
                # The least of all shards is what exports go by.
                await asyncio.to_thread(self._sink.keep_watermark, shard, 0)
        except SinkUnavailableError as error:
            self._ask_at = time.monotonic() + ASK_AGAIN_S
            self._refused = _STORE_REFUSES if error.reason is Reason.RLS_REJECT else ""
            log.warning("the store does not say which numbers it has", extra={"error_class": error.error_class})
            return
        for shard, own in enumerate(self._shards):
            own.watermark.stored = own.kept = max(own.kept, stored.get(shard, 0))
            own.watermark.given = max(own.watermark.given, greatest)
        self._ask_at, self._refused = None, ""


class _Shard:
    """What is known of a shard."""

    def __init__(self, watermark: Watermark) -> None:
        self.watermark = watermark
        #: The watermark that this process has stored, or found there.
        self.kept = 0
        #: Entries and bytes stored by this process.
        self.written: Counter[str] = Counter()
        #: Which Redis was seen last, until when its watermark waits for what an earlier one handed out, and what of that is still held.
        self.redis = b""
        self.wait_until: float | None = None
        self.unknown: frozenset[Name] = frozenset()


_STORE_REFUSES = (
    "the store's user may not read watermarks and ids, without which a Redis that lost its data may give an id twice: "
    "load deploy/clickhouse/users.d/assay.xml"
)
_REDIS_REFUSES = (
    "Redis's user may not set the low watermark, or not WAIT, without which a Redis that lost its data may give an id twice: "
    "load deploy/redis/users.acl.template"
)


def replicas(settings: Settings) -> int:
    """How many replicas must have a watermark before it is stored."""
    return settings.delivery.watermark_replicas if settings.redis.mode == "sentinel" else settings.redis.replicas
