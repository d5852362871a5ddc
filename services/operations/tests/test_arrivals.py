"""Arrivals: the time of each step, what is only in the log yet, the producer's clock."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from assay_operations.arrivals import EVENTS_MAX, Arrival, arrival_of, clock_note, together

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def arrival(name: str, *, ago_s: float = 0.0, to_log_s: float = 0.02, stored: bool = True) -> Arrival:
    logged = NOW - timedelta(seconds=ago_s)
    happened, put = logged - timedelta(seconds=to_log_s), logged + timedelta(seconds=0.4)
    return Arrival("answer", name, "shop", "search", happened, logged, put if stored else None)


def test_each_step_has_its_time() -> None:
    found = arrival("a")
    assert (found.to_log_ms, found.to_store_ms) == (20.0, 400.0)
    assert arrival("a", stored=False).to_store_ms is None


def test_an_event_that_is_stored_is_shown_once_and_one_that_waits_as_not_stored() -> None:
    found = together((arrival("a", ago_s=2),), (arrival("b", stored=False), arrival("a", ago_s=2, stored=False)))
    assert [(each.event_id, each.stored_at is not None) for each in found] == [("b", False), ("a", True)]


def test_an_old_entry_of_the_log_beyond_the_list_is_not_called_unstored() -> None:
    stored = tuple(arrival(str(number), ago_s=number) for number in range(EVENTS_MAX))
    assert together(stored, (arrival("old", ago_s=900, stored=False),)) == list(stored)


@pytest.mark.parametrize(
    ("to_log_s", "words"),
    [
        (0.02, ""),
        (-0.5, ""),
        (-30.0, "The clock of search is 30 s ahead"),
        (400.0, "6.7 min after they happened"),
        (-3599.98, "is 1 h ahead"),
    ],
)
def test_a_clock_that_is_off_or_a_spool_is_named(to_log_s: float, words: str) -> None:
    note = clock_note([arrival(str(number), to_log_s=to_log_s) for number in range(3)])
    assert words in note
    assert bool(note) == bool(words)


def test_the_clock_of_one_service_among_many_fine_ones_is_named() -> None:
    fine = [arrival(str(number)) for number in range(19)]
    odd = replace(arrival("odd", to_log_s=-90_000.0), service="shop-clock")
    assert clock_note([*fine, odd]) == "The clock of shop-clock is 1 d ahead of Redis's: set it by NTP."


def test_only_some_services_are_named_and_the_others_counted() -> None:
    found = [replace(arrival(str(number), to_log_s=-60.0), service=f"s{number}") for number in range(5)]
    note = clock_note(found)
    assert [name for name in ("s0", "s2", "s3", "s4") if f" {name} " in note] == ["s0", "s2"]
    assert note.endswith("And 2 more services.")


def test_nothing_is_said_about_the_clock_without_events() -> None:
    assert clock_note([]) == ""


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b"\xff", b'{"kind": "answer"}', b'{"kind": 1, "event_id": 2, "project": 3, "service": 4, "occurred_at": 5}']
)  # fmt: skip
def test_an_entry_that_is_not_an_event_is_left_out(data: bytes) -> None:
    assert arrival_of(0, data) is None


def test_nothing_of_an_events_text_is_kept() -> None:
    event = {
        "kind": "answer", "event_id": "e", "project": "shop", "service": "search", "occurred_at": "2026-11-27T12:00:00Z",
        "query": "SECRET",
    }  # fmt: skip
    found = arrival_of(1_795_780_800_500, orjson.dumps(event))
    assert found is not None
    assert "SECRET" not in repr(found)
    assert found.to_log_ms == 500.0
