"""Texts that are cut at the edges of claims, wherever the offsets point."""

from hypothesis import given
from hypothesis import strategies as st

from assay_console.evidence import claims_of, hits_of, passages_of
from assay_console.pieces import Span, text_of

_PLACES = st.integers(min_value=-5, max_value=2**40) | st.integers(min_value=0, max_value=60)
_SPANS = st.lists(
    st.builds(
        Span,
        start=_PLACES,
        end=_PLACES,
        verdict=st.sampled_from(["supported", "contradicted", "not_found"]),
        claim=st.integers(1, 9),
    ),
    max_size=12,
)


@given(st.text(max_size=50), _SPANS, st.none() | st.integers(0, 60))
def test_pieces_together_are_the_shown_text(text: str, spans: list[Span], longest: int | None) -> None:
    cut = text_of(text, spans, longest)
    assert "".join(piece.text for piece in cut.pieces) == text[: cut.shown]
    assert (cut.characters, cut.shown) == (len(text), len(text) if longest is None else min(len(text), longest))
    assert all(piece.text for piece in cut.pieces)


@given(st.text(min_size=1, max_size=50), _SPANS)
def test_a_character_belongs_to_every_claim_that_covers_it_and_each_claim_begins_once(
    text: str, spans: list[Span]
) -> None:
    cut = text_of(text, spans)
    at = 0
    for piece in cut.pieces:
        covering = {each.claim for each in spans if each.start <= at < each.end}
        assert set(piece.claims) == covering
        at += len(piece.text)
    begun = [claim for piece in cut.pieces for claim in piece.begins]
    assert len(begun) == len(set(begun))
    assert set(begun) == {claim for piece in cut.pieces for claim in piece.claims}


def test_the_worst_verdict_of_a_piece_is_shown() -> None:
    spans = [
        Span(start=0, end=4, verdict="supported", claim=1),
        Span(start=2, end=6, verdict="contradicted", claim=2),
        Span(start=3, end=8, verdict="not_found", claim=3),
    ]
    assert [(piece.text, piece.verdict) for piece in text_of("abcdefgh", spans).pieces] == [
        ("ab", "supported"),
        ("c", "contradicted"),
        ("d", "contradicted"),
        ("ef", "contradicted"),
        ("gh", "not_found"),
    ]


def test_offsets_outside_the_answer_or_its_passages_leave_a_claim_without_text() -> None:
    verdicts = [
        {
            "verdict": "supported",
            "demoted": False,
            "answer_from": 90,
            "answer_to": 99,
            "passage": 7,
            "quote_from": 0,
            "quote_to": 3,
        }
    ]
    [claim] = claims_of("short", [{"text": "p"}], verdicts)
    assert (claim.sentence, claim.passage, claim.quote) == ("", None, "")
    contexts = [{"id": "a", "source_id": None, "text": "p", "score": None}]
    [passage] = passages_of(contexts, [], verdicts, None)
    assert [piece.text for piece in passage.text.pieces] == ["p"]


def test_hits_with_scores_below_zero_or_without_any_have_no_share() -> None:
    record = {
        "retrieved_chunk_ids": [],
        "retrieved_ids": ["a", "b"],
        "passages": [],
        "retrieved_slugs": ["x"],
        "retrieved_scores": [-1.0, -2.0],
    }
    assert [(hit.id, hit.slug, hit.share, hit.cited) for hit in hits_of(record, None)] == [
        ("a", "", None, None),
        ("b", "", None, None),
    ]
    assert [hit.score for hit in hits_of(record | {"retrieved_scores": []}, frozenset("b"))] == [None, None]
