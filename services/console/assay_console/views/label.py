"""Page of labels: people label judged answers, and the judge is compared with them."""

import asyncio
from collections.abc import Awaitable, Mapping
from datetime import datetime

from assay_console.page import TIMES, Action, Ask, Document, Done, Page, Panel, Parameter, T, times_in
from assay_console.people import Role
from assay_console.pieces import SHOWN_CHARS, Text, text_of
from assay_console.scope import link
from assay_console.views.label_standing import Standing, standing_of
from assay_console.views.one_project import project_of
from assay_operations.errors import OperationError
from assay_operations.events.filters import Range
from assay_operations.labelling import standing as standings
from assay_operations.labelling.queues import (
    DEFAULT_QUEUE,
    Item,
    Queue,
    checked_event,
    item,
    label_of,
    left_out,
    newest_labels,
    next_items,
)
from assay_operations.labelling.submit import NOTE_CHARS, submit, undo
from assay_schema.ids import new_event_id

#: Labels of this person that the page lists, to be taken back.
_RECENT = 5
#: Notice after a label was taken back.
_WITHDRAWN = "withdrawn"


class Passage(Document):
    """A passage that the answer was made from."""

    id: str
    source: str
    text: Text


class JudgeVerdict(Document):
    """The verdict of one judge."""

    judged_at: datetime
    backend: str
    model: str
    fingerprint: str
    metrics: dict[str, float]
    claims: int
    contradicted: int


class Sampled(Document):
    """An answer of the sample. `label` is empty and `verdicts` too until this person has labelled it."""

    event_id: str
    time: datetime
    question: Text
    answer: Text
    passages: tuple[Passage, ...]
    label: str = ""
    note: str = ""
    labelled_at: datetime | None = None
    verdicts: tuple[JudgeVerdict, ...] = ()


class Given(Document):
    """A label of this person."""

    event_id: str
    label: str
    at: datetime


class Label(Document):
    """The next answer to label, or the one that the link names, and the state of the queue."""

    project: str
    #: Projects to choose from, if the link names none.
    projects: tuple[str, ...]
    queue: str
    item: Panel[Sampled | None]
    standing: Panel[Standing]
    #: Number of answers that this person has labelled.
    mine: int
    #: Send it with the label: the same one counts once.
    label_id: str
    #: The answer that this person labelled just now; what they called it, or `withdrawn`; and the label that this replaced.
    last: str
    last_label: str
    last_was: str
    #: The newest labels of this person in the queue, newest first.
    recent: tuple[Given, ...]
    #: Answers that this person cannot label: the judge's verdict on them was shown here, so that a label would not be blind.
    left_out: int
    #: The answer that the link names is one of these.
    seen: bool
    may_label: bool

    @property
    def judged_answers(self) -> tuple[str, ...]:
        """The answer, once this person has labelled it."""
        found = self.item.value
        return (found.event_id,) if found and found.verdicts else ()


async def read(ask: Ask) -> Label:
    """Read the next answer and the state of the queue.

    No answer of the store is kept: a label changes it at once.
    """
    project, projects = await project_of(ask)
    queue = Queue(project or "default", ask.text("queue", DEFAULT_QUEUE), Range(ask.scope.from_ms, ask.scope.to_ms))
    found: Panel[Sampled | None] = Panel(state="ready")
    state: Panel[Standing] = Panel(state="ready")
    if project:
        found, state = await asyncio.gather(_fresh(_sampled(ask, queue)), _fresh(_standing(ask, queue)))
    if found.state == state.state == "ready" and found.value is None and not ask.text("item") and state.value:
        state = Panel(state="ready", value=await _standing(ask, queue, all_labelled=True))
    given = await _fresh(_recent(ask, queue)) if project else None
    hidden = await _fresh(_left_out(ask, queue)) if project and ask.shown_verdicts else None
    people = state.value.labellers if state.value else ()
    mine = [each.good + each.bad + each.unsure for each in people if each.name == ask.person.name]
    last, last_label, last_was = (*ask.notice.split(" "), "", "", "")[:3]
    return Label(
        project=project,
        projects=projects,
        queue=queue.name,
        item=found,
        standing=state,
        mine=sum(mine),
        label_id=new_event_id(),
        last=last,
        last_label=last_label,
        last_was=last_was,
        recent=given.value or () if given else (),
        left_out=hidden.value or 0 if hidden else 0,
        seen=found.value is not None and found.value.event_id in ask.shown_verdicts,
        may_label=ask.person.role >= Role.LABELLER,
    )


async def _fresh(work: Awaitable[T]) -> Panel[T]:
    """Await a part of the page. Older answers are no help here: they may be another person's."""
    try:
        return Panel(state="ready", value=await work)
    except OperationError as error:
        if error.kind != "unavailable":
            raise
        return Panel(state="unavailable", message=error.message, fix=error.fix)


