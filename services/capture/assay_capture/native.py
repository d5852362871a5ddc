"""Real threads, locks and sleep, even in a program patched by gevent or eventlet.

Those libraries replace threads by greenlets, before or after this module was imported. The SDK's background work must
not run in greenlets: they run only when the program yields, they block all others while they write to a disk, and one
that waits in a queue made before the patch hangs the process. So real threads do it. Shared objects (queues, locks held
for an instant) are real as well: the patches do not replace these two.
"""

import importlib
import sys
import time
from _queue import SimpleQueue
from _thread import RLock
from collections.abc import Callable
from typing import Any

__all__ = ["RLock", "SimpleQueue", "give_way", "start_thread", "wait_until"]

#: First and longest interval between checks for another thread's work, in seconds.
FIRST_LOOK_S, LAST_LOOK_S = 0.0005, 0.01
#: Long enough for a waiting thread to take the interpreter's lock, in seconds.
TURN_S = 0.00005


def start_thread(run: Callable[[], None]) -> None:
    """Run a function in a thread that ends with the process.

    Raises RuntimeError if the system has no thread available. It is not a `threading.Thread`: when gevent patches a
    program with running threads, it breaks the end of those threads and of the process.
    """
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("socket"):
        # Create the hub here first: threads that create their first hub at the same time import the same modules, and
        # may deadlock.
        sys.modules["gevent"].get_hub()
    _original("_thread", "start_new_thread")(run, ())


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for another thread's work while greenlets run. True if the condition was met in time.

    It polls, because no signal of a thread lets a greenlet wait without blocking the others.
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
    """Yield to other threads at once. Python would do so only every 5 ms.

    They need the interpreter after every system call.
    """
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
