"""Continuations in a part of a session: an item too large for one part goes on under a path. Pure.

`{"continues": ["function_call", "args", "password"], "text": ...}` is the rest of a password, which only its keys tell. So a continuation
is scrubbed as the value that it continues, below the same keys.
"""

from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]
#: The lists of a part whose items may be continuations.
_LISTS = (("request", "contents"), ("response", "candidates"), ("intermediate_events",))
_PATH = "continues"
_FORMS = ("text", "keys", "items")


def nested(payload: Mapping[str, Any]) -> Json:
    """Return the payload with the value of each continuation below the keys of its path."""
    return _mapped(payload, payload, lambda item, _: _below(item))


def flat(original: Mapping[str, Any], scrubbed: Mapping[str, Any]) -> Json:
    """Return the scrubbed payload with each continuation as it was. One whose value was removed is empty."""
    return _mapped(scrubbed, original, _restored)


def _mapped(payload: Mapping[str, Any], original: Mapping[str, Any], change: Callable[[Any, Any], Any]) -> Json:
    result = dict(payload)
    for path in _LISTS:
        holder, source = result, original
        for name in path[:-1]:
            if not isinstance(holder.get(name), dict) or not isinstance(source.get(name), dict):
                break
            holder[name] = dict(holder[name])
            holder, source = holder[name], source[name]
        else:
            items, originals = holder.get(path[-1]), source.get(path[-1])
            if isinstance(items, list) and isinstance(originals, list) and len(items) == len(originals):
                holder[path[-1]] = [
                    change(item, before) if _is_continuation(before) else item
                    for item, before in zip(items, originals, strict=True)
                ]
    return result


def _is_continuation(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get(_PATH), list) and len(item) == 2 and _form(item) is not None


def _form(item: Json) -> str | None:
    return next((form for form in _FORMS if form in item), None)


def _below(item: Json) -> Any:
    value: Any = item[str(_form(item))]
    for step in reversed(item[_PATH]):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _restored(scrubbed: Any, before: Json) -> Json:
    form = str(_form(before))
    value: Any = scrubbed
    for step in before[_PATH]:
        value = value.get(step) if isinstance(value, dict) else value[0] if isinstance(value, list) and value else None
    empty: Any = {"text": "", "keys": {}, "items": []}[form]
    return {_PATH: before[_PATH], form: value if isinstance(value, type(empty)) else empty}
