"""The tree of a trace's spans, connected as they come. Pure.

The tree depends only on the set of spans, never on their order. A span takes constant time, apart from the walk over
those below it when it is the last one that they waited for.
"""

from dataclasses import dataclass, field

from assay_assembler.node import Node
from assay_assembler.step import StepKind

#: With more agents in one trace, a span whose parent never came has none: each agent is compared with each such span.
AGENTS_MAX = 50


@dataclass(slots=True)
class Tree:
    """Parents and children of spans, and which of them have all their ancestors."""

    #: By span id.
    nodes: dict[str, Node] = field(default_factory=dict)
    #: True if the first span of a process has come. Nothing is complete before, and it usually comes last.
    has_root: bool = False
    #: Spans whose parent has not come, by its id.
    _waiting: dict[str, list[Node]] = field(default_factory=dict)
    #: Those of them to place among the agents, unless all are.
    _unplaced: list[Node] = field(default_factory=list)
    _agents: dict[str, Node] = field(default_factory=dict)
    _agents_changed: bool = False
    _newly_fixed: list[Node] = field(default_factory=list)
    _incomplete: int = 0

    def add(self, node: Node) -> None:
        """Add a span whose id is new."""
        self.nodes[node.span_id] = node
        self.has_root = self.has_root or node.local_root
        self._incomplete += 1
        self._note_agent(node)
        parent = self.nodes.get(node.parent_id)
        if parent is None and node.parent_id:
            self._waiting.setdefault(node.parent_id, []).append(node)
            self._unplaced.append(node)
        self._link(node, parent)
        for child in self._waiting.pop(node.span_id, ()):
            self._link(child, node)

    def changed(self, node: Node) -> None:
        """Note that the step of a span is another one."""
        self._note_agent(node)
        self._link(node, node.parent)
        if node.fixed:
            self._newly_fixed.append(node)

    def newly_fixed(self) -> list[Node]:
        """Return the spans whose ancestors became fixed, or which changed, since the last call.

        No later span comes between a fixed span and the first one of the trace, nor above that.
        """
        found = list(dict.fromkeys(self._newly_fixed))
        self._newly_fixed = []
        return found

    @property
    def is_complete(self) -> bool:
        """True if all ancestors of all spans are known, up to the first span of their process."""
        if self.has_root:
            self.settle()
        return not self._incomplete

    def settle(self) -> None:
        """Replace each parent that has not come by the one agent around the span in time, if there is one.

        Spans without marks are not read, so that the way from a model call to its agent may have gaps.
        """
        unplaced = self._unplaced
        if self._agents_changed:
            unplaced = [node for waiting in self._waiting.values() for node in waiting]
        self._unplaced, self._agents_changed = [], False
        agents = list(self._agents.values()) if len(self._agents) <= AGENTS_MAX else []
        for node in unplaced:
            if node.parent_id not in self.nodes:
                self._link(node, _around(node, agents))

    def _note_agent(self, node: Node) -> None:
        if node.is_agent != (node.span_id in self._agents):
            self._agents_changed = True
            if node.is_agent:
                self._agents[node.span_id] = node
            else:
                del self._agents[node.span_id]

    def _link(self, node: Node, parent: Node | None) -> None:
        if parent is node:
            parent = None
        if parent is not node.parent:
            if node.parent is not None:
                node.parent.children.remove(node)
            if parent is not None:
                parent.children.append(node)
            node.parent = parent
        self._spread(node)

    def _spread(self, node: Node) -> None:
        """Tell a span and those below it whether their ancestors are known, and fixed."""
        stack = [node]
        while stack:
            one = stack.pop()
            complete, fixed = _above(one)
            if (complete, fixed) == (one.complete, one.fixed):
                continue
            self._incomplete -= complete - one.complete
            if fixed and not one.fixed:
                self._newly_fixed.append(one)
            one.complete, one.fixed = complete, fixed
            stack.extend(one.children)


def _above(node: Node) -> tuple[bool, bool]:
    """Return whether the ancestors of a span are known, and whether they are fixed.

    They may change if one of them was placed by its time, or if a span is known above the first one of its process.
    """
    if node.parent is None:
        first = _is_first(node)
        return first, first and not node.parent_id
    return node.parent.complete, node.parent.fixed and node.parent.span_id == node.parent_id


def _is_first(node: Node) -> bool:
    """Return whether a span without a known parent is the first of its process, and needs no other.

    A tool call that came from another process waits for the caller's span, which is the same call.
    """
    return node.local_root and not (node.parent_id and node.step.kind is StepKind.TOOL_CALL)


def _around(node: Node, agents: list[Node]) -> Node | None:
    """Return the innermost of the nested agents that contain a span in time; None if there is none, or agents overlap."""
    holding = [
        agent
        for agent in agents
        if agent is not node
        and _contains(agent, node)
        and (agent.start_ns, agent.end_ns) != (node.start_ns, node.end_ns)
    ]
    inner = min(holding, key=lambda agent: agent.end_ns - agent.start_ns, default=None)
    if inner is None:
        return None
    others = [agent for agent in holding if agent is not inner]
    return inner if all(_contains(agent, inner) and not _contains(inner, agent) for agent in others) else None


def _contains(outer: Node, inner: Node) -> bool:
    return outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns
