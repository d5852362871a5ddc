"""From a raw entry to a scrubbed event or a failure. Pure: bytes in, bytes out; no clock, no network.

Fails closed: an entry that cannot be validated and scrubbed becomes a failure that names the rule, never the content.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from assay_runtime.entries import Entry, Outcome, failure_of
from assay_schema.events import STORED_KINDS, Event
from assay_schema.failures import Reason
from assay_schema.ids import entry_parts
from assay_schema.validation import InvalidEvent, event_time_ok, parse_event, parse_scrubbed

from .engine import Scrubber
from .paths import scrub_paths

STAGE = "scrubber"
#: The `policy` of events stored while `capture.scrub_pii` is false.
UNSCRUBBED = "off"


class Processor:
    """Validates and scrubs entries with one scrubber; None passes text through as it is (`capture.scrub_pii = false`)."""

    def __init__(self, scrubber: Scrubber | None) -> None:
        self._scrubber = scrubber
        self._policy = scrubber.policy.fingerprint if scrubber else UNSCRUBBED
        #: Findings of the last batch, by family.
        self.findings: Counter[str] = Counter()
        #: Trace contexts of the last batch's events.
        self.traceparents: list[str] = []

    def process(self, entries: Iterator[Entry]) -> list[Outcome]:
        """One outcome for every entry, in order. Never raises because of an entry."""
        self.findings = Counter()
        self.traceparents = []
        return [self._outcome(entry) for entry in entries]

    def _outcome(self, entry: Entry) -> Outcome:
        try:
            return Outcome(entry.id, event=self._scrubbed(entry))
        except InvalidEvent as error:
            return refuse(entry, Reason.CHECK_VIOLATION, error.rule, error.detail)
        except Exception as error:  # noqa: BLE001  # fail closed, whatever went wrong
            return refuse(entry, Reason.SCRUBBER_EXCEPTION, type(error).__name__, "the event could not be scrubbed")

    def _scrubbed(self, entry: Entry) -> bytes:
        event = parse_event(entry.data)
        if event.kind not in STORED_KINDS:
            raise InvalidEvent("kind_not_stored", f"kind {event.kind} is known, but this version has no table for it")
        arrived_ms = entry_parts(entry.id)[0]
        if not event_time_ok(event.event_id, arrived_ms):
            raise InvalidEvent("event_id_ahead", "event_id: its time is more than a day ahead of the log")
        payload: dict[str, Any] = event.payload.model_dump()
        counts: dict[str, int] = {}
        if self._scrubber:
            payload, counts = scrub_paths(self._scrubber, event.kind, payload)
        data = encode(event, payload, arrived_ms, counts, self._policy)
        if counts:
            # A replacement may be longer than what it replaced, and reach a limit.
            parse_scrubbed(b'{"id":0,' + data[1:])
        self.findings.update(counts)
        if event.traceparent:
            self.traceparents.append(event.traceparent)
        return data


def encode(event: Event, payload: dict[str, Any], arrived_ms: int, counts: dict[str, int], policy: str) -> bytes:
    """JSON of a scrubbed event, all but its `id`, which the log gives it."""
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
            "created_at": datetime.fromtimestamp(arrived_ms / 1000, UTC),
            "pii_families": counts,
            "policy": policy,
        },
        option=orjson.OPT_UTC_Z,
    )


def refuse(entry: Entry, reason: Reason, error_class: str, detail: str) -> Outcome:
    """The outcome of an entry that is not stored."""
    return Outcome(entry.id, failure=failure_of(entry, STAGE, reason, error_class, detail))
