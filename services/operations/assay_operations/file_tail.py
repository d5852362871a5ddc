"""Follow the file of events (`capture.sink`) while it is rotated, truncated or replaced.

The open file is what is followed, not its name: while it is open, no other file gets its inode. Before each read, the last bytes that
were read are compared with the file; if they differ, the file was truncated (and perhaps written again), and its copy among the rotated
files is read to its end first. Every line is yielded once.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import orjson

from assay_operations.errors import OperationError
from assay_operations.time_bounds import moment_ms
from assay_schema.event_file import PATH_VARIABLE, default_path
from assay_schema.fields import ToolStatus

#: Stands for the file that the environment names, or the default.
AUTO = "auto"
STATUSES: tuple[str, ...] = get_args(ToolStatus)
#: Seconds between reads while nothing new is written.
PAUSE_S = 0.1
_CHUNK = 256 * 1024
#: Longest line that is shown, in bytes. An event has at most 1 MiB.
_LINE_MAX = 8 * 1024 * 1024
#: Last bytes read that are compared, and first bytes that tell rotated files apart.
_KNOWN_BYTES = 512
#: More rotated files than any setting keeps.
_ROTATED_MAX = 10_000
#: Numbers of rotated files that may be missing in a row: while files are renamed, one is.
_GAP_MAX = 3

Line = tuple[bytes, dict[str, Any]]


def file_path(option: str, environment: Mapping[str, str]) -> Path:
    """Return the file that an option names.

    `auto` is that of `capture.file_path` in the settings, from `ASSAY_CAPTURE_FILE_PATH`, the file of `ASSAY_CONFIG` or `./assay.toml`;
    otherwise the default. Raises `SettingsError` for settings that are not valid.
    """
    from assay_runtime.config import load_settings

    if option != AUTO:
        return Path(option)
    named = environment.get(PATH_VARIABLE)
    configured = Path(named) if named else load_settings().capture.file_path
    return configured.expanduser() if configured else default_path(environment, os.geteuid())


def check_status(status: str | None) -> None:
    """Raise `OperationError` if `status` is not one of the six."""
    if status is not None and status not in STATUSES:
        raise OperationError("invalid", f"--status: {status!r} is not one of {', '.join(STATUSES)}")


def wanted(event: Mapping[str, Any], status: str | None, tool: str | None) -> bool:
    """Return True if a line has the given status and tool; None is any."""
    return status in (None, event.get("status")) and tool in (None, event.get("tool_name"))


def follow_file(
    path: Path,
    since_ms: int,
    *,
    status: str | None,
    tool: str | None,
    live: bool,
    tell: Callable[[str], None],
    still_read: Callable[[], None],
) -> Iterator[Line]:
    """Yield the lines since a time, as they are and parsed; `live`: new ones too.

    Rotated files that were written since then come first. Lines that are not JSON are left out; lines without a readable time are not.
    A missing file is reported to `tell`, and ends it or is waited for if `live`. Raises `OperationError` if the file cannot be read.
    """
    follower = Follower(path, since_ms)
    missing = False
    try:
        first = True
        while True:
            for raw, event in follower.lines():
                if (not first or _time_ms(event, since_ms) >= since_ms) and wanted(event, status, tool):
                    yield raw, event
            first = False
            gone = not path.exists()
            if not live:
                if gone:
                    tell(f"{path} does not exist; see capture.sink and capture.file_path")
                return
            still_read()
            if gone and not missing:
                tell(f"{path} does not exist; waiting for it")
            missing = gone
            time.sleep(PAUSE_S)
    except BrokenPipeError:  # of the reader of the output, not of the file
        raise
    except OSError as error:
        raise OperationError("refused", f"cannot read {path}: {error.strerror or type(error).__name__}") from None
    finally:
        follower.close()


@dataclass(eq=False)
class _File:
    """An open file, and how far it was read. `last` are the bytes before `offset`."""

    descriptor: int
    offset: int = 0
    last: bytes = b""
    partial: bytearray = field(default_factory=bytearray)

    def identity(self) -> tuple[int, int]:
        state = os.fstat(self.descriptor)
        return state.st_dev, state.st_ino

    def is_cut(self) -> bool:
        """True if the file no longer has the bytes that were read last: it was truncated, and perhaps written again."""
        return not self.holds(self)

    def holds(self, other: "_File") -> bool:
        """True if this file has the bytes that were read last of another, at their place."""
        return os.pread(self.descriptor, len(other.last), other.offset - len(other.last)) == other.last

    def read(self) -> Iterator[bytes]:
        """Yield the whole lines from `offset` to the end. The beginning of a last line is kept for the next time."""
        while chunk := os.pread(self.descriptor, _CHUNK, self.offset):
            self.offset += len(chunk)
            self.last = (self.last + chunk)[-_KNOWN_BYTES:]
            *lines, rest = chunk.split(b"\n")
            if lines:
                lines[0] = bytes(self.partial) + lines[0]
                self.partial.clear()
            self.partial += rest
            if len(self.partial) > _LINE_MAX:  # no line of events: what follows up to its end is no JSON either
                self.partial[:] = b"\x00"
            yield from lines


class Follower:
    """Reads what is new in a file and its rotations: `lines` yields each line once. See the module."""

    def __init__(self, path: Path, since_ms: int) -> None:
        self._path = path
        self._since_ms = since_ms
        self._file: _File | None = None
        #: Rotated files that were there before the followed one, by `_mark`.
        self._older: set[tuple[int, int, bytes]] = set()

    def lines(self) -> Iterator[Line]:
        """Yield everything that is new."""
        for raw in self._new():
            with suppress(orjson.JSONDecodeError):
                event = orjson.loads(raw)
                if isinstance(event, dict):
                    yield raw, event

    def close(self) -> None:
        """Close the followed file."""
        if self._file is not None:
            os.close(self._file.descriptor)
            self._file = None

    def _new(self) -> Iterator[bytes]:
        if self._file is None:
            yield from self._begin()
            return
        replaced = self._replaced()
        if self._file.is_cut() or (not self._file.offset and not replaced and self._rotated_unseen()):
            yield from self._after(copied=True)
        elif replaced:
            yield from self._file.read()  # what was written after the last look
            yield from self._after(copied=False)
        else:
            yield from self._file.read()

    def _rotated_unseen(self) -> bool:
        """True if there is a rotated file that was not there before: what an empty file once had may be in it."""
        with ExitStack() as stack:
            rotated = [file for path, file in self._snapshot(stack) if path != self._path]
            return bool(rotated) and _mark(rotated[0].descriptor) not in self._older

    def _replaced(self) -> bool:
        assert self._file is not None
        try:
            state = self._path.stat()
        except FileNotFoundError:
            return False  # renamed or removed: everything that is still written to it is read
        return (state.st_dev, state.st_ino) != self._file.identity()

    def _begin(self) -> Iterator[bytes]:
        """Read rotated files that were written since the time, oldest first, then the file itself."""
        with ExitStack() as stack:
            newest_first = self._snapshot(stack)
            if not newest_first or newest_first[0][0] != self._path:
                return  # only the file itself starts it: without one, rotated files are history of something else
            chosen = [file for _, file in newest_first if file is newest_first[0][1] or self._is_recent(file)]
            self._older = {_mark(file.descriptor) for _, file in newest_first if file not in chosen}
            yield from self._read_through(chosen)

    def _is_recent(self, file: _File) -> bool:
        return os.fstat(file.descriptor).st_mtime * 1000 >= self._since_ms

    def _after(self, *, copied: bool) -> Iterator[bytes]:
        """Continue after a rotation or truncation: the files between the followed one and the present one, then that."""
        before = self._file
        assert before is not None
        with ExitStack() as stack:
            found = self._snapshot(stack)
            newest_first = [file for _, file in found]
            if not found or found[0][0] != self._path:
                return  # the file has vanished again
            chosen = self._newer_than(before, newest_first, copied=copied)
            self._older = {_mark(file.descriptor) for file in newest_first if file not in chosen}
            os.close(before.descriptor)
            self._file = None
            yield from self._read_through(chosen)

    def _newer_than(self, before: _File, newest_first: list[_File], *, copied: bool) -> list[_File]:
        """Return the files that hold what was written after `before` was read; the last may be a copy of it."""
        chosen: list[_File] = []
        for file in newest_first:
            if not copied and file.identity() == before.identity():
                return chosen
            if copied and chosen and file.holds(before):
                file.offset, file.last, file.partial = before.offset, before.last, before.partial
                return [*chosen, file]
            chosen.append(file)
        # It is not among them. Rotated files that were not there before are newer.
        return [file for place, file in enumerate(chosen) if not place or _mark(file.descriptor) not in self._older]

    def _read_through(self, newest_first: list[_File]) -> Iterator[bytes]:
        """Read files from the oldest to the newest, and follow that one."""
        for file in reversed(newest_first[1:]):
            yield from file.read()
            self._older.add(_mark(file.descriptor))
        newest = newest_first[0]
        self._file = _File(os.dup(newest.descriptor))
        yield from self._file.read()

    def _snapshot(self, stack: ExitStack) -> list[tuple[Path, _File]]:
        """Open the file and its rotations, newest first.

        A rotation in between renames a file to a name that is opened later: it is found a second time and left out.
        """
        found: list[tuple[Path, _File]] = []
        seen: set[tuple[int, int]] = set()
        missing = 0
        for number in range(_ROTATED_MAX):
            path = self._path if number == 0 else self._path.with_name(f"{self._path.name}.{number}")
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            except FileNotFoundError:
                missing += number > 0
                if missing > _GAP_MAX:
                    break
                continue
            except PermissionError:
                if number == 0:
                    raise
                continue
            missing = 0
            stack.callback(os.close, descriptor)
            file = _File(descriptor)
            if file.identity() not in seen:
                seen.add(file.identity())
                found.append((path, file))
        return found


def _mark(descriptor: int) -> tuple[int, int, bytes]:
    """Tell a file apart from every other, also from a later one with the same inode: by its first line."""
    state = os.fstat(descriptor)
    return state.st_dev, state.st_ino, os.pread(descriptor, _KNOWN_BYTES, 0).partition(b"\n")[0]


def _time_ms(event: Mapping[str, Any], otherwise: int) -> int:
    """Return the time of a line in Unix milliseconds, or `otherwise` if it has none."""
    moment = event.get("timestamp", event.get("occurred_at"))
    try:
        return moment_ms(moment, 0, "timestamp") if isinstance(moment, str) and "T" in moment else otherwise
    except OperationError:
        return otherwise
