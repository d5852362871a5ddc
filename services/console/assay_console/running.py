"""Cancel a query that a thread waits for, when the last client that waits for its answer has left.

The driver blocks in its thread. Shutting the socket down wakes it, and the store cancels the query of a client that left.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from assay_runtime.store import Client

_READ: ContextVar["Running | None"] = ContextVar("read", default=None)


class CancelledReadError(HTTPError):
    """The last client that waits for this read has left."""


class Running:
    """One read in a thread, which may make several requests to the store, also in further threads."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._connections: set[HTTPConnection] = set()
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Return True if its requests were ended, so that their errors say nothing about the store."""
        return self._cancelled

    @contextmanager
    def here(self) -> Iterator[None]:
        """Count the requests of this context as those of the read."""
        token = _READ.set(self)
        try:
            yield
        finally:
            _READ.reset(token)

    def asks(self, connection: HTTPConnection) -> None:
        """Note the connection of the next request. Raises `CancelledReadError` after `cancel`."""
        with self._changing:
            if self._cancelled:
                raise CancelledReadError
            self._connections.add(connection)

    def answered(self, connection: HTTPConnection) -> None:
        """Forget a connection whose request has ended: another read may use it next."""
        with self._changing:
            self._connections.discard(connection)

    def cancel(self) -> None:
        """End the requests that run, and refuse further ones. Safe from any thread."""
        with self._changing:
            self._cancelled = True
            for connection in self._connections:
                if connection.sock is not None:
                    with suppress(OSError):  # it has ended meanwhile
                        connection.sock.shutdown(socket.SHUT_RDWR)


class _Noted:
    """A connection that tells its read about each request."""

    read: Running | None = None

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        if self.read is not None:
            self.read.asks(self)  # type: ignore[arg-type]  # it may have been cancelled while there was no socket to shut down

    def request(self, *arguments: Any, **options: Any) -> None:
        self.read = _READ.get()
        if self.read is not None:
            self.read.asks(self)  # type: ignore[arg-type]
        super().request(*arguments, **options)  # type: ignore[misc]


class _Noting:
    """A pool that tells a read when its request has ended."""

    def _put_conn(self, conn: Any) -> None:
        if conn is not None and conn.read is not None:
            conn.read.answered(conn)
            conn.read = None
        super()._put_conn(conn)  # type: ignore[misc]


class _Connection(_Noted, HTTPConnection):
    pass


class _SecureConnection(_Noted, HTTPSConnection):
    pass


class _Pool(_Noting, HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(_Noting, HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def note_requests(client: Client) -> Client:
    """Make the requests of a client known to the `Running` of their context."""
    pools: Any = client.http  # type: ignore[attr-defined]
    pools.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    pools.clear()  # the connection of the driver's first question
    return client
