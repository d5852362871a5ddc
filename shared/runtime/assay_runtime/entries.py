"""Input and output of a service's pure core: entries in, outcomes out."""

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
    """A stream entry: its id in the log, its JSON, and the Redis server that gave it (see `same_redis`)."""

    id: str
    data: bytes
    redis: str = ""

    @property
    def name(self) -> tuple[str, str]:
        """Unique name: another Redis server may issue the same id again."""
        return self.id, self.redis


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one entry. Without `event` and `failure` it is simply done (stored)."""

    entry_id: str
    #: JSON of the event to forward, without its `id`.
    event: bytes | None = None
    #: Reason of the failure.
    failure: Failure | None = None
    #: True if it is kept as a dead letter, to be requeued once the cause is fixed.
    keep: bool = False


#: A service's work: outcomes for the entries it finished. An entry without an outcome stays pending and is redelivered.
Process = Callable[[Sequence[Entry]], Awaitable[Sequence[Outcome]]]


_acquit: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("acquit", default=None)


async def acquit() -> None:
    """Report that the entries are sound and only their sink remains: a later crash is not their fault.

    Called by a service's work. A slow sink takes far longer than the work. Without this, restarts during an outage
    would blame the entries in progress.
    """
    if say := _acquit.get():
        await say()


@contextlib.contextmanager
def acquitting(say: Callable[[], Awaitable[None]]) -> Iterator[None]:
    """Make `acquit` call `say` in this context."""
    before = _acquit.set(say)
    try:
        yield
    finally:
        _acquit.reset(before)


class SinkUnavailableError(Exception):
    """The sink is away: no entry is to blame, and the whole batch is retried until it succeeds."""

    def __init__(self, reason: Reason, error_class: str) -> None:
        super().__init__(f"{reason}: {error_class}")
        self.reason = reason
        self.error_class = error_class


@dataclass(frozen=True)
class Bounds:
    """Limits of a batch. It is handed to the work at the first one reached."""

    entries: int
    bytes: int
    age_s: float


def arrived_ms(entry_id: str) -> int:
    """Return the arrival of an entry in Unix milliseconds of Redis's clock.

    This is the time in its id, or now if a producer chose an id ahead of the clock.
    """
    ms, now = entry_parts(entry_id)[0], clock.now_ms()
    return now if ms > now + AHEAD_MAX_MS else ms


def seems_ahead(entries: Sequence[Entry]) -> bool:
    """True if the newest entry has an id ahead of the clock, as far as this process knows."""
    newest = max(entry.id for entry in entries)  # compared as text: until 2286 all times have the same number of digits
    return arrived_ms(newest) != entry_parts(newest)[0]


def failure_of(entry: Entry, stage: str, reason: Reason, error_class: str, detail: str) -> Failure:
    """Build the failure of an entry, with the same id at every delivery.

    `detail` must not contain captured text.
    """
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