async def _sampled(ask: Ask, queue: Queue) -> Sampled | None:
    if named := ask.text("item"):
        return shown_of(await ask.store(item, queue, ask.person.name, named), ask)
    found = await ask.store(next_items, queue, ask.person.name, seen=ask.shown_verdicts)
    return shown_of(found[0], ask) if found else None


async def _left_out(ask: Ask, queue: Queue) -> int:
    return await ask.store(left_out, queue, ask.person.name, ask.shown_verdicts)


async def _recent(ask: Ask, queue: Queue) -> tuple[Given, ...]:
    found = await ask.store(newest_labels, queue, ask.person.name, _RECENT)
    return tuple(Given(event_id=event, label=label, at=at) for event, label, at in found)


async def _standing(ask: Ask, queue: Queue, *, all_labelled: bool = False) -> Standing:
    found = await ask.store(standings.standing, queue, ask.settings.drift, all_labelled=all_labelled)
    return standing_of(found, queue, ask.settings.drift)


def shown_of(found: Item, ask: Ask) -> Sampled:
    """Return an answer for the page."""
    longest = None if ask.text("full") else SHOWN_CHARS
    given = found.label
    return Sampled(
        event_id=found.event_id,
        time=found.event_time,
        question=text_of(found.query, (), longest),
        answer=text_of(found.answer, (), longest),
        passages=tuple(
            Passage(id=each.id, source=each.source_id or "", text=text_of(each.text, (), longest))
            for each in found.passages
        ),
        label=given.label if given else "",
        note=given.note if given else "",
        labelled_at=given.labelled_at if given else None,
        verdicts=tuple(JudgeVerdict.model_validate(each, from_attributes=True) for each in found.verdicts),
    )


async def label(ask: Ask, fields: Mapping[str, str]) -> Done:
    """Store a label and go to the next answer."""
    event = checked_event(fields.get("event_id", ""))
    if event in ask.shown_verdicts:
        raise OperationError(
            "conflict",
            "you have seen the judge's verdict on this answer, so that a label of yours would not be blind",
            "label another answer; a label that you gave before can be taken back",
        )
    queue, person = _queue(fields), ask.person.name
    before = await ask.store(label_of, queue, person, event)
    made = await ask.store(
        submit, ask.settings.store, queue, person, event, fields.get("label", ""),
        note=fields.get("note", ""), label_id=fields.get("label_id", ""),
    )  # fmt: skip
    was = before.label if before and before.label != made.label else ""
    return Done(_back(fields), f"{event} {made.label} {was}".rstrip())


async def take_back(ask: Ask, fields: Mapping[str, str]) -> Done:
    """Take a label back and go to its answer. A label that was taken back already stays so."""
    event = fields.get("event_id", "")
    if not event:
        raise OperationError("invalid", "event_id: name the answer whose label you take back")
    try:
        await ask.store(undo, ask.settings.store, _queue(fields), ask.person.name, event)
    except OperationError as error:
        if error.kind != "not_found":
            raise
    return Done(_back(fields, {"item": event}), f"{event} {_WITHDRAWN}")


def _queue(fields: Mapping[str, str]) -> Queue:
    return Queue(fields.get("project") or "default", fields.get("queue") or DEFAULT_QUEUE)


def _back(fields: Mapping[str, str], more: Mapping[str, str] | None = None) -> str:
    queue = _queue(fields)
    named = {"queue": queue.name if queue.name != DEFAULT_QUEUE else ""}
    return link("/label", {"project": queue.project}, named, times_in(fields), more or {})


_QUEUE = Parameter("queue", "Name of the sample; each has its own order.", default=DEFAULT_QUEUE, longest=64)
_OF = (
    Parameter("project", "Project of the answer.", longest=64),
    _QUEUE,
    Parameter("event_id", "The answer.", longest=36),
    *TIMES,
)
PAGE = Page(
    "label",
    "/label",
    "Label",
    "Can the judge be trusted?",
    read,
    Label,
    (
        _QUEUE,
        Parameter("item", "Event id of an answer to show, instead of the next one.", longest=36),
        Parameter("full", "1: whole texts.", ("1",)),
    ),
    span="30d",
    by_project=True,
    key="b",
    api="/labels",
)
LABEL = Action(
    "/labels",
    "Label an answer; it replaces your earlier label.",
    Role.LABELLER,
    label,
    (
        *_OF,
        Parameter("label", "What you think of the answer.", ("good", "bad", "unsure")),
        Parameter(
            "label_id", "Idempotency key, a UUIDv7: a label sent twice with the same one counts once.", longest=36
        ),
        Parameter("note", "Why. Personal data is removed.", longest=NOTE_CHARS, typed=True),
    ),
)
UNDO = Action("/labels/undo", "Take your label on an answer back.", Role.LABELLER, take_back, _OF)
