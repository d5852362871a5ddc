"""At-least-once consumption of one shard of one stream, with the acknowledgement as the last step.

FastStream's subscriber reads new entries and offers them here; the reclaimer takes over the unfinished entries of an
earlier run or a dead consumer. The consumer takes batches from the batcher, calls the service's work, and finishes the
outcomes in one atomic script. Delivery: an entry is finished exactly once in Redis, its work may run more than once.
Memory: at most three batches (one waiting, one being processed, one being finished) and two reads (see `reading`).

    FastStream ── offer ─┐
                         ├─ Batcher ── process ── finish ── Redis
    Reclaimer ───────────┘
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Sequence
from functools import partial

from redis.exceptions import ResponseError

from assay_runtime import metrics
from assay_runtime.batcher import Batch, Batcher
from assay_runtime.connection import Client
from assay_runtime.dead_letter_writer import DeadLetterWriter
from assay_runtime.entries import Bounds, Entry, Outcome, Process, SinkUnavailableError, acquitting
from assay_runtime.finishing import Finish
from assay_runtime.leases import Leases, Name
from assay_runtime.lifetime import Lifetime
from assay_runtime.reading import READ_BYTES
from assay_runtime.reclaimer import Reclaimer
from assay_runtime.same_redis import OtherRedisError, SameEntries
from assay_runtime.scripts import FORGET
from assay_runtime.sink_state import SinkState
from assay_runtime.tracing import span
from assay_schema.settings import DeliverySettings
from assay_schema.streams import Stream

log = logging.getLogger(__name__)

#: First and longest pause between attempts of a batch whose sink is away, in seconds.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0
#: Heartbeats and checks for dead consumers in each visibility time-out.
BEATS = 4
#: Seconds between two log lines about refused entries of the same error class.
LOG_FAILURES_S = 10.0
#: Milliseconds after which a group member without pending entries and without activity is removed.
FORGOTTEN_AFTER_MS = 3_600_000


class _ProvedError(Exception):
    """Ends the isolated work on an entry once only the sink remains."""


async def _prove() -> None:
    raise _ProvedError


class Consumer:
    """A member of a group on one shard of one stream."""

    def __init__(
        self,
        client: Client,
        stream: Stream,
        *,
        group: str,
        name: str,
        process: Process,
        finish: Finish,
        bounds: Bounds,
        settings: DeliverySettings,
        shard: int = 0,
    ) -> None:
        self.stream = stream
        self.shard = shard
        self.group = group
        self.name = name
        self.key = stream.key(shard)
        self._client = client
        self._process = process
        self._finish = finish
        self._settings = settings
        self._forget = client.register_script(FORGET)
        self._same = SameEntries(client, self.key, group, READ_BYTES)
        self._lifetime = Lifetime(self.key)
        self._leases = Leases(client, self.key, group, name, self._lifetime)
        self._batcher = Batcher(bounds, self._lifetime)
        self._sink = SinkState(client, stream, shard, group)
        self._dead_letters = DeadLetterWriter(client, stream, shard, group, settings.dead_bytes)
        self._reclaimer = Reclaimer(
            client,
            stream,
            shard,
            group,
            leases=self._leases,
            batcher=self._batcher,
            dead_letters=self._dead_letters,
            same=self._same,
            lifetime=self._lifetime,
            settings=settings,
        )
        self._working = asyncio.Lock()
        self._finishing = asyncio.Lock()
        self._recovered = asyncio.Event()
        #: Newest entry that was pending before this run; later entries were read by this run.
        self._left_until: bytes | None = None
        self._recovery: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        #: By error class: when an entry was last logged, and how many failed since.
        self._logged: dict[str, tuple[float, int]] = {}

    # --- the group

    async def prepare(self) -> None:
        """Create the group at the start of the stream, so that earlier entries are not skipped.

        Only if it does not exist: a Redis whose memory is full refuses to create one that exists.
        """
        if not await self._has_group():
            try:
                await self._client.xgroup_create(self.key, self.group, id="0", mkstream=True)
            except ResponseError as error:
                if "BUSYGROUP" not in str(error):
                    raise
        self._left_until = (await self._client.xpending(self.key, self.group))["max"]

    async def _has_group(self) -> bool:
        try:
            groups = await self._client.xinfo_groups(self.key)
        except ResponseError as error:
            if "no such key" in str(error):
                return False
            raise
        return any(group["name"].decode() == self.group for group in groups)

    async def leave(self) -> None:
        """Remove this member from its group, unless it has pending entries. Call after the stop."""
        await self._remove(0, self.name)

    async def forget_the_gone(self) -> None:
        """Remove inactive members without pending entries: processes that were killed."""
        await self._remove(FORGOTTEN_AFTER_MS, "")

    async def _remove(self, idle_ms: int, name: str) -> None:
        with contextlib.suppress(ResponseError):  # the group is gone, or a user of an older version lacks the right
            await self._forget(keys=[self.key], args=[self.group, idle_ms, name])

    # --- start and stop

    def start(self) -> None:
        """Start processing; new entries wait until those of an earlier run are finished."""
        self._recovery = asyncio.create_task(self._recover(), name=f"{self.key}:recovery")
        self._tasks = [
            asyncio.create_task(step(), name=f"{self.key}:{step.__name__}")
            for step in (self._run, self._heartbeat, self._reclaim)
        ]

    async def stop(self) -> None:
        """Finish held entries, if the sink accepts them, and end. Unfinished entries stay pending in Redis."""
        self._lifetime.stop()
        await self._batcher.notify()
        self._recovered.set()  # a waiting offer returns, and its entries stay pending
        tasks = [*self._tasks, *([self._recovery] if self._recovery else [])]
        await asyncio.gather(*tasks, return_exceptions=True)  # not cancelled: redis-py may swallow a cancellation

    async def _run(self) -> None:
        """Process batches in turn; while one is finished in Redis, the next is already being processed."""
        async with asyncio.TaskGroup() as batches:
            while True:
                await self._working.acquire()
                batch = await self._batcher.gather()
                if batch is None:
                    return
                batches.create_task(self._work(batch))

    async def _recover(self) -> None:
        """Take over the entries that an earlier run of this consumer left pending, before any new ones."""
        if self._left_until:
            await self._reclaimer.recover(self.name, self._left_until.decode())
        self._recovered.set()

    async def _heartbeat(self) -> None:
        """Renew the leases of held entries."""
        await self._lifetime.every(self._settings.visibility_timeout_s / BEATS, self._leases.renew)

    async def _reclaim(self) -> None:
        """Take over the entries of dead or stalled consumers."""
        await self._recovered.wait()
        idle_ms = int(self._settings.visibility_timeout_s * 1000)
        take_over = partial(self._reclaimer.take_over, consumer=None, idle_ms=idle_ms)
        await self._lifetime.every(self._settings.visibility_timeout_s / BEATS, take_over)

    # --- state

    @property
    def held(self) -> frozenset[Name]:
        """Names of the held entries: waiting, being processed, or being finished."""
        return self._leases.names

    @property
    def sink_up(self) -> bool:
        """True if the sink accepted the last batch."""
        return self._sink.is_up

    @property
    def dead_full(self) -> bool:
        """True if an entry could not be given up because the dead letters are full."""
        return self._dead_letters.is_full

    @property
    def held_back(self) -> str:
        """Why no new batch may start; empty if it may (see `backpressure`)."""
        return self._batcher.held_back

    @property
    def ended_by(self) -> str:
        """Return the class of the error that ended a task; empty while all run. Only a restart helps."""
        recovery = self._recovery
        failed = [recovery] if recovery and recovery.done() and (recovery.cancelled() or recovery.exception()) else []
        for task in (*failed, *(task for task in self._tasks if task.done())):
            error = None if task.cancelled() else task.exception()
            while isinstance(error, BaseExceptionGroup):  # of the batches that run at the same time
                error = error.exceptions[0]
            return type(error).__name__ if error else "CancelledError"
        return ""

    # --- new entries

    async def offer(self, entries: Sequence[Entry]) -> bool:
        """Accept new entries; waits while a full batch is waiting, which pauses reading.

        False if the consumer stops: the entries stay pending, and the reader must stop.
        """
        self._leases.hold(entries)
        await self._recovered.wait()
        return await self._batcher.add(entries)

    async def hold_back(self, why: str) -> None:
        """Start no new batch until called with ''. Reading pauses once a full batch waits."""
        await self._batcher.hold_back(why)

    # --- a batch

    async def _work(self, batch: Batch) -> None:
        started, entries = time.monotonic(), batch.entries
        with span(f"{self.group} process {self.stream.name}", self.stream.name, self.group, len(entries)):
            try:
                outcomes = await self._outcomes(batch) if await self._leases.begin(entries) else ()
                await self._leases.acquit(entries)  # they have done no harm; the rest depends on Redis
                await self._finishing.acquire()
            finally:
                self._working.release()
            try:
                await self._finish_outcomes(entries, outcomes)
            finally:
                self._finishing.release()
                self._leases.release(entries)
                await self._batcher.notify()
        metrics.BATCH_ENTRIES.labels(self.stream.name).observe(len(entries))
        metrics.BATCH_SECONDS.labels(self.stream.name).observe(time.monotonic() - started)

    async def _outcomes(self, batch: Batch) -> Sequence[Outcome]:
        """Process a batch until its sink accepts it.

        An error that does not blame the sink splits the batch until the entry at fault is isolated. An isolated entry
        is processed only until its work is known to do no harm.
        """
        entries, isolation = batch
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                with acquitting(_prove if isolation else partial(self._leases.acquit, entries)):
                    outcomes = await self._process(entries)
                self._sink.came_back()
                return outcomes
            except _ProvedError:
                assert isolation
                isolation.proved = True
                return []
            except SinkUnavailableError as error:
                await self._leases.acquit(entries)
                await self._sink.went_away(error)
                if self._lifetime.stopping:
                    return []  # the whole batch stays pending
                await self._lifetime.pause(pause_s * random.uniform(0.5, 1))  # noqa: S311  # jitter, not a secret
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            except Exception as error:  # noqa: BLE001  # no error of one batch may stop the others
                error_class = type(error).__name__
                break
        if len(entries) > 1:
            middle = len(entries) // 2
            halves = Batch(entries[:middle]), Batch(entries[middle:])
            return [*await self._outcomes(halves[0]), *await self._outcomes(halves[1])]
        await self._lifetime.retry(partial(self._count_failure, entries[0], error_class))
        return []

    async def _count_failure(self, entry: Entry, error_class: str) -> int:
        """Count a failed delivery of an entry, or give it up.

        A pending one returns after the visibility time-out.
        """
        log.error("entry failed", extra={"entry_id": entry.id, "error_class": error_class})
        deliveries = self._leases.deliveries(entry) + 1
        if deliveries < self._settings.max_deliveries:
            await self._leases.claim([entry.id], deliveries=deliveries)
        else:
            try:
                await self._dead_letters.write(entry, deliveries)
            except OtherRedisError:
                redis, same = await self._same_of([entry])
                if same:
                    await self._dead_letters.write(entry._replace(redis=redis), deliveries)
        self._leases.keep_count(entry)
        return 1

    async def _finish_outcomes(self, batch: Sequence[Entry], outcomes: Sequence[Outcome]) -> None:
        if not outcomes:
            return
        passed_over = len(outcomes) - await self._lifetime.retry(partial(self._finished, batch, outcomes))
        failed = sum(outcome.failure is not None for outcome in outcomes)
        forwarded = sum(outcome.event is not None for outcome in outcomes)
        counts = {
            "failed": failed,
            "forwarded": forwarded,
            "stored": len(outcomes) - failed - forwarded,
            "passed_over": passed_over,
        }
        counts["forwarded" if forwarded else "stored"] -= passed_over
        for outcome, count in counts.items():
            if count > 0:
                metrics.ENTRIES.labels(self.stream.name, outcome).inc(count)
        self._log_failures(outcomes)

    def _log_failures(self, outcomes: Sequence[Outcome]) -> None:
        """Log entries that were refused: the first of each error class at once, later ones as a count, so that none floods the log."""
        for outcome in outcomes:
            if outcome.failure is None:
                continue
            error_class, now = outcome.failure.error_class, time.monotonic()
            logged, since = self._logged.get(error_class, (-LOG_FAILURES_S, 0))
            if now - logged < LOG_FAILURES_S:
                self._logged[error_class] = logged, since + 1
                continue
            self._logged[error_class] = now, 0
            log.error(
                "entry failed",
                extra={
                    "stream": self.key,
                    "entry_id": outcome.entry_id,
                    "error_class": error_class,
                    "reason": outcome.failure.reason.value,
                    "not_logged_before": since,
                },
            )

    async def _finished(self, batch: Sequence[Entry], outcomes: Sequence[Outcome]) -> int:
        """Finish the outcomes of a batch for entries that this Redis has.

        It redelivers the others, or has lost them.
        """
        try:
            return await self._finish(outcomes, batch[0].redis)
        except OtherRedisError:
            redis, same = await self._same_of(batch)
            outcomes = [outcome for outcome in outcomes if outcome.entry_id in same]
            return await self._finish(outcomes, redis) if outcomes else 0

    async def _same_of(self, batch: Sequence[Entry]) -> tuple[str, set[str]]:
        """Return the current Redis server, and the ids of the entries that it has too."""
        redis, same = await self._same.among(batch)
        log.log(
            logging.INFO if len(same) == len(batch) else logging.WARNING,
            "redis was restarted or replaced; entries that it does not have are not finished",
            extra={"stream": self.key, "entries": len(batch), "not_there": len(batch) - len(same)},
        )
        return redis, same
