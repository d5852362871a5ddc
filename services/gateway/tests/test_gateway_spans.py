"""Which spans of an OTLP request become entries, in both encodings, and what is rejected or dropped."""

import contextlib
import itertools
import json
import os
import random
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from assay_access.api_keys import KeyKind, KeyRecord
from assay_gateway import otlp_answer, otlp_json
from assay_gateway.ai_marks import MARKS, Marks
from assay_gateway.json_cut import STEPS_MAX
from assay_gateway.otlp_form import ITEMS_MAX
from assay_gateway.otlp_wire import OTHERS_MAX, field
from assay_gateway.refusal import RefusedError
from assay_gateway.spans import GATHERED_MAX, SPANS_MAX_BYTES, SpanBatch
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.span_entry import SpanEntry, SpanEntryError, parse_span_entry

RECORD = KeyRecord(
    id="A" * 10, sha256="0" * 64, kind=KeyKind.INGEST, project="shop", created_at=datetime.now(UTC), service="web"
)
BOTH = pytest.mark.parametrize("binary", [True, False], ids=["protobuf", "json"])
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": "[]"}
PLAIN = {"http.route": "/ask"}
TRACE, OTHER = "aa" * 16, "bb" * 16


def span(number: int, attributes: dict[str, str], trace: str = TRACE, **more: Any) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "name": "a span",
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000001000000000",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
        **more,
    }


def request(spans: list[dict[str, Any]], resource: dict[str, str] | None = None, scope: str = "lib") -> dict[str, Any]:
    named = {"service.name": "search"} if resource is None else resource
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in named.items()]
    scoped = {"scope": {"name": scope, "version": "2"}, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [scoped]}]}


def as_protobuf(document: dict[str, Any]) -> ExportTraceServiceRequest:
    made = ExportTraceServiceRequest()
    for group in document["resourceSpans"]:
        resource = made.resource_spans.add()
        for each in group["resource"]["attributes"]:
            resource.resource.attributes.add(key=each["key"]).value.string_value = each["value"]["stringValue"]
        for scoped in group["scopeSpans"]:
            scope = resource.scope_spans.add()
            scope.scope.name, scope.scope.version = scoped["scope"]["name"], scoped["scope"]["version"]
            for each in scoped["spans"]:
                one = scope.spans.add(
                    trace_id=bytes.fromhex(each["traceId"]),
                    span_id=bytes.fromhex(each["spanId"]),
                    parent_span_id=bytes.fromhex(each.get("parentSpanId", "")),
                    flags=each.get("flags", 0),
                    name=each["name"],
                    start_time_unix_nano=int(each["startTimeUnixNano"]),
                    end_time_unix_nano=int(each["endTimeUnixNano"]),
                )
                for attribute in each["attributes"]:
                    one.attributes.add(key=attribute["key"]).value.string_value = attribute["value"]["stringValue"]
    return made


def encoded(document: dict[str, Any], *, binary: bool) -> bytes:
    return as_protobuf(document).SerializeToString() if binary else json.dumps(document).encode()


def sorted_(body: bytes, *, binary: bool, signal: Any = "traces") -> SpanBatch:
    batch = SpanBatch(RECORD, signal, binary)
    for _ in batch.read(body):
        pass
    return batch


def spans_in(entry: bytes) -> Iterator[tuple[str, str, list[str]]]:
    """Yield span id, name and names of attributes of the spans of an entry."""
    parsed = parse_span_entry(entry)
    if parsed.encoding == "protobuf":
        for group in ExportTraceServiceRequest.FromString(parsed.body).resource_spans:
            for scoped in group.scope_spans:
                for each in scoped.spans:
                    yield each.span_id.hex(), each.name, [attribute.key for attribute in each.attributes]
        return
    for found in json.loads(parsed.body)["resourceSpans"]:
        for scope in found["scopeSpans"]:
            for one in scope["spans"]:
                yield one["spanId"], one.get("name", ""), [each["key"] for each in one.get("attributes", [])]


