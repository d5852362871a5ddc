"""Requeue dead letters: `plan_requeue`, then `apply`."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.actor import Actor
from assay_operations.audit import Attempt, Trail, redis_user
from assay_operations.clients import with_redis
from assay_operations.dead_letters.choose import Choice, called
from assay_operations.dead_letters.letters import DeadLetter, Name, NotRequeueableError, digest
from assay_operations.operator_config import operator_settings
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client


@dataclass(frozen=True)
class Plan:
    """The letters that would be requeued."""

    #: Data directory of the settings.
    data: Path
    names: tuple[Name, ...]
    #: The given ids that do not exist.
    missing: tuple[Name, ...]
    #: Their number by stream.
    streams: Counter[str]
    #: A line about each selected letter that cannot be requeued.
    unfit: tuple[str, ...]
    #: The selection, for the audit record.
    target: dict[str, Any]
    #: Settings file of the operator; None: as a command finds it.
    config: Path | None = None

    @property
    def digest(self) -> str:
        """Name the letters in a few characters: a plan with one letter more, fewer or replaced has another."""
        return digest(self.names)


@dataclass
class Requeued:
    """The letters requeued so far: what is in it is done, also if the operation fails later."""

    #: Their number by stream.
    streams: Counter[str] = field(default_factory=Counter)
    #: A line about each planned letter that was not there any more.
    gone: list[str] = field(default_factory=list)


def plan_requeue(data: Path, chosen: Choice, config: Path | None = None) -> Plan:
    """Find the selected letters.

    `config`: settings file of the identity `operator`; None: as a command finds it.
    """
    settings = operator_settings(data, config)
    return with_redis(settings, lambda client: _find(client, settings, data, chosen, config))


async def _find(client: "Client", settings: Settings, data: Path, chosen: Choice, config: Path | None) -> Plan:
    names, streams, unfit = [], Counter[str](), []
    async for letter in chosen.letters(client, settings):
        try:
            stream, _ = letter.requeued()
        except NotRequeueableError as error:
            unfit.append(f"{called(letter, settings)} cannot be requeued: {error}; drop it")
        else:
            names.append(Name(letter.shard, letter.id))
            streams[stream.name] += 1
    return Plan(data, tuple(names), tuple(chosen.missing), streams, tuple(unfit), chosen.target, config)


def apply(plan: Plan, actor: Actor, *, progress: Requeued | None = None) -> Requeued:
    """Requeue the planned letters that still exist, page by page, and count them in `progress`.

    Each is sent once, also if others requeue it: it leaves `dead` in the same step.
    """
    done = Requeued() if progress is None else progress
    if not plan.names:
        return done
    settings = operator_settings(plan.data, plan.config)
    attempt = Trail(plan.data, settings.store).attempt(
        "dead requeue", actor, identity=redis_user(settings.redis), target=plan.target, planned=len(plan.names)
    )
    with attempt:
        with_redis(settings, lambda client: _requeue(client, settings, plan, attempt, done))
    return done


async def _requeue(client: "Client", settings: Settings, plan: Plan, attempt: Attempt, done: Requeued) -> None:
    for shard, page in _pages(plan.names):
        await _send(client, settings, shard, page, done)
        attempt.changed = done.streams.total()


def _pages(names: tuple[Name, ...]) -> Iterator[tuple[int, list[Name]]]:
    from assay_runtime.dead_letters import PAGE

    for shard, of_shard in groupby(names, key=lambda name: name.shard):
        page = list(of_shard)
        for start in range(0, len(page), PAGE):
            yield shard or 0, page[start : start + PAGE]


async def _send(client: "Client", settings: Settings, shard: int, names: list[Name], done: Requeued) -> None:
    from assay_runtime.dead_letters import Move, letter
    from assay_runtime.dead_letters import requeue as move

    found = await asyncio.gather(*(letter(client, shard, name.id) for name in names))
    letters = [DeadLetter.of(shard, *entry) for entry in found if entry]
    moves = [Move(one.id, *one.requeued()) for one in letters]
    moved = await move(client, shard, moves) if moves else []
    sent = {attempt.letter_id for attempt, done_now in zip(moves, moved, strict=True) if done_now}
    done.streams.update(attempt.target.name for attempt in moves if attempt.letter_id in sent)
    done.gone += [
        f"{_named(name, settings)} gone meanwhile: requeued, dropped or expired"
        for name in names
        if name.id not in sent
    ]


def _named(name: Name, settings: Settings) -> str:
    return str(name if settings.redis.shards > 1 else Name(None, name.id))
