"""JSON as everybody can read it again: no NaN or infinity, no number beyond 64 bits, no half characters, no key twice, no endless nesting.

Pure.
"""

import json
import math
from typing import Any

from assay_schema.limits import INTEGER_MAX, INTEGER_MIN


class JsonError(ValueError):
    """Not JSON, or JSON that not every program can hold. The message says why and never quotes the text."""


class JsonSyntaxError(JsonError):
    """Not JSON at all, from `line` on."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def loads(text: str) -> Any:
    """The value of a JSON text. Raises `JsonError`."""
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
    if "\\ud" in text or "\\uD" in text:  # perhaps half a character, which no file can hold
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise JsonError("no text: it holds a lone surrogate") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise JsonError("a key stands twice in one object, and which value holds depends on the reader")
    return found


def _constant(name: str) -> Any:
    raise JsonError(f"not JSON: {name} is no number of it")


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
