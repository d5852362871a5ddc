"""Families of a policy's own: what they find, what is refused, and that no pattern is slow."""

import pytest

from assay_scrubber.custom import PatternError, custom_family
from assay_scrubber.engine import Scrubber
from assay_scrubber.taxonomy import Category

STAFF = custom_family("staff_number", Category.ONLINE_IDENTIFIER, r"\bEMP-[0-9]{5}\b")


def test_a_custom_family_finds_its_pattern_beside_the_built_in_ones() -> None:
    result = Scrubber(custom=(STAFF,)).scrub("EMP-12345 is ann@example.com, EMP-123456 is nobody")
    assert result.text == "[REDACTED] is [REDACTED], EMP-123456 is nobody"
    assert [(f.family, f.category) for f in result.findings] == [
        ("staff_number", "online_identifier"),
        ("email", "contact"),
    ]


def test_of_a_pattern_with_a_group_only_the_group_goes() -> None:
    family = custom_family("ward", Category.HEALTH, r"ward ([A-Z][0-9]{2})")
    assert Scrubber(custom=(family,)).scrub("moved to ward B12 today").text == "moved to ward [REDACTED] today"


def test_a_custom_pattern_sees_through_full_width_and_zero_width_characters() -> None:
    assert Scrubber(custom=(STAFF,)).scrub("x ＥＭＰ－１２３４５, EM\u200bP-12345").text == "x [REDACTED], [REDACTED]"


@pytest.mark.parametrize(
    ("name", "pattern", "reason"),
    [
        ("Staff", "a", "lower-case letters"),
        ("staff", "é", "ASCII"),
        ("staff", "a" * 1001, "1000"),
        ("staff", "a*", "empty text"),
        ("staff", "(?=a)", "no look-around"),
        ("staff", "(a", "RE2"),
    ],
)
def test_an_unusable_pattern_is_refused_with_the_reason(name: str, pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        custom_family(name, Category.CONTACT, pattern)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("pattern", ["(a+)+b", "a.*b|a", "(a|a)*c|a"])
def test_no_pattern_is_slow(pattern: str) -> None:
    scrubber = Scrubber(custom=(custom_family("slow", Category.CONTACT, pattern),))
    assert scrubber.scrub("a" * 20_000).text.count("a") in (0, 20_000)


def test_matches_at_the_edge_of_a_window_are_found_whole() -> None:
    scrubber = Scrubber(custom=(STAFF,))
    for before in range(2030, 2060):
        assert scrubber.scrub("x" * before + " EMP-12345 " + "y" * 3000).text.count("[REDACTED]") == 1
