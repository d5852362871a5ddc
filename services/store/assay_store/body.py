"""A request's body as a stream of decompressed bytes, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.types import Receive

from assay_store.compression import Decoder
from assay_store.errors import QUERY_IS_TOO_LARGE, StoreError


class ClientGoneError(Exception):
    """The client closed the connection before its request was answered."""


class Body:
    """Reads one body.

    Args:
        receive: the ASGI channel.
        decoder: for its Content-Encoding.
        pause_seconds: longest pause between two parts.
    """

    def __init__(self, receive: Receive, decoder: Decoder, pause_seconds: float) -> None:
        self._receive = receive
        self._decoder = decoder
        self._pause = pause_seconds
        self._pieces = self._read()
        self.ended = False

    async def _read(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            try:
                message = await asyncio.wait_for(self._receive(), self._pause)
            except TimeoutError:
                raise StoreError(209, f"No data from the client for {self._pause:g} seconds") from None
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            more = message.get("more_body", False)
            for piece in self._decoder.feed(message.get("body", b"")):
                yield piece
        self._decoder.finish()

    async def next(self) -> bytes | None:
        """The next piece, or None after the last.

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
        """Everything that is left.

        Raises:
            StoreError: it is longer than `limit` bytes (223).
        """
        gathered = bytearray()
        while (piece := await self.next()) is not None:
            gathered += piece
            if len(gathered) > limit:
                raise StoreError(QUERY_IS_TOO_LARGE, f"The body is longer than {limit} bytes: {what}")
        return bytes(gathered)
