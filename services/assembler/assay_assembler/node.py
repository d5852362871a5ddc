"""One span of an open trace: its step, and its place in time and in the tree."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from assay_assembler.span import Source, Span
from assay_assembler.step import Step, StepKind


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
    #: True if all its ancestors are known, up to the first span of its process.
    complete: bool = False
    #: True if they are known up to the first span of the trace, each by its id: they do not change any more.
    fixed: bool = False

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

    def remap(self, span: Span, step: Step) -> None:
        """Take another step of the same span."""
        self.step = step
        self.span = span if step.unread else None

    def read(self) -> Step:
        """Return the step with the texts of an agent or chain, which are read when they are first needed."""
        if self.span is not None and self.step.unread is not None:
            self.step = self.step._replace(**self.step.unread(self.span)._asdict(), unread=None)
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
