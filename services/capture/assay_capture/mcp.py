"""Capture every tool call of an MCP server: `capture_tools(server, capture)`.

Works with the official `mcp` package: `MCPServer` (called `FastMCP` before version 2) and the low-level `Server`, over any
transport. This module imports nothing of it, so that a program needs only the version that its server uses.
"""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from typing import Any

import orjson

from assay_capture.capture import Capture
from assay_capture.tool_block import FAILED, Outcome, ToolBlock, outcome_of
from assay_capture.tool_calls import ServerRun, Subtype
from assay_schema.limits import NAME_MAX_CHARS

__all__ = ["DescribeToolResult", "capture_tools"]

#: `describe(tool_name, result)`: the `result_summary` of a call. `result` is the structured content, else the texts.
DescribeToolResult = Callable[[str, Any], Mapping[str, Any]]

#: Error kinds of failures that the protocol itself reports (JSON-RPC 2.0).
_CODES = {-32600: "invalid_request", -32601: "method_not_found", -32602: "invalid_params", -32603: "internal_error"}
#: Longest time that the end of a server waits until its events are safe, in seconds.
STOP_FLUSH_S = 2.0
_CALL = "tools/call"
_UNNAMED = "(unnamed)"
#: Longest text that is read as an envelope, in characters.
_ENVELOPE_MAX_CHARS = 64 * 1024
_SERVES = ("run_stdio_async", "run_sse_async", "run_streamable_http_async")


def capture_tools(server: Any, capture: Capture, *, describe: DescribeToolResult | None = None) -> None:
    """Capture each tool call of `server` as one event, and its start and stop. Its tools are unchanged.

    A call is one event also if the tool raises, is unknown or gets invalid arguments, and if the call is cancelled or
    the client goes away. `describe(tool_name, result)` returns the `result_summary`; by default it is the number of
    content blocks. Call this before the server runs; a second time it does nothing. Raises `TypeError` for anything
    but a server of the `mcp` package.
    """
    low = getattr(server, "_lowlevel_server", None) or getattr(server, "_mcp_server", None) or server
    middleware, handlers = getattr(low, "middleware", None), getattr(low, "request_handlers", None)
    if not hasattr(low, "lifespan") or not (isinstance(middleware, list) or isinstance(handlers, dict)):
        raise TypeError(f"capture_tools() needs a server of the package mcp, not {type(server).__name__}")
    if getattr(low, "_assay_capture", None) is capture:
        return
    low._assay_capture = capture  # noqa: SLF001  (a mark of our own)
    calls = _Calls(capture, describe, str(getattr(low, "name", "") or "MCP"))
    if isinstance(middleware, list):
        # Outermost, but within the span of OpenTelemetry, so that the event names it.
        first = bool(middleware) and type(middleware[0]).__name__ == "OpenTelemetryMiddleware"
        middleware.insert(int(first), calls.middleware)
    elif isinstance(handlers, dict):
        low.request_handlers = _Handlers(handlers, functools.partial(calls.handled, low))
    low.lifespan = calls.lifespan_around(low.lifespan)
    for name in _SERVES:
        if callable(serve := getattr(server, name, None)):
            setattr(server, name, calls.served(serve))


