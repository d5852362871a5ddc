"""Binds entries to the Redis server that issued their ids.

A Redis may come back without the end of its log (killed between two writes of it, or replaced by a replica that had
less), with its clock behind or its stream ahead of the clock. It then gives the lost ids to other entries. A consumer
that finished entries by id alone would finish these instead, which no one has read. An entry is therefore identified by
its id and by the replication id of the Redis that it was read from, which changes with each restart and each failover.
A script that finishes entries refuses those of another Redis. The consumer then looks which of them this Redis has too,
byte for byte the same, finishes these, and releases the others.

An entry may have the replication id of an earlier Redis than it was read from: then the search for it finds nothing. It
never has that of a later one.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.exceptions import RedisError, ResponseError

from assay_runtime.connection import Client
from assay_runtime.entries import Entry
from assay_runtime.lua import OTHER_REDIS, script
from assay_schema.streams import FIELD

#: Maximum number of entries searched in one step.
FETCH_MOST = 500
#: The data of claimed entries, as many as fit in a read.
FETCH = script("assay_runtime", "fetch")


class OtherRedisError(RedisError):
    """The entries were read from another Redis than the one that should finish them. Nothing was changed."""


def guarded(client: Client, text: str) -> Callable[..., Awaitable[Any]]:
    """Register a script that raises `OtherRedisError` for another Redis's entries."""
    script = client.register_script(text)

    async def run(keys: Sequence[str], args: Sequence[Any]) -> Any:
        try:
            return await script(keys=keys, args=args)
        except ResponseError as error:
            if str(error).startswith(OTHER_REDIS):
                raise OtherRedisError(str(error)) from None
            raise

    return run


async def beside_here(client: Client, key: str, command: str, *arguments: Any, **named: Any) -> tuple[Any, str]:
    """Return the reply to a command about a key, and the Redis that gave it, in one round trip.

    `command` is a method of the client. The id of the Redis is read first: a change before the command is done only
    makes it look like an earlier one.
    """
    pipeline = client.pipeline(transaction=False, shard_hint=key)
    pipeline.info("replication")
    getattr(pipeline, command)(*arguments, **named)
    here, answer = await pipeline.execute(raise_on_error=False)
    if isinstance(answer, Exception):
        raise answer
    return answer, "" if isinstance(here, Exception) else str(here.get("master_replid", ""))


async def redis_here(client: Client, key: str = "") -> str:
    """Return the id of the Redis that currently has a key."""
    return (await beside_here(client, key, "ping"))[1]


class SameEntries:
    """The entries of a group's stream in the current Redis, read in bounded portions."""

    def __init__(self, client: Client, key: str, group: str, read_bytes: int) -> None:
        self._key = key
        self._group = group
        self._read_bytes = read_bytes
        self._fetch = client.register_script(FETCH)

    async def fetch(self, ids: Sequence[str]) -> tuple[str, list[bytes | None]]:
        """Return the id of this Redis and the data of the first entries that fit in one read.

        A missing entry is None.
        """
        here, *found = await self._fetch(keys=[self._key], args=[self._group, FIELD, self._read_bytes, *ids])
        return here.decode(), found

    async def among(self, entries: Sequence[Entry]) -> tuple[str, set[str]]:
        """Return the id of this Redis, and the ids of the entries that it has byte for byte the same."""
        redis, same, looked = "", set[str](), 0
        while looked < len(entries):
            here, found = await self.fetch([entry.id for entry in entries[looked : looked + FETCH_MOST]])
            if looked and here != redis:
                redis, same, looked = "", set(), 0  # it is yet another Redis
                continue
            redis = here
            for entry, data in zip(entries[looked:], found, strict=False):
                if data == entry.data:
                    same.add(entry.id)
            looked += len(found)
        return redis, same
