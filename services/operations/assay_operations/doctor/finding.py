"""Outcomes of health checks, and how they show sizes and ages. Pure.

`fail`: events are lost or stopped. `warn`: they will be, or an operator should know.
"""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Outcome of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """The outcome of one check. `hint` is the command or setting that fixes it; empty if healthy."""

    check: str
    status: Status
    summary: str
    hint: str = ""


def worst(*statuses: Status) -> Status:
    """Return the worst of several statuses."""
    return max(statuses, key=list(Status).index, default=Status.OK)


def size(count: float) -> str:
    """Format a number of bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def age(seconds: float) -> str:
    """Format a number of seconds for people."""
    if seconds < 1:
        return f"{max(0.0, seconds) * 1_000:.0f} ms"
    for limit, unit, length in ((120, "s", 1), (7_200, "min", 60), (172_800, "h", 3_600)):
        if seconds < limit:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"
