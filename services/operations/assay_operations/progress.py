"""Progress of a long operation."""

from typing import Protocol


class Counts(Protocol):
    """Counters that an operation updates while it works."""

    rows: int
    total: int | None


class Unseen:
    """Counters without a reader."""

    rows = 0
    total: int | None = None
