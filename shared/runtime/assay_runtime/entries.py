"""What a service's pure core takes and gives: entries in, outcomes out."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assay_schema.failures import Failure, Reason


class Entry(NamedTuple):
    """One stream entry: its id in the log and its JSON."""

    id: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one entry. With neither `event` nor `failure` it is simply done (stored)."""

    entry_id: str
    #: JSON of the event to pass on, without its `id`.
    event: bytes | None = None
    #: Why it is given up.
    failure: Failure | None = None


#: A service's work: outcomes for the entries it finished. An entry without an outcome stays pending and is delivered again.
Process = Callable[[Sequence[Entry]], Awaitable[Sequence[Outcome]]]


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
