"""Compressed request and response bodies as streams in bounded memory.

A ClickHouse client sends one lz4 frame per block of rows, so every decoder here reads *all* frames of a body. A decoder
that stops after the first loses rows without an error.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Protocol

import lz4.frame
from backports import zstd

from assay_store.errors import BAD_ARGUMENTS, INCORRECT_DATA, StoreError

PIECE = 1 << 20
"""Maximum bytes that a decoder yields at a time: a small body cannot become a large allocation."""

RESPONSE_ENCODINGS = ("lz4", "zstd", "gzip", "deflate")
"""Supported response encodings, the cheapest first."""


class Decoder(Protocol):
    """Decompresses a body."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Feed the next bytes of the body; yields pieces of at most PIECE bytes.

        Raises:
            StoreError: the bytes are not of the declared encoding.
        """
        ...

    def finish(self) -> None:
        """Signal the end of the body.

        Raises:
            StoreError: it ended inside a frame, so that rows would be missing.
        """
        ...


class Identity:
    """No encoding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Pass the bytes on: see `Decoder.feed`."""
        if data:
            yield data

    def finish(self) -> None:
        """End the body: see `Decoder.finish`."""


class _Frames:
    """Consecutive frames: lz4, zstd, gzip members, deflate."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._frame: Any = None

    def _open(self) -> Any:
        match self._encoding:
            case "lz4":
                return lz4.frame.LZ4FrameDecompressor()
            case "zstd":
                return zstd.ZstdDecompressor()
            case "gzip":
                return _Inflate(31)
            case _:
                return _Inflate(15)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decompress bytes: see `Decoder.feed`."""
        while data or (self._frame is not None and not self._frame.needs_input):
            if self._frame is None:
                self._frame = self._open()
            try:
                piece = self._frame.decompress(data, PIECE)
            except (RuntimeError, zstd.ZstdError, zlib.error, EOFError) as failure:
                raise StoreError(INCORRECT_DATA, f"The request body is not valid {self._encoding}") from failure
            data = b""
            if self._frame.eof:
                data = self._frame.unused_data or b""
                self._frame = None
            if piece:
                yield piece

    def finish(self) -> None:
        """End the body: see `Decoder.finish`."""
        if self._frame is not None:
            raise StoreError(INCORRECT_DATA, f"The request body ends inside a frame of {self._encoding}")


class _Inflate:
    """Adapts zlib's object to the attributes of the other two."""

    def __init__(self, window: int) -> None:
        self._object = zlib.decompressobj(window)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._object.eof

    @property
    def unused_data(self) -> bytes:
        return self._object.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        piece = self._object.decompress(self._object.unconsumed_tail + data, max_length)
        self.needs_input = not self._object.unconsumed_tail and len(piece) < max_length
        return piece


def decoder(encoding: str) -> Decoder:
    """Return the decoder for a Content-Encoding.

    Raises:
        StoreError: the encoding is not supported.
    """
    match encoding.strip().lower():
        case "" | "identity":
            return Identity()
        case "lz4" | "zstd" | "gzip" | "deflate" as known:
            return _Frames(known)
        case other:
            raise StoreError(
                BAD_ARGUMENTS, f"Content-Encoding {other!r} is not supported: use lz4, zstd, gzip or deflate"
            )


class Encoder:
    """Compresses one response."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self._head = b""
        match encoding:
            case "lz4":
                compressor = lz4.frame.LZ4FrameCompressor(auto_flush=True)
                self._head = compressor.begin()
                self._object: Any = compressor
            case "zstd":
                self._object = zstd.ZstdCompressor(level=1)
            case "gzip":
                self._object = zlib.compressobj(1, zlib.DEFLATED, 31)
            case "deflate":
                self._object = zlib.compressobj(1, zlib.DEFLATED, 15)
            case _:
                self._object = None

    def encode(self, data: bytes) -> bytes:
        """Compress `data`, and return bytes from which the client can read all of it."""
        match self.encoding:
            case "lz4":
                head, self._head = self._head, b""
                return head + bytes(self._object.compress(data))
            case "zstd":
                return bytes(self._object.compress(data, zstd.ZstdCompressor.FLUSH_BLOCK))
            case "gzip" | "deflate":
                return bytes(self._object.compress(data) + self._object.flush(zlib.Z_SYNC_FLUSH))
            case _:
                return data

    def finish(self) -> bytes:
        """Return the last bytes to send."""
        if self._object is None:
            return b""
        head, self._head = self._head, b""
        return head + bytes(self._object.flush())


def negotiate(accept_encoding: str, enabled: bool) -> str:
    """Return the response's encoding: our first that the client accepts, or "" for none.

    As with a ClickHouse server, a client must request it twice: by the Accept-Encoding header and by
    enable_http_compression=1.
    """
    if not enabled:
        return ""
    accepted = {
        part.split(";")[0].strip().lower()
        for part in accept_encoding.split(",")
        if "q=0" not in part.replace("q=0.", "")
    }
    return next((encoding for encoding in RESPONSE_ENCODINGS if encoding in accepted), "")
