"""Encode the caller's values as one stream entry. Pure: no clock, no network, no disk.

Encoding happens during the call, so later changes of the caller's objects have no effect.
"""

from collections import deque
from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from collections.abc import Set as AbstractSet
from typing import Any

import orjson
from pydantic import BaseModel

from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.streams import shard_of

#: Naive datetimes are read as UTC, the only interpretation that does not depend on the machine.
FORMAT = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z | orjson.OPT_SERIALIZE_NUMPY
#: Slower by a third, so only for events that the plain format refuses.
LENIENT_FORMAT = FORMAT | orjson.OPT_NON_STR_KEYS

#: Collections with the form of a list. Iterators are not among them: they would be consumed.
LISTS = (AbstractSet, deque, KeysView, ValuesView, ItemsView, tuple)


class NotCapturedError(Exception):
    """The event cannot be encoded. `reason` is its counter; the message never contains content."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def encoded(event: dict[str, Any]) -> bytes:
    """Encode an event as JSON in UTF-8, at most `ENTRY_MAX_BYTES`.

    Accepts JSON types and values with one obvious JSON form: dates, UUIDs, enums, dataclasses, pydantic models, sets,
    named tuples, mappings, NumPy values and anything with `tolist()`. NaN and infinity become null. Raises
    `NotCapturedError`: `unserialisable` (lone surrogates, bytes, cycles, foreign objects) or `too_large`.
    """
    try:
        data = orjson.dumps(event, json_form, FORMAT)
    except Exception as error:  # noqa: BLE001  (the caller's objects may raise anything)
        _let_exits_pass(error)
        try:
            data = orjson.dumps(event, json_form, LENIENT_FORMAT)
        except Exception as last:  # noqa: BLE001  (the same)
            _let_exits_pass(last)
            raise NotCapturedError("unserialisable") from None
    if len(data) > ENTRY_MAX_BYTES:
        raise NotCapturedError("too_large")
    # orjson's result keeps its whole growing buffer: 7 KB of memory for 1 KB of JSON. A copy takes only what it needs,
    # and saves more time than it costs, because the next call finds the buffer warm.
    return b"%b" % data


def shard_from(data: bytes, shards: int) -> int:
    """Return the shard of an encoded event.

    Events that no consumer could accept go to shard 0, to be refused there.
    """
    if shards == 1:
        return 0
    try:
        return shard_of(orjson.loads(data)["project"], shards)
    except Exception:  # noqa: BLE001  (a line of a spool may be anything)
        return 0


def json_form(value: Any) -> Any:
    """Return the JSON form of a value that orjson does not know. Raises TypeError if it has none."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, LISTS):
        return list(value)
    if callable(getattr(type(value), "tolist", None)):
        return value.tolist()
    raise TypeError


def _let_exits_pass(error: BaseException) -> None:
    """Re-raise an interrupt that orjson has wrapped like any exception of a value's own code."""
    if error.__cause__ is not None and not isinstance(error.__cause__, Exception):
        raise error.__cause__
