"""Alert episodes: a state machine that opens once, escalates once and closes on evidence. Pure.

    ok -> warn -> critical -> recovering -> resolved -> (cooldown) -> ok

A value that moves around a threshold opens one episode, not many. An episode never falls back from critical to warn,
it closes only after a number of consecutive clean evaluations, and it cannot reopen before the cooldown has ended.
"""

from dataclasses import dataclass
from typing import Literal

from assay_schema.alerts import AlertState

Level = Literal["ok", "warn", "critical"]


@dataclass(frozen=True, slots=True)
class Reading:
    """Result of an evaluation at one moment (Unix ms)."""

    at_ms: float
    level: Level
    #: True if the value is back above the exit threshold, which is higher than the alert threshold.
    clean: bool
    #: True if this evaluation counts towards the clean ones: one at a full hour, not one after a single sample.
    counts: bool = True
    #: True if the samples since the recovery began prove it.
    recovered: bool = True


@dataclass(slots=True)
class Episode:
    """State of a series. `number` counts its episodes, `sequence` the transitions of this one."""

    state: AlertState = AlertState.OK
    number: int = 0
    sequence: int = 0
    opened_ms: float = 0.0
    clean: int = 0
    cool_until_ms: float = 0.0
    #: The worst state of the episode so far: warn or critical.
    worst: AlertState = AlertState.OK
    #: Time of the last clean evaluation that counted; used only where evaluations follow the wall clock.
    counted_ms: float = 0.0

    @property
    def open(self) -> bool:
        """True while the episode is in warn, critical or recovering."""
        return self.state in (AlertState.WARN, AlertState.CRITICAL, AlertState.RECOVERING)


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition of an episode, to be published once."""

    previous: AlertState
    state: AlertState
    number: int
    sequence: int
    at_ms: float


@dataclass(frozen=True, slots=True)
class Hysteresis:
    """Delays of an episode: evaluations until it recovers, and milliseconds until the next may open."""

    clean_evaluations: int
    cooldown_ms: float


def step(episode: Episode, reading: Reading, hysteresis: Hysteresis) -> Transition | None:
    """Advance an episode by one reading, in place. Returns the transition, if any."""
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
    if episode.clean < hysteresis.clean_evaluations:
        return None
    if episode.state is not AlertState.RECOVERING:
        return _move(episode, AlertState.RECOVERING, reading.at_ms)
    return resolve(episode, reading.at_ms, hysteresis) if reading.recovered else None


def resolve(episode: Episode, at_ms: float, hysteresis: Hysteresis) -> Transition | None:
    """Close an open episode because it recovered or an operator acknowledged it."""
    if not episode.open:
        return None
    episode.cool_until_ms = at_ms + hysteresis.cooldown_ms
    return _move(episode, AlertState.RESOLVED, at_ms)


def repeat(episode: Episode, at_ms: float) -> Transition:
    """Publish the state of an open episode once more, in place, because its figures are out of date."""
    return _move(episode, episode.state, at_ms)


def _move(episode: Episode, state: AlertState, at_ms: float) -> Transition:
    previous, episode.state = episode.state, state
    episode.sequence += 1
    if state in (AlertState.WARN, AlertState.CRITICAL):
        episode.worst, episode.clean = state, 0
    return Transition(previous, state, episode.number, episode.sequence, at_ms)
