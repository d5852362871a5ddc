"""Reading events: every broken one is refused with its rule, and no refusal repeats what the event said."""

import json
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from assay_schema.events import Feedback, Retrieval
from assay_schema.fields import Kind
from assay_schema.ids import event_ms
from assay_schema.limits import (
    ENTRY_MAX_BYTES,
    EVENT_AHEAD_MAX_MS,
    ITEMS_MAX,
    NESTING_MAX,
    QUERY_MAX_CHARS,
    TEXT_MAX_BYTES,
)
from assay_schema.published import examples
from assay_schema.validation import (
    InvalidEvent,
    event_time_ok,
    identity_of,
    parse_event,
    parse_failure,
    parse_row,
    parse_scrubbed,
)

EXAMPLES = {each.name: each.document_bytes for each in examples("capture")}
CONTEXT = {"id": "1", "text": ""}
EVENT_ID = UUID("019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d")


def event(example: str = "retrieval-minimal", /, **payload: Any) -> bytes:
    document = json.loads(EXAMPLES[example])
    document["payload"].update(payload)
    return orjson.dumps(document)


def refusal(data: bytes, parse: Callable[[bytes], Any] = parse_event) -> InvalidEvent:
    with pytest.raises(InvalidEvent) as refused:
        parse(data)
    return refused.value


def test_a_retrieval_is_read() -> None:
    read = parse_event(EXAMPLES["retrieval-full"])
    assert (read.kind, read.project, read.event_id) == (Kind.RETRIEVAL, "acme", EVENT_ID)
    assert read.occurred_at == datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    assert isinstance(read.payload, Retrieval)
    assert read.payload.retrieved_chunk_ids == [41, 7, 41]


def test_slugs_and_sources_lose_repeats_and_keep_their_order_while_chunk_ids_keep_both() -> None:
    payload = parse_event(EXAMPLES["retrieval-with-repeated-slugs"]).payload
    assert isinstance(payload, Retrieval)
    assert (payload.retrieved_slugs, payload.source_ids, payload.retrieved_chunk_ids) == (["b", "a"], ["x"], [1, 1])


@pytest.mark.parametrize("said", [True, False, None])
def test_a_search_has_no_expansion_whatever_the_producer_says(said: bool | None) -> None:
    payload = parse_event(event(tool_name="search", expand_enabled=said)).payload
    assert isinstance(payload, Retrieval)
    assert payload.expand_enabled is None


def test_a_query_keeps_what_it_says_about_expansion() -> None:
    payload = parse_event(event(tool_name="query", expand_enabled=False)).payload
    assert isinstance(payload, Retrieval)
    assert payload.expand_enabled is False


def test_unknown_keys_are_kept_out() -> None:
    written = parse_event(EXAMPLES["retrieval-with-unknown-keys"]).model_dump_json()
    assert "future_field" not in written
    assert "rerank_ms" not in written


def test_a_key_written_twice_counts_as_its_last() -> None:
    assert parse_event(EXAMPLES["repeated-key-counts-last"]).project == "second"


def test_times_of_every_zone_become_utc_to_the_microsecond() -> None:
    read = parse_event(EXAMPLES["retrieval-in-another-zone"])
    assert read.occurred_at.isoformat() == "2026-01-02T03:04:05.678901+00:00"


