"""List the fields of a payload that contain text from outside, by kind of event, and scrub them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from .engine import Scrubber
from .json_scrub import ScrubbedJson, hint_of, scrub_json, scrub_leaf

# Steps are separated by dots; a step that ends with [] is a list whose elements follow. The value at a path is scrubbed as a whole:
# text, number, or anything nested.
PATHS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "retrieval": ("query", "params", "passages[].text"),
        "answer": ("query", "answer", "contexts[].text", "citations[].claim"),
        "feedback": ("text",),
        "tool_call": ("args_summary", "result_summary", "message"),
        "server_event": ("args_summary", "result_summary", "message"),
        "session": ("title", "request", "response", "intermediate_events", "metadata"),
    }
)
# Fields that name documents by the producer's own identifiers; `_Identifiers` scrubs these.
SLUG_PATHS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "retrieval": ("retrieved_slugs", "source_ids", "retrieved_ids", "passages[].id", "passages[].source_id"),
        "answer": ("contexts[].id", "contexts[].source_id", "citations[].context_id"),
    }
)


def paths_of(kind: str) -> tuple[str, ...]:
    """Return the paths of `kind`; ValueError names the valid kinds."""
    if kind not in PATHS:
        raise ValueError(f"unknown kind {kind!r}; valid: {', '.join(sorted(PATHS))}")
    return PATHS[kind]


def scrub_paths(
    scrubber: Scrubber, kind: str, payload: Mapping[str, Any], paths: Sequence[str] | None = None
) -> ScrubbedJson:
    """Return the payload with its outside text scrubbed, and findings by family; the input is unchanged.

    `paths` default to those of `kind`, with its identifiers if the scrubber's policy includes them. A missing path is skipped; where the
    structure differs from the path, everything is scrubbed. Raises the errors of `scrub_json`.
    """
    result = dict(payload)
    counts: Counter[str] = Counter()
    chosen = paths_of(kind) if paths is None else paths
    if paths is None and scrubber.policy.scrub_slugs:
        _Identifiers(scrubber, counts).scrub(result, SLUG_PATHS.get(kind, ()))

    def scrub(name: str, value: Any) -> Any:
        return _scrub_value(scrubber, name, value, counts)

    for path in chosen:
        _scrub_at(result, _steps(path), scrub)
    return ScrubbedJson(result, dict(counts))


class _Identifiers:
    """Scrub the names of documents within one event, so that they still identify them.

    The same text gets the same replacement everywhere, under any key: a citation still refers to its context. Different texts stay
    different, by a number after the replacement of the later ones: lists of slugs contain each only once.
    """

    def __init__(self, scrubber: Scrubber, counts: Counter[str]) -> None:
        self._scrubber, self._counts = scrubber, counts
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()

    def scrub(self, target: dict[str, Any], paths: Sequence[str]) -> None:
        """Replace the identifiers at `paths` in `target`."""
        for path in paths:
            _scrub_at(target, _steps(path), self._value)

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return self._identifier(value)
        if isinstance(value, list | tuple):
            return [self._value(name, element) for element in value]
        return _scrub_value(self._scrubber, name, value, self._counts)

    def _identifier(self, text: str) -> str:
        found = Counter[str]()
        scrubbed = scrub_leaf(self._scrubber, text, b"", found)
        self._counts.update(found)
        if text not in self._names:
            number, free = 1, scrubbed
            while free in self._taken:
                number += 1
                free = f"{scrubbed} ({number})"
            self._names[text] = free
            self._taken.add(free)
        return self._names[text]


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[tuple[str, bool], ...]:
    """Yield each step's name, and whether it is a list whose elements follow."""
    return tuple((step.removesuffix("[]"), step.endswith("[]")) for step in path.split("."))


def _scrub_at(target: dict[str, Any], steps: tuple[tuple[str, bool], ...], scrub: Callable[[str, Any], Any]) -> None:
    """Replace the values at `steps` in `target`, copying each container on the way; `scrub` takes a key and its value."""
    (name, elements), rest = steps[0], steps[1:]
    value = target.get(name)
    if value is None:
        return
    if elements and rest and isinstance(value, list):
        target[name] = [_scrub_element(name, element, rest, scrub) for element in value]
    elif rest and isinstance(value, dict):
        target[name] = dict(value)
        _scrub_at(target[name], rest, scrub)
    else:
        target[name] = scrub(name, value)


def _scrub_element(
    name: str, element: Any, rest: tuple[tuple[str, bool], ...], scrub: Callable[[str, Any], Any]
) -> Any:
    if isinstance(element, dict):
        copy = dict(element)
        _scrub_at(copy, rest, scrub)
        return copy
    return scrub(name, element)


def _scrub_value(scrubber: Scrubber, name: str, value: Any, counts: Counter[str]) -> Any:
    """Scrub the whole value of the key `name`."""
    if (
        isinstance(value, dict)
        and scrubber.removed_keys is None
        and not any(isinstance(child, dict | list | tuple) for child in value.values())
    ):
        return {key: scrub_leaf(scrubber, child, hint_of(key), counts) for key, child in value.items()}
    if isinstance(value, dict | list | tuple):
        scrubbed = scrub_json(
            scrubber, value, hint_of(name), depth=1
        )  # `name` is a field of the event, not a key of the producer's
        counts.update(scrubbed.counts)
        return scrubbed.value
    return scrub_leaf(scrubber, value, hint_of(name), counts)
