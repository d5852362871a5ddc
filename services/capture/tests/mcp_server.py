"""An MCP server with a few tools, captured: `mcp_server.py high|low stdio|http [PORT]`. Run by the tests."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server

from assay_capture import Capture
from assay_capture.mcp import capture_tools

STARTED = os.environ.get("TEST_STARTED", "")


async def run_tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "find":
            return {"status": "success", "data": ["a", "b"], "query": arguments["query"]}
        case "refuse":
            return {"status": "refused", "error": {"kind": "pii_blocked", "message": "secret text"}}
        case "slow":
            Path(STARTED).touch()  # noqa: ASYNC240
            await asyncio.sleep(3600)
        case "boom":
            raise RuntimeError("secret text")
    raise ValueError(name)


def high() -> MCPServer:
    server = MCPServer("tools")

    @server.tool()
    async def find(query: str) -> dict[str, Any]:
        return await run_tool("find", {"query": query})

    @server.tool()
    async def refuse() -> dict[str, Any]:
        return await run_tool("refuse", {})

    @server.tool()
    def boom() -> str:
        raise RuntimeError("secret text")

    @server.tool()
    async def slow(note: str) -> dict[str, Any]:
        return await run_tool("slow", {"note": note})

    return server


def low() -> Server[Any]:
    schema = {"type": "object"}

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        names = ("find", "refuse", "boom", "slow")
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=schema) for name in names])

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        result = await run_tool(params.name, params.arguments or {})
        return types.CallToolResult(content=[], structured_content=result)

    return Server("tools", on_list_tools=list_tools, on_call_tool=call_tool)


async def over_stdio(server: Any) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def over_http(server: Any, port: int) -> None:
    await uvicorn.Server(uvicorn.Config(server.streamable_http_app(), port=port, log_level="error")).serve()


def main() -> None:
    kind, transport = sys.argv[1:3]
    server: Any = high() if kind == "high" else low()
    capture = Capture.from_env("tools")
    capture_tools(server, capture, describe=lambda _, result: {"keys": len(result)})
    capture_tools(server, capture)  # a second time does nothing
    if transport == "http":
        asyncio.run(over_http(server, int(sys.argv[3])))
    elif kind == "high":
        server.run()
    else:
        asyncio.run(over_stdio(server))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
