"""Known-right questions: both ways to write them, what is refused, and the floors."""

import json
from typing import Any

import pytest

from assay_evals.dataset.qrels import QrelsError, read_qrels
from assay_evals.replay.correctness import Correctness, Floors
from assay_evals.replay.gates import correctness_gate
from assay_evals.target.response import TargetResponse


def qrels(*entries: Any, **changes: Any) -> str:
    return json.dumps({"schema_version": 1, "queries": list(entries)} | changes)


SHORT = {
    "query_id": "q1",
    "query": "fintech founder",
    "relevant_slugs": ["people/alice"],
    "first_relevant_slug": "people/alice",
}
LONG = {
    "query_id": "q2",
    "query": "anything",
    "relevant": [{"source_id": "host", "slug": "people/alice"}, {"source_id": "team-a", "slug": "people/alice"}],
    "expected_top1": {"source_id": "host", "slug": "people/alice"},
}


def test_both_ways_of_writing_an_entry_are_read() -> None:
    short, long = read_qrels(qrels(SHORT, LONG))
    assert (short.relevant, short.expected_top1) == ([("default", "people/alice")], ("default", "people/alice"))
    assert (long.relevant, long.expected_top1) == (
        [("host", "people/alice"), ("team-a", "people/alice")],
        ("host", "people/alice"),
    )


def test_an_entry_without_an_id_is_named_by_its_place() -> None:
    assert read_qrels(qrels({"query": "q", "relevant_slugs": ["a"]}))[0].query_id == "entry-1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"schema_version": 1, "queries": [{"query_id": "\\ud800"}]}', "lone surrogate"),
        ("[]", "not a JSON object"),
        (qrels(SHORT, schema_version=2), "schema_version must be 1"),
        (qrels(), "at least one entry"),
        (qrels(3), "entry 1: not an object"),
        (qrels(SHORT, SHORT), "the same query_id"),
        (qrels({**SHORT, "query": " "}), "not blank"),
        (qrels({**SHORT, "query_id": 3}), "query_id must be a string"),
        (qrels({**SHORT, "relevant_slugs": []}), "relevant_slugs"),
        (qrels({"query": "q"}), "relevant_slugs"),
        (qrels({**LONG, "relevant": []}), "relevant must be"),
        (qrels({**LONG, "relevant": [{"slug": "a"}]}), "sources are never guessed"),
        (qrels({**LONG, "expected_top1": {"slug": "a"}}), "expected_top1 needs"),
        (qrels({**SHORT, "first_relevant_slug": 3}), "first_relevant_slug"),
    ],
)
def test_what_is_no_file_of_known_right_questions_is_refused(text: str, words: str) -> None:
    with pytest.raises(QrelsError, match=words):
        read_qrels(text)


def judged(entry: dict[str, Any], *slugs: str, sources: tuple[str | None, ...] = (), k: int = 10) -> Correctness:
    total = Correctness(k=k)
    total.add(read_qrels(qrels(entry))[0], TargetResponse(list(slugs), 1.0, sources))
    return total


def test_a_hit_of_the_wrong_source_is_no_hit() -> None:
    right = judged(LONG, "people/alice", sources=("host",)).as_json()
    assert (right["mean_recall_at_k"], right["first_relevant_hit_rate"], right["expected_top1_hit_rate"]) == (0.5, 1, 1)
    wrong = judged(LONG, "people/alice", sources=("other",)).as_json()
    assert (wrong["mean_recall_at_k"], wrong["first_relevant_hit_rate"], wrong["expected_top1_hit_rate"]) == (0, 0, 0)


def test_several_hits_of_one_document_are_one() -> None:
    assert judged(SHORT, "people/alice", "people/alice").as_json()["mean_recall_at_k"] == 1.0


def test_what_stands_behind_k_is_not_seen() -> None:
    assert judged(SHORT, "x", "people/alice", k=1).as_json()["mean_recall_at_k"] == 0.0


def gated(total: Correctness, floors: Floors | None = None) -> dict[str, Any]:
    return correctness_gate(total, floors or Floors(), path="qrels.json")


