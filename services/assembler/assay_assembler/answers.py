"""Find the answers of a trace: one for each outermost agent, else one for each call of a model."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from assay_assembler.documents import Document
from assay_assembler.node import Node, by_end, order
from assay_assembler.retrievals import Found, asked_above, ended_before, passages
from assay_assembler.step import Reason


@dataclass(frozen=True)
class Answered:
    """One answer."""

    #: The agent, or the call of a model, that it is named after.
    node: Node
    query: str
    text: str
    model: str
    documents: tuple[Document, ...]
    #: Retrievals before it, by their end.
    retrieved: list[Found]
    #: All spans whose content is in it.
    sources: list[Node]
    #: When it began, in Unix nanoseconds.
    started_ns: int
    #: Id of the response of the model with its text; may be empty.
    response_id: str

    @property
    def rank(self) -> int:
        """Place among the answers of its trace: a lower one is preferred.

        Agents come before single model calls, and those below the trace's first span before others.
        """
        return 2 * (not self.node.is_agent) + bool(self.node.outermost.parent_id)


class Answers:
    """The answers of a connected trace, and the numbers of spans that made none."""

    def __init__(self, nodes: dict[str, Node], retrieved: list[Found]) -> None:
        self.counts: Counter[Reason] = Counter()
        self._nodes = nodes
        self._retrieved = [each for each in retrieved if each.reason is None]
        #: The span of a streamed call's request, by the id of the span that has its answer.
        self._openings: dict[str, Node] = {}
        self._calls = self._distinct_calls()
        self._agents = [
            node for node in nodes.values() if node.is_agent and not any(above.is_agent for above in node.ancestors())
        ]
        self.counts[Reason.MERGED] += sum(node.is_agent for node in nodes.values()) - len(self._agents)

    def found(self) -> Iterator[Answered]:
        """Yield the answers by their end."""
        below = {agent.span_id: self._calls_below(agent) for agent in self._agents}
        inside = {call.span_id for calls in below.values() for call in calls}
        alone = [call for call in self._calls if call.span_id not in inside]
        has_calls = bool(self._calls)
        answering = [agent for agent in self._agents if below[agent.span_id] or not has_calls]
        self.counts[Reason.OTHER_STEP] += len(self._agents) - len(answering)
        owners = self._owners(answering)
        for node in sorted([*answering, *alone], key=by_end):
            answered = (
                self._of_agent(node, below[node.span_id], owners) if node.is_agent else self._of_call(node, owners)
            )
            if isinstance(answered, Reason):
                self.counts[answered] += 1
            else:
                yield answered

    def _of_agent(self, agent: Node, calls: list[Node], owners: dict[str, str]) -> Answered | Reason:
        speaking = [call for call in calls if call.step.text and not call.step.requests_tool]
        last = max(speaking, key=by_end, default=None)
        step = agent.read()
        own = step.text
        text = own if own and not step.uncertain else (last.step.text if last else own)
        self.counts[Reason.MERGED] += len(calls)
        if not text:
            return _without_content([agent, *calls])
        query = step.query or next((call.step.query for call in sorted(calls, key=order) if call.step.query), "")
        if not query:
            return _without_query([agent, *calls])
        named = last or max(calls, key=by_end, default=None)
        model = (named.step.model if named else "") or step.model
        before = self._before(named.start_ns if named else agent.end_ns, agent.span_id, owners)
        contexts = passages(before) or _in_prompts([*([last] if last else []), *sorted(calls, key=order), agent])
        response_id = named.step.response_id if named else ""
        return Answered(agent, query, text, model, contexts, before, [agent, *calls], agent.start_ns, response_id)

    def _of_call(self, call: Node, owners: dict[str, str]) -> Answered | Reason:
        step = call.step
        if step.requests_tool:
            return Reason.TOOL_REQUEST
        if not step.text:
            return _without_content([call])
        query = step.query or asked_above(call)
        if not query:
            return _without_query([call])
        before = self._before(call.start_ns, "", owners)
        opening = self._openings.get(call.span_id, call)
        contexts = passages(before) or _in_prompts([call, opening])
        sources, began = [call, opening], opening.start_ns
        response_id = step.response_id or opening.step.response_id
        return Answered(call, query, step.text, step.model, contexts, before, sources, began, response_id)

    def _before(self, moment_ns: int, agent_id: str, owners: dict[str, str]) -> list[Found]:
        """Return the retrievals before a moment, except those of another agent that answers."""
        mine = [each for each in self._retrieved if owners.get(each.node.span_id, agent_id) == agent_id]
        return ended_before(mine, moment_ns)

    def _owners(self, answering: list[Node]) -> dict[str, str]:
        """Return the answering agent above each retrieval that has one."""
        ids = {agent.span_id for agent in answering}
        owners: dict[str, str] = {}
        for each in self._retrieved:
            above = next((node.span_id for node in each.node.ancestors() if node.span_id in ids), None)
            if above is not None:
                owners[each.node.span_id] = above
        return owners

    def _calls_below(self, agent: Node) -> list[Node]:
        below = {node.span_id for node in agent.descendants()}
        return [call for call in self._calls if call.span_id in below]

    def _distinct_calls(self) -> list[Node]:
        """Return the calls of models, each once: wrappers yield to the call within, repeats to the one with content."""
        calls = sorted((node for node in self._nodes.values() if node.is_model_call), key=order)
        kept = _without_repeats(calls)
        self.counts[Reason.DUPLICATE] += len(calls) - len(kept)
        kept = self._without_openings(kept)
        speaking = [call for call in kept if call.step.text or call.step.requests_tool]
        wrappers = {above.span_id for call in speaking for above in call.ancestors() if above.is_model_call}
        silent = {
            call.span_id
            for call in kept
            if not _content(call)[0] and any(above.is_model_call and _content(above)[0] for above in call.ancestors())
        }
        distinct = [call for call in kept if call.span_id not in wrappers and call.span_id not in silent]
        self.counts[Reason.MERGED] += len(kept) - len(distinct)
        return distinct

    def _without_openings(self, calls: list[Node]) -> list[Node]:
        """Leave out the requests of streamed calls: Logfire logs their answer later, in a sibling without duration."""
        silent = [call for call in calls if not _content(call)[0] and call.end_ns > call.start_ns]
        for log in calls:
            if log.start_ns == log.end_ns and log.step.text:
                before = [
                    call
                    for call in silent
                    if call.parent_id == log.parent_id
                    and call.end_ns <= log.start_ns
                    and call.step.query == log.step.query
                ]
                if before:
                    opening = max(before, key=by_end)
                    silent.remove(opening)
                    self._openings[log.span_id] = opening
        gone = {opening.span_id for opening in self._openings.values()}
        self.counts[Reason.MERGED] += len(gone)
        return [call for call in calls if call.span_id not in gone]


def _in_prompts(nodes: list[Node]) -> tuple[Document, ...]:
    """Return the documents in the first prompt that has any."""
    return next((node.step.documents for node in nodes if node.step.documents), ())


def _without_repeats(calls: list[Node]) -> list[Node]:
    """Leave out calls whose response another span has too.

    Servers with short ids repeat them, so texts must not differ.
    """
    texts: dict[str, set[str]] = {}
    for call in calls:
        texts.setdefault(call.step.response_id, set()).add(call.step.text)
    best: dict[tuple[str, str], Node] = {}
    for call in calls:
        for text in texts[call.step.response_id] if not call.step.text else (call.step.text,):
            known = best.get((call.step.response_id, text))
            if known is None or _content(call) > _content(known):
                best[call.step.response_id, text] = call
    kept = {call.span_id for (_, text), call in best.items() if text or texts[call.step.response_id] == {""}}
    return [call for call in calls if not call.step.response_id or call.span_id in kept]


def _content(call: Node) -> tuple[bool, bool]:
    return bool(call.step.text or call.step.requests_tool), bool(call.step.query)


def _without_content(nodes: list[Node]) -> Reason:
    if any(node.step.requests_tool for node in nodes) and not any(node.dropped for node in nodes):
        return Reason.TOOL_REQUEST
    return Reason.DROPPED_ATTRIBUTES if any(node.dropped for node in nodes) else Reason.NO_CONTENT


def _without_query(nodes: list[Node]) -> Reason:
    return Reason.DROPPED_ATTRIBUTES if any(node.dropped for node in nodes) else Reason.NO_QUERY
