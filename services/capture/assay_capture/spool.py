"""Where events wait on disk while Redis cannot take them.

Below `capture.spool_dir`, each user has a directory of their own (0700), `assay-spool-<uid>`. The directory above may be anybody's, such as
/tmp: nothing about it is changed. In the user's are segments (0600), `<owner>-<number>.jsonl`, one event a line, and a `<owner>.lock` for
each process that writes there. A process holds a lock on its own lock file as long as it lives. Whoever finds a lock free owns the segments
beside it, so what a dead process left is sent by the next one that looks. A segment is deleted after Redis has acknowledged its last event;
a crash before that sends it again, and `event_id` keeps that from becoming second rows.

Not thread-safe: the publisher's thread owns it. POSIX only (flock).
"""

import errno
import fcntl
import os
import stat
import tempfile
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from assay_capture.entry_queue import Entry
from assay_capture.stats import Problems
from assay_schema.ids import new_event_id

#: A segment is closed when it is this large, in bytes, or an eighth of the whole spool.
SEGMENT_BYTES = 4 * 1024 * 1024
#: Read at once from a segment, in bytes.
READ_BYTES = 256 * 1024


def default_spool_dir() -> Path:
    """`assay-spool` in the user's state directory, or, for a user without a home, the directory for temporary files."""
    state = os.environ.get("XDG_STATE_HOME")
    if state and Path(state).is_absolute():
        return Path(state) / "assay-spool"
    try:
        return Path.home() / ".local" / "state" / "assay-spool"
    except RuntimeError:
        return Path(tempfile.gettempdir())


def private_directory(spool_dir: Path) -> Path:
    """This user's own directory in a spool directory that others may use too."""
    return spool_dir / f"assay-spool-{os.geteuid()}"


@dataclass(order=True)
class _Segment:
    """A file of events. Sorts by its owner's start, then by number: the order in which the events were captured."""

    owner: str
    number: int
    path: Path = field(compare=False)


class _Reader:
    """Reads a segment line by line. A bare descriptor, since a file object has a lock, which a fork may catch locked."""

    def __init__(self, segment: _Segment) -> None:
        self.segment = segment
        self.descriptor = os.open(segment.path, os.O_RDONLY)
        self._lines: deque[bytes] = deque()
        #: What stands after the last line's end; at the end of the file, a line cut off.
        self.rest = b""

    def next(self) -> bytes | None:
        """The next whole line without its end, or None after the last."""
        return None if self.at_end() else self._lines.popleft()

    def at_end(self) -> bool:
        """Whether no whole line is left."""
        while not self._lines:
            chunk = os.read(self.descriptor, READ_BYTES)
            if not chunk:
                return True
            *lines, self.rest = (self.rest + chunk).split(b"\n")
            self._lines.extend(lines)
        return False


