"""Periodic work over several shards, each of which may have a separate Redis server."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def each(things: Iterable[T], step: Callable[[T], Awaitable[object]]) -> None:
    """Run a step for all in parallel.

    A failure does not stop the others; the first error is raised at the end.
    """
    for outcome in await asyncio.gather(*(step(thing) for thing in things), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
