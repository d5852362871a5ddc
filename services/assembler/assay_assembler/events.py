"""Build capture events from the steps of a trace.

Every event is checked against the contract before it is returned.
"""

import hmac
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson

from assay_assembler import fitting
from assay_assembler.documents import Document
from assay_assembler.event_ids import chunk_number, span_event_id, text_id
from assay_assembler.node import Node
from assay_assembler.step import Verdict
from assay_assembler.values import literal
from assay_schema.fields import Kind
from assay_schema.limits import ENTRY_MAX_BYTES, ITEMS_MAX, SCHEMA_VERSION, SERVICE_MAX_CHARS
from assay_schema.validation import InvalidEvent, parse_event

#: `service` of a span that names neither a service nor a scope.
UNKNOWN_SERVICE = "unknown"
UNKNOWN_MODEL = "unknown"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NS_PER_MS = 1_000_000


class Made(NamedTuple):
    """An event to append to `capture`, and the spans that it is made of."""

    event_id: str
    kind: Kind
    #: The event as JSON.
    data: bytes
    #: The first is the span that `event_id` comes from.
    span_ids: tuple[str, ...]
    #: True if the producer's SDK dropped attributes of one of them: tell the operator, who can raise its limit.
    partial: bool


class Envelope(NamedTuple):
    """The fields of an envelope that the trace knows."""

    project: str
    trace_id: str
    #: Service of spans that name none, as the key has it; may be empty.
    default_service: str
    #: Key of the hashes of user ids; without it they are left out.
    user_key: bytes = b""


def made(
    envelope: Envelope, node: Node, kind: Kind, payload: dict[str, Any], sources: list[Node], *, event_id: str = ""
) -> Made | None:
    """Return the event of a node with a payload; None if the contract refuses it, as for its time."""
    occurred = _moment(node.end_ns)
    if occurred is None:
        return None
    event_id = event_id or node_event_id(envelope, node, kind)
    partial = any(each.dropped for each in sources)
    user = next((each.step.user for each in [node, *sources] if each.step.user), "")
    session = next((each.step.session_id for each in [node, *node.ancestors(), *sources] if each.step.session_id), "")
    event = {
        "schema_version": SCHEMA_VERSION,
        "event_id": event_id,
        "project": envelope.project,
        "service": service(node, envelope.default_service),
        "occurred_at": occurred,
        "traceparent": f"00-{envelope.trace_id}-{node.span_id}-01",
        "kind": kind.value,
        "payload": payload,
        **({"session_id": fitting.name(session)} if session else {}),
        "origin": "otlp",
        "partial": partial or fitting.is_cut(payload),
        **({"user_hash": hashed} if (hashed := user_hash(user, envelope.user_key)) else {}),
    }
    data = _within_entry(event)
    try:
        parse_event(data)
    except InvalidEvent:
        return None
    others = dict.fromkeys(each.span_id for each in [node, *sources])
    return Made(event_id, kind, data, tuple(others), partial)


def node_event_id(envelope: Envelope, node: Node, kind: Kind) -> str:
    """Return the `event_id` of a node's event of a kind."""
    return span_event_id(envelope.project, envelope.trace_id, node.span_id, kind.value, node.start_ns)


def answer(
    node: Node,
    query: str,
    text: str,
    model: str,
    retrieved: tuple[Document, ...],
    retrieval_id: str,
    *,
    started_ns: int,
) -> dict[str, Any]:
    """Return the payload of an answer."""
    passages = [document for document in retrieved if document.text][:ITEMS_MAX]
    return {
        "query": fitting.query(query),
        "answer": fitting.body(text),
        "contexts": [passage(document) for document in passages],
        "model": fitting.name(model) or UNKNOWN_MODEL,
        "latency_ms": max(0, node.end_ns - started_ns) / _NS_PER_MS,
        "retrieval_event_id": retrieval_id or None,
    }


def passage(document: Document) -> dict[str, Any]:
    """Return a document as a passage."""
    return {
        "id": document_id(document),
        "source_id": fitting.name(document.source) or None,
        "text": fitting.body(document.text),
        "score": document.score,
    }


