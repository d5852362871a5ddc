"""Define a transport: it sends a batch and reports what became of each event."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from assay_capture.entry_queue import Entry


@dataclass(frozen=True)
class Outcome:
    """Outcome of a batch.

    `failed` keeps the batch's order. All other entries have arrived, or are counted in `rejected`.
    """

    failed: list[Entry] = field(default_factory=list)
    #: A key of `Transport.advice`, such as `down` (unreachable, restarting, out of memory) or `refused` (password, key
    #: or permission); None on success.
    problem: str | None = None
    #: Details for the log: the class of the error or the code of an answer. Never content or secrets.
    detail: str = ""
    #: Greatest length of the measured shards, or None.
    depth: int | None = None
    #: Greatest memory of the measured shards, in bytes, or None.
    size: int | None = None
    #: Events that were refused for good, by rule. They are not sent again.
    rejected: Mapping[str, int] = field(default_factory=dict)
    #: Field and what is valid, of the first such event of each rule, if the receiver gave it. Without content.
    reasons: Mapping[str, str] = field(default_factory=dict)
    #: Seconds that the receiver asked to wait before the next attempt, or None.
    retry_after_s: float | None = None


class Transport(Protocol):
    """Sends batches for one thread, in order; blocks up to its time-outs.

    After a lost answer it is unknown what arrived, so an event may arrive twice, with the same `event_id`.
    """

    #: What it sends to, for the log.
    receiver: str
    #: What to check, by kind of problem.
    advice: Mapping[str, str]
    #: The state that the counters show for a kind of problem; default: the kind itself.
    states: Mapping[str, str]
    #: Longest pause between attempts while the receiver is away, in seconds.
    longest_pause_s: float
    #: Seconds without an answer after which new events go to the spool.
    slow_answer_s: float
    #: Maximum bytes in one call of `send` (a single entry may be larger).
    batch_bytes: int

    def send(self, entries: list[Entry], measure: tuple[int, ...] = ()) -> Outcome:
        """Send entries in order, and measure shards if it can."""

    def close(self) -> None:
        """Close the connections, if any. In a forked child this closes only the child's copies."""
