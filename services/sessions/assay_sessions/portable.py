"""JSON that every later step can write again. Pure.

Logs of agents contain values that JSON parsers accept and JSON writers refuse: half of an emoji, cut by a program that counts in
UTF-16, integers beyond 64 bits, NaN, a thousand levels of nesting.
"""

import hashlib
import math
from typing import Any

import orjson

#: Levels of nesting that are kept. An event may have 64 in all.
DEPTH_MAX = 40
#: Characters of a key.
KEY_MAX = 512
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 64) - 1


def portable_text(text: str) -> str:
    """Return a text with each lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def portable(value: Any, depth: int = DEPTH_MAX) -> Any:
    """Return a JSON value that every later step can write.

    Lone surrogates become U+FFFD, integers beyond 64 bits texts, NaN and infinity null. A container below `depth` levels becomes its
    JSON text. A key longer than 512 characters is cut, with a hash at its end.
    """
    if isinstance(value, str):
        return portable_text(value)
    if isinstance(value, dict):
        if depth <= 0:
            return _as_text(value)
        return {_key(key): portable(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if depth <= 0:
            return _as_text(value)
        return [portable(item, depth - 1) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if _INT_MIN <= value <= _INT_MAX else _digits(value)
    return portable_text(str(value))


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # more digits than Python writes in decimal
        return hex(number)


def _key(key: Any) -> str:
    text = portable_text(str(key))
    if len(text) <= KEY_MAX:
        return text
    return f"{text[: KEY_MAX - 17]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _as_text(value: Any) -> str:
    """Return the JSON text of a container, written level by level: its depth has no bound."""
    written: list[str] = []
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, _Written):
            written.append(item)
        elif isinstance(item, dict):
            pending.append(_Written("}"))
            for number, (key, inner) in reversed(list(enumerate(item.items()))):
                pending += [inner, _Written(("," if number else "") + orjson.dumps(_key(key)).decode() + ":")]
            pending.append(_Written("{"))
        elif isinstance(item, list | tuple):
            pending.append(_Written("]"))
            for number, inner in reversed(list(enumerate(item))):
                pending += [inner, _Written("," if number else "")]
            pending.append(_Written("["))
        else:
            written.append(orjson.dumps(portable(item)).decode())
    return "".join(written)


class _Written(str):
    """A piece of JSON that is already written."""

    __slots__ = ()
