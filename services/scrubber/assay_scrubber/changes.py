"""Record where a text has changed since it was last searched."""

from bisect import bisect_left

from .projection import Unfolded


class Changes:
    """Spans in which a text differs from one that has been searched.

    The spans are in order, apart or touching, ends included. Text far from all of them was searched before, and contains no finding that
    was not already replaced.
    """

    __slots__ = ("_ends", "_starts")

    def __init__(self, starts: list[int], ends: list[int]) -> None:
        self._starts, self._ends = starts, ends

    def near(self, start: int, end: int) -> bool:
        """Return whether any change touches `start` to `end`."""
        place = bisect_left(self._ends, start)
        return place < len(self._starts) and self._starts[place] <= end

    def unfolded(self, unfolded: Unfolded) -> "Changes":
        """Return these changes as positions in the unfolded text, which is the text as a reader sees it."""
        return Changes([unfolded.seen_at(p) for p in self._starts], [unfolded.seen_at(p) for p in self._ends])
