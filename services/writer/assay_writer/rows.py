"""Convert entries of `events`, `failures`, `scores` and `alerts` to rows of their tables. Pure.

Columns are listed explicitly: fields added by a newer scrubber are left out until this code and the tables support
them. A row consists of its values alone, in the order of its table's `COLUMNS`, which is smaller and faster to parse
than an object that repeats the names. Values are not validated again: the scrubber did that, and the tables'
constraints reject what exceeds a limit. The table itself computes `event_time` and `ver`.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import orjson

from assay_schema.failures import UNKNOWN

Json = dict[str, Any]
#: Table, the values of `COLUMNS[table]` as a JSON array, and the key of the row: the `id` of the entry (or failure) and
#: that of the event.
Row = tuple[str, bytes, str]

CANDIDATES = "candidates"
ANSWERS = "answers"
FEEDBACK = "feedback"
TOOL_CALLS = "tool_calls"
SERVER_EVENTS = "server_events"
SESSION_PARTS = "session_parts"
CAPTURE_FAILURES = "capture_failures"
SCORES = "scores"
ALERTS = "alerts"
#: Tables whose rows come from producers, and have an `id`.
EVENT_TABLES = (CANDIDATES, ANSWERS, FEEDBACK, TOOL_CALLS, SERVER_EVENTS, SESSION_PARTS)


#: Rule for an event of a kind that only a newer version stores.
NO_TABLE = "kind: has no table in this version"


class RowError(ValueError):
    """An entry that is not a row of any table. The message names the field and the rule, never a value."""


def event_row(data: bytes) -> Row:
    """Return the row of a ScrubbedEvent's JSON. Raises `RowError`."""
    event = _load(data)
    try:
        kind, payload = event["kind"], event["payload"]
        maker = _MAKERS.get(kind)
        if maker is None:
            raise RowError(NO_TABLE)
        table, values = maker
        if kind == "session":
            event["session_id"] = payload["session_id"]
        elif kind == "feedback" and "user_hash" in payload and payload["user_hash"] is not None:
            event["user_hash"] = payload["user_hash"]
        row = _envelope(_ENVELOPE_DEFAULTS | event) + values(payload)
        return table, orjson.dumps(row), f"{event['id']}:{event['event_id']}"
    except KeyError as missing:
        raise RowError(f"{missing.args[0]}: missing") from None
    except (TypeError, orjson.JSONEncodeError):
        raise RowError("payload: does not have the shape of its kind") from None


def failure_row(data: bytes) -> Row:
    """Return the row of a Failure's JSON. Raises `RowError`."""
    failure = _FAILURE_DEFAULTS | _load(data)
    return CAPTURE_FAILURES, _dumps(CAPTURE_FAILURES, failure), str(failure["failure_id"])


def score_row(data: bytes) -> Row:
    """Return the row of a Score's JSON. Raises `RowError`."""
    score = _SCORE_DEFAULTS | _load(data)
    return SCORES, _dumps(SCORES, score), f"{score['score_id']}:{score['judged_at']}"


def alert_row(data: bytes) -> Row:
    """Return the row of an Alert's JSON. Raises `RowError`."""
    alert = _ALERT_DEFAULTS | _load(data)
    alert["interval"] = alert["interval"] or []
    return ALERTS, _dumps(ALERTS, alert), str(alert["transition_id"])


def _dumps(table: str, document: Json) -> bytes:
    try:
        return orjson.dumps([document[name] for name in COLUMNS[table]])
    except KeyError as missing:
        raise RowError(f"{missing.args[0]}: missing") from None


def _load(data: bytes) -> Json:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise RowError("entry: not JSON") from None
    if not isinstance(value, dict):
        raise RowError("entry: not a JSON object")
    return value


def _candidate(payload: Json) -> tuple[Any, ...]:
    payload = _CANDIDATE_DEFAULTS | payload
    payload["params"] = orjson.dumps(payload["params"]).decode()
    payload["passages"] = [_context(passage) for passage in payload["passages"]]
    return _candidate_values(payload)


