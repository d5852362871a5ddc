"""Capture events: the envelope and its payload kinds, as sent by producers and as scrubbed.

Producers' JSON is untrusted: `Event` is strict about types and drops unknown keys. Parse it with
`assay_schema.validation`: an error of pydantic may quote the rejected value, an `InvalidEvent` never does.
"""

from typing import Annotated, Literal

from pydantic import (
    FailFast,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from assay_schema.fields import (
    ChunkIds,
    Count,
    Detail,
    DistinctNames,
    EventId,
    FreeJson,
    Kind,
    Milliseconds,
    Model,
    Name,
    Names,
    Origin,
    PiiCategories,
    PiiFamilies,
    Project,
    Query,
    SafeInt,
    SchemaVersion,
    Score,
    Scores,
    Service,
    Text,
    ToolStatus,
    Traceparent,
    UserHash,
    UtcDatetime,
)
from assay_schema.limits import (
    ITEMS_MAX,
    SAFE_INTEGER_MAX,
)


class Context(Model):
    """One passage: found by a retrieval, or given to the model."""

    id: Name = Field(description="The passage's own id, which citations name.")
    source_id: Name | None = Field(default=None, description="The source it comes from.")
    text: Text = Field(description="The passage. At most 256 KiB of UTF-8.")
    score: Score | None = Field(default=None, description="Its score in the search that found it.")


Passages = Annotated[list[Context], Field(max_length=ITEMS_MAX), FailFast()]


class Retrieval(Model):
    """One retrieval: the query and the chunks returned, in result order."""

    tool_name: Literal["query", "search"] = Field(description="The operation that retrieved.")
    query: Query = Field(description="The query. At most 51,200 characters.")
    retrieved_slugs: DistinctNames = Field(description="Distinct document slugs in result order.")
    retrieved_chunk_ids: ChunkIds = Field(description="Every chunk id in result order, duplicates kept: one per hit.")
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
    retrieved_scores: Scores = Field(
        default_factory=list, description="One score per hit, in result order; empty if the search has none."
    )
    embedding_model: Name | None = Field(default=None, description="The embedding model, when vector search ran.")
    params: FreeJson = Field(default_factory=dict, description="Other parameters of the search, as JSON.")
    retrieved_ids: Names = Field(
        default_factory=list,
        description="Every hit's id in the producer's index, in result order, if ids are not integers.",
    )
    passages: Passages = Field(default_factory=list, description="The texts found, in result order.")

    @field_validator("expand_enabled")
    @classmethod
    def _search_has_no_expansion(cls, value: bool | None, info: ValidationInfo) -> bool | None:
        return None if info.data.get("tool_name") == "search" else value


class Citation(Model):
    """A citation: the passage that supports a claim."""

    context_id: Name = Field(description="The `id` of the passage cited.")
    claim: Text | None = Field(default=None, description="The claim it supports. At most 256 KiB of UTF-8.")


class Answer(Model):
    """One answer, with the passages given to the model and the citations it made."""

    query: Query = Field(description="The question. At most 51,200 characters.")
    answer: Text = Field(description="The answer. At most 256 KiB of UTF-8.")
    contexts: Passages = Field(default_factory=list, description="The passages the model was given, in their order.")
    citations: Annotated[list[Citation], Field(max_length=ITEMS_MAX), FailFast()] = Field(
        default_factory=list, description="The passages the answer cites."
    )
    model: Name = Field(description="The model that answered.")
    latency_ms: Milliseconds = Field(description="Wall-clock time of the answer, in milliseconds.")
    retrieval_event_id: EventId | None = Field(
        default=None, description="The `event_id` of the retrieval it was built on."
    )


class Feedback(Model):
    """A person's verdict on an earlier event."""

    target_event_id: EventId = Field(description="The `event_id` judged.")
    verdict: Literal["positive", "negative"] = Field(description="The person's verdict.")
    text: Text | None = Field(default=None, description="The person's comment. At most 256 KiB of UTF-8.")
    user_hash: Name | None = Field(default=None, description="A pseudonym of the person, made by the producer.")


class ToolEvent(Model):
    """One tool call, or one event of the server that runs the tools.

    The first eleven fields are those of the event file, in its order.
    """

    timestamp: UtcDatetime = Field(description="Time of the event, by the server's clock.")
    server_session_id: Name = Field(description="One run of the server.")
    kind: Literal["tool_call", "server_event"] = Field(description="The envelope's `kind` again.")
    tool_name: Name | None = Field(default=None, description="The tool called. Null for a server's event.")
    args_summary: FreeJson | None = Field(default=None, description="The call's arguments, as JSON.")
    status: ToolStatus | None = Field(default=None, description="Result of the call. Null for a server's event.")
    error_kind: Name | None = Field(default=None, description="The kind of error, if `status` is `error` or `refused`.")
    duration_ms: Milliseconds | None = Field(default=None, description="Wall-clock time of the call, in milliseconds.")
    result_summary: FreeJson | None = Field(default=None, description="Counts and fingerprints of the result, as JSON.")
    event_subtype: Name | None = Field(default=None, description="The kind of server event. Null for a tool call.")
    message: Text | None = Field(default=None, description="Description of a server event. At most 256 KiB of UTF-8.")
    call_id: Name | None = Field(default=None, description="Id of the call by its server or agent.")
    agent_name: Name | None = Field(default=None, description="The agent that made the call.")
    parent_call_id: Name | None = Field(
        default=None, description="`call_id` of the call within which this one was made."
    )
    exit_code: SafeInt | None = Field(default=None, description="Exit code, if the tool ran a command.")
    seq: Count | None = Field(default=None, description="Position within `server_session_id`, from 0.")


class ToolCall(ToolEvent):
    """One tool call."""

    kind: Literal["tool_call"] = Field(description="The envelope's `kind` again.")
    tool_name: Annotated[Name, Field(min_length=1)] = Field(description="The tool called.")
    status: ToolStatus = Field(description="Result of the call.")
    duration_ms: Milliseconds = Field(description="Wall-clock time of the call, in milliseconds.")
    event_subtype: None = Field(default=None, description="Always null: server events have one.")
    message: None = Field(default=None, description="Always null: server events have one.")

    @field_validator("error_kind")
    @classmethod
    def _only_errors_have_a_kind(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("status", "error") not in ("error", "refused"):
            raise PydanticCustomError("error_kind_without_error", "only with the status error or refused")
        return value


class ServerEvent(ToolEvent):
    """One event of the server that runs the tools."""

    kind: Literal["server_event"] = Field(description="The envelope's `kind` again.")
    tool_name: None = Field(default=None, description="Always null: tool calls have one.")
    status: None = Field(default=None, description="Always null: tool calls have one.")
    error_kind: None = Field(default=None, description="Always null: tool calls have one.")
    duration_ms: None = Field(default=None, description="Always null: tool calls have one.")
    event_subtype: Literal["server_start", "server_stop", "schema_version_mismatch", "events_path_init"] = Field(
        description="The kind of server event."
    )
    message: Text = Field(description="Description of the event. At most 256 KiB of UTF-8.")


class Session(Model):
    """A session in the Vertex-native form, or a part of it: request, response, tool calls between.

    Every part states what applies to the whole session. The lists of the parts follow one another.
    """

    session_id: Name = Field(description="The session's own id.")
    title: Text | None = Field(default=None, description="The session's title. At most 256 KiB of UTF-8.")
    created: UtcDatetime = Field(description="When the session began.")
    request: FreeJson = Field(description="`contents` of the conversation up to the last question, as JSON.")
    response: FreeJson = Field(description="`candidates` with the last answer, as JSON.")
    intermediate_events: Annotated[list[FreeJson], Field(max_length=ITEMS_MAX), FailFast()] = Field(
        default_factory=list, description="Tool calls and their results, in order, as JSON."
    )
    metadata: FreeJson = Field(default_factory=dict, description="Anything else about the session, as JSON.")
    revision: Count = Field(
        default=0, description="Version of the session: the time of its last change (Unix milliseconds)."
    )
    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{0,64}$")] = Field(
        default="", description="Hash of the sizes of everything in the session, never of its text."
    )
    part: Annotated[int, Field(ge=1, le=ITEMS_MAX)] = Field(default=1, description="Number of this part, from 1.")
    parts: Annotated[int, Field(ge=1, le=ITEMS_MAX)] = Field(default=1, description="Number of parts of this revision.")
    updated: UtcDatetime | None = Field(default=None, description="Time of the last change; `created` by default.")
    source: Annotated[Name, Field(min_length=1)] = Field(
        default="jsonl", description="The agent whose log was read, such as `opencode`."
    )
    source_version: Name | None = Field(default=None, description="Version of the agent.")
    status: Literal["answered", "unanswered", "aborted"] = Field(
        default="answered", description="How the session ended."
    )
    parent_session_id: Name | None = Field(
        default=None, description="The session whose agent started this one as a sub-agent."
    )
    forked_from: Name | None = Field(default=None, description="The session that this one began as a copy of.")
    model: Name | None = Field(default=None, description="The model that answered last.")
    turns: Count = Field(default=0, description="Turns of the session, of both roles.")
    tools: Count = Field(default=0, description="Tool calls of the agent.")
    tool_errors: Count = Field(default=0, description="Tool calls of the agent that failed or were refused.")
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Cost in US dollars, as the agent's log states it."
    )
    input_tokens: Count = Field(default=0, description="Tokens of the prompts, as the agent's log counts them.")
    output_tokens: Count = Field(default=0, description="Tokens of the answers, as the agent's log counts them.")

    @field_validator("parts")
    @classmethod
    def _part_is_one_of_parts(cls, value: int, info: ValidationInfo) -> int:
        if info.data.get("part", 1) > value:
            raise PydanticCustomError("part_beyond_parts", "less than the number of this part")
        return value


