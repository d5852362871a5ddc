"""A viewer of the live tail: the events that wait for it, and the updates it gets. Pure."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from assay_console.passing import Entry, Passing, Wanted

#: Entries that a slow viewer may be behind.
QUEUE_MAX = 500


@dataclass(eq=False)
class Viewer:
    """A queue of entries that one viewer wants."""

    wanted: Wanted
    queue: deque[Entry] = field(default_factory=deque)
    #: Entries that were dropped because the viewer was too slow, and are not told yet.
    skipped: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    #: Set when the console stops.
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, entry: Entry) -> None:
        """Add an entry if it is wanted. The oldest is dropped from a full queue."""
        if not self.wanted.has(entry):
            return
        if len(self.queue) >= QUEUE_MAX:
            self.queue.popleft()
            self.skipped += 1
        self.queue.append(entry)
        self.arrived.set()


@dataclass(frozen=True)
class Update:
    """An event for a viewer, a number of skipped ones, or neither, with the position after it."""

    position: str
    row: Passing | None = None
    skipped: int = 0
    #: The stream no longer has all entries after the viewer's position.
    trimmed: bool = False
