"""Verdicts: which replies are one, and what is measured by them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_judge.verdict import SCHEMA, ReplyError, Verdict, metrics_of, parse
from assay_schema.scores import Metric

PASSAGES = {"p1": "The Alpine boot is waterproof up to 20 cm.", "p2": "It weighs **900 g** — a pair."}


def claim(
    number: int = 1, verdict: str = "supported", quote: str = "waterproof up to 20 cm", **more: Any
) -> dict[str, Any]:
    base = {"id": f"c{number}", "text": "a claim", "citations": [], "evidence_quote": quote, "verdict": verdict}
    return base | {"cited_ok": []} | more


def reply(*claims: dict[str, Any], relevancy: str = "yes", **more: Any) -> str:
    return json.dumps({"claims": list(claims), "relevancy": relevancy} | more)


def test_the_schema_requires_every_field_and_lets_no_other_in() -> None:
    for part in (SCHEMA, SCHEMA["properties"]["claims"]["items"]):
        assert set(part["required"]) == set(part["properties"])
        assert part["additionalProperties"] is False


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "ReplyNotJson"),
        ("Sure! {", "ReplyNotJson"),
        ("[" * 100_000, "ReplyNotJson"),
        ("[]", "ReplyMisfit"),
        ('{"claims": []}', "ReplyMisfit"),
        (reply(claim(), relevancy="very"), "ReplyMisfit"),
        (reply(claim(verdict="SUPPORTED")), "ReplyMisfit"),
        (reply(claim(), claim()), "ReplyMisfit"),
        (reply(claim(citations=["p1"], cited_ok=[])), "ReplyMisfit"),
        (reply(claim(citations=["p9"], cited_ok=[True])), "ReplyMisfit"),
        (reply(claim(citations=["p1"], cited_ok=[1])), "ReplyMisfit"),
        (reply(claim(), verdict="supported"), "ReplyMisfit"),
        (reply(*(claim(n) for n in range(10_001))), "ReplyMisfit"),
        (reply(claim(quote="x" * 300_000)), "ReplyMisfit"),
    ],
)
def test_a_reply_that_is_no_verdict_is_refused_without_its_text(text: str, kind: str) -> None:
    with pytest.raises(ReplyError) as refused:
        parse(text, PASSAGES)
    assert refused.value.kind == kind
    assert "waterproof" not in str(refused.value)


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_no_text_breaks_the_parser(text: str) -> None:
    with pytest.raises(ReplyError):
        parse(text, PASSAGES)


def test_an_answer_is_as_faithful_as_its_claims_are_supported() -> None:
    verdict = parse(reply(claim(1), claim(2), claim(3, "contradicted"), claim(4, "not_found", "")), PASSAGES)
    found = metrics_of(verdict)
    assert found[Metric.FAITHFULNESS] == 0.5
    assert found[Metric.HALLUCINATION_RATE] == 0.5


def cited(*claims: tuple[str, list[bool]]) -> Verdict:
    made = [
        claim(n, verdict, citations=["p1", "p2"][: len(ok)], cited_ok=ok) for n, (verdict, ok) in enumerate(claims, 1)
    ]
    return parse(reply(*made), PASSAGES)


@pytest.mark.parametrize(
    ("verdict", "precision", "recall"),
    [
        (cited(("supported", [True])), 1.0, 1.0),
        (cited(("supported", [True, False])), 0.5, 1.0),  # a citation too many
        (cited(("supported", [True, True])), 1.0, 1.0),  # both are needed, or either does
        (cited(("supported", [])), 0.0, 0.0),  # no citation
        (cited(("supported", [False])), 0.0, 0.0),  # supported, but by another passage
        (cited(("supported", [True]), ("supported", [])), 1.0, 0.5),
        (cited(("supported", [True]), ("not_found", [True])), 0.5, 0.5),  # credit in supported claims only
        (cited(("not_found", [])), 0.0, 0.0),
    ],
)
def test_citations_are_measured_as_alce_does(verdict: Verdict, precision: float, recall: float) -> None:
    found = metrics_of(verdict)
    assert (found[Metric.CITATION_PRECISION], found[Metric.CITATION_RECALL]) == (precision, recall)


@pytest.mark.parametrize(("said", "value"), [("yes", 1.0), ("partial", 0.5), ("no", 0.0)])
def test_relevancy_has_three_values(said: str, value: float) -> None:
    assert metrics_of(parse(reply(claim(), relevancy=said), PASSAGES))[Metric.ANSWER_RELEVANCY] == value
