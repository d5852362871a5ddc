"""Create a throw-away certificate authority for tests of TLS."""

import asyncio
import contextlib
import ssl
import threading
from pathlib import Path

import trustme


class Authority:
    """Issue certificates signed by `ca`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._directory, self._authority = directory, trustme.CA()
        self.ca = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(self.ca)

    def issue(self, name: str, host: str = "localhost") -> tuple[Path, Path]:
        """Return a certificate for a host and its key."""
        issued = self._authority.issue_cert(host, common_name=name)
        certificate, key = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        issued.cert_chain_pems[0].write_to_path(certificate)
        issued.private_key_pem.write_to_path(key)
        return certificate, key


class TlsProxy:
    """Terminate TLS in front of a plain port of this host."""

    def __init__(self, to_port: int, certificate: Path, key: Path) -> None:
        self._to_port = to_port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    def start(self) -> "TlsProxy":
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(60)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        # Refused handshakes are expected in the tests.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)

    async def _close(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
        try:
            await asyncio.gather(_pipe(reader, to_writer), _pipe(to_reader, writer))
        finally:
            for each in (writer, to_writer):
                each.close()
                with contextlib.suppress(OSError, ssl.SSLError, asyncio.CancelledError):
                    await each.wait_closed()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, ssl.SSLError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()
