"""At-least-once consumption of one shard of one stream, with the acknowledgement as the last step.

FastStream's subscriber reads new entries and offers them here; `recover` and `reclaim` take over the unfinished entries
of an earlier run or a dead consumer. The consumer gathers batches, calls the service's work, and finishes the outcomes
in one atomic script. Delivery: an entry is finished exactly once in Redis, its work may run more than once. Memory: at
most three batches (one waiting, one being processed, one being finished) and two reads (see `reading`).
"""

import asyncio
import contextlib
import gc
import logging
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from redis.exceptions import RedisError, ResponseError

from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_runtime.connection import Client
from assay_runtime.entries import Bounds, Entry, Outcome, Process, SinkUnavailableError, acquitting
from assay_runtime.lua import NUMBERS_UNKNOWN
from assay_runtime.reading import READ_BYTES
from assay_runtime.same_redis import OtherRedisError, SameEntries, beside_here, guarded
from assay_runtime.scripts import BURY, FORGET, FORWARD, SETTLE
from assay_runtime.tracing import span
from assay_schema.failures import GIVEN_UP, Failure, Reason
from assay_schema.ids import row_id
from assay_schema.settings import DeliverySettings
from assay_schema.streams import CAPTURE, DEAD, EVENTS, FAILURES, FIELD, Stream, low_key, numbered_key, overflow_key
from assay_schema.validation import identity_of

log = logging.getLogger(__name__)

#: Finishes outcomes of entries from this Redis server, and returns the number that were still ours to finish. Raises
#: `OtherRedisError` if another server gave them.
Finish = Callable[[Sequence[Outcome], str], Awaitable[int]]
#: An entry's id, and the Redis server that gave it (see `same_redis`).
Name = tuple[str, str]
#: Maximum bytes of dead letters, unless the settings set another limit.
DEAD_BYTES = DeliverySettings().dead_bytes
#: First and longest pause between attempts of a batch whose sink is away, in seconds.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0
#: Longest pause between attempts of a step in Redis, in seconds.
REDIS_PAUSE_S = 1.0
#: Entries examined in one step of a takeover.
PAGE = 500
#: Reply of `BURY` if `dead` is full.
NO_ROOM = -1
#: Milliseconds after which a group member without pending entries and without activity is removed.
FORGOTTEN_AFTER_MS = 3_600_000
#: Isolated deliveries of an entry after `max_deliveries`.
TRIES_ALONE = 3


class NumbersUnknownError(RedisError):
    """Redis has lost all data or is new: no `id` may be issued until a writer reports the store's ids."""


def forward_finish(client: Client, group: str, shard: int, shards: int, *, await_writer: bool = False) -> Finish:
    """Return the step that finishes entries of `capture`: acknowledge, delete and forward, atomically.

    With `await_writer`, a Redis without a watermark issues no ids, and the step raises `NumbersUnknownError`.
    """
    script = guarded(client, FORWARD)
    keys = [CAPTURE.key(shard), EVENTS.key(shard), FAILURES.key(shard)]
    keys += [overflow_key(shard), low_key(shard), numbered_key(shard)]

    async def finish(outcomes: Sequence[Outcome], redis: str) -> int:
        arguments: list[str | bytes | int] = [redis, group, shard, shards, int(await_writer)]
        for outcome in outcomes:
            if outcome.failure is not None:
                arguments += (outcome.entry_id, "f", outcome.failure.model_dump_json())
            elif outcome.event is not None:
                row = row_id(outcome.entry_id, shard, shards)
                named = outcome.event if row is None else b'{"id":%d,' % row + outcome.event[1:]
                arguments += (outcome.entry_id, "o" if row is None else "e", named)
        done = int(await script(keys=keys, args=arguments))
        if done == NUMBERS_UNKNOWN:
            raise NumbersUnknownError("waiting for a writer; start one, or check its log")
        return done

    return finish


