"""Give up root permanently for a dedicated account: the second wall on kernels without Landlock.

The account is a number without a name, a home or a group. It owns the store's data directory, and the kernel denies it
everything that is closed to other accounts. A child process tries everything first, so that the store either has its
account or is unchanged.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import errno
import importlib
import json
import os
import shutil
import signal
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from assay_store.landlock import no_new_privileges, prctl, require_one_thread

#: One of the ids that Debian reserves and systemd leaves unused (65520 to 65533): no accounts, services or containers'
#: ranges have them.
DEFAULT_UID = 65525

#: Names of the store's own files in its data directory, and of those at the top of a file system.
_OWN_NAMES = {
    "backups", "conf", "definitions", "engine", "port", "store.lock", "tmp", "user_files",
}  # fmt: skip
_FILE_SYSTEM_NAMES = {"lost+found"}

_PR_SET_PDEATHSIG, _PR_GET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_GET_SECUREBITS = 1, 2, 4, 27

#: Files with several hard links, by device and number: one of the names, and their number.
Links = dict[tuple[int, int], tuple[Path, int]]


class Reason(enum.Enum):
    """Reasons why the store's process keeps its original account."""

    NOT_ROOT = "not_root"
    PATH = "path"
    PYTHON = "python"
    FOREIGN = "foreign"
    LINKS = "links"
    REFUSED = "refused"


class KeptError(Exception):
    """The process keeps its account, and nothing has changed; the message gives the reason."""

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(why)
        self.reason = reason


def can_change() -> bool:
    """True if this process may take another account."""
    return sys.platform == "linux" and os.geteuid() == 0


def change(data: Path, code: Sequence[Path], uid: int) -> None:
    """Switch to the account `uid`, which then owns the data directory, and load the engine.

    `code` is what the account must be able to read.

    Raises:
        KeptError: the process keeps its account, because there the store could not run, or is not allowed to change it.
        OSError: the kernel refused halfway what it had granted a child process.
        RuntimeError: there are other threads.
    """
    if not can_change():
        raise KeptError(Reason.NOT_ROOT, "it was not started as root, which could give it one")
    require_one_thread()
    data = data.resolve()
    try:
        vetted = _require_own(data, uid)
        obstacle = _try_in_child(data, [path.resolve() for path in code if path.exists()], uid)
        if not obstacle:
            _hand_over(data, uid, vetted)
    except OSError as failure:
        why = f"the data directory cannot be given to uid {uid}: {failure.strerror or failure}"
        raise KeptError(Reason.REFUSED, why) from failure
    if obstacle:
        raise obstacle
    _become(uid)
    _load_engine()


def _become(uid: int) -> None:
    parent, asked = os.getppid(), _death_signal()
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    no_new_privileges()
    if asked:
        # The kernel clears the parent-death signal when the account changes.
        prctl(_PR_SET_PDEATHSIG, asked)
        if os.getppid() != parent:
            signal.raise_signal(asked)


def _load_engine() -> None:
    """Load the engine while the process may still read about itself in /proc.

    The kernel denies that to a process that changed its account. The engine reads the address of the kernel's own
    library there, once; if it cannot, it guesses, and may crash.
    """
    prctl(_PR_SET_DUMPABLE, 1)
    try:
        # In a separate thread, because the main thread's stack is looked up in /proc later, too.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(importlib.import_module, "chdb._chdb").result()
    finally:
        prctl(_PR_SET_DUMPABLE, 0)


def _death_signal() -> int:
    asked = ctypes.c_int(0)
    prctl(_PR_GET_PDEATHSIG, ctypes.addressof(asked))
    return asked.value


def _try_in_child(data: Path, code: Sequence[Path], uid: int) -> KeptError | None:
    """Return what would fail, found by a child process that takes the account and loads the engine."""
    with _scratch(data, uid) as scratch:
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(receive)
                os.environ["TMPDIR"] = str(scratch)
                os.write(send, json.dumps(_obstacle(data, code, uid)).encode())
            finally:
                os._exit(0)
        os.close(send)
        with os.fdopen(receive, "rb") as answer:
            said = answer.read()
        _, status = os.waitpid(child, 0)
    if not said:
        code_said = os.waitstatus_to_exitcode(status)
        return KeptError(
            Reason.REFUSED, f"a process that tried uid {uid} and to load the engine ended with {code_said}"
        )
    reason, why = json.loads(said)
    return KeptError(Reason(reason), why) if reason else None


