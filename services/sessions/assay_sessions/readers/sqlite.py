"""SQLite databases of a running program, read without changing anything."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from assay_sessions.readers.reader import ProblemKind

#: Copies of a database that is written at the same time are made again, this often.
COPIES_MAX: Final = 5
_BESIDE: Final = ("-wal", "-journal")
_FAILURES: Final[dict[int, tuple[ProblemKind, str]]] = {
    sqlite3.SQLITE_CORRUPT: ("damaged", "database with damaged pages"),
    sqlite3.SQLITE_NOTADB: ("damaged", "not a database"),
    sqlite3.SQLITE_BUSY: ("unreadable", "locked by another program"),
    sqlite3.SQLITE_LOCKED: ("unreadable", "locked by another program"),
    sqlite3.SQLITE_CANTOPEN: ("unreadable", "SQLite cannot open it"),
    sqlite3.SQLITE_IOERR: ("unreadable", "input/output error"),
}


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading, with the turns that are only in its write-ahead log.

    Texts are returned as bytes.

    No file is created or modified, and no lock keeps the program from writing. With a log and its shared memory, the database is
    read where it is. With a log alone, SQLite would create the shared memory, so a private copy is read; the same happens if
    SQLite cannot use it read-only. Without a log, the file is read as it is.

    Raises `sqlite3.DatabaseError` or `OSError`.
    """
    with path.open("rb"):  # an error of the operating system says more than SQLite's
        pass
    if _size(path, "-journal") or (_size(path, "-wal") and not _beside(path, "-shm").exists()):
        with _copied(path) as copy:
            yield copy
        return
    # Without a log, nothing is written to the database itself: it can be read without locks, which would create files.
    logged = all(_beside(path, suffix).exists() for suffix in ("-wal", "-shm"))
    options = "mode=ro&readonly_shm=1" if logged else "mode=ro&immutable=1"
    try:
        connection = _connected(path, options)
    except sqlite3.OperationalError:
        with _copied(path) as copy:
            yield copy
        return
    try:
        yield connection
    finally:
        connection.close()


def tables(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the tables."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name.decode("utf-8", "replace") for (name,) in rows}


def rows(cursor: sqlite3.Cursor) -> Iterator[dict[str, Any]]:
    """Yield rows by the names of their columns."""
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def failure(error: sqlite3.Error, name: str) -> tuple[ProblemKind, str, str]:
    """Return the problem that an error of SQLite is: its kind, the file's `name`, and the reason.

    SQLite's message is not repeated: it can quote the content of a database.
    """
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the rest is the extended code
    kind, reason = _FAILURES.get(code, ("damaged", "SQLite cannot read it"))
    return kind, name, reason


def has_lost_log(path: Path) -> bool:
    """Tell if a database was written with a write-ahead log that is not next to it."""
    with path.open("rb") as file:
        head = file.read(20)
    return head[18:20] == b"\x02\x02" and not _beside(path, "-wal").exists()


def _connected(path: Path, options: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(path))}?{options}", uri=True, timeout=10, isolation_level=None)
    try:
        connection.text_factory = bytes
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def _copied(path: Path) -> Iterator[sqlite3.Connection]:
    with tempfile.TemporaryDirectory(prefix="assay-sessions-") as folder:  # mode 0700
        copy = Path(folder) / "copy.db"
        for _ in range(COPIES_MAX):
            before = _state(path)
            for suffix in ("", *_BESIDE):
                _beside(copy, suffix).unlink(missing_ok=True)
                if _beside(path, suffix).exists():
                    shutil.copyfile(_beside(path, suffix), _beside(copy, suffix))
            if _state(path) == before:
                break
        connection = _connected(copy, "mode=rw")
        try:
            yield connection
        finally:
            connection.close()


def _state(path: Path) -> list[tuple[int, int] | None]:
    return [_stamp(_beside(path, suffix)) for suffix in ("", *_BESIDE)]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def _size(path: Path, suffix: str) -> int:
    stamp = _stamp(_beside(path, suffix))
    return stamp[0] if stamp else 0


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
