"""The frame of every service: connect, consume, report health, drain. A service adds only its work."""

import asyncio
import contextlib
import gc
import logging
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from faststream import FastStream
from faststream.specification import AsyncAPI
from redis.exceptions import AuthenticationError, OutOfMemoryError, RedisError, ResponseError

from assay_runtime import memory, metrics
from assay_runtime.clock import clock
from assay_runtime.config import load_settings
from assay_runtime.connection import appends_to_disk, connect, evicted_keys, evicts, refusal_of, refuse_unfit, servers
from assay_runtime.delivery import Consumer
from assay_runtime.each import each
from assay_runtime.entries import Bounds, Process
from assay_runtime.faststream_adapter import leave_groups_alone, make_broker, publish_document, subscribe
from assay_runtime.finishing import Finish
from assay_runtime.health import Problems, application, health_server, listen
from assay_runtime.lag import Count, group_of
from assay_runtime.logs import configure_logs
from assay_runtime.tracing import export_spans
from assay_runtime.transport import passwords_in_clear
from assay_schema.settings import Settings, SettingsError
from assay_schema.streams import Stream

log = logging.getLogger(__name__)

#: Seconds between checks of the streams.
TICK_S = 0.5
#: Seconds between checks of Redis's settings.
FITNESS_EVERY_S = 2.0
#: Redis must have answered within this many seconds for the service to be ready.
REDIS_SILENCE_S = 5.0
#: Seconds between removals of inactive members from groups.
FORGET_EVERY_S = 600.0
#: Why an entry could not be dead-lettered.
NO_ROOM = "dead letters exceed delivery.dead_bytes; see assay dead list, then requeue or drop some"
#: A step that a service repeats.
Chore = Callable[[], Awaitable[None]]
#: Redis answers but refuses us: a wrong password, missing rights.
REFUSALS = (ResponseError, AuthenticationError)
#: Advice for a refusal.
REDIS_REMEDY = (
    "user and password in redis.url (ASSAY_REDIS_URL) or redis.password_file, and the user's rights (deploy/redis)"
)


