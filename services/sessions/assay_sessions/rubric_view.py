"""The part of a session that a judge's model is shown, cut to a budget. Pure.

A text that is too long is shown as its head and its tail, with the number of bytes in between. If the session is still too long, calls
and words in its middle are left out. Both are parts of the structure, not marks in the text: no captured text can look like a cut.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from assay_sessions.document import content_text
from assay_sessions.record import Json

Kind = Literal["user", "agent", "call", "result"]
#: Most bytes of one text, from the first to the last attempt to fit the budget.
_TEXT_BYTES: Final = (65_536, 32_768, 16_384, 8_192, 4_096, 2_048, 1_024, 512)
#: Bytes that the frame of the view needs: keys, counts and the statement on the cuts.
_FRAME_BYTES: Final = 512


class Shown(NamedTuple):
    """A text as it is shown: whole, or its head and tail."""

    head: str
    tail: str = ""
    bytes_cut: int = 0

    @property
    def parts(self) -> tuple[str, ...]:
        """The texts that are shown."""
        return (self.head, self.tail) if self.bytes_cut else (self.head,)

    def as_json(self) -> Any:
        """Return the text, or an object with its head, the bytes that were cut, and its tail."""
        return {"head": self.head, "bytes_cut": self.bytes_cut, "tail": self.tail} if self.bytes_cut else self.head


@dataclass(frozen=True, slots=True)
class Piece:
    """Words of one turn, or one call with its result."""

    turn: int
    kind: Literal["user", "agent", "call"]
    #: The words, or the arguments as JSON.
    text: str
    result: str = ""
    #: `call`, `tool`, `status`, and `exit_code` and `error_kind` if there are any.
    about: tuple[tuple[str, Any], ...] = ()


class ShownPiece(NamedTuple):
    """A piece as it is shown."""

    piece: Piece
    text: Shown
    result: Shown

    def as_json(self) -> Json:
        """Return the piece as an object of the view."""
        if self.piece.kind != "call":
            return {"turn": self.piece.turn, "role": self.piece.kind, "text": self.text.as_json()}
        return {
            "turn": self.piece.turn,
            **dict(self.piece.about),
            "args": self.text.as_json(),
            "result": self.result.as_json(),
        }

    def texts(self) -> Iterator[tuple[Kind, str]]:
        """Yield the texts that are shown, by kind. A call has its tool's name and arguments."""
        for part in self.text.parts:
            yield self.piece.kind, f"{dict(self.piece.about).get('tool', '')} {part}".strip()
        for part in self.result.parts:
            yield "result", part

    @property
    def size(self) -> int:
        """Bytes of the object as it is sent."""
        return len(encoded(self.as_json())) + 2


@dataclass(frozen=True, slots=True)
class View:
    """The shown part of a session.

    `left_out` are the pieces in its middle that are not shown, after `head` shown ones.
    """

    shown: tuple[ShownPiece, ...]
    left_out: tuple[Piece, ...] = ()
    head: int = 0

    @property
    def is_cut(self) -> bool:
        """True if anything of the session is not shown."""
        return bool(self.left_out) or any(each.text.bytes_cut or each.result.bytes_cut for each in self.shown)

    def as_json(self) -> Json:
        """Return the view as an object: the pieces in order, and what is not shown."""
        rows = [each.as_json() for each in self.shown]
        if self.left_out:
            calls = sum(each.kind == "call" for each in self.left_out)
            between = {
                "from_turn": self.left_out[0].turn,
                "to_turn": self.left_out[-1].turn,
                "calls": calls,
                "words": len(self.left_out) - calls,
            }
            rows.insert(self.head, {"left_out": between})
        texts = sum(bool(each.text.bytes_cut) + bool(each.result.bytes_cut) for each in self.shown)
        return {"cut": {"texts_cut": texts, "pieces_left_out": len(self.left_out)}, "pieces": rows}


def encoded(value: Any) -> bytes:
    """Encode a message. A lone `<` could end a surrounding tag on its way; escaped, it is the same JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c").encode(errors="replace")


def view_of(document: Json, max_bytes: int) -> View:
    """Show as much of a session as fits into a number of bytes, as the message is encoded.

    Long texts are cut first, all to the same length. Then pieces are left out from the middle: the first and the last ones stay.
    """
    pieces = list(pieces_of(document))
    budget = max(0, max_bytes - _FRAME_BYTES)
    shown: list[ShownPiece] = []
    for limit in _TEXT_BYTES:
        shown = [_shown(each, limit) for each in pieces]
        if sum(each.size for each in shown) <= budget:
            return View(tuple(shown))
    head, tail = _ends([each.size for each in shown], budget)
    end = len(shown) - tail
    return View((*shown[:head], *shown[end:]), tuple(pieces[head:end]), head)


def pieces_of(document: Json) -> Iterator[Piece]:
    """Yield the words and the agent's calls, in order. The calls of a turn come before its words."""
    turns = list(document["request"]["contents"])
    turns += [candidate["content"] for candidate in document["response"]["candidates"][:1]]
    calls: dict[int, list[Piece]] = {}
    for call in _calls(document["intermediate_events"]):
        calls.setdefault(call.turn, []).append(call)
    for number, content in enumerate(turns, 1):
        yield from calls.pop(number, ())
        if text := content_text(content):
            yield Piece(number, "user" if content["role"] == "user" else "agent", text)
    for number in sorted(calls):
        yield from calls[number]


def _calls(events: Iterable[Json]) -> Iterator[Piece]:
    for number, event in enumerate(events, 1):
        if event.get("executed_by") == "user":
            continue
        response = event.get("function_response", {}).get("response", {})
        about = {"call": number, "tool": event["function_call"]["name"], "status": event.get("status", "success")}
        about |= {name: event[name] for name in ("exit_code", "error_kind") if event.get(name) is not None}
        if response.get("truncated"):
            about["truncated_for_the_agent"] = True
        args = json.dumps(event["function_call"].get("args") or {}, ensure_ascii=False)
        result = response.get("output", response.get("error", ""))
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        yield Piece(event["turn"], "call", args, text, tuple(about.items()))


def _shown(piece: Piece, limit: int) -> ShownPiece:
    return ShownPiece(piece, _cut(piece.text, limit), _cut(piece.result, limit))


def _cut(text: str, limit: int) -> Shown:
    raw = text.encode(errors="replace")
    if len(raw) <= limit:
        return Shown(raw.decode())
    half = limit // 2
    head, tail = raw[:half].decode(errors="ignore"), raw[-half:].decode(errors="ignore")
    return Shown(head, tail, len(raw) - len(head.encode()) - len(tail.encode()))


def _ends(sizes: list[int], budget: int) -> tuple[int, int]:
    """Return how many pieces of the beginning and of the end fit, taken in turn."""
    head = tail = 0
    while head + tail < len(sizes):
        from_head = head <= tail
        size = sizes[head] if from_head else sizes[-1 - tail]
        if size > budget:
            break
        budget -= size
        head, tail = (head + 1, tail) if from_head else (head, tail + 1)
    return head, tail


def history_of(view: View) -> View:
    """Return the part of a view that says what was asked.

    It has all words up to the last of the user, no calls and no final answer.
    """
    last = max((place for place, each in enumerate(view.shown) if each.piece.kind == "user"), default=-1)
    asked = tuple(each for each in view.shown[: last + 1] if each.piece.kind != "call")
    before = sum(each.piece.kind != "call" for each in view.shown[: view.head])
    words = tuple(each for each in view.left_out if each.kind != "call")
    return replace(view, shown=asked, left_out=words, head=min(before, len(asked)))
