"""An entry belongs to the Redis that gave its id.

A Redis that comes back without the end of its log (killed between two writes of it, or replaced by a replica that had less), with its clock
behind or its stream ahead of the clock, gives the ids that it lost to other entries. Who finished by id alone what it read before would
finish these instead, which nobody has read. So an entry is named by its id and by the replication id of the Redis that it was read
from, which is another one after each restart and each failover. A script that finishes entries refuses those of another Redis; whoever
holds them then looks which of them this one has too, byte for byte the same, finishes these, and lets go of the others.

An entry may bear the name of an earlier Redis than it was read from: then it is looked for in vain. It never bears that of a later one.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.exceptions import RedisError, ResponseError

from assay_runtime.connection import Client
from assay_runtime.entries import Entry
from assay_schema.streams import FIELD

#: Which Redis this is: another one after each restart, each failover and each move of a slot. Empty where the server does not say.
HERE = """local here = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
"""
#: Entries that are looked for in one step, at most.
FETCH_MOST = 500
#: How the refusal begins.
OTHER_REDIS = "OTHERREDIS"
#: Ends a script whose entries another Redis gave. Needs the local `here`; ARGV[1] says which.
REFUSE_OTHERS = f"""if ARGV[1] ~= here then return redis.error_reply('{OTHER_REDIS} another Redis gave these entries') end
"""

#: The data of entries that were claimed, as far as they fit in a read. What is gone is acknowledged in the same step: the next command of a
#: connection may reach a master that was replaced, where it is not. KEYS: stream. ARGV: group, field, bytes that are enough, ids.
#: Returns which Redis this is, and a text for each of the first ids, or nil where the entry is gone; at least one.
FETCH = f"""
redis.replicate_commands()
{HERE}local found, bytes = {{here}}, 0
for i = 4, #ARGV do
  local entry, data = redis.call('XRANGE', KEYS[1], ARGV[i], ARGV[i])[1], false
  if entry then
    data = ''
    for n = 1, #entry[2], 2 do
      if entry[2][n] == ARGV[2] then data = entry[2][n + 1] end
    end
    bytes = bytes + #data
  else
    redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
  end
  found[#found + 1] = data
  if bytes >= tonumber(ARGV[3]) then break end
end
return found
"""


class OtherRedisError(RedisError):
    """These entries were read from another Redis than the one that is to finish them. Nothing was changed."""


def guarded(client: Client, text: str) -> Callable[..., Awaitable[Any]]:
    """A script that refuses another Redis's entries: it then raises `OtherRedisError`."""
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
    """The answer to a command (a method of the client) about a key, and which Redis gave it, in one round trip.

    The Redis is asked first: what changes before the command is done only makes it seem an earlier one.
    """
    pipeline = client.pipeline(transaction=False, shard_hint=key)
    pipeline.info("replication")
    getattr(pipeline, command)(*arguments, **named)
    here, answer = await pipeline.execute(raise_on_error=False)
    if isinstance(answer, Exception):
        raise answer
    return answer, "" if isinstance(here, Exception) else str(here.get("master_replid", ""))


async def redis_here(client: Client, key: str = "") -> str:
    """Which Redis has a key now."""
    return (await beside_here(client, key, "ping"))[1]


class SameEntries:
    """The entries of a group's stream as this Redis has them, read a bounded number of bytes at a time."""

    def __init__(self, client: Client, key: str, group: str, read_bytes: int) -> None:
        self._key, self._group, self._read_bytes = key, group, read_bytes
        self._fetch = client.register_script(FETCH)

    async def fetch(self, ids: Sequence[str]) -> tuple[str, list[bytes | None]]:
        """Which Redis this is, and the data of the first of these entries, as many as fit in one read; None for one that is gone."""
        here, *found = await self._fetch(keys=[self._key], args=[self._group, FIELD, self._read_bytes, *ids])
        return here.decode(), found

    async def among(self, entries: Sequence[Entry]) -> tuple[str, set[str]]:
        """Which Redis this is, and the ids of those entries that it has byte for byte the same."""
        redis, same, looked = "", set[str](), 0
        while looked < len(entries):
            here, found = await self.fetch([entry.id for entry in entries[looked : looked + FETCH_MOST]])
            if looked and here != redis:
                redis, same, looked = "", set(), 0  # it is yet another one
                continue
            redis = here
            for entry, data in zip(entries[looked:], found, strict=False):
                if data == entry.data:
                    same.add(entry.id)
            looked += len(found)
        return redis, same
