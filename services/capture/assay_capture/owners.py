"""Ownership of spool files by processes.

    <capture.spool_dir>/assay-spool-<uid>/<destination>/<owner>/<number>.jsonl

`capture.spool_dir` may be shared, such as /tmp, and is left unchanged. Each user has a private directory in it (0700)
with one directory for each Redis that events wait for (`assay_schema.topology.destination`). Every process that spools
creates a directory there and keeps it locked for as long as it lives. A process that finds one unlocked takes it over,
so the next process for the same Redis sends the events of a dead one. The lock is on the directory itself: it cannot be
lost while the files are there.

An earlier version kept `<owner>-<number>.jsonl` and `<owner>.lock` directly in the user's directory, for any Redis.
Those files, and directories of other destinations, are sent only if `capture.spool_adopt` names them: they are first
moved into this destination's directory.

POSIX only (flock).
"""

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from assay_schema.ids import new_event_id

#: Names in `capture.spool_adopt`: files of the version without destinations, and everything.
UNNAMED, ALL = "unnamed", "all"


def default_spool_dir() -> Path:
    """Return the default: `assay-spool` in the user's state directory, or in the temporary directory.

    The latter is for users without a home.
    """
    state = os.environ.get("XDG_STATE_HOME")
    if state and Path(state).is_absolute():
        return Path(state) / "assay-spool"
    try:
        return Path.home() / ".local" / "state" / "assay-spool"
    except RuntimeError:
        return Path(tempfile.gettempdir())


def private_directory(spool_dir: Path) -> Path:
    """Return this user's private directory in a spool directory that may be shared."""
    return spool_dir / f"assay-spool-{os.geteuid()}"


