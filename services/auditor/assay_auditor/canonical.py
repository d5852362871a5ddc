"""Canonical JSON: the one byte sequence of a document that is hashed. Pure."""

from collections.abc import Mapping
from typing import Any

import orjson


def canonical(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON: sorted keys, no spaces, UTF-8 without escapes.

    Numbers are integers, because floats have no single text form. Raises `ValueError` for a float, a text that is not Unicode, an
    integer of more than 64 bits, or a type that JSON does not have.
    """
    _refuse_floats(document)
    try:
        # A copy: orjson's own result keeps its buffer of kilobytes.
        return bytes(memoryview(orjson.dumps(document, option=orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATETIME)))
    except TypeError as error:  # orjson's own class is a TypeError
        raise ValueError(f"not canonical JSON: {error}") from None


#: Types that cannot contain a float; they are compared without a call for each value, because rows are many.
_PLAIN = frozenset((str, int, bool, type(None)))


def _refuse_floats(value: Any) -> None:
    if isinstance(value, float):
        raise ValueError("not canonical JSON: a float")  # noqa: TRY004 - it is the value of the document that is wrong
    inner = value if isinstance(value, list | tuple) else value.values() if isinstance(value, Mapping) else ()
    if not _PLAIN.issuperset(map(type, inner)):
        for each in inner:
            kind = type(each)
            if kind not in _PLAIN and not (kind is list and _PLAIN.issuperset(map(type, each))):
                _refuse_floats(each)
