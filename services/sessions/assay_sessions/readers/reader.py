"""The protocol of a reader, the problems that readers report, and the conversation that they build."""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal

from assay_sessions.record import Call, Message, Transcript

ProblemKind = Literal[
    "permission_denied",  # the operating system refused a file or a folder
    "unreadable",  # a file cannot be opened for another reason
    "empty_file",  # a file without a byte, or with blank lines alone
    "damaged",  # a database, a file or lines that were cut or overwritten
    "missing_wal",  # a database without tables whose write-ahead log was not copied with it
    "unknown_schema",  # a database or a file without anything the reader knows
    "unknown_type",  # a row or an item of a type that the reader does not know
    "other_format",  # a file that another reader reads; `detail` names that reader
    "no_content",  # a session or a span without messages; of a span, `detail` names the setting that has them written
    "nothing_said",  # a session without a question or an answer
    "no_session_id",  # a conversation without an id and without a name to make one from
    "too_large",  # a session with a text or a key that cannot be split into parts
]
#: How far the time of a file may be behind the times in it, in seconds.
_TICK_S: Final = 2
#: Names of types are part of a format. Anything else in their place may be captured text.
_TYPE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./:-]{0,63}")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something that a reader could not read, or did not understand. The rest was read.

    `path` is the name of a file or a kind of file, without its folders, and `detail` a type, a place or a reason in plain words.
    Neither contains captured text.
    """

    kind: ProblemKind
    path: str
    count: int = 1
    detail: str = ""


Found = Iterator[Transcript | Problem]
#: Numbers that change when a piece of a store is replaced or written to. They are compared, never ordered.
Mark = tuple[int, ...]


def file_mark(path: Path) -> Mark:
    """Return the mark of a file: its number, size and time of change. Empty if it cannot be looked at."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _of_one_file(store: Path) -> dict[str, Mark]:
    return {str(store): file_mark(store)}


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the sessions of one agent.

    - `locations(home, environment)` returns the places where the agent keeps its sessions, whether they exist or not.
    - `discover(paths)` yields the stores at or below the given paths. A store is a file or a folder.
    - `read(store, since)` yields the sessions that changed at `since` or later, and then the problems. It holds one session in
      memory at a time, raises nothing because of what it reads, and changes nothing.
    - `pieces(store)` returns the files or sessions in a store with their marks: a piece that is new, or has another mark, may have
      sessions that are older than the last look. `read_pieces(store, since, names)` is `read` for some pieces.
    """

    name: str
    locations: Callable[[Path, Mapping[str, str]], list[Path]]
    discover: Callable[[Iterable[Path]], Iterator[Path]]
    read: Callable[[Path, datetime | None], Found]
    pieces: Callable[[Path], dict[str, Mark]] = _of_one_file
    #: None for a reader whose stores have one piece each.
    some: Callable[[Path, datetime | None, Collection[str]], Found] | None = None

    def read_pieces(self, store: Path, since: datetime | None, names: Collection[str]) -> Found:
        """Yield the sessions of some pieces that changed at `since` or later, and then the problems."""
        return self.read(store, since) if self.some is None else self.some(store, since, names)


class Problems:
    """Counts problems of one kind in one file."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[ProblemKind, str, str]] = Counter()

    def add(self, kind: ProblemKind, path: str, detail: str = "", count: int = 1) -> None:
        """Count a problem."""
        self._counts[kind, path, detail] += count

    def unknown(self, path: str, place: str, name: object) -> None:
        """Count a type that the reader does not know.

        A name that does not look like a type's is not repeated.
        """
        known = isinstance(name, str) and _TYPE.fullmatch(name)
        self.add("unknown_type", path, f"{place} {name if known else '(no name)'}")

    def failed(self, path: str, error: OSError) -> None:
        """Count a file that the operating system did not open, with its reason."""
        if isinstance(error, PermissionError):
            self.add("permission_denied", path)
        else:
            self.add("unreadable", path, os.strerror(error.errno).lower() if error.errno else "")

    def __iter__(self) -> Iterator[Problem]:
        for (kind, path, detail), count in self._counts.items():
            yield Problem(kind, path, count, detail)


