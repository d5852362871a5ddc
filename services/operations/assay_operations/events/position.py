"""Position in a list of events: an opaque cursor of text. Pure."""

import base64
import binascii
import re
from dataclasses import dataclass
from uuid import UUID

import orjson

from assay_operations.errors import OperationError
from assay_operations.events.filters import KINDS, OPEN_END_MS
from assay_schema.ids import event_ms
from assay_schema.limits import PROJECT_PATTERN

_CURSOR = re.compile(r"[A-Za-z0-9_-]{1,400}")
_PROJECT = re.compile(PROJECT_PATTERN)


@dataclass(frozen=True)
class Position:
    """A place in a list: after the row of `event_id`, or without one before the time `ms`.

    The key of a row is its time, id, kind and project: a producer can give one id to events of two kinds or projects.
    """

    ms: int
    event_id: str | None = None
    kind: str = ""
    project: str = ""

    @property
    def upper_ms(self) -> int:
        """Every later row of the list has a time below this."""
        return self.ms + (self.event_id is not None)

    def __str__(self) -> str:
        """Return the cursor."""
        values = [self.ms] if self.event_id is None else [self.ms, self.event_id, self.kind, self.project]
        return base64.urlsafe_b64encode(orjson.dumps(values)).decode().rstrip("=")


def parse_position(cursor: str) -> Position:
    """Return the position of a cursor. Raises `OperationError` for any other text."""
    found = _decoded(cursor) if _CURSOR.fullmatch(cursor) else None
    if found is None or str(found) != cursor:
        raise OperationError(
            "invalid", f"after: {cursor[:40]!r} is not a cursor; use `next` of an earlier page, or leave it out"
        )
    return found


def _decoded(cursor: str) -> Position | None:
    try:
        values = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        match values:
            case [int(ms)] if not isinstance(ms, bool) and 0 <= ms <= OPEN_END_MS:
                return Position(ms)
            case [int(ms), str(event_id), str(kind), str(project)] if (
                kind in KINDS and _PROJECT.fullmatch(project) and event_ms(UUID(event_id)) == ms <= OPEN_END_MS
            ):
                return Position(ms, str(UUID(event_id)), kind, project)
    except (ValueError, binascii.Error):
        pass
    return None
