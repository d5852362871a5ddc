"""Find the tool calls of a trace.

One call may have several spans: a framework's, an MCP client's, an MCP server's. A span belongs to the call of the nearest
tool span above it if both are the same call; otherwise its call is the one with its id. A later span joins a call, and
never joins two, as long as no ancestor changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from assay_assembler.node import Node, order
from assay_assembler.step import StepKind


class _Place(NamedTuple):
    """Place of a span in the tree."""

    #: Number of its ancestors.
    depth: int = 0
    #: Nearest tool span above it.
    above: Node | None = None


@dataclass(slots=True)
class ToolCalls:
    """Find the calls of a trace as their spans come.

    The ancestors of a span must not change once it is added.
    """

    #: Id of the span that names its call, by span id.
    _owner: dict[str, str] = field(default_factory=dict)
    #: The same by the name of the tool and the call's id.
    _by_call: dict[tuple[str, str], str] = field(default_factory=dict)
    #: By span id, of the added spans and their ancestors: each is looked at once.
    _places: dict[str, _Place] = field(default_factory=dict)

    def added(self, nodes: Iterable[Node]) -> list[list[Node]]:
        """Return the spans of each new call, outermost first. The first one names the event.

        Spans of a call that was returned before are in none.
        """
        groups: dict[str, list[Node]] = {}
        new = sorted((each for each in nodes if _is_call(each) and each.span_id not in self._owner), key=order)
        placed = [(self._place(node), node) for node in new]
        placed.sort(key=lambda each: each[0].depth)  # stable: those of one depth stay in their order
        for place, node in placed:
            owner = self._owner_of(node, place.above)
            self._owner[node.span_id] = owner
            if owner == node.span_id or owner in groups:
                groups.setdefault(owner, []).append(node)
        return list(groups.values())

    def _owner_of(self, node: Node, above: Node | None) -> str:
        if above is not None and above.span_id in self._owner and _is_one_call(above, node):
            return self._owner[above.span_id]
        if not node.step.call_id:
            return node.span_id
        return self._by_call.setdefault((node.step.tool_name, node.step.call_id), node.span_id)

    def _place(self, node: Node) -> _Place:
        path: list[Node] = []
        one: Node | None = node
        while one is not None and one.span_id not in self._places:
            self._places[one.span_id] = _Place()  # ends the walk within a cycle
            path.append(one)
            one = one.parent
        for each in reversed(path):
            if each.parent is not None:
                depth, above = self._places[each.parent.span_id]
                self._places[each.span_id] = _Place(depth + 1, each.parent if _is_call(each.parent) else above)
        return self._places[node.span_id]


def _is_call(node: Node) -> bool:
    return node.step.kind is StepKind.TOOL_CALL


def _is_one_call(outer: Node, inner: Node) -> bool:
    if inner.step.tool_name == outer.step.tool_name:
        return True
    return inner.step.convention == outer.step.convention == "mcp" and inner.parent is outer
