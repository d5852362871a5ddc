"""Scrubs every value of a JSON document. Keys never change, nor does the shape; a number that is found becomes text."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .projection import project

if TYPE_CHECKING:
    from .engine import Finding, Scrubber

MAX_DEPTH = 200
"""Levels of nesting. orjson writes at most 254, and a payload stands inside its event."""

# Numbers of fewer digits are no card, SSN or telephone number; of more, none either. Bounds keep str() cheap.
_SMALLEST, _LARGEST = 10**6, 10**19


class NestingError(ValueError):
    """The document is nested too deeply to be scrubbed. Its caller must not store it."""


class ScrubbedJson(NamedTuple):
    """`counts`: findings by family. The input is never changed in place."""

    value: Any
    counts: dict[str, int]


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]+")


@lru_cache(maxsize=4096)
def hint_of(key: str) -> bytes:
    """The words of a key, in lower case, as if they stood before its value: `customerPhone_no` -> `customer phone no `."""
    return project(_CAMEL.sub(" ", key[-48:]).lower() + " ")


def text_of(leaf: Any) -> str | None:
    """A scalar as text, None for one in which nothing can be found. TypeError for what is not JSON."""
    if isinstance(leaf, str):
        return leaf
    if leaf is None or isinstance(leaf, bool):
        return None
    if isinstance(leaf, int | float):
        return str(int(leaf)) if _SMALLEST <= leaf < _LARGEST and leaf == int(leaf) else None
    raise TypeError(f"not a JSON value: {type(leaf).__name__}")


def scrub_leaf(scrubber: "Scrubber", leaf: Any, hint: bytes, counts: Counter[str]) -> Any:
    """A scalar, scrubbed. TypeError for what is not JSON."""
    text = leaf if isinstance(leaf, str) else text_of(leaf)
    if text is None:
        return leaf
    scrubbed, findings = scrubber.scrub(text, hint=hint)
    if not findings:
        return leaf
    counts.update(finding.family for finding in findings)
    return leaf if scrubbed == text else scrubbed  # the same when all of it is allowed


def findings_in(scrubber: "Scrubber", value: Any) -> Iterator[tuple[int, "Finding"]]:
    """Findings of a JSON document: the place of their value among all its scalars, in document order from 0, and the finding in it."""
    pending: list[tuple[bytes, Any, int]] = [(b"", value, 0)]
    place = 0
    while pending:
        hint, item, depth = pending.pop()
        if isinstance(item, dict | list | tuple):
            if depth > MAX_DEPTH:
                raise NestingError(f"nested more than {MAX_DEPTH} levels deep")
            if isinstance(item, dict):
                children = [(hint_of(key), child, depth + 1) for key, child in item.items()]
            else:
                children = [(hint, child, depth + 1) for child in item]
            pending += reversed(children)
            continue
        text = text_of(item)
        if text is not None:
            for finding in scrubber.scrub(text, hint=hint).findings:
                yield place, finding
        place += 1


def scrub_json(scrubber: "Scrubber", value: Any) -> ScrubbedJson:
    """Walks `value` without recursion. NestingError beyond MAX_DEPTH levels, TypeError for what is not JSON."""
    counts: Counter[str] = Counter()
    root: list[Any] = [value]
    # Each entry: a container to fill, the items still to be copied into it, their hint, its depth.
    pending: list[tuple[Any, Any, bytes, int]] = [(root, [(0, value)], b"", 0)]
    while pending:
        target, items, inherited, depth = pending.pop()
        for key, item in items:
            hint = hint_of(key) if isinstance(key, str) else inherited
            if isinstance(item, dict):
                child: Any = dict(item)
                pending.append((child, list(item.items()), b"", depth + 1))
            elif isinstance(item, list | tuple):
                child = list(item)
                pending.append((child, enumerate(item), hint, depth + 1))
            else:
                target[key] = scrub_leaf(scrubber, item, hint, counts)
                continue
            if depth >= MAX_DEPTH:
                raise NestingError(f"nested more than {MAX_DEPTH} levels deep")
            target[key] = child
    return ScrubbedJson(root[0], dict(counts))
