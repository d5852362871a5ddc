"""`/healthz`, `/readyz` and `/metrics` of a process, over Starlette on a port of its own."""

import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

#: What is wrong, if anything, as short sentences.
Problems = Callable[[], list[str]]


class _Server(uvicorn.Server):
    """Leaves signals to the service: it stops this server when it has drained."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def application(dead: Problems, unready: Problems, notes: Problems = list) -> Starlette:
    """`dead` says why a restart is needed, `unready` why no traffic should count on this process, `notes` what to mend all the same."""

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
    """Bind the port, or raise `OSError` that names the setting to change."""
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise OSError(
            error.errno, f"cannot listen on {host}:{port} ({error.strerror}); set {setting} to a free port"
        ) from None


def health_server(app: Starlette) -> uvicorn.Server:
    """A server that runs inside the service's own event loop; give `serve` the bound socket."""
    return _Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
