"""Make a key for an HTTP client: `plan_create`, then `apply`."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from assay_access.api_keys import KeyKind, as_fields
from assay_operations.actor import Actor
from assay_operations.api_keys.records import NewKey, made, now, write
from assay_operations.audit import Trail, redis_user
from assay_operations.clients import settings_for, with_redis
from assay_operations.errors import OperationError


@dataclass(frozen=True)
class Plan:
    """The key to make."""

    #: Data directory of the settings.
    data: Path
    kind: KeyKind
    project: str
    name: str
    service: str | None
    origins: tuple[str, ...]
    events_per_s: float
    bytes_per_s: float
    #: Milliseconds until it expires; None: never.
    lifetime_ms: int | None


def plan_create(
    data: Path,
    kind: KeyKind,
    project: str,
    *,
    name: str = "",
    service: str | None = None,
    origins: tuple[str, ...] = (),
    events_per_s: float = 0,
    bytes_per_s: float = 0,
    lifetime_ms: int | None = None,
) -> Plan:
    """Check the facts of a new key. Raises `OperationError` naming the option that is invalid."""
    if origins and kind is not KeyKind.FEEDBACK:
        raise OperationError("invalid", "--origin is for keys of the kind feedback only: browsers use no other")
    plan = Plan(data, kind, project, name, service, origins, events_per_s, bytes_per_s, lifetime_ms)
    _key(plan)  # its facts are checked; this key is not kept
    return plan


def apply(plan: Plan, actor: Actor) -> NewKey:
    """Make the key and store its record. The key itself is only in the result."""
    settings = settings_for("operator", plan.data)
    key = _key(plan)
    attempt = Trail(plan.data, settings.store).attempt(
        "keys create",
        actor,
        identity=redis_user(settings.redis),
        target={"key": key.record.id, "kind": plan.kind.value, "project": plan.project}
        | ({"origins": plan.origins} if plan.origins else {}),
        planned=1,
    )
    with attempt:
        with_redis(settings, lambda client: write(client, as_fields(key.record), attempt))
    return key


def _key(plan: Plan) -> NewKey:
    ends = None if plan.lifetime_ms is None else now() + timedelta(milliseconds=plan.lifetime_ms)
    return made(
        plan.kind,
        project=plan.project,
        name=plan.name,
        service=plan.service,
        origins=plan.origins,
        events_per_s=plan.events_per_s,
        bytes_per_s=plan.bytes_per_s,
        expires_at=ends,
    )