@BOTH
def test_each_trace_is_an_entry_with_its_spans_and_those_of_other_traces_are_dropped(binary: bool) -> None:
    plain_trace = "cc" * 16
    body = request([span(1, CHAT), span(2, CHAT, OTHER), span(3, CHAT), span(4, PLAIN, plain_trace)])
    batch = sorted_(encoded(body, binary=binary), binary=binary)
    assert (batch.accepted, batch.plain, batch.rejected, batch.message) == (3, 1, 0, "")
    parsed = [parse_span_entry(entry) for entry in batch.entries]
    assert [(each.project, each.service, each.trace_id, each.signal) for each in parsed] == [
        ("shop", "web", TRACE, "traces"), ("shop", "web", OTHER, "traces"),
    ]  # fmt: skip
    assert [each[0][-1] for each in spans_in(batch.entries[0])] == ["1", "3"]
    assert all(plain_trace.encode() not in entry for entry in batch.entries)


@BOTH
def test_other_spans_of_a_trace_keep_their_place_in_it_and_nothing_else(binary: bool) -> None:
    inner = span(2, {"db.statement": "jane.doe@example.com"}, parentSpanId=f"{1:016x}")
    body = request([span(1, CHAT), inner, span(3, CHAT, parentSpanId=f"{2:016x}")])
    (entry,) = sorted_(encoded(body, binary=binary), binary=binary).entries
    assert [(number[-1], name) for number, name, _ in spans_in(entry)] == [("1", "a span"), ("3", "a span"), ("2", "")]
    assert b"jane.doe" not in entry
    assert [names for *_, names in spans_in(entry)][-1] == []


@BOTH
def test_a_resource_keeps_its_names_only(binary: bool) -> None:
    resource = {"service.name": "s" * 400, "process.command_line": "run --password hunter2", "service.instance.id": "i"}
    (entry,) = sorted_(encoded(request([span(1, CHAT)], resource), binary=binary), binary=binary).entries
    assert b"hunter2" not in entry
    assert b"s" * 255 in entry
    assert b"s" * 256 not in entry
    assert b"service.instance.id" in entry


@BOTH
@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"traceId": "00" * 16}, "invalid_ids"),
        ({"traceId": "aa" * 8}, "invalid_ids"),
        ({"spanId": "00" * 8}, "invalid_ids"),
        ({"spanId": ""}, "invalid_ids"),
    ],
)
def test_a_span_with_bad_ids_is_rejected_and_the_others_are_accepted(
    binary: bool, changed: dict[str, str], rule: str
) -> None:
    body = request([span(1, CHAT), span(2, CHAT) | changed])
    batch = sorted_(encoded(body, binary=binary), binary=binary)
    assert (batch.accepted, batch.rules) == (1, {rule: 1})
    assert "trace ids have 16 bytes" in batch.message


@BOTH
def test_a_span_that_no_entry_can_hold_is_rejected_and_many_spans_are_several_entries(binary: bool) -> None:
    large = span(1, CHAT | {"gen_ai.output.messages": "x" * SPANS_MAX_BYTES})
    parts = [span(number, CHAT | {"gen_ai.output.messages": "y" * 300_000}) for number in range(2, 9)]
    batch = sorted_(encoded(request([large, *parts]), binary=binary), binary=binary)
    assert (batch.accepted, batch.rules) == (7, {"too_large": 1})
    assert len(batch.entries) == 3
    assert max(map(len, batch.entries)) <= ENTRY_MAX_BYTES
    assert [number[-1] for entry in batch.entries for number, *_ in spans_in(entry)] == list("2345678")


@BOTH
def test_a_request_with_a_large_resource_cannot_fill_the_stream(binary: bool) -> None:
    traces = [span(number, CHAT, f"{number:032x}") for number in range(1, 500)]
    for size in (200_000, 300_000):
        body = encoded(request(traces, {"service.name": "search", "padding": "x" * size}), binary=binary)
        batch = sorted_(body, binary=binary)
        assert sum(map(len, batch.entries)) < 500 * 1_000
        assert batch.rejected == (499 if size == 300_000 else 0)


