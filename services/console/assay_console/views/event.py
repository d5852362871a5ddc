"""The page of one event."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from pydantic import Field

from assay_console.evidence import (
    Citation,
    Claim,
    Hit,
    Passage,
    citations_of,
    claim_spans,
    claims_of,
    hits_of,
    passages_of,
)
from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_console.pieces import SHOWN_CHARS, Text, text_of
from assay_console.scope import link
from assay_console.views.events import judged_of
from assay_operations.events.one import Event, MissingEvent, cited_ids, one_event
from assay_operations.events.rows import EventRow, unix_ms
from assay_operations.events.same_question import EarlierList, documents_of, other_documents
from assay_schema.fields import Kind

#: What each status of a score means for who reads it.
WHY = {
    "scored": "the judge gave a score",
    "abstained": "the answer makes no claim that passages could support",
    "no_context": "the answer was given no passages",
    "judge_error": "the judge failed, or its answer could not be used",
    "skipped_budget": "the judge's budget was used up",
    "not_sampled": "the answer is not in the sample that is judged",
}
_TEXTS = {
    Kind.RETRIEVAL: (("Question", "query"),),
    Kind.ANSWER: (("Question", "query"),),
    Kind.FEEDBACK: (("Comment", "text"),),
    Kind.TOOL_CALL: (("Arguments", "args_summary"), ("Result", "result_summary")),
    Kind.SERVER_EVENT: (("Message", "message"),),
}
#: Columns that a page shows elsewhere, or that mean nothing to people.
_ELSEWHERE = {
    *(
        "schema_version",
        "query",
        "answer",
        "contexts",
        "citations",
        "passages",
        "text",
        "args_summary",
        "result_summary",
        "message",
    ),
    *(
        "retrieved_chunk_ids",
        "retrieved_ids",
        "retrieved_slugs",
        "retrieved_scores",
        "event_id",
        "project",
        "service",
        "verdict",
    ),
    *(
        "event_time",
        "traceparent",
        "session_id",
        "pii_families",
        "retrieval_event_id",
        "target_event_id",
        "latency_ms",
        "duration_ms",
    ),
}


class NamedText(Document):
    """A text with its name."""

    name: str
    text: Text


class Score(Document):
    """A score of the answer by one judge."""

    judged_at: datetime
    status: str
    why: str
    metrics: dict[str, float]
    checks: dict[str, bool]
    boosts: tuple[str, ...]
    backend: str
    model: str
    fingerprint: str
    base: bool
    inclusion_probability: float
    claims: int
    contradicted: int
    demoted: int
    detail: str
    cost_usd: float


class Feedback(Document):
    """A person's verdict on the event."""

    event_id: str
    time: datetime
    verdict: str
    text: str | None


class Absent(Document):
    """Why an event is not here: one of a closed set of reasons."""

    event_id: str
    time: datetime
    reason: str
    detail: str
    #: The session that the event is a part of, as a link.
    session: str = ""


