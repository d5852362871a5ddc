"""Sessions of agents: the list, and one with its turns, tool calls, verdict and checks."""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic import Field

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_console.pieces import Text, text_of
from assay_operations.audit_reads.rows import InLog, in_log
from assay_operations.errors import OperationError
from assay_operations.events.rows import EventRow
from assay_operations.sessions.captured import captured_events
from assay_operations.sessions.listing import cursor_of, duration_ms_of, exit_code_of, output_of, sessions_in, turns
from assay_operations.sessions.whole import WholeSession, whole_session
from assay_schema.fields import Kind

#: Sessions of a list, turns and calls of a page, and captured events that are shown.
LIMIT, STEPS, EVENTS = 100, 200, 200
#: Characters of a step's text before someone asks for all.
_STEP_CHARS = 4_000
#: What is shown for a tool whose name is empty.
_NO_NAME = "(no name)"
#: Most digits of a page's number.
_DIGITS = 6


class Row(Document):
    """A session in a list."""

    session_id: str
    project: str
    source: str
    status: str
    complete: bool
    last_at: datetime
    turns: int
    tools: int
    tool_errors: int
    cost_usd: float | None
    positive: int
    negative: int
    faithfulness: float | None
    text: str


class Sessions(Document):
    """Sessions that changed last in the range, newest first.

    `more`: there are more; `next` is the cursor of their page.
    """

    source: str
    subagents: bool
    sessions: Panel[tuple[Row, ...]]
    more: bool
    next: str | None = None


async def read_list(ask: Ask) -> Sessions:
    """Read the sessions of the range."""
    subagents = ask.text("subagents") == "1"
    found = await ask.panel(
        sessions_in, ask.scope.from_ms, project=ask.scope.project, source=ask.text("source"), subagents=subagents,
        limit=LIMIT + 1, until_ms=ask.scope.to_ms, after=ask.text("after"),
    )  # fmt: skip
    rows = tuple(map(_row, found.value[:LIMIT])) if found.value is not None else None
    more = found.value is not None and len(found.value) > LIMIT
    return Sessions(
        source=ask.text("source"),
        subagents=subagents,
        sessions=found.holding(rows),
        more=more,
        next=cursor_of(found.value[LIMIT - 1]) if found.value is not None and more else None,
    )


def _row(row: Mapping[str, Any]) -> Row:
    return Row(
        **{name: row[name] for name in Row.model_fields.keys() - {"text", "last_at"}},
        last_at=row["last_at"].replace(tzinfo=UTC),
        text=row["first_prompt"] or row["title"] or "",
    )


class Step(Document):
    """A turn, or a tool call."""

    #: `user`, `model` or another role of a turn; `tool`, or `user ran`.
    who: str
    turn: int
    text: Text | None = None
    tool: str = ""
    arguments: Text | None = None
    output: Text | None = None
    status: str = ""
    error_kind: str = ""
    exit_code: int | None = None
    duration_ms: float | None = None


class Item(Document):
    """An item of the rubric and the verdict on it."""

    dimension: str
    criterion: str
    verdict: str
    demoted: bool
    turn: int


class Verdict(Document):
    """The judge's latest verdict on the session."""

    status: str
    metrics: dict[str, float]
    detail: str
    model: str
    judged_at: datetime
    #: The verdict is on an earlier revision of the session.
    outdated: bool
    rubric: tuple[Item, ...]


class Check(Document):
    """A finding of a rule."""

    name: str
    outcome: str
    detail: str


class Session(Document):
    """One session. If its id is in several projects, `projects` has them, and the rest is empty."""

    session_id: str
    projects: tuple[str, ...] = ()
    project: str = ""
    facts: dict[str, str] = Field(default_factory=dict)
    title: str = ""
    status: str = ""
    first_at: datetime | None = None
    last_at: datetime | None = None
    turns: int = 0
    tools: int = 0
    tool_errors: int = 0
    cost_usd: float | None = None
    parent_session_id: str | None = None
    forked_from: str | None = None
    #: Why there is no transcript.
    reason: str = ""
    steps: tuple[Step, ...] = ()
    #: Page of steps, from 1, and number of pages and of steps.
    page: int = 1
    pages: int = 1
    all_steps: int = 0
    only: str = ""
    verdict: Verdict | None = None
    checks: tuple[Check, ...] = ()
    #: Captured events of the session, oldest first, with the time at which they happened.
    events: tuple[EventRow, ...] = ()
    #: Page of these events, from 1, and number of pages and of events.
    events_page: int = 1
    events_pages: int = 1
    all_events: int = 0
    #: How many calls of these events are in the audit log; None if none is a tool call or a server event.
    audit: Panel[InLog] | None = None


