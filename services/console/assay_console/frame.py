"""The frame of every page: projects, freshness, open alerts; each source may be away."""

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime

from redis.exceptions import RedisError

from assay_console.page import Ask
from assay_console.reads import ROLLUP_S
from assay_operations.errors import OperationError
from assay_operations.events.bounds import counted_to
from assay_operations.overview.frame import frame
from assay_runtime.connection import Client as Redis
from assay_schema.streams import EVENTS

#: Seconds that Redis has to name the newest event; the store's count says it otherwise.
_REDIS_S = 1.0


@dataclass(frozen=True)
class Shown:
    """Content of the frame. `newest_age_s` is None if no event is known."""

    projects: tuple[str, ...]
    newest_age_s: float | None
    counted_to: datetime | None
    open_alerts: int


async def shown(ask: Ask) -> Shown | None:
    """Return the content of the frame; None if the store is away."""
    newest_ms = asyncio.create_task(_newest_ms(ask.redis, ask.settings.redis.shards))
    try:
        answer, counted = await asyncio.gather(
            ask.reads.ask_within(ROLLUP_S, frame, ask.scope.project), ask.reads.ask_within(ROLLUP_S, counted_to)
        )
    except OperationError:
        newest_ms.cancel()
        await asyncio.gather(newest_ms, return_exceptions=True)
        return None
    stored = answer.value
    known = [at for at in (await newest_ms, stored.newest_at.timestamp() * 1000 if stored.newest_at else None) if at]
    age = max(0.0, time.time() - max(known) / 1000) if known else None
    return Shown(stored.projects, age, counted.value, stored.open_alerts)


async def _newest_ms(redis: Redis, shards: int) -> float | None:
    """Return when the newest scrubbed event came (Unix ms); None if Redis does not answer or has none."""
    try:
        async with asyncio.timeout(_REDIS_S):
            heads = await asyncio.gather(*(redis.xrevrange(EVENTS.key(shard), count=1) for shard in range(shards)))
    except (RedisError, OSError, TimeoutError):
        return None
    ids = [entries[0][0] for entries in heads if entries]
    return max((float(each.partition(b"-")[0]) for each in ids), default=None)
