"""The places where a text has changed since it was last searched."""

from bisect import bisect_left

from .projection import Unfolded


class Changes:
    """Spans in which a text differs from one that has been searched.

    They are in order, apart or touching, ends included.

    What stands far from all of them was looked at before, and nothing has been found in it that is still there.
    """

    __slots__ = ("_ends", "_starts")

    def __init__(self, starts: list[int], ends: list[int]) -> None:
        self._starts, self._ends = starts, ends

    def near(self, start: int, end: int) -> bool:
        """True when some change touches `start` to `end`."""
        place = bisect_left(self._ends, start)
        return place < len(self._starts) and self._starts[place] <= end

    def unfolded(self, unfolded: Unfolded) -> "Changes":
        """Return these changes in the text as a reader sees it."""
        return Changes([unfolded.seen_at(p) for p in self._starts], [unfolded.seen_at(p) for p in self._ends])
