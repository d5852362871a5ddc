"""A batch is cut into exactly the bytes of its events, whatever is in them, and in bounded steps."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_gateway.items import DEPTH_MAX, ITEMS_MAX, LINES_MAX, json_items, lines
from assay_gateway.json_cut import PAUSE_STEPS, SPACE_MAX, STEPS_MAX, WINDOW_BYTES, parts
from assay_gateway.refusal import RefusedError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def cut(body: bytes) -> list[bytes]:
    return [item.strip() for item in json_items(body) if item is not None]


def code_of(body: bytes) -> str:
    with pytest.raises(RefusedError) as refused:
        cut(body)
    assert refused.value.status == 400
    return refused.value.code


@given(st.lists(JSON, max_size=6), st.sampled_from([None, 1, 4]), st.booleans(), st.booleans())
def test_the_elements_of_an_array_are_those_of_a_json_parser(
    elements: list[Any], indent: int | None, ascii_only: bool, wrapped: bool
) -> None:
    text = json.dumps({"events": elements} if wrapped else elements, indent=indent, ensure_ascii=ascii_only)
    found = cut(text.encode(errors="surrogatepass"))
    assert [json.loads(item) for item in found] == elements


@given(st.lists(st.dictionaries(st.text(alphabet='\\"{}[],a'), st.text(alphabet='\\"{}[],a')), max_size=5))
def test_quotes_backslashes_and_brackets_in_strings_separate_nothing(elements: list[Any]) -> None:
    assert [json.loads(item) for item in cut(json.dumps(elements).encode())] == elements


@pytest.mark.parametrize("depth", [7, 8, 9, 10, DEPTH_MAX - 2])
def test_deep_events_are_cut_like_flat_ones(depth: int) -> None:
    event = b'{"a":' * depth + b"1" + b"}" * depth
    assert cut(b"[" + event + b"," + event + b"]") == [event, event]


@pytest.mark.parametrize("size", [WINDOW_BYTES - 1, WINDOW_BYTES, WINDOW_BYTES + 1, 5 * WINDOW_BYTES])
@pytest.mark.parametrize("text", [b"x", b'\\"', b"\\\\", b"],{"])
def test_a_string_longer_than_a_window_is_found_to_its_end(size: int, text: bytes) -> None:
    event = b'{"a":"' + text * (size // len(text)) + b'"}'
    assert cut(b"[" + event + b',{"b":2}]') == [event, b'{"b":2}']


@pytest.mark.parametrize("body", [b"[]", b" [ ] ", b'{"events":[]}', b'\n{ "events" : [ ] }\n'])
def test_an_empty_batch_has_no_events(body: bytes) -> None:
    assert cut(body) == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_body"),
        (b"null", "invalid_body"),
        (b"{}", "invalid_body"),
        (b'{"schema_version":1}', "invalid_body"),
        (b'{"events":{}}', "invalid_body"),
        (b"[", "invalid_json"),
        (b"[{}", "invalid_json"),
        (b"[{},", "invalid_json"),
        (b'[{"a":"', "invalid_json"),
        (b"[1}", "invalid_json"),
        (b"[{}]]", "invalid_json"),
        (b"[{}] {}", "invalid_json"),
        (b'{"events":[]', "invalid_json"),
        (b'{"events":[],"more":1}', "invalid_json"),
        (b"[" * 1000, "nested_too_deep"),
        (b"[" + b"0," * ITEMS_MAX + b"0]", "too_many_events"),
        (b"[" + b"{}," * ITEMS_MAX + b"{}]", "too_many_events"),
        (b" " * (SPACE_MAX + 1) + b"[]", "invalid_body"),
        (b"[]" + b" " * (SPACE_MAX + 1), "invalid_json"),
    ],
)
def test_a_body_that_is_not_a_batch_is_refused_as_a_whole(body: bytes, code: str) -> None:
    assert code_of(body) == code


def test_as_many_events_as_allowed_are_cut() -> None:
    assert len(cut(b"[" + b"{}," * (ITEMS_MAX - 1) + b"{}]")) == ITEMS_MAX
    assert len([line for line in lines(b"{}\n" * ITEMS_MAX) if line]) == ITEMS_MAX


@pytest.mark.parametrize(
    "unit", [b"[", b"[]", b"{}", b'"', b'""', b'"\\', b"\\", b",", b"0,", b"a", b" ", b'{"', b'["\\"', b"\xff", b"[{]}"]
)
@pytest.mark.parametrize("begin", [b"[", b"[[", b'[{"a":', b'["', b'[{"a":"\\\\"},'])
def test_hostile_bodies_end_within_bounded_work(unit: bytes, begin: bytes) -> None:
    body = begin + unit * (1024 * 1024 // len(unit))
    found: list[bytes | None] = []
    with contextlib.suppress(RefusedError):
        found.extend(json_items(body))
    assert sum(item is None for item in found) <= STEPS_MAX / PAUSE_STEPS + len(body) / WINDOW_BYTES + ITEMS_MAX
    assert sum(len(item) for item in found if item is not None) <= len(body)


def test_an_event_of_more_brackets_than_the_schema_accepts_is_not_followed_to_its_end() -> None:
    assert code_of(b"[" + b"[]" * STEPS_MAX + b"]") == "too_complex"


def test_lines_that_are_blank_are_no_events() -> None:
    assert [line for line in lines(b'\n{"a":1}\r\n \n\t{"b":2}') if line] == [b'{"a":1}', b'{"b":2}']


def test_more_lines_than_allowed_are_refused() -> None:
    with pytest.raises(RefusedError):
        list(lines(b"{}\n" * (ITEMS_MAX + 1)))
    with pytest.raises(RefusedError):
        list(lines(b" \n" * (LINES_MAX + 1)))


def test_a_run_of_blank_lines_is_passed_in_steps() -> None:
    found = list(lines(b"\n" * (64 * 1024 * PAUSE_STEPS) + b"{}"))
    assert found == [None, b"{}"]


def test_white_space_around_an_event_is_no_part_of_it_however_deep_it_is() -> None:
    for depth in (1, 10, 40):
        event = b"[" * depth + b"]" * depth
        assert cut(b"[ %b ,\n%b ]" % (event, event)) == [event, event]


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (b'{"a":[1,2],"b":"x,[{"}', 4),
        (rb'{"a":"\\","b":"\",["}', 2),
        (b'{"a":"x,y', 1),
        (b'{"a":"x\\', 1),
        (b'{"kind":"' + b'\\"' * 500_000, 1),  # looked at once, not once for each quote
    ],
    ids=["texts", "escapes", "cut off", "cut off after a backslash", "quotes"],
)
def test_commas_and_brackets_are_counted_outside_of_texts(value: bytes, count: int) -> None:
    assert parts(value) == count
