"""Chores over several shards, each of which may have a Redis of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def each(things: Iterable[T], step: Callable[[T], Awaitable[object]]) -> None:
    """Do a step for all at the same time. One whose Redis is away stops no other; the first error is raised when all are done."""
    for outcome in await asyncio.gather(*(step(thing) for thing in things), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
