"""The parts of a session: a document cut into fragments of a bounded size, and joined again. Pure.

A fragment has the shape of the document, with some items of each list. The first one also has the other fields. An item that is
too large continues in the items after it, in the same list or at the head of that list in the next fragment:

- `{"continues": path, "text": text}` appends to the text at `path` in the item
- `{"continues": path, "keys": {...}}` adds keys to the object at `path`
- `{"continues": path, "items": [...]}` adds items to the list at `path`

`path` has the keys and the indexes, from 0, from the item to the value; `[]` is the item. An item of the document that has a key
`continues` itself gets that key by a continuation, so that every item with the key is a continuation.

A scrubber may replace values and texts, `path` excepted. A continuation of a value that it replaced is dropped.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final
from uuid import UUID

import orjson

from assay_sessions.record import Json
from assay_sessions.text_cut import natural_cut

#: Bytes of JSON of a fragment.
PART_MAX: Final = 200 * 1024
#: Bytes of a piece of a text, in UTF-8 and in JSON.
PIECE_MAX: Final = 64 * 1024
#: Below this, a fragment has no room for its frame and a long path.
LIMIT_MIN: Final = 1024
CONTINUES: Final = "continues"

Path = tuple[str | int, ...]
#: Returns the place to cut a text, at most the given one. The text goes on for up to one piece after it.
Cut = Callable[[str, int], int]

_LISTS: Final = (("request", "contents"), ("response", "candidates"), ("intermediate_events",))


class PartsError(ValueError):
    """Raised if a document cannot be split within the limit."""


def split(document: Json, limit: int = PART_MAX, cut: Cut = natural_cut) -> list[Json]:
    """Return the document as fragments whose JSON is at most `limit` bytes each, in order.

    `join` restores it exactly. `cut(text, most)` chooses the place where a long text is cut; return at least 1 and at most `most`.
    Raises `PartsError` if the limit is below 1 KiB, or the fields that are not lists take more than half of it.
    """
    frame = _fragment()
    first = _with_lists(document, ([], [], []))
    room = limit - _size(frame)
    if limit < LIMIT_MIN or _size(first) > limit // 2:
        message = f"The fields of a session without its lists take {_size(first)} bytes, and a part has {limit}."
        raise PartsError(message)
    pieces = _Pieces(min(PIECE_MAX, room // 2), room, cut)
    parts, used = [first], _size(first)
    for where, path in enumerate(_LISTS):
        for item in _at(document, path):
            for piece in pieces.of(item):
                size = _size(piece) + 1
                if used + size > limit:
                    parts.append(_fragment())
                    used = limit - room
                _at(parts[-1], _LISTS[where]).append(piece)
                used += size
    return parts


def join(parts: Iterable[Json]) -> Json:
    """Return the document of all fragments of a session, in order."""
    fragments = iter(parts)
    first = next(fragments)
    pieces = tuple(list(_at(first, path)) for path in _LISTS)
    for fragment in fragments:
        for held, path in zip(pieces, _LISTS, strict=True):
            held.extend(_at(fragment, path))
    return _with_lists(first, tuple(list(_items(held)) for held in pieces))


def shape_digest(document: Json) -> str:
    """Return 16 hexadecimal digits that change with the size of any item, never with its text.

    It is stored with the scrubbed text. A hash of the text itself would let a reader try what was removed from it.
    """
    sizes = [[_size(item) for item in _at(document, path)] for path in _LISTS]
    own = [
        _size(value) for name, value in document.items() if name not in ("request", "response", "intermediate_events")
    ]
    return hashlib.sha256(orjson.dumps([own, sizes])).hexdigest()[:16]


def part_event_id(project: str, session_id: str, digest: str, part: int, updated_ms: int) -> str:
    """Return the `event_id` of a part: a UUIDv7 with the time of the session's last change.

    It depends on the arguments alone: the same revision of a session, imported again, has the same ids.
    """
    named = orjson.dumps([project, session_id, digest, part])
    noise = int.from_bytes(hashlib.sha256(named).digest()[:10], "big")
    milliseconds = min(max(updated_ms, 0), (1 << 48) - 1)
    variant = 0b10 << 62 | noise & (1 << 62) - 1
    return str(UUID(int=milliseconds << 80 | 0x7 << 76 | (noise >> 62 & 0xFFF) << 64 | variant))


class _Pieces:
    """Cuts one item into pieces of at most `room` bytes of JSON."""

    def __init__(self, piece: int, room: int, cut: Cut) -> None:
        self._piece, self._room, self._cut = piece, room - 1, cut

    def of(self, item: Json) -> Iterator[Json]:
        """Yield the item, or its head and its continuations."""
        if CONTINUES not in item and _size(item) <= self._piece:
            yield item
            return
        texts: list[Json] = []
        shortened = self._shortened(item, (), texts)
        if CONTINUES not in item and _size(shortened) <= self._room:
            yield shortened
        else:
            yield from self._opened(shortened)
        yield from texts

    def _shortened(self, value: Any, path: Path, texts: list[Json]) -> Any:
        """Return a value with the first piece of each text; append the others to `texts`."""
        if isinstance(value, str):
            if len(value) * 6 <= self._piece or _size(value) <= self._piece:
                return value
            first, *others = self._texts(value, path)
            texts += [{CONTINUES: list(path), "text": text} for text in others]
            return first
        if isinstance(value, dict):
            return {key: self._shortened(item, (*path, key), texts) for key, item in value.items()}
        if isinstance(value, list):
            return [self._shortened(item, (*path, number), texts) for number, item in enumerate(value)]
        return value

    def _texts(self, text: str, path: Path) -> Iterator[str]:
        most = min(self._piece, self._room - _size({CONTINUES: path, "text": ""}))
        if most < self._piece // 8:
            message = f"A text lies {len(path)} levels deep, under keys too long for a part."
            raise PartsError(message)
        start = 0
        while start < len(text):
            at = _characters(text[start : start + most], most)
            if start + at < len(text):
                at = min(max(1, self._cut(text[start : start + 2 * at], at)), at)
            yield text[start : start + at]
            start += at

    def _opened(self, item: Json) -> Iterator[Json]:
        """Yield an item with too many values as a head and continuations."""
        head: Json = {}
        later: list[Json] = []
        used = 2
        for key, value in item.items():
            size = _size(key) + _size(value) + 2
            if key == CONTINUES or later or used + size > self._room:
                later += self._added((), key, value)
            else:
                head[key] = value
                used += size
        yield head
        yield from self._gathered(later)

    def _added(self, path: Path, key: str | int, value: Any) -> Iterator[Json]:
        """Yield continuations that add one value to the container at `path`."""
        if _size(_addition(path, key, value)) <= self._room:
            yield _addition(path, key, value)
        elif isinstance(value, dict):
            yield _addition(path, key, {})
            for name, inner in value.items():
                yield from self._added((*path, key), name, inner)
        elif isinstance(value, list):
            yield _addition(path, key, [])
            for number, inner in enumerate(value):
                yield from self._added((*path, key), number, inner)
        else:
            message = f"A key lies {len(path)} levels deep and is too long for a part."
            raise PartsError(message)

    def _gathered(self, additions: Iterable[Json]) -> Iterator[Json]:
        """Yield the additions, those to one container together as far as they fit."""
        held: Json | None = None
        used = 0
        for addition in additions:
            form = _form(addition)
            size = _size(addition[form])
            if held and held[CONTINUES] == addition[CONTINUES] and form in held and used + size <= self._room:
                if form == "keys":
                    held[form].update(addition[form])
                else:
                    held[form] += addition[form]
                used += size
                continue
            if held:
                yield held
            held, used = addition, _size(addition)
        if held:
            yield held


def _addition(path: Path, key: str | int, value: Any) -> Json:
    added = {"items": [value]} if isinstance(key, int) else {"keys": {key: value}}
    return {CONTINUES: list(path), **added}


def _form(continuation: Json) -> str:
    return next(form for form in ("text", "keys", "items") if form in continuation)


def _characters(text: str, most: int) -> int:
    """Return the number of characters of a text that take at most `most` bytes, in UTF-8 and in JSON."""
    count = len(text)
    while count > 1 and (size := _size(text[:count]) - 2) > most:
        count = max(1, min(count - 1, count * most // size))
    return count


def _items(pieces: Sequence[Json]) -> Iterator[Json]:
    """Yield the items of a list of items and continuations."""
    start = 0
    for end in range(1, len(pieces) + 1):
        if end == len(pieces) or CONTINUES not in pieces[end]:
            yield _whole(pieces[start], pieces[start + 1 : end])
            start = end


def _whole(item: Json, continuations: Sequence[Json]) -> Json:
    if not continuations:
        return item
    whole = orjson.loads(orjson.dumps(item))
    for (path, form), group in groupby(continuations, lambda one: (one[CONTINUES], _form(one))):
        added = [one[form] for one in group]
        if form == "text":
            _append(whole, path, added)
            continue
        target = _reached(whole, path)
        for values in orjson.loads(orjson.dumps(added)):
            if form == "keys" and isinstance(target, dict):
                target.update(values)
            elif form == "items" and isinstance(target, list):
                target += values
    return dict(whole)


def _append(whole: Json, path: Sequence[str | int], texts: Sequence[str]) -> None:
    if not path:
        return
    target = _reached(whole, path[:-1])
    text = _step(target, path[-1])
    if isinstance(text, str):
        target[path[-1]] = "".join([text, *texts])


def _reached(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        value = _step(value, step)
    return value


def _step(value: Any, step: str | int) -> Any:
    """Return the value below, or None if a scrubber replaced it."""
    if isinstance(step, int):
        return value[step] if isinstance(value, list) and 0 <= step < len(value) else None
    return value.get(step) if isinstance(value, dict) else None


def _fragment() -> Json:
    return {"request": {"contents": []}, "response": {"candidates": []}, "intermediate_events": []}


def _with_lists(document: Json, lists: Sequence[list[Json]]) -> Json:
    contents, candidates, events = lists
    return document | {
        "request": document["request"] | {"contents": contents},
        "response": document["response"] | {"candidates": candidates},
        "intermediate_events": events,
    }


def _at(document: Json, path: Sequence[str]) -> list[Json]:
    value: Any = document
    for name in path:
        value = value[name]
    found: list[Json] = value
    return found


def _size(value: Any) -> int:
    return len(orjson.dumps(value))
