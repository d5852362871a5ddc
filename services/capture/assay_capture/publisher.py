"""The background thread that moves events from the queue to Redis or the gateway, or to the spool.

The spool is used while the receiver cannot accept events. This thread makes every decision and owns all state behind the
queue; the sender's thread only talks to the receiver. Order is always kept: failed events are sent before the spool, the spool
before the queue.
"""

import logging
import random
import time
from collections import Counter
from dataclasses import dataclass
from queue import Empty

from assay_capture.entry_queue import Entry, EntryQueue
from assay_capture.native import SimpleQueue, start_thread, wait_until
from assay_capture.scrubbing import Scrubbing
from assay_capture.sender import Sender
from assay_capture.spool import Spool
from assay_capture.stats import REASONS, ProblemLog
from assay_capture.transport import Outcome, Transport
from assay_schema.settings import CaptureSettings

#: First pause between attempts while the receiver is away, in seconds. It doubles up to the longest one of the
#: transport; each is reduced at random by up to half.
FIRST_PAUSE_S = 0.05
#: A pause that the receiver asked for is prolonged at random by up to this share.
ASKED_PAUSE_SPREAD = 0.25
#: Seconds between measurements of the streams' lengths.
MEASURE_EVERY_S = 0.5
#: Seconds between searches for spools of dead processes.
ADOPT_EVERY_S = 10.0
#: Longest sleep while there is anything to do, in seconds.
TICK_S = 0.05
#: Reasons for which an event that the receiver rejects counts as dropped: too large by itself, or by any other rule.
TOO_LARGE, REJECTED = "too_large", "rejected"


@dataclass
class Batch:
    """A batch in flight.

    `place` is the position in the spool that keeps the order of entries from memory.
    """

    entries: list[Entry]
    place: int | None = None
    from_spool: bool = False


