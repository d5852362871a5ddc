"""Events on disk while Redis cannot accept them.

A process writes segments, files with one event per line (0600), in a directory that it owns (see `owners`). It reads
them back in order, after those of dead processes. A segment is deleted after Redis has acknowledged its last event; a
crash before that sends it again, and `event_id` prevents second rows.

System calls are kept few: after each, this thread waits for its turn among the host program's threads.

Not thread-safe: the publisher's thread owns it.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from assay_capture.entry_queue import Entry
from assay_capture.owners import UNNAMED, Owner, Owners, sync_directory
from assay_capture.stats import ProblemLog

#: A segment is closed at this size, in bytes, or at an eighth of the whole spool.
SEGMENT_BYTES = 4 * 1024 * 1024
#: Bytes read at once from a segment.
READ_BYTES = 256 * 1024
#: Seconds between measurements of other processes' part of the spool. It is also measured when an eighth of the space
#: may be gone.
MEASURE_EVERY_S = 0.5


@dataclass(order=True)
class _Segment:
    """A file of events. Sorts by its owner's start, then by number: the order of capture."""

    owner: str
    number: int
    path: Path = field(compare=False)
    size: int = field(compare=False, default=0)


class _Reader:
    """Reads a segment line by line.

    It uses a bare descriptor, because a fork may catch the lock of a file object.
    """

    def __init__(self, segment: _Segment) -> None:
        self.segment = segment
        self.descriptor = os.open(segment.path, os.O_RDONLY)
        self._lines: deque[bytes] = deque()
        #: Bytes after the end of the last line; at the end of the file, a truncated line.
        self.rest = b""

    def next(self) -> bytes | None:
        """Return the next complete line without its end, or None after the last."""
        return None if self.at_end() else self._lines.popleft()

    def at_end(self) -> bool:
        """True if no complete line is left."""
        while not self._lines:
            chunk = os.read(self.descriptor, READ_BYTES)
            if not chunk:
                return True
            *lines, self.rest = (self.rest + chunk).split(b"\n")
            self._lines.extend(lines)
        return False


