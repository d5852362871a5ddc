"""Decode OTLP requests of both encodings to the same spans."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import assay_assembler
from assay_assembler.decode import UndecodableError, decode
from assay_assembler.marks import UNREAD
from assay_assembler.span import Link, Span, SpanEvent
from tests.support.spans import START_NS, TRACE, any_value, request, span, span_id
from tests.support.traces import events

EVERYTHING = span(
    {
        "gen_ai.operation.name": "chat",
        "empty": "",
        "count": -3,
        "big": 2**60,
        "share": 0.5,
        "yes": True,
        "bytes": b"\x00\xff",
        "list": ["a", 1, {"b": [None]}],
        "nested": {"x": {"y": "z"}},
        "nothing": None,
    },
    parent=7,
    name="chat gpt",
    status="error",
    events=(SpanEvent("gen_ai.choice", {"index": 0}),),
    links=(Link("1" * 32, "2" * 16),),
    dropped=4,
)


def as_json(made: ExportTraceServiceRequest) -> dict[str, Any]:
    """Return a request in OTLP JSON, written out here because protobuf's own JSON is another one."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": pairs(group.resource.attributes)},
                "scopeSpans": [
                    {"scope": {"name": scoped.scope.name}, "spans": [json_span(raw) for raw in scoped.spans]}
                    for scoped in group.scope_spans
                ],
            }
            for group in made.resource_spans
        ]
    }


def json_span(raw: Any) -> dict[str, Any]:
    return {
        "traceId": raw.trace_id.hex().upper(),
        "spanId": raw.span_id.hex(),
        "parentSpanId": raw.parent_span_id.hex(),
        "flags": raw.flags,
        "name": raw.name,
        "startTimeUnixNano": str(raw.start_time_unix_nano),
        "endTimeUnixNano": raw.end_time_unix_nano,
        "status": {"code": "STATUS_CODE_ERROR" if raw.status.code == 2 else raw.status.code},
        "attributes": pairs(raw.attributes),
        "events": [{"name": each.name, "attributes": pairs(each.attributes)} for each in raw.events],
        "links": [{"traceId": each.trace_id.hex(), "spanId": each.span_id.hex()} for each in raw.links],
        "droppedAttributesCount": raw.dropped_attributes_count,
    }


def pairs(attributes: Any) -> list[dict[str, Any]]:
    return [{"key": each.key, "value": json_value(each.value)} for each in attributes]


def json_value(value: Any) -> dict[str, Any]:
    match value.WhichOneof("value"):
        case "int_value":
            return {"intValue": str(value.int_value)}
        case "bytes_value":
            return {"bytesValue": "AP8="}
        case "double_value":
            return {"doubleValue": value.double_value}
        case "bool_value":
            return {"boolValue": value.bool_value}
        case "array_value":
            return {"arrayValue": {"values": [json_value(each) for each in value.array_value.values]}}
        case "kvlist_value":
            return {"kvlistValue": {"values": pairs(value.kvlist_value.values)}}
        case "string_value":
            return {"stringValue": value.string_value}
        case _:
            return {}


def event_of(found: Span) -> dict[str, Any]:
    """Return the event of a span as a tool call."""
    (made,) = events(found._replace(attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}))
    return made


def test_protobuf_is_decoded_with_all_its_values() -> None:
    assert decode(request(EVERYTHING).SerializeToString(), "protobuf") == [EVERYTHING]


def test_json_is_decoded_to_the_same_spans_as_protobuf() -> None:
    assert decode(orjson.dumps(as_json(request(EVERYTHING))), "json") == [EVERYTHING]


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_spans_without_marks_keep_only_their_place(encoding: Any) -> None:
    plain = span(
        {"http.method": "GET", "note": "gen_ai. ai. llm."}, number=9, parent=3, dropped=2, links=EVERYTHING.links
    )
    made = request(plain, EVERYTHING)
    body = made.SerializeToString() if encoding == "protobuf" else orjson.dumps(as_json(made))
    assert decode(body, encoding) == [plain._replace(name="", attributes={}, links=(), dropped=0), EVERYTHING]


def test_an_event_of_a_vector_store_is_a_mark() -> None:
    event = SpanEvent("db.query.result", {"db.query.result.id": "1"})
    assert len(decode(request(span({"db.system": "chroma"}, events=(event,))).SerializeToString(), "protobuf")) == 1


