"""Events that pass in the stream, as rows of the live page. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from assay_console.page import Document
from assay_operations.tail import event_of
from assay_schema.streams import FIELD

#: Characters of a text that a row has, and characters of it that a filter searches.
TEXT_CHARS, SEARCHED_CHARS = 200, 2_000
_TEXT = ("query", "text", "message", "title", "args_summary")
_HITS = ("retrieved_chunk_ids", "retrieved_ids", "passages")


class Passing(Document):
    """One event in the stream. `time` is when the log received it."""

    entry: str
    event_id: str
    time: datetime | None
    kind: str
    project: str
    service: str
    text: str
    characters: int
    status: str
    latency_ms: float | None
    results: int | None
    pii: dict[str, int]
    session: str


@dataclass(frozen=True)
class Entry:
    """An entry of a shard with its row, and the text that filters search; None: it is not an event."""

    shard: int
    entry_id: str
    row: Passing | None
    searched: str = ""


@dataclass(frozen=True)
class Wanted:
    """A filter of passing events. Empty: any."""

    project: str = ""
    kinds: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    text: str = ""

    def has(self, entry: Entry) -> bool:
        """Return True if an entry is an event that meets all conditions."""
        row = entry.row
        return (
            row is not None
            and self.project in ("", row.project)
            and (not self.kinds or row.kind in self.kinds)
            and (not self.services or row.service in self.services)
            and self.text.casefold() in entry.searched
        )


def entry_of(shard: int, entry_id: str, fields: Mapping[bytes, bytes]) -> Entry:
    """Decode an entry of the stream of scrubbed events."""
    event = event_of(fields.get(FIELD.encode(), b""))
    if event is None:
        return Entry(shard, entry_id, None)
    payload = event.get("payload")
    payload = payload if isinstance(payload, dict) else {}
    kind = str(event.get("kind", ""))
    text = next((_as_text(payload[name]) for name in _TEXT if payload.get(name)), "")
    latency = payload.get("latency_ms", payload.get("duration_ms"))
    families = event.get("pii_families")
    row = Passing(
        entry=f"{shard}:{entry_id}",
        event_id=str(event.get("event_id", "")),
        time=_time(event.get("created_at")),
        kind=kind,
        project=str(event.get("project", "")),
        service=str(event.get("service", "")),
        text=text[:TEXT_CHARS],
        characters=len(text),
        status=_status(kind, payload),
        latency_ms=float(latency) if isinstance(latency, int | float) else None,
        results=_results(kind, payload),
        pii={str(name): int(count) for name, count in families.items() if count} if isinstance(families, dict) else {},
        session=str(payload.get("session_id", "")) if kind == "session" else "",
    )
    answer = _as_text(payload.get("answer") or "")
    return Entry(shard, entry_id, row, f"{text[:SEARCHED_CHARS]}\n{answer[:SEARCHED_CHARS]}".casefold())


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _time(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None


def _results(kind: str, payload: Mapping[str, Any]) -> int | None:
    names = _HITS if kind == "retrieval" else ("contexts",) if kind == "answer" else ()
    return (
        max((len(each) for name in names if isinstance(each := payload.get(name), list)), default=0) if names else None
    )


def _status(kind: str, payload: Mapping[str, Any]) -> str:
    """Return the outcome as lists of stored events name it."""
    if kind == "retrieval":
        return "found" if _results(kind, payload) else "no_result"
    if kind == "answer":
        return "cited" if payload.get("citations") else "uncited"
    return str(payload.get("verdict") or payload.get("status") or payload.get("event_subtype") or "")
