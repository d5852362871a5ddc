"""The store as an ASGI application and as a process."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from assay_store import disk_guard, writes
from assay_store.connection import Bounds, Connection
from assay_store.endpoint import QueryEndpoint
from assay_store.engine import Engine
from assay_store.lock import DataDirectoryError, DirectoryLock
from assay_store.options import StoreOptions
from assay_store.roles import limits
from assay_store.runtime import Runtime
from assay_store.users import Users, UsersFileError, read_users
from assay_store.wall import Wall, WallError, raise_wall

log = logging.getLogger("assay_store")

_TURN_SECONDS = 0.0005
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class StartError(Exception):
    """The store cannot start; the message says what to change."""


def application(runtime: Runtime) -> Starlette:
    """Return the routes of the store."""

    async def ping(_: Request) -> Response:
        return PlainTextResponse("Ok.\n")

    async def ready(_: Request) -> Response:
        return PlainTextResponse(
            "Ok.\n" if runtime.ready else "The store is starting or stopping\n", 200 if runtime.ready else 503
        )

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(runtime.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield

    return Starlette(
        routes=[
            Route("/", QueryEndpoint(runtime), methods=["GET", "HEAD", "POST", "OPTIONS"]),
            Route("/ping", ping),
            Route("/replicas_status", ping),
            Route("/healthz", ping),
            Route("/readyz", ready),
            Route("/metrics", metrics),
        ],
        lifespan=lifespan,
    )


def _socket(options: StoreOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # With an explicit protocol, asyncio disables the delay of small packets; without it every response takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
    except OSError as failure:
        listener.close()
        raise StartError(
            f"cannot listen on {options.host}:{options.port} ({failure.strerror}): "
            "stop the program that uses the port, or pass another with --port"
        ) from failure
    return listener


def _check_host(options: StoreOptions, users: Users) -> None:
    if options.host in _LOOPBACK:
        return
    if not options.allow_remote:
        raise StartError(
            f"--host {options.host} can be reached from other machines, and this store has no TLS: passwords and rows would "
            "travel in the clear. Put a proxy with TLS before it and pass --allow-remote, or keep --host 127.0.0.1"
        )
    open_doors = [user.name for user in users if not user.has_password]
    if open_doors:
        raise StartError(f"--allow-remote needs a password for every user; without one: {', '.join(open_doors)}")


def _check_users_file(options: StoreOptions) -> None:
    if options.users.resolve().is_relative_to(options.data.resolve()):
        raise StartError(
            f"users file {options.users} is in the data directory, which is all that the engine may read: move it out"
        )


class _Server(uvicorn.Server):
    """Uvicorn with a ready line on stdout, which closes the engine after the last request."""

    def __init__(self, config: uvicorn.Config, runtime: Runtime) -> None:
        super().__init__(config)
        self._runtime = runtime

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGTERM and SIGINT, then return: uvicorn would end the process before the engine is closed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let running requests finish, and cancel those still running in the engine at the deadline."""
        self._runtime.ready = False
        deadline = asyncio.create_task(self._cancel_at_deadline())
        await super().shutdown(sockets)
        deadline.cancel()

    async def _cancel_at_deadline(self) -> None:
        await asyncio.sleep(self._runtime.options.stop_seconds)
        await self._runtime.run_control(self._runtime.engine.kill_all)


async def _serve(options: StoreOptions, users: Users, listener: socket.socket, wall: Wall) -> None:
    engine = Engine(
        options.data,
        options.max_memory_bytes,
        options.keep_free_bytes,
        limits(options.max_memory_bytes, options.max_query_seconds),
    )
    runtime = Runtime(options, users, engine)
    runtime.metrics.show_wall(wall)
    bounds = Bounds(options.max_head_bytes, options.head_timeout_seconds, options.max_idle_connections)
    config = uvicorn.Config(
        application(runtime),
        log_config=None,
        access_log=False,
        lifespan="off",
        http=functools.partial(Connection, bounds),  # type: ignore[arg-type]
        ws="none",
        server_header=False,
        headers=[("x-content-type-options", "nosniff")],
        timeout_keep_alive=30,
        # Only for requests that even the engine cannot cancel.
        timeout_graceful_shutdown=round(options.stop_seconds) + 5,
    )
    server = _Server(config, runtime)
    listening = asyncio.create_task(server.serve(sockets=[listener]))
    port = listener.getsockname()[1]
    try:
        await runtime.start()
        gc.freeze()  # freeze the objects that live now: collecting them again would stop all threads for as long
    except BaseException:
        server.should_exit = True
        await listening
        raise

    def control(sql: str) -> Awaitable[str]:
        return runtime.run_control(functools.partial(engine.control, sql))

    chores = [
        asyncio.create_task(runtime.sweep()),
        asyncio.create_task(disk_guard.watch(options.data, options.keep_free_bytes, control)),
        asyncio.create_task(writes.count_put_aside(control, runtime.metrics.broken_parts.set)),
        # As if killed: the engine must not delete anything when it exits.
        asyncio.create_task(
            writes.watch(lambda: runtime.run_control(engine.failed_writes), functools.partial(os._exit, 1))
        ),
    ]
    (options.data / "port").write_text(f"{port}\n", encoding="ascii")
    sys.stdout.write(
        f"assay-store ready on http://{options.host}:{port} (engine {engine.version}, process {os.getpid()})\n"
    )
    sys.stdout.flush()
    try:
        await listening
    finally:
        for chore in chores:
            chore.cancel()
        await runtime.stop()


def serve(options: StoreOptions) -> None:
    """Run a store until SIGTERM or SIGINT; returns once the engine is closed.

    Raises:
        StartError: the store cannot start; the message says what to change.
    """
    # uvicorn reports a connection that we close on purpose (an error in the middle of a result) as an application
    # error.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    # Connections and the engine's files share the system's limit.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # Threads that check long statements alternate with the event loop, which needs several turns for each response.
    sys.setswitchinterval(_TURN_SECONDS)
    try:
        users = read_users(options.users)
        _check_users_file(options)
        _check_host(options, users)
        lock = DirectoryLock(options.data)
        lock.take()
    except (UsersFileError, DataDirectoryError) as failure:
        raise StartError(str(failure)) from failure
    try:
        listener = _socket(options)
        try:
            wall = raise_wall(options.data, uid=options.uid)
            asyncio.run(_serve(options, users, listener, wall))
        except (DataDirectoryError, WallError) as failure:
            raise StartError(str(failure)) from failure
        finally:
            listener.close()
    finally:
        lock.release()