@pytest.mark.parametrize(
    ("data", "rule", "detail"),
    [
        (b'{"schema_version":2,"kind":"retrieval"}', "schema_version", "schema_version 2 is not understood; this version reads 1"),
        (b'{"schema_version":2,"kind":"new"}', "schema_version", "schema_version 2 is not understood; this version reads 1"),
        (b'{"schema_version":4155550123,"kind":"answer"}', "schema_version", "this schema_version is not understood; this version reads 1"),
        (b'{"schema_version":1,"kind":"new"}', "unknown_kind", f"kind must be one of {', '.join(Kind)}"),
        (b"{}", "unknown_kind", f"kind must be one of {', '.join(Kind)}"),
        (b"", "invalid_json", "not JSON: the entry has no field `data`, or an empty one"),
        (b'{"kind":\n', "invalid_json", "not JSON at line 2 column 0"),
        (b'{"kind":"\xff"}', "invalid_utf8", "not UTF-8 from byte 9"),
        (b'{"kind":"\\ud800"}', "lone_surrogate", "text with a lone surrogate, at line 1 column 16"),
        (b"[" * 300 + b"]" * 300, "nested_too_deep", "more levels than the parser follows, at line 1 column 202"),
        (b"[" * 300, "nested_too_deep", "more levels than the parser follows, at line 1 column 202"),
        (b"[]", "not_an_object", "the document must be a JSON object"),
        (event(query=1), "string_type", "payload.query: string_type"),
        (event(latency_ms=-1), "greater_than_equal", "payload.latency_ms: greater_than_equal, ge 0.0"),
        (event(tool_name="x"), "literal_error", "payload.tool_name: literal_error, expected 'query' or 'search'"),
        (event("answer-full", contexts=[CONTEXT, {**CONTEXT, "id": 1}]), "string_type", "payload.contexts.1.id: string_type"),
        (event(params={"a": [{"b": 7}]}).replace(b":7", b":1" + b"0" * 40), "integer_too_large", "payload.params: integer_too_large"),
        (b'{"a":' + b"9" * 5_000 + b"}", "integer_too_large", "an integer of thousands of digits, at line 1 column 4307"),
        (event(latency_ms=-1, query=None), "string_type", "payload.query: string_type; payload.latency_ms: greater_than_equal, ge 0.0"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_rule_and_the_field(data: bytes, rule: str, detail: str) -> None:
    refused = refusal(data)
    assert (refused.rule, refused.detail) == (rule, detail)
    assert str(refused) == f"{rule}: {detail}"


def test_a_refusal_lists_some_problems_and_counts_the_rest() -> None:
    refused = refusal(b'{"schema_version":1,"kind":"retrieval","payload":{}}')
    assert refused.detail == (
        "event_id: missing; service: missing; occurred_at: missing; payload.tool_name: missing; payload.query: missing; and 3 more"
    )


def test_a_long_list_of_wrong_items_is_refused_at_its_first() -> None:
    assert refusal(event(retrieved_chunk_ids=["x"] * ITEMS_MAX)).detail == "payload.retrieved_chunk_ids.0: int_type"


@pytest.mark.parametrize("character", ["x", "é", "日", "\U0001f9ea"])
def test_a_query_may_have_as_many_characters_as_the_limit_whatever_their_bytes(character: str) -> None:
    parse_event(event(query=character * QUERY_MAX_CHARS))
    refused = refusal(event(query=character * (QUERY_MAX_CHARS + 1)))
    assert (refused.rule, refused.detail) == ("string_too_long", "payload.query: string_too_long, max_length 51200")


@pytest.mark.parametrize("character", ["x", "é", "日", "\U0001f9ea"])
def test_other_text_may_have_as_many_bytes_as_the_limit(character: str) -> None:
    size = len(character.encode())
    fits = character * (TEXT_MAX_BYTES // size)
    for example, field in (("answer-full", "answer"), ("feedback-full", "text")):
        parse_event(event(example, **{field: fits}))
        refused = refusal(event(example, **{field: fits + character}))
        assert refused.rule in ("text_too_long", "string_too_long")
        assert refused.detail.startswith(f"payload.{field}: ")
        assert str(TEXT_MAX_BYTES) in refused.detail


def test_lists_and_maps_may_have_as_many_items_as_the_limit() -> None:
    parse_event(event(retrieved_chunk_ids=[1] * ITEMS_MAX, params={str(n): n for n in range(ITEMS_MAX)}))
    assert refusal(event(retrieved_chunk_ids=[1] * (ITEMS_MAX + 1))).rule == "too_long"
    assert refusal(event(params={str(n): n for n in range(ITEMS_MAX + 1)})).rule == "too_long"


def test_an_entry_may_have_a_mebibyte_and_no_byte_more() -> None:
    fits = EXAMPLES["retrieval-minimal"].ljust(ENTRY_MAX_BYTES)
    assert parse_event(fits).event_id == EVENT_ID
    refused = refusal(fits + b" ")
    assert (refused.rule, refused.detail) == ("entry_too_large", "1048577 bytes; at most 1048576 (1 MiB)")


@pytest.mark.parametrize("opening", ['{"a":', "["])
def test_free_json_may_be_as_deep_as_the_limit(opening: str) -> None:
    def nested(levels: int) -> bytes:
        inner = opening * (levels - 2) + "1" + {"[": "]"}.get(opening, "}") * (levels - 2)
        return event(params={"x": "INNER"}).replace(b'"INNER"', inner.encode())

    parse_event(nested(NESTING_MAX))
    assert refusal(nested(NESTING_MAX + 1)).detail == "payload.params: nested_too_deep, max_levels 64"


@pytest.mark.parametrize("value", ["\ud800", {"\udc00": 1}, [{"a": "\ud83e"}]])
def test_a_producer_in_python_cannot_put_half_a_character_in_a_model_either(value: Any) -> None:
    fields = json.loads(event())["payload"]
    with pytest.raises(ValidationError):
        Retrieval(**{**fields, "params": {"x": value}})
    with pytest.raises(ValidationError):
        Retrieval(**{**fields, "query": "cut \ud83e"})
    with pytest.raises(ValidationError):
        Feedback(target_event_id=EVENT_ID, verdict="positive", text="cut \ud83e")


@pytest.mark.parametrize("value", [{1, 2}, b"x", datetime(2026, 1, 1, tzinfo=UTC), object(), (1, 2)])
def test_a_producer_in_python_cannot_put_what_is_not_json_in_params(value: Any) -> None:
    with pytest.raises(ValidationError, match="without a JSON form"):
        Retrieval(**{**json.loads(event())["payload"], "params": {"x": value}})


def test_the_events_stream_refuses_an_unknown_kind_with_the_names_of_those_there_are() -> None:
    document = json.loads(examples("events")[0].document_bytes) | {"kind": "vision"}
    refused = refusal(orjson.dumps(document), parse_scrubbed)
    assert (refused.rule, refused.detail) == ("unknown_kind", f"kind must be one of {', '.join(Kind)}")


def test_failures_and_rows_are_read_with_the_same_care() -> None:
    assert refusal(b'{"schema_version":2}', parse_failure).rule == "schema_version"
    assert refusal(b'{"schema_version":2}', lambda data: parse_row(Kind.ANSWER, data)).rule == "schema_version"
    assert refusal(b'{"schema_version":2}', lambda data: parse_row(Kind.SESSION, data)).rule == "schema_version"


# --- nothing a producer wrote is repeated

PLANT = "zqHJWqz"  # appears in no source line that a traceback could show
NUMBER = 918273645
PLANTS: list[Any] = [
    PLANT,
    PLANT.lower(),
    NUMBER,
    -NUMBER,
    NUMBER + 0.5,
    2**80 + NUMBER,
    [PLANT],
    [[PLANT]],
    {PLANT: PLANT},
    {PLANT: NUMBER},
    {"id": PLANT, PLANT: 1},
    PLANT * 6_000,
    PLANT + "\n",
    {"a": {PLANT: float("nan")}},
    None,
]
PARSERS: dict[str, Callable[[bytes], Any]] = {
    "capture": parse_event,
    "events": parse_scrubbed,
    "failures": parse_failure,
    "export-answer": lambda data: parse_row(Kind.ANSWER, data),
    "export-retrieval": lambda data: parse_row(Kind.RETRIEVAL, data),
}
DOCUMENTS = [(name, json.loads(each.document_bytes)) for name in PARSERS for each in examples(name)]


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from places(child, (*path, key))


def planted(value: Any, path: tuple[str | int, ...], plant: Any, *, as_key: bool) -> Any:
    if not path:
        return {**value, PLANT: plant} if as_key and isinstance(value, dict) else plant
    head, *rest = path
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    copied[head] = planted(value[head], tuple(rest), plant, as_key=as_key)
    return copied


def assert_says_nothing_of(refused: InvalidEvent) -> None:
    said = "".join([str(refused), repr(refused), *map(repr, refused.args), *traceback.format_exception(refused)])
    assert PLANT.upper() not in said.upper()
    assert str(NUMBER) not in said
    assert refused.__cause__ is None
    assert refused.__context__ is None
    assert len(refused.detail) <= 2_000  # fits a failure's `detail`
    assert len(refused.rule) <= 255  # and its `error_class`


@given(st.data())
def test_no_refusal_repeats_a_value_or_key_wherever_it_stood(data: st.DataObject) -> None:
    name, document = data.draw(st.sampled_from(DOCUMENTS))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(document))))
        document = planted(document, path, data.draw(st.sampled_from(PLANTS)), as_key=data.draw(st.booleans()))
    text = json.dumps(document)
    try:
        PARSERS[name](text.encode())
    except InvalidEvent as refused:
        assert_says_nothing_of(refused)


def test_no_refusal_repeats_a_plant_in_any_one_place() -> None:
    refusals = 0
    for name in ("capture", "events", "failures"):
        for document in [json.loads(each.document_bytes) for each in examples(name) if each.name.endswith("full")]:
            for path in places(document):
                for plant in PLANTS:
                    try:
                        PARSERS[name](json.dumps(planted(document, path, plant, as_key=False)).encode())
                    except InvalidEvent as refused:
                        refusals += 1
                        assert_says_nothing_of(refused)
    assert refusals > 500


@given(
    st.sampled_from(sorted(EXAMPLES)), st.data(), st.sampled_from([b"", b'"', b"\\", b"\xff", b"\\ud800", b"{", b"\n"])
)
def test_no_refusal_repeats_bytes_that_break_the_json(example: str, data: st.DataObject, beside: bytes) -> None:
    document = EXAMPLES[example]
    at = data.draw(st.integers(0, len(document)))
    until = data.draw(st.integers(at, len(document)))
    try:
        parse_event(document[:at] + beside + PLANT.encode() + beside + document[until:])
    except InvalidEvent as refused:
        assert_says_nothing_of(refused)


def json_of(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=12,
    )


json_values = json_of(st.none() | st.booleans() | st.integers() | st.floats() | st.text())
writable_json = json_of(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_reading_anything_ends_in_an_event_or_a_refusal(data: bytes) -> None:
    for parse in PARSERS.values():
        try:
            parse(data)
        except InvalidEvent as refused:
            assert_says_nothing_of(refused)


@given(st.dictionaries(st.text(max_size=8), writable_json, max_size=4))
def test_free_json_that_is_portable_is_taken_and_written_as_it_was(params: dict[str, Any]) -> None:
    data = EXAMPLES["retrieval-minimal"].replace(
        b'"latency_ms"', b'"params":%s,"latency_ms"' % json.dumps(params).encode()
    )
    taken = parse_event(data)
    assert parse_event(orjson.dumps(taken.model_dump(mode="json"))) == taken
    assert json.loads(taken.payload.model_dump_json())["params"] == params


# --- whose entry it was


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_readable_event_is_identified_as_it_is_read(name: str) -> None:
    read = parse_event(EXAMPLES[name])
    assert identity_of(EXAMPLES[name]) == (
        read.event_id,
        read.project,
        read.service if len(read.service) <= 64 else "unknown",
    )


WHO = b'{"schema_version":1,"event_id":"%s","project":"acme","service":"search-api",' % str(EVENT_ID).encode()


@pytest.mark.parametrize(
    "rest",
    [
        b'"kind":"new"}',
        b'"schema_version":7}',
        b'"payload":{"query":"cut',
        b'"payload":{"query":"\\ud800"}}',
        b'"payload":{"query":"\xff"}}',
        b'"payload":{"latency_ms":NaN}}',
        b'"payload":' + b'{"a":' * 3_000 + b"1" + b"}" * 3_001,
        b'"payload":{"n":' + b"9" * 10_000 + b"}}",
        b'"payload":{"query":"' + b"x" * ENTRY_MAX_BYTES + b'"}}',
        b"} and more",
        b'"payload":{"event_id":"x","project":"other","service":"other"',
    ],
    ids=range(11),
)
def test_a_broken_event_is_still_identified(rest: bytes) -> None:
    with pytest.raises(InvalidEvent):
        parse_event(WHO + rest)
    assert identity_of(WHO + rest) == (EVENT_ID, "acme", "search-api")


@pytest.mark.parametrize(
    ("data", "identity"),
    [
        (b"", (None, "unknown", "unknown")),
        (b"[]", (None, "unknown", "unknown")),
        (b"\xff\xfe", (None, "unknown", "unknown")),
        (b"{}", (None, "default", "unknown")),
        (b'{"event_id":1,"project":2,"service":3}', (None, "unknown", "unknown")),
        (b'{"event_id":"7b9c2a0e-94d3-4a4b-9d3a-1b6f7ad3f9c1","service":"a"}', (None, "default", "a")),
        (b'{"project":"Ann Lee, 12 High St","service":"my card is 4111"}', (None, "unknown", "unknown")),
        (b'{"project":"acme\\n","service":"a\\u001b[31m"}', (None, "unknown", "unknown")),
        (b'{"payload":{"event_id":"019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d","service":"x"', (None, "unknown", "unknown")),
        (b'{"service":"ann@example.com","project":"default"}', (None, "default", "unknown")),
    ],
    ids=range(10),
)
def test_what_is_not_plainly_an_identifier_is_unknown(data: bytes, identity: tuple[UUID | None, str, str]) -> None:
    assert identity_of(data) == identity


@given(
    st.binary(max_size=300)
    | st.builds(lambda at, bad: EXAMPLES["retrieval-full"][:at] + bad, st.integers(0, 400), st.binary(max_size=9))
)
def test_identifying_anything_gives_safe_names(data: bytes) -> None:
    event_id, project, service = identity_of(data)
    assert event_id is None or event_id.version == 7
    assert project.replace("-", "").replace(".", "").replace("_", "").isalnum()
    assert service.replace("-", "").replace(".", "").replace("_", "").replace("/", "").isalnum()


# --- an event's own time


@pytest.mark.parametrize(
    ("log_is_later_by_ms", "ok"),
    [(0, True), (10**9, True), (-EVENT_AHEAD_MAX_MS, True), (-EVENT_AHEAD_MAX_MS - 1, False)],
)
def test_an_event_may_be_at_most_a_day_ahead_of_the_log(log_is_later_by_ms: int, ok: bool) -> None:
    assert event_time_ok(EVENT_ID, event_ms(EVENT_ID) + log_is_later_by_ms) is ok
