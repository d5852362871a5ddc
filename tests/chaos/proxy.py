"""A network between two ports of this machine that can be slow, cut, silent or wrong. Any protocol over TCP.

It runs in a thread of its own; its switches may be thrown from any other.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable

PIECE = 256 * 1024


class Proxy:
    """Listens on `port` and passes everything on to `target`, as its switches allow."""

    def __init__(self, target: int) -> None:
        self.port = 0
        #: Every piece waits this long, in seconds, in each direction.
        self.delay_s = 0.0
        #: Nothing passes; what was on its way arrives when this ends.
        self.silent = False
        #: Answers pass, requests wait until this ends.
        self.mute = False
        #: Requests pass, answers vanish.
        self.deaf = False
        #: New connections are closed at once.
        self.refusing = False
        #: Every HTTP request gets this answer, and the target never hears of it.
        self.answer: bytes | None = None
        #: Every HTTP request that inserts gets this answer; others pass.
        self.answer_to_inserts: bytes | None = None
        #: Called once, in place of the next answer of the target, which vanishes together with its connection.
        self.instead_of_answer: Callable[[], None] | None = None
        self._target = target
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"proxy to {target}", daemon=True)
        self._ready = threading.Event()

    def start(self) -> "Proxy":
        """Listen on a free port."""
        self._thread.start()
        self._ready.wait(60)
        return self

    def stop(self) -> None:
        """Close everything."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)

    def cut(self) -> None:
        """Close every connection now; new ones may be made."""
        self._loop.call_soon_threadsafe(self._cut)

    def heal(self) -> None:
        """An ordinary network again. Connections that were tampered with end."""
        self.delay_s, self.silent, self.mute, self.deaf, self.refusing = 0.0, False, False, False, False
        self.answer = self.answer_to_inserts = self.instead_of_answer = None
        self.cut()

    def _cut(self) -> None:
        for connection in self._connections:
            connection.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", self.port, limit=PIECE))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._cut()
        self._loop.run_until_complete(asyncio.gather(*self._connections, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection
        self._connections.add(connection)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError, asyncio.IncompleteReadError):
                if self.answer is not None or self.answer_to_inserts is not None:
                    await self._answer(reader, writer)
                elif not self.refusing:
                    await self._pass_on(reader, writer)
        finally:
            self._connections.discard(connection)
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self._target, limit=PIECE)
        tasks = [
            asyncio.create_task(self._pump(reader, forth, answers=False)),
            asyncio.create_task(self._pump(back, writer, answers=True)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            forth.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, answers: bool) -> None:
        while piece := await source.read(PIECE):
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            while self.silent or (self.mute and not answers):  # noqa: ASYNC110  # a switch thrown from another thread
                await asyncio.sleep(0.02)
            if answers and self.instead_of_answer:
                act, self.instead_of_answer = self.instead_of_answer, None
                await asyncio.to_thread(act)
                return
            if answers and self.deaf:
                continue
            sink.write(piece)
            await sink.drain()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests, one after another; those that pass are sent on over a connection each."""
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = _content_length(head)
            body = await (reader.readexactly(length) if length is not None else _chunks(reader))
            refused = self.answer or (self.answer_to_inserts if _inserts(head, body) else None)
            writer.write(refused or await self._passed_on(head, body))
            await writer.drain()

    async def _passed_on(self, head: bytes, body: bytes) -> bytes:
        first, _, rest = head.partition(b"\r\n")
        fields = [line for line in rest.split(b"\r\n") if line and not line.lower().startswith(b"connection:")]
        back, forth = await asyncio.open_connection("127.0.0.1", self._target, limit=PIECE)
        try:
            forth.write(b"\r\n".join([first, *fields, b"Connection: close", b"", b""]) + body)
            await forth.drain()
            return (await back.read()).replace(b"connection: close\r\n", b"", 1)
        finally:
            forth.transport.abort()


def _inserts(head: bytes, body: bytes) -> bool:
    """Whether a request's statement, in its address or at the start of its body, is an INSERT."""
    return b"INSERT" in head.partition(b"\r\n")[0] or body.startswith(b"INSERT")


def _content_length(head: bytes) -> int | None:
    """Bytes of the body; None if it comes in chunks."""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return None if b"transfer-encoding: chunked" in head.lower() else 0


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """A body in chunks, as it came."""
    body = b""
    while True:
        size = await reader.readuntil(b"\r\n")
        body += size + await reader.readexactly(int(size, 16) + 2)
        if int(size, 16) == 0:
            return body


def store_error(code: int, name: str) -> bytes:
    """What a ClickHouse server answers when it fails with an error."""
    body = f"Code: {code}. DB::Exception: as the fault wants it. ({name})\n".encode()
    head = f"HTTP/1.1 500 Internal Server Error\r\nX-ClickHouse-Exception-Code: {code}\r\n"
    return head.encode() + b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
