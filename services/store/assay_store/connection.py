"""Connection limits: bounds on the head of a request, applied before any password."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST_HEADERS = 1000
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


@dataclass
class Bounds:
    """Limits shared by all connections of one store.

    Attributes:
        head_bytes: longest head of a request: its URL and headers.
        head_seconds: longest time from its first byte, or from the opening of the connection, to its last.
        idle: connections that may be without a request at a time; one more closes the one that is so for longest.
    """

    head_bytes: int
    head_seconds: float
    idle: int
    waiting: dict[Connection, None] = field(default_factory=dict)


class Connection(HttpToolsProtocol):
    """Extends uvicorn's protocol with limits: httptools reads heads of any length, for any time.

    The scope of a request has `logins` in its state: the names that have logged in on this connection.
    """

    def __init__(self, bounds: Bounds, **options: Any) -> None:
        super().__init__(**options)
        self._bounds = bounds
        self._in_head = True
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._logins: set[str] = set()
        self._refusal = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Implement asyncio.Protocol."""
        super().connection_made(transport)
        self._wait()
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Implement asyncio.Protocol."""
        self._end_head()
        self._bounds.waiting.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Implement asyncio.Protocol."""
        if self._in_head:
            self._begin_head()
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > self._bounds.head_bytes:
            self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Handle a callback of httptools."""
        super().on_message_begin()
        self.scope["state"]["logins"] = self._logins

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle a callback of httptools."""
        if len(self.headers) >= _MOST_HEADERS:
            self._refusal = _TOO_LARGE
            raise ValueError("too many headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Handle a callback of httptools."""
        self._end_head()
        self._in_head = False
        self._bounds.waiting.pop(self, None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Handle a callback of httptools."""
        self._in_head, self._head_bytes = True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Handle a callback of uvicorn."""
        super().on_response_complete()
        if not self.transport.is_closing() and self._in_head:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Handle a callback of uvicorn."""
        if self._refusal:
            self._refuse(self._refusal)
        else:
            super().send_400_response(msg)

    def _wait(self) -> None:
        """Count this as a connection without a request."""
        waiting = self._bounds.waiting
        waiting[self] = None
        if len(waiting) > self._bounds.idle:
            oldest = next(iter(waiting))
            del waiting[oldest]
            oldest.transport.close()

    def _begin_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._bounds.head_seconds, self._late)

    def _end_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _late(self) -> None:
        self._head_timer = None
        if self.cycle is not None and not self.cycle.response_complete:
            self._begin_head()  # it is waiting for the response to the previous request
        else:
            self._refuse(_TOO_SLOW if self._head_bytes else b"")

    def _refuse(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            if answer and (self.cycle is None or self.cycle.response_complete):
                self.transport.write(answer)
            self.transport.close()
