"""The file in which an export keeps how far it came."""

import os
import tempfile
from pathlib import Path

from assay_cli.durations import cursor
from assay_cli.errors import CommandError


def read_cursor(path: Path) -> int | None:
    """The cursor that the last export left, or None for the first. Raises `CommandError`."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--cursor-file: cannot read {path}: {error}") from None
    return cursor(text.strip(), str(path))


def write_cursor(path: Path, place: int) -> None:
    """Replace the file in one step that survives a crash: either the old cursor is there or the new one. Raises `CommandError`."""
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
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
        raise CommandError(
            f"--cursor-file: cannot write {path}: {error}; the rows were exported, the cursor is {place}"
        ) from None
