"""Reads of Redis for pages: refused at once while it hangs.

After a read without an answer in time, no page waits for Redis until it answers again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, TypeVar

from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as NoAnswerError

from assay_runtime.connection import Client as Redis
from assay_runtime.connection import servers

T = TypeVar("T")
P = ParamSpec("P")

#: Seconds that Redis has to answer a page.
REDIS_S = 2.0
#: Seconds between two attempts to reach a Redis that hangs, and seconds that it has for each.
_PROBE_EVERY_S, _PROBE_S = 1.0, 2.0


class RedisReads:
    """Asks Redis on behalf of pages: one page waits for a Redis that hangs, and no second one."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        #: Runs while Redis hangs.
        self._probing: asyncio.Task[None] | None = None

    async def ask_within(
        self,
        seconds: float,
        function: Callable[Concatenate[Redis, P], Awaitable[T]],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call an operation that reads Redis. Raises `RedisError`, `OSError` or `TimeoutError`."""
        if self._probing is not None and not self._probing.done():
            raise TimeoutError
        try:
            async with asyncio.timeout(seconds):
                return await function(self._redis, *arguments, **options)
        except (TimeoutError, NoAnswerError):
            if self._probing is None or self._probing.done():
                self._probing = asyncio.create_task(self._probe())
            raise

    async def _probe(self) -> None:
        """Try to reach Redis until it does not hang. No page waits for this."""
        while True:
            try:
                async with asyncio.timeout(_PROBE_S):
                    await asyncio.gather(*(server.ping() for server in servers(self._redis)))
            except (TimeoutError, NoAnswerError):
                await asyncio.sleep(_PROBE_EVERY_S)
            except (RedisError, OSError):
                return  # the next page sees at once what it is
            else:
                return

    def close(self) -> None:
        """End the attempts to reach Redis."""
        if self._probing is not None:
            self._probing.cancel()