def _answer(payload: Json) -> tuple[Any, ...]:
    query, answer, contexts, citations, *others = _answer_values(_ANSWER_DEFAULTS | payload)
    return query, answer, [_context(context) for context in contexts], [_citation(each) for each in citations], *others


def _context(context: Json) -> Json:
    return {
        "id": context["id"],
        "source_id": context.get("source_id"),
        "text": context["text"],
        "score": context.get("score"),
    }


def _citation(citation: Json) -> Json:
    return {"context_id": citation["context_id"], "claim": citation.get("claim")}


def _feedback(payload: Json) -> tuple[Any, ...]:
    return _feedback_values(_FEEDBACK_DEFAULTS | payload)


def _tool_call(payload: Json) -> tuple[Any, ...]:
    return _tool_call_values(_with_json(_CALL_DEFAULTS | payload, "args_summary", "result_summary"))


def _server_event(payload: Json) -> tuple[Any, ...]:
    return _server_event_values(_with_json(_CALL_DEFAULTS | payload, "args_summary", "result_summary"))


def _session(payload: Json) -> tuple[Any, ...]:
    payload = _with_json(_SESSION_DEFAULTS | payload, "request", "response", "intermediate_events", "metadata")
    payload["updated"] = payload["updated"] or payload["created"]
    return _session_values(payload)


def _with_json(payload: Json, *names: str) -> Json:
    """Replace free-form JSON by its text."""
    for name in names:
        if payload[name] is not None:
            payload[name] = orjson.dumps(payload[name]).decode()
    return payload


#: The columns of every kind, then those of each kind; and the default of each optional field.
_ENVELOPE = (
    "schema_version", "id", "created_at", "event_id", "project", "service", "occurred_at", "traceparent", "pii_families", "policy",
    "pii_attempted", "pii_blocked", "session_id", "user_hash", "origin", "partial",
)  # fmt: skip
_ENVELOPE_DEFAULTS: Json = {
    "project": "default", "traceparent": None, "pii_families": {}, "pii_attempted": [], "pii_blocked": [],
    "session_id": None, "user_hash": None, "origin": None, "partial": False,
}  # fmt: skip
_CANDIDATE = (
    "tool_name", "query", "retrieved_slugs", "retrieved_chunk_ids", "source_ids", "expand_enabled", "detail", "detail_resolved",
    "vector_enabled", "expansion_applied", "latency_ms", "remote", "job_id", "subagent_id", "retrieved_scores", "embedding_model",
    "params", "retrieved_ids", "passages",
)  # fmt: skip
_CANDIDATE_DEFAULTS: Json = {
    "source_ids": [], "expand_enabled": None, "detail": None, "detail_resolved": None, "vector_enabled": False,
    "expansion_applied": False, "remote": False, "job_id": None, "subagent_id": None, "retrieved_scores": [],
    "embedding_model": None, "params": {}, "retrieved_ids": [], "passages": [],
}  # fmt: skip
_ANSWER = ("query", "answer", "contexts", "citations", "model", "latency_ms", "retrieval_event_id")
_ANSWER_DEFAULTS: Json = {"contexts": [], "citations": [], "retrieval_event_id": None}
_FEEDBACK = ("target_event_id", "verdict", "text")
_FEEDBACK_DEFAULTS: Json = {"text": None}
_CALL_OF = ("call_id", "agent_name", "parent_call_id", "exit_code", "seq")
_TOOL_CALL = (
    "timestamp", "server_session_id", "tool_name", "args_summary", "status", "error_kind", "duration_ms", "result_summary", *_CALL_OF,
)  # fmt: skip
_SERVER_EVENT = (
    "timestamp",
    "server_session_id",
    "args_summary",
    "result_summary",
    "event_subtype",
    "message",
    *_CALL_OF,
)
_CALL_DEFAULTS: Json = {"args_summary": None, "error_kind": None, "result_summary": None, **dict.fromkeys(_CALL_OF)}
_SESSION_DEFAULTS: Json = {
    "intermediate_events": [], "metadata": {}, "title": None, "revision": 0, "digest": "", "part": 1, "parts": 1, "updated": None,
    "source": "jsonl", "source_version": None, "status": "answered", "parent_session_id": None, "forked_from": None, "model": None,
    "turns": 0, "tools": 0, "tool_errors": 0, "cost_usd": None, "input_tokens": 0, "output_tokens": 0,
}  # fmt: skip
_SESSION = ("created", "request", "response", *_SESSION_DEFAULTS)
_FAILURE_DEFAULTS: Json = {
    "schema_version": 1, "event_id": None, "entry_id": None, "project": UNKNOWN, "service": UNKNOWN, "detail": "", "deliveries": 1,
    "pii_attempted": [], "pii_blocked": [],
}  # fmt: skip
_SCORE_DEFAULTS: Json = {
    "schema_version": 1, "base_probability": 1.0, "metrics": {}, "checks": {}, "boosts": [], "effort": None, "claims": 0,
    "contradicted": 0, "demoted": 0, "cost_usd": 0.0, "input_tokens": 0, "output_tokens": 0, "detail": "", "verdicts": [],
    "session_id": None, "revision": 0, "rubric": [],
}  # fmt: skip
_ALERT_DEFAULTS: Json = {
    "schema_version": 1, "service": None, "metric": None, "series": None, "value": None, "baseline": None, "effect": None, "n": None,
    "evidence": None, "group": "", "query": "", "acknowledge": "", "interval": [],
}  # fmt: skip

