"""Export the entries of a shard: each is acknowledged after the backend took its span.

A backend that is away, busy, or refuses the credentials, is an outage: entries wait, and none is to blame. A request
that it refuses is halved, so that one span which it cannot take keeps no other back; that span is recorded as a failure.
If the exporter dies between the backend's answer and the acknowledgement, a span is sent again with the same id.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from assay_otlp_exporter.batch import Item, packed, request
from assay_otlp_exporter.sender import Answer, Sender
from assay_runtime import metrics
from assay_runtime.entries import Entry, Outcome, Process, SinkUnavailableError, acquit, failure_of
from assay_schema.failures import Reason

STAGE = "otlp_exporter"
#: Statuses that refuse the credentials.
UNAUTHORIZED = (401, 403)
#: Longest pause that is waited for at once, in seconds; the next attempt may be asked to wait again.
LONGEST_PAUSE_S = 60.0
#: Attempts after which an internal error is taken to be the fault of a span, if the backend takes an empty request.
ATTEMPTS = 5
_HINTS = {
    400: "it refuses every request; check otlp_exporter.endpoint and otlp_exporter.headers",
    401: "it rejects the credentials; check otlp_exporter.headers",
    403: "it does not permit this; check otlp_exporter.headers",
    404: "it has nothing at that path; check otlp_exporter.endpoint",
    405: "it takes no spans at that path; check otlp_exporter.endpoint",
    415: "it does not take protobuf over HTTP; check otlp_exporter.endpoint",
    429: "it asks for fewer requests; spans wait",
}


class Backend:
    """The backend as all shards see it: whether it works, and the end of waiting for it."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        #: Set at a stop: nothing waits for the backend any more.
        self.stopping = asyncio.Event()
        #: True if it took a request of this process.
        self.has_taken = False
        self._problem = ""

    def notes(self) -> list[str]:
        """Return why spans wait, and what to fix; nothing while the backend takes them."""
        return [self._problem] if self._problem else []

    async def send(self, items: Sequence[Item]) -> Answer:
        """Send one request."""
        answer = await self._sender.send(request(items))
        if answer.is_success:
            self.has_taken, self._problem = True, ""
        return answer

    async def takes_none(self) -> bool:
        """True if the backend takes a request without spans."""
        return (await self.send([])).is_success

    async def wait(self, answer: Answer) -> None:
        """Note the problem, and wait as long as the backend asks for, within bounds."""
        name = self._sender.endpoint.name
        if answer.status:
            hint = _HINTS.get(answer.status, "spans wait; check otlp_exporter.endpoint if this lasts")
            self._problem = f"{name} answers HTTP {answer.status}: {hint}"
        else:
            self._problem = f"{name} cannot be reached ({answer.error}); is it running? check otlp_exporter.endpoint"
        if answer.retry_after_s:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(answer.retry_after_s, LONGEST_PAUSE_S)):
                    await self.stopping.wait()


class Export:
    """The work on one shard of a stream. `item_of` returns the span of an entry, or None for none."""

    def __init__(self, backend: Backend, item_of: Callable[[Entry], Item | None]) -> None:
        self._backend = backend
        self._item_of = item_of
        #: Entries of the current batch that a retry does not send again: the backend took or refused their spans.
        self._outcomes: dict[tuple[str, str], Outcome] = {}
        #: Attempts of the current batch that ended in an internal error of the backend.
        self._internal_errors = 0

    def process(self) -> Process:
        """Return the handler of the shard."""

        async def export(entries: Sequence[Entry]) -> list[Outcome]:
            names = {entry.name for entry in entries}
            self._outcomes = {name: outcome for name, outcome in self._outcomes.items() if name in names}
            items = [item for entry in entries if entry.name not in self._outcomes and (item := self._item_of(entry))]
            await acquit()  # the backend may be slow
            for part in packed(items):
                await self._deliver(part)
            self._internal_errors = 0
            return [self._outcomes.get(entry.name, Outcome(entry.id)) for entry in entries]

        return export

    async def _deliver(self, items: Sequence[Item]) -> None:
        """Send items until the backend took or refused each. Raises `SinkUnavailableError`."""
        answer = await self._backend.send(items)
        if answer.is_success:
            self._outcomes |= {item.entry.name: Outcome(item.entry.id) for item in items}
            rejected = min(answer.rejected, len(items))
            metrics.EXPORTED_SPANS.labels("sent").inc(len(items) - rejected)
            metrics.EXPORTED_SPANS.labels("rejected").inc(rejected)
        elif not await self._is_fault_of_spans(answer):
            await self._backend.wait(answer)
            reason = Reason.RLS_REJECT if answer.status in UNAUTHORIZED else Reason.OTHER
            raise SinkUnavailableError(reason, answer.error_class)
        elif len(items) > 1:
            middle = len(items) // 2
            await self._deliver(items[:middle])
            await self._deliver(items[middle:])
        else:
            entry = items[0].entry
            detail = f"the OTLP backend refused the span: HTTP {answer.status}"
            failure = failure_of(entry, STAGE, Reason.OTHER, answer.error_class, detail)
            self._outcomes[entry.name] = Outcome(entry.id, failure=failure)
            metrics.EXPORTED_SPANS.labels("refused").inc()

    async def _is_fault_of_spans(self, answer: Answer) -> bool:
        """True if the backend refuses these spans, but not others.

        A 400 to everything is a wrong setting, and a 500 may pass: neither costs a span.
        """
        match answer.status:
            case 413:
                return True
            case 400 | 422:
                return self._backend.has_taken or await self._backend.takes_none()
            case 500:
                self._internal_errors += 1
                return self._internal_errors >= ATTEMPTS and await self._backend.takes_none()
        return False
