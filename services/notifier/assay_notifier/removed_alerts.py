"""Detect alerts that were removed from their stream before the notifier read them.

`XADD` cannot be granted without its trimming options, so any identity that may append to `alerts` (judge, drift, operator) may
also empty it. Redis counts the entries ever added and the entries read by the group; the difference beyond the stream's
content was removed. After a restart of Redis the counts are invalid until the service has counted again, so only counts
of a Redis that was seen to be consistent are used.
"""

import logging

from assay_runtime import metrics
from assay_runtime.connection import Client
from assay_runtime.lua import script
from assay_schema.streams import ALERTS, episodes_key

log = logging.getLogger(__name__)

#: Count alerts that were removed before this group read them, each once.
REMOVED = script("assay_notifier", "removed")


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
