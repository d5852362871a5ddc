"""Capture events: the envelope and its payload kinds, as producers send them and as the scrubber passes them on.

Producers' JSON is untrusted: `Event` is strict about types, keeps unknown keys out, and names no content in its errors.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.types import UUID7

from assay_schema.limits import (
    ITEMS_MAX,
    NAME_MAX_CHARS,
    NESTING_MAX,
    QUERY_MAX_CHARS,
    SAFE_INTEGER_MAX,
    SERVICE_MAX_CHARS,
    TEXT_MAX_BYTES,
)


class Kind(StrEnum):
    """What happened. The payload's shape follows from it."""

    RETRIEVAL = "retrieval"
    ANSWER = "answer"
    TOOL_CALL = "tool_call"
    SERVER_EVENT = "server_event"
    SESSION = "session"
    FEEDBACK = "feedback"


#: The kinds this version has tables for. The others are known, and refused by the scrubber until they have.
STORED_KINDS = (Kind.RETRIEVAL, Kind.ANSWER, Kind.FEEDBACK)


def _within_text_limit(text: str) -> str:
    if len(text) * 4 > TEXT_MAX_BYTES and len(text.encode("utf-8", "surrogatepass")) > TEXT_MAX_BYTES:
        raise ValueError(f"longer than {TEXT_MAX_BYTES} bytes")
    return text


