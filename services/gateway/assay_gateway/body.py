"""Collect a body, inflated, within its limit.

A small body that inflates without end is stopped at the limit.
"""

import zlib
from collections.abc import AsyncIterator

from assay_gateway.refusal import RefusedError, malformed, too_large
from assay_gateway.turns import Turns

#: Bytes that one step inflates.
STEP_BYTES = 512 * 1024
#: Window bits of zlib by encoding.
ENCODINGS = {"gzip": 31, "deflate": 15}


class Collector:
    """The parts of one body."""

    def __init__(self, encoding: str, limit: int, turns: Turns) -> None:
        """Raises `RefusedError` for an encoding that is not read."""
        self._encoding = encoding.strip().lower()
        if self._encoding not in (*ENCODINGS, "identity"):
            raise RefusedError(
                415,
                "unsupported_encoding",
                "set Content-Encoding to gzip or deflate, or leave it out",
                headers={"Accept-Encoding": "gzip"},
            )
        self._limit = limit
        self._turns = turns
        self._inflate = zlib.decompressobj(ENCODINGS[self._encoding]) if self._encoding in ENCODINGS else None
        self._parts: list[bytes] = []
        self._wire = self._size = 0

    async def parts(self, chunk: bytes) -> AsyncIterator[bytes]:
        """Yield the parts of a chunk as they are kept. Raises `RefusedError` at the limit."""
        self._wire += len(chunk)
        if self._wire > self._limit:
            raise too_large(self._limit)
        if self._inflate is None:
            self._parts.append(chunk)
            yield chunk
            return
        while chunk and not self._inflate.eof:
            await self._turns.room()
            try:
                part = self._inflate.decompress(chunk, STEP_BYTES)
            except zlib.error:
                raise malformed("invalid_encoding", f"the body is not {self._encoding} data") from None
            self._size += len(part)
            if self._size > self._limit:
                raise too_large(self._limit)
            self._parts.append(part)
            yield part
            chunk = self._inflate.unconsumed_tail
        if self._inflate.eof and (chunk or self._inflate.unused_data):
            raise malformed("invalid_encoding", f"there is more after the {self._encoding} data")

    def whole(self) -> bytes:
        """Return the body. Raises `RefusedError` if its encoding is not complete."""
        if self._inflate is not None and not self._inflate.eof and self._wire:
            raise malformed("invalid_encoding", f"the {self._encoding} data is not complete")
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
