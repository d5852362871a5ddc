"""Plan an export of any size in chunks that fit in memory, newest first. Pure.

Sorting a whole table would need memory or disk in proportion to it. Instead the store counts rows per slice of time, which gives chunks
of about `CHUNK_BYTES`; only each chunk is sorted. A slice with too many rows is counted again in finer slices: of time first, and of
`id` if a single millisecond has too many (as it does while a Redis whose clock was set back catches up).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

#: Target size of a chunk in bytes of NDJSON. The store needs up to fifteen times this to sort it, as measured.
CHUNK_BYTES = 16 * 1024 * 1024
ROWS_FIRST = 1_000
ROWS_MAX = 100_000
#: Maximum slices of a chunk per query.
SLICES = 1_024

Range = tuple[int, int]
Axis = Literal["created", "ids"]


@dataclass(frozen=True)
class Chunk:
    """Rows with `created_at` in `created` and `id` in `ids` (both inclusive; times in Unix milliseconds).

    `events` are the bounds of their event times, by which the store finds them without reading other rows.
    """

    created: Range
    ids: Range
    events: Range
    rows: int
    whole_milliseconds: bool = True

    @property
    def axis(self) -> Axis | None:
        """The axis along which it can be cut; None if it cannot."""
        if self.created[0] < self.created[1]:
            return "created"
        return "ids" if self.ids[0] < self.ids[1] else None

    def slice_width(self, axis: Axis) -> int:
        """Return the width of slices that cut it into at most `SLICES` along an axis."""
        low, high = self.created if axis == "created" else self.ids
        return (high - low) // SLICES + 1

    def joined(self, older: "Chunk") -> "Chunk | None":
        """Join this chunk with the next older one; None if their bounds would include other rows."""
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
    """Number of rows per chunk of about `CHUNK_BYTES`, learned from chunk to chunk."""

    def __init__(self) -> None:
        self.rows = ROWS_FIRST

    def learn(self, rows: int, size: int) -> None:
        """Learn that `rows` rows had `size` bytes. The number grows in steps and shrinks at once."""
        if rows:
            self.rows = max(1, min(CHUNK_BYTES * rows // max(size, 1), self.rows * 4, ROWS_MAX))


def chunks(whole: Chunk, cut: Callable[[Chunk, Axis], list[Chunk]], pace: Pace) -> Iterator[Chunk]:
    """Yield the rows of `whole` in chunks of at most `pace.rows`, newest first.

    `cut` returns the slices of a chunk, newest first, without empty ones.
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
