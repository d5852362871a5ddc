"""Map requests of MCP."""

from typing import Any

import pytest

from assay_assembler.span import Attributes
from tests.support.steps import fields

METHOD = "mcp.method.name"

CASES: dict[str, tuple[Attributes, dict[str, Any]]] = {
    "tools/call": (
        {
            METHOD: "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_retention",
            "gen_ai.tool.call.arguments": '{"project": "help"}',
            "mcp.session.id": "m-1",
        },
        {
            "kind": "tool_call", "tool_name": "get_retention", "arguments": '{"project": "help"}', "server_session": "m-1",
            "failed": False,
        },
    ),
    "error of a tool": (
        {METHOD: "tools/call", "gen_ai.tool.name": "x", "error.type": "tool_error"},
        {"kind": "tool_call", "failed": True, "error_kind": "tool_error"},
    ),
    "a result that says it is an error": (
        {METHOD: "tools/call", "gen_ai.tool.name": "x", "gen_ai.tool.call.result": '{"isError": true, "content": []}'},
        {"failed": True},
    ),
    "arguments within the request": (
        {METHOD: "tools/call", "traceloop.entity.input": '{"params": {"name": "get_retention", "arguments": {"project": "help"}}}'},
        {"tool_name": "get_retention", "arguments": {"project": "help"}},
    ),
    "tools/list": ({METHOD: "tools/list"}, {"kind": "none", "reason": "other_step"}),
    "initialize": ({METHOD: "initialize"}, {"kind": "none", "reason": "other_step"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_request_is_mapped_by_its_method(name: str) -> None:
    attributes, expected = CASES[name]
    assert fields(attributes, expected) == expected
