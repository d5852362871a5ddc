"""From an entry of `events`, `failures`, `scores` or `alerts` to a row of its table. Pure.

The columns are named one by one: what a newer scrubber adds stays out until this code and the tables know it. Values are not checked
again; the scrubber did, and the tables' constraints refuse what breaks a limit. `event_time` and `ver` are made by the table.
"""

from collections.abc import Callable
from typing import Any

import orjson

from assay_schema.failures import UNKNOWN

Json = dict[str, Any]
#: Table, row as JSON, and the parts that tell this row from every other: the entry's `id` (or the failure's) and the event's.
Row = tuple[str, bytes, str]

CANDIDATES = "candidates"
ANSWERS = "answers"
FEEDBACK = "feedback"
CAPTURE_FAILURES = "capture_failures"
SCORES = "scores"
ALERTS = "alerts"
#: Tables whose rows come from producers, and have an `id`.
EVENT_TABLES = (CANDIDATES, ANSWERS, FEEDBACK)


#: What is wrong with an event of a kind that only a newer version stores.
NO_TABLE = "kind: has no table in this version"


class RowError(ValueError):
    """An entry that is no row of any table. The message names the field and the rule, never a value."""


def event_row(data: bytes) -> Row:
    """The row of a ScrubbedEvent's JSON. Raises `RowError`."""
    event = _load(data)
    try:
        kind, payload = event["kind"], event["payload"]
        maker = _MAKERS.get(kind)
        if maker is None:
            raise RowError(NO_TABLE)
        table, columns = maker
        return table, orjson.dumps(columns(event, payload)), f"{event['id']}:{event['event_id']}"
    except KeyError as missing:
        raise RowError(f"{missing.args[0]}: missing") from None
    except (TypeError, orjson.JSONEncodeError):
        raise RowError("payload: not the shape of its kind") from None


def failure_row(data: bytes) -> Row:
    """The row of a Failure's JSON. Raises `RowError`."""
    failure = _load(data)
    try:
        row = {
            "schema_version": failure.get("schema_version", 1),
            "failure_id": failure["failure_id"],
            "event_id": failure.get("event_id"),
            "entry_id": failure.get("entry_id"),
            "project": failure.get("project", UNKNOWN),
            "service": failure.get("service", UNKNOWN),
            "stage": failure["stage"],
            "reason": failure["reason"],
            "error_class": failure["error_class"],
            "detail": failure.get("detail", ""),
            "deliveries": failure.get("deliveries", 1),
            "created_at": failure["created_at"],
            "pii_attempted": failure.get("pii_attempted", []),
            "pii_blocked": failure.get("pii_blocked", []),
        }
    except KeyError as missing:
        raise RowError(f"{missing.args[0]}: missing") from None
    return CAPTURE_FAILURES, orjson.dumps(row), str(row["failure_id"])


def score_row(data: bytes) -> Row:
    """The row of a Score's JSON. Raises `RowError`."""
    score = _load(data)
    try:
        row = {name: score[name] for name in _SCORE_REQUIRED}
    except KeyError as missing:
        raise RowError(f"{missing.args[0]}: missing") from None
    row |= {name: score.get(name, default) for name, default in _SCORE_DEFAULTS.items()}
    return SCORES, orjson.dumps(row), f"{row['score_id']}:{row['judged_at']}"


_SCORE_REQUIRED = (
    "score_id", "event_id", "project", "service", "judged_at", "status", "base", "inclusion_probability", "fingerprint", "backend",
    "model", "prompt_hash", "schema_hash",
)  # fmt: skip
_SCORE_DEFAULTS: Json = {
    "schema_version": 1, "base_probability": 1.0, "metrics": {}, "checks": {}, "boosts": [], "effort": None, "claims": 0,
    "contradicted": 0, "demoted": 0, "cost_usd": 0.0, "input_tokens": 0, "output_tokens": 0, "detail": "",
}  # fmt: skip


