"""Accept what an episode reports as the new normal."""

import asyncio
import time
from typing import TYPE_CHECKING

from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client


#: How long `acknowledge` waits for the service to take note, in seconds.
_WAIT_S = 15.0


async def acknowledge(client: "Client", settings: Settings, alert_id: str) -> bool:
    """Tell the drift service of it. Returns whether the service has taken note; without one it will when it runs."""
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
