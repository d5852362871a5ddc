"""Accept the level of an episode as the new baseline: `plan_acknowledge`, then `apply`."""

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay_operations.actor import Actor
from assay_operations.audit import Trail, redis_user
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client


#: Seconds that `apply` waits for the service.
_WAIT_S = 15.0


@dataclass(frozen=True)
class Plan:
    """The episode to acknowledge."""

    alert_id: str


def plan_acknowledge(alert_id: str) -> Plan:
    """Check the id of an episode. Raises `OperationError`."""
    from assay_operations.drift.explain import episode_named

    return Plan(episode_named(alert_id))


async def apply(client: "Client", settings: Settings, plan: Plan, actor: Actor, trail: Trail) -> bool:
    """Acknowledge an episode. Return True if the service has processed it; if not, it will when it runs.

    Safe to repeat: the service ignores an episode that is closed.
    """
    from assay_schema.streams import acknowledged_key

    keys = [acknowledged_key(shard) for shard in range(settings.redis.shards)]
    target, identity = {"alert_id": plan.alert_id}, redis_user(settings.redis)
    async with trail.attempt("drift acknowledge", actor, identity=identity, target=target, planned=1) as attempt:
        for key in keys:
            await client.hset(key, plan.alert_id, str(int(time.time() * 1000)))
        attempt.changed = 1
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        if not any([await client.hexists(key, plan.alert_id) for key in keys]):
            return True
        await asyncio.sleep(0.2)
    return False
