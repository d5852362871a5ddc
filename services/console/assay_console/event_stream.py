"""Server-Sent Events of the live tail.

An `id:` is the position after the event, so that the browser's `Last-Event-ID` resumes there. Events: `message` is a row, `skipped` the
number of rows that a slow viewer lost (null: the stream no longer has them), `state` comes every 15 s and says if Redis answers.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from assay_console.live import Live
from assay_console.passing import Wanted
from assay_console.stream_position import StreamPosition
from assay_console.viewer import Update

#: Seconds without an event after which the state is sent, and between checks of the viewer's session.
HEARTBEAT_S = 15.0
#: Milliseconds after which a browser connects again.
RETRY_MS = 2_000


class EventStream(StreamingResponse):
    """A response that ends its source when the viewer leaves."""

    def __init__(self, source: AsyncGenerator[Update], events: AsyncIterator[bytes]) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve until the viewer leaves or the console stops."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._source.aclose()


async def stream(
    live: Live, wanted: Wanted, position: StreamPosition | None, allowed: Callable[[], Awaitable[bool]]
) -> EventStream:
    """Return the response to a viewer. Raises `OperationError` if it cannot begin."""
    source = live.watch(wanted, position, HEARTBEAT_S)
    first = await anext(source)  # waits for no event: only the response sees that a viewer leaves

    async def events() -> AsyncIterator[bytes]:
        yield f"retry: {RETRY_MS}\n\n".encode()
        yield encoded(first, live.away)
        checked = time.monotonic()
        async for update in source:
            if time.monotonic() - checked >= HEARTBEAT_S:
                checked = time.monotonic()
                if not await allowed():
                    return
            yield encoded(update, live.away)

    return EventStream(source, events())


def encoded(update: Update, away: bool) -> bytes:
    """Return an event as text. Pure."""
    name, data = "", dict[str, Any]()
    if update.row is not None:
        data = update.row.model_dump(mode="json")
    elif update.skipped or update.trimmed:
        name, data = "skipped", {"skipped": update.skipped or None}
    else:
        name, data = "state", {"redis": "away" if away else "ready"}
    kind = f"event: {name}\n" if name else ""
    return b"%bid: %b\ndata: %b\n\n" % (kind.encode(), update.position.encode(), orjson.dumps(data))
