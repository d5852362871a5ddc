"""`capture_tools`: a real MCP server, driven by a real client over stdio and streamable HTTP on loopback."""

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, ClientSession, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from assay_capture import Capture
from assay_capture.mcp import capture_tools
from tests.support.ports import free_port
from tests.support.redis import RedisServer

SERVER = str(Path(__file__).with_name("mcp_server.py"))
Connect = Callable[[], AbstractAsyncContextManager[ClientSession]]


#: The client of the package leaves pipes of the servers that it started to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect such pipes here, where nobody is warned of them."""
    yield
    gc.collect()


@pytest.fixture
def environment(redis_server: RedisServer, tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "ASSAY_CAPTURE": "1",
        "ASSAY_REDIS_URL": redis_server.url,
        "ASSAY_CAPTURE_SPOOL_DIR": str(tmp_path / "spool"),
        "TEST_STARTED": str(tmp_path / "started"),
    }


@pytest.fixture
def payloads(redis_server: RedisServer, arrived: Any) -> Callable[[], list[dict[str, Any]]]:
    def read() -> list[dict[str, Any]]:
        return [event["payload"] | {"session_id": event["session_id"]} for event in arrived(redis_server)]

    return read


@asynccontextmanager
async def over_stdio(kind: str, environment: dict[str, str]) -> AsyncIterator[ClientSession]:
    parameters = StdioServerParameters(command=sys.executable, args=[SERVER, kind, "stdio"], env=environment)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def served(kind: str, environment: dict[str, str], end: int = signal.SIGINT) -> AsyncIterator[str]:
    """A server over HTTP in its own process, which `end` ends."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, SERVER, kind, "http", str(port), env=environment, stderr=subprocess.PIPE
    )
    try:
        async with asyncio.timeout(120):
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert process.returncode is None, (await process.stderr.read()).decode() if process.stderr else ""
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        if process.returncode is None:
            process.send_signal(end)
        async with asyncio.timeout(120):
            await process.communicate()


@asynccontextmanager
async def over_http(kind: str, environment: dict[str, str]) -> AsyncIterator[ClientSession]:
    async with (
        served(kind, environment) as url,
        streamable_http_client(url) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        yield session


TRANSPORTS = {"stdio": over_stdio, "http": over_http}


async def started(tmp_path: Path) -> None:
    async with asyncio.timeout(120):
        while not (tmp_path / "started").exists():  # noqa: ASYNC110  (another process makes it)
            await asyncio.sleep(0.01)


async def all_outcomes(session: Any) -> None:
    """Calls each kind of tool once, also a missing one and one with wrong arguments."""
    assert (await session.call_tool("find", {"query": "churn"})).is_error is False
    assert (await session.call_tool("refuse", {})).is_error is False
    for name, arguments in (("boom", {}), ("missing", {"a": 1}), ("find", {"wrong": 1})):
        with suppress(MCPError):  # the low-level server reports what its handler raises as an error of the protocol
            assert (await session.call_tool(name, arguments)).is_error is True


@pytest.mark.parametrize("kind", ["high", "low"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_every_call_of_a_server_is_exactly_one_event(
    transport: str, kind: str, environment: dict[str, str], payloads: Any, eventually: Any
) -> None:
    async with TRANSPORTS[transport](kind, environment) as session:
        await session.list_tools()
        await all_outcomes(session)
    eventually(lambda: payloads() and payloads()[-1]["event_subtype"] == "server_stop", payloads)
    start, *calls, stop = payloads()
    assert (start["event_subtype"], stop["event_subtype"]) == ("server_start", "server_stop")
    assert len({payload["server_session_id"] for payload in (start, *calls, stop)}) == 1
    assert [payload["seq"] for payload in (start, *calls, stop)] == list(range(7))
    shown = [(call["tool_name"], call["args_summary"], call["status"], call["error_kind"]) for call in calls]
    # A handler that raises is an error of the protocol in a low-level server: internal, whatever it raised.
    raised = "tool_error" if kind == "high" else calls[2]["error_kind"]
    assert shown[:3] == [
        ("find", {"query": "churn"}, "success", None),
        ("refuse", {}, "refused", "pii_blocked"),
        ("boom", {}, "error", raised),
    ]
    assert [name for name, *_ in shown[3:]] == ["missing", "find"]
    assert [status for *_, status, _ in shown[3:]] == ["error", "error"]
    assert all(kind for *_, kind in shown[2:])
    assert calls[0]["result_summary"] == {"keys": 3}
    assert "secret text" not in str(calls)
    assert len({call["call_id"] for call in calls}) == 5
    assert None not in {call["call_id"] for call in calls}
    assert {call["agent_name"] for call in calls} == {"mcp"}
    sessions = {call["session_id"] for call in calls}
    assert len(sessions) == 1
    assert (None in sessions) == (transport == "stdio")


async def test_a_client_without_a_session_is_captured_too(
    environment: dict[str, str], payloads: Any, eventually: Any
) -> None:
    """The protocol of 2026-07-28 has neither a handshake nor sessions."""
    async with served("high", environment, signal.SIGTERM) as url, Client(url) as client:
        await client.call_tool("find", {"query": "churn"})
    eventually(lambda: len(payloads()) >= 3, payloads)
    assert [payload["event_subtype"] or payload["tool_name"] for payload in payloads()] == [
        "server_start", "find", "server_stop",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["high", "low"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_call_that_is_cancelled_is_one_event(
    transport: str, kind: str, environment: dict[str, str], payloads: Any, eventually: Any, tmp_path: Path
) -> None:
    async with TRANSPORTS[transport](kind, environment) as session:
        call = asyncio.ensure_future(session.call_tool("slow", {"note": "n"}))
        await started(tmp_path)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.to_thread(eventually, lambda: len(payloads()) == 2, payloads)
        # The session goes on.
        assert (await session.call_tool("find", {"query": "q"})).is_error is False
    eventually(lambda: len(payloads()) == 4, payloads)
    _, cancelled, after, _ = payloads()
    assert (cancelled["tool_name"], cancelled["status"], cancelled["error_kind"]) == ("slow", "error", "cancelled")
    assert (after["tool_name"], after["status"]) == ("find", "success")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_call_that_times_out_is_one_event(
    transport: str, environment: dict[str, str], payloads: Any, eventually: Any
) -> None:
    async with TRANSPORTS[transport]("high", environment) as session:
        with pytest.raises(MCPError):
            await session.call_tool("slow", {"note": "n"}, read_timeout_seconds=0.5)
    eventually(lambda: len(payloads()) == 3, payloads)
    _, call, stop = payloads()
    assert (call["tool_name"], call["status"], call["error_kind"]) == ("slow", "error", "cancelled")
    assert stop["event_subtype"] == "server_stop"


CLIENT = """
import asyncio, sys
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
import os