@pytest.mark.parametrize("body", [b"hello", b"\x0a\xff", b"\x0a\x05\x12\x7f", b"\xff" * 40, b"\x0a\x02\x0b\x00"])
def test_bytes_that_are_no_protobuf_are_refused_as_a_whole(body: bytes) -> None:
    for marked in (b"", b"gen_ai."):
        with pytest.raises(RefusedError) as refused:
            sorted_(body + marked, binary=True)
        assert (refused.value.status, refused.value.code) == (400, "invalid_otlp")


@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"[]", b"1", b'{"resourceSpans":{}}', b'{"resourceSpans":[7]}', b'{"resourceSpans":[{"scopeSpans":"gen_ai."}]}',
     b"[" * (STEPS_MAX + 1), b'{"resourceSpans":[{"scopeSpans":[{"spans":["gen_ai."]}]}]}'],
    ids=lambda body: body[:24].decode(),
)  # fmt: skip
def test_json_that_is_no_request_is_refused_as_a_whole(body: bytes) -> None:
    with pytest.raises(RefusedError) as refused:
        sorted_(body, binary=False)
    assert (refused.value.status, refused.value.code) == (400, "invalid_otlp")


@pytest.mark.parametrize(
    "body",
    [
        b"\x18\x01" * (OTHERS_MAX + 1),
        field(0x0A, b"\x18\x01" * (OTHERS_MAX + 1)),
        field(0x0A, b"\x12\x00" * (OTHERS_MAX + 1)),
        field(0x0A, b"\x0a\x00" * (OTHERS_MAX + 1)),
        field(0x0A, field(0x12, b"\x0a\x00" * (OTHERS_MAX + 1))),
        field(0x0A, field(0x12, b"\x1a\x00" * (OTHERS_MAX + 1))),
    ],
    ids=["numbers", "numbers-in-resource", "scopes", "resources", "scope-names", "urls"],
)
@pytest.mark.parametrize("marked", [True, False])
def test_a_request_of_fields_that_are_no_spans_is_refused_before_it_takes_long(body: bytes, marked: bool) -> None:
    with pytest.raises(RefusedError, match="not spans"):
        sorted_(body + (b"\x1a\x07gen_ai." if marked else b""), binary=True)


@BOTH
def test_a_name_that_a_resource_repeats_is_kept_once(binary: bool) -> None:
    document = request([span(number, CHAT) for number in range(1, 2001)])
    attributes = document["resourceSpans"][0]["resource"]["attributes"]
    attributes += [{"key": "service.name", "value": {"stringValue": f"{number:0255}"}} for number in range(500)]
    body = encoded(document, binary=binary)
    entries = sorted_(body, binary=binary).entries
    assert sum(map(len, entries)) < len(body)
    assert f"{499:0255}".encode() in entries[0]
    assert f"{498:0255}".encode() not in entries[0]


def test_spans_before_their_scope_are_read() -> None:
    spans = as_protobuf(request([span(number, CHAT) for number in range(1, 4)])).resource_spans[0].scope_spans[0].spans
    scoped = b"".join(field(0x12, each.SerializeToString()) for each in spans) + field(0x0A, field(0x0A, b"lib"))
    batch = sorted_(field(0x0A, field(0x12, scoped)), binary=True)
    assert batch.accepted == 3
    assert (
        ExportTraceServiceRequest.FromString(parse_span_entry(batch.entries[0]).body)
        .resource_spans[0]
        .scope_spans[0]
        .scope.name
        == "lib"
    )


@pytest.mark.parametrize("place", [0, 1024 * 1024 - 3, 5 * 1024 * 1024])
def test_a_mark_is_found_anywhere_in_a_large_span(place: int) -> None:
    batch = sorted_(
        encoded(request([span(1, {"x": "y" * place + "gen_ai."}), span(2, CHAT)]), binary=True), binary=True
    )
    assert (batch.accepted, batch.rejected, batch.plain) == ((2, 0, 0) if not place else (1, 1, 0))


