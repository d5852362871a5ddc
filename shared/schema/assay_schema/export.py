"""Rows of the NDJSON export, version 1. The first seventeen fields of `RetrievalRow` are fixed for ever; others only join after them."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from assay_schema.events import Citation, Context, Detail, Model, UtcDatetime
from assay_schema.limits import SAFE_INTEGER_MAX

RowId = Annotated[int, Field(ge=0, le=SAFE_INTEGER_MAX, description="Unique, stable across exports, in log order.")]


class RetrievalRow(Model):
    """`assay export --kind retrieval`: one captured retrieval."""

    schema_version: Literal[1]
    id: RowId
    tool_name: Literal["query", "search"]
    query: str
    retrieved_slugs: list[str]
    retrieved_chunk_ids: list[int]
    source_ids: list[str]
    expand_enabled: bool | None
    detail: Detail | None
    detail_resolved: Detail | None
    vector_enabled: bool
    expansion_applied: bool
    latency_ms: float
    remote: bool
    job_id: int | None
    subagent_id: int | None
    created_at: UtcDatetime
    event_id: UUID
    project: str
    service: str
    occurred_at: UtcDatetime
    traceparent: str | None
    retrieved_scores: list[float]
    embedding_model: str | None
    params: dict[str, Any]
    pii_families: dict[str, int]
    policy: str


class AnswerRow(Model):
    """`assay export --kind answer`: one captured answer."""

    schema_version: Literal[1]
    id: RowId
    query: str
    answer: str
    contexts: list[Context]
    citations: list[Citation]
    model: str
    latency_ms: float
    retrieval_event_id: UUID | None
    created_at: UtcDatetime
    event_id: UUID
    project: str
    service: str
    occurred_at: UtcDatetime
    traceparent: str | None
    pii_families: dict[str, int]
    policy: str


class FeedbackRow(Model):
    """`assay export --kind feedback`: one person's verdict."""

    schema_version: Literal[1]
    id: RowId
    target_event_id: UUID
    verdict: Literal["positive", "negative"]
    text: str | None
    user_hash: str | None
    created_at: UtcDatetime
    event_id: UUID
    project: str
    service: str
    occurred_at: UtcDatetime
    traceparent: str | None
    pii_families: dict[str, int]
    policy: str
