"""The state of one open trace: spans in, events out. Pure: no clock, no I/O.

The result depends only on the set of spans, never on their order or on how often each arrives. Event ids are
deterministic, so a trace that is assembled again after a crash makes the same events. An event of several spans that was
sent early keeps its id: a trace that is read again needs the ids of the sent events.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from assay_assembler import events
from assay_assembler.answers import Answers
from assay_assembler.calls import ToolCalls
from assay_assembler.event_ids import span_event_id
from assay_assembler.events import Envelope, Made
from assay_assembler.mapping import step_of
from assay_assembler.node import Node, order
from assay_assembler.retrievals import Found, found_retrievals
from assay_assembler.span import Span, SpanEvent
from assay_assembler.step import BARE, Reason, StepKind, Verdict
from assay_assembler.tree import Tree
from assay_schema.fields import Kind


@dataclass(frozen=True)
class Options:
    """Settings of a project."""

    #: Service of spans that name none.
    default_service: str = ""
    #: Patterns such as `search_*`: tools whose result is a list of documents.
    retrieval_tools: tuple[str, ...] = ()
    #: Variables of prompts whose values are the contexts of an answer without a retrieval.
    contexts_from_prompt: tuple[str, ...] = ()
    #: Names of evaluations that are a person's feedback although they do not say it.
    feedback_names: Collection[str] = ()
    #: Key of the hashes of user ids; without it they are left out.
    user_key: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class OpenFeedback:
    """A verdict whose event has to be looked up: its trace does not have it, or has closed before."""

    envelope: Envelope
    node: Node
    verdict: Verdict
    #: Number of the verdict on its span.
    place: int
    target_trace: str
    #: Empty if the whole trace is judged.
    target_span: str
    #: `event_id` of the event that it is about if the look-up finds none; may be empty.
    otherwise: str = ""

    def made(self, target_event_id: str) -> Made | None:
        """Return the event of the verdict on an event."""
        event_id = span_event_id(
            self.envelope.project,
            self.envelope.trace_id,
            self.node.span_id,
            f"feedback.{self.place}" if self.place else "feedback",
            self.node.start_ns,
        )
        payload = events.feedback(self.verdict, target_event_id, self.envelope.user_key)
        return events.made(self.envelope, self.node, Kind.FEEDBACK, payload, [self.node], event_id=event_id)


class Trace:
    """One trace of one project: `add` its spans, take `ready` events early, `close` it for the rest."""

    def __init__(
        self,
        project: str,
        trace_id: str,
        options: Options | None = None,
        *,
        sent: Iterable[str] = (),
        assembled: Iterable[str] = (),
    ) -> None:
        self._options = options or Options()
        self._envelope = Envelope(project, trace_id, self._options.default_service, self._options.user_key)
        self._tree = Tree()
        self._nodes = self._tree.nodes
        self._spans: dict[str, Span] = {}
        #: The tool calls that `ready` looked at.
        self._early_calls = ToolCalls()
        #: Log records of spans that have not come.
        self._logged: dict[str, list[SpanEvent]] = {}
        #: `event_id` of the events that were returned, also by the trace that this one continues.
        self._sent = set(sent)
        self._own_ids: dict[tuple[str, Kind], str] = {}
        #: Spans of the events of a trace with this id that was closed before.
        self._assembled = set(assembled)
        self._closed = False
        #: Number of spans without an event, by reason. Complete after `close`.
        self.counts: Counter[Reason] = Counter()
        #: Verdicts on other traces, after `close`.
        self.open_feedback: list[OpenFeedback] = []
        #: `event_id` by id of the span that it is about, after `close`: to find the target of later feedback.
        self.targets: dict[str, str] = {}
        #: `event_id` of the trace's answer, after `close`: that of its outermost agent, else that of its last model call.
        #: Empty without one.
        self.answer = ""
        #: `Answered.rank` of that answer: a trace that closes twice has the answer with the lower one.
        self.answer_rank = 0
        #: `event_id` of the answer with a model's response, by the response's id, after `close`.
        self.responses: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def project(self) -> str:
        """The project."""
        return self._envelope.project

    @property
    def rooted(self) -> bool:
        """True if all spans have all their ancestors, up to the first span of their process."""
        return self._tree.is_complete

    def add(self, span: Span) -> None:
        """Add a span. Adding it again, or adding one after `close`, changes only the counts."""
        if span.span_id in self._nodes or span.span_id in self._assembled:
            self.counts[Reason.DUPLICATE] += 1
        elif self._closed:
            self.counts[Reason.LATE] += 1
        else:
            self._spans[span.span_id] = span._replace(events=span.events + tuple(self._logged.pop(span.span_id, ())))
            self._map(span.span_id)

    def log(self, span_id: str, event: SpanEvent) -> None:
        """Add a log record of a span, which may come before or after it."""
        span = self._spans.get(span_id)
        if self._closed or (span is not None and event in span.events):
            return
        if span is None:
            self._logged.setdefault(span_id, []).append(event)
        else:
            self._spans[span_id] = span._replace(events=(*span.events, event))
            self._map(span_id)

    def _map(self, span_id: str) -> None:
        span = self._spans[span_id]
        known = bool(span.attributes or span.events)
        step = step_of(span, self._options.feedback_names, self._options.contexts_from_prompt) if known else BARE
        node = self._nodes.get(span_id)
        if node is None:
            self._tree.add(Node.of(span, step))
        else:
            node.remap(span, step)
            self._tree.changed(node)

    def ready(self) -> list[Made]:
        """Return retrievals and tool calls that need not wait: those whose ancestors are all known.

        Each span is looked at once, when no later span can come above it. A process exports its first span last. If spans
        come in another order, such an event may lack what a later span below says, which adds no other event. These
        spans stay in the trace until `close`, because answers are made of them as well.
        """
        if self._closed:
            return []
        fixed = self._tree.newly_fixed()
        made: list[Made] = []
        for found in found_retrievals(fixed, self._options.retrieval_tools):
            if found.reason is None and found.node.step.query:
                made.extend(self._retrieval(found))
        for group in self._early_calls.added(fixed):
            # The other side of an MCP call is another process.
            if all(node.step.convention != "mcp" for node in group):
                made.extend(self._tool_call(group))
        return made

    def close(self) -> list[Made]:
        """Return all events that `ready` did not.

        Call it once; `counts`, `targets` and others are complete then.
        """
        if self._closed:
            return []
        self._tree.settle()
        made: list[Made] = []
        nodes = list(self._nodes.values())
        retrieved = found_retrievals(nodes, self._options.retrieval_tools)
        for found in retrieved:
            self._set_targets(found.sources, self._event_id(found.node, Kind.RETRIEVAL, found.sources))
            made.extend(self._retrieval(found, last=True))
        for group in ToolCalls().added(nodes):
            self._set_targets(group, self._event_id(group[0], Kind.TOOL_CALL, group))
            made.extend(self._tool_call(group, last=True))
        made.extend(self._answers(retrieved))
        made.extend(self._feedback())
        self._count_steps()
        self._closed = True
        return made

    def _answers(self, retrieved: list[Found]) -> list[Made]:
        answers = Answers(self._nodes, retrieved)
        made: list[Made] = []
        for each in answers.found():
            last = each.retrieved[-1] if each.retrieved else None
            retrieval_id = self._event_id(last.node, Kind.RETRIEVAL, last.sources) if last else ""
            payload = events.answer(
                each.node, each.query, each.text, each.model, each.documents, retrieval_id, started_ns=each.started_ns
            )
            event = events.made(self._envelope, each.node, Kind.ANSWER, payload, each.sources)
            if event is None:
                self.counts[Reason.INVALID] += 1
                continue
            made.append(event)
            if not self.answer or each.rank <= self.answer_rank:
                self.answer, self.answer_rank = event.event_id, each.rank
            if each.response_id:
                self.responses[each.response_id] = event.event_id
            self._set_targets(each.sources, event.event_id)
        self.counts.update(answers.counts)
        return made

    def _retrieval(self, found: Found, *, last: bool = False) -> list[Made]:
        if found.reason is not None:
            if last:
                self.counts[found.reason] += 1
                self.counts[Reason.MERGED] += len(found.sources) - 1
            return []

        def payload() -> dict[str, object]:
            return events.retrieval(
                found.node, found.query, found.documents, found.embedding_model, vector=found.vector
            )

        return self._once(found.node, Kind.RETRIEVAL, payload, found.sources, last=last)

    def _tool_call(self, group: list[Node], *, last: bool = False) -> list[Made]:
        def payload() -> dict[str, object]:
            return events.tool_call(group[0], group, self._envelope.trace_id)

        return self._once(group[0], Kind.TOOL_CALL, payload, group, last=last)

    def _once(
        self, node: Node, kind: Kind, payload: Callable[[], dict[str, object]], sources: list[Node], *, last: bool
    ) -> list[Made]:
        """Return an event unless it was returned before, perhaps under the name of another of its spans."""
        if last:
            self.counts[Reason.MERGED] += len(sources) - 1
        if self._sent_id(kind, sources):
            return []
        event = events.made(self._envelope, node, kind, payload(), sources, event_id=self._own_id(node, kind))
        if event is None:
            self.counts[Reason.INVALID] += last
            return []
        self._sent.add(event.event_id)
        return [event]

    def _event_id(self, node: Node, kind: Kind, sources: list[Node]) -> str:
        """Return the `event_id` of a node's event, or of the one that was returned for another of its spans."""
        return self._sent_id(kind, sources) or self._own_id(node, kind)

    def _sent_id(self, kind: Kind, sources: list[Node]) -> str:
        """Return the `event_id` under which an event of these spans was returned; empty if none was."""
        if not self._sent:
            return ""
        ids = (self._own_id(each, kind) for each in sources)
        return next((event_id for event_id in ids if event_id in self._sent), "")

    def _own_id(self, node: Node, kind: Kind) -> str:
        """Return the `event_id` of an event that is named after a span. It is computed once: that takes microseconds."""
        key = node.span_id, kind
        if key not in self._own_ids:
            self._own_ids[key] = events.node_event_id(self._envelope, node, kind)
        return self._own_ids[key]

    def _feedback(self) -> list[Made]:
        made: list[Made] = []
        for node in sorted(self._nodes.values(), key=order):
            for place, verdict in enumerate(node.step.verdicts):
                if not verdict.by_person or verdict.verdict is None:
                    self.counts[Reason.NO_VERDICT if verdict.by_person else Reason.NOT_A_PERSON] += 1
                    continue
                open_feedback = self._open_feedback(node, verdict, place)
                target = self._target(open_feedback)
                if not target:
                    self.open_feedback.append(open_feedback)
                elif event := open_feedback.made(target):
                    made.append(event)
                else:
                    self.counts[Reason.INVALID] += 1
        return made

    def _open_feedback(self, node: Node, verdict: Verdict, place: int) -> OpenFeedback:
        trace, span = node.links[0] if len(node.links) == 1 else (self._envelope.trace_id, node.span_id)
        otherwise = self.answer if trace == self._envelope.trace_id else ""
        span = "" if verdict.scope == "trace" else span
        return OpenFeedback(self._envelope, node, verdict, place, trace, span, otherwise)

    def _target(self, feedback: OpenFeedback) -> str:
        """Return the event that a verdict is about; empty if it has to be looked up."""
        if feedback.target_trace != self._envelope.trace_id:
            return ""
        if feedback.verdict.response_id:
            for node in self._nodes.values():
                if node.step.response_id == feedback.verdict.response_id and node.span_id in self.targets:
                    return self.targets[node.span_id]
        found = self.targets.get(feedback.target_span, "")
        return found if found or feedback.verdict.response_id else self.answer

    def _set_targets(self, sources: list[Node], event_id: str) -> None:
        for node in sources:
            self.targets.setdefault(node.span_id, event_id)

    def _count_steps(self) -> None:
        for node in self._nodes.values():
            if node.step.kind is StepKind.NONE and node.step.reason is not None:
                self.counts[node.step.reason] += 1
