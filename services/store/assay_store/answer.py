"""An HTTP response: headers, a body in pieces, compression, and an error at any point."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import string
from collections.abc import Awaitable, Callable, Iterator, Sequence

from starlette.types import Send

from assay_store import compression, formats
from assay_store.body import ClientGoneError
from assay_store.errors import StoreError
from assay_store.execute import Block, Summary

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TAG_LETTERS = string.ascii_lowercase

PART_BYTES = 1 << 20
"""Longest piece of a body sent at a time, in bytes."""

INLINE_BYTES = 64 << 10
"""Bytes up to which data is compressed in the event loop; more goes to a thread, so that no other request waits."""

LAST_WORDS_SECONDS = 1.0
"""Seconds that a connection stays open after an error in the middle of a result.

Otherwise a slow client, or one that decompresses in another thread, would see the end of the connection before the
error.
"""


class Answer:
    """Sends one response.

    Args:
        send: the ASGI channel.
        thread: runs blocking work in a thread.
        pause_seconds: longest time the client may take for one piece.
        version: the engine's, for errors.
        headers: sent with every answer.
    """

    def __init__(
        self,
        send: Send,
        *,
        method: str,
        thread: Callable[[Callable[[], bytes]], Awaitable[bytes]],
        pause_seconds: float,
        version: str,
        headers: dict[str, str],
    ) -> None:
        self._send = send
        self._method = method
        self._thread = thread
        self._pause = pause_seconds
        self._version = version
        self._constant = headers
        self._encoder = compression.Encoder("")
        self._tag = "".join(secrets.choice(_TAG_LETTERS) for _ in range(16))
        self._ended = False
        self.query_id = ""
        self.kind = "unknown"
        """The kind of the statement, for metrics."""
        self.status = 0
        """The HTTP status that was sent; 0 before."""
        self.broken_off = False
        """True if an error ended a result in the middle; the connection must then be closed after LAST_WORDS_SECONDS."""
        self.code = 0
        """The error's code; 0 without an error."""

    def compress(self, encoding: str) -> None:
        """Select the encoding of the body."""
        self._encoder = compression.Encoder(encoding)

    async def whole(self, summary: Summary, output_format: str | None, blocks: Sequence[Block] = ()) -> None:
        """Send a complete result."""
        await self._complete(200, self._headers(summary, output_format), blocks)

    async def begin(self, summary: Summary, output_format: str) -> None:
        """Begin a result that is sent in pieces."""
        await self._start(200, self._headers(summary, output_format))

    async def more(self, blocks: Sequence[Block]) -> None:
        """Send the next blocks of the result."""
        for part in _parts(blocks):
            await self._part(await self._encoded(part))

    async def end(self) -> None:
        """End the result."""
        await self._part(self._encoder.finish(), last=True)

    async def fail(self, failure: StoreError) -> None:
        """Send an error, unless something was already sent."""
        self.code = failure.code
        if self.status:
            return
        headers = self._headers(Summary(), None)
        headers["Content-Type"] = "text/plain; charset=UTF-8"
        headers["X-ClickHouse-Exception-Code"] = str(failure.code)
        with contextlib.suppress(OSError, ClientGoneError):
            await self._complete(failure.http_status, headers, [Block(memoryview(_bytes(failure.body(self._version))))])

    async def break_off(self, failure: StoreError) -> None:
        """End a result in the middle: the error between two tags, and no end of the body.

        Raises:
            ClientGoneError: always; the connection is of no use any more.
        """
        self.code = failure.code
        message, tag = _bytes(failure.body(self._version)), self._tag.encode()
        block = b"\r\n__exception__\r\n%b\r\n%b\n%d %b\r\n__exception__\r\n" % (
            tag, message.rstrip(b"\n"), len(message), tag,
        )  # fmt: skip
        await self._part(self._encoder.encode(block) + self._encoder.finish())
        self.broken_off = True
        raise ClientGoneError

    async def nothing(self, status: int, headers: dict[str, str]) -> None:
        """Send headers only."""
        self._encoder = compression.Encoder("")
        await self._start(status, self._constant | headers)
        await self._part(b"", last=True)

    async def text(self, text: str) -> None:
        """Send a line of text."""
        await self._complete(
            200, self._constant | {"Content-Type": "text/html; charset=UTF-8"}, [Block(memoryview(text.encode()))]
        )

    def _headers(self, summary: Summary, output_format: str | None) -> dict[str, str]:
        headers = self._constant | {
            "Content-Type": formats.content_type(output_format or "TabSeparated"),
            "X-ClickHouse-Query-Id": self.query_id,
            "X-ClickHouse-Timezone": "UTC",
            "X-ClickHouse-Exception-Tag": self._tag,
            "X-ClickHouse-Summary": summary.header(),
        }
        if output_format:
            headers["X-ClickHouse-Format"] = output_format
        return headers

    async def _complete(self, status: int, headers: dict[str, str], blocks: Sequence[Block]) -> None:
        size = sum(map(len, blocks))
        if not size or self._method == "HEAD":
            self._encoder = compression.Encoder("")
        if self._encoder.encoding and size > PART_BYTES:
            await self._start(status, headers)
            await self.more(blocks)
            await self.end()
            return
        if self._encoder.encoding:
            encoded = await self._encoded(b"".join(block.view for block in blocks)) + self._encoder.finish()
            blocks, size = [Block(memoryview(encoded))], len(encoded)
        await self._start(status, headers | {"Content-Length": str(size)})
        if self._method != "HEAD":
            for part in _parts(blocks):
                size -= len(part)
                await self._part(part, last=not size)
        if not self._ended:
            await self._part(b"", last=True)

    async def _encoded(self, data: bytes) -> bytes:
        if len(data) <= INLINE_BYTES or not self._encoder.encoding:
            return self._encoder.encode(data)
        return await self._thread(lambda: self._encoder.encode(data))

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        if self._encoder.encoding:
            headers["Content-Encoding"] = self._encoder.encoding
        self.status = status
        # The client chose some of the values (its query_id): their control characters must not start another header.
        raw = [(name.lower().encode(), _bytes(_CONTROL.sub("?", value))) for name, value in headers.items()]
        await self._put({"type": "http.response.start", "status": status, "headers": raw})

    async def _part(self, data: bytes, *, last: bool = False) -> None:
        if data or last:
            self._ended = last
            await self._put({"type": "http.response.body", "body": data, "more_body": not last})

    async def _put(self, message: dict[str, object]) -> None:
        try:
            async with asyncio.timeout(self._pause):
                await self._send(message)
        except TimeoutError:
            # It occupies a thread and memory, and reads nothing.
            raise ClientGoneError from None


def _parts(blocks: Sequence[Block]) -> Iterator[bytes]:
    """Yield the bytes of blocks, combining small ones, up to a size that is worth copying."""
    gathered = bytearray()
    for block in blocks:
        for start in range(0, len(block), PART_BYTES):
            piece = block.view[start : start + PART_BYTES]
            if len(gathered) + len(piece) > PART_BYTES:
                yield bytes(gathered)
                gathered.clear()
            gathered += piece
    if gathered:
        yield bytes(gathered)


def _bytes(text: str) -> bytes:
    # Bytes from the client that are not UTF-8 are surrogates in a str.
    return text.encode("utf-8", "surrogateescape")
