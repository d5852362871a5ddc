"""Rows of the NDJSON export, version 1.

The first seventeen fields of `RetrievalRow` are fixed permanently; new fields are only added after them. Enums are
closed. Consumers use names as keys and ignore unknown keys.
"""

from typing import Annotated, Literal

from pydantic import Field

from assay_schema.events import Citation, Passages
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
    Scores,
    Service,
    Text,
    ToolStatus,
    Traceparent,
    UserHash,
    UtcDatetime,
)
from assay_schema.limits import ITEMS_MAX, SAFE_INTEGER_MAX

RowVersion = Annotated[SchemaVersion, Field(description="Version of this format: 1.")]
RowId = Annotated[
    int, Field(ge=0, le=SAFE_INTEGER_MAX, description="Unique in its kind, stable across exports, in log order.")
]
RowEventId = Annotated[EventId, Field(description="UUIDv7 made by the producer.")]
RowProject = Annotated[Project, Field(description="The tenant.")]
RowService = Annotated[Service, Field(description="The producer's OpenTelemetry `service.name`.")]
CreatedAt = Annotated[UtcDatetime, Field(description="When the event was received, in UTC. Rows are ordered by it.")]
OccurredAt = Annotated[UtcDatetime, Field(description="Time of the event, by the producer's clock, in UTC.")]
RowTraceparent = Annotated[Traceparent | None, Field(description="W3C trace context of the caller.")]
RowPii = Annotated[PiiFamilies, Field(description="Number of removed findings by family.")]
RowAttempted = Annotated[
    PiiCategories,
    Field(description="Categories of personal data that were found, whether or not the policy removed them."),
]
RowBlocked = Annotated[
    PiiCategories, Field(description="The subset of these categories that was removed: redacted, labelled or hashed.")
]
RowSessionId = Annotated[Name | None, Field(description="The conversation that the event belongs to.")]
RowUserHash = Annotated[UserHash | None, Field(description="The user, as a keyed hash made by the producer.")]
RowOrigin = Annotated[
    Origin | None,
    Field(description="How the event was sent: by the SDK, plain HTTP or OpenTelemetry. Null if unknown."),
]
RowPartial = Annotated[bool, Field(description="True if the producer's side dropped a part of the event.")]
RowPolicy = Annotated[Name, Field(description="Fingerprint of the scrubbing policy that was applied.")]


class RetrievalRow(Model):
    """`assay export --kind retrieval`: one captured retrieval."""

    schema_version: RowVersion
    id: RowId
    tool_name: Literal["query", "search"] = Field(description="The operation that retrieved.")
    query: Query = Field(description="The query, scrubbed. At most 51,200 characters.")
    retrieved_slugs: DistinctNames = Field(description="Distinct document slugs in result order.")
    retrieved_chunk_ids: ChunkIds = Field(description="Every chunk id in result order, duplicates kept: one per hit.")
    source_ids: DistinctNames = Field(description="Distinct sources across the result.")
    expand_enabled: bool | None = Field(description="Whether the caller asked for query expansion. Null for `search`.")
    detail: Detail | None = Field(description="Detail level the caller asked for.")
    detail_resolved: Detail | None = Field(description="Detail level the search used.")
    vector_enabled: bool = Field(description="True if and only if vector search ran.")
    expansion_applied: bool = Field(description="True if and only if expansion produced variants.")
    latency_ms: Milliseconds = Field(description="Wall-clock time of the retrieval, in milliseconds.")
    remote: bool = Field(description="True for untrusted remote callers, false for local ones.")
    job_id: SafeInt | None = Field(description="The caller's job, when it was a subagent.")
    subagent_id: SafeInt | None = Field(description="The caller's subagent.")
    created_at: CreatedAt
    event_id: RowEventId
    project: RowProject
    service: RowService
    occurred_at: OccurredAt
    traceparent: RowTraceparent
    retrieved_scores: Scores = Field(description="One score per hit, in result order; empty if the search has none.")
    embedding_model: Name | None = Field(description="The embedding model, when vector search ran.")
    params: FreeJson = Field(description="Other parameters of the search, as JSON.")
    pii_families: RowPii
    policy: RowPolicy
    pii_attempted: RowAttempted = Field(default_factory=list)
    pii_blocked: RowBlocked = Field(default_factory=list)
    session_id: RowSessionId = None
    user_hash: RowUserHash = None
    origin: RowOrigin = None
    partial: RowPartial = False
    retrieved_ids: Names = Field(
        default_factory=list,
        description="Every hit's id in the producer's index, in result order, if ids are not integers.",
    )
    passages: Passages = Field(default_factory=list, description="The texts found, in result order, scrubbed.")


