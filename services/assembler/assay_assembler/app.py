"""The assembler service: turns spans in `spans` into events in `capture`.

Delivery: an entry is finished in the atomic step that adds its spans to their trace; an event is published once, in
the step that adds its last span or that closes its trace. Raw texts are in Redis only.
"""

from collections.abc import Sequence

from assay_assembler.decode import UndecodableError
from assay_assembler.open_traces import GROUP, OpenTraces, arrival_of
from assay_runtime.backpressure import Backpressure
from assay_runtime.each import each
from assay_runtime.entries import Bounds, Entry, Outcome, failure_of
from assay_runtime.service import Service, main
from assay_schema.events import Event
from assay_schema.failures import Failure, Reason
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.settings import AssemblerSettings, Settings, SettingsError
from assay_schema.span_entry import SpanEntry, SpanEntryError
from assay_schema.streams import CAPTURE, FAILURES, SPANS

#: Shortest key of the hashes of user ids, in bytes.
USER_KEY_MIN_BYTES = 16


def arrived(entry: Entry) -> Outcome:
    """Return the spans of an entry, or its failure."""
    try:
        return arrival_of(entry.id, entry.data)
    except (SpanEntryError, UndecodableError) as error:
        detail = f"the spans cannot be decoded: {error}"
        failure = failure_of(entry, GROUP, Reason.CHECK_VIOLATION, type(error).__name__, detail)
        return Outcome(entry.id, failure=failure)


async def _arrivals(entries: Sequence[Entry]) -> list[Outcome]:
    return [arrived(entry) for entry in entries]


def user_key_of(settings: AssemblerSettings) -> bytes:
    """Return the key of the hashes of user ids; empty without one. Raises `SettingsError`."""
    if settings.user_key_file is None:
        return b""
    try:
        key = settings.user_key_file.read_bytes().strip()
    except OSError as error:
        raise SettingsError(f"cannot read the file in assembler.user_key_file: {error.strerror}") from None
    if len(key) < USER_KEY_MIN_BYTES:
        raise SettingsError(f"assembler.user_key_file: the key has fewer than {USER_KEY_MIN_BYTES} bytes")
    return key


def build(settings: Settings) -> Service:
    """Build the service, ready to run."""
    service = Service(GROUP, settings, settings.assembler.port)
    bounds = Bounds(entries=settings.assembler.batch_entries, bytes=4 * ENTRY_MAX_BYTES, age_s=0)
    user_key = user_key_of(settings.assembler)
    traces = []
    for shard in range(settings.redis.shards):
        opened = OpenTraces(service.client, settings.assembler, shard, settings.delivery.dead_bytes, user_key)
        traces.append(opened)
        service.consume(SPANS, shard, process=_arrivals, finish=opened.finish, bounds=bounds, document=SpanEntry)
        service.publishes(CAPTURE, shard, Event)
        service.publishes(FAILURES, shard, Failure)

    async def close_due() -> None:
        open_now = [one for one, consumer in zip(traces, service.consumers, strict=True) if not consumer.held_back]
        await each(open_now, OpenTraces.close_due)

    service.gate(Backpressure(service.client, service.consumers, [(CAPTURE, "scrubber")], settings.delivery).run)
    service.every_tick(close_due)
    return service


def run() -> None:
    """Entry point of `python -m assay_assembler`."""
    main(GROUP, build)
