"""The evidence of one event: hits, passages, citations and claims, with their places in texts. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay_console.page import Document
from assay_console.pieces import Span, Text, text_of


class Hit(Document):
    """A hit of a retrieval. `share`: its score as a part of the best; `cited`: None without an answer."""

    rank: int
    id: str
    slug: str
    source: str
    score: float | None
    share: float | None
    cited: bool | None


class Passage(Document):
    """A passage that an answer was given. `cited_by` has the numbers of citations."""

    rank: int
    id: str
    source: str
    score: float | None
    text: Text
    cited_by: tuple[int, ...]


class Citation(Document):
    """A citation of an answer. `passage` is the rank of its passage; None if the answer was not given it."""

    number: int
    context_id: str
    claim: str | None
    passage: int | None


class Claim(Document):
    """A claim of the answer, its verdict and evidence. `quote` is empty without valid evidence."""

    number: int
    verdict: str
    demoted: bool
    sentence: str
    passage: int | None
    quote: str


def hits_of(record: Mapping[str, Any], cited: frozenset[str] | None) -> tuple[Hit, ...]:
    """Return the hits of a row of `candidates`. Pure."""
    chunks, ids, passages = record["retrieved_chunk_ids"], record["retrieved_ids"], record["passages"]
    slugs, scores = record["retrieved_slugs"], record["retrieved_scores"]
    n = max(len(chunks), len(ids), len(passages))
    found: list[Hit] = []
    values = [_at(scores, place) if scores else (_at(passages, place) or {}).get("score") for place in range(n)]
    best = max((each for each in values if each is not None), default=0)
    for place in range(n):
        passage = _at(passages, place) or {}
        names = [
            str(each) for each in (_at(chunks, place), _at(ids, place), passage.get("id")) if each not in (None, "")
        ]
        slug = str(slugs[place]) if len(slugs) == n else ""
        score = values[place]
        found.append(
            Hit(
                rank=place + 1,
                id=names[0] if names else "",
                slug=slug,
                source=passage.get("source_id") or "",
                score=score,
                share=max(0.0, min(1.0, score / best)) if score is not None and best > 0 else None,
                cited=None if cited is None else bool(cited & {*names, slug}),
            )
        )
    return tuple(found)


def _at(values: Sequence[Any], place: int) -> Any:
    return values[place] if place < len(values) else None


def claim_spans(verdicts: Sequence[Mapping[str, Any]]) -> list[Span]:
    """Return the places of claims in the answer. Pure."""
    return [
        Span(start=int(each["answer_from"]), end=int(each["answer_to"]), verdict=each["verdict"], claim=number)
        for number, each in enumerate(verdicts, 1)
    ]


def claims_of(
    answer: str, contexts: Sequence[Mapping[str, Any]], verdicts: Sequence[Mapping[str, Any]]
) -> tuple[Claim, ...]:
    """Return the claims with their sentences and quotes. Offsets outside a text give less of it. Pure."""
    found = []
    for number, each in enumerate(verdicts, 1):
        place = int(each["passage"])
        passage = contexts[place - 1]["text"] if 1 <= place <= len(contexts) else None
        found.append(
            Claim(
                number=number,
                verdict=each["verdict"],
                demoted=each["demoted"],
                sentence=answer[int(each["answer_from"]) : int(each["answer_to"])],
                passage=place if passage is not None else None,
                quote=passage[int(each["quote_from"]) : int(each["quote_to"])] if passage is not None else "",
            )
        )
    return tuple(found)


def citations_of(contexts: Sequence[Mapping[str, Any]], citations: Sequence[Mapping[str, Any]]) -> tuple[Citation, ...]:
    """Return the citations with the rank of their passage. Pure."""
    ranks = {str(each["id"]): rank for rank, each in reversed(list(enumerate(contexts, 1)))}
    return tuple(
        Citation(
            number=number,
            context_id=str(each["context_id"]),
            claim=each["claim"],
            passage=ranks.get(str(each["context_id"])),
        )
        for number, each in enumerate(citations, 1)
    )


def passages_of(
    contexts: Sequence[Mapping[str, Any]],
    citations: Sequence[Mapping[str, Any]],
    verdicts: Sequence[Mapping[str, Any]],
    longest: int | None,
) -> tuple[Passage, ...]:
    """Return the passages, cut where the quotes of claims begin and end. Pure."""
    cited = citations_of(contexts, citations)
    found = []
    for rank, each in enumerate(contexts, 1):
        spans = [
            Span(start=int(v["quote_from"]), end=int(v["quote_to"]), verdict=v["verdict"], claim=number)
            for number, v in enumerate(verdicts, 1)
            if int(v["passage"]) == rank
        ]
        found.append(
            Passage(
                rank=rank,
                id=str(each["id"]),
                source=each["source_id"] or "",
                score=each["score"],
                text=text_of(each["text"], spans, longest),
                cited_by=tuple(c.number for c in cited if c.passage == rank),
            )
        )
    return tuple(found)
