"""JSON that every program can read: no NaN, surrogates, duplicate keys or deep nesting.

Pure.
"""

import json
import math
from typing import Any

from assay_schema.limits import INTEGER_MAX, INTEGER_MIN


class JsonError(ValueError):
    """Invalid JSON, or JSON that not every program can read. The message never quotes the text."""


class JsonSyntaxError(JsonError):
    """Not JSON at all, from `line` on."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def loads(text: str) -> Any:
    """Parse a JSON text. Raises `JsonError`."""
    try:
        value = json.loads(
            text, parse_constant=_constant, parse_float=_fraction, parse_int=_whole, object_pairs_hook=_object
        )
    except JsonError:
        raise
    except RecursionError:
        raise JsonError("not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise JsonSyntaxError(f"not JSON ({error.msg})", error.lineno) from None
        raise JsonSyntaxError("not JSON") from None
    if "\\ud" in text or "\\uD" in text:  # a lone surrogate, which no file can contain
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise JsonError("not text: it contains a lone surrogate") from None
    return value


def first_value(text: str, start: int = 0) -> tuple[Any, int]:
    """Parse the JSON value that begins at `start`, and return it with the place of its end.

    Raises `JsonError`; `JsonSyntaxError` also if the text ends within the value. Lone surrogates are not checked.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except JsonError:
        raise
    except RecursionError:
        raise JsonError("not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:
        raise JsonSyntaxError(f"not JSON ({getattr(error, 'msg', 'invalid')})") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise JsonError("a key appears twice in one object; which value counts depends on the reader")
    return value


def _constant(name: str) -> Any:
    raise JsonError(f"not JSON: {name} is not a JSON number")


def _fraction(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError("not JSON that can be kept: a number is too large")
    return value


def _whole(text: str) -> int:
    value = int(text) if len(text) <= len(str(INTEGER_MIN)) else INTEGER_MAX + 1
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise JsonError("not JSON that can be kept: a number is too large")
    return value


_DECODER = json.JSONDecoder(
    parse_constant=_constant, parse_float=_fraction, parse_int=_whole, object_pairs_hook=_object
)
