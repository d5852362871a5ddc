"""Dead letters for display and for requeueing: fields of an entry in, metadata and bytes out.

Letters of `capture` were never scrubbed, so neither metadata nor errors may contain any of their content.
"""

import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from pydantic import ValidationError

from assay_operations.errors import OperationError
from assay_operations.time_bounds import iso, moment_ms
from assay_schema.alerts import Alert
from assay_schema.events import Scrubbed
from assay_schema.failures import Reason
from assay_schema.ids import entry_parts
from assay_schema.printable import printable
from assay_schema.streams import ALERTS, CAPTURE, EVENTS, FAILURES, FIELD, SCORES, SPANS, STREAMS, Stream
from assay_schema.validation import InvalidEvent, identity_of, parse_failure
from assay_ui.formats import counted

#: The `policy` of events stored while scrubbing was off: their text is raw, like that of `capture`.
_UNSCRUBBED = "off"
#: Fields that the scrubber adds to an event; it adds them again.
_ADDED = frozenset(Scrubbed.model_fields)
_NAME = re.compile(r"(?:([0-9]{1,2})/)?([0-9]{1,20}-[0-9]{1,20})")


class NotRequeueableError(ValueError):
    """A dead letter that cannot be requeued. The message is the reason, without any of its content."""


@dataclass(frozen=True)
class DeadLetter:
    """One entry of the stream `dead`."""

    #: Its id in `dead`, which contains the time of the move there.
    id: str
    shard: int
    #: Its origin: the name of the stream, and its id there.
    stream: str
    entry_id: str
    stage: str
    reason: str
    error_class: str
    deliveries: int
    data: bytes

    @classmethod
    def of(cls, shard: int, letter_id: bytes, fields: Mapping[bytes, bytes]) -> "DeadLetter":
        """Make a dead letter from an entry of Redis. Never raises: missing fields are empty."""

        def text(name: str) -> str:
            return fields.get(name.encode(), b"").decode(errors="replace")

        keys = {stream.key(shard): stream.name for stream in STREAMS}
        return cls(
            id=letter_id.decode(),
            shard=shard,
            stream=keys.get(text("stream"), ""),
            entry_id=text("entry_id"),
            stage=text("stage"),
            reason=text("reason"),
            error_class=text("error_class"),
            deliveries=int(text("deliveries")) if text("deliveries").isdecimal() else 0,
            data=fields.get(FIELD.encode(), b""),
        )

    @property
    def buried_ms(self) -> int:
        """Unix milliseconds of the move to `dead`, by Redis's clock."""
        return entry_parts(self.id)[0]

    @property
    def scrubbed(self) -> bool:
        """True if its content may be shown: it is certainly a scrubbed event, a failure or an alert."""
        if self.stream == EVENTS.name:
            event = _object(self.data)
            return event is not None and isinstance(event.get("policy"), str) and event["policy"] != _UNSCRUBBED
        if self.stream == FAILURES.name:
            try:
                parse_failure(self.data)
            except InvalidEvent:
                return False
            return True
        if self.stream == ALERTS.name:
            try:
                Alert.model_validate_json(self.data)
            except ValidationError:
                return False
            return True
        return False

    def metadata(self, kept: timedelta) -> dict[str, Any]:
        """Return all that may be shown of any letter, in the order of the columns. `kept` is their retention."""
        event_id, project, service = identity_of(self.data)
        buried = datetime.fromtimestamp(self.buried_ms / 1000, UTC)
        return {
            "id": self.id,
            "shard": self.shard,
            "buried_at": iso(buried),
            "expires_at": iso(buried + kept),
            "stream": self.stream,
            "entry_id": self.entry_id,
            "stage": self.stage,
            "reason": self.reason,
            "error_class": self.error_class,
            "deliveries": self.deliveries,
            "bytes": len(self.data),
            "scrubbed": self.scrubbed,
            "event_id": None if event_id is None else str(event_id),
            "project": project,
            "service": service,
        }

    def requeued(self) -> tuple[Stream, bytes]:
        """Return the stream to requeue to, and the data. Raises `NotRequeueableError`.

        A scrubbed event is turned back into one as producers send it, under its original `event_id`. Scrubbing it again changes nothing,
        except that its `pii_families` count only new findings.
        """
        if self.stream == CAPTURE.name:
            return CAPTURE, self.data
        if self.stream == FAILURES.name:
            return FAILURES, self.data
        if self.stream == ALERTS.name:
            return ALERTS, self.data
        if self.stream == SPANS.name:
            return SPANS, self.data
        if self.stream == SCORES.name:
            raise NotRequeueableError("it is a score, not an event; to judge its answer again: assay judge rejudge")
        if self.stream != EVENTS.name:
            raise NotRequeueableError("it does not name the stream it came from")
        event = _object(self.data)
        if event is None:
            raise NotRequeueableError("it is not an event: its JSON is invalid")
        return CAPTURE, orjson.dumps({name: value for name, value in event.items() if name not in _ADDED})


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


