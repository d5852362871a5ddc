"""One span of an open trace: its step, and its place in time and in the tree."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from assay_assembler.span import Source, Span
from assay_assembler.step import Step, StepKind

#: With more agents in one trace, a span whose parent never came has none: the search takes the cube of their number.
AGENTS_MAX = 50


@dataclass(slots=True, eq=False)
class Node:
    """A span without its attributes."""

    span_id: str
    parent_id: str
    local_root: bool
    name: str
    start_ns: int
    end_ns: int
    source: Source
    dropped: int
    links: tuple[tuple[str, str], ...]
    step: Step
    #: The span, until its texts are read.
    span: Span | None
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)

    @classmethod
    def of(cls, span: Span, step: Step) -> "Node":
        """Return the node of a span. A span that ends before it starts, or never, ends when it starts."""
        return cls(
            span.span_id,
            span.parent_id,
            span.local_root,
            span.name,
            span.start_ns,
            max(span.start_ns, span.end_ns),
            span.source,
            span.dropped,
            span.links,
            step,
            span if step.unread else None,
        )

    def read(self) -> Step:
        """Return the step with the texts of an agent or chain, which are read when they are first needed."""
        if self.span is not None and self.step.unread is not None:
            query, text, uncertain = self.step.unread(self.span)
            self.step = self.step._replace(query=query, text=text, uncertain=uncertain, unread=None)
            self.span = None
        return self.step

    @property
    def is_agent(self) -> bool:
        """True for an agent, chain or workflow."""
        return self.step.kind is StepKind.ANSWER and not self.step.model_call

    @property
    def is_model_call(self) -> bool:
        """True for a call of a model."""
        return self.step.kind is StepKind.ANSWER and self.step.model_call

    def ancestors(self) -> Iterator["Node"]:
        """Yield the parent, its parent and so on. Ends within a cycle."""
        seen = {self.span_id}
        node = self.parent
        while node is not None and node.span_id not in seen:
            yield node
            seen.add(node.span_id)
            node = node.parent

    @property
    def outermost(self) -> "Node":
        """The last of its ancestors that is known; without one, the node itself."""
        last = self
        for ancestor in self.ancestors():
            last = ancestor
        return last

    def descendants(self) -> Iterator["Node"]:
        """Yield everything below, in the order of start."""
        seen = {self.span_id}
        stack = list(self.children)
        found: list[Node] = []
        while stack:
            node = stack.pop()
            if node.span_id not in seen:
                seen.add(node.span_id)
                found.append(node)
                stack.extend(node.children)
        yield from sorted(found, key=order)


def order(node: Node) -> tuple[int, int, str]:
    """Return the place of a node among others: by start, then end, then id."""
    return node.start_ns, node.end_ns, node.span_id


def by_end(node: Node) -> tuple[int, int, str]:
    """Return the place of a node among others by its end."""
    return node.end_ns, node.start_ns, node.span_id


def connect(nodes: dict[str, Node]) -> None:
    """Set parents and children.

    A parent that never came is replaced by the one agent around the span in time.

    Spans without marks are not read, so that the way from a model call to its agent may have gaps.
    """
    for node in nodes.values():
        node.parent, node.children = None, []
    agents = [node for node in nodes.values() if node.is_agent]
    if len(agents) > AGENTS_MAX:
        agents = []
    for node in nodes.values():
        parent = nodes.get(node.parent_id)
        if parent is None and node.parent_id:
            around = _around(node, agents)
            if len(around) == 1:
                parent = around[0]
        if parent is not None and parent is not node:
            node.parent = parent
            parent.children.append(node)


def _around(node: Node, agents: list[Node]) -> list[Node]:
    """Return the innermost of the nested agents that contain a span in time; several if agents overlap."""
    holding = [
        agent
        for agent in agents
        if agent is not node
        and agent.start_ns <= node.start_ns
        and node.end_ns <= agent.end_ns
        and (agent.start_ns, agent.end_ns) != (node.start_ns, node.end_ns)
    ]
    return [agent for agent in holding if not any(_contains(agent, other) for other in holding if other is not agent)]


def _contains(outer: Node, inner: Node) -> bool:
    return outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns
