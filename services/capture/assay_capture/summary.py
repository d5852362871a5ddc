"""Encode any arguments and results of tools as JSON. Pure; no iterator is ever consumed.

A tool call is one event even if its arguments have no JSON form or are too large for one: such values are replaced by a
mark that names their type or size. Others are encoded as everything else is.
"""

import math
from collections.abc import Mapping
from typing import Any

import orjson

from assay_capture.encoding import FORMAT, LISTS, NotCapturedError, encoded, json_form
from assay_schema.limits import INTEGER_MAX, INTEGER_MIN

#: Kinds whose payloads have the fields below.
TOOL_KINDS = frozenset({"tool_call", "server_event"})
SUMMARIES = ("args_summary", "result_summary")
#: Longest text of a summary that is replaced, in bytes of UTF-8: the scrubber would shorten it anyway.
TEXT_MAX_BYTES = 2048
#: Levels and values of a summary that is replaced; the rest is marked by type.
LEVELS_MAX = 32
VALUES_MAX = 10_000
#: Above this, a value is replaced piece by piece, in bytes of JSON. An event with both summaries must fit in an entry.
FROZEN_MAX_BYTES = 256 * 1024


def frozen(value: Any) -> Any:
    """Encode a summary now, so that later changes of it have no effect on the event."""
    try:
        data = orjson.dumps(value, json_form, FORMAT)
    except Exception as error:  # noqa: BLE001  (the caller's objects may raise anything)
        if error.__cause__ is not None and not isinstance(error.__cause__, Exception):
            raise error.__cause__ from None
        return plain(value)
    return orjson.Fragment(data) if len(data) <= FROZEN_MAX_BYTES else plain(value)


def encoded_tool_event(event: dict[str, Any]) -> bytes:
    """Encode an event of a tool. Its summaries are replaced if they have no JSON form or are too large."""
    try:
        return encoded(event)
    except NotCapturedError:
        payload = dict(event["payload"])
        for name in SUMMARIES:
            payload[name] = _small(plain(_thawed(payload[name])))
        return encoded(event | {"payload": payload})


def unfit_field(event: dict[str, Any]) -> str:
    """Return `kind.field` of what cannot be encoded: a value without a JSON form, or the largest one.

    Summaries of tools are never the reason: they are replaced.
    """
    sizes = {}
    for name, value in (event | event["payload"]).items():
        if name == "payload" or (event["kind"] in TOOL_KINDS and name in SUMMARIES):
            continue
        try:
            sizes[name] = len(encoded({name: value}))
        except NotCapturedError:
            return f"{event['kind']}.{name}"
    return f"{event['kind']}.{max(sizes, key=sizes.__getitem__)}"


def plain(value: Any) -> Any:
    """Return `value` as plain JSON: values without a JSON form, and long texts, are replaced by marks."""
    return _Plain().of(value, 0)


def _thawed(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value)) if isinstance(value, orjson.Fragment) else value


def _small(value: Any) -> Any:
    size = len(orjson.dumps(value))
    return value if size <= FROZEN_MAX_BYTES else {"__all": f"<truncated:{size} bytes>"}


class _Plain:
    def __init__(self) -> None:
        self._left = VALUES_MAX

    def of(self, value: Any, level: int) -> Any:
        self._left -= 1
        if value is None or value is True or value is False:
            return value
        try:
            return self._of(value, level)
        except Exception:  # noqa: BLE001  (the caller's objects may raise anything)
            return _mark(value)

    def _of(self, value: Any, level: int) -> Any:
        if isinstance(value, str):
            return _text(value)
        if type(value) is int:
            return value if INTEGER_MIN <= value <= INTEGER_MAX else _mark(value)
        if type(value) is float:
            return value if math.isfinite(value) else None
        if isinstance(value, bytes | bytearray | memoryview):
            return f"<bytes:{len(value)}>"
        if self._left < 0 or level >= LEVELS_MAX:
            return _mark(value)
        if isinstance(value, Mapping):
            return {_key(key): self.of(item, level + 1) for key, item in value.items()}
        if isinstance(value, LISTS) or type(value) is list:
            return [self.of(item, level + 1) for item in value]
        # Anything else with a JSON form: a date, a UUID, a model.
        shown = orjson.loads(orjson.dumps(value, json_form, FORMAT))
        return self.of(shown, level + 1) if isinstance(shown, str | dict | list) else shown


def _text(text: str) -> str:
    size = len(text.encode("utf-8", "surrogatepass"))
    return f"<truncated:{size} bytes>" if size > TEXT_MAX_BYTES else text.encode("utf-8", "replace").decode()


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key.encode("utf-8", "replace").decode()
    return str(key) if key is None or type(key) in (int, float, bool) else _mark(key)


def _mark(value: Any) -> str:
    return f"<{type(value).__name__}>"
