"""The files and sessions that are new to a watching import, regardless of their time.

A log that was copied, restored or synchronised has an older time than the last look.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from assay_operations.sessions.importing import Source
from assay_sessions.readers.reader import Mark


class Watch:
    """Remembers the files and sessions of the stores that were read.

    Call `look` before each import, and `settle` after one that succeeded: what could not be imported stays new.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Path], dict[str, Mark]] = {}
        self._looked: dict[tuple[str, Path], dict[str, Mark]] = {}

    def look(self, stores: Sequence[Source]) -> list[Source]:
        """Return the stores, each with the pieces that are new or have changed since the last settled look."""
        found = []
        for source in stores:
            name = (source.reader.name, source.path)
            pieces = self._looked[name] = source.reader.pieces(source.path)
            seen = self._seen.get(name, {})
            fresh = frozenset(key for key, mark in pieces.items() if seen.get(key) != mark)
            found.append(replace(source, fresh=fresh))
        return found

    def settle(self) -> None:
        """Take what the last look found as read."""
        self._seen |= self._looked
        self._looked = {}
