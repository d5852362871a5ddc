"""Which fields of which kind are scrubbed."""

from typing import Any

import pytest

from assay_scrubber.engine import Scrubber
from assay_scrubber.paths import PATHS, paths_of, scrub_paths
from assay_scrubber.policy import Policy

WHO = "ann@example.com"
GONE = "[REDACTED]"


@pytest.mark.parametrize(
    ("kind", "payload", "scrubbed"),
    [
        (
            "retrieval",
            {"tool_name": "query", "query": WHO, "params": {"a": {"b": WHO}, "n": 1}, "retrieved_slugs": [WHO]},
            {"tool_name": "query", "query": GONE, "params": {"a": {"b": GONE}, "n": 1}, "retrieved_slugs": [WHO]},
        ),
        (
            "retrieval",
            {"query": "", "retrieved_ids": [WHO], "passages": [{"id": WHO, "source_id": WHO, "text": WHO, "score": 0.5}, {"id": "2"}]},
            {"query": "", "retrieved_ids": [WHO], "passages": [{"id": WHO, "source_id": WHO, "text": GONE, "score": 0.5}, {"id": "2"}]},
        ),
        (
            "retrieval",
            {"passages": [{"text": {"deep": [WHO]}}, WHO, {"text": [[WHO]]}]},
            {"passages": [{"text": {"deep": [GONE]}}, GONE, {"text": [[GONE]]}]},
        ),
        ("retrieval", {"passages": {"text": WHO}}, {"passages": {"text": GONE}}),
        (
            "answer",
            {
                "query": WHO, "answer": WHO, "contexts": [{"id": WHO, "text": WHO}, {"id": "2", "text": ""}],
                "citations": [{"context_id": "1", "claim": WHO}, {"context_id": "2", "claim": None}], "model": WHO,
            },
            {
                "query": GONE, "answer": GONE, "contexts": [{"id": WHO, "text": GONE}, {"id": "2", "text": ""}],
                "citations": [{"context_id": "1", "claim": GONE}, {"context_id": "2", "claim": None}], "model": WHO,
            },
        ),
        ("feedback", {"verdict": "positive", "text": WHO, "user_hash": WHO}, {"verdict": "positive", "text": GONE, "user_hash": WHO}),
        ("feedback", {"verdict": "positive", "text": None}, {"verdict": "positive", "text": None}),
        ("tool_call", {"tool_name": "t", "args_summary": {"q": WHO}, "result_summary": {"r": [WHO]}, "message": None},
         {"tool_name": "t", "args_summary": {"q": GONE}, "result_summary": {"r": [GONE]}, "message": None}),
        ("server_event", {"message": WHO, "args_summary": {}}, {"message": GONE, "args_summary": {}}),
        (
            "session",
            {"session_id": "ses_5551234567", "created": "2024-01-15", "title": WHO,
             "request": {"contents": [{"role": "user", "parts": [{"text": WHO}]}]}, "metadata": {"total_turns": 5}},
            {"session_id": "ses_5551234567", "created": "2024-01-15", "title": GONE,
             "request": {"contents": [{"role": "user", "parts": [{"text": GONE}]}]}, "metadata": {"total_turns": 5}},
        ),
    ],
)  # fmt: skip
def test_outside_text_is_scrubbed_and_the_rest_stays(
    scrubber: Scrubber, kind: str, payload: dict[str, Any], scrubbed: dict[str, Any]
) -> None:
    before = repr(payload)
    result = scrub_paths(scrubber, kind, payload)
    assert result.value == scrubbed
    assert result.counts == ({"email": repr(scrubbed).count(GONE)} if GONE in repr(scrubbed) else {})
    assert repr(payload) == before


@pytest.fixture(scope="module")
def strict() -> Scrubber:
    return Scrubber(Policy(scrub_slugs=True))


