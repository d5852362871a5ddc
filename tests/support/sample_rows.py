"""Build rows of the base tables in the writer's format, for tests and benchmarks of the store."""

import json
import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import orjson

from assay_operations.export.sql import SOURCES
from assay_schema.export import ROWS
from assay_schema.fields import Kind
from assay_schema.ids import first_row_at, new_event_id
from assay_writer.rows import COLUMNS

Json = dict[str, Any]


def event_id_at(ms: int) -> str:
    """Return a new UUIDv7 with the given Unix millisecond."""
    return str(UUID(int=UUID(new_event_id()).int & ((1 << 80) - 1) | ms << 80))


def iso(ms: int) -> str:
    """Return a Unix millisecond in the contract's time format."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _envelope(number: int, days_old: float, project: str) -> Json:
    ms = int(time.time() * 1000 - days_old * 86_400_000) + number
    return {
        "schema_version": 1,
        "id": first_row_at(ms),
        "created_at": iso(ms),
        "event_id": event_id_at(ms - 5),
        "project": project,
        "service": "search",
        "occurred_at": iso(ms - 5),
        "traceparent": None,
        "pii_families": {"email": 2},
        "policy": "p1",
        "pii_attempted": ["contact"],
        "pii_blocked": ["contact"],
        "session_id": None,
        "user_hash": None,
        "origin": "sdk",
        "partial": False,
    }


def candidate(number: int = 0, *, days_old: float = 0, project: str = "default", **fields: Any) -> Json:
    """Return a retrieval; `number` is added to its time in milliseconds, so that rows differ."""
    return {
        **_envelope(number, days_old, project),
        "tool_name": "query",
        "query": "how do I rotate the signing key?",
        "retrieved_slugs": ["guides/keys", "guides/rotation"],
        "retrieved_chunk_ids": [7, 9, 9],
        "source_ids": ["docs"],
        "expand_enabled": True,
        "detail": None,
        "detail_resolved": "low",
        "vector_enabled": True,
        "expansion_applied": False,
        "latency_ms": 12.5,
        "remote": True,
        "job_id": None,
        "subagent_id": None,
        "retrieved_scores": [0.9, 0.1 + 0.2, 5e-324],
        "embedding_model": "embed-3",
        "params": '{"k":10,"weights":[0.6,1e-7],"note":null}',
        "retrieved_ids": [],
        "passages": [],
        **fields,
    }


def answer(number: int = 0, *, days_old: float = 0, project: str = "default", **fields: Any) -> Json:
    """Return an answer with one passage and one citation."""
    return {
        **_envelope(number, days_old, project),
        "query": "how do I rotate the signing key?",
        "answer": "Run the rotation job.",
        "contexts": [{"id": "c1", "source_id": None, "text": "The rotation job ...", "score": 0.1 + 0.2}],
        "citations": [{"context_id": "c1", "claim": None}],
        "model": "model-1",
        "latency_ms": 900.0,
        "retrieval_event_id": None,
        **fields,
    }


def feedback(number: int = 0, *, days_old: float = 0, project: str = "default", **fields: Any) -> Json:
    """Return a verdict."""
    return {
        **_envelope(number, days_old, project),
        "target_event_id": new_event_id(),
        "verdict": "positive",
        "text": None,
        "user_hash": None,
        **fields,
    }


def tool_call(number: int = 0, *, days_old: float = 0, project: str = "default", **fields: Any) -> Json:
    """Return a tool call that succeeded."""
    envelope = _envelope(number, days_old, project)
    return {
        **envelope,
        "timestamp": envelope["occurred_at"],
        "server_session_id": "run-1",
        "tool_name": "search_docs",
        "args_summary": '{"query":"signing key"}',
        "status": "success",
        "error_kind": None,
        "duration_ms": 47.5,
        "result_summary": '{"matches":3}',
        "call_id": f"call-{number}",
        "agent_name": "helper",
        "parent_call_id": None,
        "exit_code": None,
        "seq": number,
        **fields,
    }


def server_event(number: int = 0, *, days_old: float = 0, project: str = "default", **fields: Any) -> Json:
    """Return the start of a tool server."""
    envelope = _envelope(number, days_old, project)
    return {
        **envelope,
        "timestamp": envelope["occurred_at"],
        "server_session_id": "run-1",
        "args_summary": None,
        "result_summary": None,
        "event_subtype": "server_start",
        "message": "started",
        "call_id": None,
        "agent_name": None,
        "parent_call_id": None,
        "exit_code": None,
        "seq": None,
        **fields,
    }


def session_part(number: int = 0, *, days_old: float = 0, project: str = "default", **fields: Any) -> Json:
    """Return a session of two turns and one tool call, whole in one part."""
    envelope = _envelope(number, days_old, project)
    return {
        **envelope,
        "session_id": f"ses_{number}",
        "revision": 1,
        "digest": "ab12",
        "part": 1,
        "parts": 1,
        "title": "Find the flaky test",
        "created": envelope["occurred_at"],
        "updated": envelope["occurred_at"],
        "source": "opencode",
        "source_version": "1.18.33",
        "status": "answered",
        "parent_session_id": None,
        "forked_from": None,
        "model": "model-1",
        "turns": 2,
        "tools": 1,
        "tool_errors": 0,
        "cost_usd": 0.0125,
        "input_tokens": 1200,
        "output_tokens": 80,
        "request": '{"contents":[{"role":"user","parts":[{"text":"Which test is flaky?"}]}]}',
        "response": '{"candidates":[{"content":{"role":"model","parts":[{"text":"The third."}]}}]}',
        "intermediate_events": '[{"function_call":{"name":"bash","args":{"command":"make test"}},"turn":1}]',
        "metadata": '{"total_turns":2}',
        **fields,
    }


def imported_call(name: str, args: Json | None = None, **fields: Any) -> Json:
    """Return a tool call of a session's document, an item of `intermediate_events`."""
    return {
        "function_call": {"name": name, "args": args or {}},
        "function_response": {"name": name, "response": {"output": "done"}},
        "turn": 2,
        "status": "success",
        "executed_by": "agent",
        **fields,
    }


