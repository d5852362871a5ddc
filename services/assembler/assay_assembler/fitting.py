"""Make values fit the contract of events, so that one long or odd value never loses an event.

Texts are cut between characters. Free-form JSON that does not fit is replaced piece by piece by marks, as the SDK does:
`<truncated:N bytes>` for a long text, the type's name for a value without a JSON form or too deep.
"""

from math import isfinite
from typing import Any

import orjson

from assay_schema.limits import (
    INTEGER_MAX,
    INTEGER_MIN,
    ITEMS_MAX,
    NAME_MAX_CHARS,
    QUERY_MAX_CHARS,
    TEXT_MAX_BYTES,
)

#: Above this, in bytes of JSON, a value is replaced piece by piece. An event with two of them fits in an entry.
FREE_MAX_BYTES = 256 * 1024
#: Longest text within a value that is replaced piece by piece, in bytes.
PIECE_MAX_BYTES = 2048
LEVELS_MAX = 32
VALUES_MAX = 10_000


class Cut(str):
    """A text that was cut to its limit."""

    __slots__ = ()


class Marked(dict[str, Any]):
    """A JSON object with marks in place of values that do not fit."""


def is_cut(payload: dict[str, Any]) -> bool:
    """Return whether a text or a JSON object of a payload did not fit as it was. Names do not count."""
    values = [*payload.values()]
    values += [each["text"] for name in ("contexts", "passages") for each in payload.get(name, ())]
    return any(isinstance(each, Cut | Marked) for each in values)


def clean(text: str) -> str:
    """Return a text without lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def name(text: str) -> str:
    """Return a name, cut to the contract's limit."""
    return clean(text[:NAME_MAX_CHARS])


def query(text: str) -> str:
    """Return a query, cut to the contract's limit."""
    found = clean(text[:QUERY_MAX_CHARS])
    return Cut(found) if len(text) > QUERY_MAX_CHARS else found


def body(text: str, limit: int = TEXT_MAX_BYTES) -> str:
    """Return an answer or a passage, cut between characters to a number of UTF-8 bytes."""
    if len(text) * 4 <= limit:
        return clean(text)
    data = text[:limit].encode("utf-8", "replace")
    found = data[:limit].decode("utf-8", "ignore")
    return Cut(found) if len(text) > limit or len(data) > limit else found


def free_json(value: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object that the contract accepts as free-form."""
    if len(value) <= ITEMS_MAX and _is_plain(value):
        try:
            if len(orjson.dumps(value)) <= FREE_MAX_BYTES:
                return value
        except (TypeError, ValueError, RecursionError):
            pass
    found = _Replaced().of(value, 0)
    size = len(orjson.dumps(found))
    if size <= FREE_MAX_BYTES and isinstance(found, dict) and len(found) <= ITEMS_MAX:
        return Marked(found)
    return Marked({"__all": f"<truncated:{size} bytes>"})


def _is_plain(value: Any) -> bool:
    """Return whether a value is small, shallow and of JSON's types only."""
    level, seen = [value], 0
    for _ in range(LEVELS_MAX):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                deeper.extend(item)
                deeper.extend(item.values())
            elif isinstance(item, list):
                deeper.extend(item)
            elif not _is_scalar(item):
                return False
        seen += len(deeper)
        if not deeper:
            return True
        if seen > VALUES_MAX:
            return False
        level = deeper
    return False


def _is_scalar(item: Any) -> bool:
    if item is None or isinstance(item, bool):
        return True
    if isinstance(item, str):
        return item.isascii() or item.encode("utf-8", "replace").decode() == item
    if isinstance(item, int):
        return INTEGER_MIN <= item <= INTEGER_MAX
    return isinstance(item, float) and isfinite(item)


class _Replaced:
    def __init__(self) -> None:
        self._left = VALUES_MAX

    def of(self, value: Any, level: int) -> Any:
        self._left -= 1
        if isinstance(value, str):
            size = len(value.encode("utf-8", "replace"))
            return clean(value) if size <= PIECE_MAX_BYTES else f"<truncated:{size} bytes>"
        if _is_scalar(value):
            return value
        if self._left >= 0 and level < LEVELS_MAX:
            if isinstance(value, dict):
                return {str(self.of(str(key), level)): self.of(each, level + 1) for key, each in value.items()}
            if isinstance(value, list | tuple):
                return [self.of(each, level + 1) for each in value]
        return f"<{type(value).__name__}>"
