"""Mining: which questions become cases, what they expect, and with which probability they were chosen."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from assay_evals.dataset.captured_rows import CapturedError
from assay_evals.dataset.file_format import read_dataset, write_dataset
from assay_evals.dataset.mining import Miner
from assay_evals.dataset.model import Case, Dataset


def embed(texts: Sequence[str]) -> "np.ndarray[Any, np.dtype[Any]]":
    """A question's topic is its first word: questions of one topic are alike."""
    words = [text.split()[0].lower() for text in texts]
    rows = np.stack([np.random.default_rng(list(word.encode())).standard_normal(8) for word in words])
    unit: np.ndarray[Any, np.dtype[Any]] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def retrieval(query: str, *slugs: str, event: str = "", project: str = "p") -> dict[str, Any]:
    return {"event_id": event or query, "project": project, "query": query, "retrieved_slugs": list(slugs)}


def verdict(target: str, what: str, number: int = 0) -> dict[str, Any]:
    return {"event_id": f"f{number}{target}", "target_event_id": target, "verdict": what}


def mine(rows: list[dict[str, Any]], limit: int = 50, **options: Any) -> dict[str, Case]:
    miner = Miner()
    for row in rows:
        miner.add(row)
    return {case.query: case for case in miner.cases(limit, embed, **options).cases}


def test_a_question_that_was_asked_often_is_one_case_with_what_was_retrieved() -> None:
    cases = mine([retrieval("rotate the key", "a", "b", "c", "d"), retrieval("  Rotate   THE key", "a", event="2")])
    (case,) = cases.values()
    assert case.expected_ids == ["a", "b", "c"]
    assert case.source == "production"
    assert "Unreviewed" in (case.notes or "")
    assert "2 time(s)" in (case.notes or "")


def test_scrubbed_questions_are_left_out_and_counted_unless_they_are_asked_for() -> None:
    rows = [
        retrieval("plain words", "a"),
        retrieval("mail of [REDACTED]", "a"),
        retrieval("mail of  [redacted]".replace("[redacted]", "[REDACTED]"), "a", event="again"),
        retrieval("card of [CARD]", event="c") | {"pii_families": {"payment_card": 1}},
        {"event_id": "e", "project": "p", "query": "an answer that names a person", "pii_families": {"email": 1}},
        verdict("e", "negative"),
        verdict("mail of [REDACTED]", "negative"),
    ]
    for include, queries, left_out in (
        (False, {"plain words", "an answer that names a person"}, 2),
        (True, {"plain words", "an answer that names a person", "mail of [REDACTED]", "card of [CARD]"}, 0),
    ):
        miner = Miner(include_scrubbed=include)
        for row in rows:
            miner.add(row)
        mined = miner.cases(50, embed)
        assert {case.query for case in mined.cases} == queries
        assert mined.scrubbed == left_out
        told = " ".join(mined.in_words("hashed words"))
        assert ("2 questions left out, since personal data was removed" in told) is not include


def test_what_a_content_person_saw_cited_is_expected_rather_than_what_was_retrieved() -> None:
    answer = {
        "event_id": "e", "project": "p", "query": "rotate the key",
        "citations": [{"context_id": "good", "claim": None}], "contexts": [{"id": "good"}, {"id": "other"}],
    }  # fmt: skip
    (case,) = mine([retrieval("rotate the key", "a"), answer, verdict("e", "positive")]).values()
    assert case.expected_ids == ["good"]


def test_judged_questions_come_first_and_the_bad_ones_before_all() -> None:
    rows = [retrieval(f"topic{number} x", "a") for number in range(20)]
    rows += [verdict("topic7 x", "positive"), verdict("topic3 x", "negative"), verdict("topic3 x", "negative", 1)]
    assert list(mine(rows, 2)) == ["topic3 x", "topic7 x"]
    assert list(mine(rows, negative_only=True)) == ["topic3 x"]
    assert "correct them" in (mine(rows)["topic3 x"].notes or "")


