"""Serve an experiment tracker's HTTP API on a loopback port: it records requests and returns set answers."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Asked:
    """A received request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


#: Status, and the document; None for no body.
Answer = tuple[int, Any]


@dataclass
class TrackerServer:
    """Serve the API. `answer` returns the answer; the first `fail` requests get that status instead, and are recorded too."""

    answer: Callable[[Asked], Answer]
    asked: list[Asked] = field(default_factory=list)
    fail: list[tuple[int, dict[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        tracker = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, url.path, query, headers, body)
                tracker.asked.append(asked)
                if tracker.fail:
                    status, more = tracker.fail.pop(0)
                    document = None
                else:
                    (status, document), more = tracker.answer(asked), {}
                whole = b"" if document is None else json.dumps(document).encode()
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(whole))} | more).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(whole)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def at(self, path: str) -> list[Asked]:
        """Return the requests for a path, in order."""
        return [each for each in self.asked if each.path == path]

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