def settle_finish(client: Client, stream: Stream, group: str, shard: int, dead_bytes: int = DEAD_BYTES) -> Finish:
    """Return the step that finishes entries of a stream with a history: acknowledge and record failures.

    It is atomic, and keeps dead letters.
    """
    script, bury = guarded(client, SETTLE), bury_finish(client, stream, group, shard, dead_bytes)
    keys = [stream.key(shard), FAILURES.key(shard)]

    async def finish(outcomes: Sequence[Outcome], redis: str) -> int:
        kept = [outcome for outcome in outcomes if outcome.keep]
        done = await bury(kept, redis)
        outcomes = [outcome for outcome in outcomes if not outcome.keep] if kept else outcomes
        for start in range(0, len(outcomes), PAGE):  # short scripts keep Redis responsive
            arguments = [redis, group]
            for outcome in outcomes[start : start + PAGE]:
                arguments += [outcome.entry_id, outcome.failure.model_dump_json() if outcome.failure else ""]
            done += int(await script(keys=keys, args=arguments))
        return done

    return finish


def bury_finish(client: Client, stream: Stream, group: str, shard: int, dead_bytes: int = DEAD_BYTES) -> Finish:
    """Return the step that finishes a service's own entries: acknowledge, or dead-letter on failure.

    It is atomic, and records a failure for each dead letter.
    """
    settle, bury = guarded(client, SETTLE), guarded(client, BURY)
    keys = [stream.key(shard), DEAD.key(shard), FAILURES.key(shard)]

    async def finish(outcomes: Sequence[Outcome], redis: str) -> int:
        done = 0
        for outcome in outcomes:
            if outcome.failure is None:
                done += int(await settle(keys=[keys[0], keys[2]], args=[redis, group, outcome.entry_id, ""]))
                continue
            failure = outcome.failure
            why = [failure.reason.value, failure.error_class, failure.deliveries, failure.model_dump_json(), dead_bytes]
            done += max(0, int(await bury(keys=keys, args=[redis, group, outcome.entry_id, group, *why])))
        return done

    return finish


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
        #: Reasons why the sink is away; empty while it is available.
        self._away_for: set[Reason] = set()
        self._client = client
        self._process = process
        self._finish = finish
        self._bounds = bounds
        self._settings = settings
        self._bury = guarded(client, BURY)
        self._same = SameEntries(client, self.key, group, READ_BYTES)
        self._forget = client.register_script(FORGET)
        self._waiting: list[Entry] = []
        self._waiting_bytes = 0
        self._oldest = 0.0
        #: Entries that we hold, by name, with the deliveries of earlier runs and other consumers; 0 for a new entry.
        self._held: dict[Name, int] = {}
        #: Held entries whose current delivery is already counted in Redis.
        self._counted: set[Name] = set()
        #: An entry to process in isolation, before those that wait; and whether the last one was sound before it
        #: reached its sink.
        self._alone: Entry | None = None
        self._proved = False
        self._changed = asyncio.Condition()
        self._working = asyncio.Lock()
        self._finishing = asyncio.Lock()
        self._recovered = asyncio.Event()
        self._stopping = False
        #: True if an entry could not be given up because the dead letters are full.
        self.dead_full = False
        #: Why no new batch may start; empty if it may (see `headroom`).
        self.held_back = ""
        self._ended = asyncio.Event()
        #: Newest entry that was pending before this run; later entries were read by this run.
        self._left_until: bytes | None = None
        self._tasks: list[asyncio.Task[None]] = []

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

    def start(self) -> None:
        """Start processing; new entries wait until those of an earlier run are finished."""
        self._tasks = [
            asyncio.create_task(step(), name=f"{self.key}:{step.__name__}")
            for step in (self._run, self._recover, self._keep, self._reclaim)
        ]

    async def stop(self) -> None:
        """Finish held entries, if the sink accepts them, and end. Unfinished entries stay pending in Redis."""
        async with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._recovered.set()  # a waiting offer returns, and its entries stay pending
        self._ended.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)  # not cancelled: redis-py may swallow a cancellation

    async def leave(self) -> None:
        """Remove this member from its group, unless it has pending entries. Call after the stop."""
        await self._remove(0, self.name)

    async def forget_the_gone(self) -> None:
        """Remove inactive members without pending entries: processes that were killed."""
        await self._remove(FORGOTTEN_AFTER_MS, "")

    async def _remove(self, idle_ms: int, name: str) -> None:
        with contextlib.suppress(ResponseError):  # the group is gone, or a user of an older version lacks the right
            await self._forget(keys=[self.key], args=[self.group, idle_ms, name])

    async def hold_back(self, why: str) -> None:
        """Start no new batch until called with ''. Reading pauses once a full batch waits."""
        async with self._changed:
            self.held_back = why
            self._changed.notify_all()

    @property
    def held(self) -> frozenset[Name]:
        """Names of the held entries: waiting, being processed, or being finished."""
        return frozenset(self._held)

    @property
    def sink_up(self) -> bool:
        """True if the sink accepted the last batch."""
        return not self._away_for

    @property
    def alive(self) -> bool:
        """True if the tasks run. A task that ended by itself is a bug that only a restart fixes."""
        return all(not task.done() or self._has_recovered(task) for task in self._tasks)

    @staticmethod
    def _has_recovered(task: "asyncio.Task[None]") -> bool:
        return task.get_name().endswith("_recover") and not task.cancelled() and task.exception() is None

    async def offer(self, entries: Sequence[Entry]) -> bool:
        """Accept new entries; waits while a full batch is waiting, which pauses reading.

        False if the consumer stops: the entries stay pending, and the reader must stop.
        """
        self._hold(entries)
        await self._recovered.wait()
        return await self._take(entries)

    def _hold(self, entries: Sequence[Entry], deliveries: int = 0) -> None:
        """Mark entries as held, so that they are not reclaimed from ourselves."""
        self._held.update((entry.name, deliveries) for entry in entries)

    async def _take(self, entries: Sequence[Entry]) -> bool:
        async with self._changed:
            await self._changed.wait_for(lambda: self._stopping or not self._full())
            if self._stopping:
                return False
            if not self._waiting:
                self._oldest = time.monotonic()
            self._waiting += entries
            self._waiting_bytes += sum(len(entry.data) for entry in entries)
            self._changed.notify_all()
            return True

    def _full(self) -> bool:
        return len(self._waiting) >= self._bounds.entries or self._waiting_bytes >= self._bounds.bytes

    async def _run(self) -> None:
        """Process batches in turn; while one is finished in Redis, the next is already being processed."""
        async with asyncio.TaskGroup() as batches:
            while True:
                await self._working.acquire()
                batch = await self._gather()
                if batch is None:
                    return
                batches.create_task(self._work(*batch))

    async def _gather(self) -> tuple[list[Entry], bool] | None:
        """Return the next batch once a bound is reached, and whether it is an isolated suspect.

        None at the end.

        Held-back entries stay pending at a stop; otherwise each restart would forward entries beyond the mark.
        """
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._stopping or (not self.held_back and (self._waiting or self._alone))
            )
            if self.held_back:
                return None
            remaining = self._oldest + self._bounds.age_s - time.monotonic()
            if not self._due() and remaining > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(remaining):
                        await self._changed.wait_for(self._due)
            if self._alone:
                batch, self._alone = [self._alone], None
                return batch, True
            batch = self._cut()
            self._changed.notify_all()
        return (batch, False) if batch else None

    def _due(self) -> bool:
        """True if waiting for more entries is pointless."""
        return self._stopping or self._full() or self._alone is not None

    def _cut(self) -> list[Entry]:
        """Take as many waiting entries as the bounds allow, at least one, all from one Redis server."""
        size = cut = 0
        for entry in self._waiting[: self._bounds.entries]:
            if cut and (size + len(entry.data) > self._bounds.bytes or entry.redis != self._waiting[0].redis):
                break
            size, cut = size + len(entry.data), cut + 1
        batch, self._waiting = self._waiting[:cut], self._waiting[cut:]
        self._waiting_bytes -= size
        return batch

    async def _work(self, batch: list[Entry], alone: bool) -> None:
        started = time.monotonic()
        with span(f"{self.group} process {self.stream.name}", self.stream.name, self.group, len(batch)):
            try:
                outcomes = await self._outcomes(batch, alone=alone) if await self._begin(batch) else ()
                await self._acquit(batch)  # they have done no harm; the rest depends on Redis
                await self._finishing.acquire()
            finally:
                self._working.release()
            try:
                await self._finish_outcomes(batch, outcomes)
            finally:
                self._finishing.release()
                for entry in batch:
                    self._held.pop(entry.name, None)
                    self._counted.discard(entry.name)
                async with self._changed:
                    self._changed.notify_all()
        metrics.BATCH_ENTRIES.labels(self.stream.name).observe(len(batch))
        metrics.BATCH_SECONDS.labels(self.stream.name).observe(time.monotonic() - started)

    async def _begin(self, batch: Sequence[Entry]) -> bool:
        """Count this delivery before the work, in case that kills the process. False if a stop comes first.

        A new entry was counted as it was read.
        """
        again = [entry.name for entry in batch if self._held.get(entry.name)]
        self._counted.update(again)
        return not again or bool(await self._patiently(partial(self._count, again, 1)))

    async def _acquit(self, batch: Sequence[Entry]) -> None:
        """Undo the count of this delivery for sound entries: a later crash or stop is not their fault."""
        sound = [entry.name for entry in batch if entry.name in self._counted]
        self._counted.difference_update(sound)
        if sound:
            await self._patiently(partial(self._count, sound, 0))

    async def _count(self, names: Sequence[Name], now: int) -> int:
        """Set the delivery count of entries: the earlier count, plus `now`."""
        counts: dict[int, list[str]] = {}
        for name in names:
            counts.setdefault(self._held[name] + now, []).append(name[0])
        for deliveries, same in counts.items():
            for start in range(0, len(same), PAGE):
                await self._claimed(same[start : start + PAGE], retrycount=deliveries)
        return len(names)

    async def _claimed(self, ids: Sequence[str], *, idle_ms: int = 0, retrycount: int | None = None) -> list[str]:
        """Claim entries; returns those that are now ours. Claiming does not count as a delivery."""
        claimed = await self._client.xclaim(
            self.key, self.group, self.name, idle_ms, ids, retrycount=retrycount, justid=True
        )
        return [entry_id.decode() for entry_id in claimed]

    async def _outcomes(self, batch: Sequence[Entry], *, alone: bool = False) -> Sequence[Outcome]:
        """Process a batch until its sink accepts it.

        An error that does not blame the sink splits the batch until the entry at fault is isolated. With `alone`, only
        until the work is known to do no harm.
        """
        pause = FIRST_PAUSE_S
        while True:
            try:
                with acquitting(partial(self._acquit, batch) if not alone else _prove):
                    outcomes = await self._process(batch)
                self._sink_back()
                return outcomes
            except _ProvedError:
                self._proved = True
                return []
            except SinkUnavailableError as error:
                await self._acquit(batch)
                await self._sink_away(error)
                if self._stopping:
                    return []  # the whole batch stays pending
                await self._pause(pause * random.uniform(0.5, 1))  # noqa: S311  # jitter, not a secret
                pause = min(pause * 2, LONGEST_PAUSE_S)
            except Exception as error:  # noqa: BLE001  # no error of one batch may stop the others
                error_class = type(error).__name__
                break
        if len(batch) > 1:
            middle = len(batch) // 2
            return [*await self._outcomes(batch[:middle]), *await self._outcomes(batch[middle:])]
        await self._patiently(partial(self._blame, batch[0], error_class))
        return []

    async def _blame(self, entry: Entry, error_class: str) -> int:
        """Count a failed delivery against an entry, or give it up.

        A pending one returns after the visibility time-out.
        """
        log.error("entry failed", extra={"entry_id": entry.id, "error_class": error_class})
        deliveries = self._held[entry.name] + 1
        if deliveries < self._settings.max_deliveries:
            await self._claimed([entry.id], retrycount=deliveries)
        else:
            try:
                await self._give_up(entry, deliveries)
            except OtherRedisError:
                redis, same = await self._same_of([entry])
                if same:
                    await self._give_up(entry._replace(redis=redis), deliveries)
        self._counted.discard(entry.name)
        return 1

    async def _finish_outcomes(self, batch: Sequence[Entry], outcomes: Sequence[Outcome]) -> None:
        if not outcomes:
            return
        passed_over = len(outcomes) - await self._patiently(partial(self._finished, batch, outcomes))
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

    async def _patiently(self, step: Callable[[], Awaitable[int]]) -> int:
        """Retry a step in Redis until it answers: the scripts may run twice, an entry is finished once.

        A stop ends the retries; the entries then stay pending for the next run.
        """
        while True:
            try:
                return await step()
            except RedisError as error:
                if self._stopping:
                    return 0
                log.warning(
                    "redis did not answer; retrying",
                    extra={"stream": self.key, "error_class": type(error).__name__},
                )
            # redis-py's errors are part of reference cycles that keep everything they tried to send. The collector runs
            # too rarely.
            gc.collect()
            await self._pause(REDIS_PAUSE_S * random.uniform(0.2, 1))  # noqa: S311

    async def _pause(self, seconds: float) -> None:
        """Wait, unless a stop comes first."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    async def _sink_away(self, error: SinkUnavailableError) -> None:
        metrics.RETRIES.labels(self.stream.name, error.reason.value).inc()
        if error.reason in self._away_for:
            return  # a new reason is reported: a store that restarts without permissions needs an operator
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
            created_at=clock.now(),
        )
        with contextlib.suppress(RedisError):  # the incident is also logged and counted above
            await self._client.xadd(FAILURES.key(self.shard), {FIELD: incident.model_dump_json()})

    def _sink_back(self) -> None:
        metrics.SINK_UP.labels(self.stream.name).set(1)
        if not self.sink_up:
            self._away_for.clear()
            log.info("the sink is back")

    async def _recover(self) -> None:
        """Take over the entries that an earlier run of this consumer left pending, before any new ones."""
        while self._left_until and not self._stopping:
            try:
                await self._take_over(consumer=self.name, idle_ms=0, until=self._left_until.decode())
                break
            except RedisError as error:
                log.warning(
                    "recovery failed; retrying", extra={"stream": self.key, "error_class": type(error).__name__}
                )
                await self._pause(0.5)
        self._recovered.set()

    async def _keep(self) -> None:
        """Send heartbeats while entries are held, so that no other consumer takes them over."""
        await self._beat(self._show_life)

    async def _show_life(self) -> None:
        held = [entry_id for entry_id, _ in self._held]
        for start in range(0, len(held), PAGE):
            await self._claimed(held[start : start + PAGE])

    async def _reclaim(self) -> None:
        """Take over the entries of dead or stalled consumers."""
        await self._recovered.wait()
        idle_ms = int(self._settings.visibility_timeout_s * 1000)
        await self._beat(partial(self._take_over, consumer=None, idle_ms=idle_ms))

    async def _beat(self, step: Callable[[], Awaitable[None]]) -> None:
        """Repeat a step several times per visibility time-out, until the stop.

        An error of Redis costs one beat.
        """
        while True:
            await self._pause(self._settings.visibility_timeout_s / 4)
            if self._stopping:
                return
            try:
                await step()
            except RedisError as error:
                log.warning("redis did not answer", extra={"stream": self.key, "error_class": type(error).__name__})

    async def _take_over(self, *, consumer: str | None, idle_ms: int, until: str = "+") -> None:
        """Claim pending entries that are not held here, page by page."""
        self.dead_full = False  # an operator may have made room
        start = "-"
        while not self._stopping:
            where = self.key, self.group, start, until, PAGE
            page, redis = await beside_here(
                self._client, self.key, "xpending_range", *where, consumername=consumer, idle=idle_ms or None
            )
            if not page:
                return
            held = {entry_id for entry_id, _ in self._held}
            start = "(" + page[-1]["message_id"].decode()
            counts: dict[int, list[str]] = {}
            for item in page:
                if (entry_id := item["message_id"].decode()) not in held:
                    counts.setdefault(item["times_delivered"], []).append(entry_id)
            for deliveries, ids in counts.items():
                if deliveries < self._settings.max_deliveries:
                    await self._take_again(ids, idle_ms, deliveries)
                    continue
                for entry_id in ids:
                    await self._try_alone(entry_id, deliveries, idle_ms, redis)

    async def _take_again(self, ids: list[str], idle_ms: int, deliveries: int) -> None:
        claimed = await self._claimed(ids, idle_ms=idle_ms)
        while claimed:
            entries = await self._read(claimed)
            self._hold(entries, deliveries)
            if not await self._take(entries):
                return

    async def _try_alone(self, entry_id: str, deliveries: int, idle_ms: int, redis: str) -> None:
        """Process an entry in isolation after its consumers died too often.

        Only an entry that kills its consumer again is given up, and none of its neighbours.
        """
        if self._stopping:
            return  # entries not examined stay unchanged
        if deliveries >= self._settings.max_deliveries + TRIES_ALONE:
            if self.dead_full:
                return
            here, [data] = await self._same.fetch([entry_id])
            if here == redis and data is not None:  # else it is gone, or not the entry whose deliveries were counted
                with contextlib.suppress(OtherRedisError):
                    await self._give_up(Entry(entry_id, data, redis), deliveries)
        elif (claimed := await self._claimed([entry_id], idle_ms=idle_ms)) and (entries := await self._read(claimed)):
            self._hold(entries, deliveries)
            async with self._changed:
                self._alone, self._proved = entries[0], False
                self._changed.notify_all()
                await self._changed.wait_for(lambda: self._stopping or entries[0].name not in self._held)
            if self._proved:
                # The sink takes it together with others: one by one, a few thousand would take minutes. Its earlier
                # count is forgiven.
                self._hold(entries, 1)
                await self._claimed([entry_id], retrycount=1)
                await self._take(entries)

    async def _read(self, ids: list[str]) -> list[Entry]:
        """Read the first of the claimed entries, as many as fit in one read; their ids leave the list.

        A deleted entry is acknowledged, because there is nothing left to process.
        """
        entries = []
        redis, found = await self._same.fetch(ids)
        for data in found:
            entry_id = ids.pop(0)
            if data is not None:
                entries.append(Entry(entry_id, data, redis))
        metrics.RECLAIMED.labels(self.stream.name).inc(len(entries))
        return entries

    async def _give_up(self, entry: Entry, deliveries: int) -> None:
        entry_id, data, redis = entry
        event_id, project, service = identity_of(data)
        failure = Failure(
            # Derived from the entry, not the event: one that is requeued and fails again has failed twice.
            failure_id=uuid.uuid5(uuid.NAMESPACE_OID, f"{self.key}/{entry_id}"),
            event_id=event_id,
            entry_id=entry_id,
            project=project,
            service=service,
            stage=self.group,
            reason=Reason.OTHER,
            error_class=GIVEN_UP,
            detail="kept as a dead letter for a while; see assay dead list",
            deliveries=deliveries,
            created_at=clock.now(),
        )
        keys = [self.key, DEAD.key(self.shard), FAILURES.key(self.shard)]
        arguments = [
            redis,
            self.group,
            entry_id,
            self.group,
            failure.reason.value,
            failure.error_class,
            deliveries,
            failure.model_dump_json(),
            self._settings.dead_bytes,
        ]
        buried = await self._bury(keys=keys, args=arguments)
        self.dead_full = buried == NO_ROOM
        if self.dead_full:
            log.error(
                "no room for another dead letter; the entry stays unfinished: raise delivery.dead_bytes, requeue or drop some",
                extra={"entry_id": entry_id},
            )
        elif buried:
            metrics.ENTRIES.labels(self.stream.name, "buried").inc()
            log.error(
                "entry given up after too many deliveries", extra={"entry_id": entry_id, "deliveries": deliveries}
            )
