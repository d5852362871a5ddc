"""Read the Python representation of a dict, list or tuple as JSON, without evaluating anything.

Instrumentations print arguments with `str()`: `{'days': 90, 'dry_run': False}`. The tokens are translated one by one,
so that nesting costs no stack; the JSON parser then checks the structure.
"""

import ast
import re
from typing import Any

import orjson

#: Longest text that is read, in characters.
REPR_MAX_CHARS = 64 * 1024
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+")
    | (?P<number>-?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?(?![\w.]))
    | (?P<name>True|False|None)\b
    | (?P<mark>[\[\](){}:,])
    )""",
    re.VERBOSE,
)
_NAMES = {"True": "true", "False": "false", "None": "null"}
_TUPLES = str.maketrans("()", "[]")


def from_repr(printed: str) -> Any:
    """Return the list or dict that a text represents, or None."""
    if len(printed) > REPR_MAX_CHARS or printed.lstrip()[:1] not in ("{", "[", "("):
        return None
    translated = _as_json(printed.rstrip())
    if translated is None:
        return None
    try:
        found = orjson.loads(translated)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, list | dict) else None


def _as_json(printed: str) -> str | None:
    pieces: list[str] = []
    position, size = 0, len(printed)
    while position < size:
        match = _TOKEN.match(printed, position)
        if match is None:
            return None
        position = match.end()
        piece = match[match.lastgroup or "mark"]
        if match.lastgroup == "string":
            text = _string(piece)
            if text is None:
                return None
            piece = text
        elif match.lastgroup == "name":
            piece = _NAMES[piece]
        elif piece in "()[]}":
            if piece in ")]}" and pieces and pieces[-1] == ",":
                pieces.pop()  # `(1,)`
            piece = piece.translate(_TUPLES)
        pieces.append(piece)
    return "".join(pieces)


def _string(quoted: str) -> str | None:
    """Return a string literal as JSON. A literal without backslashes is its own text."""
    try:
        text = quoted[1:-1] if "\\" not in quoted else ast.literal_eval(quoted)
        return orjson.dumps(text).decode()
    except (ValueError, SyntaxError, orjson.JSONEncodeError):  # the last one: a lone surrogate
        return None
