"""Read evaluations on spans: annotations of OpenInference, and events of OpenTelemetry."""

from collections.abc import Collection, Iterator
from typing import Any, Literal

from assay_assembler.span import Span
from assay_assembler.step import Verdict
from assay_assembler.values import first_text, identifier, indexed, number, text

#: Words for a verdict, compared without case.
POSITIVE = frozenset(
    {"positive", "thumbs_up", "thumbs up", "thumbs-up", "up", "good", "correct", "like", "yes", "pass", "helpful", "👍"}
)
NEGATIVE = frozenset(
    {
        "negative",
        "thumbs_down",
        "thumbs down",
        "thumbs-down",
        "down",
        "bad",
        "incorrect",
        "dislike",
        "no",
        "fail",
        "unhelpful",
        "👎",
    }
)
_EVENT = "gen_ai.evaluation.result"
_SCOPES: dict[str, Literal["span", "trace"]] = {"": "span", "trace.": "trace", "session.": "trace"}
#: Prefix of the list, prefix within an item, and what is judged.
_GROUPS = tuple(
    (f"{prefix}{kind}s.", f"{kind}.", scope)
    for prefix, scope in _SCOPES.items()
    for kind in ("annotation", "evaluation")
)


_LISTS = tuple(prefix for prefix, _, _ in _GROUPS)


def has_verdicts(span: Span) -> bool:
    """Return whether a span may have evaluations. Cheap, because every span is asked."""
    if "ations." in "\n".join(span.attributes):  # annotations, evaluations
        return any(name.startswith(_LISTS) for name in span.attributes) or _has_event(span)
    return _has_event(span)


def _has_event(span: Span) -> bool:
    return bool(span.events) and any(event.name == _EVENT for event in span.events)


def verdicts(span: Span, feedback_names: Collection[str]) -> tuple[Verdict, ...]:
    """Return all evaluations on a span. Those with a name of the project's feedback count as a person's."""
    return tuple(_verdicts(span, feedback_names))


def _verdicts(span: Span, feedback_names: Collection[str]) -> Iterator[Verdict]:
    for prefix, inner, scope in _GROUPS:
        for group in indexed(span.attributes, prefix):
            fields = {name.removeprefix(inner): value for name, value in group.items()}
            name = text(fields.get("name"))
            person = text(fields.get("annotator_kind")).upper() == "HUMAN"
            user = identifier(fields.get("identifier")) or identifier(span.attributes.get("user.id"))
            yield Verdict(
                name,
                verdict_of(fields.get("score"), fields.get("label")),
                text(fields.get("explanation")),
                person or name in feedback_names,
                scope,
                user,
            )
    for event in span.events:
        if event.name == _EVENT:
            said = event.attributes
            name = text(said.get("gen_ai.evaluation.name"))
            yield Verdict(
                name,
                verdict_of(said.get("gen_ai.evaluation.score.value"), said.get("gen_ai.evaluation.score.label")),
                first_text(said, "gen_ai.evaluation.explanation"),
                name in feedback_names,
                "span",
                identifier(span.attributes.get("user.id")),
                first_text(said, "gen_ai.response.id"),
            )


def verdict_of(score: Any, label: Any) -> Literal["positive", "negative"] | None:
    """Return the verdict that a label or else a score states; None if neither does."""
    word = text(label).strip().lower()
    if word in POSITIVE:
        return "positive"
    if word in NEGATIVE:
        return "negative"
    value = float(score) if isinstance(score, bool) else number(score)
    if value is None:
        return None
    return "positive" if value > 0 else "negative"