class Service:
    """One process: consumers on the shards of its streams, a health port, and a tick for periodic work."""

    def __init__(self, name: str, settings: Settings, port: int) -> None:
        self.name = name
        self.settings = settings
        self.client = connect(settings.redis, attempts=5)
        self.broker = make_broker(settings.redis)
        self.consumers: list[Consumer] = []
        self.lag: dict[str, int] = {}
        self._counts: dict[str, Count] = {}
        self._chores: list[Chore] = [self._look_at_redis, self._forget_the_gone]
        self._gates: list[Chore] = []
        self._closers: list[Callable[[], None]] = []
        self._stoppers: list[Callable[[], None]] = []
        #: Start time of each pending request to Redis, by chore.
        self._unanswered: dict[str, float] = {}
        self._evicts = ""
        self._evicted = 0
        self._fitness_due = 0.0
        self._forget_due = 0.0
        self._started = False
        self._failed = False
        self._closed = asyncio.Event()
        self._port = port
        self._notes: list[Problems] = [self._lost_keys]
        self._needs: list[Problems] = []
        self._health = health_server(application(self._dead, self._unready, self._noted))
        self._tasks: list[asyncio.Task[Any]] = []

    def consume(
        self,
        stream: Stream,
        shard: int,
        *,
        process: Process,
        finish: Finish,
        bounds: Bounds,
        document: Any,
    ) -> None:
        """Run `process` over the entries of one shard, in batches within `bounds`, acknowledged by `finish`."""
        name = self.settings.delivery.consumer or f"{socket.gethostname()}-{os.getpid()}"
        consumer = Consumer(
            self.client,
            stream,
            group=self.name,
            name=name,
            process=process,
            finish=finish,
            bounds=bounds,
            settings=self.settings.delivery,
            shard=shard,
        )
        self.consumers.append(consumer)
        self._counts[consumer.key] = Count(self.client, stream, shard, self.name)
        subscribe(self.broker, consumer, document)

    def publishes(self, stream: Stream, shard: int, document: Any) -> None:
        """Document in the AsyncAPI document that this service writes to a stream."""
        publish_document(self.broker, stream, shard, document)

    def every_tick(self, chore: Chore) -> None:
        """Run a chore a few times a second, in parallel with others; an unreachable Redis only skips it."""
        self._chores.append(chore)

    def gate(self, chore: Chore) -> None:
        """Run a chore that may hold consumers back: once before they start, and then every tick."""
        self._gates.append(chore)
        self._chores.append(chore)

    def needs(self, problems: Problems) -> None:
        """Report on `/readyz` additional reasons why the service is not ready."""
        self._needs.append(problems)

    def notes(self, notes: Problems) -> None:
        """Show problems on `/readyz` that an operator should fix although the service works."""
        self._notes.append(notes)

    def at_stop(self, stop: Callable[[], None]) -> None:
        """Call a function when a stop begins, before the last batch is finished, such as to end long waits."""
        self._stoppers.append(stop)

    def at_exit(self, close: Callable[[], None]) -> None:
        """Call a function after the last batch."""
        self._closers.append(close)

    def application(self) -> FastStream:
        """Return the FastStream application, which runs and from which the AsyncAPI document is generated."""
        return FastStream(
            self.broker,
            specification=AsyncAPI(title=f"Assay {self.name}", version="1", description=f"The {self.name} service."),
            logger=logging.getLogger("assay.faststream"),
            on_startup=[self._connect],
            after_startup=[self._start],
            on_shutdown=[self._drain],
            after_shutdown=[self._close],
        )

    async def run(self) -> int:
        """Serve until a signal.

        Exit code 0 after a clean drain; 1 if the service cannot continue, so that a supervisor restarts it.
        """
        app = self.application()
        health = listen(self.settings.telemetry.host, self._port, f"ASSAY_{self.name}_PORT".upper())
        self._tasks = [
            asyncio.create_task(self._health.serve(sockets=[health])),
            asyncio.create_task(self._watch(app)),
        ]
        await app.run()
        return 1 if self._failed else 0

    async def ask_the_time(self) -> None:
        """Set the clock of this process by Redis's.

        Every service does this regularly; call it where accuracy matters.
        """
        clock.set(*await servers(self.client)[0].time())

    async def _connect(self) -> None:
        while True:
            try:
                await refuse_unfit(self.client)
                await self.ask_the_time()
                for consumer in self.consumers:
                    await consumer.prepare()
                for gate in self._gates:
                    await gate()
                await leave_groups_alone(self.broker)
                if not await appends_to_disk(self.client):
                    log.warning("redis keeps no append-only file: if it crashes, events are lost; set appendonly yes")
                return
            except OutOfMemoryError:
                log.warning("waiting for redis: its memory is full", extra={"error_class": "OutOfMemoryError"})
                await asyncio.sleep(1)
            except REFUSALS as error:
                if refusal_of(error) != "BUSY":
                    raise  # waiting would not help
                log.warning("waiting for redis: a script does not end; see SCRIPT KILL", extra={"error_class": "BUSY"})
                await asyncio.sleep(1)
            except RedisError as error:
                log.warning(
                    "waiting for redis; check that it runs at redis.url (ASSAY_REDIS_URL)",
                    extra={"error_class": type(error).__name__},
                )
                await asyncio.sleep(1)

    async def _start(self) -> None:
        for consumer in self.consumers:
            consumer.start()
        gc.freeze()  # freeze the objects that live now: collecting them repeatedly costs a quarter of the CPU
        gc.set_threshold(100_000, 50, 50)
        self._started = True
        shards = sorted({consumer.shard for consumer in self.consumers})
        chores: dict[str, Chore] = {f"shard {shard}": partial(self._look_at, shard) for shard in shards}
        self._unanswered = dict.fromkeys(chores, 0.0)
        chores |= {f"chore {number}": chore for number, chore in enumerate(self._chores)}
        self._tasks += [asyncio.create_task(self._repeat(name, chore), name=name) for name, chore in chores.items()]
        log.info("ready to consume", extra={"consumer": self.consumers[0].name})

    async def _drain(self) -> None:
        self._started = False
        for stop in self._stoppers:
            stop()
        await asyncio.gather(*(consumer.stop() for consumer in self.consumers))

    async def _close(self) -> None:
        self._health.should_exit = True
        for close in self._closers:
            close()
        self._closed.set()
        await asyncio.gather(*self._tasks)
        with contextlib.suppress(RedisError):  # another member removes a member that could not leave
            for consumer in self.consumers:
                await consumer.leave()
        await self.client.aclose()
        log.info("stopped")

    async def _watch(self, app: FastStream) -> None:
        """Return free memory, and end the service when it cannot continue."""
        given_back = 0.0
        while await self._pause():
            if time.monotonic() - given_back > memory.GIVE_BACK_EVERY_S:
                memory.give_back()
                given_back = time.monotonic()
            self._show_unknown()
            if self._started and (dead := self._dead()):
                log.error("cannot continue: %s", "; ".join(dead))
                self._failed = True
                app.exit()
                return

    async def _repeat(self, name: str, chore: Chore) -> None:
        """Run a chore every tick, independently: one that waits for its shard's Redis delays no other."""
        while await self._pause():
            if not self._started:
                continue
            if await self._do(chore):
                self._unanswered.pop(name, None)
            else:
                self._unanswered.setdefault(name, time.monotonic())

    async def _pause(self) -> bool:
        """Wait for the next tick; False if there is none."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TICK_S):
                await self._closed.wait()
        return not self._closed.is_set()

    async def _do(self, chore: Chore) -> bool:
        """Run a chore; a failure does not affect the others. True if Redis answered."""
        try:
            await chore()
        except RedisError as error:
            log.warning("redis did not answer", extra={"error_class": type(error).__name__})
            return False
        except Exception as error:  # noqa: BLE001
            log.error("a chore failed", extra={"error_class": type(error).__name__})
        return True

    async def _look_at_redis(self) -> None:
        if time.monotonic() < self._fitness_due:
            return
        await self.ask_the_time()
        self._evicts, self._evicted = await evicts(self.client), await evicted_keys(self.client)
        self._fitness_due = time.monotonic() + FITNESS_EVERY_S

    async def _forget_the_gone(self) -> None:
        if time.monotonic() < self._forget_due:
            return
        self._forget_due = time.monotonic() + FORGET_EVERY_S
        await each(self.consumers, Consumer.forget_the_gone)

    async def _look_at(self, shard: int) -> None:
        self._unanswered.setdefault(f"shard {shard}", time.monotonic())
        for consumer in self.consumers:
            if consumer.shard == shard:
                await self._look_at_group(consumer)

    async def _look_at_group(self, consumer: Consumer) -> None:
        group = await group_of(self.client, consumer.stream, consumer.shard, consumer.group)
        if group is None:
            await consumer.prepare()
            return
        unread = await self._counts[consumer.key].unread(group)
        self.lag[consumer.key] = unread
        metrics.LAG.labels(consumer.stream.name, str(consumer.shard)).set(unread)
        metrics.PENDING.labels(consumer.stream.name, str(consumer.shard)).set(group.pending)

    def _redis_silent(self, *chores: str) -> bool:
        """True if a request of these chores to Redis has been pending for too long."""
        now = time.monotonic()
        return any(now - self._unanswered.get(chore, now) > REDIS_SILENCE_S for chore in chores)

    def _show_unknown(self) -> None:
        """Mark the state of shards as unknown if Redis does not confirm it."""
        for shard in {consumer.shard for consumer in self.consumers}:
            if self._redis_silent(f"shard {shard}"):
                metrics.forget_shard(shard)

    def _dead(self) -> list[str]:
        if not self._started:
            return []
        problems = [
            f"the work on {consumer.key} ended ({consumer.ended_by})"
            for consumer in self.consumers
            if consumer.ended_by
        ]
        if any(task.done() for task in self._tasks):
            problems.append("a task of the service ended")
        if not all(subscriber.running for subscriber in self.broker.subscribers):
            problems.append("a subscriber stopped reading")
        return problems

    def _lost_keys(self) -> list[str]:
        if not self._evicted:
            return []
        why = "events among them are lost; set maxmemory-policy noeviction, then CONFIG RESETSTAT"
        return [f"redis evicted {self._evicted} keys (evicted_keys): {why}"]

    def _noted(self) -> list[str]:
        off = clock.host_is_off()
        return [*([off] if off else []), *(note for notes in self._notes for note in notes())]

    def _unready(self) -> list[str]:
        if not self._started:
            return ["starting"]
        problems = [problem for needs in self._needs for problem in needs()]
        if self._redis_silent(*self._unanswered):
            problems.append("redis does not answer")
        if self._evicts:
            problems.append(self._evicts)
        problems += [f"the sink of {consumer.key} is away" for consumer in self.consumers if not consumer.sink_up]
        problems += [consumer.held_back for consumer in self.consumers if consumer.held_back]
        problems += [f"{consumer.key}: {NO_ROOM}" for consumer in self.consumers if consumer.dead_full]
        limit = self.settings.delivery.lag_limit_entries
        problems += [f"{key} lags by {lag} entries" for key, lag in self.lag.items() if lag > limit]
        return problems


def main(name: str, build: Callable[[Settings], Service]) -> None:
    """Run a service's process: settings, logs, spans, then serve."""
    memory.share_one_heap()
    try:
        settings = load_settings()
    except SettingsError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    configure_logs(name, settings.telemetry)
    for problem in passwords_in_clear(settings):
        log.warning("%s", problem)
    memory.publish(memory.bound_of(name, settings.redis.shards))
    provider = export_spans(name, settings.telemetry)
    try:
        code = asyncio.run(_serve(build, settings))
    except REFUSALS as error:
        log.critical("cannot start: redis refuses (%s); check %s", error, REDIS_REMEDY)
        raise SystemExit(2) from None
    except (SettingsError, RuntimeError, OSError) as error:
        log.critical("cannot start: %s", error)
        raise SystemExit(2) from None
    finally:
        if provider:
            provider.shutdown()
    raise SystemExit(code)


async def _serve(build: Callable[[Settings], Service], settings: Settings) -> int:
    return await build(settings).run()