class Spool:
    """The segments of this process and those it took over, as one first-in first-out sequence of events."""

    def __init__(
        self, spool_dir: Path, max_bytes: int, fsync: bool, shard_for: Callable[[bytes], int], problems: Problems
    ) -> None:
        self._directory = private_directory(spool_dir)
        self._max_bytes = max_bytes
        self._segment_bytes = min(SEGMENT_BYTES, max(1, max_bytes // 8))
        self._fsync = fsync
        self._shard_for = shard_for
        self._problems = problems
        self._owner: str | None = None
        self._locks: dict[str, int] = {}
        self._segments: list[_Segment] = []
        self._next_number = 1
        self._writing: tuple[_Segment, int] | None = None
        self._reading: _Reader | None = None
        self.adopted_segments = 0
        self.torn_lines = 0

    # Writing

    def reserve(self) -> int:
        """A place for a batch that is on its way: should it come back, it goes before everything that is written from now on."""
        self._next_number += 1
        return self._next_number - 1

    def write(self, entries: list[Entry], place: int | None = None) -> str | None:
        """Append a batch, or put it in the place reserved for it: all of it or nothing.

        Returns None if it is on disk (with fsync: on the medium), else `spool_full` or `spool_error`.
        """
        lines = b"".join([data + b"\n" for _, data in entries])
        try:
            self._own_directory()
            if self._directory_bytes() + len(lines) > self._max_bytes:
                return "spool_full"
            if place is None:
                segment, descriptor = self._writing or self._create(self.reserve())
                self._writing = segment, descriptor
                if self._append(descriptor, lines) >= self._segment_bytes:
                    self._seal()
            else:
                segment, descriptor = self._create(place)
                try:
                    self._append(descriptor, lines)
                finally:
                    os.close(descriptor)
        except OSError as error:
            self._problems.log_once(
                f"spool:{error.errno}",
                f"cannot write the spool ({type(error).__name__}, errno {error.errno}); events wait in memory; "
                f"check the space and rights of capture.spool_dir (ASSAY_CAPTURE_SPOOL_DIR); {self._directory.name} in it has to be "
                "a directory of this user with mode 0700",
            )
            return "spool_error"
        return None

    def _create(self, number: int) -> tuple[_Segment, int]:
        assert self._owner is not None
        segment = _Segment(self._owner, number, self._directory / f"{self._owner}-{number:010d}.jsonl")
        descriptor = os.open(segment.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if segment not in self._segments:
            self._segments.append(segment)
            self._segments.sort()
        if self._fsync:
            _sync_directory(self._directory)
        return segment, descriptor

    def _append(self, descriptor: int, lines: bytes) -> int:
        """Write all lines or none; returns the segment's new size."""
        before = os.fstat(descriptor).st_size
        try:
            view = memoryview(lines)
            while view:
                view = view[os.write(descriptor, view) :]
            if self._fsync:
                os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, before)
            raise
        return before + len(lines)

    def _seal(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            os.close(writing[1])

    # Reading

    def waiting(self) -> bool:
        """Whether any event waits."""
        return bool(self._segments)

    def read(self, max_entries: int, max_bytes: int) -> list[Entry]:
        """The next events, oldest first; call `sent` when Redis has them, before reading on. Empty when nothing is left."""
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
        """Redis has all events that `read` gave last. Deletes the segment if those were its last ones."""
        reader = self._reading
        if reader is not None and reader.at_end():
            self._finish(reader)

    def _open_oldest(self) -> None:
        segment = self._segments[0]
        if self._writing is not None and self._writing[0] == segment:
            self._seal()
        try:
            self._reading = _Reader(segment)
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
            self._problems.log_once("spool:torn", "a spool segment ended in the middle of an event, as after a crash")
        reader.segment.path.unlink(missing_ok=True)
        self._forget(reader.segment)

    def _give_up(self, segment: _Segment) -> None:
        self._problems.log_once(
            "spool:unreadable", "a spool segment cannot be read and is left where it is; check capture.spool_dir"
        )
        self._forget(segment)

    def _forget(self, segment: _Segment) -> None:
        if self._reading is not None and self._reading.segment == segment:
            self._close_reading()
        self._segments.remove(segment)
        if segment.owner != self._owner and not any(other.owner == segment.owner for other in self._segments):
            self._unlock(segment.owner)

    # Owners

    def adopt(self) -> None:
        """Take over the segments of processes that died. Their events go before this process's own, but for a segment begun."""
        try:
            _require_private(self._directory)
            owners = sorted(path.stem for path in self._directory.glob("*.lock"))
        except OSError:
            return  # nothing was ever spooled here, or it is not ours to send; a write would say so
        for owner in owners:
            if owner not in self._locks and (lock := self._locked(owner)) is not None:
                self._take_over(owner, lock)

    def _take_over(self, owner: str, lock: int) -> None:
        self._locks[owner] = lock
        found = [
            _Segment(owner, int(path.stem.rpartition("-")[2]), path)
            for path in self._directory.glob(f"{owner}-*.jsonl")
            if path.stem.rpartition("-")[2].isdigit()
        ]
        self.adopted_segments += len(found)
        self._segments = sorted([*self._segments, *found])
        reading = self._reading
        if reading is not None:
            self._segments.remove(reading.segment)
            self._segments.insert(0, reading.segment)
        if not found:
            self._unlock(owner)

    def _locked(self, owner: str) -> int | None:
        path = self._directory / f"{owner}.lock"
        try:
            descriptor = os.open(path, os.O_RDWR)
        except OSError:
            return None
        return descriptor if _lock(descriptor) else None

    def _own_directory(self) -> None:
        """Make the directory and this process's lock file, once."""
        if self._owner is not None:
            return
        self._directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            self._directory.mkdir(mode=0o700)
        _require_private(self._directory)
        while True:
            owner = new_event_id().replace("-", "")
            descriptor = os.open(self._directory / f"{owner}.lock", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            if _lock(descriptor):  # else another process took the file for a dead one's in between
                self._owner = owner
                self._locks[owner] = descriptor
                return

    def _unlock(self, owner: str) -> None:
        descriptor = self._locks.pop(owner)
        (self._directory / f"{owner}.lock").unlink(missing_ok=True)
        os.close(descriptor)

    # Size and end

    def bytes_waiting(self) -> int:
        """Bytes in the segments of this process and those it took over."""
        return sum(_size(segment.path) for segment in list(self._segments))

    def _directory_bytes(self) -> int:
        return sum(_size(path) for path in self._directory.glob("*.jsonl"))

    def close(self) -> None:
        """Let go of everything; what still waits is there for the next process that looks."""
        self._seal()
        self._close_reading()
        for owner in list(self._locks):
            if any(segment.owner == owner for segment in self._segments):
                os.close(self._locks.pop(owner))
            else:
                self._unlock(owner)
        self._segments = []

    def abandon(self) -> None:
        """In a forked child: close the copies of the parent's descriptors. The parent's locks stay locked."""
        for descriptor in [*self._locks.values(), *([self._writing[1]] if self._writing else [])]:
            os.close(descriptor)
        self._locks, self._writing, self._segments = {}, None, []
        self._close_reading()

    def _close_reading(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            os.close(reading.descriptor)


def _require_private(directory: Path) -> None:
    """Raise unless it is a directory, no link to one, that belongs to this user and that nobody else has any right to.

    Whoever else could write there could have their own events sent, or read these. Nothing is mended: it may be another's on purpose.
    """
    state = directory.lstat()
    if not stat.S_ISDIR(state.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a directory, or a link")
    if state.st_uid != os.geteuid() or state.st_mode & 0o077:
        raise PermissionError(errno.EPERM, "not private to this user")


def _lock(descriptor: int) -> bool:
    """Lock a lock file that still has its name; closes the descriptor if that fails."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink:
            return True
    except OSError:
        pass
    os.close(descriptor)
    return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
