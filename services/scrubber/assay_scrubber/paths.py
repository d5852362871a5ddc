"""Which fields of a payload hold text that came from outside, by kind of event."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from .engine import Scrubber
from .walk import ScrubbedJson, hint_of, scrub_json, scrub_leaf

# Steps are separated by dots; a step that ends with [] is a list whose elements follow. What a path leads to is
# scrubbed whole: text, number, or anything nested. `*` is every field but those in EXEMPT.
PATHS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "retrieval": ("query", "params"),
        "answer": ("query", "answer", "contexts[].text", "citations[].claim"),
        "feedback": ("text",),
        "tool_call": ("args_summary", "result_summary", "message"),
        "server_event": ("args_summary", "result_summary", "message"),
        "session": ("*",),
    }
)
SLUG_PATHS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType({"retrieval": ("retrieved_slugs",)})
EXEMPT: MappingProxyType[str, frozenset[str]] = MappingProxyType({"session": frozenset({"session_id", "created"})})


def paths_of(kind: str, *, slugs: bool = False) -> tuple[str, ...]:
    """Paths of `kind`; ValueError names the valid kinds."""
    if kind not in PATHS:
        raise ValueError(f"unknown kind {kind!r}; valid: {', '.join(sorted(PATHS))}")
    return PATHS[kind] + (SLUG_PATHS.get(kind, ()) if slugs else ())


def scrub_paths(
    scrubber: Scrubber, kind: str, payload: Mapping[str, Any], paths: Sequence[str] | None = None
) -> ScrubbedJson:
    """The payload with its outside text scrubbed, and findings by family; the input stays as it is.

    `paths` default to those of `kind` under the scrubber's policy. A path that leads nowhere is skipped; one that meets
    another shape than it expects scrubs everything there. Raises what `scrub_json` raises.
    """
    result = dict(payload)
    counts: Counter[str] = Counter()
    chosen = paths_of(kind, slugs=scrubber.policy.scrub_slugs) if paths is None else paths
    for path in chosen:
        if path == "*":
            exempt = EXEMPT.get(kind, frozenset())
            for name in result:
                if name not in exempt:
                    result[name] = _scrub_value(scrubber, name, result[name], counts)
        else:
            _scrub_at(scrubber, result, _steps(path), counts)
    return ScrubbedJson(result, dict(counts))


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[tuple[str, bool], ...]:
    """Each step's name, and whether it is a list whose elements follow."""
    return tuple((step.removesuffix("[]"), step.endswith("[]")) for step in path.split("."))


def _scrub_at(
    scrubber: Scrubber, target: dict[str, Any], steps: tuple[tuple[str, bool], ...], counts: Counter[str]
) -> None:
    """Replaces what `steps` lead to in `target`, copying each container on the way."""
    (name, elements), rest = steps[0], steps[1:]
    value = target.get(name)
    if value is None:
        return
    if elements and rest and isinstance(value, list):
        target[name] = [_scrub_element(scrubber, name, element, rest, counts) for element in value]
    elif rest and isinstance(value, dict):
        target[name] = dict(value)
        _scrub_at(scrubber, target[name], rest, counts)
    else:
        target[name] = _scrub_value(scrubber, name, value, counts)


def _scrub_element(
    scrubber: Scrubber, name: str, element: Any, rest: tuple[tuple[str, bool], ...], counts: Counter[str]
) -> Any:
    if isinstance(element, dict):
        copy = dict(element)
        _scrub_at(scrubber, copy, rest, counts)
        return copy
    return _scrub_value(scrubber, name, element, counts)


def _scrub_value(scrubber: Scrubber, name: str, value: Any, counts: Counter[str]) -> Any:
    """What stands under the key `name`, whole."""
    if isinstance(value, dict) and not any(isinstance(child, dict | list | tuple) for child in value.values()):
        return {key: scrub_leaf(scrubber, child, hint_of(key), counts) for key, child in value.items()}
    if isinstance(value, dict | list | tuple):
        scrubbed = scrub_json(scrubber, {name: value})
        counts.update(scrubbed.counts)
        return scrubbed.value[name]
    return scrub_leaf(scrubber, value, hint_of(name), counts)
