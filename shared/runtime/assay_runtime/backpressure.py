"""Back-pressure: a service waits while the next one is too far behind, to bound Redis's memory.

The scrubber stops forwarding; raw entries then wait in `capture`, and above that stream's high-water mark the SDK uses
its spool.
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

#: Share of a mark below which the wait ends.
ENOUGH = 0.9
#: Why a consumer waits while the lag of the next streams is unknown.
UNKNOWN = "redis does not report how far behind the next service is"


@dataclass(frozen=True)
class Backlog:
    """Unfinished work of a group: entries, and the approximate bytes of Redis's memory."""

    entries: int
    bytes: int

    def over(self, settings: DeliverySettings, part: float = 1.0) -> str:
        """Return the setting that this exceeds, or ''."""
        if self.entries > settings.high_water_entries * part:
            return "delivery.high_water_entries"
        return "delivery.high_water_bytes" if self.bytes > settings.high_water_bytes * part else ""


async def backlog(client: Client, stream: Stream, shard: int, group: str, held_bytes: int) -> Backlog:
    """Return the backlog of one shard, without reading entries.

    Entries kept after a group has finished them do not count, except beyond `held_bytes`.
    """
    key = stream.key(shard)
    length = int(await client.xlen(key))
    if not length:
        return Backlog(0, 0)
    group_state = await group_of(client, stream, shard, group)
    entries = length if group_state is None else min(length, group_state.unfinished)
    # Of all entries: by default it samples the oldest, which may differ from the rest.
    size = int(await client.memory_usage(key, samples=0) or 0)
    # Finished entries may be small, and waiting ones large. No more than `held_bytes` is kept.
    return Backlog(entries, max(size * entries // length, size - held_bytes) if entries else 0)


class Backpressure:
    """Holds consumers back while their target streams exceed a high-water mark.

    `streams` maps each target stream to the group that empties it.
    """

    def __init__(
        self,
        client: Client,
        consumers: Sequence[Consumer],
        streams: Sequence[tuple[Stream, str]],
        settings: DeliverySettings,
    ) -> None:
        self._client = client
        self._consumers = consumers
        self._streams = streams
        self._settings = settings

    async def run(self) -> None:
        """Check all shards in parallel. Raises `RedisError` for those that could not be checked."""
        looks = [self._look(consumer) for consumer in self._consumers]
        for error in await asyncio.gather(*looks, return_exceptions=True):
            if error:
                raise error

    async def _look(self, consumer: Consumer) -> None:
        try:
            over = await self._over(consumer)
        except PASSING_ERRORS:
            # It may return with any backlog, and one batch after another would be added before the next check.
            await consumer.hold_back(consumer.held_back or UNKNOWN)
            raise
        if bool(over) != (consumer.held_back not in ("", UNKNOWN)):
            log.warning("holding back" if over else "no longer holding back", extra={"cause": over})
        await consumer.hold_back(over)

    async def _over(self, consumer: Consumer) -> str:
        """Return why the consumer must wait, or ''. The marks apply to all streams together."""
        total, largest, fills = Backlog(0, 0), -1, ("", "")
        for stream, group in self._streams:
            waiting = await backlog(self._client, stream, consumer.shard, group, self._settings.held_bytes)
            metrics.BACKLOG_BYTES.labels(stream.name, str(consumer.shard)).set(waiting.bytes)
            total = Backlog(total.entries + waiting.entries, total.bytes + waiting.bytes)
            if waiting.bytes > largest:
                largest, fills = waiting.bytes, (stream.key(consumer.shard), group)
        mark = total.over(self._settings, 1.0 if consumer.held_back in ("", UNKNOWN) else ENOUGH)
        return f"{fills[0]} is over {mark}: check that the {fills[1]} runs" if mark else ""