def asked(times: int, entry: dict[str, Any], *slugs: str) -> Correctness:
    (known,) = read_qrels(qrels(entry))
    total = Correctness()
    for _ in range(times):
        total.add(known, TargetResponse(list(slugs), 1.0))
    return total


def test_means_below_their_floors_are_breaches_once_there_are_questions_enough() -> None:
    found = gated(asked(20, SHORT, "x"))["breaches"]
    assert [(each["metric"], each["observed"], each["threshold"]) for each in found] == [
        ("mean_recall_at_k", 0.0, 0.70),
        ("first_relevant_hit_rate", 0.0, 0.60),
        ("expected_top1_hit_rate", 0.0, 0.50),
    ]
    for slug in ("x", "people/alice"):
        few = gated(asked(1, SHORT, slug))
        assert (few["breaches"], len(few["undecided"])) == ([], 3), "one question, right or wrong, says little"
    well = gated(asked(20, SHORT, "people/alice"))
    assert (well["breaches"], well["undecided"]) == ([], [])


def test_an_expected_first_that_no_entry_names_is_not_enforced() -> None:
    entry = {"query": "q", "relevant_slugs": ["a"]}
    found = gated(asked(20, entry, "a"), Floors(expected_top1=1.0))
    assert (found["breaches"], found["undecided"]) == ([], [])


def test_one_errored_question_is_a_breach() -> None:
    total = judged(SHORT, "people/alice")
    total.fail(read_qrels(qrels(LONG))[0], "TimeoutError")
    (breach,) = gated(total)["breaches"]
    assert (breach["metric"], breach["observed"], breach["error_tail"]) == ("queries_errored", 1, "q2: TimeoutError")
    assert total.as_json()["mean_recall_at_k"] == 1.0


@pytest.mark.parametrize("bad", [float("nan"), -0.1, 1.5, True])
def test_a_floor_that_is_no_share_is_refused(bad: float) -> None:
    with pytest.raises(QrelsError, match="floor"):
        Floors(recall=bad)


def test_slugs_and_sources_that_hold_the_separator_are_told_apart() -> None:
    (known,) = read_qrels(qrels({"query": "q", "relevant": [{"source_id": "a", "slug": "b::c"}]}))
    for source, slug, expected in (("a", "b::c", 1.0), ("a::b", "c", 0.0), (None, "a::b::c", 0.0)):
        total = Correctness()
        total.add(known, TargetResponse([slug], 1.0, sources=[source]))
        assert total.as_json()["mean_recall_at_k"] == expected


def test_a_miss_says_what_was_missing_what_came_first_and_under_which_source_it_came() -> None:
    (from_kb,) = judged(SHORT, "people/alice", sources=("kb",)).worst()
    assert from_kb.as_json() == {
        "query_id": "q1",
        "recall_at_k": 0.0,
        "missing": ["default::people/alice"],
        "missing_total": 1,
        "first": "kb::people/alice",
        "first_is_relevant": False,
        "expected_top1": "default::people/alice",
        "hint": "people/alice was returned with source kb, but is expected without one: name it in the file as {source_id, slug}",
    }
    (bare,) = judged(LONG, "people/alice").worst()
    assert bare.hint == "people/alice was returned without a source, but is expected with source host"
    (joined,) = judged(LONG, "host::people/alice").worst()
    assert (
        joined.hint
        == "host::people/alice was returned as one name: let the target return source_id and slug separately"
    )
    (absent,) = judged(SHORT, "x").worst()
    assert (absent.first, absent.hint) == (("default", "x"), None)
    assert judged(SHORT, "people/alice").worst() == []


@pytest.mark.parametrize(
    "text",
    [
        '{"record": "dataset", "version": "3"}\n{"id": "a", "query": "q", "expected_ids": ["x"]}\n',
        '{"id": "a", "query": "q", "expected_ids": ["x"]}\n{"id": "b", "query": "q"}\n',
        '{"version": "1.0.0", "cases": [{"id": "a", "query": "q"}]}',
    ],
)
def test_a_golden_dataset_is_named_with_the_commands_that_take_it(text: str) -> None:
    with pytest.raises(QrelsError, match=r"golden dataset.*assay eval run.*assay eval compare"):
        read_qrels(text)
