"""The bounded queue between callers and the publisher's thread.

Its lock guards two integers and a deque, never I/O. It is reentrant, because a signal handler or a finalizer may
capture in the middle of a capture.
"""

from collections import deque
from collections.abc import Callable

from assay_capture.native import RLock, give_way

#: An event: the shard of its project and its JSON. A plain tuple costs a third of a named one.
Entry = tuple[int, bytes]


class EntryQueue:
    """A FIFO queue with one consumer.

    An entry counts against the bounds until `release`, so a batch in flight is bounded too.
    """

    def __init__(self, max_entries: int, max_bytes: int, batch_entries: int, wake: Callable[[None], None]) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._half_entries = max_entries // 2
        self._half_bytes = max_bytes // 2
        self._batch_entries = batch_entries
        self._wake = wake
        self._lock = RLock()
        self._waiting: deque[Entry] = deque()
        # Where callers put entries, and whom this wakes: the consumer, or the scrubbing before it.
        self._arriving = self._waiting
        self._wake_arriving = wake
        #: True once no held-back entry will be passed on any more.
        self.ended = False
        self.entries = 0
        self.bytes = 0
        #: Number of entries released so far.
        self.released = 0
        #: True if the consumer can make room now, because a spool accepts the events that Redis does not.
        self.drains = False
        #: Why an entry does not fit: `queue_full`, or the reason why the spool cannot make room.
        self.full_reason = "queue_full"

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, shard: int, data: bytes) -> bool:
        """Add an entry, and wake the consumer if it may be idle or has a full batch.

        False if it does not fit.

        A caller that outruns the consumer yields to it; in a tight loop the consumer would run too rarely to make room.
        """
        size = len(data)
        with self._lock:
            if self.entries >= self._max_entries or self.bytes + size > self._max_bytes:
                return False
            self._arriving.append((shard, data))
            self.entries += 1
            self.bytes += size
            waiting = len(self._arriving)
        if waiting == 1 or waiting % self._batch_entries == 0:
            self._wake_arriving(None)
        if self.drains and (self.entries > self._half_entries or self.bytes > self._half_bytes):
            give_way()
        return True

    @property
    def accepted(self) -> int:
        """Number of entries accepted so far."""
        with self._lock:
            return self.released + self.entries

    # Scrubbing: entries are held back from the consumer until they are passed on

    def hold_back(self, wake: Callable[[None], None]) -> None:
        """Hold back new entries from the consumer, for `next_held`, then `pass_on` or `release`."""
        self._arriving, self._wake_arriving = deque(), wake

    @property
    def holding(self) -> bool:
        """True if any entry is held back."""
        return self._arriving is not self._waiting and bool(self._arriving)

    def next_held(self) -> Entry | None:
        """Return the oldest held-back entry. It still counts against the bounds."""
        with self._lock:
            return self._arriving.popleft() if self._arriving else None

    def pass_on(self, held: Entry, entry: Entry) -> bool:
        """Pass `entry`, the scrubbed form of `held`, to the consumer.

        False if it is too late; then it is released.
        """
        with self._lock:
            if self.ended:
                self.release([held])
                return False
            self._waiting.append(entry)
            self.bytes += len(entry[1]) - len(held[1])
            waiting = len(self._waiting)
        if waiting == 1 or waiting % self._batch_entries == 0:
            self._wake(None)
        return True

    def end_holding(self) -> int:
        """Release all held-back entries, present and future. Returns their number."""
        with self._lock:
            held, self.ended = list(self._arriving), True
            self._arriving.clear()
            self.release(held)
        return len(held)

    def take(self, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return the oldest entries within both limits; at least one if there is any."""
        taken: list[Entry] = []
        size = 0
        while self._waiting and len(taken) < max_entries:
            size += len(self._waiting[0][1])
            if taken and size > max_bytes:
                break
            taken.append(self._waiting.popleft())
        return taken

    def put_back(self, entries: list[Entry]) -> None:
        """Return entries from `take` to the front, in order."""
        self._waiting.extendleft(reversed(entries))

    def release(self, entries: list[Entry]) -> None:
        """Release entries that are in Redis, in the spool, or dropped and counted."""
        size = sum([len(data) for _, data in entries])
        with self._lock:
            self.entries -= len(entries)
            self.bytes -= size
            self.released += len(entries)

    def over_half_full(self) -> bool:
        """True if entries available to the consumer fill more than half of either bound."""
        if self._arriving is not self._waiting:
            return len(self._waiting) > self._half_entries
        return self.entries > self._half_entries or self.bytes > self._half_bytes