class Envelope(Model):
    """Fields of every event, of any kind."""

    schema_version: SchemaVersion = Field(description="Version of this format: 1.")
    event_id: EventId = Field(description="UUIDv7 made by the producer: the idempotency key from SDK to table.")
    project: Project = Field(
        default="default", description="The tenant. Letters, digits, `.`, `_`, `-`; at most 64 characters."
    )
    service: Service = Field(
        description="The producer's OpenTelemetry `service.name`. No control characters; at most 255 characters."
    )
    occurred_at: UtcDatetime = Field(
        description="Time of the event, by the producer's clock, in UTC with microseconds."
    )
    traceparent: Traceparent | None = Field(default=None, description="W3C trace context of the caller.")
    session_id: Name | None = Field(default=None, description="The conversation that the event belongs to.")
    user_hash: UserHash | None = Field(
        default=None,
        description="The user, as a keyed hash made by the producer: 32 to 128 hexadecimal digits. Never a raw id.",
    )
    origin: Origin | None = Field(
        default=None, description="How the event was sent: by the SDK, plain HTTP or OpenTelemetry. Null if unknown."
    )
    partial: bool = Field(
        default=False,
        description="True if a part was left out before scrubbing: attributes of a span, or what is over a limit in one.",
    )


class RetrievalEvent(Envelope):
    """A retrieval as captured."""

    kind: Literal[Kind.RETRIEVAL] = Field(description="The kind of event; it determines the payload's shape.")
    payload: Retrieval = Field(description="The captured data.")