async def main(where):
    if where.startswith("http"):
        streams = streamable_http_client(where)
    else:
        args = [where, "high", "stdio"]
        streams = stdio_client(StdioServerParameters(command=sys.executable, args=args, env=dict(os.environ)))
    async with streams as pair, ClientSession(pair[0], pair[1]) as session:
        await session.initialize()
        await session.call_tool("slow", {"note": "n"})

asyncio.run(main(sys.argv[1]))
"""


async def _killed_client(where: str, environment: dict[str, str], tmp_path: Path) -> None:
    client = await asyncio.create_subprocess_exec(sys.executable, "-c", CLIENT, where, env=environment)
    await started(tmp_path)
    client.kill()
    await client.wait()


async def test_a_client_over_stdio_that_is_killed_leaves_one_event_and_a_stop(
    environment: dict[str, str], payloads: Any, eventually: Any, tmp_path: Path
) -> None:
    await _killed_client(SERVER, environment, tmp_path)
    eventually(lambda: len(payloads()) == 3, payloads)
    _, call, stop = payloads()
    assert (call["tool_name"], call["status"], call["error_kind"]) == ("slow", "error", "cancelled")
    assert stop["event_subtype"] == "server_stop"


async def test_a_client_over_http_that_is_killed_leaves_one_event_by_the_end_of_the_server(
    environment: dict[str, str], payloads: Any, eventually: Any, tmp_path: Path
) -> None:
    """A server keeps a session, and its running calls, for a client that may come back."""
    async with served("high", environment) as url:
        await _killed_client(url, environment, tmp_path)
    eventually(lambda: len(payloads()) == 3, payloads)
    _, call, stop = payloads()
    assert (call["tool_name"], call["status"], call["error_kind"]) == ("slow", "error", "cancelled")
    assert stop["event_subtype"] == "server_stop"


async def test_a_server_serves_unchanged_while_capture_fails_or_is_off(environment: dict[str, str]) -> None:
    del environment["ASSAY_CAPTURE"]
    async with over_stdio("high", environment) as session:
        await all_outcomes(session)


@pytest.mark.parametrize("server", [object(), None, "server"])
def test_anything_but_a_server_is_refused(server: Any, make_capture: Any) -> None:
    capture: Capture = make_capture("redis://127.0.0.1:1/0", durability="memory")
    with pytest.raises(TypeError, match="needs a server of the package mcp"):
        capture_tools(server, capture)
