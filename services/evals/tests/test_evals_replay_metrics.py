"""Replay: how far an answer is from the captured one, and the summary over many."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_evals.dataset.captured_rows import Captured, CapturedError, captured, read_captured
from assay_evals.replay.replay_metrics import ReplaySummary, RowResult, compare_row, skip_reason
from assay_evals.target.response import TargetResponse


def record(**changes: Any) -> dict[str, Any]:
    plain = {
        "schema_version": 1,
        "id": 1,
        "tool_name": "query",
        "query": "who is alice",
        "retrieved_slugs": ["people/alice", "people/alice-bio"],
        "source_ids": [],
        "latency_ms": 10,
        "remote": False,
    }
    return {key: value for key, value in (plain | changes).items() if value is not ...}


def row(slugs: Sequence[str] = (), **changes: Any) -> Captured:
    return captured(1, record(retrieved_slugs=list(slugs), **changes))


def now(*slugs: str, ms: float = 10.0, sources: Sequence[str | None] = ()) -> TargetResponse:
    return TargetResponse(list(slugs), ms, sources)


@pytest.mark.parametrize(
    ("before", "after", "jaccard", "top1"),
    [
        (["a", "b"], ["a", "b"], 1.0, True),
        (["a", "b"], ["b", "a"], 1.0, False),
        (["a", "b"], ["a", "c"], 1 / 3, True),
        (["a", "b"], ["c", "d"], 0.0, False),
        (["a"], [], 0.0, False),
        ([], ["a"], 0.0, False),
        ([], [], 1.0, True),
        (["a", "b"], ["a", "b", "c", "d", "e"], 1.0, True),
        (["a", "b"], ["a", "a", "b"], 1.0, True),
    ],
)
def test_a_row_moved_as_far_as_its_documents_did(
    before: list[str], after: list[str], jaccard: float, top1: bool
) -> None:
    result = compare_row(row(before), now(*after))
    assert (result.jaccard, result.top1) == (pytest.approx(jaccard), top1)


def test_ndcg_falls_with_the_order_though_the_set_stays() -> None:
    assert compare_row(row(["a", "b", "c"]), now("a", "b", "c")).ndcg == pytest.approx(1.0)
    swapped = compare_row(row(["a", "b", "c"]), now("c", "b", "a"))
    assert swapped.jaccard == 1.0
    assert 0 < swapped.ndcg < 1


def test_a_smaller_k_compares_only_the_first() -> None:
    assert compare_row(row(["a", "b", "c"]), now("a", "x", "y"), k=1).jaccard == 1.0


def test_the_same_slug_of_another_source_is_another_document() -> None:
    of_one = row(["a"], source_ids=["host"])
    assert compare_row(of_one, now("a", sources=["host"])).jaccard == 1.0
    assert compare_row(of_one, now("a", sources=["team"])).jaccard == 0.0


def test_a_row_of_several_sources_is_compared_by_slug_and_counted() -> None:
    of_two = row(["a"], source_ids=["host", "team"])
    result = compare_row(of_two, now("a", sources=["team"]))
    summary = ReplaySummary()
    summary.add(result)
    assert (result.jaccard, summary.rows_source_ambiguous) == (1.0, 1)


def test_a_captured_latency_of_0_is_never_more_than_doubled() -> None:
    assert not compare_row(row(["a"], latency_ms=0), now("a", ms=5)).over_2x
    assert compare_row(row(["a"], latency_ms=2), now("a", ms=5)).over_2x
    assert not compare_row(row(["a"], latency_ms=2), now("a", ms=4)).over_2x


@pytest.mark.parametrize(("query", "reason"), [("", "empty query"), (" \t", "empty query"), ("x", None)])
def test_a_blank_query_cannot_be_asked(query: str, reason: str | None) -> None:
    assert skip_reason(row([], query=query)) == reason


def test_a_summary_counts_everything_and_averages_what_was_replayed() -> None:
    summary = ReplaySummary(top=1)
    summary.add(compare_row(row(["a", "b"], id=1), now("a", "b", ms=30)))
    summary.add(compare_row(row(["a", "b"], id=2), now("c", "d", ms=10)))
    summary.add(compare_row(row(["a", "b"], id=3), now("a", "c", ms=10)))
    summary.add(RowResult(row([], id=4), skip_reason="empty query"))
    summary.add(RowResult(row(["a"], id=5), error="TimeoutError"))
    found = summary.as_json()
    assert list(found)[:8] == [
        "rows_total",
        "rows_replayed",
        "rows_skipped",
        "rows_errored",
        "mean_jaccard",
        "top1_stability_rate",
        "mean_latency_delta_ms",
        "rows_over_2x_latency",
    ]
    assert (found["rows_total"], found["rows_replayed"], found["rows_skipped"], found["rows_errored"]) == (5, 3, 1, 1)
    assert found["mean_jaccard"] == pytest.approx((1 + 0 + 1 / 3) / 3)
    assert found["top1_stability_rate"] == pytest.approx(2 / 3)
    assert found["mean_latency_delta_ms"] == pytest.approx(20 / 3)
    assert found["latency_ratio"] == pytest.approx(50 / 30)
    assert found["rows_over_2x_latency"] == 1
    assert [result.row.id for result in summary.worst] == [2]
    assert [result.row.id for result in summary.errors] == [5]


def test_a_summary_of_nothing_is_zeros() -> None:
    assert ReplaySummary().as_json()["mean_jaccard"] == 0.0
    assert ReplaySummary().latency_ratio is None


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), max_size=40))
def test_the_worst_are_the_worst_in_order_of_the_file(jaccards: list[float]) -> None:
    summary = ReplaySummary(top=5)
    for number, jaccard in enumerate(jaccards):
        summary.add(RowResult(row([], id=number), jaccard=jaccard))
    expected = sorted((value, number) for number, value in enumerate(jaccards) if value < 1)[:5]
    assert [(result.jaccard, result.row.id) for result in summary.worst] == expected


def test_a_row_of_the_report_has_the_keys_of_version_1() -> None:
    shape = compare_row(row(["a"]), now("b")).as_json()
    assert {"id", "tool_name", "query", "jaccard", "top1Match", "captured_slugs", "current_slugs"} <= shape.keys()
    assert {"current_latency_ms", "latency_delta_ms"} <= shape.keys()
    errored = RowResult(row(["a"]), error="TimeoutError").as_json()
    assert (errored["errored"], errored["error_message"]) == (True, "TimeoutError")
    skipped = RowResult(row(["a"]), skip_reason="empty query").as_json()
    assert (skipped["skipped"], skipped["skip_reason"]) == (True, "empty query")


def test_hand_made_rows_are_read() -> None:
    least = {"schema_version": 1, "tool_name": "query", "query": "who is alice", "latency_ms": 0, "remote": False}
    lines = [
        json.dumps(least | {"id": 1, "retrieved_slugs": ["people/alice"], "expand_enabled": False, "detail": None}),
        "",
        json.dumps(least | {"id": 2, "tool_name": "search", "retrieved_slugs": ["deals/acme"]}),
    ]
    rows = list(read_captured(lines))
    assert [(each.line, each.id, each.slugs) for each in rows] == [(1, 1, ["people/alice"]), (3, 2, ["deals/acme"])]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{]", "line 2: not JSON"),
        ("[]", "line 2: not a JSON object"),
        (json.dumps(record(schema_version=...)), "schema_version is missing"),
        (json.dumps(record(schema_version=2)), "upgrade"),
        (json.dumps(record(schema_version=True)), "schema_version is not 1"),
        (json.dumps(record(tool_name="other")), "tool_name must be query or search"),
        (json.dumps(record(query=None)), "query must be a string"),
        (json.dumps(record(query=...)), "query is missing"),
        (json.dumps(record(retrieved_slugs="a")), "retrieved_slugs must be an array"),
        (json.dumps(record(retrieved_slugs=[1])), "retrieved_slugs must be an array"),
        (json.dumps(record(source_ids=[1])), "source_ids"),
        (json.dumps(record(latency_ms="1")), "latency_ms must be a number"),
        (json.dumps(record(latency_ms=-1)), "latency_ms"),
        (json.dumps(record(latency_ms=True)), "latency_ms"),
        (json.dumps(record(latency_ms=float("nan"))), "not JSON"),
        (json.dumps(record(id=[])), "id must be"),
        (json.dumps({"schema_version": 1, "answer": "x"}), "an answer, not a retrieval"),
        (json.dumps(record(query="\ud800")), "line 2: not text"),
    ],
)
def test_a_line_that_is_no_row_is_named_and_not_quoted(line: str, words: str) -> None:
    with pytest.raises(CapturedError, match=words) as caught:
        list(read_captured([json.dumps(record()), line]))
    assert "alice" not in str(caught.value)


def test_no_rows_are_an_error() -> None:
    with pytest.raises(CapturedError, match="no rows"):
        list(read_captured(["", '{"_kind": "baseline_metadata"}']))


def test_a_slug_that_holds_the_separator_of_sources_is_a_slug() -> None:
    captured_row = row(["std::map"], source_ids=["cpp"])
    assert compare_row(captured_row, TargetResponse(["std::map"], 1.0, sources=["cpp"])).jaccard == 1.0
    assert compare_row(captured_row, TargetResponse(["map"], 1.0, sources=["cpp::std"])).jaccard == 0.0
    assert compare_row(captured_row, TargetResponse(["std::map"], 1.0)).jaccard == 1.0
