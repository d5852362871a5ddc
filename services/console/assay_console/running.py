"""Cancel a query that a thread waits for, when the last client that waits for its answer has left.

The driver blocks in its thread. Shutting the socket down wakes it, and the store cancels the query of a client that left.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from assay_runtime.store import Client

_THREAD = threading.local()


class CancelledReadError(HTTPError):
    """The last client that waits for this read has left."""


class Running:
    """One read in a thread, which may make several requests to the store."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._connection: HTTPConnection | None = None
        self._cancelled = False

    @contextmanager
    def here(self) -> Iterator[None]:
        """Count the requests of this thread as those of the read."""
        _THREAD.running = self
        try:
            yield
        finally:
            with self._changing:
                self._connection = None
            _THREAD.running = None

    def asks(self, connection: HTTPConnection) -> None:
        """Note the connection of the next request. Raises `CancelledReadError` after `cancel`."""
        with self._changing:
            if self._cancelled:
                raise CancelledReadError
            self._connection = connection

    def cancel(self) -> None:
        """End the request that runs, and refuse further ones. Safe from any thread."""
        with self._changing:
            self._cancelled = True
            connection = self._connection
            if connection is not None and connection.sock is not None:
                with suppress(OSError):  # it has ended meanwhile
                    connection.sock.shutdown(socket.SHUT_RDWR)


class _Noted:
    """A connection that tells the read of its thread about each request."""

    def request(self, *arguments: Any, **options: Any) -> None:
        running: Running | None = getattr(_THREAD, "running", None)
        if running is not None:
            running.asks(self)  # type: ignore[arg-type]
        super().request(*arguments, **options)  # type: ignore[misc]


class _Connection(_Noted, HTTPConnection):
    pass


class _SecureConnection(_Noted, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def note_requests(client: Client) -> Client:
    """Make the requests of a client known to the `Running` of their thread."""
    pools: Any = client.http  # type: ignore[attr-defined]
    pools.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    pools.clear()  # the connection of the driver's first question
    return client
