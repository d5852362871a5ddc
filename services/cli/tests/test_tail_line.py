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


CALL: dict[str, Any] = {
    "kind": "tool_call", "project": "shop", "service": "mcp", "created_at": "2026-05-17T14:32:07.114Z",
    "payload": {
        "kind": "tool_call", "tool_name": "search", "status": "success", "error_kind": None, "duration_ms": 181.4,
        "args_summary": {"query": "gzip"}, "result_summary": {"pages": 5},
    },
}  # fmt: skip


def test_a_tool_call_shows_its_status_duration_arguments_and_result() -> None:
    assert pretty(CALL, 80) == (
        '14:32:07.114 tool_call shop/mcp  search         181 ms  success  query="gzip" → pages=5'
    )


@pytest.mark.parametrize(("status", "kind"), [("refused", "pii_blocked"), ("error", "timeout")])
def test_a_tool_call_that_was_refused_or_failed_shows_it_in_capitals_with_the_kind(status: str, kind: str) -> None:
    failed = CALL | {"payload": CALL["payload"] | {"status": status, "error_kind": kind}}
    line = pretty(failed, 80)
    assert line.endswith(f'181 ms {status.upper():>8}  {kind} query="gzip"'), line


@pytest.mark.parametrize(
    ("kind", "payload", "parts"),
    [
        ("server_event", {"event_subtype": "server_stop", "message": "it stopped"}, ["server_stop", "it stopped"]),
        ("session", {"model": "m-1", "status": "answered", "title": "Why?", "part": 1, "parts": 1}, ["m-1", "answered  Why?"]),
        ("session", {"status": "aborted", "title": "Why?", "part": 2, "parts": 3}, ["ABORTED  part 2 of 3 Why?"]),
        ("tool_call", {"tool_name": "ls", "status": "partial", "duration_ms": None, "args_summary": None}, ["ls", " partial"]),
    ],
)  # fmt: skip
def test_events_of_servers_and_sessions_show_what_happened(
    kind: str, payload: dict[str, Any], parts: list[str]
) -> None:
    line = pretty({"kind": kind, "payload": payload}, 80)
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
