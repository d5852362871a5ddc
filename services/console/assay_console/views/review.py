"""Page of review: captured retrievals become cases of a golden dataset."""

import asyncio
import re
from collections.abc import Collection, Mapping
from datetime import datetime

from assay_console.page import TIMES, Action, Ask, Document, Done, Form, Page, Panel, Parameter, times_in
from assay_console.people import Role
from assay_console.pieces import SHOWN_CHARS, Text, text_of
from assay_console.scope import link
from assay_console.views.one_project import project_of
from assay_operations.errors import OperationError
from assay_operations.events.filters import EventFilter, Range
from assay_operations.events.listing import Page as Rows
from assay_operations.events.listing import list_events
from assay_operations.events.rows import EventRow
from assay_operations.golden.candidates import Candidate, review_candidates
from assay_operations.golden.datasets import SavedCase, cases_of, latest_version, list_datasets
from assay_operations.golden.enough import Enough, enough_of
from assay_operations.golden.retrievals import Retrieval, never_retrieved, retrieval_of
from assay_operations.golden.save import Review, case_id_of, save_case
from assay_operations.labelling.queues import checked_event
from assay_schema.fields import Kind
from assay_schema.limits import QUERY_MAX_CHARS

#: Dataset if the link names none.
_DATASET = "golden"
#: Characters of a document's text that are shown at first, and when a reviewer opens it.
_BEGINNING_CHARS, _TEXT_CHARS = 500, 4_000
#: Questions that a search returns; documents that a question names, and characters of each.
_FOUND, _NAMED, _NAME_CHARS = 50, 5, 100


class Queued(Document):
    """A question to review."""

    event_id: str
    time: datetime
    question: str
    #: Number of retrievals of this and similar questions, and of verdicts on them.
    times: int
    positive: int
    negative: int


class Retrieved(Document):
    """A retrieved document. `expected`: the saved case has it; `good`: people found it good.

    `text` is None if neither the retrieval nor an answer has it; `beginning` is its beginning, None if that is all of it.
    """

    rank: int
    name: str
    score: float | None
    text: Text | None
    beginning: Text | None
    expected: bool
    good: bool


class Current(Document):
    """The question under review, with the saved case if there is one."""

    event_id: str
    time: datetime | None
    question: Text
    documents: tuple[Retrieved, ...]
    #: Expected documents that were not retrieved.
    others: tuple[str, ...]
    null_case: bool
    expected_answer: str
    #: Version of the case that is saved; 0 for a new case.
    version: int
    reviewer: str
    #: Probability with which the question was drawn; kept in the case.
    inclusion_probability: float


class ReviewPage(Document):
    """Questions to review, and one of them."""

    project: str
    #: Projects to choose from, if the link names none.
    projects: tuple[str, ...]
    dataset: str
    datasets: tuple[str, ...]
    #: How many cases the dataset has, and a verdict needs; None if the store is away.
    enough: Enough | None
    negative_only: bool
    scrubbed: bool
    #: Text that the questions contain; empty without a search. `searched_from`: how far back it came; None if through the whole range.
    q: str
    searched_from: datetime | None
    queue: Panel[tuple[Queued, ...]]
    current: Current | None
    saved: str
    #: Documents that were typed and that no retrieval returned: the form asks before it saves them.
    unknown: tuple[str, ...]
    may_save: bool


