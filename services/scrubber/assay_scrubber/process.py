"""Turn a raw entry into a scrubbed event or a failure.

Pure: bytes in, bytes out; no network, and a clock only to reject an entry whose ID is far ahead of it.

Fails closed: an entry that cannot be validated and scrubbed becomes a failure that names the rule, never the content.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from assay_runtime.entries import Entry, Outcome, arrived_ms, failure_of
from assay_schema.events import Event
from assay_schema.failures import Reason
from assay_schema.fields import Kind
from assay_schema.validation import InvalidEvent, event_time_ok, parse_event, parse_scrubbed

from .engine import Scrubber
from .own_names import refuse_credentials
from .policy import Action
from .refusal import declared
from .whole_event import scrub_event

STAGE = "scrubber"
#: The `policy` of events stored while `capture.scrub_pii` is false.
UNSCRUBBED = "off"


#: Fields of the envelope that an entry has only if they are set.
OPTIONAL = ("session_id", "user_hash", "origin", "partial")
#: `error_class` of an event that its project's policy refuses.
REFUSED = "pii_refused"


class RefusedError(Exception):
    """The policy refuses to store an event with these families in it."""

    def __init__(self, scrubber: Scrubber, found: Iterable[str]) -> None:
        self.attempted = scrubber.categories(found)
        self.blocked = scrubber.categories(n for n in found if scrubber.policy.action(n) is Action.REFUSE)
        super().__init__(f"the policy of this project refuses {', '.join(self.blocked)}")


class Processor:
    """Validate and scrub entries, each with its project's scrubber.

    If the scrubber is None, text passes through unchanged (`capture.scrub_pii = false`).
    """

    def __init__(self, scrubber: Scrubber | None, projects: Mapping[str, Scrubber] | None = None) -> None:
        self.use(scrubber, projects)
        #: Findings of the last batch, by family.
        self.findings: Counter[str] = Counter()
        #: Events of the last batch that were refused, by category.
        self.refusals: Counter[str] = Counter()
        #: Trace contexts of the last batch's events.
        self.traceparents: list[str] = []

    def use(self, scrubber: Scrubber | None, projects: Mapping[str, Scrubber] | None = None) -> None:
        """Scrub with `projects`' scrubbers from the next batch on.

        Every other project uses `scrubber`.
        """
        self._scrubber, self._projects = scrubber, projects or {}

    def process(self, entries: Iterator[Entry]) -> list[Outcome]:
        """Return one outcome for every entry, in order. Never raises because of an entry."""
        self.findings, self.refusals = Counter(), Counter()
        self.traceparents = []
        return [self._outcome(entry) for entry in entries]

    def _outcome(self, entry: Entry) -> Outcome:
        try:
            return Outcome(entry.id, event=self._scrubbed(entry))
        except RefusedError as error:
            outcome = refuse(entry, Reason.CHECK_VIOLATION, REFUSED, str(error))
            self.refusals.update(error.blocked)
            sets = {"pii_attempted": error.attempted, "pii_blocked": error.blocked}
            assert outcome.failure is not None
            return replace(outcome, failure=outcome.failure.model_copy(update=sets))
        except InvalidEvent as error:
            return refuse(entry, Reason.CHECK_VIOLATION, error.rule, error.detail)
        except Exception as error:  # noqa: BLE001  # fail closed on any error
            return refuse(entry, Reason.SCRUBBER_EXCEPTION, type(error).__name__, "the event could not be scrubbed")

    def _scrubbed(self, entry: Entry) -> bytes:
        event = parse_event(entry.data)
        arrived = arrived_ms(entry.id)
        if not event_time_ok(event.event_id, arrived):
            raise InvalidEvent("event_id_ahead", "event_id: its time is more than a day ahead of the log")
        payload: dict[str, Any] = event.payload.model_dump()
        pii, policy = NOTHING, UNSCRUBBED
        scrubber = self._projects.get(event.project, self._scrubber)
        if scrubber:
            policy = scrubber.fingerprint
            payload, found = scrub_event(scrubber, event.kind, payload)
            refuse_credentials(event.kind, payload, event.service, event.project, event.session_id)
            if found:
                pii = _pii(scrubber, found)
        if event.kind == Kind.TOOL_CALL and payload["status"] == "refused":
            pii = _with_declared(pii, payload["result_summary"])
        data = encode(event, payload, arrived, pii, policy)
        if pii.families:
            # A replacement can be longer than the text that it replaces, and exceed a limit.
            parse_scrubbed(b'{"id":0,' + data[1:])
            self.findings.update(pii.families)
        if event.traceparent:
            self.traceparents.append(event.traceparent)
        return data


class Pii(NamedTuple):
    """The findings of one event.

    `families`: redacted findings, by family; the rest as in `ScrubbedEvent`.
    """

    families: dict[str, int]
    attempted: list[str]
    blocked: list[str]


NOTHING = Pii({}, [], [])


def _pii(scrubber: Scrubber, found: dict[str, int]) -> Pii:
    """Return the findings of an event. Raises RefusedError."""
    attempted = scrubber.categories(found)
    if not scrubber.policy.actions:
        return Pii(found, attempted, attempted)
    action = scrubber.policy.action
    if any(action(name) is Action.REFUSE for name in found):
        raise RefusedError(scrubber, found)
    removed = {name: count for name, count in found.items() if action(name) is not Action.ALLOW}
    return Pii(removed, attempted, scrubber.categories(removed))


def _with_declared(pii: Pii, summary: Any) -> Pii:
    """Add the categories because of which the producer's own policy refused a tool call."""
    attempted, blocked = declared(summary)
    return Pii(pii.families, sorted({*pii.attempted, *attempted}), sorted({*pii.blocked, *blocked}))


def encode(event: Event, payload: dict[str, Any], arrived: int, pii: Pii, policy: str) -> bytes:
    """Encode a scrubbed event as JSON without its `id`, which the log assigns."""
    # Most events have no findings: readers treat a missing list as empty.
    sets: dict[str, Any] = {"pii_attempted": pii.attempted, "pii_blocked": pii.blocked} if pii.attempted else {}
    sets |= {name: value for name in OPTIONAL if (value := getattr(event, name)) not in (None, False)}
    return orjson.dumps(
        {
            "schema_version": event.schema_version,
            "event_id": event.event_id,
            "kind": event.kind,
            "project": event.project,
            "service": event.service,
            "occurred_at": event.occurred_at,
            "traceparent": event.traceparent,
            "payload": payload,
            "created_at": datetime.fromtimestamp(arrived / 1000, UTC),
            "pii_families": pii.families,
            "policy": policy,
            **sets,
        },
        option=orjson.OPT_UTC_Z,
    )


def refuse(entry: Entry, reason: Reason, error_class: str, detail: str) -> Outcome:
    """Return the outcome of an entry that is not stored."""
    return Outcome(entry.id, failure=failure_of(entry, STAGE, reason, error_class, detail))
