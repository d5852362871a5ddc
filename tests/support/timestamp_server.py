"""A time-stamp server on loopback: `openssl ts -reply` behind HTTP (RFC 3161)."""

import datetime as dt
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CONFIG = """
[tsa]
default_tsa = tsa_config
[tsa_config]
serial = {directory}/serial
crypto_device = builtin
signer_cert = {directory}/tsa.pem
signer_key = {directory}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
accuracy = secs:1
ordering = yes
tsa_name = yes
ess_cert_id_chain = no
ess_cert_id_alg = sha256
"""


class TimestampServer:
    """Signs time stamps with a key that the root certificate `ca` confirms."""

    def __init__(self, openssl: str, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.ca = directory, directory / "ca.pem"
        self.requests: list[bytes] = []
        #: Answers instead of the server, as a hostile one would.
        self.instead: Callable[[bytes], tuple[int, bytes]] | None = None
        self._openssl = openssl
        self._certify()
        (directory / "serial").write_text("01\n")
        (directory / "tsa.cnf").write_text(_CONFIG.format(directory=directory))
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                server.requests.append(body)
                assert self.headers["content-type"] == "application/timestamp-query"
                status, content = (server.instead or server.reply)(body)
                self.send_response(status)
                self.send_header("content-type", "application/timestamp-reply")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/tsr"

    def reply(self, query: bytes) -> tuple[int, bytes]:
        """Have openssl sign a time stamp."""
        request, response = self.directory / "request.tsq", self.directory / "response.tsr"
        request.write_bytes(query)
        subprocess.run(
            [
                self._openssl,
                "ts",
                "-reply",
                "-config",
                self.directory / "tsa.cnf",
                "-queryfile",
                request,
                "-out",
                response,
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )
        return 200, response.read_bytes()

    def verifies(self, response: bytes, content: bytes) -> bool:
        """True if `openssl ts -verify` accepts a response for this content."""
        (self.directory / "verified.tsr").write_bytes(response)
        (self.directory / "verified.txt").write_bytes(content)
        done = subprocess.run(
            [
                *(self._openssl, "ts", "-verify", "-in", self.directory / "verified.tsr"),
                *("-data", self.directory / "verified.txt", "-CAfile", self.ca),
            ],
            capture_output=True,
            timeout=60,
        )
        return done.returncode == 0

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)

    def _certify(self) -> None:
        now = dt.datetime.now(dt.UTC)
        authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Root of time stamps")])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Time stamps")])

        def builder(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
            return (
                x509.CertificateBuilder()
                .subject_name(name)
                .issuer_name(issuer)
                .public_key(key.public_key())
                .serial_number(x509.random_serial_number())
                .not_valid_before(now - dt.timedelta(days=1))
                .not_valid_after(now + dt.timedelta(days=1))
            )

        root = builder(issuer, authority).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        leaf = builder(subject, own).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True
        )
        pem = serialization.Encoding.PEM
        self.ca.write_bytes(root.sign(authority, hashes.SHA256()).public_bytes(pem))
        (self.directory / "tsa.pem").write_bytes(leaf.sign(authority, hashes.SHA256()).public_bytes(pem))
        (self.directory / "tsa.key").write_bytes(
            own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
