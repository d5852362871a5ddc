"""Find the tool calls of a trace.

One call may have several spans: a framework's, an MCP client's, an MCP server's.
"""

from assay_assembler.node import Node, order
from assay_assembler.step import StepKind


def tool_groups(nodes: dict[str, Node]) -> list[list[Node]]:
    """Return the spans of each call, outermost first. The first one names the event."""
    groups: dict[str, list[Node]] = {}
    owner: dict[str, str] = {}
    by_call: dict[tuple[str, str], str] = {}
    for node in sorted((each for each in nodes.values() if each.step.kind is StepKind.TOOL_CALL), key=_outer_first):
        above = next((each for each in node.ancestors() if each.step.kind is StepKind.TOOL_CALL), None)
        call = (node.step.tool_name, node.step.call_id)
        if above is not None and above.span_id in owner and _is_one_call(above, node):
            place = owner[above.span_id]
        elif node.step.call_id and call in by_call:
            place = by_call[call]
        else:
            place = node.span_id
        owner[node.span_id] = place
        groups.setdefault(place, []).append(node)
        if node.step.call_id:
            by_call.setdefault(call, place)
    return list(groups.values())


def _outer_first(node: Node) -> tuple[int, tuple[int, int, str]]:
    return sum(1 for _ in node.ancestors()), order(node)


def _is_one_call(outer: Node, inner: Node) -> bool:
    if inner.step.tool_name == outer.step.tool_name:
        return True
    return inner.step.convention == outer.step.convention == "mcp" and inner.parent is outer
