"""Spans of the judge's verdicts. Pure.

A span cannot change once it was sent, and a verdict comes later. So a verdict is a short span below the judged one, with
one event `gen_ai.evaluation.result` for each metric. For OpenInference it is an evaluator that links to the judged span.
"""

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from assay_otlp_exporter.place import Context, Place, context_of, place_of, span_id_of
from assay_otlp_exporter.spans import Value, event_span_id, nanoseconds, put, set_attributes
from assay_schema.fields import Kind
from assay_schema.scores import Score


def verdict_span(score: Score, *, as_child: bool, is_sent: bool) -> Span | None:
    """Return the span of a verdict; None without a metric.

    `is_sent`: the answer is exported too, so that its span is the one that was judged.
    """
    if not score.metrics:
        return None
    span = Span(
        name="evaluate", kind=Span.SPAN_KIND_INTERNAL, span_id=span_id_of(f"{score.score_id}/{score.judged_at}")
    )
    put(span, _place(score, as_child=as_child, is_sent=is_sent))
    span.start_time_unix_nano = span.end_time_unix_nano = nanoseconds(score.judged_at)
    values: dict[str, Value | None] = {
        "gen_ai.conversation.id": score.session_id,
        "assay.event_id": str(score.event_id),
        "assay.project": score.project,
        "assay.judge.model": score.model,
        "assay.judge.fingerprint": score.fingerprint,
        "openinference.span.kind": "EVALUATOR",
    }
    annotator = "CODE" if score.backend == "lexical" else "LLM"
    for number, (metric, value) in enumerate(score.metrics.items()):
        result: dict[str, Value | None] = {
            "gen_ai.evaluation.name": metric.value,
            "gen_ai.evaluation.score.value": value,
        }
        event = span.events.add(name="gen_ai.evaluation.result", time_unix_nano=span.end_time_unix_nano)
        set_attributes(event.attributes, result)
        prefix = f"evaluations.{number}.evaluation"
        values |= {f"{prefix}.name": metric.value, f"{prefix}.score": value, f"{prefix}.annotator_kind": annotator}
    set_attributes(span.attributes, values)
    return span


def _place(score: Score, *, as_child: bool, is_sent: bool) -> Place:
    caller = context_of(score.traceparent)
    is_sent = is_sent and score.session_id is None
    # As in `span_of`; but if the answer is not sent, the span that came over OTLP is the judged one.
    as_child = as_child and not (is_sent and score.origin == "otlp")
    place = place_of(score.event_id, caller, as_child=as_child)
    if is_sent:
        judged = event_span_id(score.event_id, Kind.ANSWER)
        return Place(place.trace_id, judged, linked=Context(place.trace_id, judged, place.flags & 0xFF))
    return place._replace(linked=place.linked or caller)
