"""A connection of redis-py, used as a pipe: one write for many commands, and their replies.

redis-py connects: address, TLS, password, Sentinel and cluster. Its own reading takes several microseconds a reply,
more than the check of an event, so replies are read here. Only this module uses private names of redis-py.
"""

import contextlib
from typing import Any

import hiredis
from redis.exceptions import ConnectionError as LostError
from redis.exceptions import RedisError, ResponseError

#: Bytes of one read.
_READ_BYTES = 64 * 1024


class Pipe:
    """A connection from a pool. After an error, `close` it: replies may be outstanding."""

    def __init__(self, pool: Any, connection: Any) -> None:
        self._pool = pool
        self._connection = connection
        self._stream: Any = connection._reader  # noqa: SLF001
        self._writer: Any = connection._writer  # noqa: SLF001
        self._replies = hiredis.Reader(replyError=ResponseError, protocolError=LostError)

    @classmethod
    async def open(cls, pool: Any) -> "Pipe":
        """Take a connection from a pool, connected and logged in. Raises `RedisError` or `OSError`."""
        return cls(pool, await pool.get_connection())

    async def send(self, commands: bytes, replies: int) -> list[Any]:
        """Send packed commands and return so many replies; one that refuses is a `ResponseError` in the list.

        Raises `RedisError` or `OSError` if the connection is lost.
        """
        self._writer.write(commands)
        await self._writer.drain()
        found: list[Any] = []
        while len(found) < replies:
            reply = self._replies.gets(False)
            if reply is False:
                data = await self._stream.read(_READ_BYTES)
                if not data:
                    raise LostError("redis closed the connection")
                self._replies.feed(data)
            elif not isinstance(reply, hiredis.PushNotification):
                found.append(reply)
        return found

    async def close(self) -> None:
        """Close the connection and give its place back to the pool."""
        with contextlib.suppress(RedisError, OSError):
            await self._connection.disconnect(nowait=True)
        with contextlib.suppress(RedisError, OSError):
            await self._pool.release(self._connection)
