"""The sample that people label: judged answers in random order, shown without the judge's verdict."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from assay_operations.actor import NAME_CHARS
from assay_operations.errors import OperationError
from assay_operations.events.filters import OPEN_END_MS, Range
from assay_operations.events.rows import from_unix_ms
from assay_operations.time_bounds import utc
from assay_schema.ids import event_ms
from assay_schema.limits import PROJECT_PATTERN
from assay_schema.printable import printable

if TYPE_CHECKING:
    from assay_runtime.store import Client as Store

DEFAULT_QUEUE = "default"
#: Names of projects, queues and datasets have the same form.
_NAME = re.compile(PROJECT_PATTERN)
#: Keys of answers that are read at a time.
_KEYS_AT_ONCE = 100

JUDGED = """
    SELECT DISTINCT event_id FROM scores
    WHERE project = {project:String} AND base AND status = 'scored' AND session_id IS NULL
        AND event_time >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
        AND event_time < fromUnixTimestamp64Milli({until:Int64}, 'UTC')
"""

#: The hash of queue and event is the order: it is random, and the same for everybody.
_UNLABELLED = f"""
SELECT toString(event_id) FROM ({JUDGED})
WHERE event_id NOT IN (
    SELECT event_id FROM labels WHERE project = {{project:String}} AND queue = {{queue:String}} AND labeller = {{labeller:String}}
)
ORDER BY sipHash64({{queue:String}}, event_id), event_id
LIMIT {{count:UInt32}} OFFSET {{skip:UInt32}}
"""  # noqa: S608 - constants

_LEFT_OUT = f"""
SELECT count() FROM ({JUDGED})
WHERE event_id IN {{seen:Array(UUID)}} AND event_id NOT IN (
    SELECT event_id FROM labels WHERE project = {{project:String}} AND queue = {{queue:String}} AND labeller = {{labeller:String}}
)
"""  # noqa: S608 - constants

_ANSWERS = """
SELECT toString(a.event_id) AS event_id, a.event_time AS event_time, query, answer,
    a.contexts.id AS ids, a.contexts.source_id AS sources, a.contexts.text AS texts
FROM answers AS a
WHERE a.project = {project:String} AND a.event_time IN {times:Array(DateTime64(3, 'UTC'))} AND a.event_id IN {ids:Array(UUID)}
"""

_NEWEST = """
SELECT toString(event_id), label, labelled_at FROM labels
WHERE project = {project:String} AND queue = {queue:String} AND labeller = {labeller:String}
ORDER BY stored_at DESC, label_id DESC LIMIT {limit:UInt32}
"""
_LABEL = """
SELECT toString(label_id), label, labelled_at, note FROM labels
WHERE project = {project:String} AND queue = {queue:String} AND labeller = {labeller:String} AND event_id = {event:UUID}
"""

_VERDICTS = """
SELECT fingerprint, backend, model, metrics, claims, contradicted, judged_at FROM scores
WHERE project = {project:String} AND event_id = {event:UUID} AND event_time = UUIDv7ToDateTime({event:UUID}, 'UTC')
    AND base AND status = 'scored' AND session_id IS NULL
ORDER BY judged_at DESC, fingerprint
"""


@dataclass(frozen=True)
class Queue:
    """A sample to label. Raises `OperationError` for a name of another form.

    Attributes:
        project: project of the answers.
        name: name of the sample; each has an order of its answers that depends on nothing else.
        span: times of the answers in the sample.
    """

    project: str = "default"
    name: str = DEFAULT_QUEUE
    span: Range = Range()  # noqa: RUF009 - it never changes

    def __post_init__(self) -> None:
        checked_name(self.project, "project")
        checked_name(self.name, "queue")

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of queries."""
        return {"project": self.project, "queue": self.name, "since": self.span.from_ms, "until": self.span.to_ms}


@dataclass(frozen=True)
class Passage:
    """A passage that the answer was made from."""

    id: str
    source_id: str | None
    text: str


@dataclass(frozen=True)
class Verdict:
    """The result of one judge."""

    fingerprint: str
    backend: str
    model: str
    metrics: dict[str, float]
    claims: int
    contradicted: int
    judged_at: datetime


@dataclass(frozen=True)
class Given:
    """The label that a labeller gave an answer, and that is in force."""

    label_id: str
    label: str
    labelled_at: datetime
    note: str


@dataclass(frozen=True)
class Item:
    """An answer to label.

    Labelling is blind: until this person labelled the answer, `label` is None and `verdicts` is empty.
    """

    event_id: str
    event_time: datetime
    project: str
    query: str
    answer: str
    passages: tuple[Passage, ...]
    label: Given | None = None
    verdicts: tuple[Verdict, ...] = ()


