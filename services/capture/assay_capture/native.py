"""Threads, locks and sleep of the system, also in a program that gevent or eventlet has patched, before or after this was imported.

These put greenlets in the place of threads. The SDK's background work must not be done by greenlets. They run only when the program
yields, they hold up all others while they write to a disk, and one that waits in a queue made before the patch hangs the process.
So real threads do it. What both sides touch (queues, locks held for an instant) is real as well: these two are not replaced.
"""

import importlib
import sys
import time
from _queue import SimpleQueue
from _thread import RLock
from collections.abc import Callable
from typing import Any

__all__ = ["RLock", "SimpleQueue", "give_way", "start_thread", "wait_until"]

#: Between two looks at something that a thread will have done, in seconds: at first, and at most.
FIRST_LOOK_S, LAST_LOOK_S = 0.0005, 0.01
#: Long enough for a waiting thread to take the interpreter's lock, in seconds.
TURN_S = 0.00005


def start_thread(run: Callable[[], None]) -> None:
    """Run something in a thread that ends with the process. Raises RuntimeError if the system has none left.

    Not a `threading.Thread`: gevent, when it patches a program whose threads run already, breaks the end of theirs, and of the process.
    """
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("socket"):
        # Made here first: threads that make their first hub at the same time import the same modules, and may wait for each other for ever.
        sys.modules["gevent"].get_hub()
    _original("_thread", "start_new_thread")(run, ())


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for what another thread does, letting greenlets run. Whether it came true in time.

    Looks again and again: nothing that a thread can signal lets a greenlet wait without holding up the others.
    """
    deadline, pause = time.monotonic() + seconds, FIRST_LOOK_S
    while not condition():
        left = deadline - time.monotonic()
        if left <= 0:
            return condition()
        _sleep(min(pause, left))
        pause = min(pause * 2, LAST_LOOK_S)
    return True


def give_way() -> None:
    """Let other threads have a turn at once. Otherwise Python gives them one after 5 ms, and they need one after every system call."""
    _original("time", "sleep")(TURN_S)


def _sleep(seconds: float) -> None:
    try:
        time.sleep(seconds)
    except AssertionError:  # gevent's event loop itself, in a signal handler: it cannot wait for its own greenlets
        _original("time", "sleep")(seconds)


def _original(module: str, name: str) -> Any:
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    if gevent is not None:
        return gevent.get_original(module, name)
    return getattr(importlib.import_module(module) if eventlet is None else eventlet.original(module), name)
