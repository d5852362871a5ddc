"""The part of `Capture` for retrievals, answers and feedback."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar, Unpack
from uuid import UUID

from assay_capture.instrument import Described, RetrievalBlock, RetrievalFields, captured_function, refuse_unknown
from assay_capture.recorder import Recorder
from assay_schema.fields import Detail
from assay_schema.ids import new_event_id

F = TypeVar("F", bound=Callable[..., Any])


class RetrievalCapture(Recorder):
    """The methods of `Capture` for retrievals, answers and feedback."""

    def retrieval(
        self,
        *,
        tool_name: Literal["query", "search"],
        query: str,
        retrieved_slugs: Sequence[str],
        retrieved_chunk_ids: Sequence[int],
        source_ids: Collection[str] = (),
        expand_enabled: bool | None = None,
        detail: Detail | None = None,
        detail_resolved: Detail | None = None,
        vector_enabled: bool = False,
        expansion_applied: bool = False,
        latency_ms: float,
        remote: bool = False,
        job_id: int | None = None,
        subagent_id: int | None = None,
        retrieved_scores: Sequence[float] = (),
        embedding_model: str | None = None,
        params: Mapping[str, Any] | None = None,
        retrieved_ids: Sequence[str] = (),
        passages: Sequence[Mapping[str, Any]] = (),
        session_id: str | None = None,
        user_hash: str | None = None,
        project: str | None = None,
        occurred_at: datetime | None = None,
    ) -> str:
        """Capture one retrieval and return its `event_id`.

        The fields are those of `assay_schema.events.Retrieval`. Pass ids that are not integers as `retrieved_ids`, with
        an empty `retrieved_chunk_ids`. A passage is `{"id", "text"}`, optionally with `source_id` and `score`.
        `user_hash` is a keyed hash of your user in hexadecimal, never the id itself. `occurred_at` defaults to now; a
        naive datetime is read as UTC.
        """
        if not self._enabled:
            return new_event_id()
        return self._record(
            "retrieval",
            {
                "tool_name": tool_name,
                "query": query,
                "retrieved_slugs": retrieved_slugs,
                "retrieved_chunk_ids": retrieved_chunk_ids,
                "source_ids": source_ids,
                "expand_enabled": expand_enabled,
                "detail": detail,
                "detail_resolved": detail_resolved,
                "vector_enabled": vector_enabled,
                "expansion_applied": expansion_applied,
                "latency_ms": latency_ms,
                "remote": remote,
                "job_id": job_id,
                "subagent_id": subagent_id,
                "retrieved_scores": retrieved_scores,
                "embedding_model": embedding_model,
                "params": {} if params is None else params,
                "retrieved_ids": retrieved_ids,
                "passages": passages,
            },
            new_event_id(),
            project,
            occurred_at,
            session_id,
            user_hash,
        )

    def answer(
        self,
        *,
        query: str,
        answer: str,
        model: str,
        latency_ms: float,
        contexts: Sequence[Mapping[str, Any]] = (),
        citations: Sequence[Mapping[str, Any]] = (),
        retrieval_event_id: str | UUID | None = None,
        session_id: str | None = None,
        user_hash: str | None = None,
        project: str | None = None,
        occurred_at: datetime | None = None,
    ) -> str:
        """Capture one answer and return its `event_id`.

        A context is `{"id", "text"}`, optionally with `source_id` and `score`; a citation is `{"context_id"}`,
        optionally with `claim`. `retrieval_event_id` is the id returned by `retrieval`.
        """
        if not self._enabled:
            return new_event_id()
        return self._record(
            "answer",
            {
                "query": query,
                "answer": answer,
                "contexts": contexts,
                "citations": citations,
                "model": model,
                "latency_ms": latency_ms,
                "retrieval_event_id": retrieval_event_id,
            },
            new_event_id(),
            project,
            occurred_at,
            session_id,
            user_hash,
        )

    def feedback(
        self,
        *,
        target_event_id: str | UUID,
        verdict: Literal["positive", "negative"],
        text: str | None = None,
        user_hash: str | None = None,
        session_id: str | None = None,
        project: str | None = None,
        occurred_at: datetime | None = None,
    ) -> str:
        """Capture a person's verdict on an earlier event, and return the `event_id` of the feedback."""
        if not self._enabled:
            return new_event_id()
        return self._record(
            "feedback",
            {"target_event_id": target_event_id, "verdict": verdict, "text": text, "user_hash": user_hash},
            new_event_id(),
            project,
            occurred_at,
            session_id,
            None,
        )

    def retrieving(
        self, *, tool_name: Literal["query", "search"], query: str, **fields: Unpack[RetrievalFields]
    ) -> RetrievalBlock:
        """Return a `with` or `async with` block that times a retrieval.

        The event is captured at the end of the block if `result()` was called in it. An exception raised in the block
        passes through unchanged.
        """
        refuse_unknown("retrieving", fields)
        return RetrievalBlock(self._record_retrieval, self._drop, {"tool_name": tool_name, "query": query, **fields})

    def captured_retrieval(self, *, describe: Described) -> Callable[[F], F]:
        """Decorate a function, or a coroutine function, that retrieves. It is timed and otherwise unchanged.

        `describe(result, *args, **kwargs)` turns a call into the fields of `retrieval()`, except `latency_ms`. If it
        raises, the event is counted as dropped and the caller notices nothing. A call that raises is not captured.
        Neither is one that returns an iterator, since `describe` would consume it; a generator function is refused.
        """
        return lambda function: captured_function(function, describe, self._record_retrieval, self._drop)

    def _record_retrieval(self, event_id: str, fields: dict[str, Any]) -> None:
        if not self._enabled:
            return
        payload = dict(fields)
        about = (payload.pop(name, None) for name in ("project", "occurred_at", "session_id", "user_hash"))
        self._record("retrieval", payload, event_id, *about)
