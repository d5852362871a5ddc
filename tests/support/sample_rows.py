"""Build rows of the base tables in the writer's format, for tests and benchmarks of the store."""

import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import orjson

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
