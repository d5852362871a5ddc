"""Rows of the NDJSON export, version 1.

The first seventeen fields of `RetrievalRow` are fixed permanently; new fields are only added after them. Enums are
closed. Consumers use names as keys and ignore unknown keys.
"""

from typing import Annotated, Literal

from pydantic import Field

from assay_schema.events import (
    ChunkIds,
    Citation,
    Context,
    Detail,
    DistinctNames,
    EventId,
    FreeJson,
    Milliseconds,
    Model,
    Name,
    PiiCategories,
    PiiFamilies,
    Project,
    Query,
    SafeInt,
    SchemaVersion,
    Scores,
    Service,
    Text,
    Traceparent,
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


class AnswerRow(Model):
    """`assay export --kind answer`: one captured answer."""

    schema_version: RowVersion
    id: RowId
    query: Query = Field(description="The question, scrubbed. At most 51,200 characters.")
    answer: Text = Field(description="The answer, scrubbed. At most 256 KiB of UTF-8.")
    contexts: Annotated[list[Context], Field(max_length=ITEMS_MAX)] = Field(
        description="The passages the model was given, in their order, scrubbed."
    )
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