def _distinct(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def _within_nesting_limit(value: Any) -> Any:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > NESTING_MAX:
            raise ValueError(f"nested deeper than {NESTING_MAX} levels")
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
    return value


Project = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Service = Annotated[str, StringConstraints(min_length=1, max_length=SERVICE_MAX_CHARS)]
Traceparent = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$")]
Name = Annotated[str, StringConstraints(max_length=NAME_MAX_CHARS)]
Names = Annotated[list[Name], Field(max_length=ITEMS_MAX)]
DistinctNames = Annotated[Names, AfterValidator(_distinct)]
Query = Annotated[str, StringConstraints(max_length=QUERY_MAX_CHARS)]
Text = Annotated[str, AfterValidator(_within_text_limit)]
SafeInt = Annotated[int, Field(ge=-SAFE_INTEGER_MAX, le=SAFE_INTEGER_MAX)]
Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Score = Annotated[float, Field(allow_inf_nan=False)]
UtcDatetime = Annotated[AwareDatetime, AfterValidator(_utc)]
FreeJson = Annotated[dict[str, Any], Field(max_length=ITEMS_MAX), AfterValidator(_within_nesting_limit)]
Detail = Literal["low", "medium", "high"]


class Model(BaseModel):
    """Strict about types, silent about unknown keys (they are kept out), and never echoing input in errors."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, hide_input_in_errors=True)


class Retrieval(Model):
    """One retrieval: what was asked and which chunks came back, in result order."""

    tool_name: Literal["query", "search"] = Field(description="The operation that retrieved.")
    query: Query = Field(description="What was asked. At most 51,200 characters.")
    retrieved_slugs: DistinctNames = Field(description="Distinct document slugs in result order.")
    retrieved_chunk_ids: Annotated[list[SafeInt], Field(max_length=ITEMS_MAX)] = Field(
        description="Every chunk id in result order, duplicates kept: one per hit."
    )
    source_ids: DistinctNames = Field(default_factory=list, description="Distinct sources across the result.")
    expand_enabled: bool | None = Field(
        default=None, description="Whether the caller asked for query expansion. Null for `search`."
    )
    detail: Detail | None = Field(default=None, description="Detail level the caller asked for.")
    detail_resolved: Detail | None = Field(default=None, description="Detail level the search used.")
    vector_enabled: bool = Field(default=False, description="True if and only if vector search ran.")
    expansion_applied: bool = Field(default=False, description="True if and only if expansion produced variants.")
    latency_ms: Milliseconds = Field(description="Wall-clock time of the retrieval, in milliseconds.")
    remote: bool = Field(default=False, description="True for untrusted remote callers, false for local ones.")
    job_id: SafeInt | None = Field(default=None, description="The caller's job, when it was a subagent.")
    subagent_id: SafeInt | None = Field(default=None, description="The caller's subagent.")
    retrieved_scores: Annotated[list[Score], Field(max_length=ITEMS_MAX)] = Field(
        default_factory=list, description="One score per hit, in result order; empty if the search has none."
    )
    embedding_model: Name | None = Field(default=None, description="The embedding model, when vector search ran.")
    params: FreeJson = Field(default_factory=dict, description="Other parameters of the search, as JSON.")

    @model_validator(mode="before")
    @classmethod
    def _search_has_no_expansion(cls, value: Any) -> Any:
        if (
            isinstance(value, dict)
            and value.get("tool_name") == "search"
            and isinstance(value.get("expand_enabled"), bool)
        ):
            return {**value, "expand_enabled": None}
        return value


class Context(Model):
    """One passage given to the model."""

    id: Name
    source_id: Name | None = None
    text: Text = Field(description="The passage. At most 256 KiB of UTF-8.")
    score: Score | None = None


class Citation(Model):
    """Which passage supports which claim."""

    context_id: Name
    claim: Text | None = None


class Answer(Model):
    """One answer, with the passages it was given and the citations it made."""

    query: Query = Field(description="What was asked. At most 51,200 characters.")
    answer: Text = Field(description="What was answered. At most 256 KiB of UTF-8.")
    contexts: Annotated[list[Context], Field(max_length=ITEMS_MAX)] = Field(default_factory=list)
    citations: Annotated[list[Citation], Field(max_length=ITEMS_MAX)] = Field(default_factory=list)
    model: Name = Field(description="The model that answered.")
    latency_ms: Milliseconds = Field(description="Wall-clock time of the answer, in milliseconds.")
    retrieval_event_id: UUID7 | None = Field(
        default=None, description="The `event_id` of the retrieval it was built on."
    )


class Feedback(Model):
    """A person's verdict on an earlier event."""

    target_event_id: UUID7 = Field(description="The `event_id` judged.")
    verdict: Literal["positive", "negative"]
    text: Text | None = Field(default=None, description="What the person said. At most 256 KiB of UTF-8.")
    user_hash: Name | None = Field(default=None, description="A pseudonym of the person, made by the producer.")


class ToolEvent(Model):
    """One tool call, or one event of the server that runs the tools."""

    timestamp: UtcDatetime
    server_session_id: Name
    kind: Literal["tool_call", "server_event"]
    tool_name: Name | None = None
    args_summary: FreeJson | None = None
    status: Literal["success", "empty", "partial", "degraded", "error", "refused"] | None = None
    error_kind: Name | None = None
    duration_ms: Milliseconds | None = None
    result_summary: FreeJson | None = None
    event_subtype: Name | None = None
    message: Text | None = None


class Session(Model):
    """A transcript in the Vertex-native form: a request, a response, and the tool calls between."""

    session_id: Name
    title: Text | None = None
    created: UtcDatetime
    request: FreeJson
    response: FreeJson
    intermediate_events: Annotated[list[FreeJson], Field(max_length=ITEMS_MAX)] = Field(default_factory=list)
    metadata: FreeJson = Field(default_factory=dict)


class Envelope(Model):
    """What every event carries, whatever its kind."""

    schema_version: Literal[1]
    event_id: UUID7 = Field(description="UUIDv7 made by the producer: the idempotency key from SDK to table.")
    project: Project = Field(
        default="default", description="The tenant. Letters, digits, `.`, `_`, `-`; at most 64 characters."
    )
    service: Service = Field(description="The producer's OpenTelemetry `service.name`.")
    occurred_at: UtcDatetime = Field(description="When it happened, by the producer's clock, in UTC with microseconds.")
    traceparent: Traceparent | None = Field(default=None, description="W3C trace context of the caller.")


class RetrievalEvent(Envelope):
    """A retrieval as captured."""

    kind: Literal[Kind.RETRIEVAL]
    payload: Retrieval


class AnswerEvent(Envelope):
    """An answer as captured."""

    kind: Literal[Kind.ANSWER]
    payload: Answer


class FeedbackEvent(Envelope):
    """Feedback as captured."""

    kind: Literal[Kind.FEEDBACK]
    payload: Feedback


class ToolCallEvent(Envelope):
    """A tool call as captured."""

    kind: Literal[Kind.TOOL_CALL]
    payload: ToolEvent


class ServerEventEvent(Envelope):
    """A tool server's event as captured."""

    kind: Literal[Kind.SERVER_EVENT]
    payload: ToolEvent


class SessionEvent(Envelope):
    """A session's transcript as captured."""

    kind: Literal[Kind.SESSION]
    payload: Session


#: Stream `capture`: one of the six kinds, told apart by `kind`.
Event = Annotated[
    RetrievalEvent | AnswerEvent | FeedbackEvent | ToolCallEvent | ServerEventEvent | SessionEvent,
    Field(discriminator="kind"),
]


class Scrubbed(Model):
    """What the scrubber adds. `id` and `created_at` come from the capture entry, so a redelivered entry has the same ones."""

    id: Annotated[int, Field(ge=0, le=SAFE_INTEGER_MAX)] = Field(description="Place in the log; unique, below 2^53.")
    created_at: UtcDatetime = Field(description="When the log received the capture entry (Redis clock, milliseconds).")
    pii_families: dict[str, int] = Field(
        default_factory=dict, description="How many findings of each family were removed."
    )
    policy: str = Field(description="Fingerprint of the scrubbing policy that was applied.")


class ScrubbedRetrieval(Scrubbed, RetrievalEvent):
    """A retrieval without personal data."""


class ScrubbedAnswer(Scrubbed, AnswerEvent):
    """An answer without personal data."""


class ScrubbedFeedback(Scrubbed, FeedbackEvent):
    """Feedback without personal data."""


#: Stream `events`: the kinds that are stored, scrubbed.
ScrubbedEvent = Annotated[ScrubbedRetrieval | ScrubbedAnswer | ScrubbedFeedback, Field(discriminator="kind")]