@dataclass(frozen=True)
class Name:
    """The name of a letter on the command line: its id, which several shards may have, or `SHARD/ID`."""

    shard: int | None
    id: str

    def __str__(self) -> str:
        return self.id if self.shard is None else f"{self.shard}/{self.id}"


def name_of(text: str) -> Name:
    """Parse the name of a letter. Raises `OperationError`."""
    match = _NAME.fullmatch(text)
    if not match:
        raise OperationError("invalid", f"{text[:60]!r} is not the id of a dead letter; `assay dead list` shows them")
    return Name(None if match[1] is None else int(match[1]), match[2])


@dataclass(frozen=True)
class Filter:
    """Conditions on the letters of a command. None matches every letter."""

    reason: str | None = None
    stage: str | None = None
    since_ms: int | None = None

    def __post_init__(self) -> None:
        if self.reason is not None and self.reason not in set(Reason):
            raise OperationError("invalid", f"--reason: {self.reason!r} is not one of {', '.join(Reason)}")

    def __bool__(self) -> bool:
        return self != Filter()

    @property
    def first(self) -> str:
        """The smallest id that can match."""
        return "-" if self.since_ms is None else f"{self.since_ms}-0"

    def wants(self, letter: DeadLetter) -> bool:
        """Return True if a letter matches."""
        return (
            self.reason in (None, letter.reason)
            and self.stage in (None, letter.stage)
            and (self.since_ms is None or letter.buried_ms >= self.since_ms)
        )


def filter_of(reason: str | None, stage: str | None, since: str | None) -> Filter:
    """Return a filter by reason, stage, and start (a duration ago or a time).

    Raises `OperationError`, also for an unknown name.
    """
    stages = dict.fromkeys(group for stream in STREAMS for group in stream.groups)
    for option, given, known in (("--stage", stage, stages), ("--reason", reason, [each.value for each in Reason])):
        if given is not None and given not in known:
            raise OperationError("invalid", f"{option}: {printable(given)!r} is not one of {', '.join(known)}")
    now_ms = time.time_ns() // 1_000_000
    return Filter(reason, stage, None if since is None else max(0, moment_ms(since, now_ms, "--since")))


def by_stream(streams: Counter[str]) -> str:
    """Return the number of dead letters by stream in words."""
    where = ", ".join(f"{count:,} to {stream}" for stream, count in sorted(streams.items()))
    return f"{counted(streams.total(), 'dead letter')}{f': {where}' if where else ''}"


def digest(names: Iterable[Name]) -> str:
    """Return a short text that names a set of letters: another set has another one. Pure."""
    each = sorted(f"{name.shard}:{name.id}" for name in names)
    return hashlib.sha256("\n".join(each).encode()).hexdigest()[:32]


def tally(letters: Iterable[tuple[str, str]]) -> str:
    """Format the counts by stage and reason, largest first: `scrubber/other 2, writer/other 1`."""
    counts = letters if isinstance(letters, Counter) else Counter(letters)
    return ", ".join(
        f"{stage or '?'}/{reason or '?'} {count:,}"
        for (stage, reason), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