def test_ids_with_spaces_are_rejected() -> None:
    body = encoded(request([span(1, CHAT, trace="aa " * 16)]), binary=False)
    assert sorted_(body, binary=False).rules == {"invalid_ids": 1}


def shuffled(value: Any, choices: random.Random) -> Any:
    """Return a document with the members of its objects in another order."""
    if isinstance(value, dict):
        return {name: shuffled(value[name], choices) for name in choices.sample(list(value), len(value))}
    return [shuffled(each, choices) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("indent", [None, 1, "\t"])
@pytest.mark.parametrize("seed", range(10))
def test_the_members_of_json_may_have_any_order_and_white_space(seed: int, indent: Any) -> None:
    choices = random.Random(seed)  # noqa: S311
    texts = ['"spans":[{"', "\\\\", "]}]}", "\u00e9\ud83d\ude00", "x" * choices.randrange(200_000)]
    made = [span(number, CHAT | {"x": choices.choice(texts)}, f"{number:032x}") for number in range(1, 20)]
    made += [span(number, PLAIN | {"x": choices.choice(texts)}) for number in range(20, 40)]
    later = {"later": [{"spans": [1]}, None, 1.5e3], "schemaUrl": "https://example.com/1", "none": None}
    document = {"resourceSpans": [{**group, **later} for group in request(made)["resourceSpans"]] * 2, **later}
    body = json.dumps(shuffled(document, choices), indent=indent).encode()
    batch = sorted_(body, binary=False)
    assert (batch.accepted, batch.plain, batch.rejected) == (38, 40, 0)
    expected = {json.dumps(each, sort_keys=True) for each in made[:19]}
    for entry in batch.entries:
        (group,) = json.loads(parse_span_entry(entry).body)["resourceSpans"]
        (scoped,) = group["scopeSpans"]
        assert group["resource"]["attributes"] == [{"key": "service.name", "value": {"stringValue": "search"}}]
        assert scoped["scope"] == {"name": "lib", "version": "2"}
        assert {json.dumps(each, sort_keys=True) for each in scoped["spans"]} <= expected


@pytest.mark.parametrize(
    ("name", "written"),
    [("resourceSpans", "resource\\u0053pans"), ("spans", "sp\\u0061ns"), ("traceId", "\\u0074raceId")],
)
def test_the_name_of_a_member_may_have_escapes(name: str, written: str) -> None:
    body = encoded(request([span(1, CHAT), span(2, PLAIN)]), binary=False)
    batch = sorted_(body.replace(f'"{name}"'.encode(), f'"{written}"'.encode()), binary=False)
    assert (batch.accepted, batch.plain, batch.rejected) == (1, 1, 0)
    assert len(list(spans_in(batch.entries[0]))) == 2


@pytest.mark.parametrize("ai", [True, False])
def test_no_step_decodes_more_than_one_span_of_json(monkeypatch: pytest.MonkeyPatch, ai: bool) -> None:
    decoded: list[int] = []

    def loads(data: bytes) -> Any:
        decoded.append(len(data))
        return json.loads(data)

    monkeypatch.setattr(
        otlp_json, "orjson", SimpleNamespace(loads=loads, dumps=orjson.dumps, JSONDecodeError=ValueError)
    )
    spans = [span(number, CHAT if ai else PLAIN) for number in range(1, 200)]
    spans += [span(200, CHAT | {"x": "y" * 500_000}), span(201, PLAIN | {"x": "y" * 5_000_000})]
    batch = sorted_(encoded(request(spans), binary=False), binary=False)
    assert batch.accepted == (200 if ai else 1)
    assert 0 < max(decoded) < SPANS_MAX_BYTES


@BOTH
def test_a_trace_of_many_spans_is_several_entries(binary: bool) -> None:
    made = [span(number, CHAT) for number in range(1, GATHERED_MAX + 10)]
    batch = sorted_(encoded(request(made), binary=binary), binary=binary)
    assert [len(list(spans_in(entry))) for entry in batch.entries] == [GATHERED_MAX, 9]


@given(
    st.lists(
        st.sampled_from([b"gen_ai.", b"gen_", b"ai.", b"x", b"ai.toolCall", b"mcp.method.nam", b"e"]), max_size=60
    ),
    st.data(),
)
def test_marks_are_found_in_the_parts_of_a_body_that_have_them(pieces: list[bytes], data: st.DataObject) -> None:
    body = b"".join(pieces)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(body)), max_size=8)))
    marks = Marks(body)
    for begin, end in itertools.pairwise(cuts):
        expected = any(mark in body[begin:end] for mark in MARKS)
        if end <= marks.clear:
            assert not expected
            continue
        assert answered(marks.within(begin, end)) == expected


