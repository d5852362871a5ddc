"""Derive hints for a value from its neighbours in a JSON document.

`{"name": "password", "value": …}`, `["authorization", …]`, `["mysql", "-p…"]`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .finding import TextScrubber

_NAMING = (
    "name",
    "key",
    "header",
    "field",
    "variable",
    "option",
    "param",
    "parameter",
    "id",
    "label",
    "question",
    "q",
    "k",
)
_HOLDING = ("value", "val", "content", "default", "text", "data", "answer", "a", "v", "number", "numero", "nummer")
#: A key with one of these endings also names a value: `OptionName`.
_NAMING_ENDS = ("name", "key")
#: Keys that describe a value's kind: these apply only to the following keys.
_KINDS, _HOLDING_KINDS = ("type", "tipo", "kind", "typ"), ("value", "number", "numero", "nummer")
_NAME = re.compile(r"[A-Za-z\u0080-\uffff][\w.\- ]{1,63}")
_MOST_ARGUMENTS, _LONGEST_COMMAND = 64, 4_000
#: The hint for an argument that the arguments before it identify as a secret.
_SECRET = b"password "

HintOf = Callable[[str], bytes]


def told(scrubber: TextScrubber, item: Any, hint_of: HintOf, hint: bytes, *, listed: bool) -> Mapping[Any, bytes]:
    """Return the hints that neighbours give, by key or index in `item`; nearly always empty.

    `hint`: that of the key of `item`. `listed`: `item` is an element of a list, so two texts in it may be a name and a value.
    """
    if isinstance(item, dict):
        return _named(scrubber, item, hint_of, hint)
    if len(item) < 2 or scrubber.is_told_by(hint):
        return {}
    if listed and len(item) == 2 and isinstance(item[0], str) and _NAME.fullmatch(item[0]):
        return {1: hint_of(item[0])}
    return _arguments(scrubber, item)


def _named(scrubber: TextScrubber, item: dict[Any, Any], hint_of: HintOf, hint: bytes) -> Mapping[Any, bytes]:
    keys = {key.lower(): key for key in item if isinstance(key, str)}
    holding = [key for name, key in keys.items() if name in _HOLDING]
    if not holding:
        return {}
    if scrubber.is_told_by(hint):
        own = {key: hint + hint_of(key) for key in holding}  # {"passport": {"number": …}}
        return {key: longer if scrubber.is_told_by(longer) else hint for key, longer in own.items()}
    naming = [key for key in _NAMING if key in keys] + [key for key in keys if key.endswith(_NAMING_ENDS)]
    name = _first_text(item, (keys[key] for key in naming))
    if name is None:
        holding = [key for key in holding if key.lower() in _HOLDING_KINDS]
        name = _first_text(item, (keys[key] for key in _KINDS if key in keys))
    return dict.fromkeys(holding, hint_of(name)) if name is not None and _NAME.fullmatch(name) else {}


def _first_text(item: dict[Any, Any], keys: Iterable[str]) -> str | None:
    """Return the first text under one of `keys`; for a path, its last step: `/prod/db/password`."""
    text = next((item[key] for key in keys if isinstance(item[key], str)), None)
    return text.rpartition("/")[2] if text is not None else None


def _arguments(scrubber: TextScrubber, item: Any) -> Mapping[Any, bytes]:
    """Scrub a list of strings as one command line; return the hints by argument index."""
    if len(item) > _MOST_ARGUMENTS or not all(isinstance(part, str | int | float) for part in item):
        return {}
    if not any(isinstance(part, str) for part in item):
        return {}  # only numbers, such as scores
    parts = [str(part) for part in item]
    if not any(part.startswith("-") for part in parts) or sum(map(len, parts)) > _LONGEST_COMMAND:
        return {}
    hints: dict[Any, bytes] = {}
    findings = [f for f in scrubber.scrub(" ".join(parts)).findings if f.family == "secret"]
    start = 0
    for place, part in enumerate(parts):
        end = start + len(part)
        if any(finding.start < end and start < finding.end for finding in findings):
            hints[place] = _SECRET
        start = end + 1
    return hints