@pytest.mark.parametrize(
    ("flags", "parent", "expected"),
    [
        (0, "", True),
        (0x100, "", True),
        (0x101, span_id(2), False),
        (0x300, span_id(2), True),
        (0x301, span_id(2), True),
        (0x001, span_id(2), False),
        (0x200, span_id(2), False),
    ],
)
def test_a_span_is_a_local_root_without_a_parent_or_with_a_remote_one(flags: int, parent: str, expected: bool) -> None:
    made = request(EVERYTHING)
    raw = made.resource_spans[0].scope_spans[0].spans[0]
    raw.flags, raw.parent_span_id = flags, bytes.fromhex(parent)
    for body, encoding in ((made.SerializeToString(), "protobuf"), (orjson.dumps(as_json(made)), "json")):
        (found,) = decode(body, encoding)  # type: ignore[arg-type]
        assert found.local_root is expected
        assert event_of(found)["traceparent"] == f"00-{TRACE}-{found.span_id}-01"  # an exported span was sampled


@pytest.mark.parametrize(("field", "value"), [("trace_id", b""), ("trace_id", b"\0" * 16), ("span_id", b"\1" * 7)])
def test_a_span_with_an_invalid_id_is_left_out_and_the_others_stay(field: str, value: bytes) -> None:
    made = request(EVERYTHING, span({"gen_ai.x": "1"}, number=2))
    setattr(made.resource_spans[0].scope_spans[0].spans[0], field, value)
    assert [each.span_id for each in decode(made.SerializeToString(), "protobuf")] == [span_id(2)]


def test_absent_fields_of_json_have_their_defaults() -> None:
    raw = {"traceId": TRACE, "spanId": span_id(1), "attributes": [{"key": "gen_ai.x", "value": {"futureValue": 1}}]}
    [found] = decode(orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [raw]}]}]}), "json")
    assert (found.name, found.start_ns, found.status, found.local_root) == ("", 0, "unset", True)
    assert found.attributes == {"gen_ai.x": None}
    assert found.source == ("", "", "")


@pytest.mark.parametrize(
    "wrong", [1, "x", None, [], {"spans": 3}, [None, 1, "x"], {"key": 1}, [{"key": ["x"], "value": "x"}], True, 1e400]
)
@pytest.mark.parametrize("field", ["attributes", "events", "links", "status", "flags", "name", "startTimeUnixNano"])
def test_a_field_of_a_wrong_type_does_not_fail(field: str, wrong: Any) -> None:
    marked = {"key": "gen_ai.x", "value": {"stringValue": "1"}}
    raw = {"traceId": TRACE, "spanId": span_id(1), "attributes": [marked], "name": "n", field: wrong}
    body = orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [raw, "x"]}, 2]}, None]})
    (found,) = decode(body, "json")
    assert bool(found.attributes) == (field != "attributes")


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(b"\xff\xff\xff", "protobuf"), (b"{", "json"), (b"[]", "json"), (b"\xff", "json"), (b'{"a":"\\ud800"}', "json")],
)
def test_a_body_that_is_not_a_request_is_undecodable(body: bytes, encoding: Any) -> None:
    with pytest.raises(UndecodableError):
        decode(body, encoding)


def test_an_index_into_a_table_of_strings_is_absent() -> None:
    made = request(EVERYTHING)
    raw = made.resource_spans[0].scope_spans[0].spans[0]
    value = any_value(None)
    if "string_value_strindex" in value.DESCRIPTOR.fields_by_name:
        value.string_value_strindex = 3  # type: ignore[attr-defined]
    raw.attributes.add(key="x", value=value)
    assert decode(made.SerializeToString(), "protobuf")[0].attributes["x"] is None


def test_a_time_is_in_nanoseconds() -> None:
    assert decode(request(EVERYTHING).SerializeToString(), "protobuf")[0].start_ns == START_NS


def test_no_rule_reads_an_attribute_that_is_left_out() -> None:
    package = Path(assay_assembler.__file__).parent
    source = "".join(path.read_text() for path in package.rglob("*.py") if path.name != "marks.py")
    assert not [name for name in UNREAD if f'"{name}"' in source]
