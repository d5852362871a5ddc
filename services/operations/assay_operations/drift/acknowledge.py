"""Accept the level of an episode as the new baseline."""

import asyncio
import time
from typing import TYPE_CHECKING

from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client


#: Seconds that `acknowledge` waits for the service.
_WAIT_S = 15.0


async def acknowledge(client: "Client", settings: Settings, alert_id: str) -> bool:
    """Acknowledge an episode. Return True if the service has processed it; if not, it will when it runs."""
    from assay_schema.streams import acknowledged_key

    keys = [acknowledged_key(shard) for shard in range(settings.redis.shards)]
    for key in keys:
        await client.hset(key, alert_id, str(int(time.time() * 1000)))
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        if not any([await client.hexists(key, alert_id) for key in keys]):
            return True
        await asyncio.sleep(0.2)
    return False
