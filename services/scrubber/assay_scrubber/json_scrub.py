"""Scrub every value of a JSON document.

Keys and structure never change; a number that is found becomes a string.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .finding import Finding, TextScrubber
from .keys import RemovedKeys
from .neighbours import told
from .projection import project

MAX_DEPTH = 200
"""Levels of nesting. orjson writes at most 254, and a payload is nested inside its event."""

# Numbers with fewer or more digits are never a card, SSN or telephone number. The bounds keep str() cheap.
_SMALLEST, _LARGEST = 10**6, 10**19


class NestingError(ValueError):
    """The document is nested too deeply to be scrubbed. The caller must not store it."""


class ScrubbedJson(NamedTuple):
    """A scrubbed JSON document; `counts`: findings by family. The input is never changed in place."""

    value: Any
    counts: dict[str, int]


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?i:(?<=password)|(?<=passwd)|(?<=pwd))(?=[0-9]$)|[_\-.]+", re.ASCII)


@lru_cache(maxsize=4096)
def hint_of(key: str) -> bytes:
    """Return the words of a key in lower case, as if they stood before its value.

    `customerPhone_no` -> `customer phone no `, `password2` -> `password 2 `.
    """
    return project(_CAMEL.sub(" ", key[-48:]).lower() + " ")


#: Keys of numbers with fewer digits than all other numbers that are searched.
_OF_CODES = re.compile(rb"(?:^| )(?:otp|totp|pin|puk|cvv2?|cvc2?|cvn|passcode|code|password|passwd|passphrase|pwd) $")
_SMALLEST_CODE = 100


def text_of(leaf: Any, hint: bytes = b"") -> str | None:
    """Return a scalar as text, None for one that cannot contain a finding; TypeError for non-JSON types."""
    if isinstance(leaf, str):
        return leaf
    if leaf is None or isinstance(leaf, bool):
        return None
    if isinstance(leaf, int | float):
        if _SMALLEST <= abs(leaf) < _LARGEST and leaf == int(leaf):
            return str(int(leaf))
        return (
            str(leaf) if hint and leaf >= _SMALLEST_CODE and isinstance(leaf, int) and _OF_CODES.search(hint) else None
        )
    raise TypeError(f"not a JSON value: {type(leaf).__name__}")


#: Keys whose value may be split into pieces.
_IN_PIECES = re.compile(rb"card|social|phone|mobile|passport|iban|(?<![a-z])(?:cc|pan|ssn|tel)(?![a-z])|\x86|\x8a")
_MOST_PIECES, _LONGEST_PIECE = 8, 9


def joined(pieces: Any, hint: bytes) -> str | None:
    """Return `["4111", "1111", …]` under a key such as `card` as one text, or None."""
    if not 2 <= len(pieces) <= _MOST_PIECES or _IN_PIECES.search(hint) is None:
        return None
    texts = [
        piece if isinstance(piece, str) else str(piece)
        for piece in pieces
        if isinstance(piece, str) or (type(piece) is int and 0 <= piece < _LARGEST)
    ]
    if len(texts) < len(pieces) or not all(len(text) <= _LONGEST_PIECE and text.isalnum() for text in texts):
        return None
    return " ".join(texts)


def _of_pieces(scrubber: TextScrubber, pieces: Any, hint: bytes, counts: Counter[str]) -> str | None:
    """Return the replacement for each of the pieces if they are one finding together."""
    text = joined(pieces, hint)
    if text is None:
        return None
    scrubbed, findings = scrubber.scrub(text, hint=hint)
    if len(findings) != 1 or findings[0].end - findings[0].start < len(text) or scrubbed == text:
        return None
    counts[findings[0].family] += 1
    return scrubbed


def _scrub_numbered(scrubber: TextScrubber, items: dict[str, Any], counts: Counter[str]) -> dict[str, Any]:
    """Scrub fields whose keys differ only by a number, as `card_part1` to `card_part4`, if they are one finding together."""
    stems: dict[str, list[str]] = {}
    for key in items:
        if isinstance(key, str) and key[-1:].isdecimal():
            stems.setdefault(key.rstrip("0123456789"), []).append(key)
    found: dict[str, Any] = {}
    for stem, keys in stems.items():
        shown = _of_pieces(scrubber, [items[key] for key in keys], hint_of(stem), counts)
        if shown is not None:
            found.update(dict.fromkeys(keys, shown))
    return found


def scrub_leaf(scrubber: TextScrubber, leaf: Any, hint: bytes, counts: Counter[str]) -> Any:
    """Scrub a scalar; TypeError for non-JSON types."""
    text = leaf if isinstance(leaf, str) else text_of(leaf, hint)
    if text is None:
        return leaf
    scrubbed, findings = scrubber.scrub(text, hint=hint)
    if not findings:
        return leaf
    counts.update(finding.family for finding in findings)
    return leaf if scrubbed == text else scrubbed  # unchanged if all of it is allowed


def findings_in(scrubber: TextScrubber, value: Any) -> Iterator[tuple[int, Finding]]:
    """Yield the findings of a JSON document, each with the index of its value.

    The index counts all scalars in document order, from 0.
    """
    pending: list[tuple[object, bytes, Any, int]] = [(None, b"", value, 0)]
    place, removes = 0, scrubber.removed_keys
    while pending:
        under, hint, item, depth = pending.pop()
        if removes is not None and removes.take(under, item):
            yield place, scrubber.under_removed_key(item)
            place += _scalars(item)
            continue
        if isinstance(item, dict | list | tuple):
            if depth > MAX_DEPTH:
                raise NestingError(f"nested more than {MAX_DEPTH} levels deep")
            known = told(scrubber, item, hint_of, hint, listed=under is None)
            if isinstance(item, dict):
                children = [(key, known.get(key) or hint_of(key), child, depth + 1) for key, child in item.items()]
            else:
                children = [(None, known.get(at, hint), child, depth + 1) for at, child in enumerate(item)]
            pending += reversed(children)
            continue
        text = text_of(item, hint)
        if text is not None:
            for finding in scrubber.scrub(text, hint=hint).findings:
                yield place, finding
        place += 1


def _scalars(value: Any) -> int:
    found, pending = 0, [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict | list | tuple):
            pending += item.values() if isinstance(item, dict) else item
        else:
            found += 1
    return found


def _without(removes: RemovedKeys, value: Any, counts: Counter[str]) -> str:
    try:
        return removes.replaced(value, counts)
    except RecursionError:  # the value would be hashed as a whole
        raise NestingError(f"nested more than {MAX_DEPTH} levels deep") from None


def scrub_json(scrubber: TextScrubber, value: Any, hint: bytes = b"", depth: int = 0) -> ScrubbedJson:
    """Return `value` scrubbed, walking it without recursion.

    `hint`: that of its key, if any; `depth`: how many levels contain it.
    Raises NestingError beyond MAX_DEPTH levels, TypeError for what is not JSON.
    """
    removes = scrubber.removed_keys
    counts: Counter[str] = Counter()
    root: list[Any] = [value]
    # Each entry: a container to fill, the items still to be copied into it, their hint, the hints from neighbours, its depth.
    pending: list[tuple[Any, Any, bytes, Mapping[Any, bytes], int]] = [(root, [(0, value)], hint, {}, depth)]
    while pending:
        target, items, inherited, known, depth = pending.pop()
        for key, item in items:
            if removes is not None and removes.take(key, item):
                target[key] = _without(removes, item, counts)
                continue
            hint = (known and known.get(key)) or (hint_of(key) if isinstance(key, str) else inherited)
            if isinstance(item, dict):
                shown = _of_pieces(scrubber, item.values(), hint, counts) if hint else None
                if shown is not None:
                    target[key] = dict.fromkeys(item, shown)
                    continue
                child: Any = {**item, **_scrub_numbered(scrubber, item, counts)}
                pending.append(
                    (child, list(child.items()), b"", told(scrubber, child, hint_of, hint, listed=False), depth + 1)
                )
            elif isinstance(item, list | tuple):
                child = list(item)
                shown = _of_pieces(scrubber, item, hint, counts) if hint else None
                if shown is not None:
                    target[key] = [shown] * len(item)
                    continue
                pending.append(
                    (
                        child,
                        enumerate(item),
                        hint,
                        told(scrubber, item, hint_of, hint, listed=isinstance(key, int)),
                        depth + 1,
                    )
                )
            else:
                target[key] = scrub_leaf(scrubber, item, hint, counts)
                continue
            if depth >= MAX_DEPTH:
                raise NestingError(f"nested more than {MAX_DEPTH} levels deep")
            target[key] = child
    return ScrubbedJson(root[0], dict(counts))
