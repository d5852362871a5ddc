"""The capture events of a session: one for each part. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from assay_schema.limits import EVENT_AHEAD_MAX_MS, SCHEMA_VERSION
from assay_sessions.document import agent_events, document
from assay_sessions.parts import part_event_id, shape_digest, split
from assay_sessions.record import Transcript

#: The time in the ids of a session whose clock is ahead and whose start is no better: 2020-01-01.
_FALLBACK_MS = 1_577_836_800_000
_HOUR_MS = 3_600_000
_HEADER = ("source", "source_version", "status", "updated", "model", "parent_session_id", "forked_from", "cost_usd")


@dataclass(frozen=True)
class Revision:
    """One revision of a session: its document, and what tells it from others of the same session."""

    document: dict[str, Any]
    #: Time of its last change, in Unix milliseconds.
    number: int
    digest: str

    @property
    def session_id(self) -> str:
        """Return the id of the session."""
        return str(self.document["session_id"])

    @property
    def key(self) -> tuple[int, str]:
        """Return what orders the revisions of a session."""
        return self.number, self.digest


def revision(transcript: Transcript) -> Revision:
    """Return the newest revision of a session as its log has it."""
    made = document(transcript)
    return Revision(made, max(0, _ms(made["metadata"]["updated"])), shape_digest(made))


def session_events(
    revision: Revision, project: str, service: str | None, now_ms: int, cut: Callable[[str, int], int]
) -> Iterator[bytes]:
    """Yield the events of a revision as JSON, one for each part.

    Their ids depend on project and content alone, so that a part which is sent again is stored once. `service` is the agent by default.
    Raises `PartsError` if the session does not fit.
    """
    document, metadata = revision.document, revision.document["metadata"]
    tokens = metadata.get("tokens", {})
    own = agent_events(document)
    header = {name: metadata[name] for name in _HEADER if name in metadata} | {
        "session_id": revision.session_id,
        "title": document["title"],
        "created": document["created"],
        "revision": revision.number,
        "digest": revision.digest,
        "turns": metadata["total_turns"],
        "tools": len(own),
        "tool_errors": sum(event["status"] != "success" for event in own),
        "input_tokens": max(0, tokens.get("input", 0)),
        "output_tokens": max(0, tokens.get("output", 0)),
    }
    parts = split(document, cut=cut)
    id_ms = _past(now_ms, revision.number, _ms(document["created"]))
    for number, part in enumerate(parts, 1):
        yield orjson.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "event_id": part_event_id(
                    project, revision.session_id, f"{revision.number}:{revision.digest}", number, id_ms
                ),
                "kind": "session",
                "project": project,
                "service": service or metadata["source"],
                "occurred_at": metadata["updated"],
                "session_id": revision.session_id,
                "payload": header
                | {name: part[name] for name in ("request", "response", "intermediate_events")}
                | {"metadata": part.get("metadata", {}), "part": number, "parts": len(parts)},
            }
        )


def _past(now_ms: int, *times_ms: int) -> int:
    """Return the first time that is not ahead of the log's clock: an event with one that is would be refused."""
    return next((ms for ms in times_ms if 0 <= ms <= now_ms + EVENT_AHEAD_MAX_MS - _HOUR_MS), _FALLBACK_MS)


def _ms(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)
