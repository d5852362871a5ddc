"""Label an answer, and take a label back."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, get_args

import orjson

from assay_operations.actor import scrubbed_words
from assay_operations.errors import OperationError
from assay_operations.labelling.queues import Queue, checked_event, checked_labeller, label_of, newest_labels
from assay_operations.time_bounds import iso
from assay_schema.ids import new_event_id
from assay_schema.settings import StoreSettings

if TYPE_CHECKING:
    from assay_runtime.store import Client as Store

Value = Literal["good", "bad", "unsure"]
#: Characters of a note, as in the table `labels`.
NOTE_CHARS = 2_000

#: Only a judged answer of the base stream is in a sample; labels of others would be of no use.
_ARRIVED = """
SELECT toUnixTimestamp64Milli(min(created_at)) FROM answers
WHERE project = {project:String} AND event_id = {event:UUID} AND event_time = UUIDv7ToDateTime({event:UUID}, 'UTC')
    AND event_id IN (
        SELECT event_id FROM scores
        WHERE project = {project:String} AND event_id = {event:UUID} AND event_time = UUIDv7ToDateTime({event:UUID}, 'UTC')
            AND base AND status = 'scored' AND session_id IS NULL
    )
HAVING count() > 0
"""


@dataclass(frozen=True)
class Label:
    """A label as stored."""

    label_id: str
    event_id: str
    project: str
    queue: str
    label: str
    labeller: str
    note: str
    #: The `label_id` that it replaces or withdraws.
    supersedes: str | None
    withdrawn: bool = False


def submit(
    store: "Store",
    settings: StoreSettings,
    queue: Queue,
    labeller: str,
    event_id: str,
    label: str,
    *,
    note: str = "",
    label_id: str = "",
) -> Label:
    """Store a label, which replaces an earlier one by the same person. Raises `OperationError`.

    `label_id`: idempotency key, a UUID; a label that is submitted twice with the same one counts once. `note` is scrubbed.
    """
    labeller, event = checked_labeller(labeller), checked_event(event_id)
    if label not in get_args(Value):
        raise OperationError("invalid", f"a label is {', '.join(get_args(Value)[:-1])} or {get_args(Value)[-1]}")
    if len(note) > NOTE_CHARS:
        raise OperationError("invalid", f"a note has at most {NOTE_CHARS:,} characters, not {len(note):,}")
    key = checked_event(label_id) if label_id else new_event_id()
    before = label_of(store, queue, labeller, event)
    if before and before.label_id == key:  # submitted again
        return Label(key, event, queue.project, queue.name, before.label, labeller, before.note, None)
    words = scrubbed_words(note)[:NOTE_CHARS]
    made = Label(key, event, queue.project, queue.name, label, labeller, words, before.label_id if before else None)
    _insert(store, settings, made)
    return made


def undo(store: "Store", settings: StoreSettings, queue: Queue, labeller: str, event_id: str = "") -> Label:
    """Take back a person's label on an answer; without an `event_id`, their last one in the queue.

    Raises `OperationError` if there is none. The answer is in the queue again. The table keeps both: the withdrawal is a new row that
    supersedes the label.
    """
    labeller = checked_labeller(labeller)
    last = () if event_id else newest_labels(store, queue, labeller, 1)
    event = checked_event(event_id) if event_id else next((event for event, _, _ in last), "")
    before = label_of(store, queue, labeller, event) if event else None
    if before is None:
        raise OperationError("not_found", f"{labeller} has no label to take back in the queue {queue.name}")
    taken = Label(
        new_event_id(), event, queue.project, queue.name, before.label, labeller, "", before.label_id, withdrawn=True
    )
    _insert(store, settings, taken)
    return taken


def _insert(store: "Store", settings: StoreSettings, label: Label) -> None:
    from assay_runtime.store import insert_json_rows

    found = store.query(_ARRIVED, parameters={"project": label.project, "event": label.event_id}).result_rows
    if not found:
        raise OperationError(
            "not_found", f"no judged answer {label.event_id} of the base stream is stored in project {label.project}"
        )
    row = {name: getattr(label, name) for name in label.__dataclass_fields__} | {
        "schema_version": 1,
        "created_at": iso(datetime.fromtimestamp(found[0][0] / 1000, UTC)),
        "labelled_at": iso(datetime.now(UTC), "microseconds"),
    }
    insert_json_rows(store, f"{settings.base_database}.labels", orjson.dumps(row), 1)
