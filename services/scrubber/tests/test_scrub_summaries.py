"""The four rules for the summaries of tool calls."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_scrubber.summaries import CONNECTION_URL, EMAIL, VALUE, summarise

KEPT = object()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("customer churn", KEPT),
        ("", KEPT),
        # Rule 1: bytes of UTF-8, not characters.
        ("x" * 2048, KEPT),
        ("x" * 2049, "<truncated:2049 bytes>"),
        ("é" * 1024, KEPT),
        ("é" * 1025, "<truncated:2050 bytes>"),
        ("\ud800" * 683, "<truncated:2049 bytes>"),
        ("ada@example.com " * 200, "<truncated:3200 bytes>"),
        # Rule 2: anywhere in the text, in any case.
        ("postgresql://localhost/db", CONNECTION_URL),
        ("mysql+pymysql://u:p@h/db", CONNECTION_URL),
        ("SQLite:///x.db", CONNECTION_URL),
        ("connect to POSTGRES://u:p@db.example.com:5432/x please", CONNECTION_URL),
        ("redis://:hunter2@cache", CONNECTION_URL),
        ("rediss://cache:6380", CONNECTION_URL),
        ("mongodb+srv://u:p@h", CONNECTION_URL),
        ("https://ada:hunter2@example.com/x", CONNECTION_URL),
        ("jdbc:somedb://host/db?user=a&password=b", CONNECTION_URL),
        ("see https://example.com/path?q=1", KEPT),
        ("http://localhost:8000/mail/@ada", KEPT),
        ("postgres:// is a scheme", KEPT),
        # Rule 4.
        ("ada@example.com", EMAIL),
        ("a@b.c", EMAIL),
        ("write to ada@example.com today", EMAIL),
        ("josé@exämple.com", EMAIL),
        ("npm install react@18.2.0", KEPT),
        ("@decorated", KEPT),
        ("root@localhost", KEPT),
        ("\ud83d", KEPT),
    ],
)
def test_a_text_is_replaced_by_the_first_rule_that_matches(text: str, expected: Any) -> None:
    assert summarise(text) == (text if expected is KEPT else expected)
    assert summarise({"a": [{"b": (text, 1)}]}) == {"a": [{"b": (text if expected is KEPT else expected, 1)}]}


def test_values_below_filters_are_masked_and_null_stays_null() -> None:
    filters = {"email": "ada@example.com", "age": 7, "active": True, "none": None, "deep": [{"x": (1.5, None)}]}
    assert summarise({"metric": "m", "filters": filters}) == {
        "metric": "m",
        "filters": {"email": VALUE, "age": VALUE, "active": VALUE, "none": None, "deep": [{"x": (VALUE, None)}]},
    }


def test_length_and_connection_urls_come_before_filters_and_filters_before_email() -> None:
    given_filters = ["x" * 3000, "postgres://u:p@h", "ada@example.com", 3]
    assert summarise({"filters": given_filters}) == {
        "filters": ["<truncated:3000 bytes>", CONNECTION_URL, VALUE, VALUE]
    }


@pytest.mark.parametrize("key", ["Filters", "filter", "FILTERS", "filters "])
def test_only_the_exact_key_filters_masks(key: str) -> None:
    assert summarise({key: 7}) == {key: 7}


def test_keys_are_never_changed() -> None:
    keys = {"ada@example.com": 1, "postgres://u:p@h": 2, "x" * 3000: 3}
    assert summarise(keys) == keys


def test_values_nested_deeper_than_any_event_are_masked() -> None:
    deep: Any = "postgres://u:p@h"
    for _ in range(5_000):
        deep = [deep]
    shown = summarise(deep)
    while isinstance(shown, list):
        [shown] = shown
    assert shown == VALUE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.emails(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["filters", "a", "b@c.de"]) | st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_accepted_left_unchanged_and_summarised_to_the_same_a_second_time(value: Any) -> None:
    before = copy.deepcopy(value)
    once = summarise(value)
    assert repr(value) == repr(before)
    assert repr(summarise(once)) == repr(once)
