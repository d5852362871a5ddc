"""Check the events of a batch against a key, and fill in what it says. Pure.

Every event is validated as the scrubber will do it, so that a client learns at once what is wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic_core import from_json

from assay_access.api_keys import KeyRecord
from assay_gateway.json_cut import parts
from assay_schema.events import Event
from assay_schema.ids import derived_event_id
from assay_schema.limits import ENTRY_MAX_BYTES, SCHEMA_VERSION
from assay_schema.validation import InvalidEvent, event_time_ok, identity_of, parse_event

#: Ends an event that does not say how it was sent. The last of two equal members counts.
_ORIGIN = b',"origin":"http"}'
#: Most commas and opening brackets of an event, outside of texts. They determine how long it takes to decode.
PARTS_MAX = 65_536
#: Most rejections that an answer lists.
LISTED_MAX = 100


@dataclass
class Batch:
    """The events of a request: entries to append, and what was rejected."""

    record: KeyRecord
    #: Unix milliseconds of the request.
    now_ms: int
    entries: list[bytes] = field(default_factory=list)
    #: At most `LISTED_MAX` rejections, for the answer.
    rejected: list[dict[str, Any]] = field(default_factory=list)
    #: Number of rejections by rule.
    rules: dict[str, int] = field(default_factory=dict)
    _count: int = 0

    @property
    def rejected_total(self) -> int:
        """Number of rejected events."""
        return sum(self.rules.values())

    def add(self, item: bytes) -> None:
        """Check one event. It becomes an entry or a rejection."""
        for _ in self.steps(item):
            pass

    def steps(self, item: bytes) -> Iterator[None]:
        """Check one event, step by step: each decodes it once, which takes long for a large one."""
        record, whole = self.record, item
        try:
            _expect_few_parts(item)
            try:
                event: Event | None = parse_event(item)
            except InvalidEvent:
                if len(item) > ENTRY_MAX_BYTES:  # decoding it would hold up everyone else
                    raise
                event = None
            if event is None:
                yield
                whole = _completed(item, record, self.now_ms)
                yield
                event = parse_event(whole)
            self.entries.append(_entry(whole, event, record, self.now_ms))
        except InvalidEvent as error:
            self.rules[error.rule] = self.rules.get(error.rule, 0) + 1
            if len(self.rejected) < LISTED_MAX:
                yield
                event_id = identity_of(item)[0] if error.rule != "too_complex" else None
                self.rejected.append(
                    {
                        "index": self._count,
                        "event_id": str(event_id) if event_id else None,
                        "rule": error.rule,
                        "detail": error.detail,
                    }
                )
        self._count += 1


def _expect_few_parts(item: bytes) -> None:
    if PARTS_MAX < len(item) <= ENTRY_MAX_BYTES and parts(item) > PARTS_MAX:
        raise InvalidEvent("too_complex", f"more than {PARTS_MAX} commas and opening brackets")


def _entry(item: bytes, event: Event, record: KeyRecord, now_ms: int) -> bytes:
    """Return the entry of a valid event: its bytes, with project and origin added if it lacks them.

    Raises `InvalidEvent`.

    The project is the key's. An event that names another one is rejected, so a key cannot write into other projects.
    """
    if event.project != record.project:
        if "project" in event.model_fields_set:
            raise InvalidEvent("project_forbidden", "project: the key belongs to another project; leave it out")
        item = _ending_with(item, b',"project":%b}' % orjson.dumps(record.project))
        if len(item) > ENTRY_MAX_BYTES:
            raise InvalidEvent("entry_too_large", f"{len(item)} bytes with its project; at most {ENTRY_MAX_BYTES}")
    if not event_time_ok(event.event_id, now_ms):
        raise InvalidEvent("event_id_ahead", "event_id: its time is more than a day ahead of the server's clock")
    if event.origin is None and len(item) + len(_ORIGIN) <= ENTRY_MAX_BYTES:
        item = _ending_with(item, _ORIGIN)
    return item


def _ending_with(item: bytes, member: bytes) -> bytes:
    """Return a valid event with one more member at its end, without decoding it again."""
    return item.rstrip()[:-1] + member


def _completed(item: bytes, record: KeyRecord, now_ms: int) -> bytes:
    """Return an event with the members that it lacks and the key has. Other bytes stay as they are."""
    try:
        document = from_json(item, cache_strings=False)
    except ValueError:
        return item
    if not isinstance(document, dict):
        return item
    members: dict[str, Any] = {}
    if "schema_version" not in document:
        members["schema_version"] = SCHEMA_VERSION
    if "project" not in document:
        members["project"] = record.project
    if "service" not in document and record.service is not None:
        members["service"] = record.service
    if "occurred_at" not in document:
        moment = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds")
        members["occurred_at"] = moment.replace("+00:00", "Z")
    if "event_id" not in document:
        # The same bytes have the same id, so that a request can be repeated without storing an event twice. Without
        # `occurred_at` the time is that of the request, and each repetition is another event.
        members["event_id"] = derived_event_id(_occurred_ms(document, now_ms), record.project.encode() + b"\0" + item)
    if not members:
        return item
    inner = item.lstrip()[1:]
    comma = b"" if inner.lstrip().startswith(b"}") else b","
    return orjson.dumps(members)[:-1] + comma + inner


def _occurred_ms(document: dict[str, Any], now_ms: int) -> int:
    try:
        return max(0, int(datetime.fromisoformat(document["occurred_at"]).timestamp() * 1000))
    except (KeyError, TypeError, ValueError, OverflowError):
        return now_ms  # the event is rejected for its time, or has none
