"""Wait for the effect of another process or task: poll with a deadline, never sleep for a guessed time."""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
#: Longest wait in seconds: the machine may be busy.
PATIENCE_S = 200.0


def until(
    condition: Callable[[], T], what: str = "not in time", seconds: float = PATIENCE_S, pause_s: float = 0.02
) -> T:
    """Wait until a condition is true, and return its value. `what` is in the error message of a timeout."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(pause_s)
    return found


async def until_async(condition: Callable[[], object], what: str = "not in time", seconds: float = PATIENCE_S) -> None:
    """Run other tasks until a condition is true; it may be a coroutine function."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.01)
