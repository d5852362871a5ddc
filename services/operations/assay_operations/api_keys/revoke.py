"""Revoke a key, so that running gateways refuse it within seconds: `plan_revoke`, then `apply`."""

from dataclasses import dataclass
from pathlib import Path

from assay_access.api_keys import revocation
from assay_operations.actor import Actor
from assay_operations.api_keys.records import live_key, now, write
from assay_operations.audit import Trail, redis_user
from assay_operations.clients import settings_for, with_redis


@dataclass(frozen=True)
class Plan:
    """The key to revoke."""

    #: Data directory of the settings.
    data: Path
    key_id: str
    kind: str
    project: str
    name: str


def plan_revoke(data: Path, key_id: str) -> Plan:
    """Find a valid key by its id. Raises `OperationError` if there is none."""
    record = live_key(data, key_id)
    return Plan(data, record.id, record.kind.value, record.project, record.name)


def apply(plan: Plan, actor: Actor) -> None:
    """Revoke the key. It cannot be made valid again."""
    settings = settings_for("operator", plan.data)
    attempt = Trail(plan.data, settings.store).attempt(
        "keys revoke",
        actor,
        identity=redis_user(settings.redis),
        target={"key": plan.key_id, "kind": plan.kind, "project": plan.project},
        planned=1,
    )
    with attempt:
        with_redis(settings, lambda client: write(client, revocation(plan.key_id, now()), attempt))
