"""Moves submitted alerts from the inbox to the stream `alerts`, in order, each once.

The inbox is for users that may submit alerts but not append to the stream.
"""

import contextlib
import logging

from redis.exceptions import NoPermissionError

from assay_runtime.connection import Client
from assay_runtime.scripts import ADMIT
from assay_schema.streams import ALERTS, alert_inbox_key

log = logging.getLogger(__name__)

#: Maximum number of alerts moved in one step, so that a full inbox delays nothing else.
ADMITTED_AT_ONCE = 100


class Inbox:
    """The inbox of one shard. It waits in Redis while no writer runs."""

    def __init__(self, client: Client, shard: int) -> None:
        self._admit = client.register_script(ADMIT)
        self._keys = [alert_inbox_key(shard), ALERTS.key(shard)]

    async def empty(self) -> None:
        """Move all alerts in the inbox. Raises `RedisError`."""
        with contextlib.suppress(NoPermissionError):  # a user of an older version, when nothing is submitted yet
            _, refused = await self._admit(keys=self._keys, args=[ADMITTED_AT_ONCE])
            if refused:
                log.warning("%d submitted alert(s) are not from a nightly evaluation and were rejected", refused)