async def read(ask: Ask) -> ReviewPage:
    """Read the questions, then the one that the link names, or the first."""
    project, projects = await project_of(ask)
    dataset = ask.text("dataset", _DATASET)
    queue: Panel[tuple[Queued, ...]] = Panel(state="ready", value=())
    names: tuple[str, ...] = ()
    searched_from: datetime | None = None
    current: Current | None = None
    enough: Enough | None = None
    if project:
        candidates, cases, stored = await asyncio.gather(
            ask.panel(
                review_candidates, project=project, dataset=dataset, span=_span(ask),
                negative_only=bool(ask.text("negative")), include_scrubbed=bool(ask.text("scrubbed")),
            ),
            _cases(ask, project, dataset),
            ask.panel(list_datasets, project=project),
        )  # fmt: skip
        names = tuple(each.name for each in stored.value or ())
        if cases is not None:
            enough = enough_of(cases)
        known = {case.event_id for case in cases or ()}
        left = [each for each in candidates.value or () if each.event_id not in known]
        queue = candidates.holding(tuple(map(_queued, left)) if candidates.value is not None else None)
        if ask.text("q"):
            found = await _found(ask, project)
            rows = (
                None
                if found.value is None
                else questions_of(found.value, known, with_scrubbed=bool(ask.text("scrubbed")))
            )
            queue = found.holding(rows)
            searched_from = found.value.searched_from if found.value and not found.value.complete else None
        event = ask.text("event") or (queue.value[0].event_id if queue.value else "")
        if event and candidates.state == "ready":
            current = await _current(ask, project, dataset, event, left)
    return ReviewPage(
        project=project,
        projects=projects,
        dataset=dataset,
        datasets=names,
        enough=enough,
        negative_only=bool(ask.text("negative")),
        scrubbed=bool(ask.text("scrubbed")),
        q=ask.text("q"),
        searched_from=searched_from,
        queue=queue,
        current=current,
        saved=ask.notice,
        unknown=(),
        may_save=ask.person.role >= Role.LABELLER,
    )


async def _cases(ask: Ask, project: str, dataset: str) -> list[SavedCase] | None:
    """Return the cases as they are now, retired ones too, or None: the list of candidates may be some seconds old."""
    try:
        return await ask.store(cases_of, project, dataset, with_retired=True)
    except OperationError as error:
        if error.kind != "unavailable":
            raise
        return None


async def _found(ask: Ask, project: str) -> Panel[Rows]:
    """Search the captured questions of the range."""
    wanted = EventFilter((Kind.RETRIEVAL,), project, text=ask.text("q"))
    return await ask.panel(list_events, wanted, Range(ask.scope.from_ms, ask.scope.to_ms), limit=_FOUND)


def questions_of(found: Rows, known: Collection[str | None], *, with_scrubbed: bool) -> tuple[Queued, ...]:
    """Return the distinct questions of a search, the newest first, without those that have a case. Pure."""
    asked: dict[str, list[EventRow]] = {}
    for row in found.rows:
        if row.event_id not in known and (with_scrubbed or not row.pii):
            asked.setdefault(row.text, []).append(row)
    return tuple(
        Queued(event_id=each[0].event_id, time=each[0].time, question=text, times=len(each), positive=0, negative=0)
        for text, each in asked.items()
    )


