"""What people type for a moment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_operations.errors import OperationError
from assay_operations.time_bounds import Bound, bound, cursor, duration_ms, moment_ms
from assay_schema.ids import EPOCH_MS, first_row_at, row_id, row_ms

NOW = 1_790_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0d", 0),
        ("1ms", 1),
        ("90s", 90_000),
        ("15m", 900_000),
        ("12h", 43_200_000),
        ("7d", 604_800_000),
        ("007d", 604_800_000),
    ],
)
def test_a_duration_is_an_integer_and_a_unit(text: str, expected: int) -> None:
    assert duration_ms(text, "--since") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "d",
        "7 d",
        " 7d",
        "7d ",
        "-7d",
        "+7d",
        "1.5h",
        "7D",
        "7w",
        "7days",
        "1h30m",
        "٧d",
        "7d\n",
        "1e3s",
        "9" * 16 + "d",
    ],
)
def test_anything_else_is_refused_and_the_message_names_the_option(text: str) -> None:
    with pytest.raises(OperationError, match=r"--older-than: .* is not a duration"):
        duration_ms(text, "--older-than")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T12:00:00Z", 1_769_860_800_000),
        ("2026-01-31T12:00:00", 1_769_860_800_000),
        ("2026-01-31 12:00:00", 1_769_860_800_000),
        ("2026-01-31T13:00:00+01:00", 1_769_860_800_000),
        ("2026-01-31T07:00:00-05:00", 1_769_860_800_000),
        ("2026-01-31", 1_769_817_600_000),
        ("2026-01-31T12:00:00.123Z", 1_769_860_800_123),
        ("2026-01-31T12:00:00.123999Z", 1_769_860_800_123),
        ("1h", NOW - 3_600_000),
        ("0ms", NOW),
        ("999999999d", 0),
    ],
)
def test_a_moment_is_a_duration_ago_or_an_iso_time_in_utc_unless_it_names_a_zone(text: str, expected: int) -> None:
    assert moment_ms(text, NOW, "--since") == expected


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-13-01", "2026-01-31T25:00:00Z", "7w", "12:00", "-1", "1.5", "2026-01-31T12:00:00 CET"],
)
def test_a_time_nobody_can_read_is_refused(text: str) -> None:
    with pytest.raises(OperationError, match="--until"):
        bound(text, NOW, "--until")


def test_digits_alone_are_a_cursor() -> None:
    assert bound("1234567890123", NOW, "--since") == Bound(1234567890123, is_cursor=True)
    assert bound("0", NOW, "--since") == Bound(0, is_cursor=True)


@pytest.mark.parametrize("text", ["7", "30", "2026", str(row_id(f"{EPOCH_MS + 86_399_999}-4095"))])
def test_a_number_too_small_for_a_cursor_is_a_duration_without_its_unit(text: str) -> None:
    with pytest.raises(OperationError, match=rf"--since: {text} is neither a duration \({text}d\?\) nor a cursor"):
        bound(text, NOW, "--since")


def test_the_first_row_of_the_second_day_is_a_cursor() -> None:
    place = first_row_at(EPOCH_MS + 86_400_000)
    assert bound(str(place), NOW, "--since") == Bound(place, is_cursor=True)


@pytest.mark.parametrize("text", ["9007199254740992", "1" * 30, "12x", "", "1 2", "-1", "1\n"])
def test_a_number_that_no_export_printed_is_refused(text: str) -> None:
    with pytest.raises(OperationError, match=r"cursor\.txt: .* is not a cursor"):
        cursor(text, "cursor.txt")


@given(ms=st.integers(EPOCH_MS + 10, EPOCH_MS + 2**39), sequence=st.integers(0, 4095), offset=st.integers(-5, 5))
def test_a_time_splits_the_log_between_its_millisecond_and_the_next(ms: int, sequence: int, offset: int) -> None:
    row = row_id(f"{ms}-{sequence}")
    assert row is not None
    edge = Bound(max(0, first_row_at(ms + offset + 1) - 1), is_cursor=False)
    assert (row <= edge.place) == (row_ms(row) <= ms + offset)


def test_a_time_before_the_first_possible_row_is_before_every_row() -> None:
    assert bound("1999-01-01", NOW, "--since").place == 0
    assert bound("99999d", NOW, "--since").place == 0
