"""Gather entries into batches within bounds."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assay_runtime.entries import Bounds, Entry
from assay_runtime.lifetime import Lifetime


@dataclass
class Isolation:
    """An entry to process alone, because its consumers died too often."""

    entry: Entry
    #: True once its work is known to do no harm, before it reached its sink.
    proved: bool = False


class Batch(NamedTuple):
    """Entries to process together."""

    entries: list[Entry]
    #: Set for a single entry that is isolated.
    isolation: Isolation | None = None


class Batcher:
    """The entries of one consumer that wait for work."""

    def __init__(self, bounds: Bounds, lifetime: Lifetime) -> None:
        self._bounds = bounds
        self._lifetime = lifetime
        self._waiting: list[Entry] = []
        self._waiting_bytes = 0
        self._oldest = 0.0
        #: Processed before the entries that wait.
        self._isolated: Isolation | None = None
        self._changed = asyncio.Condition()
        #: Why no new batch may start; empty if it may (see `backpressure`).
        self.held_back = ""

    async def notify(self) -> None:
        """Wake everything that waits for a change: of the lifetime, or of held entries."""
        async with self._changed:
            self._changed.notify_all()

    async def hold_back(self, why: str) -> None:
        """Start no new batch until called with ''. Adding pauses once a full batch waits."""
        async with self._changed:
            self.held_back = why
            self._changed.notify_all()

    async def add(self, entries: Sequence[Entry]) -> bool:
        """Add entries; waits while a full batch is waiting. False if the consumer stops."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._lifetime.stopping or not self._full())
            if self._lifetime.stopping:
                return False
            if not self._waiting:
                self._oldest = time.monotonic()
            self._waiting += entries
            self._waiting_bytes += sum(len(entry.data) for entry in entries)
            self._changed.notify_all()
            return True

    async def isolate(self, entry: Entry, released: Callable[[], bool]) -> Isolation:
        """Process an entry alone. Returns once it was released, or the consumer stops."""
        async with self._changed:
            self._isolated = isolation = Isolation(entry)
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._lifetime.stopping or released())
        return isolation

    async def gather(self) -> Batch | None:
        """Return the next batch once a bound is reached; None at the end.

        Held-back entries stay pending at a stop; otherwise each restart would forward entries beyond the mark.
        """
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._lifetime.stopping or (not self.held_back and (self._waiting or self._isolated))
            )
            if self.held_back:
                return None
            remaining = self._oldest + self._bounds.age_s - time.monotonic()
            if not self._due() and remaining > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(remaining):
                        await self._changed.wait_for(self._due)
            if self._isolated:
                isolation, self._isolated = self._isolated, None
                return Batch([isolation.entry], isolation)
            entries = self._cut()
            self._changed.notify_all()
        return Batch(entries) if entries else None

    def _full(self) -> bool:
        return len(self._waiting) >= self._bounds.entries or self._waiting_bytes >= self._bounds.bytes

    def _due(self) -> bool:
        """True if waiting for more entries is pointless."""
        return self._lifetime.stopping or self._full() or self._isolated is not None

    def _cut(self) -> list[Entry]:
        """Take as many waiting entries as the bounds allow, at least one, all from one Redis server."""
        size = cut = 0
        for entry in self._waiting[: self._bounds.entries]:
            if cut and (size + len(entry.data) > self._bounds.bytes or entry.redis != self._waiting[0].redis):
                break
            size, cut = size + len(entry.data), cut + 1
        batch, self._waiting = self._waiting[:cut], self._waiting[cut:]
        self._waiting_bytes -= size
        return batch
