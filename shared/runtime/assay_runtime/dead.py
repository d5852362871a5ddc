"""Dead letters, in Redis: entries given up after too many deliveries. Reading, requeueing, dropping and expiring those of one shard.

An entry of `dead` has the fields it came with and those that say why it is there (see the script `BURY`). Its id in `dead` names it.
"""

import logging
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import NamedTuple

from redis.exceptions import NoPermissionError

from assay_runtime import metrics
from assay_runtime.connection import Client
from assay_runtime.each import each
from assay_runtime.scripts import REQUEUE
from assay_schema.settings import Settings
from assay_schema.streams import ALERTS, CAPTURE, DEAD, FAILURES, Stream

log = logging.getLogger(__name__)

#: Letters read at once, each of 1 MiB at most. What is held in memory is one page.
PAGE = 8
#: Letters dropped in one step.
DROP_AT_ONCE = 500
#: Seconds between two looks for letters that are too old.
EXPIRY_EVERY_S = 60.0
DAY_MS = 86_400_000

#: An id in `dead`, and the fields.
Letter = tuple[bytes, dict[bytes, bytes]]


class Move(NamedTuple):
    """A letter to be requeued: its id in `dead`, the stream it goes to, and what it says there."""

    letter_id: str
    target: Stream
    data: bytes


async def letters(client: Client, shard: int, first: str = "-") -> AsyncIterator[list[Letter]]:
    """The letters of a shard from an id on, in pages, oldest first. Ends with the newest that is there now, so that a letter which is
    requeued and given up again meanwhile does not come round."""
    key = DEAD.key(shard)
    newest: list[Letter] = await client.xrevrange(key, count=1)
    while newest and (page := await client.xrange(key, first, newest[0][0], count=PAGE)):
        yield page
        first = f"({page[-1][0].decode()}"


async def letter(client: Client, shard: int, letter_id: str) -> Letter | None:
    """One letter, if it is in this shard."""
    found: list[Letter] = await client.xrange(DEAD.key(shard), letter_id, letter_id)
    return found[0] if found else None


async def requeue(client: Client, shard: int, moves: Sequence[Move]) -> list[bool]:
    """Send letters on their way again, atomically; says of each whether it was still there. Each enters its stream exactly once, as a new
    entry with a new place in the log: what exports have passed by stays passed by."""
    keys = [DEAD.key(shard), CAPTURE.key(shard), FAILURES.key(shard), ALERTS.key(shard)]
    arguments: list[str | bytes] = []
    for move in moves:
        arguments += (move.letter_id, {CAPTURE: "c", FAILURES: "f", ALERTS: "a"}[move.target], move.data)
    # EVAL, not a loaded script: whoever requeues has no right to load one.
    return [bool(moved) for moved in await client.eval(REQUEUE, len(keys), *keys, *arguments)]


async def drop(client: Client, shard: int, letter_ids: Sequence[str]) -> int:
    """Delete letters; returns how many were still there."""
    dropped = 0
    for start in range(0, len(letter_ids), DROP_AT_ONCE):
        dropped += int(await client.xdel(DEAD.key(shard), *letter_ids[start : start + DROP_AT_ONCE]))
    return dropped


async def dead_bytes(client: Client, shard: int) -> int | None:
    """Bytes of Redis's memory that the dead letters of a shard take; None for a user of an older version, who may not ask."""
    try:
        return int(await client.memory_usage(DEAD.key(shard), samples=0) or 0)
    except NoPermissionError:
        return None


class Expiry:
    """A service's chore: letters older than `delivery.dead_days` are deleted, counted and logged. By Redis's clock, which dated them.

    They may hold text that was never scrubbed. Their rows in `capture_failures` stay.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._shards = settings.redis.shards
        self._days = settings.delivery.dead_days
        self._due = 0.0

    async def run(self) -> None:
        """Delete what is too old, at most once in `EXPIRY_EVERY_S`. Any service may do it, and several at once."""
        if time.monotonic() < self._due:
            return
        seconds, _ = await self._client.time()
        oldest = max(0, seconds * 1_000 - int(self._days * DAY_MS))
        self._due = time.monotonic() + EXPIRY_EVERY_S
        await each(range(self._shards), partial(self._expire, oldest))

    async def _expire(self, oldest: int, shard: int) -> None:
        # Exact: an approximate trim leaves entries of a node that is not full, for ever if nothing else dies.
        expired = await self._client.xtrim(DEAD.key(shard), minid=oldest, approximate=False)
        metrics.DEAD_LETTERS.labels(str(shard)).set(await self._client.xlen(DEAD.key(shard)))
        if (held := await dead_bytes(self._client, shard)) is not None:
            metrics.DEAD_BYTES.labels(str(shard)).set(held)
        if expired:
            metrics.ENTRIES.labels(DEAD.name, "expired").inc(expired)
            log.warning(
                "dead letters expired; delivery.dead_days says when",
                extra={"stream": DEAD.key(shard), "entries": expired},
            )
