"""Dead letters of one shard in Redis: reading, requeueing, dropping and expiring.

A dead letter is an entry given up after too many deliveries. An entry of `dead` has its original fields and those with
the reason (see the script `DEAD_LETTER`). Its id in `dead` identifies it.
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
from assay_schema.streams import ALERTS, CAPTURE, DEAD, FAILURES, SPANS, Stream

log = logging.getLogger(__name__)

#: Letters read at once, each of 1 MiB at most. Only one page is in memory.
PAGE = 8
#: Letters dropped in one step.
DROP_AT_ONCE = 500
#: Seconds between searches for expired letters.
EXPIRY_EVERY_S = 60.0
DAY_MS = 86_400_000

#: An id in `dead`, and the fields.
Letter = tuple[bytes, dict[bytes, bytes]]


class Move(NamedTuple):
    """A letter to be requeued: its id in `dead`, its target stream, and its data there."""

    letter_id: str
    target: Stream
    data: bytes


async def letters(client: Client, shard: int, first: str = "-") -> AsyncIterator[list[Letter]]:
    """Yield the letters of a shard from an id on, in pages, oldest first.

    Ends with the newest letter at the start, so that a letter that is requeued and given up again meanwhile does not
    appear twice.
    """
    key = DEAD.key(shard)
    newest: list[Letter] = await client.xrevrange(key, count=1)
    while newest and (page := await client.xrange(key, first, newest[0][0], count=PAGE)):
        yield page
        first = f"({page[-1][0].decode()}"


async def letter(client: Client, shard: int, letter_id: str) -> Letter | None:
    """Return one letter, if it is in this shard."""
    entries: list[Letter] = await client.xrange(DEAD.key(shard), letter_id, letter_id)
    return entries[0] if entries else None


async def requeue(client: Client, shard: int, moves: Sequence[Move]) -> list[bool]:
    """Requeue letters atomically; returns for each whether it was still there.

    Each enters its stream exactly once, as a new entry with a new position in the log. Exports that have passed this
    position do not change.
    """
    keys = [DEAD.key(shard), CAPTURE.key(shard), FAILURES.key(shard), ALERTS.key(shard), SPANS.key(shard)]
    arguments: list[str | bytes] = []
    for move in moves:
        arguments += (move.letter_id, {CAPTURE: "c", FAILURES: "f", ALERTS: "a", SPANS: "s"}[move.target], move.data)
    # EVAL, not a loaded script: users who requeue cannot load one.
    return [bool(moved) for moved in await client.eval(REQUEUE, len(keys), *keys, *arguments)]


async def drop(client: Client, shard: int, letter_ids: Sequence[str]) -> int:
    """Delete letters; returns the number that were still there."""
    dropped = 0
    for start in range(0, len(letter_ids), DROP_AT_ONCE):
        dropped += int(await client.xdel(DEAD.key(shard), *letter_ids[start : start + DROP_AT_ONCE]))
    return dropped


async def dead_bytes(client: Client, shard: int) -> int | None:
    """Return the bytes of Redis's memory used by a shard's dead letters.

    None for a user of an older version, which lacks the right to ask.
    """
    try:
        return int(await client.memory_usage(DEAD.key(shard), samples=0) or 0)
    except NoPermissionError:
        return None


class Expiry:
    """Periodic deletion of letters older than `delivery.dead_days`, counted and logged.

    Their age is by Redis's clock, which dated them. Letters may contain unscrubbed text. Their rows in
    `capture_failures` stay.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._shards = settings.redis.shards
        self._days = settings.delivery.dead_days
        self._due = 0.0

    async def run(self) -> None:
        """Delete expired letters, at most once in `EXPIRY_EVERY_S` seconds.

        Any number of services may do this.
        """
        if time.monotonic() < self._due:
            return
        seconds, _ = await self._client.time()
        oldest = max(0, seconds * 1_000 - int(self._days * DAY_MS))
        self._due = time.monotonic() + EXPIRY_EVERY_S
        await each(range(self._shards), partial(self._expire, oldest))

    async def _expire(self, oldest: int, shard: int) -> None:
        # Exact: an approximate trim would keep entries of a node that is not full, indefinitely if there are no new
        # dead letters.
        expired = await self._client.xtrim(DEAD.key(shard), minid=oldest, approximate=False)
        metrics.DEAD_LETTERS.labels(str(shard)).set(await self._client.xlen(DEAD.key(shard)))
        if (held := await dead_bytes(self._client, shard)) is not None:
            metrics.DEAD_BYTES.labels(str(shard)).set(held)
        if expired:
            metrics.ENTRIES.labels(DEAD.name, "expired").inc(expired)
            log.warning(
                "dead letters expired after delivery.dead_days",
                extra={"stream": DEAD.key(shard), "entries": expired},
            )
