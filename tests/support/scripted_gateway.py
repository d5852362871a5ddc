"""An HTTP server on loopback that answers as a test says, and keeps what it was sent: for answers that no gateway gives at will."""

import gzip
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson


@dataclass
class Request:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    events: list[dict[str, Any]]
    #: Port of the client: equal for requests over one connection.
    client: int
    size: int


@dataclass
class Reply:
    """What to answer. Without a body, a verdict that accepts every event."""

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    #: `close`: without any answer; `half`: in the middle of one; `silent`: never answer; `reset`: before the body is read.
    end: str = ""


class ScriptedServer:
    """Answers each request with `script(request, number)`; begins to listen with `start`."""

    def __init__(self, script: Callable[[Request, int], Reply], port: int = 0) -> None:
        self.requests: list[Request] = []
        self.accepted: list[dict[str, Any]] = []
        self.released = threading.Event()
        outer, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                events = [orjson.loads(line) for line in gzip.decompress(body).splitlines()]
                request = Request(
                    self.path,
                    {k.lower(): v for k, v in self.headers.items()},
                    events,
                    self.client_address[1],
                    len(body),
                )
                with lock:
                    number = len(outer.requests)
                    outer.requests.append(request)
                    reply = script(request, number)
                    if reply.status == 200 and reply.body is None and not reply.end:
                        outer.accepted += events
                outer.answer(self, reply, len(events))

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]

    def answer(self, handler: BaseHTTPRequestHandler, reply: Reply, count: int) -> None:
        """Answer one request."""
        if reply.end == "silent":
            self.released.wait(120)
        if reply.end in ("silent", "close"):
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        body = verdict(count) if reply.body is None else reply.body
        handler.send_response(reply.status)
        for name, text in ({"Content-Length": str(len(body))} | reply.headers).items():
            handler.send_header(name, text)
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2] if reply.end == "half" else body)
        if reply.end == "half":
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)

    def start(self) -> "ScriptedServer":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


def verdict(accepted: int, rules: tuple[str, ...] = (), unlisted: int = 0, detail: str = "secret") -> bytes:
    """Return the body of an answer of the gateway."""
    rejected = [{"index": n, "event_id": None, "rule": rule, "detail": detail} for n, rule in enumerate(rules)]
    total = len(rejected) + unlisted
    return orjson.dumps({"request_id": "r", "accepted": accepted, "rejected": rejected, "rejected_total": total})
