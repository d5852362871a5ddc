"""Spans of scrubbed events, by the semantic conventions of OpenTelemetry for generative AI. Pure.

Texts (arguments, results, queries, passages, questions, answers) are left out unless asked for. A few attributes of
OpenInference are added, because its backends do not read the others.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from assay_otlp_exporter.place import Place, context_of, place_of, span_id_of
from assay_schema.events import ScrubbedAnswer, ScrubbedEvent, ScrubbedRetrieval, ScrubbedToolCall
from assay_schema.fields import Kind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: Longer durations, which the contract allows, begin before 1970 in any case.
_LONGEST_MS = 1e13
#: Results of a tool call that are errors; all others are a success.
_FAILED = ("error", "refused")
_JSON = "application/json"

Value = str | int | float | bool


def span_of(event: ScrubbedEvent, *, as_child: bool, content: bool) -> Span | None:
    """Return the span of a tool call, a retrieval or an answer; None for other kinds."""
    match event:
        case ScrubbedToolCall():
            span = _tool_call(event, content=content)
            ended, duration_ms = event.payload.timestamp, event.payload.duration_ms
        case ScrubbedRetrieval():
            span = _retrieval(event, content=content)
            ended, duration_ms = event.occurred_at, event.payload.latency_ms
        case ScrubbedAnswer():
            span = _answer(event, content=content)
            ended, duration_ms = event.occurred_at, event.payload.latency_ms
        case _:
            return None
    # The caller of an event that came over OTLP is the span that it was, which cannot be the parent of itself.
    put(span, place_of(event.event_id, context_of(event.traceparent), as_child=as_child and event.origin != "otlp"))
    span.span_id = event_span_id(event.event_id, event.kind)
    span.end_time_unix_nano = nanoseconds(ended)
    span.start_time_unix_nano = max(0, span.end_time_unix_nano - int(min(duration_ms, _LONGEST_MS) * 1_000_000))
    common: dict[str, Value | None] = {
        "gen_ai.conversation.id": event.session_id,
        "session.id": event.session_id,
        "assay.event_id": str(event.event_id),
        "assay.project": event.project,
        "assay.policy": event.policy,
    }
    set_attributes(span.attributes, common)
    return span


def event_span_id(event_id: UUID, kind: Kind) -> bytes:
    """Return the id of an event's span."""
    return span_id_of(f"{event_id}/{kind.value}")


def put(span: Span, place: Place) -> None:
    """Put a span in its place."""
    span.trace_id, span.parent_span_id, span.flags = place.trace_id, place.parent_id, place.flags
    if place.linked:
        trace_id, span_id, flags = place.linked
        span.links.append(Span.Link(trace_id=trace_id, span_id=span_id, flags=flags))


def nanoseconds(moment: datetime) -> int:
    """Return a time as Unix nanoseconds; 0 for one before 1970, which OTLP cannot express."""
    return max(0, (moment - _EPOCH) // _MICROSECOND * 1_000)


def set_attributes(target: Any, values: Mapping[str, Value | None]) -> None:
    """Add attributes to a repeated field, without those that are None.

    Adding them in place takes a quarter of the time of building each and copying it.
    """
    for key, value in values.items():
        if value is None:
            continue
        field = target.add(key=key).value
        match value:
            case str():  # most are
                field.string_value = value
            case bool():  # before int, of which it is one
                field.bool_value = value
            case int():
                field.int_value = value
            case float():
                field.double_value = value


def _span(name: str, kind: Span.SpanKind.ValueType, values: Mapping[str, Value | None]) -> Span:
    span = Span(name=name, kind=kind)
    set_attributes(span.attributes, values)
    return span


def _tool_call(event: ScrubbedToolCall, *, content: bool) -> Span:
    call = event.payload
    failed = call.status in _FAILED
    error = (call.error_kind or call.status) if failed else None
    values: dict[str, Value | None] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool_name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.call_id,
        "gen_ai.agent.name": call.agent_name,
        "error.type": error,
        "assay.status": call.status,
        "openinference.span.kind": "TOOL",
        "tool.name": call.tool_name,
    }
    if content:
        arguments, result = _json(call.args_summary), _json(call.result_summary)
        values |= {"gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": result}
        values |= {"input.value": arguments, "input.mime_type": arguments and _JSON}
        values |= {"output.value": result, "output.mime_type": result and _JSON}
    span = _span(f"execute_tool {call.tool_name}", Span.SPAN_KIND_INTERNAL, values)
    span.status.code = Status.STATUS_CODE_ERROR if failed else Status.STATUS_CODE_OK
    span.status.message = error or ""
    return span


def _retrieval(event: ScrubbedRetrieval, *, content: bool) -> Span:
    found = event.payload
    source = found.source_ids[0] if len(found.source_ids) == 1 else None
    hits = max(len(found.retrieved_chunk_ids), len(found.retrieved_ids), len(found.passages))
    values: dict[str, Value | None] = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": source,
        "gen_ai.request.model": found.embedding_model,
        "assay.retrieval.hits": hits,
        "openinference.span.kind": "RETRIEVER",
    }
    if content:
        values |= {
            "gen_ai.retrieval.query.text": found.query,
            "gen_ai.retrieval.documents": orjson.dumps(_documents(event)).decode(),
            "input.value": found.query,
        }
    return _span(f"retrieval {source}" if source else "retrieval", Span.SPAN_KIND_CLIENT, values)


def _documents(event: ScrubbedRetrieval) -> list[dict[str, Any]]:
    """Return the hits in result order: with texts if the event has them, else ids and scores."""
    found = event.payload
    if found.passages:
        return [{"id": each.id, "score": each.score, "content": each.text} for each in found.passages]
    ids = found.retrieved_ids or [str(each) for each in found.retrieved_chunk_ids]
    scores = found.retrieved_scores if len(found.retrieved_scores) == len(ids) else [None] * len(ids)
    return [{"id": each, "score": score} for each, score in zip(ids, scores, strict=True)]


def _answer(event: ScrubbedAnswer, *, content: bool) -> Span:
    answer = event.payload
    values: dict[str, Value | None] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": answer.model,
        "openinference.span.kind": "LLM",
        "llm.model_name": answer.model,
    }
    if content:
        values |= {
            "gen_ai.input.messages": _message("user", answer.query),
            "gen_ai.output.messages": _message("assistant", answer.answer),
            "input.value": answer.query,
            "output.value": answer.answer,
        }
    return _span(f"chat {answer.model}", Span.SPAN_KIND_CLIENT, values)


def _message(role: str, text: str) -> str:
    return orjson.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}]).decode()


def _json(value: dict[str, Any] | None) -> str | None:
    return None if value is None else orjson.dumps(value).decode()