class AnswerRow(Model):
    """`assay export --kind answer`: one captured answer."""

    schema_version: RowVersion
    id: RowId
    query: Query = Field(description="The question, scrubbed. At most 51,200 characters.")
    answer: Text = Field(description="The answer, scrubbed. At most 256 KiB of UTF-8.")
    contexts: Passages = Field(description="The passages the model was given, in their order, scrubbed.")
    citations: Annotated[list[Citation], Field(max_length=ITEMS_MAX)] = Field(
        description="The passages the answer cites, scrubbed."
    )
    model: Name = Field(description="The model that answered.")
    latency_ms: Milliseconds = Field(description="Wall-clock time of the answer, in milliseconds.")
    retrieval_event_id: EventId | None = Field(description="The `event_id` of the retrieval it was built on.")
    created_at: CreatedAt
    event_id: RowEventId
    project: RowProject
    service: RowService
    occurred_at: OccurredAt
    traceparent: RowTraceparent
    pii_families: RowPii
    policy: RowPolicy
    pii_attempted: RowAttempted = Field(default_factory=list)
    pii_blocked: RowBlocked = Field(default_factory=list)
    session_id: RowSessionId = None
    user_hash: RowUserHash = None
    origin: RowOrigin = None
    partial: RowPartial = False


class FeedbackRow(Model):
    """`assay export --kind feedback`: one person's verdict."""

    schema_version: RowVersion
    id: RowId
    target_event_id: EventId = Field(description="The `event_id` judged.")
    verdict: Literal["positive", "negative"] = Field(description="The person's verdict.")
    text: Text | None = Field(description="The person's comment, scrubbed. At most 256 KiB of UTF-8.")
    user_hash: Name | None = Field(description="A pseudonym of the person, made by the producer.")
    created_at: CreatedAt
    event_id: RowEventId
    project: RowProject
    service: RowService
    occurred_at: OccurredAt
    traceparent: RowTraceparent
    pii_families: RowPii
    policy: RowPolicy
    pii_attempted: RowAttempted = Field(default_factory=list)
    pii_blocked: RowBlocked = Field(default_factory=list)
    session_id: RowSessionId = None
    origin: RowOrigin = None
    partial: RowPartial = False


class ToolCallRow(Model):
    """`assay export --kind tool_call`: one tool call.

    After `id` come the eleven fields of the event file, in its order.
    """

    schema_version: RowVersion
    id: RowId
    timestamp: UtcDatetime = Field(description="When the call ended, by the server's clock.")
    server_session_id: Name = Field(description="One run of the server.")
    kind: Literal["tool_call"] = Field(description="Always `tool_call`.")
    tool_name: Name = Field(description="The tool called.")
    args_summary: FreeJson | None = Field(description="The call's arguments, scrubbed and shortened, as JSON.")
    status: ToolStatus = Field(description="Result of the call.")
    error_kind: Name | None = Field(description="The kind of error, if `status` is `error` or `refused`.")
    duration_ms: Milliseconds = Field(description="Wall-clock time of the call, in milliseconds.")
    result_summary: FreeJson | None = Field(
        description="Counts and fingerprints of the result, scrubbed and shortened, as JSON."
    )
    event_subtype: Name | None = Field(description="Always null.")
    message: Text | None = Field(description="Always null.")
    call_id: Name | None = Field(description="Id of the call by its server or agent.")
    agent_name: Name | None = Field(description="The agent that made the call.")
    parent_call_id: Name | None = Field(description="`call_id` of the call within which this one was made.")
    exit_code: SafeInt | None = Field(description="Exit code, if the tool ran a command.")
    seq: Count | None = Field(description="Position within `server_session_id`, from 0.")
    created_at: CreatedAt
    event_id: RowEventId
    project: RowProject
    service: RowService
    occurred_at: OccurredAt
    traceparent: RowTraceparent
    pii_families: RowPii
    policy: RowPolicy
    pii_attempted: RowAttempted
    pii_blocked: RowBlocked
    session_id: RowSessionId
    user_hash: RowUserHash = None
    origin: RowOrigin = None
    partial: RowPartial = False


