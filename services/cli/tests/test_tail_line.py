"""The line `assay tail` prints for an event."""

from typing import Any

import pytest

from assay_cli.commands.tail import nothing_yet, pretty

RETRIEVAL: dict[str, Any] = {
    "schema_version": 1, "id": 7, "kind": "retrieval", "project": "shop", "service": "search-api",
    "created_at": "2026-05-17T14:32:07.114523Z", "pii_families": {"email": 2, "phone": 1, "ssn": 0},
    "payload": {"tool_name": "query", "query": "where is [REDACTED]", "latency_ms": 12.34, "retrieved_chunk_ids": [1, 2]},
}  # fmt: skip

ANSWER = {"model": "m-1", "query": "why", "answer": "because", "contexts": [{}], "latency_ms": 900}


def test_a_retrieval_shows_time_place_operation_latency_hits_text_and_what_was_scrubbed() -> None:
    assert pretty(RETRIEVAL, 80) == (
        "14:32:07.114 retrieval shop/search-api  query           12 ms   2 hits  where is [REDACTED]  [email×2 phone×1]"
    )


@pytest.mark.parametrize(
    ("found", "hits"),
    [
        ({"retrieved_chunk_ids": [], "retrieved_ids": ["a", "b", "b"], "passages": []}, "3 hits"),
        ({"retrieved_chunk_ids": [], "retrieved_ids": [], "passages": [{"id": "a", "text": "t"}]}, "1 hit "),
        ({"retrieved_chunk_ids": [], "retrieved_ids": [], "passages": []}, "0 hits"),
    ],
)
def test_hits_are_counted_by_any_kind_of_id(found: dict[str, Any], hits: str) -> None:
    assert hits in pretty({**RETRIEVAL, "payload": {"tool_name": "query", "query": "why", **found}}, 80)


@pytest.mark.parametrize(
    ("event", "parts"),
    [
        ({"kind": "answer", "payload": ANSWER}, ["m-1", "900 ms", "1 hit ", "why"]),
        ({"kind": "feedback", "payload": {"verdict": "negative", "text": "wrong"}}, ["negative", "wrong"]),
        ({"kind": "feedback", "payload": {"verdict": "positive", "text": None, "target_event_id": "0196"}}, ["positive", "0196"]),
        ({}, ["--:--:--"]),
        ({"payload": None, "pii_families": None, "created_at": "2026-05-17T14:32:07+00:00"}, ["14:32:07.000"]),
    ],
)  # fmt: skip
def test_other_kinds_and_odd_entries_show_what_they_have(event: dict[str, Any], parts: list[str]) -> None:
    line = pretty(event, 80)
    assert all(part in line for part in parts), line


def test_long_text_is_cut_for_display() -> None:
    line = pretty({**RETRIEVAL, "payload": {"query": "x" * 500}}, 20)
    assert "x" * 19 + "…" in line
    assert "x" * 20 not in line


def test_captured_control_characters_cannot_reach_the_terminal() -> None:
    line = pretty({**RETRIEVAL, "service": "a\rb", "payload": {"query": "\x1b[2J\x07 clear\nnext\u2028line\u202e"}}, 80)
    assert line.isprintable()


def test_an_empty_window_is_told_with_what_to_do() -> None:
    assert nothing_yet("5m", follow=True) == "no events in the last 5m; waiting for new ones (older: --since 1h)"
    assert nothing_yet("5m", follow=False) == "no events in the last 5m (older: --since 1h)"
    assert nothing_yet("2h", follow=False) == "no events in the last 2h (older: --since 7d)"
