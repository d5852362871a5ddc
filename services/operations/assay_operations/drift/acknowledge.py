"""Accept the level of an episode as the new baseline: `plan_acknowledge`, then `apply`."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.actor import Actor
from assay_operations.audit import Attempt, Trail, redis_user
from assay_operations.clients import settings_for, with_redis
from assay_schema.settings import Settings
from assay_schema.streams import acknowledged_key

if TYPE_CHECKING:
    from assay_runtime.connection import Client


#: Seconds that `apply` waits for the service.
_WAIT_S = 15.0


@dataclass(frozen=True)
class Plan:
    """The episode to acknowledge."""

    #: Data directory of the settings.
    data: Path
    alert_id: str


def plan_acknowledge(data: Path, alert_id: str) -> Plan:
    """Check the id of an episode. Raises `OperationError`."""
    from assay_operations.drift.explain import episode_named

    return Plan(data, episode_named(alert_id))


def apply(plan: Plan, actor: Actor) -> bool:
    """Acknowledge an episode. Return True if the service has processed it; if not, it will when it runs.

    Safe to repeat: the service ignores an episode that is closed.
    """
    settings = settings_for("operator", plan.data)
    attempt = Trail(plan.data, settings.store).attempt(
        "drift acknowledge",
        actor,
        identity=redis_user(settings.redis),
        target={"alert_id": plan.alert_id},
        planned=1,
    )
    with attempt:
        with_redis(settings, lambda client: _note(client, settings, plan, attempt))
    return with_redis(settings, lambda client: _processed(client, settings, plan))


async def _note(client: "Client", settings: Settings, plan: Plan, attempt: Attempt) -> None:
    for key in _keys(settings):
        await client.hset(key, plan.alert_id, str(int(time.time() * 1000)))
    attempt.changed = 1


async def _processed(client: "Client", settings: Settings, plan: Plan) -> bool:
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        if not any([await client.hexists(key, plan.alert_id) for key in _keys(settings)]):
            return True
        await asyncio.sleep(0.2)
    return False


def _keys(settings: Settings) -> list[str]:
    return [acknowledged_key(shard) for shard in range(settings.redis.shards)]