async def read_one(ask: Ask) -> Session:
    """Read a session, and a page of its steps."""
    session_id = ask.path["session_id"]
    whole = await ask.store(whole_session, session_id, ask.scope.project)
    if len(whole.summaries) > 1:
        return Session(session_id=session_id, projects=tuple(str(each["project"]) for each in whole.summaries))
    summary = whole.summaries[0]
    only = ask.text("only")
    # Any producer can send a long transcript: its steps are made in a thread, so that other requests do not wait.
    steps = await asyncio.to_thread(_steps, whole.document, bool(ask.text("full")), only)
    pages = max(1, -(-len(steps) // STEPS))
    page = _number("page", ask)
    if page > pages:
        raise OperationError("invalid", f"page: {page} is not from 1 to {pages}")
    first, last = summary["first_at"].replace(tzinfo=UTC), summary["last_at"].replace(tzinfo=UTC)
    events = await ask.store(captured_events, summary, failed=bool(only), page=_number("events", ask), limit=EVENTS)
    audited = [row.event_id for row in events.rows if row.kind in (Kind.TOOL_CALL, Kind.SERVER_EVENT)]
    audit = await ask.panel(in_log, ask.settings.auditor, audited) if audited else None
    return Session(
        session_id=session_id,
        project=summary["project"],
        facts=_facts(summary),
        title=summary["title"] or "",
        status=summary["status"],
        first_at=first,
        last_at=last,
        turns=summary["turns"],
        tools=summary["tools"],
        tool_errors=summary["tool_errors"],
        cost_usd=summary["cost_usd"],
        parent_session_id=summary["parent_session_id"],
        forked_from=summary["forked_from"],
        reason=whole.reason,
        steps=tuple(steps[(page - 1) * STEPS : page * STEPS]),
        page=page,
        pages=pages,
        all_steps=len(steps),
        only=only,
        verdict=_verdict(whole),
        checks=tuple(_checks(whole)),
        events=events.rows,
        events_page=events.page,
        events_pages=events.pages,
        all_events=events.total,
        audit=audit,
    )


def _number(name: str, ask: Ask) -> int:
    """Return a page of the URL, from 1. Raises `OperationError`."""
    text = ask.text(name, "1")
    if not (text.isascii() and text.isdecimal()) or len(text) > _DIGITS or int(text) < 1:
        raise OperationError("invalid", f"{name}: {text[:20]!r} is not a page, from 1")
    return int(text)


def _steps(document: Mapping[str, Any] | None, full: bool, only: str) -> list[Step]:
    found = steps_of(document, full) if document else ()
    return [each for each in found if not only or _failed(each)]


def _failed(step: Step) -> bool:
    return bool(step.tool) and step.status not in ("", "success")


def steps_of(document: Mapping[str, Any], full: bool = False) -> Iterator[Step]:
    """Yield the turns of a transcript with the tool calls of each before it, in their order. Pure."""
    longest = None if full else _STEP_CHARS
    for turn in turns(document):
        for call in turn.calls:
            yield _call(call, turn.number, longest)
        if turn.text:
            yield Step(who=turn.who, turn=turn.number, text=text_of(turn.text, (), longest))


def _call(event: Mapping[str, Any], turn: int, longest: int | None) -> Step:
    call, output = event["function_call"], output_of(event)
    arguments = call.get("args")
    return Step(
        who="user ran" if event.get("executed_by") == "user" else "tool",
        turn=turn,
        tool=call["name"] or _NO_NAME,
        arguments=text_of(_text(arguments), (), longest) if arguments else None,
        output=text_of(_text(output), (), longest) if output is not None else None,
        status=event.get("status", "success"),
        error_kind=str(event.get("error_kind") or ""),
        exit_code=exit_code_of(event),
        duration_ms=duration_ms_of(event),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()


def _verdict(whole: WholeSession) -> Verdict | None:
    found = whole.verdict
    if found is None:
        return None
    names = Item.model_fields
    return Verdict(
        status=found.status,
        metrics=found.metrics,
        detail=found.detail,
        model=found.model,
        judged_at=found.judged_at,
        outdated=found.revision != whole.summaries[0]["revision"],
        rubric=tuple(Item(**{name: each[name] for name in names}) for each in found.rubric),
    )


def _checks(whole: WholeSession) -> Iterator[Check]:
    for name, finding in whole.findings.items():
        yield Check(name=name, outcome=finding.state, detail=finding.detail)


def _facts(summary: Mapping[str, Any]) -> dict[str, str]:
    names = ("source", "source_version", "model", "input_tokens", "output_tokens", "positive", "negative", "created_at")
    return {name: str(summary[name]) for name in names if summary[name] not in (None, "", 0)}


LIST = Page(
    "sessions",
    "/sessions",
    "Sessions",
    "What did agents do?",
    read_list,
    Sessions,
    (
        Parameter("source", "Only sessions of this agent."),
        Parameter("subagents", "`1`: also those of sub-agents.", ("1",)),
        Parameter("after", "Cursor of a page: `next` of the page before it.", longest=1_200),
    ),
    span="7d",
    key="s",
    by_project=True,
    command="assay sessions list{and_project} --since {span}",
)
ONE = Page(
    "session",
    "/s/{session_id:path}",
    "Session",
    "What did the agent do?",
    read_one,
    Session,
    (
        Parameter("page", "Page of turns and tool calls, from 1.", default="1"),
        Parameter("events", "Page of captured events, from 1.", default="1"),
        Parameter("only", "`failed`: only tool calls that did not succeed.", ("failed",)),
        Parameter("full", "`1`: texts in full length.", ("1",)),
    ),
    span="",
    within="sessions",
    by_project=True,
    command="assay sessions show {session_id}{and_project}",
    api="/sessions/{session_id:path}",
)