def test_slugs_and_source_ids_are_scrubbed_when_the_policy_says_so_and_stay_distinct(strict: Scrubber) -> None:
    payload = {
        "retrieved_slugs": [WHO, "a", "bob@example.com", f"people/{WHO}"],
        "source_ids": ["a", "bob@example.com"],
    }
    before = repr(payload)
    result = scrub_paths(strict, "retrieval", payload)
    assert result.value == {
        "retrieved_slugs": [GONE, "a", f"{GONE} (2)", f"people/{GONE}"],
        "source_ids": ["a", f"{GONE} (2)"],
    }
    assert result.counts == {"email": 4}
    assert repr(payload) == before
    assert scrub_paths(strict, "retrieval", result.value).value == result.value


def test_a_passage_has_the_same_replacement_for_its_id_as_the_hit_it_belongs_to(strict: Scrubber) -> None:
    payload = {
        "retrieved_ids": ["bob@example.com", WHO],
        "passages": [{"id": WHO, "source_id": "bob@example.com", "text": ""}],
    }
    assert scrub_paths(strict, "retrieval", payload).value == {
        "retrieved_ids": [GONE, f"{GONE} (2)"],
        "passages": [{"id": f"{GONE} (2)", "source_id": GONE, "text": ""}],
    }


def test_citations_name_the_same_contexts_after_their_ids_were_scrubbed(strict: Scrubber) -> None:
    ids = [WHO, "a#1", "bob@example.com", "tel 555-123-4567", "card 4111 1111 1111 1111"]
    payload = {
        "contexts": [{"id": name, "source_id": WHO, "text": ""} for name in ids] + [{"id": "b", "source_id": None}],
        "citations": [{"context_id": name, "claim": None} for name in reversed(ids)],
    }
    scrubbed = scrub_paths(strict, "answer", payload).value
    after = [context["id"] for context in scrubbed["contexts"]]
    assert after == [GONE, "a#1", f"{GONE} (2)", f"tel {GONE}", f"card {GONE}", "b"]
    assert [citation["context_id"] for citation in scrubbed["citations"]] == after[-2::-1]
    assert [context["source_id"] for context in scrubbed["contexts"]] == [GONE] * len(ids) + [None]


def test_an_identifier_of_an_unexpected_shape_is_scrubbed_whole(strict: Scrubber) -> None:
    payload = {"contexts": [{"id": {"deep": [WHO]}}], "citations": {"context_id": WHO}}
    assert scrub_paths(strict, "answer", payload).value == {
        "contexts": [{"id": {"deep": [GONE]}}],
        "citations": {"context_id": GONE},
    }


def test_identifiers_pass_as_they_are_unless_the_policy_says_so(scrubber: Scrubber) -> None:
    payload = {
        "contexts": [{"id": WHO, "source_id": WHO, "text": WHO}],
        "citations": [{"context_id": WHO}],
        "model": WHO,
    }
    assert scrub_paths(scrubber, "answer", payload).value == payload | {
        "contexts": [{"id": WHO, "source_id": WHO, "text": GONE}]
    }


def test_a_field_of_an_unexpected_shape_is_scrubbed_whole(scrubber: Scrubber) -> None:
    payload = {"query": {"deep": [WHO]}, "contexts": {"text": WHO, "x": WHO}, "citations": [WHO]}
    assert scrub_paths(scrubber, "answer", payload).value == {
        "query": {"deep": [GONE]}, "contexts": {"text": GONE, "x": WHO}, "citations": [GONE],
    }  # fmt: skip


def test_the_key_of_a_field_announces_its_value(scrubber: Scrubber) -> None:
    result = scrub_paths(scrubber, "tool_call", {"args_summary": {"phone": 5551234567}})
    assert result.value == {"args_summary": {"phone": GONE}}


def test_given_paths_replace_those_of_the_kind(scrubber: Scrubber) -> None:
    result = scrub_paths(scrubber, "feedback", {"text": WHO, "other": {"a": WHO, "b": WHO}}, ["other.a"])
    assert result.value == {"text": WHO, "other": {"a": GONE, "b": WHO}}


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown kind 'retrival'; valid: " + ", ".join(sorted(PATHS))):
        paths_of("retrival")