class AnswerEvent(Envelope):
    """An answer as captured."""

    kind: Literal[Kind.ANSWER] = Field(description="The kind of event; it determines the payload's shape.")
    payload: Answer = Field(description="The captured data.")


class FeedbackEvent(Envelope):
    """Feedback as captured."""

    kind: Literal[Kind.FEEDBACK] = Field(description="The kind of event; it determines the payload's shape.")
    payload: Feedback = Field(description="The captured data.")


class ToolCallEvent(Envelope):
    """A tool call as captured."""

    kind: Literal[Kind.TOOL_CALL] = Field(description="The kind of event; it determines the payload's shape.")
    payload: ToolCall = Field(description="The captured data.")


class ServerEventEvent(Envelope):
    """A tool server's event as captured."""

    kind: Literal[Kind.SERVER_EVENT] = Field(description="The kind of event; it determines the payload's shape.")
    payload: ServerEvent = Field(description="The captured data.")


class SessionEvent(Envelope):
    """A session's transcript as captured."""

    kind: Literal[Kind.SESSION] = Field(description="The kind of event; it determines the payload's shape.")
    payload: Session = Field(description="The captured data.")


#: Stream `capture`: one of the six kinds, distinguished by `kind`.
Event = Annotated[
    RetrievalEvent | AnswerEvent | FeedbackEvent | ToolCallEvent | ServerEventEvent | SessionEvent,
    Field(discriminator="kind"),
]


class Scrubbed(Model):
    """Fields added by the scrubber.

    `id` and `created_at` come from the capture entry, so a redelivered entry has the same values.
    """

    id: Annotated[int, Field(ge=0, le=SAFE_INTEGER_MAX)] = Field(description="Position in the log; unique, below 2^53.")
    created_at: UtcDatetime = Field(description="When the log received the capture entry (Redis clock, milliseconds).")
    pii_families: PiiFamilies = Field(default_factory=dict, description="Number of removed findings by family.")
    policy: Name = Field(description="Fingerprint of the scrubbing policy that was applied.")
    pii_attempted: PiiCategories = Field(
        default_factory=list,
        description="Categories of personal data that were found, whether or not the policy removed them.",
    )
    pii_blocked: PiiCategories = Field(
        default_factory=list,
        description="The subset of these categories that was removed: redacted, labelled or hashed.",
    )


class ScrubbedRetrieval(Scrubbed, RetrievalEvent):
    """A retrieval without personal data."""


class ScrubbedAnswer(Scrubbed, AnswerEvent):
    """An answer without personal data."""


class ScrubbedFeedback(Scrubbed, FeedbackEvent):
    """Feedback without personal data."""


class ScrubbedToolCall(Scrubbed, ToolCallEvent):
    """A tool call without personal data."""


class ScrubbedServerEvent(Scrubbed, ServerEventEvent):
    """A tool server's event without personal data."""


class ScrubbedSession(Scrubbed, SessionEvent):
    """A session, or a part of one, without personal data."""


#: Stream `events`: scrubbed.
ScrubbedEvent = Annotated[
    ScrubbedRetrieval | ScrubbedAnswer | ScrubbedFeedback | ScrubbedToolCall | ScrubbedServerEvent | ScrubbedSession,
    Field(discriminator="kind"),
]