class ServerEventRow(Model):
    """`assay export --kind server_event`: one event of a tool server.

    It has the fields of a tool call.
    """

    schema_version: RowVersion
    id: RowId
    timestamp: UtcDatetime = Field(description="Time of the event, by the server's clock.")
    server_session_id: Name = Field(description="One run of the server.")
    kind: Literal["server_event"] = Field(description="Always `server_event`.")
    tool_name: Name | None = Field(description="Always null.")
    args_summary: FreeJson | None = Field(description="The server's arguments, scrubbed, as JSON.")
    status: Name | None = Field(description="Always null.")
    error_kind: Name | None = Field(description="Always null.")
    duration_ms: Milliseconds | None = Field(description="Always null.")
    result_summary: FreeJson | None = Field(description="More about the event, scrubbed, as JSON.")
    event_subtype: Literal["server_start", "server_stop", "schema_version_mismatch", "events_path_init"] = Field(
        description="The kind of server event."
    )
    message: Text = Field(description="Description of the event, scrubbed. At most 256 KiB of UTF-8.")
    call_id: Name | None = Field(description="Id of the call by its server or agent.")
    agent_name: Name | None = Field(description="The agent that made the call.")
    parent_call_id: Name | None = Field(description="`call_id` of the call within which this one was made.")
    exit_code: SafeInt | None = Field(description="Exit code, if the tool ran a command.")
    seq: Count | None = Field(description="Position within `server_session_id`, from 0.")
    created_at: CreatedAt
    event_id: RowEventId
    project: RowProject
    service: RowService
    occurred_at: OccurredAt
    traceparent: RowTraceparent
    pii_families: RowPii
    policy: RowPolicy
    pii_attempted: RowAttempted
    pii_blocked: RowBlocked
    session_id: RowSessionId
    user_hash: RowUserHash = None
    origin: RowOrigin = None
    partial: RowPartial = False


class SessionPartRow(Model):
    """`assay export --kind session`: one part of one revision of a session.

    `assay sessions export` joins the parts.
    """

    schema_version: RowVersion
    id: RowId
    session_id: Name = Field(description="The session's own id.")
    revision: Count = Field(description="Version of the session: the time of its last change (Unix milliseconds).")
    digest: Name = Field(description="Hash of the sizes of everything in the session, never of its text.")
    part: Count = Field(description="Number of this part, from 1.")
    parts: Count = Field(description="Number of parts of this revision.")
    title: Text | None = Field(description="The session's title, scrubbed. At most 256 KiB of UTF-8.")
    created: UtcDatetime = Field(description="When the session began.")
    updated: UtcDatetime = Field(description="Time of the last change.")
    source: Name = Field(description="The agent whose log was read.")
    source_version: Name | None = Field(description="Version of the agent.")
    status: Literal["answered", "unanswered", "aborted"] = Field(description="How the session ended.")
    parent_session_id: Name | None = Field(description="The session whose agent started this one as a sub-agent.")
    forked_from: Name | None = Field(description="The session that this one began as a copy of.")
    model: Name | None = Field(description="The model that answered last.")
    turns: Count = Field(description="Turns of the session, of both roles.")
    tools: Count = Field(description="Tool calls of the agent.")
    tool_errors: Count = Field(description="Tool calls of the agent that failed or were refused.")
    cost_usd: float | None = Field(description="Cost in US dollars, as the agent's log states it.")
    input_tokens: Count = Field(description="Tokens of the prompts, as the agent's log counts them.")
    output_tokens: Count = Field(description="Tokens of the answers, as the agent's log counts them.")
    request: FreeJson = Field(description="`contents` of this part, scrubbed, as JSON.")
    response: FreeJson = Field(description="`candidates` of this part, scrubbed, as JSON.")
    intermediate_events: list[FreeJson] = Field(description="Tool calls of this part and their results, as JSON.")
    metadata: FreeJson = Field(description="Anything else about the session, scrubbed, in its first part, as JSON.")
    created_at: CreatedAt
    event_id: RowEventId
    project: RowProject
    service: RowService
    occurred_at: OccurredAt
    traceparent: RowTraceparent
    pii_families: RowPii
    policy: RowPolicy
    pii_attempted: RowAttempted
    pii_blocked: RowBlocked
    user_hash: RowUserHash = None
    origin: RowOrigin = None
    partial: RowPartial = False


Row = RetrievalRow | AnswerRow | FeedbackRow | ToolCallRow | ServerEventRow | SessionPartRow
#: The model of each kind's rows.
ROWS: dict[Kind, type[Row]] = {
    Kind.RETRIEVAL: RetrievalRow,
    Kind.ANSWER: AnswerRow,
    Kind.FEEDBACK: FeedbackRow,
    Kind.TOOL_CALL: ToolCallRow,
    Kind.SERVER_EVENT: ServerEventRow,
    Kind.SESSION: SessionPartRow,
}
