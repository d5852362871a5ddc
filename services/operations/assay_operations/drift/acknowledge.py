"""Accept the level of an episode as the new baseline: `plan_acknowledge`, then `apply`."""

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from assay_operations.actor import Actor
from assay_operations.audit import Trail, redis_user
from assay_operations.errors import OperationError
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client


#: Seconds that `apply` waits for the service.
_WAIT_S = 15.0


@dataclass(frozen=True)
class Plan:
    """The open episode to acknowledge."""

    alert_id: str
    shard: int
    kind: str
    project: str
    #: Empty for a condition of a whole project.
    metric: str
    state: str


async def plan_acknowledge(client: "Client", settings: Settings, alert_id: str) -> Plan:
    """Find an open episode in the state of the drift service.

    Raises `OperationError` if there is none with this id.
    """
    from assay_operations.drift.explain import episode_named
    from assay_operations.drift.monitor import monitor_of

    identity = episode_named(alert_id)
    for shard in range(settings.redis.shards):
        found = (await monitor_of(client, settings, shard)).episode_named(identity)
        if found is None:
            continue
        subject, episode = found
        if not episode.open:
            raise OperationError("conflict", f"episode {identity} is closed already ({episode.state.value})")
        metric = subject.metric or ""
        return Plan(identity, shard, subject.kind.value, subject.project, metric, episode.state.value)
    raise OperationError(
        "not_found",
        f"no open episode {identity} can be acknowledged",
        "`assay alerts list` shows the open ones; --data names the data directory",
    )


async def apply(client: "Client", settings: Settings, plan: Plan, actor: Actor, trail: Trail) -> bool:
    """Acknowledge an episode. Return True if the service has processed it; if not, it will when it runs.

    Safe to repeat: the service ignores an episode that is closed.
    """
    from assay_schema.streams import acknowledged_key

    key, identity = acknowledged_key(plan.shard), redis_user(settings.redis)
    target = {"alert_id": plan.alert_id, "project": plan.project, "kind": plan.kind, "metric": plan.metric}
    async with trail.attempt("drift acknowledge", actor, identity=identity, target=target, planned=1) as attempt:
        told = {"at_ms": int(time.time() * 1000), "actor": actor.name, "comment": actor.comment}
        await client.hset(key, plan.alert_id, orjson.dumps(told))
        attempt.changed = 1
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        if not await client.hexists(key, plan.alert_id):
            return True
        await asyncio.sleep(0.2)
    return False
