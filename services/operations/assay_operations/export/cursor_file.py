"""The cursor file of an export, and its lock file, which keeps a second export out."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from assay_operations.errors import OperationError
from assay_operations.time_bounds import cursor


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a cursor file: two exports at once would export the same rows. Raises `OperationError`.

    The lock file is never removed: else a third export could lock a new file while a second still waits for the old one.
    """
    target = path.resolve()
    try:
        descriptor = os.open(target.with_name(f".{target.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise OperationError("unavailable", f"--cursor-file: cannot lock {path}: {error}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperationError(
                "conflict",
                f"--cursor-file: another export is using {path}; wait for its end, or give each export its own file",
            ) from None
        except OSError as error:
            raise OperationError(
                "unavailable", f"--cursor-file: cannot lock {path}: {error}; use a file on a local disk"
            ) from None
        yield
    finally:
        os.close(descriptor)


def read_cursor(path: Path) -> int | None:
    """Read the cursor of the previous export; None for the first. Raises `OperationError`."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise OperationError("unavailable", f"--cursor-file: cannot read {path}: {error}") from None
    return cursor(text.strip(), str(path))


def write_cursor(path: Path, place: int) -> None:
    """Replace the cursor atomically: after a crash it is the old one or the new one.

    Raises `OperationError`.

    A larger cursor that another process wrote meanwhile is kept.
    """
    if (read_cursor(path) or 0) > place:
        return
    path = path.resolve()
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(f"{place}\n")
                file.flush()
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise OperationError(
            "unavailable", f"--cursor-file: cannot write {path}: {error}; the rows were exported, the cursor is {place}"
        ) from None


def alone(cursor_file: Path | None, limit: int | None) -> contextlib.AbstractContextManager[None]:
    """Lock the cursor file, if there is one. Raises `OperationError`."""
    if cursor_file is None:
        return contextlib.nullcontext()
    if limit is not None:
        raise OperationError(
            "invalid",
            "--limit with --cursor-file would permanently skip rows beyond the limit; use one of them, or bound the window with --until",
        )
    return locked(cursor_file)


def settle(out: BinaryIO) -> None:
    """Sync the rows to disk before the cursor is written. Does nothing for a pipe."""
    with contextlib.suppress(OSError, ValueError):
        os.fsync(out.fileno())
