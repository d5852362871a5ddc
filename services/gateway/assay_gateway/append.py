"""Append entries to the streams `capture` and `spans`, in one round trip for all requests that wait.

Each shard has one connection.
An append is answered only after Redis has acknowledged it. After a lost connection or a time-out it is unknown which
entries arrived: all are reported as failed, and the client sends them again under the same `event_id`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import NoPermissionError, RedisError, ResponseError

from assay_gateway.pipe import Pipe
from assay_gateway.refusal import RefusedError, unavailable
from assay_runtime.connection import Client, refusal_of, server_of
from assay_schema.settings import Settings
from assay_schema.streams import CAPTURE, FIELD, SPANS, Stream

log = logging.getLogger(__name__)

#: Bytes of entries in one round trip, unless a single request has more.
ROUND_BYTES = 4 * 1024 * 1024
#: Reasons that end as soon as Redis answers a look.
_UNKNOWN, _SILENT = "redis has not answered yet", "redis does not answer"


@dataclass
class _Job:
    stream: Stream
    entries: Sequence[bytes]
    size: int
    done: "asyncio.Future[None]"


class Lane:
    """The way to one shard of the streams."""

    def __init__(self, client: Client, shard: int, settings: Settings) -> None:
        self._pool: Any = server_of(client, shard).connection_pool
        self._client = server_of(client, shard)
        self._settings = settings
        self._shard = shard
        #: Packed here: redis-py's packing of an entry takes longer than everything else about it.
        self._heads = {
            stream: b"*5\r\n" + _words(b"XADD", stream.key(shard).encode(), b"*", FIELD.encode())
            for stream in (CAPTURE, SPANS)
        }
        patience_ms = b"%d" % max(1, int(settings.redis.command_timeout_s * 500))
        replicas = settings.redis.replicas
        self._wait = b"*3\r\n" + _words(b"WAIT", b"%d" % replicas, patience_ms) if replicas else b""
        self._jobs: deque[_Job] = deque()
        self._some = asyncio.Event()
        self._pipe: Pipe | None = None
        self._may_weigh = True
        #: Reason for back-pressure: the stream is over a high-water mark; empty if not.
        self.full = ""
        #: Reason for which Redis did not take the last entries, or did not answer the last look; empty if it did.
        self.away = _UNKNOWN

    async def append(self, entries: Sequence[bytes], stream: Stream) -> None:
        """Append entries in order.

        Raises `RefusedError` (503) if it is not certain that Redis has all of them.
        """
        if self.away == _SILENT:  # requests would wait for one time-out after another
            raise _away()
        job = _Job(stream, entries, sum(map(len, entries)), asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._some.set()
        await job.done

    async def run(self) -> None:
        """Send what waits, round after round, until cancelled."""
        try:
            while True:
                await self._some.wait()
                jobs = self._next()
                try:
                    await self._round(jobs)
                except (RedisError, OSError, TimeoutError) as error:
                    await self._lost(jobs, error)
                finally:
                    for job in jobs:
                        if not job.done.done():  # cancelled, or a bug: the entries are perhaps not in Redis
                            job.done.set_exception(_away())
        finally:
            await self._disconnect()

    async def look(self) -> None:
        """Compare the streams with their high-water marks. Raises `RedisError`."""
        try:
            reasons = [await self._over(stream) for stream in self._heads]
        except (RedisError, OSError):
            self.away = _SILENT
            raise
        self.full = next(filter(None, reasons), "")
        if self.away in (_UNKNOWN, _SILENT):
            self.away = ""

    async def _over(self, stream: Stream) -> str:
        """Return why a stream is over a high-water mark; empty if it is not."""
        limits, key = self._settings.capture, stream.key(self._shard)
        try:
            length = int(await self._client.xlen(key))
            size = int(await self._client.memory_usage(key, samples=0) or 0) if self._may_weigh else 0
        except NoPermissionError:  # a user of an earlier version: without this right there is no mark in bytes
            self._may_weigh = False
            length = size = 0
        share = 0.9 if self.full else 1.0
        if length > limits.high_water_entries * share:
            return f"{key} is over capture.high_water_entries"
        return f"{key} is over capture.high_water_bytes" if size > limits.high_water_bytes * share else ""

    def _next(self) -> list[_Job]:
        jobs, size = [self._jobs.popleft()], 0
        size = jobs[0].size
        while self._jobs and size + self._jobs[0].size <= ROUND_BYTES:
            size += self._jobs[0].size
            jobs.append(self._jobs.popleft())
        if not self._jobs:
            self._some.clear()
        return jobs

    async def _round(self, jobs: list[_Job]) -> None:
        commands = [
            b"%b$%d\r\n%b\r\n" % (self._heads[job.stream], len(data), data) for job in jobs for data in job.entries
        ]
        async with asyncio.timeout(self._settings.redis.command_timeout_s):
            if self._pipe is None:
                self._pipe = await Pipe.open(self._pool)
            replies = await self._pipe.send(b"".join([*commands, self._wait]), len(commands) + bool(self._wait))
            if self._wait and int(replies.pop()) < self._settings.redis.replicas:
                raise TimeoutError
        failed = _failed(jobs, replies)
        if failed:  # as after a failover, when the old master is a replica: the next connection finds the new one
            await self._disconnect()
        for job, reason in failed:
            if not job.done.done():
                job.done.set_exception(_refused(reason))
        self.away = f"redis refuses entries ({refusal_of(failed[0][1])})" if failed else ""
        for job in jobs:
            if not job.done.done():
                job.done.set_result(None)

    async def _lost(self, jobs: list[_Job], error: Exception) -> None:
        log.warning("redis did not take a batch", extra={"error_class": type(error).__name__, "entries": len(jobs)})
        self.away = _SILENT
        await self._disconnect()
        for job in jobs:
            if not job.done.done():
                job.done.set_exception(_away())

    async def _disconnect(self) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            await pipe.close()


def _failed(jobs: Sequence[_Job], replies: Sequence[Any]) -> list[tuple[_Job, ResponseError]]:
    """Return the jobs with an entry that Redis refused, and its reason."""
    failed, place = [], 0
    for job in jobs:
        own = replies[place : place + len(job.entries)]
        place += len(own)
        reason = next((reply for reply in own if isinstance(reply, ResponseError)), None)
        if reason is not None:
            failed.append((job, reason))
    return failed


def _away() -> RefusedError:
    return unavailable(
        "redis_away", "Redis did not confirm the events, so some might not be stored; send them again", 2
    )


def _refused(error: ResponseError) -> RefusedError:
    log.error("redis refuses entries", extra={"error_class": refusal_of(error)})
    return unavailable("redis_refuses", "Redis does not take events at the moment; send them again", 5)


def _words(*words: bytes) -> bytes:
    return b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
