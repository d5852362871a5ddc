"""Read the streams of scrubbed events: the newest entries, those after a position, and new ones."""

import asyncio
import heapq
from collections.abc import Sequence

from assay_console.passing import Entry, Wanted, entry_of
from assay_console.stream_position import StreamPosition
from assay_runtime.connection import Client as Redis
from assay_schema.ids import entry_parts
from assay_schema.streams import EVENTS

#: Entries of one read. An entry may have some hundred KiB.
_READ = 32
_BLOCK_MS = 1_000
#: Seconds that Redis has for an answer to a read of new entries, which it owes after `_BLOCK_MS`.
_ANSWER_S = 4.0
#: Bytes of entries that a look back reads, at most.
LOOK_BACK_BYTES = 32 << 20


async def look_back(
    redis: Redis, shards: int, most: int, wanted: Wanted, limit: int
) -> tuple[list[Entry], StreamPosition]:
    """Return the newest entries of all shards, oldest first, and the position after them.

    Ends after `most` entries or 32 MiB of them, or with `limit` wanted ones of each shard.
    """
    lists, last = [], []
    for shard in range(shards):
        end, found, matching, size = "+", list[Entry](), 0, 0
        while len(found) < most // shards and matching < limit and size < LOOK_BACK_BYTES // shards:
            page = await redis.xrevrange(EVENTS.key(shard), end, "-", count=_READ)
            found += [entry_of(shard, _id(name), fields) for name, fields in page]
            size += sum(len(value) for _, fields in page for value in fields.values())
            matching += sum(map(wanted.has, found[-len(page) :])) if page else 0
            if len(page) < _READ:
                break
            end = f"({found[-1].entry_id}"
        last.append(found[0].entry_id if found else "0-0")
        lists.append(found[::-1])
    return list(heapq.merge(*lists, key=lambda each: entry_parts(each.entry_id))), tuple(last)


async def entries_between(redis: Redis, seen: list[str], until: Sequence[str]) -> list[Entry]:
    """Return the next entries after a position, up to another.

    Where a stream no longer has any of them, `seen` moves to the other position.
    """
    found: list[Entry] = []
    for shard, last in enumerate(until):
        if entry_parts(seen[shard]) >= entry_parts(last):
            continue
        page = await redis.xrange(EVENTS.key(shard), f"({seen[shard]}", last, count=_READ)
        if not page:  # trimmed since
            seen[shard] = last
        found += [entry_of(shard, _id(name), fields) for name, fields in page]
    return sorted(found, key=lambda each: entry_parts(each.entry_id))


async def is_trimmed(redis: Redis, seen: Sequence[str]) -> bool:
    """Return True if a stream begins after the position."""
    for shard, last in enumerate(seen):
        first = await redis.xrange(EVENTS.key(shard), "-", "+", count=1)
        if first and (0, 0) < entry_parts(last) < entry_parts(_id(first[0][0])):
            return True
    return False


async def new_entries(redis: Redis, shard: int, last: str) -> list[Entry]:
    """Wait up to a second for entries of a shard after an id.

    Raises `TimeoutError` if Redis hangs.
    """
    key = EVENTS.key(shard)
    async with asyncio.timeout(_ANSWER_S):
        answer = await redis.xread({key: last}, count=_READ, block=_BLOCK_MS)
    return [entry_of(shard, _id(name), fields) for name, fields in (answer[0][1] if answer else ())]


def _id(name: bytes | str) -> str:
    return name.decode() if isinstance(name, bytes) else name
