"""Witnesses on loopback: a strict one of our own after c2sp.org/tlog-witness, and `aics-witness`, which is not ours.

The own one refuses rollback, fork and replay, so that every machine tests them. The other one needs Python 3.12: `make oracles`
installs it.
"""

import base64
import json
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from assay_auditor.anchors.cosignature import WitnessKey
from assay_auditor.merkle import is_consistent
from assay_auditor.notes import Checkpoint, NoteError, Verifier, verified_text
from tests.support.ports import free_port
from tests.support.wait import until

ROOT = Path(__file__).parents[2]

#: Status, body, and content type.
Answer = tuple[int, bytes, str]


class OwnWitness:
    """A witness that keeps the size and root of the last checkpoint that it cosigned, for each log that it knows."""

    def __init__(self, logs: Mapping[str, str], name: str = "witness.test/w1", seed: bytes = b"w" * 32) -> None:
        self.requests: list[bytes] = []
        #: Answers instead of the witness, as a hostile one would.
        self.instead: Callable[[bytes], Answer] | None = None
        self.seen: dict[str, tuple[int, bytes]] = {}
        self.logs = dict(logs)
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.key = WitnessKey(name, self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
        self._lock = threading.Lock()
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.start()

    @property
    def vkey(self) -> str:
        return self.key.vkey

    @property
    def setting(self) -> str:
        """What `auditor.witnesses` says of it."""
        return f"{self.vkey} {self.url}"

    def start(self) -> None:
        """Listen. What was seen before is still known."""
        witness = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                with witness._lock:
                    witness.requests.append(body)
                    status, content, kind = (
                        (witness.instead or witness.add_checkpoint)(body)
                        if self.path == "/add-checkpoint"
                        else (404, b"", "text/plain")
                    )
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.send_header("content-type", kind)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Be away."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)

    def size_of(self, origin: str) -> int:
        """Return the size of the last checkpoint that it cosigned."""
        return self.seen.get(origin, (0, b""))[0]

    def cosigned(self, text: str, at: int | None = None) -> str:
        """Return the signature line of this witness for a checkpoint."""
        seconds = int(time.time()) if at is None else at
        signature = self._private.sign(f"cosignature/v1\ntime {seconds}\n{text}".encode())
        blob = self.key.id + seconds.to_bytes(8) + signature
        return f"\N{EM DASH} {self.key.name} {base64.b64encode(blob).decode()}\n"

    def add_checkpoint(self, body: bytes) -> Answer:
        """Answer as the specification says, in its order."""
        head, gap, note = body.decode().partition("\n\n")
        first, *lines = head.split("\n")
        word, _, number = first.partition(" ")
        if not gap or word != "old" or not number.isdigit() or str(int(number)) != number or len(lines) > 63:
            return 400, b"malformed", "text/plain"
        try:
            proof = [base64.b64decode(line, validate=True) for line in lines]
            found = Checkpoint.parsed(note.rpartition("\n\n")[0] + "\n")
        except (ValueError, NoteError):
            return 400, b"malformed", "text/plain"
        if found.origin not in self.logs:
            return 404, b"unknown log", "text/plain"
        try:
            text = verified_text(note, [Verifier.parsed(self.logs[found.origin])])
        except NoteError:
            return 403, b"no trusted signature", "text/plain"
        old = int(number)
        if old > found.size:
            return 400, b"old size is larger", "text/plain"
        size, root = self.seen.get(found.origin, (0, b""))
        if old != size:
            return 409, f"{size}\n".encode(), "text/x.tlog.size"
        if old == found.size and old and root != found.root:
            return 409, f"{size}\n".encode(), "text/x.tlog.size"
        consistent = is_consistent(old, found.size, root, found.root, proof) if old else not proof
        if not consistent:
            return 422, b"the proof does not verify", "text/plain"
        self.seen[found.origin] = (found.size, found.root)
        return 200, self.cosigned(text).encode(), "text/plain"


class AicsWitness:
    """The program `aics-witness`, in its own process."""

    def __init__(self, program: Path, directory: Path, logs: Mapping[str, str]) -> None:
        self._program, self._directory = program, directory
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.vkey = self._run("init", "--name", "witness.test/aics", "--listen", f"127.0.0.1:{self._port}").split()[-1]
        self.setting = f"{self.vkey} {self.url}"
        for origin, vkey in logs.items():
            self._run("add-log", "--origin", origin, "--vkey", vkey)
        self.start()

    def _run(self, *arguments: str) -> str:
        command, *rest = arguments
        config = ("--config", str(self._directory / "witness.json"))
        done = subprocess.run(
            [self._program, command, *config, *rest], capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    def start(self) -> None:
        config = str(self._directory / "witness.json")
        self._process = subprocess.Popen([self._program, "serve", "--config", config], stderr=subprocess.DEVNULL)
        until(self._listens, "the witness listens")

    def _listens(self) -> bool:
        try:
            urllib.request.urlopen(self.url, timeout=5)
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    def size_of(self, origin: str) -> int:
        status: dict[str, Any] = json.loads(self._run("status", "--json"))
        return next((each["size"] or 0 for each in status["logs"] if each["origin"] == origin), 0)


def aics_witness() -> Path | None:
    """Return the program, from the environment of `make oracles` or `PATH`; None if it is not installed."""
    own = ROOT / ".venv-audit-oracles/bin/aics-witness"
    found = str(own) if own.exists() else shutil.which("aics-witness", path=str(Path(sys.executable).parent))
    return Path(found) if found else None
