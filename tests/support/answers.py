"""Build scrubbed answers in the format of the stream `events`, for tests of the judge."""

from datetime import UTC, datetime
from typing import Any

import orjson

from assay_schema.events import ScrubbedAnswer
from assay_schema.ids import new_event_id
from assay_schema.validation import parse_scrubbed

#: Text that must not appear in any output.
SECRET = "a secret of the captured text"
PASSAGE = f"The boot is waterproof. The sole is stitched. {SECRET}."


def answer_bytes(
    question: str = "Is the boot waterproof?",
    text: str = "The boot is waterproof [1]. The boot floats on lava.",
    *,
    passages: tuple[str, ...] = (PASSAGE,),
    project: str = "acme",
    event_id: str | None = None,
    **payload: Any,
) -> bytes:
    """Return one entry as JSON."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    contexts = [{"id": f"doc-{n}", "text": passage} for n, passage in enumerate(passages)]
    body = {"query": question, "answer": text, "contexts": contexts, "model": "m", "latency_ms": 12.0} | payload
    envelope = {
        "id": 2,
        "schema_version": 1,
        "event_id": event_id or new_event_id(),
        "project": project,
        "service": "shop",
        "occurred_at": now,
        "created_at": now,
        "policy": "p",
        "kind": "answer",
        "payload": body,
    }
    return orjson.dumps(envelope)


def answer(*arguments: Any, **more: Any) -> ScrubbedAnswer:
    """Return one entry as a model."""
    event = parse_scrubbed(answer_bytes(*arguments, **more))
    assert isinstance(event, ScrubbedAnswer)
    return event
