"""Scrubbing on a separate thread, before anything leaves the process (`capture.scrub = "producer"`).

Captured events wait in memory, within the queue's bounds, until this thread has scrubbed them; only then does the
publisher see them. Raw text is in no file and on no network, and the caller's thread does no additional work.
"""

import logging
import os
import time
from _thread import get_ident
from collections import Counter

from assay_capture.entry_queue import Entry, EntryQueue
from assay_capture.native import RLock, SimpleQueue, give_way, start_thread
from assay_capture.stats import ProblemLog
from assay_schema.scrubbing import ENTRY_POINTS, Passed, ProducerScrubber
from assay_schema.settings import CaptureSettings, Settings, SettingsError

#: Seconds of work after which other threads get a turn: Python would make them wait for 5 ms.
WORK_S = 0.0005
#: Longest time that a fork waits for the event being scrubbed, in seconds.
FORK_WAIT_S = 1.0

#: How to get the extra: Assay is on no package registry.
INSTALL = "in a checkout of Assay, pip install ./shared/schema ./shared/runtime ./services/scrubber './services/capture[{extra}]'"


def needs_scrubber(settings: CaptureSettings) -> bool:
    """True if text is scrubbed in this process: on its way to Redis, or for the file of events."""
    return settings.scrub == "producer" or settings.sink != "redis"


def load_scrubber(settings: Settings) -> ProducerScrubber:
    """Load the installed scrubber with the policy in the settings. Raises `SettingsError`."""
    from importlib.metadata import entry_points  # slow to import, and most producers do not need it

    if settings.capture.sink == "redis":
        cause, extra, other = "capture.scrub (or ASSAY_CAPTURE_SCRUB) is producer", "scrub", "service"
    else:
        cause, extra, other = f"capture.sink (or ASSAY_CAPTURE_SINK) is {settings.capture.sink}", "file", "redis"
    advice = f"{INSTALL.format(extra=extra)}, or set it to {other}"
    offered = sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name)
    if not offered:
        raise SettingsError(f"{cause}, but no scrubber is installed: {advice}")
    try:
        make = offered[0].load()
    except ImportError as error:
        raise SettingsError(f"{cause}, but its scrubber cannot be loaded ({error.name} is missing): {advice}") from None
    scrubber: ProducerScrubber = make(settings)
    return scrubber


class Scrubbing:
    """Scrubs held-back entries and passes them on in order.

    Entries that cannot be scrubbed are dropped and counted.
    """

    def __init__(self, scrubber: ProducerScrubber, queue: EntryQueue, problems: ProblemLog) -> None:
        self._scrubber = scrubber
        self._queue = queue
        self._problems = problems
        self._inbox: SimpleQueue[None] = SimpleQueue()
        self._started = False
        #: Removed findings, by family.
        self.findings: Counter[str] = Counter()
        queue.hold_back(self._inbox.put)
        watch_forks()

    def start(self) -> None:
        """Start the thread, once. Raises RuntimeError if the system has none available."""
        if not self._started:
            self._started = True
            try:
                start_thread(self._run)
            except RuntimeError:
                self._started = False
                raise

    def work_off(self, seconds: float) -> None:
        """Scrub waiting entries in this thread for some seconds, if no thread could be started."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._next():
            pass

    def again(self, entries: list[Entry]) -> list[Entry]:
        """Scrub entries from a spool: an earlier process may have left raw ones."""
        scrubbed = []
        for shard, data in entries:
            passed, reason = self._scrubbed(data)
            if passed is None:
                self._problems.refuse(reason)
            else:
                scrubbed.append((shard, passed))
        return scrubbed

    def end(self) -> None:
        """Stop: entries that are waiting or in progress never leave the process."""
        left = self._queue.end_holding()
        if left:
            self._problems.lose("exit_deadline", left)
        self._inbox.put(None)

    def _run(self) -> None:
        while not self._queue.ended:
            self._inbox.get()
            began = time.monotonic()
            while self._next():
                if time.monotonic() - began > WORK_S:
                    give_way()
                    began = time.monotonic()

    def _next(self) -> bool:
        """Process one entry. False if there is none."""
        held = self._queue.next_held()
        if held is None:
            return False
        shard, data = held
        passed, reason = self._scrubbed(data)
        if passed is None:
            self._problems.lose(reason, 1)
            self._queue.release([held])
            self._problems.log_new()
        elif not self._queue.pass_on(held, (shard, passed)):
            self._problems.lose("exit_deadline", 1)
        return True

    def _scrubbed(self, data: bytes) -> tuple[bytes | None, str]:
        passed, reason = scrubbed(self._scrubber, data, self._problems)
        if passed is None:
            return None, reason
        self.findings.update(passed.findings)
        return passed.entry, reason


def scrubbed(scrubber: ProducerScrubber, data: bytes, problems: ProblemLog) -> tuple[Passed | None, str]:
    """Scrub an encoded event. Returns no `entry`, or None, with a reason if it must not leave."""
    try:
        with _turn:
            passed = scrubber.scrub(data)
    except Exception as error:  # noqa: BLE001  (fail closed on any error; the error may quote the event)
        kind = type(error).__name__
        problems.log_once(f"scrub:{kind}", f"an event could not be scrubbed ({kind})", logging.ERROR)
        return None, "scrub_failed"
    return passed, passed.reason


def watch_forks() -> None:
    """Let a fork wait for the event being scrubbed. Once per process."""
    global _watching
    if not _watching:
        _watching = True
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


# RE2 searches without Python's lock, but with its own locks. A child forked during a search would find them locked
# permanently.
_turn = RLock()
_forking: set[int] = set()
_watching = False


def _before() -> None:
    if _turn.acquire(timeout=FORK_WAIT_S):
        _forking.add(get_ident())


def _in_parent() -> None:
    if get_ident() in _forking:
        _forking.discard(get_ident())
        _turn.release()


def _in_child() -> None:
    global _turn
    _turn = RLock()
    _forking.clear()
