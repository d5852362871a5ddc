"""The body of a request as a stream of decompressed bytes, in bounded memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.types import Receive

from assay_store.compression import Decoder, Identity
from assay_store.errors import QUERY_IS_TOO_LARGE, SOCKET_TIMEOUT, StoreError

_HEARD_OUT_BYTES = 8 << 20
_HEARD_OUT_SECONDS = 5.0


class ClientGoneError(Exception):
    """The client closed the connection before its request was answered."""


class Body:
    """Reads one request body.

    Args:
        receive: the ASGI channel.
        decoder: for its Content-Encoding.
        thread: runs the decoder in a thread; a small body may be a large one compressed.
        pause_seconds: longest pause between two parts.
    """

    def __init__(
        self,
        receive: Receive,
        decoder: Decoder,
        thread: Callable[[Callable[[], bytes | None]], Awaitable[bytes | None]],
        pause_seconds: float,
    ) -> None:
        self._receive = receive
        self._decoder = decoder
        self._thread = thread
        self._pause = pause_seconds
        self._more = True
        self._pieces = self._read()
        self.ended = False

    async def _read(self) -> AsyncIterator[bytes]:
        while self._more:
            try:
                # Not `wait_for`: before Python 3.12 it loses a cancellation, such as an outer time-out, that arrives
                # with the data.
                async with asyncio.timeout(self._pause):
                    data = await self._raw()
            except TimeoutError:
                raise StoreError(SOCKET_TIMEOUT, f"No data from the client for {self._pause:g} seconds") from None
            if isinstance(self._decoder, Identity):
                yield data
                continue
            pieces = self._decoder.feed(data)
            while (piece := await self._thread(lambda pieces=pieces: next(pieces, None))) is not None:  # type: ignore[misc]
                yield piece
        self._decoder.finish()

    async def _raw(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._more = False
            raise ClientGoneError
        self._more = message.get("more_body", False)
        return bytes(message.get("body", b""))

    async def next(self) -> bytes | None:
        """Return the next piece, or None after the last.

        Raises:
            StoreError: it is not valid in its encoding, ends too early, or does not come.
            ClientGoneError: the client is gone.
        """
        try:
            return await anext(self._pieces)
        except StopAsyncIteration:
            self.ended = True
            return None

    async def rest(self, limit: int, what: str) -> bytes:
        """Return the rest of the body.

        Raises:
            StoreError: it is longer than `limit` bytes (223).
        """
        gathered = bytearray()
        while (piece := await self.next()) is not None:
            gathered += piece
            if len(gathered) > limit:
                raise StoreError(QUERY_IS_TOO_LARGE, f"The body is longer than {limit} bytes: {what}")
        return bytes(gathered)

    async def hear_out(self) -> bool:
        """Read and discard the rest; returns False if the client sends too much.

        A client that is still sending would otherwise see a reset connection, and not the response.
        """
        heard = 0
        with contextlib.suppress(ClientGoneError, TimeoutError):
            async with asyncio.timeout(_HEARD_OUT_SECONDS):
                while self._more and heard <= _HEARD_OUT_BYTES:
                    heard += len(await self._raw())
        return not self._more
