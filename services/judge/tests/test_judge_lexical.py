"""The lexical baseline: what it sees, and that it is labelled as what it is."""

import pytest

from assay_judge import lexical
from assay_judge.evaluator import verdict_fields
from assay_judge.lexical_score import lexical_score
from assay_judge.prompt import Case, case_of
from assay_judge.sampling import Draw
from assay_judge.verdict import metrics_of
from assay_schema.events import Answer
from assay_schema.scores import Metric, Score, ScoreStatus
from tests.support.answers import answer

EVENT = "019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d"
BOOTS = "The Alpine boot is waterproof up to 20 cm. It weighs 900 g. The sole is not glued but stitched."


def case(text: str, *passages: str, query: str = "Is the Alpine boot waterproof?") -> Case:
    contexts = [{"id": f"d{n}", "text": passage} for n, passage in enumerate(passages)]
    raw = {"query": query, "answer": text, "contexts": contexts, "model": "m", "latency_ms": 1.0}
    return case_of(EVENT, Answer.model_validate(raw))


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("The Alpine boot is waterproof up to 20 cm.", "supported"),
        ("Alpine boots are waterproof up to 20 cm.", "supported"),
        ("The Alpine boot is waterproof up to 30 cm.", "contradicted"),
        ("The Alpine boot is not waterproof up to 20 cm.", "contradicted"),
        ("The sole is glued, stitched.", "contradicted"),
        ("The laces are made of recycled nylon.", "not_found"),
    ],
)
def test_a_claim_is_held_against_the_words_numbers_and_negations_of_passages(claim: str, verdict: str) -> None:
    (found,) = lexical.judged(case(claim, BOOTS)).claims
    assert found.verdict == verdict


def test_each_sentence_is_a_claim_but_for_questions_and_admissions() -> None:
    text = "The Alpine boot is waterproof. Anything else? I don't know more about the price. It weighs 900 g."
    assert [claim.text for claim in lexical.judged(case(text, BOOTS)).claims] == [
        "The Alpine boot is waterproof.",
        "It weighs 900 g.",
    ]


def test_citations_are_judged_passage_by_passage() -> None:
    made = case("The Alpine boot is waterproof [1][2].", BOOTS, "Sandals are for summer.")
    found = metrics_of(lexical.judged(made))
    assert (found[Metric.CITATION_PRECISION], found[Metric.CITATION_RECALL]) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("text", "relevancy"),
    [("The Alpine boot is waterproof.", "yes"), ("This boot weighs 900 g.", "partial"), ("Tea is green.", "no")],
)
def test_relevancy_is_how_much_of_the_question_comes_back(text: str, relevancy: str) -> None:
    assert lexical.judged(case(text, BOOTS)).relevancy == relevancy


def test_an_answer_without_claims_has_no_number() -> None:
    made = case("I don't know.", BOOTS)
    state = verdict_fields(lexical.judged(made), made)
    assert state == {"status": ScoreStatus.ABSTAINED, "detail": "the answer makes no claim"}


def test_it_judges_the_same_every_time_and_says_that_it_is_lexical() -> None:
    made = case("The Alpine boot is waterproof up to 20 cm. It floats.", BOOTS)
    assert lexical.judged(made) == lexical.judged(made)
    assert (lexical.judge().backend, lexical.judge().model) == ("lexical", "lexical-2")


@pytest.mark.parametrize(
    "text",
    ["", ".", "\n\n", "[1]", "é" * 10_000, "a " * 50_000, "word " * 20_000, "A claim it is. " * 300, "\x00. \ud7ff."],
)
def test_no_text_breaks_it(text: str) -> None:
    lexical.judged(case(text, text, query=text[:50_000]))


@pytest.mark.parametrize(
    ("claim", "passage", "verdict"),
    [
        ("The boot doesn’t leak in rain.", "The boot doesn't leak in rain.", "supported"),
        ("Der Stiefel ist nicht wasserdicht.", "Der Stiefel ist wasserdicht.", "contradicted"),
        ("Es gibt keine Garantie auf Sohlen.", "Es gibt Garantie auf Sohlen.", "contradicted"),
        ("The pump has nine valves.", "The pump has two valves.", "contradicted"),
        ("The pump has nine valves.", "The pump has 9 valves.", "supported"),
        ("这双靴子可以防水。", "这双靴子可以防水，重九百克。", "supported"),
        ("これは防水です。", "あれは赤い靴です。", "not_found"),
    ],
)
def test_typography_german_number_words_and_unspaced_scripts_are_read(claim: str, passage: str, verdict: str) -> None:
    (found,) = lexical.judged(case(claim, passage)).claims
    assert found.verdict == verdict


def test_what_follows_an_admission_is_a_claim() -> None:
    text = "I cannot find the price, but the Alpine boot weighs 900 g."
    assert [claim.text for claim in lexical.judged(case(text, BOOTS)).claims] == ["the Alpine boot weighs 900 g."]


def test_an_answer_that_takes_too_many_comparisons_is_not_judged() -> None:
    passage = " ".join(f"Boot {n} is waterproof." for n in range(3_000))
    for made in (case("The boot leaks much. " * 1_001, "It is."), case("The boot leaks much. " * 200, passage)):
        with pytest.raises(lexical.TooLongError):
            lexical.judged(made)
    event = answer("q", "The boot leaks much. " * 200, passages=(passage,))
    draw = Draw(sampled=True, base=True, base_probability=1.0, inclusion_probability=1.0)
    score = Score.model_validate_json(lexical_score(lexical.judge(), event, draw, {}, 200_000))
    assert (score.status, score.metrics) == (ScoreStatus.JUDGE_ERROR, {})
    assert score.detail.startswith("TooLong")
