"""Export the entries of a shard: each is acknowledged after the backend took its span.

A backend that is away, busy, or refuses everything is an outage: entries wait, and none is to blame. A span is to blame
only if the backend refuses it and at the same time takes another one. Its request is halved until it is alone; then it
is recorded as a failure, and keeps no other back. If the exporter dies between the backend's answer and the
acknowledgement, a span is sent again with the same id.
"""

import time
from collections.abc import Callable, Sequence

from assay_otlp_exporter.backend import Backend
from assay_otlp_exporter.batch import Item, packed
from assay_otlp_exporter.sender import Answer
from assay_runtime.entries import Entry, Outcome, Process, SinkUnavailableError, acquit, failure_of
from assay_schema.failures import Reason

STAGE = "otlp_exporter"
#: Statuses that refuse the content of a request.
REFUSED = (400, 413, 422)
#: Statuses that are never a span's fault: credentials, and what OTLP says to retry.
NEVER_BLAMED = (401, 403, 429, 502, 503, 504)
#: Seconds after which any other failure of a request may be the fault of a span in it: an internal error, no answer.
SUSPECT_AFTER_S = 60.0


class _StoppingError(Exception):
    """Ends the work on a batch at a stop; what the backend has not answered stays pending."""


class Export:
    """The work on one shard of a stream. `item_of` returns the span of an entry, or None for none."""

    def __init__(
        self, backend: Backend, item_of: Callable[[Entry], Item | None], suspect_after_s: float = SUSPECT_AFTER_S
    ) -> None:
        self._backend = backend
        self._item_of = item_of
        self._suspect_after_s = suspect_after_s
        #: The current batch, by entry: the span, or None. A retry makes none again.
        self._items: dict[tuple[str, str], Item | None] = {}
        #: Entries of the current batch whose spans the backend took or refused: a retry does not send them again.
        self._outcomes: dict[tuple[str, str], Outcome] = {}
        #: When the first request of the current batch failed for no clear reason; None if none did.
        self._failing_since: float | None = None

    def process(self) -> Process:
        """Return the handler of the shard."""

        async def export(entries: Sequence[Entry]) -> list[Outcome]:
            self._begin(entries)
            items = [self._items[entry.name] for entry in entries if entry.name not in self._outcomes]
            await acquit()  # the backend may be slow
            try:
                for part in packed([item for item in items if item]):
                    await self._deliver(part)
            except (_StoppingError, SinkUnavailableError):
                if not self._backend.stopping.is_set():
                    raise
            outcomes = [outcome for entry in entries if (outcome := self._outcome(entry))]
            self._items, self._outcomes, self._failing_since = {}, {}, None
            return outcomes

        return export

    def _begin(self, entries: Sequence[Entry]) -> None:
        """Make the spans of a batch, unless this is a retry of it, or of a part of it."""
        if not all(entry.name in self._items for entry in entries):
            self._items = {entry.name: self._item_of(entry) for entry in entries}
            self._outcomes, self._failing_since = {}, None

    def _outcome(self, entry: Entry) -> Outcome | None:
        """Return the outcome of an entry; None if its span was not answered."""
        return self._outcomes.get(entry.name) or (None if self._items[entry.name] else Outcome(entry.id))

    async def _deliver(self, items: Sequence[Item]) -> None:
        """Send items until the backend took or refused each. Raises `SinkUnavailableError`."""
        if self._backend.stopping.is_set():
            raise _StoppingError
        answer = await self._backend.send(items)
        if answer.is_success:
            self._outcomes |= {item.entry.name: Outcome(item.entry.id) for item in items}
            self._failing_since = None
        elif not await self._is_fault_of_spans(answer):
            self._backend.failed(answer)
            reason = Reason.RLS_REJECT if answer.status in (401, 403) else Reason.OTHER
            raise SinkUnavailableError(reason, answer.error_class)
        elif len(items) > 1:
            middle = len(items) // 2
            await self._deliver(items[:middle])
            await self._deliver(items[middle:])
        else:
            entry = items[0].entry
            detail = f"the OTLP backend refused the span: {answer.error_class}"
            failure = failure_of(entry, STAGE, Reason.OTHER, answer.error_class, detail)
            self._outcomes[entry.name] = Outcome(entry.id, failure=failure)
            self._backend.refused()

    async def _is_fault_of_spans(self, answer: Answer) -> bool:
        """True if the backend does not take these spans, but takes another one."""
        if answer.status in NEVER_BLAMED:
            return False
        if answer.status not in REFUSED:
            self._failing_since = self._failing_since or time.monotonic()
            if time.monotonic() - self._failing_since < self._suspect_after_s:
                return False
        return await self._backend.takes_another()