@dataclass(slots=True)
class Conversation:
    """The messages of a session as a reader finds them."""

    messages: list[Message] = field(default_factory=list)
    #: True if the model was interrupted and nothing came after that.
    aborted: bool = False

    def user(self, text: str) -> None:
        """Add what the user said."""
        self.messages.append(Message("user", text))
        self.aborted = False

    def command(self, call: Call) -> None:
        """Add a command that the user ran."""
        self.messages.append(Message("user", "", (call,)))

    def model(self, items: Iterable[str | Call], *, interrupted: bool = False) -> None:
        """Add the texts and calls of one message of the model, in their order.

        A text after a call becomes a separate message, so that the last message shows if the model spoke last.
        """
        texts: list[str] = []
        calls: list[Call] = []
        for item in items:
            if isinstance(item, Call):
                calls.append(item)
            elif item.strip():
                if calls:
                    self.messages.append(Message("model", "\n\n".join(texts), tuple(calls)))
                    texts, calls = [], []
                texts.append(item)
        if texts or calls:
            self.messages.append(Message("model", "\n\n".join(texts), tuple(calls)))
        cut_off = bool(calls) and calls[-1].error_kind == "interrupted"
        self.aborted = interrupted or cut_off


def from_ms(value: object) -> datetime | None:
    """Return the time of Unix milliseconds, or None if the value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def from_text(value: object) -> datetime | None:
    """Return the time of an ISO 8601 text, in UTC, or None if the value is none."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def passed_ms(start: datetime | None, end: datetime | None) -> float | None:
    """Return the milliseconds between two times, or None if one is unknown or the clock was set back."""
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds() * 1000


def changed_before(path: Path, since: datetime | None) -> bool:
    """Return True if a file did not change at `since` or later.

    File systems keep the time of the kernel's last tick, and some only two seconds, so a file can seem older than what is in it.
    One that cannot be looked at is False: reading it tells why.
    """
    try:
        return since is not None and path.stat().st_mtime + _TICK_S < since.timestamp()
    except OSError:
        return False


def stores(paths: Iterable[Path], pattern: str, *, levels: int, suffixes: Iterable[str]) -> Iterator[Path]:
    """Yield the given files, and those below the given folders whose names and suffixes match.

    A folder that cannot be listed is a store too: reading it tells why.
    """
    for path in paths:
        if is_folder(path):
            closed: list[Path] = []
            yield from (
                found for found in below(path, pattern, levels=levels, closed=closed) if found.suffix in suffixes
            )
            yield from closed
        elif not is_missing(path):
            yield path


def is_folder(path: Path) -> bool:
    """Return True for a folder. A place that cannot be looked at is none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_missing(path: Path) -> bool:
    """Return True if nothing is there. A place that cannot be looked at is False."""
    try:
        return not path.exists()
    except OSError:
        return False


def below(
    folder: Path, pattern: str, problems: Problems | None = None, *, levels: int = 1, closed: list[Path] | None = None
) -> Iterator[Path]:
    """Yield the files at most `levels` folders down whose names match, in the order of their paths.

    A folder that does not exist has none. Folders that cannot be read are counted in `problems` and added to `closed`.
    """

    def failed(error: OSError) -> None:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return
        if problems is not None:
            problems.failed(Path(error.filename or folder).name, error)
        if closed is not None:
            closed.append(Path(error.filename or folder))

    for here, folders, names in os.walk(folder, onerror=failed):
        if len(Path(here).relative_to(folder).parts) >= levels - 1:
            folders.clear()
        folders.sort()
        yield from (Path(here) / name for name in sorted(names) if fnmatchcase(name, pattern))
