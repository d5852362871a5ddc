"""At-least-once consumption of one shard of one stream, with the acknowledgement as the last step.

FastStream's subscriber reads fresh entries and offers them here; what an earlier run or a dead consumer left unfinished is taken over
by `recover` and `reclaim`. The consumer gathers batches, calls the service's work, and finishes the outcomes in one atomic script.
Delivery: an entry is finished exactly once in Redis, its work may run more than once. Memory is bounded by three batches.
"""

import asyncio
import contextlib
import logging
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from redis.exceptions import RedisError, ResponseError

from assay_runtime import metrics
from assay_runtime.connection import Client
from assay_runtime.entries import Bounds, Entry, Outcome, Process, SinkUnavailableError
from assay_runtime.scripts import BURY, FORWARD, SETTLE
from assay_runtime.tracing import span
from assay_schema.failures import Failure, Reason
from assay_schema.ids import row_id
from assay_schema.settings import DeliverySettings
from assay_schema.streams import CAPTURE, DEAD, EVENTS, FAILURES, FIELD, Stream, low_key, overflow_key
from assay_schema.validation import identity_of

log = logging.getLogger(__name__)

#: Finishes outcomes in Redis and says how many entries were still ours to finish.
Finish = Callable[[Sequence[Outcome]], Awaitable[int]]
#: Longest pause between two tries of a batch whose sink is away, in seconds.
LONGEST_PAUSE_S = 5.0
#: Entries looked at in one step of taking over.
PAGE = 500


def forward_finish(client: Client, group: str, shard: int, shards: int) -> Finish:
    """Finish entries of `capture`: acknowledge, delete and pass on, atomically."""
    script = client.register_script(FORWARD)
    keys = [CAPTURE.key(shard), EVENTS.key(shard), FAILURES.key(shard), overflow_key(shard), low_key(shard)]

    async def finish(outcomes: Sequence[Outcome]) -> int:
        arguments: list[str | bytes | int] = [group, shard, shards]
        for outcome in outcomes:
            if outcome.failure is not None:
                arguments += (outcome.entry_id, "f", outcome.failure.model_dump_json())
            elif outcome.event is not None:
                row = row_id(outcome.entry_id, shard, shards)
                named = outcome.event if row is None else b'{"id":%d,' % row + outcome.event[1:]
                arguments += (outcome.entry_id, "o" if row is None else "e", named)
        return int(await script(keys=keys, args=arguments))

    return finish


def settle_finish(client: Client, stream: Stream, group: str, shard: int) -> Finish:
    """Finish entries of a stream that keeps a history: acknowledge, and record failures, atomically."""
    script = client.register_script(SETTLE)
    keys = [stream.key(shard), FAILURES.key(shard)]

    async def finish(outcomes: Sequence[Outcome]) -> int:
        done = 0
        for start in range(0, len(outcomes), PAGE):  # short scripts keep Redis responsive
            arguments = [group]
            for outcome in outcomes[start : start + PAGE]:
                arguments += [outcome.entry_id, outcome.failure.model_dump_json() if outcome.failure else ""]
            done += int(await script(keys=keys, args=arguments))
        return done

    return finish


