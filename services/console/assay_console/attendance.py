"""End the work on an answer when the client that asked for it has left."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import Request

T = TypeVar("T")


class ClientLeftError(Exception):
    """The client does not wait for the answer any more."""


async def while_there(request: Request, work: Awaitable[T]) -> T:
    """Await work for the answer to a GET, and cancel it when the client leaves.

    Raises `ClientLeftError` then.

    Never for an action: it would be cancelled half-way.
    """
    task, left = asyncio.ensure_future(work), asyncio.create_task(_left(request))
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientLeftError
        return task.result()
    finally:
        unfinished = [each for each in (task, left) if not each.done()]
        for each in unfinished:
            each.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
