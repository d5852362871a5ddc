"""Log records about AI on their spans: instrumentations of the generations 1.28 to 1.36 have their texts there."""

from typing import Any

import orjson
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from assay_assembler.decode_json import UndecodableError
from assay_assembler.decode_logs import decode_logs
from assay_assembler.span import SpanEvent
from assay_assembler.trace import Trace
from tests.support.spans import TRACE, any_value, span, span_id

ASKED = SpanEvent("gen_ai.user.message", {"gen_ai.system": "openai", "content": "How long are rows kept?"})
SAID = SpanEvent(
    "gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Thirty days."}}
)
SILENT = span({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"})


def protobuf(*records: tuple[str, str, str, dict[str, Any]]) -> bytes:
    made = ExportLogsServiceRequest()
    scope = made.resource_logs.add().scope_logs.add()
    for event_name, old_name, span_hex, body in records:
        record = scope.log_records.add(
            trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(span_hex), event_name=event_name
        )
        record.body.CopyFrom(any_value(body))
        record.attributes.add(key="gen_ai.system", value=any_value("openai"))
        if old_name:
            record.attributes.add(key="event.name", value=any_value(old_name))
    return made.SerializeToString()


def as_json(name: str, span_hex: str) -> bytes:
    value = {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "How long are rows kept?"}}]}}
    record = {
        "traceId": TRACE.upper(),
        "spanId": span_hex,
        "body": value,
        "attributes": [
            {"key": "event.name", "value": {"stringValue": name}},
            {"key": "gen_ai.system", "value": {"stringValue": "openai"}},
        ],
    }
    return orjson.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record, 7, {}]}]}]})


@pytest.mark.parametrize("old", [False, True])
def test_records_become_events_by_their_new_and_their_old_name(old: bool) -> None:
    name = ASKED.name
    body = protobuf(("" if old else name, name if old else "", span_id(1), {"content": "How long are rows kept?"}))
    (found,) = decode_logs(body, "protobuf")
    assert (found.trace_id, found.span_id, found.event.name) == (TRACE, span_id(1), name)
    assert found.event.attributes["content"] == "How long are rows kept?"
    (same,) = decode_logs(as_json(name, span_id(1)), "json")
    assert same.event.attributes["content"] == "How long are rows kept?"
    assert same[:2] == found[:2]


def test_records_without_a_name_or_a_span_are_left_out_and_damage_is_refused() -> None:
    assert decode_logs(protobuf(("", "", span_id(1), {})), "protobuf") == []
    assert decode_logs(protobuf((ASKED.name, "", "", {})), "protobuf") == []
    for body, encoding in ((b"\xff", "protobuf"), (b"[", "json")):
        with pytest.raises(UndecodableError):
            decode_logs(body, encoding)  # type: ignore[arg-type]
    assert decode_logs(b"[]", "json") == []


@pytest.mark.parametrize("order", ["span first", "records first", "between"])
def test_an_answer_is_made_of_a_span_and_its_records_in_any_order(order: str) -> None:
    trace = Trace("shop", TRACE)
    steps = {
        "span first": [SILENT, ASKED, SAID],
        "records first": [ASKED, SAID, SILENT],
        "between": [ASKED, SILENT, SAID],
    }[order]
    for each in [*steps, ASKED]:  # the last one is a retry
        if isinstance(each, SpanEvent):
            trace.log(SILENT.span_id, each)
        else:
            trace.add(each)
    (made,) = trace.close()
    payload = orjson.loads(made.data)["payload"]
    assert (payload["query"], payload["answer"]) == ("How long are rows kept?", "Thirty days.")
    assert sum(trace.counts.values()) == 0


def test_records_of_a_span_that_never_comes_make_nothing() -> None:
    trace = Trace("shop", TRACE)
    trace.log(SILENT.span_id, SAID)
    assert trace.close() == []