class Consumer:
    """One member of one group on one shard of one stream."""

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
        sink_ready: Callable[[], Awaitable[bool]],
    ) -> None:
        self.stream, self.shard, self.group, self.name = stream, shard, group, name
        self.key = stream.key(shard)
        #: Why the sink is away; empty while it is there.
        self._away_for: set[Reason] = set()
        self._client = client
        self._process, self._finish, self._bounds, self._settings = process, finish, bounds, settings
        self._sink_ready = sink_ready
        self._bury = client.register_script(BURY)
        self._waiting: list[Entry] = []
        self._waiting_bytes = 0
        self._oldest = 0.0
        self._held: set[str] = set()
        self._changed = asyncio.Condition()
        self._working = asyncio.Lock()
        self._finishing = asyncio.Lock()
        self._recovered = asyncio.Event()
        self._stopping = False
        self._ended = asyncio.Event()
        #: Newest entry that was pending before this run; what is newer was read by this run.
        self._left_until: bytes | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def prepare(self) -> None:
        """Create the group at the start of the stream, so that nothing published before the first start is skipped."""
        try:
            await self._client.xgroup_create(self.key, self.group, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        self._left_until = (await self._client.xpending(self.key, self.group))["max"]

    def start(self) -> None:
        """Begin to work; fresh entries wait until those of an earlier run are finished."""
        self._tasks = [
            asyncio.create_task(step(), name=f"{self.key}:{step.__name__}")
            for step in (self._run, self._recover, self._watch)
        ]

    async def stop(self) -> None:
        """Finish what is held, if the sink takes it, and end. What is not finished stays pending in Redis."""
        async with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._recovered.set()  # an offer that still waits returns, and its entries stay pending
        self._ended.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)  # not cancelled: redis-py may swallow a cancellation

    @property
    def sink_up(self) -> bool:
        """Whether the sink took the last batch."""
        return not self._away_for

    @property
    def alive(self) -> bool:
        """Whether the tasks run; one that ended by itself is a defect that only a restart mends."""
        return all(not task.done() or task.get_name().endswith("_recover") for task in self._tasks)

    async def offer(self, entries: Sequence[Entry]) -> None:
        """Take fresh entries; waits while a full batch is waiting, which pauses reading."""
        await self._recovered.wait()
        await self._take(entries)

    async def _take(self, entries: Sequence[Entry]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._stopping or not self._full())
            if self._stopping:
                return  # they stay pending and are taken over by the next run
            if not self._waiting:
                self._oldest = time.monotonic()
            self._waiting += entries
            self._waiting_bytes += sum(len(entry.data) for entry in entries)
            self._held.update(entry.id for entry in entries)
            self._changed.notify_all()

    def _full(self) -> bool:
        return len(self._waiting) >= self._bounds.entries or self._waiting_bytes >= self._bounds.bytes

    async def _run(self) -> None:
        """Start batches one after another; while one is finished in Redis, the next is already worked on."""
        async with asyncio.TaskGroup() as batches:
            while True:
                await self._working.acquire()
                batch = await self._gather()
                if not batch:
                    return
                batches.create_task(self._work(batch))

    async def _gather(self) -> list[Entry]:
        """The next batch, as soon as one of its bounds is reached. Empty at the end."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._stopping or self._waiting)
            remaining = self._oldest + self._bounds.age_s - time.monotonic()
            if self._waiting and not self._full() and not self._stopping and remaining > 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait_for(lambda: self._stopping or self._full()), remaining)
            batch, self._waiting, self._waiting_bytes = self._waiting, [], 0
            self._changed.notify_all()
        return batch

    async def _work(self, batch: list[Entry]) -> None:
        started = time.monotonic()
        with span(f"{self.group} process {self.stream.name}", self.stream.name, self.group, len(batch)):
            try:
                outcomes = await self._outcomes(batch)
                await self._finishing.acquire()
            finally:
                self._working.release()
            try:
                await self._finish_outcomes(outcomes)
            finally:
                self._finishing.release()
                self._held.difference_update(entry.id for entry in batch)
        metrics.BATCH_ENTRIES.labels(self.stream.name).observe(len(batch))
        metrics.BATCH_SECONDS.labels(self.stream.name).observe(time.monotonic() - started)

    async def _outcomes(self, batch: Sequence[Entry]) -> Sequence[Outcome]:
        """Work on a batch until its sink takes it. An error that blames no sink splits it, until the entry that causes it is alone."""
        pause = 0.05
        while True:
            try:
                outcomes = await self._process(batch)
                self._sink_back()
                return outcomes
            except SinkUnavailableError as error:
                await self._sink_away(error)
                if self._stopping:
                    return []  # all of it stays pending
                await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  # jitter, not a secret
                pause = min(pause * 2, LONGEST_PAUSE_S)
            except Exception as error:  # noqa: BLE001  # whatever it is, it must not stop the others
                if len(batch) > 1:
                    middle = len(batch) // 2
                    return [*await self._outcomes(batch[:middle]), *await self._outcomes(batch[middle:])]
                log.error(
                    "entry failed and stays pending",
                    extra={"entry_id": batch[0].id, "error_class": type(error).__name__},
                )
                return []

    async def _finish_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        if not outcomes:
            return
        done = await self._patiently(lambda: self._finish(outcomes))
        failed = sum(outcome.failure is not None for outcome in outcomes)
        forwarded = sum(outcome.event is not None for outcome in outcomes)
        counts = {
            "failed": failed,
            "forwarded": forwarded,
            "stored": len(outcomes) - failed - forwarded,
            "passed_over": len(outcomes) - done,
        }
        for outcome, count in counts.items():
            if count:
                metrics.ENTRIES.labels(self.stream.name, outcome).inc(count)

    async def _patiently(self, step: Callable[[], Awaitable[int]]) -> int:
        """A step in Redis, tried until Redis answers: the scripts may run twice, an entry is finished once.

        A stop ends the trying; the entries then stay pending, and the next run takes them up.
        """
        while True:
            try:
                return await step()
            except RedisError as error:
                log.warning(
                    "redis did not answer; trying again",
                    extra={"stream": self.key, "error_class": type(error).__name__},
                )
                await asyncio.sleep(random.uniform(0.2, 1))  # noqa: S311

    async def _sink_away(self, error: SinkUnavailableError) -> None:
        metrics.RETRIES.labels(self.stream.name, error.reason.value).inc()
        if error.reason in self._away_for:
            return  # a new reason is news: a store that restarts into missing rights needs somebody to act
        self._away_for.add(error.reason)
        metrics.SINK_UP.labels(self.stream.name).set(0)
        log.warning(
            "the sink is away; events wait in Redis",
            extra={"reason": error.reason.value, "error_class": error.error_class},
        )
        incident = Failure(
            failure_id=uuid.uuid4(),
            stage=self.group,
            reason=error.reason,
            error_class=error.error_class,
            detail="the sink was away; events waited and nothing was lost",
            deliveries=0,
            created_at=datetime.now(UTC),
        )
        with contextlib.suppress(RedisError):  # the incident is also logged and counted above
            await self._client.xadd(FAILURES.key(self.shard), {FIELD: incident.model_dump_json()})

    def _sink_back(self) -> None:
        metrics.SINK_UP.labels(self.stream.name).set(1)
        if not self.sink_up:
            self._away_for.clear()
            log.info("the sink is back")

    async def _recover(self) -> None:
        """Take over what an earlier run of this consumer left pending, before anything fresh."""
        while self._left_until and not self._stopping:
            try:
                await self._take_over(consumer=self.name, idle_ms=0, until=self._left_until.decode())
                break
            except RedisError as error:
                log.warning("cannot recover yet", extra={"stream": self.key, "error_class": type(error).__name__})
                await asyncio.sleep(0.5)
        self._recovered.set()

    async def _watch(self) -> None:
        """Once in a while: keep held entries ours, take over those of dead consumers."""
        visibility_ms = int(self._settings.visibility_timeout_s * 1000)
        while not self._stopping:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), self._settings.visibility_timeout_s / 4)
                return
            try:
                held = list(self._held)
                for start in range(0, len(held), PAGE):
                    await self._client.xclaim(
                        self.key, self.group, self.name, 0, held[start : start + PAGE], justid=True
                    )
                await self._take_over(consumer=None, idle_ms=visibility_ms)
            except RedisError as error:
                log.warning(
                    "cannot look for stalled entries", extra={"stream": self.key, "error_class": type(error).__name__}
                )

    async def _take_over(self, *, consumer: str | None, idle_ms: int, until: str = "+") -> None:
        """Claim pending entries that nobody here holds, page by page; bury those delivered too often while the sink is well."""
        start = "-"
        while page := await self._client.xpending_range(
            self.key, self.group, start, until, PAGE, consumername=consumer, idle=idle_ms or None
        ):
            start = "(" + page[-1]["message_id"].decode()
            claimable = []
            for item in page:
                entry_id, deliveries = item["message_id"].decode(), item["times_delivered"]
                if entry_id in self._held:
                    continue
                if deliveries > self._settings.max_deliveries and await self._sink_ready():
                    await self._give_up(entry_id, deliveries)
                else:
                    claimable.append(entry_id)
            if claimable:
                await self._claim(claimable, idle_ms)

    async def _claim(self, ids: list[str], idle_ms: int) -> None:
        claimed = await self._client.xclaim(self.key, self.group, self.name, idle_ms, ids)
        entries = [Entry(entry_id.decode(), fields.get(FIELD.encode(), b"")) for entry_id, fields in claimed if fields]
        gone = set(ids) - {entry.id for entry in entries}
        if gone and not idle_ms:
            await self._client.xack(self.key, self.group, *gone)  # deleted by hand: there is nothing left to work on
        metrics.RECLAIMED.labels(self.stream.name).inc(len(entries))
        if entries:
            await self._take(entries)

    async def _give_up(self, entry_id: str, deliveries: int) -> None:
        left = await self._client.xrange(self.key, entry_id, entry_id)
        event_id, project, service = identity_of(left[0][1].get(FIELD.encode(), b"") if left else b"")
        failure = Failure(
            # Named after the entry, not the event: one that is requeued and fails again has failed twice.
            failure_id=uuid.uuid5(uuid.NAMESPACE_OID, f"{self.key}/{entry_id}"),
            event_id=event_id,
            entry_id=entry_id,
            project=project,
            service=service,
            stage=self.group,
            reason=Reason.OTHER,
            error_class="TooManyDeliveries",
            detail="kept as a dead letter for a while; see assay dead list",
            deliveries=deliveries,
            created_at=datetime.now(UTC),
        )
        keys = [self.key, DEAD.key(self.shard), FAILURES.key(self.shard)]
        arguments = [
            self.group,
            entry_id,
            self.group,
            failure.reason.value,
            failure.error_class,
            deliveries,
            failure.model_dump_json(),
        ]
        if await self._bury(keys=keys, args=arguments):
            metrics.ENTRIES.labels(self.stream.name, "buried").inc()
            log.error(
                "entry given up after too many deliveries", extra={"entry_id": entry_id, "deliveries": deliveries}
            )
