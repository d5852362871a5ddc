"""One HTTP connection, with a limit for the size and the time of a request's head.

The server bounds neither, so that a slow or endless head would hold a connection, or memory, indefinitely.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Most bytes of the request line and headers.
HEAD_BYTES = 64 * 1024
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedConnection(HttpToolsProtocol):
    """A connection that is closed if the head of a request is too long or too slow."""

    #: Seconds until a request's head must have arrived.
    head_s = 30.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_bytes = 0
        self._in_head = True
        self._head_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._head_arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head."""
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_deadline is None:
                self._expect_head()
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Let the request begin."""
        self._in_head = False
        self._head_arrived()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Expect the next request."""
        super().on_message_complete()
        self._in_head, self._head_bytes = True, 0

    def _expect_head(self) -> None:
        self._head_deadline = self.loop.call_later(self.head_s, self._too_slow)

    def _head_arrived(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _too_slow(self) -> None:
        self._head_deadline = None
        if not self.transport.is_closing():
            self.transport.close()


def bounded(head_s: float) -> type[BoundedConnection]:
    """Return the class of connections whose heads must arrive within so many seconds."""
    return type("Connection", (BoundedConnection,), {"head_s": head_s})
