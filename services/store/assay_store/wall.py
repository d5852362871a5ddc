"""The second wall: the store's process gives up unneeded rights before it loads the engine.

The policy of `sql_policy` checks statements; this parses nothing. If a statement that reads a file or opens a connection passes it,
the kernel refuses it: passwords, other services' data, `/proc`, the account's home and the network are unreachable for
the process. This needs Landlock. Without it, a store started by root switches to a dedicated account, which protects
less.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from assay_store import account, landlock
from assay_store.account import DEFAULT_UID, KeptError, Reason
from assay_store.landlock import Right

log = logging.getLogger(__name__)

_READ = Right.READ_FILE | Right.READ_DIR
_OWN = (
    _READ | Right.WRITE_FILE | Right.TRUNCATE | Right.REFER | Right.REMOVE_FILE | Right.REMOVE_DIR
    | Right.MAKE_REG | Right.MAKE_DIR | Right.MAKE_SYM | Right.MAKE_FIFO
)  # fmt: skip

#: Shared libraries, the loader's cache, time zones; information about processors and memory for the engine. Of /proc,
#: only two files that it reads once while it is loaded (without `auxv` it guesses the location of processor features):
#: the rest reveals the process's environment and memory. The engine is loaded in a separate thread, because the main
#: thread's stack is looked up in /proc.
_SYSTEM = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo",
    "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage", "/proc/self/auxv", "/proc/sys/vm/overcommit_memory",
    "/dev/random", "/dev/urandom",
)  # fmt: skip


class WallError(Exception):
    """The wall cannot be raised although the kernel supports it; the message gives the reason."""


@dataclass(frozen=True)
class Wall:
    """The kernel's restrictions: `files` outside the store, `network` except clients' connections.

    If it denies neither, `uid` is the process's own account, or `kept` and `why` give the reason why it has none.
    """

    files: bool
    network: bool
    uid: int | None = None
    kept: Reason | None = None
    why: str = ""

    @property
    def gap(self) -> str:
        """Access that the kernel does not deny; '' if the wall is complete."""
        if self.uid is not None:
            return (
                f"the store's process runs as uid {self.uid}, which keeps it from files that are closed to other accounts; only the "
                "check of statements keeps readers from files that everybody may read, from programs and from connections: "
                + _NEEDED
            )
        if not self.files:
            return (
                "the store's process can open everything that its account can, and only the check of statements keeps readers from it: "
                f"{_NEEDED}. It has no separate account either: {self.why}"
            )
        if not self.network:
            return (
                "the store's process can open connections, and only the check of statements keeps readers from that: "
                f"Linux {_NAMES[4]} or later is needed"
            )
        return ""

    def tell(self) -> None:
        """Log the state of the wall, with a warning for a gap."""
        if self.files or self.uid is not None:
            log.info("second wall: %s", "Landlock" if self.files else f"uid {self.uid}")
        if self.gap:
            there = self.files or self.uid is not None
            log.warning("a gap in the second wall: %s" if there else "no second wall: %s", self.gap)


_NAMES = {2: "5.19", 4: "6.7"}
_NEEDED = (
    f"Linux {_NAMES[landlock.OLDEST_VERSION]} or later with Landlock is needed, and a container that allows its calls"
)


def raise_wall(data: Path, speaks: int | None = None, uid: int = DEFAULT_UID) -> Wall:
    """Restrict the process to its data directory and the files of the interpreter and the engine.

    Call it when the listener is bound and the users are read, and before a thread runs or the engine is loaded: what is open stays
    open. `speaks` is the version of Landlock to go by, for tests; `uid` the account to take where there is none and root started it.

    Raises:
        WallError: the kernel speaks Landlock but refused these rules, or other threads are running.
    """
    _use_own_temporary_directory(data / "tmp")
    speaks = landlock.version() if speaks is None else speaks
    try:
        wall = _by_account(data, uid) if speaks < landlock.OLDEST_VERSION else _by_landlock(data, speaks)
    except (OSError, RuntimeError) as failure:
        raise WallError(f"the store's process cannot give up its rights (Landlock {speaks}): {failure}") from failure
    wall.tell()
    return wall


def _by_landlock(data: Path, speaks: int) -> Wall:
    reading = [Path(path) for path in _SYSTEM] + _code()
    rights = {**dict.fromkeys(reading, _READ), Path(os.devnull): _READ | Right.WRITE_FILE, data: _OWN}
    landlock.restrict(rights, speaks)
    return Wall(files=True, network=landlock.controls_network(speaks))


def _by_account(data: Path, uid: int) -> Wall:
    try:
        account.change(data, _code(), uid)
    except KeptError as kept:
        return Wall(files=False, network=False, kept=kept.reason, why=str(kept))
    return Wall(files=False, network=False, uid=uid)


def _code() -> list[Path]:
    """Return the locations of modules that may be imported later, never the working directory.

    These are the standard library, installed packages and this one.
    """
    paths = sysconfig.get_paths()
    directories = [Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    directories += [Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    directories += [Path(sys.base_prefix, "lib"), Path(__file__).parent]
    engine = importlib.util.find_spec("chdb")  # which does not load it
    if engine and engine.origin:
        directories.append(Path(engine.origin).parent.parent)
    return directories


def _use_own_temporary_directory(directory: Path) -> None:
    """Redirect Python's and the engine's temporary files here, and delete those left by a killed store."""
    if directory.is_symlink():
        directory.unlink()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    tempfile.tempdir = str(directory)
    os.environ["TMPDIR"] = str(directory)
