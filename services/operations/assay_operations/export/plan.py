"""How an export of any size stays small: it reads the log newest first, in chunks that each fit in memory. Pure.

Sorting a whole table would need memory or disk in proportion to it. Instead the store counts rows per slice of time, from which follow
chunks of about `CHUNK_BYTES`; only each chunk is sorted. A slice that holds too much is counted again in finer slices: of time first,
and of `id` where a single millisecond holds too much (as it does while a Redis whose clock was set back catches up).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

#: What a chunk should come to, in bytes of NDJSON. Fifteen times this is what the store was seen to need for sorting it.
CHUNK_BYTES = 16 * 1024 * 1024
ROWS_FIRST = 1_000
ROWS_MAX = 100_000
#: Into how many slices a chunk is cut at most, by one query.
SLICES = 1_024

Range = tuple[int, int]
Axis = Literal["created", "ids"]


@dataclass(frozen=True)
class Chunk:
    """Rows that arrived within `created` and are numbered within `ids` (both inclusive; times in Unix milliseconds).

    `events` are the bounds of their own times, by which the store finds them without reading anything else.
    """

    created: Range
    ids: Range
    events: Range
    rows: int
    whole_milliseconds: bool = True

    @property
    def axis(self) -> Axis | None:
        """Along what it can be cut, or None when it cannot."""
        if self.created[0] < self.created[1]:
            return "created"
        return "ids" if self.ids[0] < self.ids[1] else None

    def slice_width(self, axis: Axis) -> int:
        """The width of slices that cut it into at most `SLICES` along an axis."""
        low, high = self.created if axis == "created" else self.ids
        return (high - low) // SLICES + 1

    def joined(self, older: "Chunk") -> "Chunk | None":
        """This chunk and the next older one as one, or None where the bounds of both would take in other rows too."""
        if not (self.whole_milliseconds and older.whole_milliseconds) and self.created != older.created:
            return None
        return Chunk(
            created=_around(self.created, older.created),
            ids=_around(self.ids, older.ids),
            events=_around(self.events, older.events),
            rows=self.rows + older.rows,
            whole_milliseconds=self.whole_milliseconds and older.whole_milliseconds,
        )


def _around(one: Range, other: Range) -> Range:
    return min(one[0], other[0]), max(one[1], other[1])


class Pace:
    """How many rows make a chunk of about `CHUNK_BYTES`, learned from one chunk to the next."""

    def __init__(self) -> None:
        self.rows = ROWS_FIRST

    def learn(self, rows: int, size: int) -> None:
        """Take in that `rows` rows came to `size` bytes. It speeds up by steps and slows down at once."""
        if rows:
            self.rows = max(1, min(CHUNK_BYTES * rows // max(size, 1), self.rows * 4, ROWS_MAX))


def chunks(whole: Chunk, cut: Callable[[Chunk, Axis], list[Chunk]], pace: Pace) -> Iterator[Chunk]:
    """The rows of `whole` in chunks of at most `pace.rows`, newest first.

    `cut` returns a chunk's slices, newest first, empty ones left out.
    """
    waiting = [whole] if whole.rows else []
    ready: Chunk | None = None
    while waiting:
        chunk = waiting.pop()
        axis = chunk.axis if chunk.rows > pace.rows else None
        if axis:
            waiting.extend(reversed(cut(chunk, axis)))
            continue
        joined = ready.joined(chunk) if ready and ready.rows + chunk.rows <= pace.rows else None
        if ready and not joined:
            yield ready
        ready = joined or chunk
    if ready:
        yield ready
