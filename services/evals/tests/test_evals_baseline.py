"""Baselines: the same rows give the same bytes, and no field that a gate reads can be changed unseen."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from assay_evals.dataset.captured_rows import Captured, captured
from assay_evals.replay.baseline import (
    BaselineError,
    Heading,
    Thresholds,
    deduplicate,
    publish,
    query_hash,
    read_baseline,
    read_heading,
)


def rows(*queries: str) -> list[Captured]:
    return [
        captured(
            number,
            {
                "schema_version": 1,
                "id": number,
                "tool_name": "query",
                "query": query,
                "retrieved_slugs": ["a", "b"],
                "source_ids": ["host"],
                "latency_ms": 10 * number,
                "detail": "low",
            },
        )
        for number, query in enumerate(queries, start=1)
    ]


def published(*queries: str, **changes: Any) -> list[str]:
    options = {"label": "main", "published_at": "2026-11-22T00:00:00Z", "thresholds": Thresholds()} | changes
    return list(publish(rows(*(queries or ("who is alice", "acme deal"))), **options))


def test_a_hash_is_that_of_the_normalised_query() -> None:
    assert query_hash("hello world") == "b94d27b9934d3e08"
    assert query_hash("  Hello \n WORLD ") == "b94d27b9934d3e08"


def test_what_is_published_reads_back() -> None:
    baseline = read_baseline(published())
    assert (baseline.label, len(baseline.rows)) == ("main", 2)
    assert baseline.thresholds == Thresholds(0.85, 0.80, 2.0)
    assert baseline.baseline_mean_latency_ms == 15
    assert baseline.rows[0].record["detail"] == "low"


def test_the_order_of_the_rows_does_not_matter_to_the_bytes() -> None:
    one = list(publish(rows("a", "b", "c"), label="x", published_at="t", thresholds=Thresholds()))
    other = list(publish(reversed(rows("a", "b", "c")), label="x", published_at="t", thresholds=Thresholds()))
    assert one == other


def test_the_first_line_has_the_keys_of_version_1() -> None:
    metadata = json.loads(published()[0])
    assert list(metadata)[:8] == [
        "schema_version",
        "_kind",
        "label",
        "published_at",
        "source_hash",
        "thresholds",
        "row_count",
        "baseline_mean_latency_ms",
    ]
    assert '"baseline_mean_latency_ms": 15,' in published()[0], "whole numbers have no .0"


def _metadata(**changes: Any) -> Callable[[list[str]], list[str]]:
    return lambda lines: [json.dumps(json.loads(lines[0]) | changes), *lines[1:]]


def _row(**changes: Any) -> Callable[[list[str]], list[str]]:
    return lambda lines: [lines[0], json.dumps(json.loads(lines[1]) | changes), *lines[2:]]


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (_metadata(thresholds={"jaccard": 0.1, "top1": 0.8, "latency_multiplier": 2}), "changed after"),
        (_metadata(baseline_mean_latency_ms=1000), "changed after"),
        (_metadata(label="other"), "changed after"),
        (_metadata(published_at="later"), "changed after"),
        (_metadata(content_hash="0" * 64), "changed after"),
        (_row(retrieved_slugs=["z"]), "changed after"),
        (_row(latency_ms=1), "changed after"),
        (_row(source_ids=["other"]), "changed after"),
        (_row(detail="high"), "changed after"),
        (_row(tool_name="search"), "changed after"),
        (_row(query="another"), "query_hash is not that of its query"),
        (lambda lines: lines[:-1], "says 2 rows and has 1"),
        (lambda lines: [*lines, lines[-1]], "says 2 rows and has 3"),
        (lambda lines: [lines[0], lines[2], lines[1]], "changed after"),
    ],
)
def test_no_field_can_be_changed_unseen(tamper: Callable[[list[str]], list[str]], words: str) -> None:
    with pytest.raises(BaselineError, match=words):
        read_baseline(tamper(published()))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda _: [], "empty"),
        (lambda _: ["{]"], "line 1: not JSON"),
        (lambda lines: lines[1:], "not a baseline's first line"),
        (_metadata(schema_version=2), "upgrade"),
        (_metadata(row_count="2"), "row_count is missing or of the wrong type"),
        (_metadata(thresholds={}), "thresholds must hold"),
        (_metadata(thresholds={"jaccard": "0.8", "top1": 0.8, "latency_multiplier": 2}), "must be a number"),
        (_metadata(baseline_mean_latency_ms=None), "not a number"),
        (_row(retrieved_slugs=None), "line 2: retrieved_slugs"),
        (lambda lines: [*lines[:2], lines[2].replace('"source_ids": ["host"], ', "")], "line 3: source_ids is missing"),
        (_row(query_hash="0"), "line 2: query_hash"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused_by_line(spoil: Callable[[list[str]], list[str]], words: str) -> None:
    with pytest.raises(BaselineError, match=words):
        read_baseline(spoil(published()))


def test_the_same_question_twice_is_refused_with_its_lines() -> None:
    with pytest.raises(BaselineError, match="lines 1, 3"):
        published("Who is alice", "x", "who  is ALICE")
    assert len(list(deduplicate(rows("Who is alice", "x", "who  is ALICE")))) == 2


def test_nothing_is_no_baseline() -> None:
    with pytest.raises(BaselineError, match="no rows"):
        list(publish([], label="x", published_at="t", thresholds=Thresholds()))


@pytest.mark.parametrize(
    "bad",
    [
        {"jaccard": float("nan")},
        {"jaccard": 1.1},
        {"top1": -0.1},
        {"top1": True},
        {"latency_multiplier": 0},
        {"latency_multiplier": float("inf")},
    ],
)
def test_a_threshold_that_is_no_number_in_its_range_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(BaselineError, match="threshold"):
        Thresholds(**bad)


def by_gbrain(*queries: str) -> list[str]:
    """A baseline as gbrain publishes it: its hash covers the queries only."""
    thresholds = {"jaccard": 0.9, "top1": 0.7, "latency_multiplier": 3}
    first, *rest = published(*queries, label="personal", thresholds=Thresholds(**thresholds))
    metadata = json.loads(first)
    del metadata["content_hash"]
    return [json.dumps(metadata), *rest]


def test_a_baseline_by_gbrain_is_published_again_with_its_label_and_thresholds() -> None:
    lines = by_gbrain("who is alice", "acme deal")
    with pytest.raises(BaselineError, match=r"line 1: content_hash is missing.*assay bench publish --from"):
        read_baseline(lines)
    assert read_heading(lines) == Heading("personal", Thresholds(0.9, 0.7, 3))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: lines[:-1],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [lines[0], lines[1], lines[1]],
        _row(query_hash="0" * 16),
        _metadata(source_hash="0" * 64),
    ],
)
def test_a_baseline_by_gbrain_that_was_cut_is_refused(spoil: Callable[[list[str]], list[str]]) -> None:
    with pytest.raises(BaselineError, match="cut or changed"):
        read_heading(spoil(by_gbrain("who is alice", "acme deal")))


@pytest.mark.parametrize("thresholds", [{"jaccard": 2}, {"jaccard": 0.9, "top1": 0.7, "latency_multiplier": 0}, None])
def test_a_heading_with_unusable_thresholds_is_refused(thresholds: Any) -> None:
    with pytest.raises(BaselineError, match="threshold"):
        read_heading(_metadata(thresholds=thresholds)(by_gbrain("who is alice")))


@pytest.mark.parametrize("lines", [[], ["", " "], ["{]"], published()[1:]])
def test_captured_rows_have_no_heading(lines: list[str]) -> None:
    assert read_heading(lines) is None
