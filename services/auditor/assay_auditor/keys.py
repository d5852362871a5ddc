"""The log's files on disk: the signer's key, the secret of the salts, and the file of checkpoints.

All are private (0600). The directory is that of one log: two auditors of the same log share it, and `Lock` lets one of them write.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from assay_auditor.notes import NOTE_BYTES, NoteError, Signer

KEY_FILE, SALT_FILE, CHECKPOINT_FILE, LOCK_FILE = "signer.key", "salts.key", "checkpoints.txt", "auditor.lock"
#: The public key of `KEY_FILE`, for readers on this host.
PUBLIC_FILE = "signer.vkey"
#: The key that replaces `KEY_FILE` at the next pass of the auditor, and the statements of all such rotations.
NEXT_FILE, ROTATION_FILE = "signer.next.key", "rotations.txt"
#: Hashes of the leaves and disclosures of the batch that is being written; empty between batches.
BATCH_FILE = "batch.jsonl"
_SECRET_BYTES = 32
#: The end of a whole note in the file of checkpoints, and the bytes at the end of the file that are searched for it.
_NOTE_END = re.compile(rb"(?:^|\n)\xe2\x80\x94 [^\n]+\n\n")
_TAIL_BYTES = 65_536
#: Bytes that are read at once.
_READ_BYTES = 65_536


class KeyFileError(RuntimeError):
    """A file of the log is missing, damaged or readable by others. The message names it and the fix."""


def load_or_create(directory: Path, origin: str) -> tuple[Signer, bytes]:
    """Return the signer and the secret of the salts. Raises `KeyFileError`.

    The first start generates both.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise KeyFileError(f"cannot create {directory} ({error.strerror}); see auditor.directory") from None
    key = directory / KEY_FILE
    _create(key, lambda: Signer(origin, secrets.token_bytes(32)).skey)
    _create(directory / SALT_FILE, lambda: secrets.token_hex(_SECRET_BYTES))
    try:
        signer = Signer.parsed(_read(key))
        salts = bytes.fromhex(_read(directory / SALT_FILE))
    except NoteError as error:
        raise KeyFileError(f"{key}: {error}; restore it from a backup") from None
    except ValueError:
        raise KeyFileError(f"{directory / SALT_FILE} is damaged; restore it from a backup") from None
    if signer.name != origin:
        raise KeyFileError(f"{key} signs for {signer.name!r}, not {origin!r}; see auditor.origin")
    if len(salts) != _SECRET_BYTES:
        raise KeyFileError(f"{directory / SALT_FILE} is damaged; restore it from a backup")
    _publish(directory, signer)
    return signer, salts


def next_signer(directory: Path, origin: str) -> Signer | None:
    """Return the key that is to replace the present one; None without one. Raises `KeyFileError`."""
    path = directory / NEXT_FILE
    if not path.exists():
        return None
    try:
        signer = Signer.parsed(_read(path))
    except NoteError as error:
        raise KeyFileError(f"{path}: {error}; remove it, and run assay audit rotate-key again") from None
    if signer.name != origin:
        raise KeyFileError(f"{path} signs for {signer.name!r}, not {origin!r}; remove it")
    return signer


def prepare_signer(directory: Path, signer: Signer) -> None:
    """Give the auditor a key that replaces the present one, unless there is one already.

    Raises `KeyFileError`.
    """
    _create(directory / NEXT_FILE, lambda: signer.skey)


def replace_signer(directory: Path, signer: Signer) -> None:
    """Replace the private key by the next one, and publish its public key.

    Raises `KeyFileError`.
    """
    try:
        (directory / NEXT_FILE).replace(directory / KEY_FILE)
        sync_directory(directory)
    except OSError as error:
        raise KeyFileError(f"cannot replace {directory / KEY_FILE} ({error.strerror})") from None
    _publish(directory, signer)


def _publish(directory: Path, signer: Signer) -> None:
    """Write the public key, in place of that of an earlier one."""
    path = directory / PUBLIC_FILE
    try:
        if path.exists() and path.read_text().strip() == signer.verifier.vkey:
            return
        draft = directory / f".{PUBLIC_FILE}.{secrets.token_hex(8)}"
        _create(draft, lambda: signer.verifier.vkey)
        draft.replace(path)
        sync_directory(directory)
    except OSError as error:
        raise KeyFileError(f"cannot write {path} ({error.strerror}); see auditor.directory") from None


def _create(path: Path, content: Callable[[], str]) -> None:
    """Create a private file as a whole, unless it exists. Of two processes one wins."""
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(content() + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
        sync_directory(path.parent)
    except OSError as error:
        raise KeyFileError(f"cannot write {path} ({error.strerror}); see auditor.directory") from None
    finally:
        draft.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on the disk. Raises `OSError`."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            raise KeyFileError(
                f"other users can read {path}: run chmod 600 {path}, and rotate the key if they may have"
            )
        return path.read_text().strip()
    except OSError as error:
        raise KeyFileError(
            f"cannot read {path} ({error.strerror}); restore it from a backup, or see auditor.directory"
        ) from None


