"""MCP, client and server: `mcp.method.name`.

Only `tools/call` is a step; both sides of a call are merged later.
"""

from assay_assembler import shapes
from assay_assembler.span import Span
from assay_assembler.step import Reason, Step, no_step
from assay_assembler.values import container, first, first_text, text

NAME = "mcp"


def step(span: Span) -> Step | None:
    """Map a request of the protocol."""
    attributes = span.attributes
    method = attributes.get("mcp.method.name")
    if not isinstance(method, str) or not method:
        return None
    if method != "tools/call":
        return no_step(Reason.OTHER_STEP, convention=NAME)
    given = first(
        attributes, "gen_ai.tool.call.arguments", "mcp.request.argument", "traceloop.entity.input", "input.value"
    )
    made = first(attributes, "gen_ai.tool.call.result", "mcp.response.value", "traceloop.entity.output", "output.value")
    request, name = container(given), ""
    if isinstance(request, dict) and isinstance(inner := request.get("params", request), dict) and "arguments" in inner:
        given, name = inner["arguments"], text(inner.get("name"))
    answer = container(made)
    failed = isinstance(answer, dict) and answer.get("isError") is True
    called = first_text(attributes, "gen_ai.tool.name", "mcp.tool.name", "traceloop.entity.name") or name
    return shapes.tool_call(span, called or span.name.removeprefix("tools/call "), given, made, NAME, failed=failed)