#: What makes a row of each kind.
MAKE = {
    Kind.RETRIEVAL: candidate,
    Kind.ANSWER: answer,
    Kind.FEEDBACK: feedback,
    Kind.TOOL_CALL: tool_call,
    Kind.SERVER_EVENT: server_event,
    Kind.SESSION: session_part,
}
#: The export row of each table of events, its columns that hold JSON as text, and those that its view adds.
ROW_OF = {SOURCES[kind].view: ROWS[kind] for kind in Kind}
JSON_COLUMNS = {"params", "args_summary", "result_summary", "request", "response", "intermediate_events", "metadata"}
ALWAYS: dict[str, Json] = {
    "tool_calls": {"kind": "tool_call", "event_subtype": None, "message": None},
    "server_events": {
        "kind": "server_event",
        "tool_name": None,
        "status": None,
        "error_kind": None,
        "duration_ms": None,
    },
}

#: The judge of `score`.
FINGERPRINT = "0123456789abcdef"


def score(*, faithfulness: float | None = None, status: str = "scored", days_old: float = 0, **fields: Any) -> Json:
    """Return a judge's score of an answer, which cost 0.0025 dollars if the judge was called."""
    ms = int(time.time() * 1000 - days_old * 86_400_000)
    return {
        "schema_version": 1,
        "score_id": str(uuid4()),
        "event_id": event_id_at(ms),
        "project": "default",
        "service": "search",
        "judged_at": iso(ms),
        "status": status,
        "base": True,
        "inclusion_probability": 1.0,
        "base_probability": 1.0,
        "metrics": {} if faithfulness is None else {"faithfulness": faithfulness},
        "checks": {"not_empty": True},
        "boosts": [],
        "fingerprint": FINGERPRINT,
        "backend": "lexical",
        "model": "lexical-1",
        "prompt_hash": "00000000",
        "schema_hash": "00000000",
        "effort": None,
        "claims": 2,
        "contradicted": 0,
        "demoted": 0,
        "cost_usd": 0.0025 if status == "scored" else 0.0,
        "input_tokens": 100,
        "output_tokens": 10,
        "detail": "",
        **fields,
    }


def label(number: int = 0, *, days_old: float = 0, project: str = "default", **fields: Any) -> Json:
    """Return a person's label of an answer."""
    ms = int(time.time() * 1000 - days_old * 86_400_000) + number
    return {
        "schema_version": 1,
        "label_id": new_event_id(),
        "event_id": event_id_at(ms - 5),
        "created_at": iso(ms),
        "project": project,
        "queue": "default",
        "label": "good",
        "labeller": "ana",
        "labelled_at": iso(ms),
        "note": "",
        "supersedes": None,
        "withdrawn": False,
        **fields,
    }


