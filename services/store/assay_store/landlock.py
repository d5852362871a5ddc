"""Give up rights over files and the network permanently, by Landlock (Linux).

This applies to this thread, its later threads and its children. The kernel then refuses with EACCES everything that no
rule allows: it parses no statement and knows no roles. Open descriptors keep their rights. The calls have no wrapper in
the C library; see `man 7 landlock` and `include/uapi/linux/landlock.h`, the source of the values here.
"""

from __future__ import annotations

import ctypes
import enum
import os
import sys
from collections.abc import Mapping
from pathlib import Path

# The same numbers on every architecture (except Alpha).
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38
_NET_BIND_TCP, _NET_CONNECT_TCP = 1, 2
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2

#: Earlier versions refuse every rename and link between two directories, which the engine needs. Linux 5.19.
OLDEST_VERSION = 2
#: From this version on, the kernel can refuse to bind and connect TCP sockets. Linux 6.7.
_NETWORK_VERSION = 4
#: From this version on, it can deny the process sockets without a file, and signals, beyond itself. Linux 6.12.
_SCOPES_VERSION = 6


class Right(enum.IntFlag):
    """Rights to a file, or to everything below a directory."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


_FIRST = Right(Right.REFER - 1)
_SINCE = {2: Right.REFER, 3: Right.TRUNCATE, 5: Right.IOCTL_DEV}
_OF_FILES = Right.EXECUTE | Right.WRITE_FILE | Right.READ_FILE | Right.TRUNCATE | Right.IOCTL_DEV


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Return the Landlock version of this kernel; 0 if there is none, or if it cannot be used here."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))))


def controls_network(speaks: int) -> bool:
    """True if this version can refuse TCP."""
    return speaks >= _NETWORK_VERSION


def restrict(allowed: Mapping[Path, Right], speaks: int) -> None:
    """Allow these rights at or below these paths, and nothing else; no TCP from version 4 on.

    Paths that do not exist are left out. `speaks` is the version to go by, at most what `version` says.

    Raises:
        OSError: the kernel refused, and nothing is restricted.
        RuntimeError: there are other threads, which would keep all their rights.
    """
    require_one_thread()
    supported = _FIRST
    for since, right in _SINCE.items():
        if speaks >= since:
            supported |= right
    network = _NET_BIND_TCP | _NET_CONNECT_TCP if speaks >= _NETWORK_VERSION else 0
    scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if speaks >= _SCOPES_VERSION else 0
    # The kernel accepts a shorter structure from programs that do not know the later fields, and refuses a longer one.
    size = 24 if scopes else 16 if network else 8
    rules = _Ruleset(supported, network, scopes)
    ruleset = _call(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path, rights in allowed.items():
            _allow(ruleset, path, rights & supported)
        no_new_privileges()
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def require_one_thread() -> None:
    """Require a single thread: running threads would keep the rights that this thread gives up.

    Raises:
        RuntimeError: there are other threads.
    """
    if len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208  # names are enough
        raise RuntimeError("other threads are running and would keep their rights")


def no_new_privileges() -> None:
    """Prevent programs started from this thread from gaining rights, with any mode of the file."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def prctl(option: int, value: int = 0) -> int:
    """The call of that name. See `man 2 prctl`.

    Raises:
        OSError: the kernel refused.
    """
    result = int(_libc().prctl(ctypes.c_int(option), ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3))
    if result < 0:
        raise _failure()
    return result


def _allow(ruleset: int, path: Path, rights: Right) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rule = _PathBeneath(rights if path.is_dir() else rights & _OF_FILES, place)
        _call(_ADD_RULE, ctypes.c_int(ruleset), _RULE_PATH_BENEATH, ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(place)


def _call(*arguments: object) -> int:
    result = int(_libc().syscall(*arguments))
    if result < 0:
        raise _failure()
    return result


def _failure() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