def _span(ask: Ask) -> Range:
    """Return the range that questions are chosen from. One that ends now begins with a minute: the next request asks the same."""
    if ask.scope.span:
        return Range(ask.scope.from_ms // 60_000 * 60_000)
    return Range(ask.scope.from_ms, ask.scope.to_ms)


def _queued(each: Candidate) -> Queued:
    return Queued(
        event_id=each.event_id,
        time=each.event_time,
        question=each.query,
        times=each.times,
        positive=each.positive,
        negative=each.negative,
    )


async def _current(ask: Ask, project: str, dataset: str, event: str, left: list[Candidate]) -> Current:
    """Read the retrieval and its case. A retrieval that is not stored any more may still have one."""
    retrieval: Retrieval | None = None
    try:
        retrieval = await ask.store(retrieval_of, project, event)
    except OperationError as error:
        if error.kind != "not_found":
            raise
        case = await ask.store(latest_version, project, dataset, case_id_of(checked_event(event)))
        if case is None:
            raise
    else:
        case = await ask.store(latest_version, project, dataset, case_id_of(retrieval.event_id))
    candidate = next((each for each in left if retrieval and each.event_id == retrieval.event_id), None)
    return current_of(retrieval, case, candidate, None if ask.text("full") else _TEXT_CHARS)


def current_of(
    retrieval: Retrieval | None, case: SavedCase | None, candidate: Candidate | None, longest: int | None = _TEXT_CHARS
) -> Current:
    """Return what the reviewer decides about; `longest`: characters of a document's text. Pure."""
    expected = [*case.expected_slugs, *map(str, case.expected_chunk_ids)] if case and not case.retired else []
    good = set(candidate.good) if candidate else set()
    documents = tuple(
        Retrieved(
            rank=each.rank,
            name=each.name,
            score=each.score,
            text=text_of(each.text, (), longest) if each.text else None,
            beginning=text_of(each.text, (), _BEGINNING_CHARS)
            if each.text and len(each.text) > _BEGINNING_CHARS
            else None,
            expected=each.name in expected,
            good=each.name in good,
        )
        for each in (retrieval.documents if retrieval else ())
    )
    retrieved = {each.name for each in documents}
    probability = case.inclusion_probability if case else candidate.inclusion_probability if candidate else 1.0
    return Current(
        event_id=retrieval.event_id if retrieval else (case.event_id or "") if case else "",
        time=retrieval.event_time if retrieval else None,
        question=text_of(retrieval.query if retrieval else case.query if case else "", (), SHOWN_CHARS),
        documents=documents,
        others=tuple(each for each in expected if each not in retrieved),
        null_case=bool(case and not case.retired and case.null_case),
        expected_answer=(case.expected_answer or "") if case and not case.retired else "",
        version=case.version if case and not case.retired else 0,
        reviewer=case.reviewer if case and not case.retired else "",
        inclusion_probability=probability,
    )


async def read_again(ask: Ask, sent: Mapping[str, str]) -> ReviewPage:
    """Read the page with the decision that was sent."""
    page, unknown = await asyncio.gather(read(ask), _unknown(ask, sent.get("project") or "default", _typed(sent)))
    current = page.current and with_sent(page.current, sent)
    return page.model_copy(update={"current": current, "unknown": tuple(unknown)})


def with_sent(current: Current, sent: Mapping[str, str]) -> Current:
    """Return what the reviewer decides about, with the fields that were sent. Pure."""
    ranks = set(sent.get("ranks", "").split(","))
    documents = (each.model_copy(update={"expected": str(each.rank) in ranks}) for each in current.documents)
    return current.model_copy(
        update={
            "documents": tuple(documents),
            "others": tuple(_typed(sent)),
            "null_case": bool(sent.get("null_case")),
            "expected_answer": sent.get("expected_answer", "").replace("\r\n", "\n"),
            "inclusion_probability": _probability(sent.get("inclusion_probability") or "1"),
        }
    )


def _form_parameters(ask: Ask, sent: Mapping[str, str]) -> dict[str, str]:
    names = {"project": sent.get("project", ""), "event": sent.get("event_id", ""), "dataset": ask.path["name"]}
    return {name: value for name, value in (names | _place(sent)).items() if value}


def _place(sent: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that lead back to the same questions."""
    return times_in(sent) | {each.name: sent.get(each.name, "") for each in _PLACE}


async def save(ask: Ask, fields: Mapping[str, str]) -> Done:
    """Save a case and go to the next question.

    A name that no retrieval returned may be a typing error: it asks first. Raises `OperationError`.
    """
    project, dataset, event = fields.get("project") or "default", ask.path["name"], fields.get("event_id", "")
    typed = names = _typed(fields)
    ranks = _integers("ranks", fields.get("ranks", ""))
    of_chunks = False
    if ranks or names:
        try:
            retrieval = await ask.store(retrieval_of, project, event)
        except OperationError as error:
            if error.kind != "not_found" or ranks:
                raise
        else:
            of_chunks = retrieval.of_chunks
            listed = {each.rank: each.name for each in retrieval.documents}
            if wrong := [rank for rank in ranks if rank not in listed]:
                raise OperationError("invalid", f"ranks: the retrieval has no document {wrong[0]}")
            names = [*(listed[rank] for rank in ranks), *names]
    review = Review(
        expected_slugs=() if of_chunks else names,
        expected_chunk_ids=[_chunk(name) for name in names] if of_chunks else (),
        null_case=bool(fields.get("null_case")),
        expected_answer=fields.get("expected_answer", "").replace("\r\n", "\n"),
    )
    is_asked = not (review.null_case or fields.get("unretrieved"))
    if is_asked and (unknown := await _unknown(ask, project, typed)):
        raise OperationError(
            "invalid",
            f"documents: no captured retrieval of {project} returned {', '.join(unknown)}",
            "correct the name, or save the case all the same (`unretrieved=1`)",
        )
    saved = await ask.store(
        save_case, ask.settings.store, project, dataset, review, ask.person.name, event_id=event,
        inclusion_probability=_probability(fields.get("inclusion_probability") or "1"),
        base_version=(_integers("base_version", fields.get("base_version", "")) or [0])[0],
    )  # fmt: skip
    following = link("/review", {"project": project, "dataset": dataset if dataset != _DATASET else ""}, _place(fields))
    return Done(following, saved.event_id or "")


def _typed(fields: Mapping[str, str]) -> list[str]:
    return [each.strip() for each in fields.get("documents", "").splitlines() if each.strip()]


async def _unknown(ask: Ask, project: str, typed: list[str]) -> list[str]:
    """Return documents that were typed and never retrieved, for a question; it is not asked if this search fails."""
    try:
        unknown = await ask.store(never_retrieved, project, typed) if typed else ()
    except OperationError:
        return []
    more = [f"and {len(unknown) - _NAMED} more"] if len(unknown) > _NAMED else []
    return [each[:_NAME_CHARS] for each in unknown[:_NAMED]] + more


def _integers(name: str, text: str) -> list[int]:
    parts = [part for part in text.split(",") if part]
    if not all(re.fullmatch(r"\d{1,9}", part, re.ASCII) for part in parts):
        raise OperationError("invalid", f"{name}: not a number")
    return [int(part) for part in parts]


def _chunk(name: str) -> int:
    if not re.fullmatch(r"-?\d{1,19}", name, re.ASCII):
        raise OperationError("invalid", "documents: this retrieval names chunks by numbers")
    return int(name)


def _probability(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OperationError("invalid", "inclusion_probability: not a number") from None


_PLACE = (
    Parameter("negative", "1: only questions with negative feedback.", ("1",)),
    Parameter("scrubbed", "1: also questions of which personal data was removed.", ("1",)),
    Parameter("q", "Part of the question, in any case: searches all captured retrievals of the range.", longest=1_000),
)
PAGE = Page(
    "review",
    "/review",
    "Review",
    "Which documents answer the question?",
    read,
    ReviewPage,
    (
        Parameter("dataset", "Dataset that the case is saved to.", default=_DATASET, longest=64),
        Parameter(
            "event", "Event id of a retrieval, or of an answer of one; without it the first question.", longest=36
        ),
        *_PLACE,
        Parameter("full", "`1`: texts of documents in full length.", ("1",)),
    ),
    span="30d",
    by_project=True,
    key="v",
    command="assay dataset mine{and_project}",
)
SAVE = Action(
    "/datasets/{name}/cases",
    "Save a reviewed case as its next version.",
    Role.LABELLER,
    save,
    (
        *TIMES,
        *_PLACE,
        Parameter("project", "Project of the retrieval.", longest=64),
        Parameter("event_id", "The retrieval.", longest=36),
        Parameter("ranks", "Ranks of expected documents in the retrieved list, separated by commas.", longest=100_000),
        Parameter(
            "documents", "Expected documents that were not retrieved, one in a line.", longest=500_000, typed=True
        ),
        Parameter("unretrieved", "1: save also documents that no captured retrieval returned.", ("1",)),
        Parameter("null_case", "1: no document answers the question.", ("1",)),
        Parameter(
            "expected_answer",
            "The answer that is right. Personal data is removed.",
            longest=2 * QUERY_MAX_CHARS,
            typed=True,
        ),
        Parameter("base_version", "Version that the reviewer saw; 0 for a new case.", longest=9),
        Parameter("inclusion_probability", "Probability with which the question was drawn.", longest=40),
    ),
    Form(PAGE, _form_parameters, read_again),
)