def retrieval(
    node: Node, query: str, documents: tuple[Document, ...], embedding_model: str, *, vector: bool
) -> dict[str, Any]:
    """Return the payload of a retrieval."""
    documents = documents[:ITEMS_MAX]
    ids = [document_id(document) for document in documents]
    scores = [document.score for document in documents]
    return {
        "tool_name": "search",
        "query": fitting.query(query),
        "retrieved_slugs": [
            fitting.name(document.slug) or known for document, known in zip(documents, ids, strict=True)
        ],
        "retrieved_chunk_ids": [
            chunk_number(document.source, known) for document, known in zip(documents, ids, strict=True)
        ],
        "source_ids": [fitting.name(document.source) or known for document, known in zip(documents, ids, strict=True)],
        "vector_enabled": vector,
        "latency_ms": milliseconds(node),
        "retrieved_scores": [] if None in scores else scores,
        "embedding_model": fitting.name(embedding_model) or None,
        "params": fitting.free_json(node.step.params),
        "retrieved_ids": [] if all(each.isascii() and each.isdecimal() for each in ids) else ids,
        "passages": [passage(document) for document in documents if document.text],
    }


def tool_call(node: Node, sources: list[Node], fallback_session: str) -> dict[str, Any]:
    """Return the payload of a tool call; nested and repeated spans of one call are its sources."""
    steps = [each.step for each in sources]
    failed = any(step.failed for step in steps)
    mcp_names = [step.tool_name for step in steps[1:] if step.convention == "mcp"]
    arguments = next((step.arguments for step in steps if step.arguments not in (None, "")), None)
    session = next((found for step in steps for found in (step.server_session, step.session_id) if found), "")
    kind = next((step.error_kind for step in steps if step.error_kind), "") if failed else ""
    return {
        "timestamp": _moment(node.end_ns),
        "server_session_id": fitting.name(session or node.source.instance or fallback_session),
        "kind": "tool_call",
        "tool_name": fitting.name((mcp_names or [node.step.tool_name])[-1]) or "unknown",
        "args_summary": arguments_of(arguments),
        "status": "error" if failed else "success",
        "error_kind": fitting.name(kind) or None,
        "duration_ms": milliseconds(node),
        "call_id": fitting.name(next((step.call_id for step in steps if step.call_id), "")) or None,
        "agent_name": fitting.name(next((step.agent_name for step in steps if step.agent_name), "")) or None,
    }


def arguments_of(arguments: Any) -> dict[str, Any] | None:
    """Return arguments as a JSON object: as they are, from JSON, or from their Python representation."""
    if arguments is None or arguments == "":
        return None
    found = literal(arguments)
    value = arguments if found is None else found
    return fitting.free_json(value if isinstance(value, dict) else {"value": value})


def feedback(verdict: Verdict, target_event_id: str, user_key: bytes) -> dict[str, Any]:
    """Return the payload of a person's verdict."""
    return {
        "target_event_id": target_event_id,
        "verdict": verdict.verdict,
        "text": fitting.body(verdict.text) if verdict.text else None,
        "user_hash": user_hash(verdict.user, user_key) or None,
    }


def user_hash(user: str, key: bytes) -> str:
    """Return the keyed hash of a user's id, with which no one without the key can compare an id.

    Empty without a key.
    """
    return hmac.new(key, user.encode("utf-8", "replace"), "sha256").hexdigest() if user and key else ""


def document_id(document: Document) -> str:
    """Return the id of a document; one without an id has a hash of its text."""
    return fitting.name(document.id) or text_id(document.text)


def milliseconds(node: Node) -> float:
    """Return the duration of a span in milliseconds."""
    return (node.end_ns - node.start_ns) / _NS_PER_MS


def service(node: Node, default: str) -> str:
    """Return the service of a span: its own, unless the SDK made it up; else the key's; else its scope."""
    own = node.source.service
    if not own or own.startswith("unknown_service"):
        own = default or node.source.scope
    printable = "".join(character for character in own if character.isprintable())
    return fitting.clean(printable[:SERVICE_MAX_CHARS]) or UNKNOWN_SERVICE


def _moment(nanoseconds: int) -> str | None:
    try:
        moment = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return None
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _within_entry(event: dict[str, Any]) -> bytes:
    """Encode an event. If it is too large for an entry, its last passages are left out, and it is marked as partial."""
    data = orjson.dumps(event)
    passages = event["payload"].get("contexts") or event["payload"].get("passages")
    while len(data) > ENTRY_MAX_BYTES and passages:
        del passages[len(passages) // 2 :]
        event["partial"] = True
        data = orjson.dumps(event)
    return data