def contradiction_pair(number: int = 0, *, days_old: float = 0, project: str = "default", **fields: Any) -> Json:
    """Return a pair of documents that was judged a contradiction."""
    ms = int(time.time() * 1000 - days_old * 86_400_000) + number
    return {
        "schema_version": 1,
        "result_id": str(uuid4()),
        "run_id": str(uuid4()),
        "project": project,
        "started_at": iso(ms),
        "created_at": iso(ms),
        "place": number,
        "pair_id": f"pair-{number}",
        "pair_key": f"key-{number}",
        "query": "how fast may I ask?",
        "documents": ["guides/limits", "guides/old"],
        "texts": ["The limit is 5.", "The limit is 9."],
        "stratum": "numbers",
        "probability": 1.0,
        "verdict": "contradiction",
        "severity": "high",
        "confidence": 0.9,
        "claims": ["The limit is 5.", "The limit is 9."],
        "reason": "5 is not 9",
        "judge_error": "",
        "finding_id": f"finding-{number}",
        "state": "new",
        **fields,
    }


def contradiction_run(number: int = 0, *, days_old: float = 0, project: str = "default", **fields: Any) -> Json:
    """Return a run that judged 40 of 44 pairs, of which 4 are contradictions."""
    ms = int(time.time() * 1000 - days_old * 86_400_000) + number
    bounds = [0.03, 0.3]
    return {
        "schema_version": 1,
        "run_id": str(uuid4()),
        "project": project,
        "started_at": iso(ms),
        "completed_at": iso(ms + 60_000),
        "status": "completed",
        "prompt": "1-0123abcd",
        "model": "judge-2 0123456789abcdef",
        "sampling": "top 5, all pairs a question, 1500 characters a text",
        "scope": "50 newest captured questions since 30d",
        "queries": 12,
        "intended": 44,
        "judged": 40,
        "judge_errors": 4,
        "contradictions": 4,
        "rate": 0.1,
        "rate_low": 0.04,
        "rate_high": 0.23,
        "query_rate": 0.25,
        "query_rate_low": 0.09,
        "query_rate_high": 0.53,
        "cost_usd": 0.0125,
        "summary": json.dumps(
            {"findings_by_state": {"new": 1, "persisting": 3}, "rates": {"pairs": {"bounds": bounds}}}
        ),
        "pairs_gone": [],
        **fields,
    }


def contradiction_label(number: int = 0, *, days_old: float = 0, project: str = "default", **fields: Any) -> Json:
    """Return a person's label of a pair of documents."""
    ms = int(time.time() * 1000 - days_old * 86_400_000) + number
    return {
        "schema_version": 1,
        "label_id": new_event_id(),
        "result_id": str(uuid4()),
        "run_id": str(uuid4()),
        "project": project,
        "pair_id": f"pair-{number}",
        "created_at": iso(ms),
        "label": "confirm",
        "probability": None,
        "labeller": "ana",
        "labelled_at": iso(ms),
        "note": "",
        **fields,
    }


def dataset_case(number: int = 0, *, project: str = "default", **fields: Any) -> Json:
    """Return the first version of a reviewed case."""
    return {
        "schema_version": 1,
        "project": project,
        "dataset": "golden",
        "case_id": f"case-{number}",
        "version": 1,
        "event_id": None,
        "query": "how do I rotate the signing key?",
        "expected_slugs": ["guides/keys"],
        "expected_chunk_ids": [7],
        "null_case": False,
        "expected_answer": None,
        "inclusion_probability": 1.0,
        "reviewer": "ana",
        "at": iso(int(time.time() * 1000) + number),
        "retired": False,
        **fields,
    }


def failure(number: int = 0, *, days_old: float = 0, project: str = "default", **fields: Any) -> Json:
    """Return a lost event."""
    return {
        "schema_version": 1,
        "failure_id": str(uuid4()),
        "event_id": None,
        "entry_id": f"{number}-0",
        "project": project,
        "service": "search",
        "stage": "scrubber",
        "reason": "check_violation",
        "error_class": "ValidationError",
        "detail": "payload.query: too long",
        "deliveries": 1,
        "created_at": iso(int(time.time() * 1000 - days_old * 86_400_000)),
        **fields,
    }


def by_column(table: str, values: bytes) -> dict[str, Any]:
    """Return the writer's row of a table, its values by column name."""
    return dict(zip(COLUMNS[table], orjson.loads(values), strict=True))


def lines(rows: list[Json]) -> bytes:
    """Return rows as JSONEachRow."""
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)
