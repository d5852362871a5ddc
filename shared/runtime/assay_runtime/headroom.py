"""Back-pressure: a service that fills a stream waits while the next one is too far behind, so that Redis's memory stays bounded.

The scrubber stops passing on; raw entries then wait in `capture`, and above that stream's own high water the SDK waits in its spool.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from assay_runtime import metrics
from assay_runtime.connection import PASSING_ERRORS, Client
from assay_runtime.delivery import Consumer
from assay_runtime.lag import group_of
from assay_schema.settings import DeliverySettings
from assay_schema.streams import Stream

log = logging.getLogger(__name__)

#: Below this part of a mark the waiting ends.
ENOUGH = 0.9
#: Why a consumer waits while Redis does not say how full the next streams are.
UNKNOWN = "redis does not say how far behind the next service is"


@dataclass(frozen=True)
class Backlog:
    """What a group has still to finish: entries, and about how many bytes of Redis's memory they take."""

    entries: int
    bytes: int

    def over(self, settings: DeliverySettings, part: float = 1.0) -> str:
        """The setting that this is over, or ''."""
        if self.entries > settings.high_water_entries * part:
            return "delivery.high_water_entries"
        return "delivery.high_water_bytes" if self.bytes > settings.high_water_bytes * part else ""


async def backlog(client: Client, stream: Stream, shard: int, group: str, held_bytes: int) -> Backlog:
    """Of one shard. Reads no entry. What is kept after a group has finished it does not count, but for what `held_bytes` misses."""
    key = stream.key(shard)
    length = int(await client.xlen(key))
    if not length:
        return Backlog(0, 0)
    found = await group_of(client, stream, shard, group)
    entries = length if found is None else min(length, found.unfinished)
    size = int(
        await client.memory_usage(key, samples=0) or 0
    )  # of all: it samples the oldest, which may be unlike the rest
    # What is kept of the finished ones may be small, and what waits large. No more than `held_bytes` is kept.
    return Backlog(entries, max(size * entries // length, size - held_bytes) if entries else 0)


class Headroom:
    """A service's gate: holds consumers back while what they fill is over its high water. `streams` with the group that empties each."""

    def __init__(
        self,
        client: Client,
        consumers: Sequence[Consumer],
        streams: Sequence[tuple[Stream, str]],
        settings: DeliverySettings,
    ) -> None:
        self._client, self._consumers, self._streams, self._settings = client, consumers, streams, settings

    async def run(self) -> None:
        """Look once, at all shards at the same time. Raises `RedisError` for those that could not be looked at."""
        looks = [self._look(consumer) for consumer in self._consumers]
        for error in await asyncio.gather(*looks, return_exceptions=True):
            if error:
                raise error

    async def _look(self, consumer: Consumer) -> None:
        try:
            over = await self._over(consumer)
        except PASSING_ERRORS:
            # It may come back with anything in it, and one batch after another would go on top before the next look.
            await consumer.hold_back(consumer.held_back or UNKNOWN)
            raise
        if bool(over) != (consumer.held_back not in ("", UNKNOWN)):
            log.warning("holding back" if over else "no longer holding back", extra={"cause": over})
        await consumer.hold_back(over)

    async def _over(self, consumer: Consumer) -> str:
        """Why the consumer has to wait, or ''. The marks are of all the streams together."""
        total, largest, fills = Backlog(0, 0), -1, ("", "")
        for stream, group in self._streams:
            found = await backlog(self._client, stream, consumer.shard, group, self._settings.held_bytes)
            metrics.BACKLOG_BYTES.labels(stream.name, str(consumer.shard)).set(found.bytes)
            total = Backlog(total.entries + found.entries, total.bytes + found.bytes)
            if found.bytes > largest:
                largest, fills = found.bytes, (stream.key(consumer.shard), group)
        mark = total.over(self._settings, 1.0 if consumer.held_back in ("", UNKNOWN) else ENOUGH)
        return f"{fills[0]} is over {mark}: check that the {fills[1]} runs" if mark else ""