class _Calls:
    """Captures the calls of one server, and its runs."""

    def __init__(self, capture: Capture, describe: DescribeToolResult | None, name: str) -> None:
        self._capture = capture
        self._describe = describe
        self._name = name
        self._run = ServerRun()
        self._serving = 0

    # Calls

    async def middleware(self, context: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Capture a request of version 2 of the package."""
        if context.method != _CALL or context.request_id is None:
            return await call_next(context)
        params = context.params if isinstance(context.params, Mapping) else {}
        with self._block(params.get("name"), params.get("arguments"), context) as call:
            try:
                result = await call_next(context)
            except BaseException as error:
                self._failed(call, error)
                raise
            self._ended(call, params.get("name"), result)
        return result

    async def handled(self, server: Any, handler: Callable[[Any], Awaitable[Any]], request: Any) -> Any:
        """Capture a request of version 1 of the package."""
        context = None
        with suppress(Exception):
            context = server.request_context
        name = request.params.name
        with self._block(name, request.params.arguments, context) as call:
            try:
                result = await handler(request)
            except BaseException as error:
                self._failed(call, error)
                raise
            self._ended(call, name, getattr(result, "root", result))
        return result

    def _block(self, name: Any, arguments: Any, context: Any) -> ToolBlock:
        record = self._record if self._capture.enabled else None
        request_id = getattr(context, "request_id", None)
        fields = {
            "call_id": None if request_id is None else str(request_id)[:NAME_MAX_CHARS],
            "agent_name": _client_of(context),
            "session_id": _session_of(context),
        }
        return ToolBlock(record, _name(name), arguments, None, fields)

    def _record(self, **fields: Any) -> str:
        run = self._run
        return self._capture.tool_call(server_session_id=run.id, seq=run.next_seq(), **fields)

    def _failed(self, call: ToolBlock, error: BaseException) -> None:
        """Name an error of the protocol by its code. The block names every other exception by its class."""
        with suppress(Exception):
            code = getattr(getattr(error, "error", None), "code", None)
            if isinstance(code, int):
                call.fails(_CODES.get(code, f"mcp_error_{code}"))
            elif type(error).__name__ == "ValidationError":
                call.fails("invalid_params")

    def _ended(self, call: ToolBlock, name: Any, result: Any) -> None:
        with suppress(Exception):
            content = _of(result, "content")
            blocks = content if isinstance(content, list) else []
            value = _value(result, blocks)
            outcome = outcome_of(value)
            if _of(result, "isError") is True and outcome.status not in FAILED:
                outcome = Outcome("error", _kind_of_text(blocks))
            elif _of(result, "resultType") == "input_required":
                outcome = Outcome("partial", None)  # the client calls again with the input
            call.result(
                status=outcome.status,  # type: ignore[arg-type]  # `outcome_of` gives one of the six
                error_kind=outcome.error_kind,
                summary=self._summary(_name(name), value, len(blocks)),
            )

    def _summary(self, name: str, value: Any, blocks: int) -> Mapping[str, Any]:
        if self._describe is None:
            return {"content": blocks}
        try:
            return dict(self._describe(name, value))
        except Exception as error:  # noqa: BLE001  (the client must not notice)
            return {"__describe": f"raised {type(error).__name__}"}

    # Runs of the server

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Capture the start and the stop of the server, once if transports and sessions nest or overlap."""
        self._serving += 1
        if self._serving == 1:
            self._run = ServerRun()
            self._say("server_start", f"the MCP server {self._name} started")
        try:
            yield
        finally:
            self._serving -= 1
            if self._serving == 0:
                self._say("server_stop", f"the MCP server {self._name} stopped")
                # What serves over HTTP may end the process by the signal that stopped it, without an exit.
                self._capture.flush(STOP_FLUSH_S)

    def _say(self, subtype: Subtype, message: str) -> None:
        run = self._run
        self._capture.server_event(event_subtype=subtype, message=message, server_session_id=run.id, seq=run.next_seq())

    def lifespan_around(self, inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a lifespan that is `inner`'s, captured."""

        @asynccontextmanager
        async def lifespan(server: Any) -> AsyncIterator[Any]:
            with self._running():
                async with inner(server) as state:
                    yield state

        return lifespan

    def served(self, serve: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Return `serve`, captured as one run: some transports begin a lifespan for each client."""

        @functools.wraps(serve)
        async def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._running():
                return await serve(*args, **kwargs)

        return wrapped


class _Handlers(dict[Any, Any]):
    """The handlers of a server of version 1: that of tool calls is captured, also if it is registered later."""

    def __init__(self, handlers: Mapping[Any, Any], around: Callable[..., Any]) -> None:
        super().__init__(handlers)
        self._around = around

    def __getitem__(self, kind: Any) -> Any:
        return self._captured(kind, super().__getitem__(kind))

    def get(self, kind: Any, default: Any = None) -> Any:
        return self._captured(kind, super().get(kind, default))

    def _captured(self, kind: Any, handler: Any) -> Any:
        if handler is None or getattr(kind, "__name__", "") != "CallToolRequest":
            return handler
        return functools.partial(self._around, handler)


# Reading requests and results: mappings as on the wire in version 2, models in version 1


def _of(result: Any, name: str) -> Any:
    return result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)


def _name(name: Any) -> str:
    return name[:NAME_MAX_CHARS] if isinstance(name, str) and name else _UNNAMED


def _value(result: Any, blocks: list[Any]) -> Any:
    """Return what a tool returned: its structured content, else its texts, or the JSON that is the only one."""
    structured = _of(result, "structuredContent")
    if isinstance(structured, Mapping):
        only = structured.get("result")
        return only if len(structured) == 1 and isinstance(only, Mapping) else structured
    texts = [text for block in blocks if isinstance(text := _of(block, "text"), str)]
    if len(texts) == 1 and len(texts[0]) <= _ENVELOPE_MAX_CHARS and texts[0].lstrip()[:1] == "{":
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(texts[0])
    return texts


def _kind_of_text(blocks: list[Any]) -> str:
    text = _of(blocks[0], "text") if len(blocks) == 1 else None
    return "unknown_name" if isinstance(text, str) and text.startswith("Unknown tool") else "tool_error"


def _session_of(context: Any) -> str | None:
    """Return a name for the client's session of the transport: streamable HTTP has one, stdio has none.

    It is a hash: anyone who has the id itself can speak in the session.
    """
    with suppress(Exception):
        session = context.request.headers.get("mcp-session-id")
        if isinstance(session, str) and session:
            return f"mcp-{sha256(session.encode()).hexdigest()[:24]}"
    return None


def _client_of(context: Any) -> str | None:
    """Return the name that the client gave of itself."""
    with suppress(Exception):
        params = context.session.client_params
        name = (getattr(params, "client_info", None) or params.clientInfo).name
        if isinstance(name, str) and name:
            return name[:NAME_MAX_CHARS]
    return None