def test_a_verdict_that_comes_before_what_it_judges_counts_and_a_repeated_one_counts_once() -> None:
    rows = [verdict("a b", "negative"), verdict("a b", "negative"), retrieval("a b", "x")]
    (case,) = mine(rows).values()
    assert "1 negative" in (case.notes or "")


def test_the_rest_is_drawn_with_a_known_probability_that_weights_undo() -> None:
    rows = [retrieval(f"topic{number} x", "a") for number in range(100)] + [verdict("topic0 x", "negative")]
    cases = mine(rows, 34)
    assert cases["topic0 x"].inclusion_probability == 1
    others = [case for query, case in cases.items() if query != "topic0 x"]
    assert [case.inclusion_probability for case in others] == [pytest.approx(33 / 99)] * 33
    assert sum(1 / case.inclusion_probability for case in cases.values()) == pytest.approx(100)
    assert cases == mine(list(reversed(rows)), 34), "the draw does not depend on the order of the rows"


def test_questions_that_are_alike_are_one_case_within_a_project() -> None:
    rows = [retrieval("keys one", "a"), retrieval("keys two", "b"), retrieval("keys three", "c", project="q")]
    assert len(mine(rows)) == 2
    assert len(mine([retrieval(f"keys {number}", "a") for number in range(1_200)])) == 1


def test_what_a_dataset_holds_or_something_alike_is_left_out() -> None:
    known = Dataset(
        cases=[Case(id="1", query="KEYS  one", expected_ids=["a"]), Case(id="2", query="disks", expected_ids=["a"])]
    )
    rows = [retrieval("keys one", "a"), retrieval("disks are full", "b"), retrieval("users", "c")]
    assert list(mine(rows, known=known)) == ["users"]


def test_a_question_without_results_becomes_a_null_case_to_look_at() -> None:
    (case,) = mine([retrieval("nothing here")]).values()
    assert (case.query_type, case.expected_ids) == ("null", [])


def test_mined_cases_are_a_dataset_that_reads_back() -> None:
    cases = mine([retrieval("keys", "a"), retrieval("disks", "b"), retrieval("users", "c")], 2)
    dataset = Dataset(name="mined", cases=list(cases.values()))
    assert read_dataset("\n".join(write_dataset(dataset))) == dataset


def test_what_was_answered_and_what_people_said_is_never_in_a_case() -> None:
    secret = "secret words"
    answer = {"event_id": "e", "project": "p", "query": "keys", "answer": secret, "citations": [{"context_id": "c", "claim": secret}],
              "contexts": [{"id": "c", "text": secret}]}  # fmt: skip
    rows = [answer, verdict("e", "positive") | {"text": secret}]
    (case,) = mine(rows).values()
    assert secret not in case.model_dump_json()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"verdict": "positive"}, "feedback needs"),
        ({"verdict": "splendid", "event_id": "1", "target_event_id": "2"}, "feedback needs"),
        ({"query": "a secret", "retrieved_slugs": 5}, "retrieved_slugs must be an array of ids"),
        ({"query": "a secret", "retrieved_slugs": [{"a": 1}]}, "retrieved_slugs must be an array of ids"),
        ({"query": "a secret", "retrieved_slugs": [""]}, "retrieved_slugs must be an array of ids"),
        ({"query": "a secret", "citations": [{}]}, "citations must be an array of objects with context_id"),
        ({"query": "a secret", "contexts": [7]}, "contexts must be an array of objects with id"),
    ],
)
def test_a_row_that_lacks_what_it_should_have_is_refused_without_its_words(row: dict[str, Any], words: str) -> None:
    with pytest.raises(CapturedError, match=words) as found:
        Miner().add(row)
    assert "secret" not in str(found.value)


def test_what_is_too_long_for_a_case_is_passed_over() -> None:
    rows = [retrieval("keys " * 20_000, "a"), retrieval("disks", "b" * 2_000, "c"), retrieval("users", "d" * 1_024)]
    assert {query: case.expected_ids for query, case in mine(rows).items()} == {"disks": ["c"], "users": ["d" * 1_024]}
