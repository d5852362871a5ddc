"""Detect alerts that were removed from their stream before the notifier read them.

`XADD` cannot be granted without its trimming options, so whoever may append to `alerts` (judge, drift, operator) may
also empty it. Redis counts the entries ever added and the entries read by the group; the difference beyond the stream's
content was removed. After a restart of Redis the counts are invalid until the service has counted again, so only counts
of a Redis that was seen to be consistent are used.
"""

import logging

from assay_runtime import metrics
from assay_runtime.connection import Client
from assay_schema.streams import ALERTS, episodes_key

log = logging.getLogger(__name__)

#: KEYS: alerts, episodes. ARGV: group. Stores with the episodes the Redis with consistent counts and the number of
#: removed alerts already reported. Returns the number of newly removed alerts.
REMOVED = """
redis.replicate_commands()
local added, here = 0, string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
local info = redis.pcall('XINFO', 'STREAM', KEYS[1])
if info.err then return 0 end
for i = 1, #info, 2 do
  if info[i] == 'entries-added' then added = info[i + 1] end
end
local read
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local of = {}
  for i = 1, #group, 2 do of[group[i]] = group[i + 1] end
  if of.name == ARGV[1] then read = of['entries-read'] end
end
if not read or here == '' then return 0 end
local missing, told = added - redis.call('XLEN', KEYS[1]) - read, tonumber(redis.call('HGET', KEYS[2], '/removed') or '0')
if missing <= 0 then
  if redis.call('HGET', KEYS[2], '/redis') ~= here then redis.call('HSET', KEYS[2], '/redis', here) end
  if told > 0 then redis.call('HDEL', KEYS[2], '/removed') end
  return 0
end
if redis.call('HGET', KEYS[2], '/redis') ~= here or missing <= told then return 0 end
redis.call('HSET', KEYS[2], '/removed', missing)
return missing - told
"""


class RemovedAlerts:
    """Checks one shard, before the notifier reads it and then at every tick."""

    def __init__(self, client: Client, shard: int, group: str) -> None:
        self._script = client.register_script(REMOVED)
        self._keys = [ALERTS.key(shard), episodes_key(shard)]
        self._group = group
        self._shard = shard
        metrics.ALERTS_REMOVED.labels(str(shard))

    async def check(self) -> None:
        """Report alerts removed since the last check. Raises `RedisError`."""
        if found := int(await self._script(keys=self._keys, args=[self._group])):
            metrics.ALERTS_REMOVED.labels(str(self._shard)).inc(found)
            log.error(
                "%d alerts were removed before they were sent; every user that may append to alerts may also remove them: "
                "see assay drift status for open episodes, and change the passwords of judge, drift and operator unless this was intended",
                found,
                extra={"stream": self._keys[0], "entries": found},
            )