class Spool:
    """The segments of this process and adopted ones, as one FIFO sequence of events."""

    def __init__(
        self,
        spool_dir: Path,
        destination: str,
        max_bytes: int,
        fsync: bool,
        shard_for: Callable[[bytes], int],
        problems: ProblemLog,
        adopt: Container[str] = (),
    ) -> None:
        #: Where the spool is; its parts belong to users and destinations.
        self.directory = spool_dir
        self._owners = Owners(spool_dir, destination, adopt)
        self._max_bytes = max_bytes
        #: Size of a segment; also the most that one `write` should get, unless it is one event.
        self.segment_bytes = min(SEGMENT_BYTES, max(1, max_bytes // 8))
        self._fsync = fsync
        self._shard_for = shard_for
        self._problems = problems
        self._own: Owner | None = None
        #: All owners locked by this process, by name, including its own.
        self._locked: dict[str, Owner] = {}
        #: Owners with a segment that can neither be sent nor deleted: kept locked, so that it is not adopted again and
        #: again.
        self._stuck: set[str] = set()
        self._segments: list[_Segment] = []
        self._next_number = 1
        self._writing: tuple[_Segment, int] | None = None
        self._reading: _Reader | None = None
        self._elsewhere = 0
        self._measure_at = 0.0
        self._unmeasured = 0
        self._looked_around = False
        self.adopted_segments = 0
        self.torn_lines = 0

    # Writing

    def reserve(self) -> int:
        """Reserve a position for a batch in flight: if it comes back, it is sent before all later writes."""
        self._next_number += 1
        return self._next_number - 1

    def write(self, entries: list[Entry], place: int | None = None) -> str | None:
        """Append a batch, or put it in its reserved position: all of it or nothing.

        Returns None if it is on disk (with fsync: on the medium), else `spool_full` or `spool_error`.
        """
        lines = b"\n".join([*[data for _, data in entries], b""])
        try:
            if not self._fits(len(lines)):
                return "spool_full"
            try:
                self._store(lines, place)
            except FileNotFoundError:
                self._begin_again()
                self._store(lines, place)
        except OSError as error:
            self._problems.log_once(
                f"spool:{error.errno}",
                f"cannot write the spool ({type(error).__name__}, errno {error.errno}); events wait in memory; "
                "check the space and rights of capture.spool_dir (ASSAY_CAPTURE_SPOOL_DIR); "
                f"assay-spool-{os.geteuid()} in it must be a directory of this user with mode 0700, on a disk with file locks",
            )
            return "spool_error"
        self._unmeasured += len(lines)
        return None

    def _fits(self, size: int) -> bool:
        """True if there is space.

        The space used by other processes is measured from time to time, and always if space is short.
        """
        room = self._max_bytes - self.bytes_waiting() - self._elsewhere
        now = time.monotonic()
        if now >= self._measure_at or self._unmeasured + size > room // 8:
            self._elsewhere = self._owners.bytes_elsewhere(self._locked)
            self._measure_at, self._unmeasured = now + MEASURE_EVERY_S, 0
            room = self._max_bytes - self.bytes_waiting() - self._elsewhere
        return size <= room

    def _store(self, lines: bytes, place: int | None) -> None:
        if place is not None:
            segment, descriptor = self._create(place)
            try:
                self._append(segment, descriptor, lines)
            finally:
                os.close(descriptor)
            return
        if self._writing is None:
            self._writing = self._create(self.reserve())
        segment, descriptor = self._writing
        if not os.fstat(descriptor).st_nlink:
            raise FileNotFoundError  # deleted by another program: written events could not be found again
        try:
            self._append(segment, descriptor, lines)
        except OSError:
            self._seal()  # the next lines must not follow a partial one
            raise
        if segment.size >= self.segment_bytes:
            self._seal()

    def _create(self, number: int) -> tuple[_Segment, int]:
        if self._own is None:
            self._own = self._owners.begin(self._fsync)
            self._locked[self._own.name] = self._own
        path = self._own.path / f"{number:010d}.jsonl"
        # A file with this number is left from a failed attempt.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            if self._fsync:
                sync_directory(self._own.path)
        except OSError:
            os.close(descriptor)
            raise
        segment = _Segment(self._own.name, number, path)
        if segment in self._segments:
            self._segments.remove(segment)
        self._segments.append(segment)
        self._segments.sort()
        return segment, descriptor

    def _append(self, segment: _Segment, descriptor: int, lines: bytes) -> None:
        """Write all lines or none, as far as the disk allows a rollback."""
        try:
            view = memoryview(lines)
            while view:
                view = view[os.write(descriptor, view) :]
            if self._fsync:
                os.fsync(descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, segment.size)
            raise
        segment.size += len(lines)

    def _begin_again(self) -> None:
        """Start a new segment after another program deleted segments, or the whole directory.

        Their events are lost; new ones need a file that exists.
        """
        self._seal()
        being_read = self._reading and self._reading.segment  # an open file can be read to its end
        for segment in [segment for segment in self._segments if segment != being_read and not segment.path.exists()]:
            self._gone(segment)
        if self._own is not None and not self._own.stands():
            del self._locked[self._own.name]
            self._own.release()
            self._own = None

    def _seal(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            os.close(writing[1])

    # Reading

    def waiting(self) -> bool:
        """True if any event is waiting."""
        return bool(self._segments)

    def read(self, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return the next events, oldest first; empty at the end.

        Call `sent` once Redis has them, before reading on.
        """
        while self._segments:
            if self._reading is None:
                self._open_oldest()
                continue
            reader = self._reading
            try:
                entries = self._next_entries(reader, max_entries, max_bytes)
            except OSError:
                self._give_up(reader.segment)
                continue
            if entries:
                return entries
            self._finish(reader)
        return []

    def sent(self) -> None:
        """Confirm that Redis has all events of the last `read`. Deletes a segment after its last event."""
        reader = self._reading
        with suppress(OSError):  # the next `read` reports it as well
            if reader is not None and reader.at_end():
                self._finish(reader)

    def _open_oldest(self) -> None:
        segment = self._segments[0]
        if self._writing is not None and self._writing[0] == segment:
            self._seal()
        try:
            self._reading = _Reader(segment)
        except FileNotFoundError:
            self._gone(segment)
        except OSError:
            self._give_up(segment)

    def _next_entries(self, reader: _Reader, max_entries: int, max_bytes: int) -> list[Entry]:
        entries: list[Entry] = []
        size = 0
        while len(entries) < max_entries and size < max_bytes and (data := reader.next()) is not None:
            size += len(data)
            entries.append((self._shard_for(data), data))
        return entries

    def _finish(self, reader: _Reader) -> None:
        if reader.rest:
            self.torn_lines += 1
            self._problems.log_once("spool:torn", "a spool segment ends in the middle of an event, as after a crash")
        try:
            reader.segment.path.unlink(missing_ok=True)
        except OSError as error:
            self._problems.log_once(
                "spool:kept",
                f"a spool segment was sent but cannot be deleted ({type(error).__name__}, errno {error.errno}); the next process "
                "sends it again, without creating second rows; check the disk of capture.spool_dir",
            )
            self._stuck.add(reader.segment.owner)
        self._forget(reader.segment)

    def _give_up(self, segment: _Segment) -> None:
        self._problems.log_once(
            "spool:unreadable", "a spool segment cannot be read and is left in place; check capture.spool_dir"
        )
        self._stuck.add(segment.owner)
        self._forget(segment)

    def _gone(self, segment: _Segment) -> None:
        self._problems.log_once(
            "spool:gone",
            "spool segments were deleted by another program, and their events are lost; check capture.spool_dir",
        )
        self._forget(segment)

    def _forget(self, segment: _Segment) -> None:
        if self._reading is not None and self._reading.segment == segment:
            self._close_reading()
        self._segments.remove(segment)
        owner = self._locked.get(segment.owner)
        if owner is None or owner is self._own or owner.name in self._stuck:
            return
        if not any(other.owner == owner.name for other in self._segments):
            self._locked.pop(owner.name).release()

    # Owners

    def adopt(self) -> None:
        """Take over the segments of dead processes.

        Their events are sent before this process's own, except for a segment already begun.
        """
        for owner in self._owners.abandoned(self._locked):
            self._take_over(owner)
        if not self._looked_around:
            self._looked_around = True
            self._name_what_nobody_sends()

    def _take_over(self, owner: Owner) -> None:
        try:
            segments = [_Segment(owner.name, *segment) for segment in owner.segments()]
        except OSError:
            segments = []
        if not segments:
            owner.release()
            return
        self._locked[owner.name] = owner
        self.adopted_segments += len(segments)
        self._segments = sorted([*self._segments, *segments])
        reading = self._reading
        if reading is not None:
            self._segments.remove(reading.segment)
            self._segments.insert(0, reading.segment)

    def _name_what_nobody_sends(self) -> None:
        for name in self._owners.left_for_others():
            whose = "of an earlier version, for an unknown Redis" if name == UNNAMED else f"for {name}"
            self._problems.log_once(
                f"spool:left:{name}",
                f"the spool contains events {whose}, which no running process sends; if they belong to this program's address, "
                f"set capture.spool_adopt (ASSAY_CAPTURE_SPOOL_ADOPT) to {name}",
            )

    # Size and end

    def bytes_waiting(self) -> int:
        """Return the bytes in segments of this process and adopted ones."""
        return sum([segment.size for segment in list(self._segments)])

    def close(self) -> None:
        """Release everything; waiting events stay for the next process."""
        self._seal()
        self._close_reading()
        for name in list(self._locked):
            self._locked.pop(name).release()
        self._segments = []

    def abandon(self) -> None:
        """Close the copies of the parent's descriptors in a forked child. The parent's locks stay locked."""
        owners = [owner.descriptor for owner in self._locked.values()]
        for descriptor in [*owners, *([self._writing[1]] if self._writing else [])]:
            os.close(descriptor)
        self._locked = {}
        self._writing = None
        self._segments = []
        self._close_reading()

    def _close_reading(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            os.close(reading.descriptor)
