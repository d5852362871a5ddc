"""Parse time bounds: a duration ago, an ISO 8601 time, or the cursor of an earlier export. Pure."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from assay_operations.errors import OperationError
from assay_schema.ids import EPOCH_MS, first_row_at
from assay_schema.limits import SAFE_INTEGER_MAX

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")
_CURSOR = re.compile(r"[0-9]+")
_DAY_MS = 86_400_000
#: No export prints a smaller cursor than this, except 0: it would be of the first day that an `id` can express.
_CURSOR_MIN = first_row_at(EPOCH_MS + _DAY_MS)
_UNIX_START = datetime(1970, 1, 1, tzinfo=UTC)

DURATION_HELP = "an integer and a unit (ms, s, m, h or d), for example 90s or 7d"


@dataclass(frozen=True)
class Bound:
    """An edge of a window of rows, as a position in the log.

    `place` is the greatest `id` at or before the edge. `is_cursor`: the position is exact, not computed from a time.
    """

    place: int
    is_cursor: bool


def duration_ms(text: str, option: str) -> int:
    """Return the milliseconds of a duration such as `7d`. Raises `OperationError` naming `option`."""
    match = _DURATION.fullmatch(text)
    if not match:
        raise OperationError("invalid", f"{option}: {text!r} is not a duration; use {DURATION_HELP}")
    return int(match[1]) * _UNITS_MS[match[2]]


def moment_ms(text: str, now_ms: int, option: str) -> int:
    """Return the Unix milliseconds of a duration ago or an ISO 8601 time (UTC without a zone).

    Raises `OperationError`.
    """
    if _DURATION.fullmatch(text):
        return max(0, now_ms - duration_ms(text, option))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise OperationError(
            "invalid",
            f"{option}: {text!r} is neither a duration ({DURATION_HELP}) nor an ISO 8601 time such as 2026-01-31T12:00:00Z",
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    elapsed = moment - _UNIX_START
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000 + elapsed.microseconds // 1_000


def utc(value: datetime) -> datetime:
    """Return a time of the store with its zone: the client leaves it out of columns in UTC. Pure."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def iso(moment: datetime, precision: str = "milliseconds") -> str:
    """Return a time as rows of the store have it: ISO 8601 in UTC, with a Z. Pure."""
    return utc(moment).isoformat(timespec=precision).replace("+00:00", "Z")


def bound(text: str, now_ms: int, option: str) -> Bound:
    """Return the edge of a window: digits alone are a cursor, else a time of arrival (`created_at`).

    `created_at` has whole milliseconds, so a time within a millisecond includes all of it. Raises `OperationError`.
    """
    if _CURSOR.fullmatch(text):
        if 0 < int(text[:17]) < _CURSOR_MIN:
            raise OperationError("invalid", f"{option}: {text} is neither a duration ({text}d?) nor a cursor")
        return Bound(cursor(text, option), is_cursor=True)
    return Bound(max(0, first_row_at(moment_ms(text, now_ms, option) + 1) - 1), is_cursor=False)


def cursor(text: str, where: str) -> int:
    """Parse a cursor that an export printed. Raises `OperationError` naming `where` it was read."""
    if not _CURSOR.fullmatch(text) or len(text) > 16 or int(text) > SAFE_INTEGER_MAX:
        raise OperationError(
            "invalid", f"{where}: {text[:40]!r} is not a cursor; use the number that `assay export` printed"
        )
    return int(text)
