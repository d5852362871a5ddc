"""Read a judged answer with the passages that it was judged by."""

import uuid
from typing import Any

from assay_operations.clients import open_store
from assay_operations.errors import OperationError
from assay_schema.settings import Settings

_EVIDENCE = """
SELECT s.event_id AS event_id, s.session_id AS session_id,
    s.project AS project, s.status AS status, s.detail AS detail, s.fingerprint AS fingerprint,
    s.model AS model, s.judged_at AS judged_at, s.metrics AS metrics, s.checks AS checks, s.claims AS claims, s.verdicts AS verdicts,
    a.answer AS answer, a.contexts AS contexts, a.event_id = s.event_id AS stored
FROM scores AS s LEFT JOIN (SELECT event_id, answer, contexts FROM answers WHERE event_id = {event_id:UUID}) AS a ON a.event_id = s.event_id
WHERE s.event_id = {event_id:UUID} AND ({fingerprint:String} = '' OR s.fingerprint = {fingerprint:String})
ORDER BY s.judged_at DESC LIMIT 1
"""


def judged_answer(settings: Settings, event_id: str, fingerprint: str) -> dict[str, Any]:
    """Return a judged answer with its evidence. Raises `OperationError` if it is not stored."""
    try:
        wanted = str(uuid.UUID(event_id))
    except ValueError:
        raise OperationError(
            "invalid", f"{event_id!r} is not an event_id such as 019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d"
        ) from None
    with open_store(settings.store) as store:
        answer = store.query(_EVIDENCE, parameters={"event_id": wanted, "fingerprint": fingerprint})
        rows = [dict(row) for row in answer.named_results()]
    if not rows:
        raise OperationError("not_found", f"no score of answer {wanted} is stored; see assay judge status")
    if rows[0]["session_id"] is not None:
        raise OperationError("not_found", f"this is a session: assay sessions show {rows[0]['session_id']}")
    if not rows[0]["stored"]:
        raise OperationError(
            "not_found", f"the score of answer {wanted} is stored, but the answer itself is not (any more)"
        )
    return rows[0]