class One(Document):
    """An event with what belongs to it; or why it is not here."""

    event_id: str
    missing: Absent | None = None
    kind: str = ""
    time: datetime | None = None
    project: str = ""
    service: str = ""
    texts: tuple[NamedText, ...] = ()
    answer: Text | None = None
    hits: tuple[Hit, ...] = ()
    documents: tuple[str, ...] = ()
    retrieval_id: str | None = None
    retrieval_ms: float | None = None
    passages: tuple[Passage, ...] = ()
    citations: tuple[Citation, ...] = ()
    claims: tuple[Claim, ...] = ()
    scores: tuple[Score, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    verdict: str = ""
    latency_ms: float | None = None
    trace_id: str | None = None
    session_id: str | None = None
    pii: dict[str, int] = Field(default_factory=dict)
    facts: dict[str, str] = Field(default_factory=dict)
    answers: tuple[EventRow, ...] = ()
    target: EventRow | None = None
    target_id: str | None = None
    tool_calls: tuple[EventRow, ...] = ()
    related: tuple[EventRow, ...] = ()
    #: False if there are more related events or feedback than are read.
    complete: bool = True
    #: Other documents that the same question returned before.
    earlier: Panel[tuple[EarlierList, ...]] | None = None

    @property
    def http_status(self) -> int:
        """404 for an event that is not here."""
        return 404 if self.missing else 200

    @property
    def judged_answers(self) -> tuple[str, ...]:
        """The answer itself, and rows that show a score."""
        own = (self.event_id,) if self.scores else ()
        target = (self.target,) if self.target else ()
        return own + judged_of((*self.answers, *target, *self.tool_calls, *self.related))


async def read(ask: Ask) -> One:
    """Read the event and its chain."""
    event_id, project = ask.path["event_id"], ask.scope.project or None
    found = await ask.store(one_event, event_id, project=project, retention=ask.settings.retention)
    if isinstance(found, MissingEvent):
        return One(event_id=found.event_id, missing=_absent(found, ask))
    record = found.record
    longest = None if ask.text("full") else SHOWN_CHARS
    retrieval = record if found.kind is Kind.RETRIEVAL else found.retrieval
    cited, earlier = await asyncio.gather(_cited(ask, found), _earlier(ask, retrieval))
    scores = tuple(map(_score, found.scores))
    verdicts: list[dict[str, Any]] = next((each["verdicts"] for each in found.scores if each["verdicts"]), [])
    is_answer = found.kind is Kind.ANSWER
    return One(
        event_id=found.event_id,
        kind=found.kind,
        time=found.time,
        project=record["project"],
        service=record["service"],
        texts=tuple(
            NamedText(name=name, text=text_of(record[column] or "", (), longest)) for name, column in _TEXTS[found.kind]
        ),
        answer=text_of(record["answer"], claim_spans(verdicts), longest) if is_answer else None,
        hits=hits_of(retrieval, cited) if retrieval else (),
        documents=documents_of(retrieval) if retrieval else (),
        retrieval_id=record.get("retrieval_event_id"),
        retrieval_ms=found.retrieval["latency_ms"] if found.retrieval else None,
        passages=passages_of(record["contexts"], record["citations"], verdicts, longest) if is_answer else (),
        citations=citations_of(record["contexts"], record["citations"]) if is_answer else (),
        claims=claims_of(record["answer"], record["contexts"], verdicts) if is_answer else (),
        scores=scores,
        feedback=tuple(map(_feedback, found.feedback)),
        verdict=str(record.get("verdict") or record.get("status") or ""),
        latency_ms=record.get("latency_ms", record.get("duration_ms")),
        trace_id=record["traceparent"][3:35] if record.get("traceparent") else None,
        session_id=record.get("session_id"),
        pii={name: int(count) for name, count in record["pii_families"].items()},
        facts=_facts(record),
        answers=found.answers,
        target=found.target,
        target_id=record.get("target_event_id"),
        tool_calls=found.tool_calls,
        related=found.related,
        complete=found.complete,
        earlier=earlier,
    )


async def _cited(ask: Ask, found: Event) -> frozenset[str] | None:
    """Return the ids that an answer cites: this one, or the first that was built on this retrieval."""
    if found.kind is Kind.ANSWER:
        return frozenset(str(each["context_id"]) for each in found.record["citations"])
    if not found.answers:
        return None
    return await ask.store(cited_ids, found.answers[0].event_id, found.answers[0].project)


async def _earlier(ask: Ask, retrieval: Mapping[str, Any] | None) -> Panel[tuple[EarlierList, ...]] | None:
    if retrieval is None:
        return None
    at_ms = unix_ms(datetime.fromisoformat(retrieval["event_time"]))
    return await ask.panel(
        other_documents, retrieval["project"], retrieval["query"], documents_of(dict(retrieval)), at_ms
    )


def _score(record: Mapping[str, Any]) -> Score:
    names = Score.model_fields.keys() - {"why"}
    return Score(**{name: record[name] for name in names}, why=WHY.get(record["status"], ""))


def _feedback(record: Mapping[str, Any]) -> Feedback:
    return Feedback(
        event_id=record["event_id"], time=record["event_time"], verdict=record["verdict"], text=record["text"]
    )


def _facts(record: Mapping[str, Any]) -> dict[str, str]:
    shown = {}
    for name, value in record.items():
        if name in _ELSEWHERE or value in (None, "", [], {}) or value is False:
            continue
        shown[name] = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return shown


def _absent(found: MissingEvent, ask: Ask) -> Absent:
    record = found.record or {}
    if ask.person.project is not None and record.get("project") not in (None, ask.person.project):
        return Absent(
            event_id=found.event_id, time=found.time, reason="unknown", detail="no record of this project names it"
        )
    session = ""
    if found.reason == "part_of_session":
        session = link(f"/s/{quote(record.get('session_id', ''), safe='')}", {"project": record.get("project")})
    return Absent(event_id=found.event_id, time=found.time, reason=found.reason, detail=found.detail, session=session)


PAGE = Page(
    "event",
    "/e/{event_id}",
    "Event",
    "What happened here?",
    read,
    One,
    (Parameter("full", "`1`: texts in full length.", ("1",)),),
    span="",
    by_project=True,
    within="events",
    api="/events/{event_id}",
)
