"""Accept the level of an episode as the new baseline: `plan_acknowledge`, then `apply`."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from assay_operations.actor import Actor
from assay_operations.audit import Attempt, Trail, redis_user
from assay_operations.clients import with_redis
from assay_operations.errors import OperationError
from assay_operations.operator_config import operator_settings
from assay_schema.settings import Settings
from assay_schema.streams import acknowledged_key

if TYPE_CHECKING:
    from assay_runtime.connection import Client


#: Seconds that `apply` waits for the service.
_WAIT_S = 15.0


@dataclass(frozen=True)
class Plan:
    """The open episode to acknowledge."""

    #: Data directory of the settings.
    data: Path
    alert_id: str
    shard: int
    kind: str
    project: str
    #: Empty for a condition of a whole project.
    metric: str
    state: str
    #: Settings file of the operator; None: as a command finds it.
    config: Path | None = None


def plan_acknowledge(data: Path, alert_id: str, config: Path | None = None) -> Plan:
    """Find an open episode in the state of the drift service.

    `config`: settings file of the identity `operator`; None: as a command finds it. Raises `OperationError` if there is no episode
    with this id.
    """
    settings = operator_settings(data, config)
    return with_redis(settings, lambda client: _planned(client, settings, data, alert_id, config))


async def _planned(client: "Client", settings: Settings, data: Path, alert_id: str, config: Path | None) -> Plan:
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
        return Plan(data, identity, shard, subject.kind.value, subject.project, metric, episode.state.value, config)
    raise OperationError(
        "not_found",
        f"no open episode {identity} can be acknowledged",
        "`assay alerts list` shows the open ones; --data names the data directory",
    )


def apply(plan: Plan, actor: Actor) -> bool:
    """Acknowledge an episode. Return True if the service has processed it; if not, it will when it runs.

    Safe to repeat: the service ignores an episode that is closed.
    """
    return apply_together([plan], actor)


def apply_together(plans: Sequence[Plan], actor: Actor) -> bool:
    """Acknowledge episodes, each with an audit record, and wait for the service once.

    Return True if it has processed all of them. Raises `OperationError`; the episodes before the error are acknowledged.
    """
    settings = operator_settings(plans[0].data, plans[0].config)
    trail = Trail(plans[0].data, settings.store)
    for plan in plans:
        attempt = trail.attempt(
            "drift acknowledge",
            actor,
            identity=redis_user(settings.redis),
            target={"alert_id": plan.alert_id, "project": plan.project, "kind": plan.kind, "metric": plan.metric},
            planned=1,
        )
        with attempt:
            with_redis(settings, partial(_note, plan=plan, actor=actor, attempt=attempt))
    return with_redis(settings, lambda client: _processed(client, plans))


async def _note(client: "Client", plan: Plan, actor: Actor, attempt: Attempt) -> None:
    told = {"at_ms": int(time.time() * 1000), "actor": actor.name, "comment": actor.comment}
    await client.hset(acknowledged_key(plan.shard), plan.alert_id, orjson.dumps(told))
    attempt.changed = 1


async def _processed(client: "Client", plans: Sequence[Plan]) -> bool:
    until = time.monotonic() + _WAIT_S
    left = list(plans)
    while time.monotonic() < until:
        left = [plan for plan in left if await client.hexists(acknowledged_key(plan.shard), plan.alert_id)]
        if not left:
            return True
        await asyncio.sleep(0.2)
    return False