def answered(steps: Generator[None, None, bool]) -> bool:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return bool(end.value)


@BOTH
def test_an_empty_request_is_fine(binary: bool) -> None:
    batch = sorted_(b"" if binary else b"{}", binary=binary)
    assert (batch.accepted, batch.plain, batch.entries) == (0, 0, [])


def test_a_request_of_countless_spans_is_refused() -> None:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    scope.scope.name = "gen_ai."
    for _ in range(ITEMS_MAX + 10):
        scope.spans.add()
    with pytest.raises(RefusedError, match="send smaller batches"):
        sorted_(request.SerializeToString(), binary=True)


@BOTH
def test_spans_without_content_are_counted_with_what_turns_it_on(binary: bool) -> None:
    official = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "m"}
    spans = [span(1, official), span(2, official), span(3, {"openinference.span.kind": "RETRIEVER"}), span(4, CHAT)]
    spans += [span(5, agent), span(6, {"openinference.span.kind": "CHAIN"})]
    batch = sorted_(encoded(request(spans), binary=binary), binary=binary)
    assert (batch.accepted, batch.rejected) == (6, 0)
    assert "2 spans have no content: set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true" in batch.message
    assert "1 span has no content: set OPENINFERENCE_HIDE_INPUTS=false" in batch.message


_METADATA = {
    "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m",
    "gen_ai.response.id": "r-1", "gen_ai.response.model": "m-1", "gen_ai.response.finish_reasons": "stop",
    "gen_ai.usage.input_tokens": "7", "gen_ai.usage.output_tokens": "9",
}  # fmt: skip
_VERCEL = {"ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "m", "ai.response.id": "r-1"}
_TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.request.model": "m"}


@BOTH
@pytest.mark.parametrize(
    ("attributes", "warned"),
    [
        (_METADATA, True),
        (_METADATA | {"gen_ai.output.messages": "[]"}, False),
        ({"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": "kb"}, True),
        ({"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "boots"}, False),
        (_VERCEL, True),
        (_VERCEL | {"ai.response.text": "yes"}, False),
        (_TOOL, False),
    ],
    ids=["chat", "chat with text", "retrieval", "retrieval with text", "Vercel", "Vercel with text", "tool call"],
)
def test_metadata_of_an_answer_is_no_content_and_a_tool_call_needs_none(
    attributes: dict[str, Any], warned: bool, binary: bool
) -> None:
    batch = sorted_(encoded(request([span(1, attributes)]), binary=binary), binary=binary)
    assert batch.remedies.total() == warned


def test_log_records_about_ai_become_entries_by_their_trace() -> None:
    made = ExportLogsServiceRequest()
    scope = made.resource_logs.add().scope_logs.add()
    about = scope.log_records.add(trace_id=bytes.fromhex(TRACE), span_id=bytes(7) + b"\1", event_name="gen_ai.choice")
    about.body.string_value = "yes"
    scope.log_records.add(trace_id=bytes.fromhex(TRACE)).body.string_value = "GET /"
    scope.log_records.add(event_name="gen_ai.choice")
    batch = sorted_(made.SerializeToString(), binary=True, signal="logs")
    assert (batch.accepted, batch.plain, batch.rules) == (1, 1, {"invalid_ids": 1})
    (entry,) = map(parse_span_entry, batch.entries)
    assert (entry.signal, entry.trace_id) == ("logs", TRACE)
    (kept,) = ExportLogsServiceRequest.FromString(entry.body).resource_logs[0].scope_logs[0].log_records
    assert kept == about


@given(st.binary(max_size=400), st.booleans())
@settings(max_examples=400)
def test_any_bytes_are_read_or_refused(body: bytes, marked: bool) -> None:
    for binary in (True, False):
        with contextlib.suppress(RefusedError):
            sorted_(body + (b"gen_ai." if marked else b""), binary=binary)


@given(st.data())
@settings(max_examples=300)
def test_any_damage_to_a_request_is_answered(data: st.DataObject) -> None:
    body = bytearray(as_protobuf(request([span(n, CHAT | PLAIN) for n in range(1, 4)])).SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    del body[data.draw(st.integers(0, len(body))) :]
    try:
        batch = sorted_(bytes(body), binary=True)
    except RefusedError:
        return
    for entry in batch.entries:
        list(spans_in(entry))


def test_answers_are_those_of_the_protocol() -> None:
    assert otlp_answer.success("traces", binary=True) == b""
    told = ExportTraceServiceResponse.FromString(otlp_answer.success("traces", 300, "a" * 200, binary=True))
    assert (told.partial_success.rejected_spans, told.partial_success.error_message) == (300, "a" * 200)
    assert json.loads(otlp_answer.success("logs", 2, "why", binary=False)) == {
        "partialSuccess": {"rejectedLogRecords": "2", "errorMessage": "why"}
    }


def test_an_entry_comes_back_as_it_was_and_damage_is_refused() -> None:
    entry = SpanEntry("shop", "", TRACE, "traces", "protobuf", os.urandom(50) + b"\n" + os.urandom(50))
    assert parse_span_entry(entry.encoded()) == entry
    for damaged in (b"", b"{}", b"{}\n", b"[]\nx", entry.encoded().replace(b"traces", b"tracks"), entry.body):
        with pytest.raises(SpanEntryError):
            parse_span_entry(damaged)


def test_a_whole_batch_of_spans_with_structured_messages_is_accepted() -> None:
    def text(value: str) -> dict[str, Any]:
        return {"stringValue": value}

    def fields(**members: Any) -> dict[str, Any]:
        return {"kvlistValue": {"values": [{"key": key, "value": value} for key, value in members.items()]}}

    part = fields(type=text("text"), content=text("How long are rows kept?"))
    message = fields(role=text("user"), parts={"arrayValue": {"values": [part]}})
    messages = {"key": "gen_ai.input.messages", "value": {"arrayValue": {"values": [message] * 20}}}
    spans = []
    for number in range(1, 513):
        made = span(number, {"gen_ai.operation.name": "chat"})
        made["attributes"].append(messages)
        spans.append(made)
    batch = sorted_(encoded(request(spans), binary=False), binary=False)
    assert sum(len(list(spans_in(entry))) for entry in batch.entries) == 512


@pytest.mark.parametrize(
    "body",
    [
        b'{"resourceSpans":[%b]}' % b",".join([b"{}"] * 50_000),
        b'{"resourceSpans":[%b]}' % b",".join([b'{"scopeSpans":[{}]}'] * 20_000),
        b"{%b}" % b",".join([b'"x":{}'] * 50_000),
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b]}]}]}' % b",".join([b'{"x":"%b"}' % (b"y" * 100_000)] * 100),
    ],
    ids=["resources", "scopes", "members", "large spans"],
)
def test_a_body_without_spans_about_ai_is_read_in_steps_too(body: bytes) -> None:
    batch = SpanBatch(RECORD, "traces", False)
    assert sum(1 for _ in batch.read(body)) > 15