def next_items(
    store: "Store", queue: Queue, labeller: str, *, count: int = 1, seen: Collection[str] = ()
) -> list[Item]:
    """Return the next answers that a labeller has not labelled, in the order of the queue.

    Two people get the same answers in the same order, without those on which a person has seen the judge's verdict (`seen`): a label
    of these would not be blind. Answers that are not stored any more are skipped.
    """
    labeller, found, known = checked_labeller(labeller), list[Item](), frozenset(seen)
    for unlabelled in _unlabelled(store, queue, labeller):
        keys = [key for key in unlabelled if key not in known]
        # Answers of a sample are far from each other in the table, and each is read with all of its neighbours.
        at_once = count
        while keys and len(found) < count:
            items = _items(store, queue.project, keys[:at_once])
            found += [items[key] for key in keys[:at_once] if key in items]
            keys, at_once = keys[at_once:], _KEYS_AT_ONCE
        if len(found) >= count:
            break
    return found[:count]


def left_out(store: "Store", queue: Queue, labeller: str, seen: Collection[str]) -> int:
    """Count the answers of a queue that a person did not label before seeing the judge's verdict."""
    if not seen:
        return 0
    asked = queue.parameters | {"labeller": checked_labeller(labeller), "seen": list(seen)}
    return int(store.query(_LEFT_OUT, parameters=asked).result_rows[0][0])


def item(store: "Store", queue: Queue, labeller: str, event_id: str) -> Item:
    """Return one answer; if this person labelled it, with the label and the verdicts of judges.

    Raises `OperationError` if the answer is not stored.
    """
    labeller, event = checked_labeller(labeller), checked_event(event_id)
    items = _items(store, queue.project, [event])
    if event not in items:
        raise OperationError("not_found", f"no answer {event} is stored in project {queue.project}")
    bare, label = items[event], label_of(store, queue, labeller, event)
    if label is None:
        return bare
    rows = store.query(_VERDICTS, parameters={"project": queue.project, "event": event}).named_results()
    verdicts = tuple(Verdict(**(dict(row) | {"judged_at": utc(row["judged_at"])})) for row in rows)
    return Item(**{name: getattr(bare, name) for name in _BARE}, label=label, verdicts=verdicts)


_BARE = ("event_id", "event_time", "project", "query", "answer", "passages")


def label_of(store: "Store", queue: Queue, labeller: str, event_id: str) -> Given | None:
    """Return the label in force of a labeller on an answer, if any."""
    rows = store.query(_LABEL, parameters=queue.parameters | {"labeller": labeller, "event": event_id}).result_rows
    if not rows:
        return None
    label_id, label, at, note = rows[0]
    return Given(label_id, label, utc(at), note)


def newest_labels(store: "Store", queue: Queue, labeller: str, limit: int) -> list[tuple[str, str, datetime]]:
    """Return answer, label and time of the newest labels in force of a labeller, newest first."""
    values = queue.parameters | {"labeller": labeller, "limit": limit}
    return [(event, label, utc(at)) for event, label, at in store.query(_NEWEST, parameters=values).result_rows]


def checked_name(name: str, what: str) -> str:
    """Return the name of a project, queue or dataset. Raises `OperationError` if it has another form."""
    if not _NAME.fullmatch(name):
        raise OperationError(
            "invalid", f"the name of a {what} has 1 to 64 letters, digits, dots, hyphens and underscores"
        )
    return name


def checked_labeller(name: str) -> str:
    """Return the name of a labeller or reviewer.

    Raises `OperationError` if it is empty, too long or not printable.
    """
    if not name.strip() or len(name) > NAME_CHARS or printable(name) != name:
        raise OperationError("invalid", f"the name of a person has 1 to {NAME_CHARS} printable characters")
    return name


def checked_event(event_id: str) -> str:
    """Return an event id in its usual form.

    Raises `OperationError` if it is not a UUIDv7 with a time that an event can have.
    """
    try:
        event = UUID(event_id)
    except ValueError:
        event = None
    if event is None or event.version != 7 or event_ms(event) >= OPEN_END_MS:
        raise OperationError("invalid", "an event_id is a UUIDv7, such as 01988e5c-0000-7000-8000-000000000000")
    return str(event)


def _unlabelled(store: "Store", queue: Queue, labeller: str) -> Iterator[list[str]]:
    """Yield keys of judged answers without a label of this person."""
    skip = 0
    while True:
        parameters = queue.parameters | {"labeller": labeller, "count": _KEYS_AT_ONCE, "skip": skip}
        keys = [str(key) for (key,) in store.query(_UNLABELLED, parameters=parameters).result_rows]
        yield keys
        if len(keys) < _KEYS_AT_ONCE:
            return
        skip += _KEYS_AT_ONCE


def _items(store: "Store", project: str, keys: Sequence[str]) -> dict[str, Item]:
    if not keys:
        return {}
    times = [from_unix_ms(event_ms(UUID(key))) for key in keys]
    rows = store.query(_ANSWERS, parameters={"project": project, "ids": list(keys), "times": times}).named_results()
    return {row["event_id"]: _item(project, row) for row in rows}


def _item(project: str, row: dict[str, Any]) -> Item:
    passages = tuple(map(Passage, row["ids"], row["sources"], row["texts"]))
    return Item(row["event_id"], utc(row["event_time"]), project, row["query"], row["answer"], passages)
