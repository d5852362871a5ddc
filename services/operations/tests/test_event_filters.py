"""Filters of events from URL parameters, ranges, cursors and bucket widths."""

import contextlib
import math
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_operations.errors import OperationError
from assay_operations.events.differs import difference_of_shares
from assay_operations.events.filters import (
    KINDS,
    OPEN_END_MS,
    STATUSES,
    EventFilter,
    Has,
    Range,
    parse_filter,
)
from assay_operations.events.histogram import BUCKETS_MAX, width_of
from assay_operations.events.position import Position, parse_position
from assay_operations.events.rows import from_unix_ms, unix_ms
from assay_schema.fields import Kind
from assay_schema.ids import derived_event_id

NOW_MS = 1_800_000_000_000
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=50)
NAMES = st.lists(TEXT, unique=True, max_size=3).map(tuple)
FILTERS = st.builds(
    EventFilter,
    kinds=st.lists(st.sampled_from(KINDS), unique=True).map(tuple),
    project=st.none() | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True),
    services=NAMES,
    tools=NAMES,
    models=NAMES,
    statuses=st.lists(st.sampled_from(sum(STATUSES.values(), ())), unique=True).map(tuple),
    has=st.frozensets(st.sampled_from(get_args(Has))),
    latency_over_ms=st.none() | st.floats(0, 1e12),
    metrics_below=st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True), st.floats(0, 1), max_size=2).map(
        lambda found: tuple(found.items())
    ),
    text=st.none() | TEXT,
    trace_id=st.none() | st.from_regex(r"[1-9a-f][0-9a-f]{31}", fullmatch=True),
    session_id=st.none() | TEXT,
)  # fmt: skip


@given(FILTERS)
def test_a_filter_is_the_one_that_its_url_parameters_give(wanted: EventFilter) -> None:
    assert parse_filter(wanted.pairs()) == wanted
    assert set(wanted.possible_kinds) <= set(wanted.kinds or KINDS)


def test_parameters_of_others_and_empty_ones_are_skipped() -> None:
    assert parse_filter([("after", "x"), ("q", ""), ("kind", "")], also=["after"]) == EventFilter()
    assert parse_filter([("kind", "answer"), ("kind", "answer")]) == EventFilter(kinds=(Kind.ANSWER,))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("kinds", "answer", "unknown parameter 'kinds'"),
        ("kind", "session", "kind: 'session' is none of retrieval, answer"),
        ("status", "done", "status: 'done' is none of found"),
        ("has", "tools", "has: 'tools' is none of feedback"),
        ("project", "a b", "project: 'a b' is not the name of a project"),
        ("service", "s" * 256, "service: longer than 255 characters"),
        ("latency>", "fast", "latency>: 'fast' is not a number, 0 or more"),
        ("latency>", "inf", "latency>: 'inf' is not a number"),
        ("latency>", "nan", "latency>: 'nan' is not a number"),
        ("latency>", "-1", "latency>: '-1' is not a number"),
        ("metric.faithfulness<", "2", "metric.faithfulness<: '2' is not a number, from 0 to 1"),
        ("metric.<", "0.5", "unknown parameter 'metric.<'"),
        ("q", "x" * 1_001, "q: 1,001 characters; at most 1,000"),
        ("q", "a\0b", "contains a NUL character"),
        ("q", "\ud800", "not valid Unicode text"),
        ("trace", "0" * 32, "trace: '0000"),
        ("trace", "xyz", "is not a trace id"),
        ("session", "s" * 1_025, "session: longer than 1024 characters"),
    ],
)
def test_an_invalid_parameter_is_named_with_its_rule(name: str, value: str, said: str) -> None:
    with pytest.raises(OperationError) as refused:
        parse_filter([(name, value)])
    assert said in str(refused.value)
    assert refused.value.kind == "invalid"


@pytest.mark.parametrize("pairs", [[("project", "a"), ("project", "b")], [("service", f"s{n}") for n in range(51)]])
def test_too_many_values_are_refused(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(OperationError, match="value"):
        parse_filter(pairs)


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ({}, KINDS),
        ({"tools": ("x",)}, (Kind.RETRIEVAL, Kind.TOOL_CALL)),
        ({"models": ("x",), "tools": ("x",)}, (Kind.RETRIEVAL,)),
        ({"statuses": ("error", "uncited")}, (Kind.ANSWER, Kind.TOOL_CALL)),
        ({"has": frozenset({"judged", "no-result"})}, ()),
        ({"latency_over_ms": 0.0}, (Kind.RETRIEVAL, Kind.ANSWER, Kind.TOOL_CALL)),
        ({"kinds": (Kind.FEEDBACK,), "metrics_below": (("faithfulness", 0.5),)}, ()),
    ],
)
def test_a_filter_excludes_the_kinds_that_cannot_meet_it(fields: dict[str, Any], kinds: tuple[Kind, ...]) -> None:
    assert EventFilter(**fields).possible_kinds == kinds


def test_a_range_does_not_end_before_it_begins() -> None:
    assert Range(5, 5).to_ms == 5
    with pytest.raises(OperationError, match="ends before it begins"):
        Range(6, 5)


@given(st.integers(0, OPEN_END_MS), st.binary(max_size=8), st.sampled_from(KINDS), st.booleans())
def test_a_cursor_is_read_back_as_its_position(ms: int, key: bytes, kind: Kind, of_a_row: bool) -> None:
    position = Position(ms, derived_event_id(ms, key), kind, "a.project-1") if of_a_row else Position(ms)
    assert parse_position(str(position)) == position
    assert from_unix_ms(ms).timestamp() * 1_000 == pytest.approx(ms)
    assert unix_ms(from_unix_ms(ms)) == ms


@given(st.text(max_size=60))
def test_any_other_text_is_no_cursor(text: str) -> None:
    with contextlib.suppress(OperationError):
        assert str(parse_position(text)) == text


@given(st.integers(0, NOW_MS), st.integers(0, NOW_MS))
def test_a_range_is_cut_into_as_many_buckets_as_fit(start: int, length: int) -> None:
    span = Range(start, start + length)
    width_ms, unit = width_of(span)
    assert width_ms % unit.width_ms == 0
    first = span.from_ms // width_ms * width_ms
    assert len(range(first, span.to_ms, width_ms)) <= BUCKETS_MAX


def test_the_difference_of_shares_is_newcombes() -> None:
    found = difference_of_shares(56, 70, 48, 80)  # Newcombe 1998, table II, example (a), method 10
    assert [round(each, 4) for each in found] == [0.2, 0.0524, 0.3339]


@given(st.integers(1, 10_000), st.integers(1, 10_000), st.data())
def test_an_interval_of_a_difference_has_the_difference_within(one: int, other: int, data: st.DataObject) -> None:
    found = difference_of_shares(data.draw(st.integers(0, one)), one, data.draw(st.integers(0, other)), other)
    assert -1 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 1
    assert math.isfinite(found.low + found.high)
