"""Share the turns of the event loop among the bodies that are read.

A turn has a few milliseconds: for the bodies that begin, or for one that needs more than that. So neither a large body
nor many at once hold up other clients, and a small body does not wait for large ones.
"""

import asyncio
import time
from collections.abc import Iterator

#: Seconds of work in a turn.
SLICE_S = 0.005
#: Turns that a body waits for one in which none has begun.
PATIENCE_TURNS = 4


class Turns:
    """The turns of the running event loop."""

    def __init__(self) -> None:
        self._beginning, self._continuing = asyncio.Lock(), asyncio.Lock()
        #: Until when bodies may begin in this turn; None if there was no work in it yet.
        self._until: float | None = None

    async def take(self, steps: Iterator[object]) -> None:
        """Take all steps, and let others run as often as it needs."""
        until = await self.room()
        for _ in steps:
            if time.perf_counter() > until:
                until = await self._next()

    async def room(self) -> float:
        """Wait for a turn with time left for a body that begins.

        Return until when it may work, as of `time.perf_counter`.
        """
        if not self._has_room():
            async with self._beginning:
                while not self._has_room():  # noqa: ASYNC110  # a turn is no event
                    await asyncio.sleep(0)
        return self._until or 0.0

    def _has_room(self) -> bool:
        now = time.perf_counter()
        if self._until is None:
            self._use(now + SLICE_S)
        return now < (self._until or 0.0)

    async def _next(self) -> float:
        """Wait until it is the turn of the caller, who of those that continue has waited longest."""
        async with self._continuing:
            await asyncio.sleep(0)  # a turn for those that begin
            for _ in range(PATIENCE_TURNS):
                await asyncio.sleep(0)
                if self._until is None:
                    break
        self._use(0.0)
        return time.perf_counter() + SLICE_S

    def _use(self, until: float) -> None:
        if self._until is None:
            asyncio.get_running_loop().call_soon(self._turned)
        self._until = until

    def _turned(self) -> None:
        self._until = None
