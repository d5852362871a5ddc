"""Share the turns of the event loop among the bodies that are read.

A turn has a few milliseconds for all bodies that begin in it, and as much for one that needs more. So neither a large
body nor many at once hold up other clients.
"""

import asyncio
import time
from collections.abc import Iterator

#: Seconds of work in a turn for new bodies, and for one that goes on.
SLICE_S = 0.01


class Turns:
    """The turns of the running event loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._until: float | None = None

    async def take(self, steps: Iterator[object]) -> None:
        """Take all steps, and let others run as often as it needs."""
        until = await self.room()
        for _ in steps:
            if time.perf_counter() > until:
                until = await self._next()

    async def room(self) -> float:
        """Wait for a turn with time left. Return until when work may take, as of `time.perf_counter`."""
        now = time.perf_counter()
        if self._until is None:
            self._until = now + SLICE_S
            asyncio.get_running_loop().call_soon(self._turned)
        return self._until if now < self._until else await self._next()

    def _turned(self) -> None:
        self._until = None

    async def _next(self) -> float:
        """Wait until it is the turn of the caller, which has waited longest."""
        async with self._lock:
            await asyncio.sleep(0)
        return time.perf_counter() + SLICE_S
