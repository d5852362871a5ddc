"""Alert episodes: a state machine that opens once, escalates once, and closes on evidence. Pure, without a clock.

    ok -> warn -> critical -> recovering -> resolved -> (cooldown) -> ok

A value that moves around a threshold opens one episode, not many: an episode never falls back from critical to warn, it leaves only after
a number of clean evaluations in a row, and what reopens within the cooldown waits for its end.
"""

from dataclasses import dataclass
from typing import Literal

from assay_schema.alerts import AlertState

Level = Literal["ok", "warn", "critical"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What an evaluation found at a moment (Unix ms)."""

    at_ms: float
    level: Level
    #: Whether the value is back above the exit threshold, which is higher than the one that raised the alert.
    clean: bool
    #: Whether this evaluation counts towards the clean ones: those at the full hour do, those after single samples do not.
    counts: bool = True
    #: Whether what came since the recovery began proves it.
    recovered: bool = True


@dataclass(slots=True)
class Episode:
    """Where a series stands. `number` counts its episodes, `sequence` the transitions of this one."""

    state: AlertState = AlertState.OK
    number: int = 0
    sequence: int = 0
    opened_ms: float = 0.0
    clean: int = 0
    cool_until_ms: float = 0.0
    #: The worse of warn and critical that the episode has been in.
    worst: AlertState = AlertState.OK
    #: When a clean evaluation last counted; only kept where evaluations come by the wall clock.
    counted_ms: float = 0.0

    @property
    def open(self) -> bool:
        """Whether somebody still has to care."""
        return self.state in (AlertState.WARN, AlertState.CRITICAL, AlertState.RECOVERING)


@dataclass(frozen=True, slots=True)
class Transition:
    """A step of an episode, to be told once."""

    previous: AlertState
    state: AlertState
    number: int
    sequence: int
    at_ms: float


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an episode waits: evaluations until it recovers, milliseconds until the next may open."""

    clean_evaluations: int
    cooldown_ms: float


def step(episode: Episode, reading: Reading, patience: Patience) -> Transition | None:
    """Advance an episode by one reading, in place; at most one transition."""
    wanted = AlertState(reading.level)
    if not episode.open:
        if wanted is AlertState.OK or reading.at_ms < episode.cool_until_ms:
            return None
        episode.number, episode.sequence, episode.opened_ms = episode.number + 1, 0, reading.at_ms
        episode.state = episode.worst = AlertState.OK
        return _move(episode, wanted, reading.at_ms)
    if wanted is AlertState.CRITICAL and episode.worst is AlertState.WARN:
        return _move(episode, AlertState.CRITICAL, reading.at_ms)
    if not reading.counts:
        return None
    if not reading.clean:
        episode.clean = 0
        return _move(episode, episode.worst, reading.at_ms) if episode.state is AlertState.RECOVERING else None
    episode.clean += 1
    if episode.clean < patience.clean_evaluations:
        return None
    if episode.state is not AlertState.RECOVERING:
        return _move(episode, AlertState.RECOVERING, reading.at_ms)
    return resolve(episode, reading.at_ms, patience) if reading.recovered else None


def resolve(episode: Episode, at_ms: float, patience: Patience) -> Transition | None:
    """Close an open episode: it recovered, or somebody accepted what is."""
    if not episode.open:
        return None
    episode.cool_until_ms = at_ms + patience.cooldown_ms
    return _move(episode, AlertState.RESOLVED, at_ms)


def _move(episode: Episode, state: AlertState, at_ms: float) -> Transition:
    previous, episode.state = episode.state, state
    episode.sequence += 1
    if state in (AlertState.WARN, AlertState.CRITICAL):
        episode.worst, episode.clean = state, 0
    return Transition(previous, state, episode.number, episode.sequence, at_ms)
