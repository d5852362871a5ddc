"""The frame of every page: projects, freshness, open alerts; each source may be away."""

import asyncio
import logging
import time
from dataclasses import dataclass
from datetime import datetime

from redis.exceptions import AuthenticationError, NoPermissionError, RedisError

from assay_console.page import Ask
from assay_console.reads import ROLLUP_S, BusyError
from assay_console.redis_reads import REDIS_S
from assay_operations.errors import OperationError
from assay_operations.events.bounds import counted_to
from assay_operations.overview.frame import FrameFacts, frame_facts
from assay_runtime.connection import Client as Redis
from assay_schema.streams import EVENTS

log = logging.getLogger(__name__)

#: Seconds without an event after which the counts are said to stand still because of that.
IDLE_S = 120


_STORE_AWAY = "the store does not answer"


@dataclass(frozen=True)
class Frame:
    """Content of the frame.

    `newest_age_s`: None without an event; `problem`: why nothing of the store is known.
    `redis_problem`: what is wrong with Redis; empty if it answers. `idle`: no event came since the counts were made, for `IDLE_S`.
    """

    projects: tuple[str, ...] = ()
    newest_age_s: float | None = None
    counted_to: datetime | None = None
    open_alerts: int = 0
    problem: str = ""
    redis_problem: str = ""
    idle: bool = False


async def frame_of(ask: Ask) -> Frame:
    """Return the content of the frame. It never fails: the page around which it is may be readable."""
    newest, (ms, redis_problem) = await asyncio.gather(_stored(ask), _newest(ask))
    if isinstance(newest, str):
        return Frame(problem=newest, redis_problem=redis_problem)
    stored, counted = newest
    known = [at for at in (ms, stored.newest_at.timestamp() * 1000 if stored.newest_at else None) if at]
    age = max(0.0, time.time() - max(known) / 1000) if known else None
    idle = bool(known and counted and max(known) < counted.timestamp() * 1000 and (age or 0) > IDLE_S)
    return Frame(stored.projects, age, counted, stored.open_alerts, redis_problem=redis_problem, idle=idle)


async def _stored(ask: Ask) -> tuple[FrameFacts, datetime | None] | str:
    """Return what the store says, or why it says nothing."""
    if ask.reads.away:  # an answer of some seconds ago would hide it
        return _STORE_AWAY
    try:
        facts, counted = await asyncio.gather(
            ask.reads.ask_within(ROLLUP_S, frame_facts, ask.scope.project), ask.reads.ask_within(ROLLUP_S, counted_to)
        )
    except BusyError:
        return "the console is busy"
    except OperationError:
        return _STORE_AWAY
    except Exception as error:  # noqa: BLE001 - the page is readable without its frame
        log.error("the frame of a page failed: %s", type(error).__name__)
        return "the state of the system is not known"
    return facts.value, counted.value


async def _newest(ask: Ask) -> tuple[float | None, str]:
    """Return when the newest scrubbed event came (Unix ms; None without one), and what is wrong with Redis."""
    try:
        return await ask.redis.ask_within(REDIS_S, _newest_ms, ask.settings.redis.shards), ""
    except (AuthenticationError, NoPermissionError):
        return None, "Redis refuses the console"
    except (RedisError, OSError, TimeoutError):
        return None, "Redis does not answer"


async def _newest_ms(redis: Redis, shards: int) -> float | None:
    heads = await asyncio.gather(*(redis.xrevrange(EVENTS.key(shard), count=1) for shard in range(shards)))
    ids = [entries[0][0] for entries in heads if entries]
    return max((float(each.partition(b"-")[0]) for each in ids), default=None)
