"""What a service's pure core takes and gives: entries in, outcomes out."""

import contextlib
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from assay_runtime.clock import clock
from assay_schema.failures import Failure, Reason
from assay_schema.ids import AHEAD_MAX_MS, entry_parts
from assay_schema.validation import identity_of


class Entry(NamedTuple):
    """One stream entry: its id in the log, its JSON, and which Redis gave it (see `same_redis`)."""

    id: str
    data: bytes
    redis: str = ""

    @property
    def name(self) -> tuple[str, str]:
        """What tells it from every other: another Redis may give its id again."""
        return self.id, self.redis


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one entry. With neither `event` nor `failure` it is simply done (stored)."""

    entry_id: str
    #: JSON of the event to pass on, without its `id`.
    event: bytes | None = None
    #: Why it is given up.
    failure: Failure | None = None
    #: Whether it is kept as a dead letter, to be requeued when somebody has mended what it failed of.
    keep: bool = False


#: A service's work: outcomes for the entries it finished. An entry without an outcome stays pending and is delivered again.
Process = Callable[[Sequence[Entry]], Awaitable[Sequence[Outcome]]]


_acquit: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("acquit", default=None)


async def acquit() -> None:
    """For a service's work: the entries are sound, only their sink is waited for. If the process dies from here on, none is blamed.

    A slow sink takes far longer than the work. Without this, whoever restarts a service in an outage would blame what it holds.
    """
    if say := _acquit.get():
        await say()


@contextlib.contextmanager
def acquitting(say: Callable[[], Awaitable[None]]) -> Iterator[None]:
    """Within this, `acquit` calls `say`."""
    before = _acquit.set(say)
    try:
        yield
    finally:
        _acquit.reset(before)


class SinkUnavailableError(Exception):
    """The sink is away: no entry is to blame, the whole batch is tried again until it succeeds."""

    def __init__(self, reason: Reason, error_class: str) -> None:
        super().__init__(f"{reason}: {error_class}")
        self.reason = reason
        self.error_class = error_class


@dataclass(frozen=True)
class Bounds:
    """When a batch is handed to the work: at the first of these."""

    entries: int
    bytes: int
    age_s: float


def arrived_ms(entry_id: str) -> int:
    """When an entry arrived, in Unix milliseconds of Redis's clock: what its id says, or now if a producer chose that id ahead of it."""
    ms, now = entry_parts(entry_id)[0], clock.now_ms()
    return now if ms > now + AHEAD_MAX_MS else ms


def seems_ahead(entries: Sequence[Entry]) -> bool:
    """Whether the newest of these came under an id ahead of the clock, as far as this process knows it."""
    newest = max(entry.id for entry in entries)  # as text: until 2286 all true times have as many digits
    return arrived_ms(newest) != entry_parts(newest)[0]


def failure_of(entry: Entry, stage: str, reason: Reason, error_class: str, detail: str) -> Failure:
    """Why an entry is not stored: the same failure, with the same id, at every delivery. `detail` must hold nothing captured."""
    event_id, project, service = identity_of(entry.data)
    return Failure(
        failure_id=uuid.uuid5(uuid.NAMESPACE_OID, f"{stage}/{event_id or sha256(entry.data).hexdigest() + entry.id}"),
        event_id=event_id,
        entry_id=entry.id,
        project=project,
        service=service,
        stage=stage,
        reason=reason,
        error_class=error_class,
        detail=detail,
        created_at=datetime.fromtimestamp(arrived_ms(entry.id) / 1000, UTC),
    )