@contextlib.contextmanager
def _scratch(data: Path, uid: int) -> Iterator[Path]:
    """Give the account a writable directory for the trial, and restore everything afterwards.

    The engine creates a directory as soon as it is loaded.
    """
    lent = [data, data / "tmp", Path(tempfile.mkdtemp(dir=data / "tmp"))]
    with contextlib.ExitStack() as afterwards:
        afterwards.callback(shutil.rmtree, lent[-1], ignore_errors=True)
        for directory in lent:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            afterwards.callback(os.close, descriptor)
            before = os.fstat(descriptor)
            os.fchown(descriptor, uid, uid)
            afterwards.callback(os.fchown, descriptor, before.st_uid, before.st_gid)
        yield lent[-1]


def _obstacle(data: Path, code: Sequence[Path], uid: int) -> tuple[str, str]:
    try:
        if prctl(_PR_GET_SECUREBITS):
            return Reason.REFUSED.value, "root's capabilities would outlast a change of account here (securebits)"
        _become(uid)
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # it holds the lock and the listener, too
    except OSError as failure:
        return Reason.REFUSED.value, f"the kernel refused uid {uid}: {failure.strerror}"
    if closed := _closed(data.parents):
        return Reason.PATH.value, f"{closed}, on the path to the data directory, is closed to uid {uid}"
    for path in code:
        if closed := _closed(path.parents) or (None if os.access(path, os.R_OK) else path):
            return Reason.PYTHON.value, f"{closed}, where Python or its packages are, is closed to uid {uid}"
    try:
        _load_engine()
    except Exception as failure:  # noqa: BLE001  # anything that denies it its code
        return Reason.PYTHON.value, f"the engine cannot be loaded as uid {uid}: {str(failure)[:200]}"
    return "", ""


def _closed(directories: Sequence[Path]) -> Path | None:
    """Return the first directory from the root that this process cannot enter, or None."""
    return next((each for each in reversed(directories) if not os.access(each, os.X_OK)), None)


def _require_own(data: Path, uid: int) -> Links:
    """Check that root may give away the data directory: all files are its own. Returns hard links.

    A directory that was named by mistake holds other programs' files. A store whose wall was broken could have planted hard links to
    other people's files, for root to give them away.

    Raises:
        KeptError: it is not allowed to; the message names what is in the way.
    """
    for path in sorted(data.iterdir()):
        if path.name not in _OWN_NAMES | _FILE_SYSTEM_NAMES:
            raise KeptError(Reason.FOREIGN, f"{path} is in the data directory, and no store put it there: move it out")
    names, links = Counter[tuple[int, int]](), Links()
    for path, _, found in _entries(data):
        if found.st_uid not in (0, uid):
            remedy = f"chown -R 0:0 {data}"
            raise KeptError(
                Reason.FOREIGN, f"{path} belongs to uid {found.st_uid}; to give the store all of it: {remedy}"
            )
        if _is_linked(found, uid):
            names[found.st_dev, found.st_ino] += 1
            links[found.st_dev, found.st_ino] = path, found.st_nlink
    for each, (path, count) in links.items():
        if count > names[each]:
            raise _linked_elsewhere(path)
    return links


def _hand_over(data: Path, uid: int, vetted: Links) -> None:
    """Make the account own the data directory and its content. Never follows a link."""
    for path, descriptor, found in _entries(data):
        if _is_linked(found, uid):
            _, count = vetted.get((found.st_dev, found.st_ino), (path, 1))
            if found.st_nlink > count:  # changed meanwhile
                raise _linked_elsewhere(path)
        if (found.st_uid, found.st_gid) != (uid, uid):
            os.fchown(descriptor, uid, uid)


def _is_linked(found: os.stat_result, uid: int) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_uid != uid and found.st_nlink > 1


def _linked_elsewhere(path: Path) -> KeptError:
    return KeptError(
        Reason.LINKS, f"{path} has another name (hard link) outside of the data directory: remove one of the two"
    )


def _entries(data: Path) -> Iterator[tuple[Path, int, os.stat_result]]:
    """Iterate over the directory and all directories and regular files in it, each open during its turn."""
    for parent, directories, names, directory in os.fwalk(data, follow_symlinks=False):
        if Path(parent) == data:
            directories[:] = [name for name in directories if name not in _FILE_SYSTEM_NAMES]
        yield Path(parent), directory, os.fstat(directory)
        for name in names:
            try:
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
            except OSError as failure:
                if failure.errno in (errno.ELOOP, errno.ENOENT, errno.ENXIO):
                    continue  # a link, gone, or a socket
                raise
            try:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode):
                    yield Path(parent, name), descriptor, status
            finally:
                os.close(descriptor)
