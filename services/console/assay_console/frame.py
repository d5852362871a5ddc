"""The frame of every page: projects, freshness, open alerts; each source may be away."""

import asyncio
import logging
import time
from dataclasses import dataclass
from datetime import datetime

from redis.exceptions import RedisError

from assay_console.page import Ask
from assay_console.reads import ROLLUP_S, BusyError
from assay_operations.errors import OperationError
from assay_operations.events.bounds import counted_to
from assay_operations.overview.frame import frame_facts
from assay_runtime.connection import Client as Redis
from assay_schema.streams import EVENTS

log = logging.getLogger(__name__)

#: Seconds that Redis has to name the newest event; the store's count says it otherwise.
_REDIS_S = 1.0
#: Seconds without an event after which the counts are said to stand still because of that.
IDLE_S = 120


@dataclass(frozen=True)
class Frame:
    """Content of the frame. `newest_age_s`: None without an event; `problem`: why nothing is known.

    `idle`: no event came since the counts were made, for `IDLE_S`.
    """

    projects: tuple[str, ...] = ()
    newest_age_s: float | None = None
    counted_to: datetime | None = None
    open_alerts: int = 0
    problem: str = ""
    idle: bool = False


async def frame_of(ask: Ask) -> Frame:
    """Return the content of the frame. It never fails: the page around which it is may be readable."""
    newest_ms = asyncio.create_task(_newest_ms(ask.redis, ask.settings.redis.shards))
    try:
        answer, counted = await asyncio.gather(
            ask.reads.ask_within(ROLLUP_S, frame_facts, ask.scope.project), ask.reads.ask_within(ROLLUP_S, counted_to)
        )
        stored = answer.value
        known = [
            at for at in (await newest_ms, stored.newest_at.timestamp() * 1000 if stored.newest_at else None) if at
        ]
        age = max(0.0, time.time() - max(known) / 1000) if known else None
        idle = bool(known and counted.value and max(known) < counted.value.timestamp() * 1000 and (age or 0) > IDLE_S)
        return Frame(stored.projects, age, counted.value, stored.open_alerts, idle=idle)
    except BusyError:
        return Frame(problem="the console is busy")
    except OperationError:
        return Frame(problem="the store does not answer")
    except Exception as error:  # noqa: BLE001 - the page is readable without its frame
        log.error("the frame of a page failed: %s", type(error).__name__)
        return Frame(problem="the state of the system is not known")
    finally:
        newest_ms.cancel()
        await asyncio.gather(newest_ms, return_exceptions=True)


async def _newest_ms(redis: Redis, shards: int) -> float | None:
    """Return when the newest scrubbed event came (Unix ms); None if Redis does not answer or has none."""
    try:
        async with asyncio.timeout(_REDIS_S):
            heads = await asyncio.gather(*(redis.xrevrange(EVENTS.key(shard), count=1) for shard in range(shards)))
    except (RedisError, OSError, TimeoutError):
        return None
    ids = [entries[0][0] for entries in heads if entries]
    return max((float(each.partition(b"-")[0]) for each in ids), default=None)
