"""Receive notices over real sockets: a web server that records requests, a mail server, and Prometheus Alertmanager."""

import json
import os
import socketserver
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from tests.support.ports import free_port


@dataclass(frozen=True)
class Request:
    """A received request."""

    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """Record every request. `answer` returns the status for a request and may block; 200 by default."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: Callable[[Request], int | tuple[int, dict[str, str]]] = lambda _: 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            server_version: ClassVar[str] = "receiver"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                request = Request(self.path, {name.lower(): text for name, text in self.headers.items()}, body)
                receiver.requests.append(request)
                answer = receiver.answer(request)
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                try:
                    self.send_response(status)
                    for name, text in {"content-length": "0", **headers}.items():
                        self.send_header(name, text)
                    self.end_headers()
                except OSError:
                    self.close_connection = True  # the client has ended

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def at(self, path: str) -> list[Request]:
        """Return the requests to a path."""
        return [request for request in self.requests if request.path == path]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)


class MailServer:
    """Accept and keep mails over SMTP."""

    def __init__(self) -> None:
        self.mails: list[bytes] = []
        server = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 mail\r\n")
                for line in self.rfile:
                    command = line.strip().upper()
                    if command == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        server.mails.append(b"".join(iter(self.rfile.readline, b".\r\n")))
                    self.wfile.write(b"221 bye\r\n" if command == b"QUIT" else b"250 ok\r\n")
                    if command == b"QUIT":
                        return

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class AlertmanagerServer:
    """Run a real Alertmanager that notifies a receiver at once, each episode separately."""

    def __init__(self, directory: Path, binary: str, receiver_url: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._directory, self._binary = directory, binary
        config = {
            "route": {
                "receiver": "test",
                "group_by": ["alert_id"],
                "group_wait": "10ms",
                "group_interval": "300ms",
                "repeat_interval": "4h",
            },
            "receivers": [
                {"name": "test", "webhook_configs": [{"url": receiver_url, "send_resolved": True, "max_alerts": 0}]}
            ],
        }
        (directory / "alertmanager.yml").write_text(json.dumps(config))  # JSON is YAML
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "AlertmanagerServer":
        command = [
            self._binary,
            f"--config.file={self._directory / 'alertmanager.yml'}",
            f"--storage.path={self._directory / 'storage'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--cluster.listen-address=",
        ]
        with (self._directory / "alertmanager.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "GOMAXPROCS": "1"})
        deadline = time.monotonic() + 60
        while True:
            try:
                self.get("/api/v2/status")
                return self
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise RuntimeError((self._directory / "alertmanager.log").read_text()[-2000:]) from None
                time.sleep(0.05)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:  # loopback
            return json.loads(answer.read())

    def alerts(self) -> list[dict[str, Any]]:
        """Return the active alerts."""
        found: list[dict[str, Any]] = self.get("/api/v2/alerts?active=true")
        return found

    def stop(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait(60)
