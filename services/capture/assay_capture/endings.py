"""Captures at process exit and in forked children.

They are closed at exit: by `atexit`; in children of multiprocessing by its finalizers (such a child ends by
`os._exit`); and on SIGTERM only if `capture.close_on_sigterm` is set. A forked child starts with empty captures.
"""

import atexit
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Protocol


class Closable(Protocol):
    """A capture, as seen by this module."""

    def close(self) -> None:
        """Send or spool events in memory, and stop.

        A second call, as by a signal handler, waits for the first.
        """


#: Functions to call in a forked child, by capture.
_live: dict[Closable, Callable[[], None]] = {}


def watch(capture: Closable, forked: Callable[[], None]) -> None:
    """Close a capture at process exit; call `forked` in children."""
    _live[capture] = forked


def forget(capture: Closable) -> None:
    """Remove a closed capture."""
    _live.pop(capture, None)


def close_on_sigterm() -> None:
    """Close all captures on SIGTERM before it ends the process, unless the program handles SIGTERM.

    Works in the main thread only.
    """
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _close_and_end)
    except ValueError:  # not the main thread
        pass


def close_before_a_child_of_multiprocessing_exits() -> None:
    """Register the close in a child of multiprocessing; called in each process that captures."""
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, _close_all, exitpriority=-100)


def _close_and_end(number: int, _frame: Any) -> None:
    signal.signal(number, signal.SIG_DFL)  # first, so that a second signal ends the process at once
    _close_all()
    os.kill(os.getpid(), number)  # the parent process sees the signal that ended it


def _close_all() -> None:
    for capture in list(_live):
        capture.close()


def _begin_afresh() -> None:
    for forked in list(_live.values()):
        forked()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_begin_afresh)