@dataclass(frozen=True)
class Owner:
    """A directory of segments, locked by this process.

    Names sort by the time at which their processes began to spool.
    """

    name: str
    path: Path
    descriptor: int

    def segments(self) -> list[tuple[int, Path, int]]:
        """Return number, path and size of each segment."""
        with os.scandir(self.path) as found:
            return [(int(file.name[:-6]), Path(file.path), file.stat().st_size) for file in found if _is_segment(file)]

    def stands(self) -> bool:
        """True if the directory is still in its place."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), self.path.lstat())
        except OSError:
            return False

    def release(self) -> None:
        """Remove the directory if it is empty, and unlock it. Remaining files belong to the next process."""
        with suppress(OSError):
            self.path.rmdir()
        os.close(self.descriptor)


class Owners:
    """The directories of one destination."""

    def __init__(self, spool_dir: Path, destination: str, adopt: Container[str] = ()) -> None:
        self._private = private_directory(spool_dir)
        self._directory = self._private / destination
        self._adopt = adopt

    def begin(self, fsync: bool) -> Owner:
        """Create a directory for this process.

        Raises OSError if there is no space, no permission, or no file locks.
        """
        made = self._make_directories()
        while True:
            path = self._directory / new_event_id().replace("-", "")
            path.mkdir(mode=0o700)
            try:
                owner = _locked(path)
                if fsync:
                    for directory in [self._directory, *made]:
                        sync_directory(directory)
            except OSError:
                with suppress(OSError):
                    path.rmdir()
                raise
            if owner is not None:  # else another process took it over in between, as if abandoned
                return owner

    def _make_directories(self) -> list[Path]:
        """Create the missing parent directories. Returns the parents of the created ones."""
        above = self._private.parent
        made = [missing.parent for missing in (above, *above.parents) if not missing.exists()]
        above.mkdir(mode=0o700, parents=True, exist_ok=True)
        for directory in (self._private, self._directory):
            with suppress(FileExistsError):
                directory.mkdir(mode=0o700)
                made.append(directory.parent)
            _require_private(directory)
        return made

    def abandoned(self, known: Container[str]) -> Iterator[Owner]:
        """Lock and yield the directories of dead processes, oldest first, except the `known` ones."""
        try:
            _require_private(self._private)
        except OSError:
            return  # nothing was ever spooled here, or it is not ours to send; a write would report that
        if self._adopt:
            self._bring_in()
        try:
            _require_private(self._directory)
        except OSError:
            return
        for name in sorted(_directories(self._directory)):
            if name not in known and (owner := _locked_if_free(self._directory / name)) is not None:
                yield owner

    def bytes_elsewhere(self, known: Container[str]) -> int:
        """Return the bytes in segments of other processes with this destination."""
        names = [name for name in _directories(self._directory) if name not in known]
        return sum(_size(file) for name in names for file in _files(self._directory / name) if _is_segment(file))

    # Other destinations

    def left_for_others(self) -> list[str]:
        """Return other destinations with events that no running process will send."""
        try:
            _require_private(self._private)
        except OSError:
            return []
        others = [name for name in sorted(_directories(self._private)) if self._is_other(name)]
        left = [name for name in others if any(map(_is_left, _owner_paths(self._private / name)))]
        return [*left, UNNAMED] if self._unnamed() and UNNAMED not in self._adopt and ALL not in self._adopt else left

    def _is_other(self, name: str) -> bool:
        return name != self._directory.name and name not in self._adopt and ALL not in self._adopt

    def _bring_in(self) -> None:
        """Move files named by `capture.spool_adopt` here, unless a running process owns them.

        The locks are held meanwhile.
        """
        with suppress(OSError):
            for name in _directories(self._private):
                if name != self._directory.name and (name in self._adopt or ALL in self._adopt):
                    for path in filter(_has_segments, _owner_paths(self._private / name)):
                        self._move_in(path)
            if UNNAMED in self._adopt or ALL in self._adopt:
                for name in self._unnamed():
                    self._move_in_unnamed(name)

    def _move_in(self, path: Path) -> None:
        owner = _locked_if_free(path)
        if owner is None:
            return
        try:
            self._make_directories()
            path.rename(self._directory / path.name)
        finally:
            os.close(owner.descriptor)

    def _unnamed(self) -> list[str]:
        """Return the owners' names in files of the earlier version."""
        files = [file.name for file in _files(self._private) if file.name.endswith(".jsonl")]
        parts = [name[:-6].rpartition("-") for name in files]
        return sorted({owner for owner, _, number in parts if owner and number.isdigit() and self._is_unlocked(owner)})

    def _is_unlocked(self, owner: str) -> bool:
        """True if a process of the earlier version is gone.

        Without its lock file, which cleaners of /tmp may have removed, it counts as gone.
        """
        try:
            descriptor = os.open(self._private / f"{owner}.lock", os.O_RDWR | os.O_NOFOLLOW)
        except OSError as error:
            return error.errno == errno.ENOENT
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def _move_in_unnamed(self, name: str) -> None:
        lock = self._private / f"{name}.lock"
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._make_directories()
            directory = self._directory / name
            directory.mkdir(mode=0o700, exist_ok=True)
            for file in _files(self._private):
                owner, _, number = file.name.removesuffix(".jsonl").rpartition("-")
                if owner == name and number.isdigit():
                    Path(file.path).rename(directory / f"{number}.jsonl")
            lock.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Sync a directory's entries to the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _require_private(directory: Path) -> None:
    """Raise unless this is a directory (not a link) that only this user can access.

    Other users with access could have their own events sent, or read these. Permissions are not repaired, because they
    may be intended.
    """
    state = directory.lstat()
    if not stat.S_ISDIR(state.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a directory, or a link")
    if state.st_uid != os.geteuid() or state.st_mode & 0o077:
        raise PermissionError(errno.EPERM, "not private to this user")


def _locked(path: Path) -> Owner | None:
    """Lock an owner's directory. None if it is locked or gone.

    Raises OSError if locks do not work, as on some network file systems.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        owner = Owner(path.name, path, descriptor)
        if owner.stands():
            return owner
    except BlockingIOError:
        pass
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _locked_if_free(path: Path) -> Owner | None:
    try:
        return _locked(path)
    except OSError:
        return None


def _is_left(path: Path) -> bool:
    """True if an owner's directory has segments, and no running process owns it."""
    if not _has_segments(path):
        return False
    owner = _locked_if_free(path)
    if owner is not None:
        os.close(owner.descriptor)
    return owner is not None


def _has_segments(path: Path) -> bool:
    return any(map(_is_segment, _files(path)))


def _files(directory: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as found:
            return list(found)
    except OSError:
        return []


def _directories(directory: Path) -> list[str]:
    return [entry.name for entry in _files(directory) if entry.is_dir(follow_symlinks=False)]


def _owner_paths(directory: Path) -> list[Path]:
    return [directory / name for name in sorted(_directories(directory))]


def _is_segment(file: "os.DirEntry[str]") -> bool:
    return file.name.endswith(".jsonl") and file.name[:-6].isdigit()


def _size(file: "os.DirEntry[str]") -> int:
    try:
        return file.stat(follow_symlinks=False).st_size
    except OSError:  # sent meanwhile
        return 0
