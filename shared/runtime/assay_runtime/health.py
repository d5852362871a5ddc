"""Health endpoints of a process: `/healthz`, `/readyz` and `/metrics`, on a separate port."""

import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

#: Current problems, as short sentences.
Problems = Callable[[], list[str]]


class _Server(uvicorn.Server):
    """Leaves signals to the service, which stops this server once it has drained."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def application(dead: Problems, unready: Problems, notes: Problems = list) -> Starlette:
    """Build the application.

    `dead` lists reasons for a restart, `unready` reasons not to send traffic to this process, `notes` other problems to
    fix.
    """

    def answer(problems: list[str], noted: list[str]) -> Response:
        shown = {"notes": noted} if noted else {}
        return JSONResponse(
            {"status": "unavailable" if problems else "ok", "problems": problems, **shown}, 503 if problems else 200
        )

    async def healthz(_: Request) -> Response:
        return answer(dead(), [])

    async def readyz(_: Request) -> Response:
        return answer(dead() + unready(), notes())

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)])


def listen(host: str, port: int, setting: str) -> socket.socket:
    """Bind the port, or raise `OSError` with the setting to change."""
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise OSError(
            error.errno, f"cannot listen on {host}:{port} ({error.strerror}); set {setting} to a free port"
        ) from None


def health_server(app: Starlette) -> uvicorn.Server:
    """Return a server that runs in the service's own event loop; give `serve` the bound socket."""
    return server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))


def server(config: uvicorn.Config) -> uvicorn.Server:
    """Return a server that leaves signals to the service."""
    return _Server(config)
