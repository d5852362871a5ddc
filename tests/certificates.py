"""A throw-away certificate authority for tests of TLS."""

import asyncio
import contextlib
import datetime as dt
import ssl
import threading
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)


class Authority:
    """Issues certificates that `ca` vouches for."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("test authority")
        usage = x509.KeyUsage(
            key_cert_sign=True, crl_sign=True, digital_signature=False, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        certificate = (
            self._unsigned(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.ca = directory / "ca.pem"
        self.ca.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, host: str = "localhost") -> tuple[Path, Path]:
        """A certificate for a host and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            self._unsigned(_named(name), key.public_key())
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        written, secret = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        written.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        secret.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
        return written, secret

    def _unsigned(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
        return (
            builder.serial_number(x509.random_serial_number()).not_valid_before(now - _DAY).not_valid_after(now + _DAY)
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


class TlsProxy:
    """Ends TLS in front of a plain port of this host."""

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
        # Refused handshakes are what the tests are about.
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