#: The columns of each table that a row provides, in order. A table computes its other columns itself.
COLUMNS: dict[str, tuple[str, ...]] = {
    CANDIDATES: _ENVELOPE + _CANDIDATE,
    ANSWERS: _ENVELOPE + _ANSWER,
    FEEDBACK: _ENVELOPE + _FEEDBACK,
    TOOL_CALLS: _ENVELOPE + _TOOL_CALL,
    SERVER_EVENTS: _ENVELOPE + _SERVER_EVENT,
    SESSION_PARTS: _ENVELOPE + _SESSION,
    CAPTURE_FAILURES: (
        "schema_version", "failure_id", "event_id", "entry_id", "project", "service", "stage", "reason", "error_class", "detail",
        "deliveries", "created_at", "pii_attempted", "pii_blocked",
    ),
    SCORES: (
        "score_id", "event_id", "project", "service", "judged_at", "status", "base", "inclusion_probability", "fingerprint",
        "backend", "model", "prompt_hash", "schema_hash", *_SCORE_DEFAULTS,
    ),
    ALERTS: (
        "alert_id", "transition_id", "sequence", "kind", "state", "previous", "severity", "project", "since", "at", "summary",
        *_ALERT_DEFAULTS,
    ),
}  # fmt: skip

_Values = Callable[[Json], tuple[Any, ...]]
_envelope: _Values = itemgetter(*_ENVELOPE)
_candidate_values: _Values = itemgetter(*_CANDIDATE)
_answer_values: _Values = itemgetter(*_ANSWER)
_feedback_values: _Values = itemgetter(*_FEEDBACK)
_tool_call_values: _Values = itemgetter(*_TOOL_CALL)
_server_event_values: _Values = itemgetter(*_SERVER_EVENT)
_session_values: _Values = itemgetter(*_SESSION)

_MAKERS: dict[str, tuple[str, _Values]] = {
    "retrieval": (CANDIDATES, _candidate),
    "answer": (ANSWERS, _answer),
    "feedback": (FEEDBACK, _feedback),
    "tool_call": (TOOL_CALLS, _tool_call),
    "server_event": (SERVER_EVENTS, _server_event),
    "session": (SESSION_PARTS, _session),
}
