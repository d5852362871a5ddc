"""The time between the start and the stop of a consumer: pauses and retries that end with it."""

import asyncio
import contextlib
import gc
import logging
import random
from collections.abc import Awaitable, Callable

from redis.exceptions import RedisError

log = logging.getLogger(__name__)

#: Longest pause between attempts of a step in Redis, in seconds.
REDIS_PAUSE_S = 1.0


class Lifetime:
    """Lifetime of the consumer of one stream."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._stop = asyncio.Event()

    @property
    def stopping(self) -> bool:
        """True from the stop on."""
        return self._stop.is_set()

    def stop(self) -> None:
        """End all pauses, and the retries after their current attempt."""
        self._stop.set()

    async def pause(self, seconds: float) -> None:
        """Wait, unless a stop comes first."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()

    async def retry(self, step: Callable[[], Awaitable[int]]) -> int:
        """Retry a step in Redis until it answers: the scripts may run twice, an entry is finished once.

        A stop ends the retries with 0; the entries then stay pending for the next run.
        """
        while True:
            try:
                return await step()
            except RedisError as error:
                if self.stopping:
                    return 0
                log.warning(
                    "redis did not answer; retrying",
                    extra={"stream": self._key, "error_class": type(error).__name__},
                )
            # redis-py's errors are part of reference cycles that keep everything they tried to send. The collector runs
            # too rarely.
            gc.collect()
            await self.pause(REDIS_PAUSE_S * random.uniform(0.2, 1))  # noqa: S311

    async def every(self, seconds: float, step: Callable[[], Awaitable[None]]) -> None:
        """Repeat a step after each pause, until the stop. An error of Redis costs one repetition."""
        while True:
            await self.pause(seconds)
            if self.stopping:
                return
            try:
                await step()
            except RedisError as error:
                log.warning("redis did not answer", extra={"stream": self._key, "error_class": type(error).__name__})
