"""Replace a key by a new one, and let the old one expire: `plan_rotate`, then `apply`."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from assay_access.api_keys import KeyRecord, as_fields, expiry
from assay_operations.actor import Actor
from assay_operations.api_keys.records import NewKey, live_key, made, now, write
from assay_operations.audit import Trail, redis_user
from assay_operations.clients import settings_for, with_redis

#: Facts of a key that its successor takes over.
_KEPT = ("project", "name", "service", "origins", "events_per_s", "bytes_per_s")


@dataclass(frozen=True)
class Plan:
    """The key to replace."""

    #: Data directory of the settings.
    data: Path
    record: KeyRecord
    #: Milliseconds that the old key stays valid.
    grace_ms: int


@dataclass(frozen=True)
class Rotated:
    """The new key, and the time at which the old one expires."""

    new: NewKey
    old_id: str
    old_expires_at: datetime


def plan_rotate(data: Path, key_id: str, grace_ms: int) -> Plan:
    """Find a valid key by its id. Raises `OperationError` if there is none."""
    return Plan(data, live_key(data, key_id), grace_ms)


def apply(plan: Plan, actor: Actor) -> Rotated:
    """Make the new key, and let the old one expire after the grace period, in one step.

    The new key does not expire unless the old one would have: then it lives as long as the old one did.
    """
    settings = settings_for("operator", plan.data)
    old, moment = plan.record, now()
    ends = moment + timedelta(milliseconds=plan.grace_ms)
    lifetime = None if old.expires_at is None else moment + (old.expires_at - old.created_at)
    new = made(old.kind, **{fact: getattr(old, fact) for fact in _KEPT}, expires_at=lifetime)
    ends = ends if old.expires_at is None else min(ends, old.expires_at)
    attempt = Trail(plan.data, settings.store).attempt(
        "keys rotate",
        actor,
        identity=redis_user(settings.redis),
        target={"key": old.id, "new_key": new.record.id, "kind": old.kind.value, "project": old.project},
        planned=1,
    )
    with attempt:
        fields = as_fields(new.record) | expiry(old.id, ends)
        with_redis(settings, lambda client: write(client, fields, attempt))
    return Rotated(new, old.id, ends)
