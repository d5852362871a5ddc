"""Alerts of those who may hand them in and no more: from the inbox to the stream `alerts`, in order, each once."""

import contextlib
import logging

from redis.exceptions import NoPermissionError

from assay_runtime.connection import Client
from assay_runtime.scripts import ADMIT
from assay_schema.streams import ALERTS, alert_inbox_key

log = logging.getLogger(__name__)

#: Most alerts moved in one step: an inbox that somebody filled holds nothing else up.
ADMITTED_AT_ONCE = 100


class Inbox:
    """The inbox of one shard. It waits in Redis while no writer runs."""

    def __init__(self, client: Client, shard: int) -> None:
        self._admit = client.register_script(ADMIT)
        self._keys = [alert_inbox_key(shard), ALERTS.key(shard)]

    async def empty(self) -> None:
        """Move what is there. Raises `RedisError`."""
        with contextlib.suppress(NoPermissionError):  # a user of an older version, when nobody hands in anything yet
            _, refused = await self._admit(keys=self._keys, args=[ADMITTED_AT_ONCE])
            if refused:
                log.warning("%d alert(s) that were handed in are not of a nightly evaluation, and are refused", refused)
