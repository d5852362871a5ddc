"""A file of lines that several processes append to, and that is rotated by size.

Each write holds a lock (flock on `PATH.lock`), so lines never mix and only one process rotates: `PATH.1` becomes
`PATH.2` and so on, `PATH` becomes `PATH.1`. One line is one write. A process killed within a write leaves a torn line;
the next writer ends it with a line feed, so that no other line is lost. Nothing that was written is ever cut or
written again, so that a reader can follow. POSIX only (flock).
"""

import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_FLAGS = os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class RotatingFile:
    """Appends lines. One thread of a process uses it; opens its files again for each write."""

    def __init__(self, path: Path, max_bytes: int, keep: int) -> None:
        self._path = path
        self._lock_path = path.with_name(path.name + ".lock")
        self._max_bytes = max_bytes
        self._keep = keep
        self._lock = -1
        self._descriptor = -1

    def append(self, next_line: Callable[[], bytes | None]) -> None:
        """Lock the file and append lines until `next_line` returns None: it is asked after each whole line.

        Blocks while another process holds the lock. Raises OSError: no directory, permission or space.
        """
        try:
            self._take_lock()
            self._open()
            while (line := next_line()) is not None:
                self._write(line)
        finally:
            self._release()

    def abandon(self) -> None:
        """Close the copies of open files in a forked child. The parent keeps the lock."""
        for descriptor in (self._descriptor, self._lock):
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)
        self._lock = self._descriptor = -1

    def _take_lock(self) -> None:
        self._make_directory()
        while True:
            self._lock = os.open(self._lock_path, os.O_RDWR | _FLAGS, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._lock), self._lock_path.stat()):
                    return
            os.close(self._lock)  # the lock's file was removed meanwhile, and others lock a new one
            self._lock = -1

    def _release(self) -> None:
        if self._lock >= 0:
            with suppress(OSError):  # explicitly: a child forked meanwhile has a copy of the descriptor
                fcntl.flock(self._lock, fcntl.LOCK_UN)
        self.abandon()

    def _make_directory(self) -> None:
        """Create the directory for this user alone. An existing one is left as it is."""
        directory = self._path.parent
        if not directory.is_dir():
            directory.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                directory.mkdir(mode=0o700)

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | _FLAGS, 0o600)

    def _write(self, line: bytes) -> None:
        size = os.fstat(self._descriptor).st_size
        if size and size + len(line) > self._max_bytes:
            self._rotate()
            size = 0
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        if os.write(self._descriptor, line) != len(line):
            raise OSError(errno.ENOSPC, "no space for a whole line")

    def _rotate(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1
        if self._keep == 0:
            self._path.unlink()
        for number in range(self._keep, 0, -1):
            newer = self._path if number == 1 else self._numbered(number - 1)
            with suppress(FileNotFoundError):
                newer.rename(self._numbered(number))
        self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
