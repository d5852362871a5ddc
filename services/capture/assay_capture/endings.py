"""What a process's end and its forks do to the captures it has.

They are closed at exit: by `atexit`, in children of multiprocessing by its finalizers (such a child ends by `os._exit`), and, only where
`capture.close_on_sigterm` asks for it, on SIGTERM. A forked child begins with empty ones.
"""

import atexit
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Protocol


class Closable(Protocol):
    """A capture, as this module sees it."""

    def close(self) -> None:
        """Send or spool what is in memory, and stop. Called again meanwhile, as by a signal handler, it waits for the same."""


#: What to call in a forked child, by capture.
_live: dict[Closable, Callable[[], None]] = {}


def watch(capture: Closable, forked: Callable[[], None]) -> None:
    """Close it when the process ends; call `forked` in children."""
    _live[capture] = forked


def forget(capture: Closable) -> None:
    """It has closed."""
    _live.pop(capture, None)


def close_on_sigterm() -> None:
    """Let SIGTERM close all captures before it ends the process, if nothing else handles it. Only the main thread can see to that."""
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _close_and_end)
    except ValueError:  # not the main thread
        pass


def close_before_a_child_of_multiprocessing_exits() -> None:
    """Call it in each process that captures."""
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, _close_all, exitpriority=-100)


def _close_and_end(number: int, _frame: Any) -> None:
    signal.signal(number, signal.SIG_DFL)  # first: a second signal ends it at once
    _close_all()
    os.kill(os.getpid(), number)  # whoever waits for this process sees what ended it


def _close_all() -> None:
    for capture in list(_live):
        capture.close()


def _begin_afresh() -> None:
    for forked in list(_live.values()):
        forked()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_begin_afresh)
