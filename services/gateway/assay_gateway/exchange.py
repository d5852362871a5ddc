"""One request and its answer, over ASGI: headers, key, body within its limits, and JSON back."""

import asyncio
import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qs
from uuid import uuid4

import orjson

from assay_gateway import otlp_answer
from assay_gateway.body import Collector
from assay_gateway.refusal import RefusedError, too_large, unavailable
from assay_gateway.turns import Turns
from assay_runtime import metrics

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
#: Rest of a refused body that is read before the answer, so that the connection can be kept.
_SMALL_BYTES = 256 * 1024
#: Rest that is read after the answer, without a valid key and with one, so that the client sees the answer instead of
#: a broken connection; and the seconds for that.
_LINGER_BYTES, _LINGER_WITH_KEY_BYTES, _LINGER_S = 1024 * 1024, 64 * 1024 * 1024, 5.0


class Gone(Exception):  # noqa: N818  # not an error of this service
    """The client has closed the connection."""


class InFlight:
    """The bytes of all bodies that are being received or stored."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0

    def add(self, size: int) -> None:
        """Count bytes. Raises `RefusedError` if there is no room for them."""
        if self._bytes + size > self._limit:
            raise unavailable("busy", "too many requests at once; send it again")
        self._bytes += size
        metrics.GATEWAY_IN_FLIGHT.set(self._bytes)

    def remove(self, size: int) -> None:
        """Stop counting bytes."""
        self._bytes -= size
        metrics.GATEWAY_IN_FLIGHT.set(self._bytes)


class Exchange:
    """A request, and the one answer to it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers: dict[str, str] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        given = self.headers.get("x-request-id", "")
        self.request_id = given if _REQUEST_ID.fullmatch(given) else uuid4().hex
        self.client: str = (scope.get("client") or ("",))[0]
        self.status = 0
        self.key_id: str | None = None
        #: Headers of every answer, such as those for browsers.
        self.answer_headers: dict[str, str] = {}
        #: Type of the answers to an exporter of OpenTelemetry; empty for other clients.
        self.otlp = ""
        self._query: bytes = scope.get("query_string", b"")
        self._receive = receive
        self._send = send
        self._counted = 0
        self._read_all = False

    @property
    def media_type(self) -> str:
        """Type of the body without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def key(self, *, in_query: bool = False) -> str:
        """Return the key in the request; empty without one."""
        scheme, _, value = self.headers.get("authorization", "").partition(" ")
        value = value.strip()
        if scheme.lower() == "bearer":
            return value
        if scheme.lower() == "basic":
            try:
                return base64.b64decode(value, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return ""
        if given := self.headers.get("x-api-key", ""):
            return given.strip()
        query = parse_qs(self._query.decode("latin-1")) if in_query else {}
        return query.get("key", [""])[0]

    async def body(self, limit: int, seconds: float, in_flight: InFlight, turns: Turns) -> bytes:
        """Receive and inflate the body.

        Raises `RefusedError` as soon as a limit is exceeded, and `Gone` if the client leaves.
        """
        collector = Collector(self.headers.get("content-encoding", "identity"), limit, turns)
        length = self.headers.get("content-length", "")
        if length.isdigit() and int(length) > limit:
            raise too_large(limit)
        try:
            async with asyncio.timeout(seconds):
                async for chunk in self._chunks():
                    async for part in collector.parts(chunk):
                        in_flight.add(len(part))
                        self._counted += len(part)
        except TimeoutError:
            raise RefusedError(408, "too_slow", f"the body took longer than {seconds:g} s") from None
        await turns.room()
        return collector.whole()

    def release(self, in_flight: InFlight) -> None:
        """Stop counting the bytes of the body."""
        in_flight.remove(self._counted)
        self._counted = 0

    async def answer(
        self, status: int, document: Any, headers: Mapping[str, str] | None = None, *, waits: bool = True
    ) -> None:
        """Send JSON, or bytes as they are. `waits`: for the rest of a body that is not read."""
        content = document if isinstance(document, bytes) else orjson.dumps(document)
        told = {"content-type": "application/json", **self.answer_headers, **(headers or {})}
        told |= {"content-length": str(len(content)), "x-request-id": self.request_id, "cache-control": "no-store"}
        closes = not self._read_all and not (waits and await self._rest_is_small())
        if closes:
            told["connection"] = "close"
        self.status = status
        pairs = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in told.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})
        await self._send({"type": "http.response.body", "body": content, "more_body": closes})
        if closes:
            if waits:
                await self._linger()
            await self._send({"type": "http.response.body", "body": b""})

    async def refuse(self, error: RefusedError) -> None:
        """Send an error."""
        headers = error.headers | ({"connection": "close"} if error.status in (408, 413) else {})
        body: Any = error.body(self.request_id)
        if self.otlp == otlp_answer.PROTOBUF:
            body, headers["content-type"] = otlp_answer.status(f"{error.code}: {error.message}"), self.otlp
        elif self.otlp:
            body["message"] = error.message  # where exporters look for it
        await self.answer(error.status, body, headers, waits=error.status != 408)

    async def _chunks(self) -> Any:
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                raise Gone
            if not message.get("more_body"):
                self._read_all = True
            if body := message.get("body"):
                yield body
            if self._read_all:
                return

    async def _rest_is_small(self) -> bool:
        """Read the rest of a small body. Return False if the connection must be closed instead."""
        length = self.headers.get("content-length", "" if "transfer-encoding" in self.headers else "0")
        if "expect" in self.headers or not length.isdigit() or int(length) > _SMALL_BYTES:
            return False
        try:
            async with asyncio.timeout(_LINGER_S):
                async for _ in self._chunks():
                    pass
        except (TimeoutError, Gone):
            return False
        return True

    async def _linger(self) -> None:
        left = _LINGER_BYTES if self.key_id is None else _LINGER_WITH_KEY_BYTES
        try:
            async with asyncio.timeout(_LINGER_S):
                async for chunk in self._chunks():
                    left -= len(chunk)
                    if left < 0:
                        return
        except (TimeoutError, Gone):
            return
