"""Find the values under a policy's `scrub_keys` in text. Pure.

JSON over several lines, after a time, in a JSON string. The text as a whole need not be JSON, only the key, its colon and its value:
`"name": "…"`, also with the quotes escaped, and as Python prints it (`'name': '…'`). The work is linear in the text.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .keys import RemovedKeys

_SPACE = r"(?:\s|\\{1,15}[nrt]){0,64}+"
_KEY = re.compile(
    r"(?P<quote>[\"'])(?P<key>(?:[^\"'\\\n]|\\{1,15}u[0-9A-Fa-f]{4}){1,128}+)(?P<escape>\\{0,15})(?P=quote)"
    + _SPACE
    + ":"
    + _SPACE
)
_SCALAR = re.compile(r"-?[0-9][0-9.eE+\-]*+|true|false|True|False|null|None")
# Content of a JSON list or object outside of its strings that opens and closes nothing.
_PLAIN = re.compile(r"(?:[\s,:]|\\{1,15}[nrt]|" + _SCALAR.pattern + r"|\\(?=\\*[\"']))++")
_NULLS = ("null", "None")


class Removed(NamedTuple):
    """A span from `start` to `end` to redact, and its replacement.

    `open`: the text ends before the value does.
    """

    start: int
    end: int
    shown: str
    open: bool


class _Value(NamedTuple):
    end: int
    closed: bool


def removed_in(keys: RemovedKeys, text: str) -> Iterator[Removed]:
    """Yield every value in `text` that is redacted because of its key, in order, without overlap."""
    at = 0
    while (match := _KEY.search(text, at)) is not None:
        at = match.end("key") + 1
        depth = len(match["escape"])
        if _backslashes(text, match.start()) != depth or not keys.names(_unescaped(match["key"], depth)):
            continue
        found = _value(keys, text, match.end(), match["quote"], depth)
        if found is not None:
            yield found
            at = max(at, found.end)


_NAME = re.compile(r"(?<![\w.\-\"'\\])([\w.\-]{1,128}+)[ \t]{0,8}[=:]")


def named_otherwise(keys: RemovedKeys, text: str) -> int | None:
    """Return the position of the first key name that names a value outside JSON: `customer_name=…`."""
    return next((match.start() for match in _NAME.finditer(text) if keys.names(match.group(1))), None)


def _value(keys: RemovedKeys, text: str, start: int, quote: str, depth: int) -> Removed | None:
    opened = start + depth
    first = text[opened : opened + 1]
    if first in ('"', "'") and text.startswith("\\" * depth, start):
        end, closed = _end_of_string(text, opened + 1, first, depth)
        content = text[opened + 1 : end]
        if keys.is_made(content):
            return None
        shown = keys.shown(_unescaped(content, depth))
        if content or not closed:
            return Removed(opened + 1, end, shown, not closed and end == len(text))
        around = "\\" * depth + first
        return Removed(start, end + depth + 1, f"{around}{shown}{around}", False)  # an empty string has no span
    if text[start : start + 1] in ("{", "["):
        end, closed = _end_of_container(text, start, quote, depth)
    elif (scalar := _SCALAR.match(text, start)) is not None and scalar.group() not in _NULLS:
        end, closed = scalar.end(), True
    else:
        return None
    around = "\\" * depth + quote
    shown = keys.shown(_parsed(text[start:end], depth))
    return Removed(start, end, f"{around}{shown}{around}", not closed and end == len(text))


def _backslashes(text: str, position: int) -> int:
    before = position
    while before and text[before - 1] == "\\":
        before -= 1
    return position - before


def _end_of_string(text: str, start: int, quote: str, depth: int) -> _Value:
    """Return the end of a string whose quotes follow `depth` backslashes.

    An unterminated string ends with its line or the string around it.
    """
    line = text.find("\n", start)
    stop = line if line >= 0 else len(text)
    at = text.find(quote, start, stop)
    while at >= 0:
        deeper = min(_backslashes(text, at), at - start) - depth
        if deeper < 0:
            return _Value(max(start, at - deeper - depth), False)
        if deeper % (2 * depth + 2) == 0:
            return _Value(at - depth, True)
        at = text.find(quote, at + 1, stop)
    return _Value(stop, False)


def _end_of_container(text: str, start: int, quote: str, depth: int) -> _Value:
    """Return the end of a list or an object. One that is cut off or invalid ends with its last line that is JSON."""
    quotes = ('"', "'") if quote == "'" else ('"',)
    at, level, line = start, 0, -1
    while at < len(text):
        character = text[at]
        if character in "{[":
            level += 1
        elif character in "}]":
            level -= 1
            if not level:
                return _Value(at + 1, True)
        elif character in quotes:
            if _backslashes(text, at) < depth:
                return _Value(at - _backslashes(text, at), False)  # of the string around it
            end, closed = _end_of_string(text, at + 1, character, depth)
            if not closed:
                return _Value(end, False)
            at = end + depth
        else:
            plain = _PLAIN.match(text, at)
            if plain is None:
                return _Value(line if line >= 0 else _end_of_line(text, at), False)
            line = max(line, text.rfind("\n", at, plain.end()))
            at = plain.end() - 1
        at += 1
    return _Value(len(text), False)


def _end_of_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return end if end >= 0 else len(text)


def _unescaped(written: str, depth: int) -> str:
    """Return the content of a JSON string, or of a string inside a string."""
    for _ in range((depth + 1).bit_length()):
        if "\\" not in written:
            break
        try:
            written = json.loads(f'"{written}"', strict=False)
        except ValueError:
            break
    return written


def _parsed(written: str, depth: int) -> Any:
    plain = _unescaped(written, depth >> 1) if depth else written
    try:
        return json.loads(plain)
    except (ValueError, RecursionError):
        return plain