class Publisher:
    """The publisher: starts with `start`, ends with `close`. One per process and `Capture`."""

    def __init__(
        self,
        settings: CaptureSettings,
        shards: int,
        queue: EntryQueue,
        inbox: SimpleQueue[Outcome | None],
        link: Transport,
        spool: Spool | None,
        problems: ProblemLog,
        scrubbing: Scrubbing | None = None,
    ) -> None:
        self._settings = settings
        self._shards = tuple(range(shards))
        self._queue = queue
        self._inbox = inbox
        self._link = link
        self._sender = Sender(link, inbox.put)
        self._spool = spool
        self._problems = problems
        self._scrubbing = scrubbing
        queue.drains = spool is not None
        #: Events sent from memory, written to the spool, and sent from the spool.
        self.published = 0
        self.spooled = 0
        self.replayed = 0
        #: Events that the receiver refused for good, by rule.
        self.rejected: Counter[str] = Counter()
        #: See `CaptureStats.redis` and `CaptureStats.gateway`.
        self.state = "idle"
        self._flush_until = 0
        self._closing_since = 0.0
        self._closing_until: float | None = None
        #: True once an attempt begun after closing has failed: the spool then stays as it is.
        self._hopeless = False
        self._ended = False
        self._flying: Batch | None = None
        self._flying_since = 0.0
        self._held: Batch | None = None
        self._batch_due: float | None = None
        self._attempts = 0
        self._retry_at = 0.0
        self._measure_at = 0.0
        self._adopt_at = 0.0

    def start(self) -> None:
        """Start its threads. Raises RuntimeError if the system has none available."""
        if self._scrubbing is not None:
            self._scrubbing.start()
        self._sender.start()
        start_thread(self._run)

    def flush(self, timeout: float) -> bool:
        """Wait until all earlier events are in Redis or in the spool. False after `timeout` seconds."""
        target = self._queue.accepted
        self._flush_until = max(self._flush_until, target)
        self._inbox.put(None)
        wait_until(lambda: self._queue.released >= target or self._ended, timeout)
        return self._queue.released >= target

    def close(self, timeout: float) -> None:
        """Send events for up to `timeout` seconds, spool the rest (or count it as dropped), and end.

        A second call, as by a signal handler, waits for the first.
        """
        if self._closing_until is None:
            self._closing_since = time.monotonic()
            self._retry_at = 0.0  # one more attempt, in case Redis is back
            self._closing_until = self._closing_since + timeout
            self._inbox.put(None)
        wait_until(lambda: self._ended, timeout + 2.0)  # the rest is written to the spool after the deadline

    def abandon(self) -> None:
        """Release the parent's connection and spool in a forked child, without touching either."""
        self._sender.abandon()
        if self._spool is not None:
            self._spool.abandon()

    def _run(self) -> None:
        try:
            while not self._finished():
                try:
                    self._wait()
                    self._step()
                except Exception as error:  # noqa: BLE001  (this thread must outlive any defect)
                    self._problems.log_once(
                        f"internal:{type(error).__name__}", f"internal error: {type(error).__name__}", logging.ERROR
                    )
                    time.sleep(TICK_S)
            self.end()
        finally:
            self._ended = True  # even after an error, so that nothing waits for it

    def _step(self) -> None:
        self._problems.log_new()
        self._adopt()
        self._spill()
        self._send_next()

    # Waiting

    def _wait(self) -> None:
        try:
            message = self._inbox.get(timeout=self._pause())
            while True:
                if message is not None:
                    self._arrived(message)
                message = self._inbox.get_nowait()
        except Empty:
            pass

    def _pause(self) -> float | None:
        now = time.monotonic()
        if self._closing_until is not None:
            return min(TICK_S, max(0.0, self._closing_until - now))
        if self._flying is not None:
            return TICK_S if self._spool is not None and len(self._queue) else None
        if self._held is not None or self._spool_waits():
            return min(TICK_S, max(0.0, self._retry_at - now))
        if len(self._queue):
            due = self._due_at(now)
            return max(0.0, due - now, min(TICK_S, self._retry_at - now))
        return None if self._spool is None else ADOPT_EVERY_S

    def _due_at(self, now: float) -> float:
        """Return when the current batch is due.

        A full batch, or a complete one that a flush waits for, is due at once; any other after the flush interval.
        """
        asked = self._queue.released < self._flush_until or self._closing_until is not None
        if (asked and not self._queue.holding) or len(self._queue) >= self._settings.batch_entries:
            return now
        if self._batch_due is None:
            self._batch_due = now + self._settings.flush_interval_ms / 1000
        return self._batch_due

    # Sending

    def _send_next(self) -> None:
        now = time.monotonic()
        if self._flying is not None or now < self._retry_at:
            return
        batch: Batch | None
        if self.state == "high_water":
            batch = Batch([])  # the measurement only
        elif self._held is not None:
            batch, self._held = self._held, None
        elif self._spool_waits():
            batch = self._from_spool()
        else:
            batch = self._from_queue(now)
        if batch is None:
            return
        measure: tuple[int, ...] = ()
        if now >= self._measure_at or not batch.entries:
            measure, self._measure_at = self._shards, now + MEASURE_EVERY_S
        self._flying, self._flying_since = batch, now
        self._sender.submit(batch.entries, measure)

    def _from_queue(self, now: float) -> Batch | None:
        if not len(self._queue) or self._due_at(now) > now:
            return None
        self._batch_due = None
        entries = self._queue.take(self._settings.batch_entries, self._link.batch_bytes)
        return Batch(entries, self._spool.reserve() if self._spool else None)

    def _from_spool(self) -> Batch | None:
        assert self._spool is not None
        entries = self._spool.read(self._settings.batch_entries, self._link.batch_bytes)
        if not entries:
            return None
        return Batch(entries if self._scrubbing is None else self._scrubbing.again(entries), from_spool=True)

    def _arrived(self, outcome: Outcome) -> None:
        batch, self._flying = self._flying, None
        if batch is None:
            return
        failed = set(map(id, outcome.failed))
        sent = [entry for entry in batch.entries if id(entry) not in failed] if failed else batch.entries
        arrived = len(sent) - self._reject(outcome, batch)
        if batch.from_spool:
            self.replayed += arrived
        else:
            self.published += arrived
            self._queue.release(sent)
        if outcome.failed:
            batch.entries = outcome.failed
            self._held = batch
        elif batch.from_spool and self._spool is not None:
            self._spool.sent()
        self._judge(outcome)

    def _reject(self, outcome: Outcome, batch: Batch) -> int:
        """Count the events that the receiver refused for good, and return their number.

        Those from the spool count as spooled already.
        """
        for rule, count in outcome.rejected.items():
            self.rejected[rule] += count
            reason = rule if rule == TOO_LARGE else REJECTED
            if not batch.from_spool:
                self._problems.lose(reason, count)
            first = outcome.reasons.get(rule, rule)
            self._problems.log_once(
                f"{reason}:{rule}", f"{self._link.receiver} rejects events ({first}): {REASONS[reason]}"
            )
        return sum(outcome.rejected.values())

    def _judge(self, outcome: Outcome) -> None:
        now = time.monotonic()
        if outcome.problem is not None:
            self._problems.log_outage(
                outcome.problem,
                f"{self._link.receiver} does not accept events ({outcome.detail}); {self._fallback()}; "
                f"{self._link.advice[outcome.problem]}",
                logging.ERROR,
            )
            self.state = self._link.states.get(outcome.problem, outcome.problem)
            self._attempts += 1
            self._hopeless = self._closing_until is not None and self._flying_since >= self._closing_since
            self._retry_at = now + self._next_pause(outcome)
            return
        self._attempts = 0
        self._retry_at = 0.0
        if over := self._over(outcome):
            self._problems.log_outage(
                "high_water",
                f"over {over} of unscrubbed entries in Redis; {self._fallback()}; check that the scrubber runs",
                logging.WARNING,
            )
            self.state = "high_water"
            self._retry_at = now + MEASURE_EVERY_S
        else:
            self._problems.log_recovery(f"{self._link.receiver} accepts events again")
            self.state = "up"

    def _next_pause(self, outcome: Outcome) -> float:
        """Return the seconds until the next attempt: what the receiver asked for, or more at each failure."""
        pause = min(self._link.longest_pause_s, FIRST_PAUSE_S * 2 ** min(self._attempts, 10))
        pause *= random.uniform(0.5, 1.0)  # noqa: S311  (jitter is no secret)
        asked = (outcome.retry_after_s or 0.0) * random.uniform(1.0, 1.0 + ASKED_PAUSE_SPREAD)  # noqa: S311  (the same)
        return float(max(pause, asked))

    def _over(self, outcome: Outcome) -> str:
        """Return the high-water setting that Redis exceeds, or ''."""
        if (outcome.depth or 0) > self._settings.high_water_entries:
            return "capture.high_water_entries"
        return "capture.high_water_bytes" if (outcome.size or 0) > self._settings.high_water_bytes else ""

    def _fallback(self) -> str:
        return "events wait in memory" if self._spool is None else f"events go to the spool in {self._spool.directory}"

    # Spooling

    def _spool_waits(self) -> bool:
        return self._spool is not None and self._spool.waiting()

    def _adopt(self) -> None:
        now = time.monotonic()
        if self._spool is not None and now >= self._adopt_at:
            self._adopt_at = now + ADOPT_EVERY_S
            self._spool.adopt()

    def _spill(self) -> None:
        """Move events that Redis cannot accept to the spool.

        Events that the spool cannot accept either stay in memory, within its bounds.
        """
        if self._spool is None or not self._should_spill():
            return
        if self._held is not None and not self._held.from_spool:
            if not self._write(self._held.entries, self._held.place):
                return
            self._held = None
        while entries := self._queue.take(self._queue.entries, self._spool.segment_bytes):
            if not self._write(entries, None):
                self._queue.put_back(entries)
                return
        self._batch_due = None

    def _should_spill(self) -> bool:
        if self.state in ("down", "refused", "busy", "high_water"):
            return True
        if self._flying is not None and time.monotonic() - self._flying_since > self._link.slow_answer_s:
            return True
        return self._queue.over_half_full() and (self._flying is not None or self._spool_waits())

    def _write(self, entries: list[Entry], place: int | None) -> bool:
        assert self._spool is not None
        problem = self._spool.write(entries, place)
        self._queue.full_reason = problem or "queue_full"
        self._queue.drains = problem is None
        if problem is not None:
            return False
        self.spooled += len(entries)
        self._queue.release(entries)
        return True

    # Ending

    def _finished(self) -> bool:
        if self._closing_until is None:
            return False
        if time.monotonic() >= self._closing_until:
            return True
        return not self._queue.entries and (not self._spool_waits() or self._hopeless or self.state == "high_water")

    def end(self) -> None:
        """Spool all events, or count them as dropped, and end.

        Runs instead of `start` if there are no threads.
        """
        self._problems.log_new()
        if self._scrubbing is not None:
            self._scrubbing.end()
        flying, self._flying = self._flying, None
        rest = [batch for batch in (flying, self._held) if batch is not None and not batch.from_spool]
        rest.append(Batch(self._queue.take(self._queue.entries, self._queue.bytes)))
        for batch in rest:
            if batch.entries and not (self._spool is not None and self._write(batch.entries, batch.place)):
                reason = "exit_deadline" if self._spool is None else self._queue.full_reason
                self._problems.lose(reason, len(batch.entries))
                self._queue.release(batch.entries)
        self._problems.log_new()
        if self._spool is not None:
            self._spool.close()
        self._sender.stop(0.0 if flying is not None else 1.0)
        self._ended = True