def alert_row(data: bytes) -> Row:
    """The row of an Alert's JSON. Raises `RowError`."""
    alert = _load(data)
    try:
        row = {
            "schema_version": alert.get("schema_version", 1),
            **{name: alert[name] for name in _ALERT_REQUIRED},
            **{name: alert.get(name) for name in _ALERT_OR_NULL},
            **{name: alert.get(name, "") for name in _ALERT_OR_EMPTY},
            "interval": alert.get("interval") or [],
        }
    except KeyError as missing:
        raise RowError(f"{missing.args[0]}: missing") from None
    return ALERTS, orjson.dumps(row), str(row["transition_id"])


_ALERT_REQUIRED = (
    "alert_id", "transition_id", "sequence", "kind", "state", "previous", "severity", "project", "since", "at", "summary",
)  # fmt: skip
_ALERT_OR_NULL = ("service", "metric", "series", "value", "baseline", "effect", "n", "evidence")
_ALERT_OR_EMPTY = ("group", "query", "acknowledge")


def _load(data: bytes) -> Json:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise RowError("entry: not JSON") from None
    if not isinstance(value, dict):
        raise RowError("entry: not a JSON object")
    return value


def _envelope(event: Json) -> Json:
    """The columns that every kind has."""
    return {
        "schema_version": event["schema_version"],
        "id": event["id"],
        "created_at": event["created_at"],
        "event_id": event["event_id"],
        "project": event.get("project", "default"),
        "service": event["service"],
        "occurred_at": event["occurred_at"],
        "traceparent": event.get("traceparent"),
        "pii_families": event.get("pii_families", {}),
        "policy": event["policy"],
        "pii_attempted": event.get("pii_attempted", []),
        "pii_blocked": event.get("pii_blocked", []),
    }


def _candidate(event: Json, payload: Json) -> Json:
    return {
        **_envelope(event),
        "tool_name": payload["tool_name"],
        "query": payload["query"],
        "retrieved_slugs": payload["retrieved_slugs"],
        "retrieved_chunk_ids": payload["retrieved_chunk_ids"],
        "source_ids": payload.get("source_ids", []),
        "expand_enabled": payload.get("expand_enabled"),
        "detail": payload.get("detail"),
        "detail_resolved": payload.get("detail_resolved"),
        "vector_enabled": payload.get("vector_enabled", False),
        "expansion_applied": payload.get("expansion_applied", False),
        "latency_ms": payload["latency_ms"],
        "remote": payload.get("remote", False),
        "job_id": payload.get("job_id"),
        "subagent_id": payload.get("subagent_id"),
        "retrieved_scores": payload.get("retrieved_scores", []),
        "embedding_model": payload.get("embedding_model"),
        "params": orjson.dumps(payload.get("params", {})).decode(),
    }


def _answer(event: Json, payload: Json) -> Json:
    return {
        **_envelope(event),
        "query": payload["query"],
        "answer": payload["answer"],
        "contexts": [_context(context) for context in payload.get("contexts", [])],
        "citations": [_citation(citation) for citation in payload.get("citations", [])],
        "model": payload["model"],
        "latency_ms": payload["latency_ms"],
        "retrieval_event_id": payload.get("retrieval_event_id"),
    }


def _context(context: Json) -> Json:
    return {
        "id": context["id"],
        "source_id": context.get("source_id"),
        "text": context["text"],
        "score": context.get("score"),
    }


def _citation(citation: Json) -> Json:
    return {"context_id": citation["context_id"], "claim": citation.get("claim")}


def _feedback(event: Json, payload: Json) -> Json:
    return {
        **_envelope(event),
        "target_event_id": payload["target_event_id"],
        "verdict": payload["verdict"],
        "text": payload.get("text"),
        "user_hash": payload.get("user_hash"),
    }


_MAKERS: dict[str, tuple[str, Callable[[Json, Json], Json]]] = {
    "retrieval": (CANDIDATES, _candidate),
    "answer": (ANSWERS, _answer),
    "feedback": (FEEDBACK, _feedback),
}
