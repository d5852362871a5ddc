"""A directory in which each checkpoint is a new file that is never overwritten.

For example a mounted object store with retention.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from assay_auditor.anchors.anchor import DIRECTORY, Anchor, Anchored, AnchorError, Prove
from assay_auditor.keys import sync_directory
from assay_auditor.notes import NOTE_BYTES, Checkpoint, NoteError, Signed, parts_of

#: A file: the size of the log, and the number of the attempt after one whose writing was interrupted.
_NAME = re.compile(r"(\d{20})(?:\.([2-9]))?\.txt")
_ATTEMPTS = 9


class Directory(Anchor):
    """Writes each checkpoint into a new file, opened so that an existing one is never changed.

    Delivery: at least once. A file that has the checkpoint already counts.
    """

    kind = DIRECTORY

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        #: The largest size that a file of the directory has; -1 before the first look.
        self._largest = -1

    def submit(self, signed: Signed, prove: Prove, known: int) -> Anchored:  # noqa: ARG002 - needs no proof
        """Write the checkpoint, and wait until it is on the disk."""
        size = signed.checkpoint.size
        try:
            if self._largest < 0:  # once: it may have millions of files
                self._largest = max((each for each, _ in files_in(self._path)), default=0)
            if self._largest > size:
                raise AnchorError(
                    f"{self.name} has a checkpoint of {self._largest} leaves, and the newest has {size}: an old backup was restored, or "
                    "another log is kept there. Run assay audit verify --full",
                    contradicts=True,
                )
            self._write(signed)
            self._largest = size
        except OSError as error:
            raise AnchorError(
                f"cannot write into {self.name} ({error.strerror or type(error).__name__}); check auditor.anchor_directory"
            ) from None
        return Anchored(size, signed.note, "", datetime.now(UTC))

    def _write(self, signed: Signed) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            path = self._path / name_of(signed.checkpoint.size, attempt)
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o440)
            except FileExistsError:
                if self._has(path, signed):
                    return
                continue
            with os.fdopen(descriptor, "wb") as file:
                file.write(signed.note.encode())
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(OSError):  # a mounted object store has no directories to sync
                sync_directory(self._path)
            return
        raise AnchorError(f"{path} and its predecessors are only the starts of checkpoints: remove them")

    def _has(self, path: Path, signed: Signed) -> bool:
        """True if a file has this checkpoint; False if it has only the start of one. Raises `AnchorError` for another log."""
        content = read_note(path)
        if content == signed.note:
            return True
        if signed.note.startswith(content):
            return False
        try:
            if Checkpoint.parsed(parts_of(content)[0]) == signed.checkpoint:  # signed by another key too
                return True
        except NoteError:
            pass
        raise AnchorError(
            f"{path} has another checkpoint of {signed.checkpoint.size} leaves: another log is kept there, or this one was rewritten. "
            "Run assay audit verify --full",
            contradicts=True,
        )


def name_of(size: int, attempt: int = 1) -> str:
    """Return the name of the file of a checkpoint, in the order of the sizes."""
    return f"{size:020}.txt" if attempt == 1 else f"{size:020}.{attempt}.txt"


def files_in(path: Path) -> Iterator[tuple[int, Path]]:
    """Return size and path of each file of a checkpoint, in no order. Raises `OSError`."""
    for entry in os.scandir(path):
        if match := _NAME.fullmatch(entry.name):
            yield int(match[1]), path / entry.name


def has_file(path: Path, checkpoint: Checkpoint) -> bool:
    """True if a file of the directory has this checkpoint, signed by any key. Raises `OSError`."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            text, _ = parts_of(read_note(path / name_of(checkpoint.size, attempt)))
            if Checkpoint.parsed(text) == checkpoint:
                return True
        except (FileNotFoundError, NoteError):
            continue
    return False


def read_note(path: Path) -> str:
    """Return the start of a file that may be a note. Raises `OSError`."""
    with path.open("rb") as file:
        return file.read(NOTE_BYTES + 1).decode(errors="replace")
