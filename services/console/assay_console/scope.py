"""The part of a page's state that links keep: project and range of time. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from assay_operations.errors import OperationError
from assay_operations.events.filters import OPEN_END_MS
from assay_schema.limits import PROJECT_PATTERN, PROJECT_RULE

#: Ranges by name, in milliseconds. The first is the default where a page names no other.
RANGES = {"15m": 900_000, "1h": 3_600_000, "24h": 86_400_000, "7d": 604_800_000, "30d": 2_592_000_000}
DEFAULT_RANGE = "24h"
#: Commas that separate values, and what escapes them.
_SEPARATOR = re.compile(r"(\\\\|\\,|,)")


@dataclass(frozen=True)
class Scope:
    """Project (empty: all) and the half-open range `[from_ms, to_ms)` in Unix ms.

    `span` is the name of a range that ends now; empty if the range is fixed.
    """

    project: str
    from_ms: int
    to_ms: int
    span: str = ""

    @property
    def from_iso(self) -> str:
        """Start of the range, UTC."""
        return iso(self.from_ms)

    @property
    def to_iso(self) -> str:
        """End of the range, UTC."""
        return iso(self.to_ms)

    def parameters(self, *, pinned: bool = False) -> dict[str, str]:
        """Return the parameters that keep this scope in a link. `pinned` fixes a range that ends now."""
        times = self.fixed_times if pinned else self.times(DEFAULT_RANGE)
        return ({"project": self.project} if self.project else {}) | times

    def times(self, default: str) -> dict[str, str]:
        """Return the parameters that keep the range in links to a page with this default range."""
        if not self.span:
            return self.fixed_times
        return {"t": self.span} if self.span != default else {}

    @property
    def fixed_times(self) -> dict[str, str]:
        """Parameters that fix the range, also one that ends now."""
        return {"from": self.from_iso, "to": self.to_iso}


def scope_of(parameters: Mapping[str, str], now_ms: int, default: str = DEFAULT_RANGE) -> Scope:
    """Return the scope that the parameters of a URL name. Raises `OperationError`.

    `t` takes precedence over `from` and `to`: the form of the bar sends the fixed range of the page, and `t` if another range is chosen.
    """
    project = parameters.get("project", "")
    if project and not re.fullmatch(PROJECT_PATTERN, project):
        raise OperationError("invalid", f"project: {project[:70]!r} is not the name of a project: {PROJECT_RULE}")
    if (start := parameters.get("from")) and not parameters.get("t"):
        from_ms = _ms(start, "from")
        to_ms = _ms(parameters["to"], "to") if parameters.get("to") else now_ms
        if to_ms <= from_ms:
            raise OperationError("invalid", "the range is empty: `to` is not after `from`")
        return Scope(project, from_ms, to_ms)
    span = parameters.get("t") or default
    if span not in RANGES:
        raise OperationError("invalid", f"t: {span[:20]!r} is not one of {', '.join(RANGES)}; or give from= and to=")
    return Scope(project, now_ms - RANGES[span], now_ms, span)


def link(path: str, *parts: Mapping[str, object]) -> str:
    """Return a link with the parameters that have a value; later mappings override earlier ones."""
    merged: dict[str, object] = {}
    for part in parts:
        merged |= part
    query = urlencode([(name, value) for name, value in merged.items() if value not in ("", None, False)])
    return f"{path}?{query}" if query else path


def values_of(text: str) -> list[str]:
    """Return the values of a parameter that has several, separated by commas. Pure.

    A comma in a value is `\\,`.
    """
    parts = [[""]]
    for piece in _SEPARATOR.split(text):
        if piece == ",":
            parts.append([""])
        else:
            parts[-1].append(piece[1:] if piece in ("\\,", "\\\\") else piece)
    return [value for value in ("".join(part).strip() for part in parts) if value]


def joined(values: Iterable[str]) -> str:
    """Return values as the text of one parameter, for `values_of`. Pure."""
    return ",".join(value.replace("\\", "\\\\").replace(",", "\\,") for value in values)


def iso(ms: int) -> str:
    """Return a time in ISO 8601, UTC, to the second where that is exact."""
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "")
    return text.removesuffix(".000") + "Z"


def _ms(text: str, name: str) -> int:
    try:
        at = datetime.fromisoformat(text)
        ms = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        ms = -1
    if not 0 <= ms < OPEN_END_MS:
        raise OperationError("invalid", f"{name}: {text[:40]!r} is not a time such as 2026-11-27T02:00:00Z")
    return ms
