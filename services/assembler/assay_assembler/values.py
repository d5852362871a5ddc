"""Read single values of attributes. Nothing here raises, regardless of a value's type."""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import orjson

from assay_assembler.reprs import from_repr

#: Longest text that is parsed as JSON or as a Python literal, in characters.
PARSED_MAX_CHARS = 1024 * 1024
#: A Python object printed.
_OBJECT = re.compile(
    r"""\[?[A-Za-z_][\w.]{0,99}\(.*\)\]?           # StopEvent(result=...), [Document(...), ...]
    | <[A-Za-z_][\w.]{0,99}\ .*>                  # <coroutine object ...>
    | [a-z_]{1,40}=(?:'|"|\[|\{).*                # content='...' role=...
    """,
    re.DOTALL | re.VERBOSE,
)


def text(value: Any) -> str:
    """Return a text as it is, and an empty one for any other type."""
    return value if isinstance(value, str) else ""


def first_text(values: Mapping[str, Any], *names: str) -> str:
    """Return the first text under these names that is not blank."""
    for name in names:
        value = values.get(name)
        if isinstance(value, str) and value and not value.isspace():
            return value
    return ""


def first(values: Mapping[str, Any], *names: str) -> Any:
    """Return the first value under these names that is neither None nor empty."""
    for name in names:
        value = values.get(name)
        if value is not None and value != "":
            return value
    return None


def number(value: Any) -> float | None:
    """Return a finite number, or None."""
    if isinstance(value, str) and value and len(value) <= 32:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            return None
        return found if isfinite(found) else None
    return None


def identifier(value: Any) -> str:
    """Return an id as text: texts and integers are ids."""
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int and -(2**64) < value < 2**64 else ""


def container(value: Any) -> Any:
    """Return the list or dict that a value is, or that its JSON is; None for all else."""
    if isinstance(value, str):
        start = value[:64].lstrip()[:1]
        if not start or start not in "{[" or len(value) > PARSED_MAX_CHARS:
            return None
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
    return value if isinstance(value, list | dict) else None


def literal(value: Any) -> Any:
    """Return the list or dict that a value is, or that its JSON or Python representation is; else None."""
    found = container(value)
    return from_repr(value) if found is None and isinstance(value, str) else found


def unquoted(value: str) -> str:
    """Return the text of a JSON string, and any other text as it is."""
    if len(value) >= 2 and value[0] == '"' and value[-1] == '"':
        try:
            inner = orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
        return inner if isinstance(inner, str) else value
    return value


def plain_text(value: Any) -> str:
    """Return a text that a person would write: not JSON, not a printed object. Empty for all else."""
    if not isinstance(value, str):
        return ""
    found = unquoted(value).strip()
    if not found or (found[0] in "{[" and (literal(found) is not None or len(found) > PARSED_MAX_CHARS)):
        return ""
    return "" if _OBJECT.fullmatch(found) else found


def indexed(values: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Group `prefix` + `N.rest` by N, in the order of N. Gaps in N stay gaps and are never filled."""
    groups = numbered(values, prefix)
    return [groups[number] for number in sorted(groups)]


def numbered(values: Mapping[str, Any], prefix: str) -> dict[int, dict[str, Any]]:
    """Group `prefix` + `N.rest` by N in one pass.

    A name whose N is not a number of at most nine digits is ignored.
    """
    groups: dict[str, dict[str, Any]] = {}
    begin = len(prefix)
    for name, value in values.items():
        if name.startswith(prefix):
            place, _, rest = name[begin:].partition(".")
            group = groups.get(place)
            if group is None:
                group = groups[place] = {}
            group[rest] = value
    return {
        int(place): group
        for place, group in groups.items()
        if len(place) <= 9 and place.isascii() and place.isdecimal() and (place == "0" or place[0] != "0")
    }
