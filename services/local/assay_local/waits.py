"""Wait for what other processes do, by polling."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from redis.asyncio import Redis

from assay_local.probes import StoreUnavailableError, lag, run_counts, stored_watermark
from assay_local.process_logs import ProcessLogs
from assay_local.processes import LocalStack

#: Time without progress after which missing events are reported, in seconds.
STALL_S = 60.0
_WATERMARK_WAIT_S = 60.0


async def until_met(condition: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    """Poll a condition until it is met or the time is over; return True if it was met."""
    deadline = time.monotonic() + seconds
    while not await condition():  # another process meets it, so polling is the only way
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.5)
    return True


async def until_accounted(system: LocalStack, service: str, total: int, since_ms: int, logs: ProcessLogs) -> None:
    """Wait until all events of a service are stored or failed, as long as there is progress."""
    store = system.store_queries("sre")
    seen, moved, said = -1, time.monotonic(), time.monotonic()
    while True:
        try:
            stored, failed = await run_counts(store, service, since_ms)
        except StoreUnavailableError as error:
            logs.announce(f"the store does not answer ({error}); retrying")
            stored, failed = {}, {}
        accounted = sum(stored.values()) + sum(failed.values())
        if accounted >= total:
            return
        now = time.monotonic()
        if accounted != seen:
            seen, moved = accounted, now
        if now - moved > STALL_S:
            logs.announce(
                f"no progress for {STALL_S:.0f} s: {accounted:,} of {total:,} events of {service} accounted for"
            )
            return
        if now - said > 2:
            said = now
            logs.announce(f"{accounted:,} of {total:,} events of {service} stored or failed")
        await asyncio.sleep(0.25)


async def until_watermark(system: LocalStack, admin: Redis) -> None:
    """Wait until the stored watermark has reached that of the scrubber, usually within a second."""
    store = system.store_queries("sre")
    deadline = time.monotonic() + _WATERMARK_WAIT_S
    while time.monotonic() < deadline:
        if await stored_watermark(store) >= (await lag(admin, system.shards)).low:
            return
        await asyncio.sleep(0.1)
