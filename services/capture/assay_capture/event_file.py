"""The file of events (`capture.sink`): scrubbed lines, written by a separate thread.

Lossy by contract: an event that cannot be scrubbed, or written at once, is dropped and counted. The caller only appends
to a bounded queue. Nothing unscrubbed reaches the file.
"""

import logging
import os
import re
import time
from collections import deque
from pathlib import Path

import orjson

from assay_capture.native import RLock, SimpleQueue, give_way, start_thread, wait_until
from assay_capture.rotating_file import RotatingFile
from assay_capture.scrubbing import WORK_S, scrubbed, watch_forks
from assay_capture.stats import FILE_REASONS, ProblemLog
from assay_schema.event_file import default_path, line_of
from assay_schema.scrubbing import ProducerScrubber
from assay_schema.settings import CaptureSettings

#: Most lines written under one lock: other processes wait meanwhile.
BATCH_LINES = 256
#: Most different problems of invalid events that are logged. A position in a list makes no difference.
INVALID_LOGGED_MAX = 20
_POSITION = re.compile(r"\.\d+\b")


class EventFile:
    """The file of one process's events. `start` begins to write; before that, events wait."""

    def __init__(self, settings: CaptureSettings, scrubber: ProducerScrubber) -> None:
        path = settings.file_path or default_path(os.environ, os.geteuid())
        self._file = RotatingFile(Path(os.path.abspath(path.expanduser())), settings.file_bytes, settings.file_keep)  # noqa: PTH100
        self._scrubber = scrubber
        watch_forks()
        self._max_entries, self._max_bytes = settings.queue_entries, settings.queue_bytes
        self._lock = RLock()
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        #: Scrubbed lines, and whether one is being written.
        self._lines: deque[bytes] = deque()
        self._writing = False
        #: Problems of invalid events that were logged.
        self._invalid: set[str] = set()
        self._inbox: SimpleQueue[None] = SimpleQueue()
        self._started = self._closing = self._stopped = self._ended = False
        self._accepted = self._left = 0
        #: Lines written.
        self.lines = 0
        #: Events that break the contract. Their lines are written all the same.
        self.invalid = 0
        #: Counts the events that were dropped.
        self.problems = ProblemLog(FILE_REASONS, "lines of the event file")

    @property
    def waiting(self) -> int:
        """Number of events that are neither written nor dropped yet."""
        with self._lock:
            return self._accepted - self._left

    @property
    def captured(self) -> int:
        """Number of events so far, written, waiting or dropped."""
        with self._lock:
            return self._accepted + self.problems.refused()

    def put(self, data: bytes) -> None:
        """Append an encoded event, or count it as dropped if the queue is full. Never blocks on I/O."""
        with self._lock:
            full = self._accepted - self._left >= self._max_entries or self._bytes + len(data) > self._max_bytes
            if not full:
                self._waiting.append(data)
                self._bytes += len(data)
                self._accepted += 1
                first = len(self._waiting) == 1
        if full:
            self.refuse("queue_full")
        elif first:
            self._inbox.put(None)

    def refuse(self, reason: str, detail: str = "") -> None:
        """Count an event that is dropped before it is in the queue."""
        if self.problems.refuse(reason, detail):
            self._inbox.put(None)

    def start(self) -> None:
        """Start the thread, once. Raises RuntimeError if the system has none available."""
        with self._lock:
            if self._started:
                return
            self._started = True
        try:
            start_thread(self._run)
        except RuntimeError:
            self._started = False
            raise

    def flush(self, timeout: float) -> bool:
        """Wait until all earlier events are written or dropped. False after `timeout` seconds."""
        target = self._accepted
        wait_until(lambda: self._left >= target or self._stopped, timeout)
        return self._left >= target

    def close(self, timeout: float) -> None:
        """Write for up to `timeout` seconds, drop the rest, and end."""
        deadline = time.monotonic() + timeout
        self._closing = True
        self._inbox.put(None)
        if self._started:
            wait_until(lambda: self._stopped, timeout)
        else:
            while time.monotonic() < deadline and self._step():
                pass
        with self._lock:
            self._lose("exit_deadline", self._accepted - self._left)
            self._ended = True
            self._waiting.clear()
        self.problems.log_new()

    def abandon(self) -> None:
        """Close copies of open files in a forked child."""
        self._file.abandon()

    def _run(self) -> None:
        try:
            while not self._ended:
                self._inbox.get()
                while self._step():
                    pass
                if self._closing:
                    return
        finally:
            self._stopped = True

    def _step(self) -> bool:
        """Scrub and write some events. False if none is left."""
        try:
            self._scrub_some()
            if self._lines:
                self._file.append(self._next_line)
        except OSError as error:
            cause = error.strerror or type(error).__name__
            advice = FILE_REASONS["file_error"]
            self.problems.log_once(f"file:{error.errno}", f"the event file cannot be written ({cause}): {advice}")
            self._lose_lines("file_error")
        except Exception as error:  # noqa: BLE001  (this thread must outlive any defect)
            kind = type(error).__name__
            self.problems.log_once(f"internal:{kind}", f"internal error: {kind}", logging.ERROR)
            self._lose_lines("internal")
        self.problems.log_new()
        return bool(self._waiting) and not self._ended

    def _scrub_some(self) -> None:
        began = time.monotonic()
        while len(self._lines) < BATCH_LINES:
            with self._lock:
                if not self._waiting or self._ended:
                    return
                data = self._waiting.popleft()
                self._bytes -= len(data)
            passed, reason = scrubbed(self._scrubber, data, self.problems)
            if passed is None or passed.entry is None:
                with self._lock:
                    self._lose(reason, 1)
            else:
                self._lines.append(line_of(orjson.loads(passed.entry)))
                if passed.invalid:
                    self._note_invalid(passed.invalid)
            if time.monotonic() - began > WORK_S:
                give_way()
                began = time.monotonic()

    def _note_invalid(self, problem: str) -> None:
        """Count an event that breaks the contract, and log the first ones with each problem."""
        self.invalid += 1
        problem = _POSITION.sub("", problem)
        if problem not in self._invalid and len(self._invalid) < INVALID_LOGGED_MAX:
            self._invalid.add(problem)
            message = f"an event breaks the contract ({problem}); the event file has it, but a service would refuse it"
            self.problems.log_once(f"invalid:{problem}", message)

    def _next_line(self) -> bytes | None:
        """Count the line before as written, and return the next one."""
        with self._lock:
            if self._ended:
                return None
            if self._writing:
                self._writing = False
                self._left += 1
                self.lines += 1
            if not self._lines:
                return None
            self._writing = True
            return self._lines.popleft()

    def _lose_lines(self, reason: str) -> None:
        with self._lock:
            self._lose(reason, len(self._lines) + self._writing)
            self._lines.clear()
            self._writing = False

    def _lose(self, reason: str, number: int) -> None:
        if number and not self._ended:
            self.problems.lose(reason, number)
            self._left += number
