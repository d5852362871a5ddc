# packages: mcp==2.3.0 openinference-instrumentation-mcp==2.0.13
import asyncio
import os
import sys

from _tracing import traced
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from openinference.instrumentation.mcp import MCPInstrumentor

provider = traced()
MCPInstrumentor().instrument(tracer_provider=provider)


def serve() -> None:
    from mcp.server import MCPServer

    server = MCPServer("help")

    @server.tool()
    def get_retention(project: str) -> str:
        """Return how long rows of a project are kept."""
        if project == "none":
            raise ValueError("no such project")
        return "90 days"

    server.run()


async def call() -> None:
    server = StdioServerParameters(
        command=sys.executable, args=[__file__, "serve"], env=dict(os.environ, OTEL_SERVICE_NAME="help-server")
    )
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        await session.call_tool("get_retention", {"project": "help"})
        await session.call_tool("get_retention", {"project": "none"})


if sys.argv[1:] == ["serve"]:
    serve()
else:
    asyncio.run(call())
provider.force_flush()