class Lock:
    """Lets one process write the log. The kernel frees it when the process ends, however it ends."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK_FILE
        self._descriptor: int | None = None

    def held(self) -> bool:
        """Take the lock if it is free. True if this process holds it. Raises `OSError`."""
        if self._descriptor is None:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Free the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def append_checkpoint(directory: Path, note: str, name: str = CHECKPOINT_FILE) -> None:
    """Append a note to the file of checkpoints, and wait until it is on the disk.

    Raises `OSError`; no part of the note is left in the file then. `name`: another file of notes.
    """
    path = directory / name
    is_new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        _cut_torn_end(descriptor)
        content = note.encode() + b"\n"
        size = os.fstat(descriptor).st_size
        try:
            is_whole = os.write(descriptor, content) == len(content)
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
        if not is_whole:
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)
    if is_new:
        sync_directory(directory)


def _cut_torn_end(descriptor: int) -> None:
    """Remove a note whose writing was interrupted: it was never acknowledged."""
    size = os.fstat(descriptor).st_size
    start = max(0, size - _TAIL_BYTES)
    tail = os.pread(descriptor, size - start, start)
    ends = _ends(tail)
    end = start + (ends[-1] if ends else 0)
    if end < size and (ends or not start):
        os.ftruncate(descriptor, end)


def keep_batch(directory: Path, *content: bytes) -> None:
    """Write what a batch needs after a crash, and wait until it is on the disk.

    It replaces that of the batch before. Raises `OSError`.
    """
    path = directory / BATCH_FILE
    is_new = not path.exists()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        for part in content:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync_directory(directory)


def drop_batch(directory: Path) -> None:
    """Remove what `keep_batch` kept. Raises `OSError`."""
    path = directory / BATCH_FILE
    if path.exists():
        os.truncate(path, 0)


def kept_batch(directory: Path) -> bytes:
    """Return what `keep_batch` kept; the last line may be cut. Raises `OSError`."""
    path = directory / BATCH_FILE
    return path.read_bytes() if path.exists() else b""


def last_notes(directory: Path) -> list[str]:
    """Return the whole notes at the end of the file of checkpoints; [] without a file. Raises `OSError`."""
    try:
        descriptor = os.open(directory / CHECKPOINT_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _TAIL_BYTES))
        content = file.read()
        start = 0
        ends = _ends(content)
        if size > _TAIL_BYTES and len(ends) > 1:
            start = ends[0]  # a whole note follows the first end
        elif size > _TAIL_BYTES:
            file.seek(0)
            content = file.read()
            ends = _ends(content)
    return notes_of(content[start : ends[-1]].decode(errors="replace")) if ends else []


def _ends(content: bytes) -> list[int]:
    """Return where whole notes end."""
    return [match.end() for match in _NOTE_END.finditer(content)]


def is_torn(content: bytes, origin: str) -> bool:
    """True if the last note of a file of checkpoints of a log is only the start of one."""
    ends = _ends(content)
    last = content[ends[-1] if ends else 0 :]
    first = f"{origin}\n".encode()
    return bool(last) and last[: len(first)] == first[: len(last)]


def notes_of(content: str) -> list[str]:
    """Split a file of checkpoints into its notes, a torn last one included. Pure."""
    return list(_notes(content.split("\n")))


def notes_in(path: Path) -> Iterator[str]:
    """Return the notes of a file of checkpoints, a torn last one included. Raises `OSError`.

    Needs the memory of one note. Does not read notes that are appended after the first was returned.
    """
    with path.open("rb") as file:
        yield from _notes(_lines(file, os.fstat(file.fileno()).st_size))


def ends_torn(path: Path, origin: str) -> bool:
    """Return what `is_torn` says of a file. Raises `OSError`."""
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        return is_torn(file.read(_TAIL_BYTES), origin)


def _lines(file: BinaryIO, size: int) -> Iterator[str]:
    """Return the first bytes of a file as `str.split` does; a line that is longer than any note is cut."""
    rest = b""
    while size and (read := file.read(min(size, _READ_BYTES))):
        size -= len(read)
        *whole, rest = (rest + read).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
        if len(rest) > NOTE_BYTES:
            yield rest.decode(errors="replace")
            rest = b""
    yield rest.decode(errors="replace")


def _notes(content: Iterable[str]) -> Iterator[str]:
    lines: list[str] = []
    length = 0
    for line in content:
        is_signature = line.startswith("\N{EM DASH} ")
        if lines and ((not is_signature and lines[-1].startswith("\N{EM DASH} ")) or length > NOTE_BYTES):
            yield "\n".join(lines) + "\n"
            lines, length = [], 0
        if line or lines:
            lines.append(line)
            length += len(line) + 1
    if lines:
        yield "\n".join(lines) + "\n"
