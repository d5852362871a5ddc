"""Counters of the SDK.

Every event is counted once on its way to Redis: `captured == published + spooled + dropped + queue_entries`; and once on
its way to the file of events: `captured == file_lines + file_dropped + file_waiting`.
"""

import logging
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from assay_capture.native import RLock

log = logging.getLogger("assay_capture")

#: Shortest time between two log messages about the start of the same kind of outage, in seconds.
OUTAGE_LOG_S = 60.0
#: Reasons for dropping an event, and their fixes. No other reasons exist.
REASONS = {
    "queue_full": "events arrive faster than they are sent, or Redis is away; raise capture.queue_entries or capture.queue_bytes, "
    "or set capture.durability to spool",
    "spool_full": "the spool and the queue are full; bring Redis back or raise capture.spool_bytes",
    "spool_error": "the spool cannot be written and the queue is full; check the space and rights of capture.spool_dir",
    "too_large": "an entry over 1 MiB of JSON, or over the limit of a proxy before the gateway; send fewer or shorter contexts",
    "rejected": "the gateway refuses them for good; the log and stats().rejected have the rules, and docs/events.md what is valid",
    "unserialisable": "a value has no JSON form (bytes, lone surrogates, cycles, integers over 64 bits, foreign objects)",
    "pii_refused": "the scrubbing policy refuses its content (capture.scrub = producer)",
    "credential_in_name": "a name that is stored unchanged (service, project, model, slug, id, key) contains a credential; use a name "
    "(capture.scrub = producer)",
    "scrub_failed": "the scrubber failed on it, so it did not leave the process (capture.scrub = producer); please report it",
    "no_result": "a retrieving() block ended without result()",
    "describe_failed": "describe() of captured_retrieval() raised, did not return the fields of retrieval(), or could not be called",
    "closed": "captured after close()",
    "exit_deadline": "left unsent when capture.exit_deadline_s ran out; raise it or set capture.durability to spool",
    "internal": "a bug in this SDK; please report it",
}
#: The same for lines of the event file (`capture.sink`); no other reasons exist.
FILE_REASONS = {
    "queue_full": "events arrive faster than they are scrubbed and written; raise capture.queue_entries or capture.queue_bytes",
    "file_error": "check the space and rights of capture.file_path and its directory",
    **{
        name: REASONS[name]
        for name in (
            "too_large",
            "unserialisable",
            "pii_refused",
            "credential_in_name",
            "scrub_failed",
            "no_result",
            "describe_failed",
            "closed",
        )
    },
    "exit_deadline": "left unwritten when capture.exit_deadline_s ran out; raise it",
    "internal": REASONS["internal"],
}


@dataclass(frozen=True)
class CaptureStats:
    """A reading of this process's counters since its start or its fork."""

    #: Calls that made an event while capture was on.
    captured: int = 0
    #: Events sent from memory to Redis.
    published: int = 0
    #: Events written to the spool, because Redis could not accept them.
    spooled: int = 0
    #: Events sent from the spool to Redis, including those of dead processes.
    replayed: int = 0
    #: Spool segments adopted from dead processes.
    adopted_segments: int = 0
    #: Last lines of segments that a crash cut off.
    torn_lines: int = 0
    #: Findings removed in this process, by family (`capture.scrub = "producer"`).
    scrubbed: dict[str, int] = field(default_factory=dict)
    #: Events lost, by reason (see `REASONS`).
    dropped: dict[str, int] = field(default_factory=dict)
    #: Lines written to the file of events (`capture.sink`).
    file_lines: int = 0
    #: Events that the file has no line of, by reason (see `FILE_REASONS`).
    file_dropped: dict[str, int] = field(default_factory=dict)
    #: Events in memory that have no line in the file yet.
    file_waiting: int = 0
    #: Events for the file that break the contract, such as by an unknown status. They have a line all the same.
    file_invalid: int = 0
    #: Events in memory that are neither in Redis nor in the spool yet.
    queue_entries: int = 0
    #: Bytes of the events in memory.
    queue_bytes: int = 0
    #: Bytes of this process's events in the spool.
    spool_bytes: int = 0
    #: `idle` (nothing sent yet), `up`, `down`, `refused` (password or permission) or `high_water`.
    redis: str = "idle"
    #: `redis`, or `http` if events go to the gateway (`capture.url`). The counts are then of events sent to it.
    transport: str = "redis"
    #: `idle` (nothing sent yet), `up`, `down`, `refused` (the key) or `busy` (it asked to wait).
    gateway: str = "idle"
    #: Events that the gateway rejected, by rule, those from the spool included. They are not sent again.
    rejected: dict[str, int] = field(default_factory=dict)


class ProblemLog:
    """Counts drops by reason.

    Callers only count; the publisher's thread logs, because that may wait for I/O.
    """

    def __init__(self, reasons: Mapping[str, str] = REASONS, what: str = "events") -> None:
        self._reasons, self._what = reasons, what
        self._lock = RLock()
        self._refused: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._details: dict[str, str] = {}
        self._logged: set[str] = set()
        self._outages: set[str] = set()
        self._next_log: dict[str, float] = {}

    def refuse(self, reason: str, detail: str = "") -> bool:
        """Count an event that did not get into the queue; return whether the reason is new.

        The log has the `detail` of a new reason.
        """
        with self._lock:
            self._refused[reason] += 1
            self._details.setdefault(reason, detail)
            return self._refused[reason] == 1

    def lose(self, reason: str, count: int) -> None:
        """Count events that were in the queue and could not be sent or spooled."""
        with self._lock:
            self._lost[reason] += count

    def refused(self) -> int:
        """Return the number of events that did not fit in the queue."""
        with self._lock:
            return self._refused.total()

    def dropped(self) -> dict[str, int]:
        """Return the events lost so far, by reason."""
        with self._lock:
            return dict(self._refused + self._lost)

    def log_new(self) -> None:
        """Log each reason the first time it occurs."""
        for reason in self.dropped():
            detail = self._details.get(reason)
            message = f"dropping {self._what} ({reason}): {self._reasons[reason]}" + (
                f"; the first time {detail}" if detail else ""
            )
            self.log_once(f"dropped:{reason}", message)

    def log_once(self, kind: str, message: str, level: int = logging.WARNING) -> None:
        """Log a message the first time its kind of problem occurs in this process."""
        if kind in self._logged:
            return
        self._logged.add(kind)
        with suppress(Exception):  # a broken log handler of the host program must not stop the sending
            log.log(level, "%s", message)

    def log_outage(self, kind: str, message: str, level: int) -> None:
        """Log the start of an outage; one that comes and goes is logged once in `OUTAGE_LOG_S`."""
        now = time.monotonic()
        if kind in self._outages or now < self._next_log.get(kind, 0.0):
            return
        self._outages.add(kind)
        self._next_log[kind] = now + OUTAGE_LOG_S
        with suppress(Exception):
            log.log(level, "%s", message)

    def log_recovery(self, message: str) -> None:
        """Log the end of the outages that were logged. Without one, do nothing."""
        if self._outages:
            self._outages.clear()
            with suppress(Exception):
                log.info("%s", message)
