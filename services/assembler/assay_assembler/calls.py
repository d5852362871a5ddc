"""Find the tool calls of a trace.

One call may have several spans: a framework's, an MCP client's, an MCP server's.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from assay_assembler.node import Node, order
from assay_assembler.step import StepKind


@dataclass(slots=True)
class ToolCalls:
    """Finds the calls of a trace, as their spans come."""

    #: Id of the span that names its call, by span id.
    _owner: dict[str, str] = field(default_factory=dict)
    #: The same by the name of the tool and the call's id.
    _by_call: dict[tuple[str, str], str] = field(default_factory=dict)

    def added(self, nodes: Iterable[Node]) -> list[list[Node]]:
        """Return the spans of each new call, outermost first. The first one names the event.

        Spans of a call that was returned before are in none.
        """
        groups: dict[str, list[Node]] = {}
        calls = (each for each in nodes if each.step.kind is StepKind.TOOL_CALL and each.span_id not in self._owner)
        for node in sorted(calls, key=_outer_first):
            place = self._place(node)
            self._owner[node.span_id] = place
            if place == node.span_id or place in groups:
                groups.setdefault(place, []).append(node)
            if node.step.call_id:
                self._by_call.setdefault((node.step.tool_name, node.step.call_id), place)
        return list(groups.values())

    def _place(self, node: Node) -> str:
        above = next((each for each in node.ancestors() if each.step.kind is StepKind.TOOL_CALL), None)
        if above is not None and above.span_id in self._owner and _is_one_call(above, node):
            return self._owner[above.span_id]
        known = self._by_call.get((node.step.tool_name, node.step.call_id)) if node.step.call_id else None
        return known or node.span_id


def _outer_first(node: Node) -> tuple[int, tuple[int, int, str]]:
    return sum(1 for _ in node.ancestors()), order(node)


def _is_one_call(outer: Node, inner: Node) -> bool:
    if inner.step.tool_name == outer.step.tool_name:
        return True
    return inner.step.convention == outer.step.convention == "mcp" and inner.parent is outer
