"""Delete dead letters permanently: `plan_drop`, then `apply`."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay_operations.actor import Actor
from assay_operations.audit import Trail, redis_user
from assay_operations.dead_letters.choose import Choice
from assay_operations.dead_letters.letters import Name, tally
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client


@dataclass(frozen=True)
class Plan:
    """The letters that would be deleted."""

    names: list[Name]
    #: Counts by stage and reason, as text.
    tally: str
    #: The selection, for the audit record.
    target: dict[str, Any]


async def plan_drop(client: "Client", settings: Settings, chosen: Choice) -> Plan:
    """Find the selected letters."""
    doomed, counts = [], Counter[tuple[str, str]]()
    async for letter in chosen.letters(client, settings):
        doomed.append(Name(letter.shard, letter.id))
        counts[letter.stage, letter.reason] += 1
    return Plan(doomed, tally(counts), chosen.target)


async def apply(client: "Client", settings: Settings, plan: Plan, actor: Actor, trail: Trail) -> int:
    """Delete the planned letters that still exist. Return their number."""
    from assay_runtime.dead_letters import drop

    if not plan.names:
        return 0
    attempt = trail.attempt(
        "dead drop", actor, identity=redis_user(settings.redis), target=plan.target, planned=len(plan.names)
    )
    async with attempt:
        for shard in range(settings.redis.shards):
            names = [name.id for name in plan.names if name.shard == shard]
            attempt.changed += await drop(client, shard, names)
    return attempt.changed
