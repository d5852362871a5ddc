"""What the scrubbing bench calls found, removed, right and false."""

import pytest

from tests.bench.pii.accuracy import Share, by_family, judge, wilson
from tests.bench.pii.measure import exponent
from tests.bench.pii.real import genuine

TEXT = "card 4111 1111 then"
LINE = {"text": TEXT, "spans": [["payment_card", 5, 14]]}


@pytest.mark.parametrize(
    ("spans", "found", "removed", "right"),
    [
        ([("payment_card", 5, 14)], 1, 1, {"payment_card": (1, 1)}),
        ([("payment_card", 5, 9)], 1, 0, {"payment_card": (1, 1)}),
        ([("payment_card", 5, 9), ("phone", 10, 14)], 1, 1, {"payment_card": (1, 1), "phone": (1, 1)}),
        ([("phone", 0, 19)], 0, 1, {"phone": (1, 1)}),
        ([("phone", 15, 19)], 0, 0, {"phone": (0, 1)}),
        ([], 0, 0, {}),
    ],
)
def test_a_value_is_found_by_name_and_overlap_and_removed_when_no_letter_or_digit_of_it_is_left(
    spans: list[tuple[str, int, int]], found: int, removed: int, right: dict[str, tuple[int, int]]
) -> None:
    accuracy = judge("assay", [LINE], {0: spans})
    assert accuracy.found == {"payment_card": Share(found, 1)}
    assert accuracy.removed == {"payment_card": Share(removed, 1)}
    assert accuracy.right == right


def test_a_peers_own_name_for_a_family_counts() -> None:
    assert judge("presidio_patterns", [LINE], {0: [("CREDIT_CARD", 5, 14)]}).found == {"payment_card": Share(1, 1)}
    assert judge("scrubadub", [LINE], {0: [("phone", 5, 14)]}).found == {"payment_card": Share(0, 1)}


def test_lines_that_a_slow_tool_did_not_read_do_not_count_against_it() -> None:
    assert judge("datafog", [LINE, LINE], {1: []}).found == {"payment_card": Share(0, 1)}


def test_varieties_of_a_family_are_taken_together() -> None:
    assert by_family({"phone/us": Share(9, 10), "phone/e164": Share(10, 10)}) == {"phone": Share(19, 20)}


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(0, 0, 0.0, 1.0), (300, 300, 0.9874, 1.0), (0, 300, 0.0, 0.0126), (81, 263, 0.2553, 0.3662)],
)
def test_intervals_are_wilsons(hits: int, n: int, low: float, high: float) -> None:
    assert wilson(hits, n) == pytest.approx((low, high), abs=5e-5)


def test_the_exponent_of_a_power_law_is_its_power() -> None:
    assert exponent([(size, 3e-9 * size**1.5) for size in (100, 200, 800)]) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("family", "text", "value", "expected"),
    [
        ("email", "author: ann@example.org", "ann@example.org", True),
        ("email", "rows@2.5", "rows@2.5", False),
        ("ip_address", "listen on 127.0.0.1:80", "127.0.0.1", True),
        ("ip_address", "version 1.2.3.4", "1.2.3.4", False),
        ("connection_url", "redis://u:p@h", "redis://u:p@h", True),
        ("payment_card", "id 4111111111111111", "4111111111111111", False),
    ],
)
def test_in_sources_only_what_is_what_it_seems_is_genuine(family: str, text: str, value: str, expected: bool) -> None:
    start = text.index(value)
    assert genuine(family, text, start, start + len(value)) is expected
