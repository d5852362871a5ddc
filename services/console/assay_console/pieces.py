"""Cut a text where claims and quotes begin and end. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from assay_console.page import Document

#: Characters of a text that a page shows before someone asks for all.
SHOWN_CHARS = 20_000
#: The verdict that a piece with several has.
_WORST = ("contradicted", "not_found", "supported")


class Span(Document):
    """A part of a text: characters from `start`, before `end`; its verdict, and the number of its claim."""

    start: int
    end: int
    verdict: str
    claim: int


class Piece(Document):
    """A piece of a text: the numbers of the claims that it belongs to, and the worst of their verdicts."""

    text: str
    claims: tuple[int, ...] = ()
    verdict: str = ""
    #: The claims whose first piece this is.
    begins: tuple[int, ...] = ()


class Text(Document):
    """A text, or its beginning: `characters` is the length of all of it."""

    pieces: tuple[Piece, ...]
    characters: int
    shown: int


def text_of(text: str, spans: Sequence[Span] = (), longest: int | None = SHOWN_CHARS) -> Text:
    """Cut a text at the edges of spans. Spans may overlap or reach outside the text."""
    shown = len(text) if longest is None else min(len(text), longest)
    inside = [
        each.model_copy(update={"start": max(0, each.start), "end": min(shown, each.end)})
        for each in spans
        if max(0, each.start) < min(shown, each.end)
    ]
    edges = sorted({0, shown, *(each.start for each in inside), *(each.end for each in inside)})
    pieces, begun = [], set[int]()
    for start, end in pairwise(edges):
        over = [each for each in inside if each.start <= start and each.end >= end]
        claims = tuple(sorted({each.claim for each in over}))
        verdicts = {each.verdict for each in over}
        worst = next((verdict for verdict in _WORST if verdict in verdicts), "")
        first = tuple(claim for claim in claims if claim not in begun)
        begun.update(first)
        pieces.append(Piece(text=text[start:end], claims=claims, verdict=worst, begins=first))
    return Text(pieces=tuple(pieces), characters=len(text), shown=shown)
