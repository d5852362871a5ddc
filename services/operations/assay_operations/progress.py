"""How far a long operation has come."""

from typing import Protocol


class Counts(Protocol):
    """What an operation counts on while it works; a bar in a terminal, or a number in an answer."""

    rows: int
    total: int | None
