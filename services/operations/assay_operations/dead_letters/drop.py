"""Delete dead letters permanently: `plan_drop`, then `apply`."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.actor import Actor
from assay_operations.audit import Attempt, Trail, redis_user
from assay_operations.clients import with_redis
from assay_operations.dead_letters.choose import Choice
from assay_operations.dead_letters.letters import Name, digest, tally
from assay_operations.operator_config import operator_settings
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client


@dataclass(frozen=True)
class Plan:
    """The letters that would be deleted."""

    #: Data directory of the settings.
    data: Path
    names: tuple[Name, ...]
    #: The given ids that do not exist.
    missing: tuple[Name, ...]
    #: Counts by stage and reason, as text.
    tally: str
    #: The selection, for the audit record.
    target: dict[str, Any]
    #: Settings file of the operator; None: as a command finds it.
    config: Path | None = None

    @property
    def digest(self) -> str:
        """Name the letters in a few characters: a plan with one letter more, fewer or replaced has another."""
        return digest(self.names)


def plan_drop(data: Path, chosen: Choice, config: Path | None = None) -> Plan:
    """Find the selected letters.

    `config`: settings file of the identity `operator`; None: as a command finds it.
    """
    settings = operator_settings(data, config)
    return with_redis(settings, lambda client: _find(client, settings, data, chosen, config))


async def _find(client: "Client", settings: Settings, data: Path, chosen: Choice, config: Path | None) -> Plan:
    doomed, counts = [], Counter[tuple[str, str]]()
    async for letter in chosen.letters(client, settings):
        doomed.append(Name(letter.shard, letter.id))
        counts[letter.stage, letter.reason] += 1
    return Plan(data, tuple(doomed), tuple(chosen.missing), tally(counts), chosen.target, config)


def apply(plan: Plan, actor: Actor) -> int:
    """Delete the planned letters that still exist. Return their number."""
    if not plan.names:
        return 0
    settings = operator_settings(plan.data, plan.config)
    attempt = Trail(plan.data, settings.store).attempt(
        "dead drop", actor, identity=redis_user(settings.redis), target=plan.target, planned=len(plan.names)
    )
    with attempt:
        with_redis(settings, lambda client: _drop(client, settings, plan, attempt))
    return attempt.changed


async def _drop(client: "Client", settings: Settings, plan: Plan, attempt: Attempt) -> None:
    from assay_runtime.dead_letters import drop

    for shard in range(settings.redis.shards):
        names = [name.id for name in plan.names if name.shard == shard]
        attempt.changed += await drop(client, shard, names)
