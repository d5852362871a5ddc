"""Each tool call and retrieval of a trace is one event, whatever the batches, orders and restarts in which its spans come.

Random trees of spans are compared with the same spans in one batch. A restart forgets the trace: it is read again from its
spans and the ids of its sent events, as from Redis.
"""

import random
from collections.abc import Iterable

import pytest

from assay_assembler.events import Made
from assay_assembler.span import Span
from assay_assembler.trace import Trace
from tests.support.span_trees import EARLY, not_once, random_batches, random_spans
from tests.support.spans import TRACE, span, span_id
from tests.support.traces import opened

PROJECT = "default"
SEED, TREES = 20_219, 4_000


class Store:
    """What Redis keeps of an open trace: its spans, and the ids of its sent events."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.sent: dict[str, Made] = {}
        self.early = 0

    @property
    def calls(self) -> list[str]:
        """Ids of the events that may be sent early."""
        return [key for key, each in self.sent.items() if each.kind in EARLY]

    def trace(self) -> Trace:
        """Return the trace as a restarted process reads it."""
        trace = Trace(PROJECT, TRACE, sent=self.sent)
        for each in self.spans:
            trace.add(each)
        return trace

    def send(self, made: Iterable[Made]) -> None:
        """Send events; one whose id was sent is not sent again."""
        for each in made:
            self.sent.setdefault(each.event_id, each)


def assembled(batches: Iterable[list[Span]], restarts: Iterable[bool]) -> Store:
    """Send a trace in batches, with a restart before some of them and before it closes."""
    store = Store()
    trace = store.trace()
    for batch, restart in zip([*batches, []], restarts, strict=True):
        trace = store.trace() if restart else trace
        for each in batch:
            trace.add(each)
        store.spans += batch
        store.send(trace.ready())
    store.early = len(store.sent)
    store.send(trace.close())
    return store


def test_a_call_is_one_event_in_any_order_of_spans_and_batches_and_over_restarts() -> None:
    choose = random.Random(SEED)  # noqa: S311
    early = 0
    for tree in range(TREES):
        spans = random_spans(choose)
        batches = list(random_batches(choose, spans))
        often = choose.choice([0, 0.3, 1])
        store = assembled(batches, [choose.random() < often for _ in [*batches, []]])
        assert not_once(PROJECT, spans, store.calls) == [], f"tree {tree}: {batches}"
        early += store.early
    assert early > TREES // 2


def test_in_the_order_of_an_sdk_a_call_is_sent_with_the_first_span_of_its_process() -> None:
    """A process ends its first span last. One with a caller that sends no spans is in the cases below."""
    choose = random.Random(SEED)  # noqa: S311
    sent = 0
    for tree in range(TREES // 10):
        spans = [each._replace(parent_id=span_id(1), local_root=False) for each in random_spans(choose)]
        for number, each in enumerate(spans[2:], start=3):
            spans[number - 1] = each._replace(parent_id=span_id(choose.randint(1, number - 1)))
        spans[0] = spans[0]._replace(parent_id="", local_root=True)
        whole = [each for each in opened(*spans).close() if each.kind in EARLY]
        waits = {each.span_id for each in spans if "mcp.method.name" in each.attributes}
        ready = {each.event_id for each in whole if not waits.intersection(each.span_ids)}
        trace = Trace(PROJECT, TRACE)
        for each in reversed(spans):
            assert trace.ready() == []
            trace.add(each)
        assert {each.event_id for each in trace.ready()} == ready, f"tree {tree}: {spans}"
        sent += len(ready)
    assert sent > TREES // 10


AGENT = {"gen_ai.operation.name": "invoke_agent"}
SEARCH = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
LOOKED = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "q"}
CALL = {"gen_ai.tool.call.id": "call-1"}

ROOT = span({}, number=1, end_ms=900)
#: A tool in one process, which asks another process for a tool with the same name.
CALLER = span(SEARCH, number=2, parent=1, start_ms=10, end_ms=800)
REQUEST = span({}, number=3, parent=2, start_ms=20, end_ms=700)
SERVER = span({}, number=4, parent=3, start_ms=30, end_ms=600, local_root=True)
SERVED = span(SEARCH, number=5, parent=4, start_ms=40, end_ms=500)
SERVED_TOO = span(SEARCH, number=6, parent=4, start_ms=510, end_ms=590)
#: The same with retrievals.
ASKED, FOUND, FOUND_TOO = [each._replace(attributes=LOOKED) for each in (CALLER, SERVED, SERVED_TOO)]
#: Two spans of one call, which two instrumentations record, one of them below another span.
OUTER = span(SEARCH | CALL, number=7, parent=1, end_ms=100)
BETWEEN = span({}, number=8, parent=1, end_ms=100)
INNER = span(SEARCH | CALL, number=9, parent=8, end_ms=100)
#: A call within an agent whose parent comes late: until then its time places it below the agent.
HELPER = span(AGENT, number=10, parent=1, end_ms=850)

CASES: dict[str, tuple[list[list[Span]], list[int]]] = {
    "the outer span comes after the root": ([[ROOT, BETWEEN, INNER], [OUTER]], [1, 1]),
    "the inner span comes after the root": ([[ROOT, OUTER], [BETWEEN], [INNER]], [1, 1, 1]),
    "the server's process is first": ([[SERVED, SERVER], [REQUEST, CALLER, ROOT]], [0, 1]),
    "the server's process is last": ([[REQUEST, CALLER, ROOT], [SERVED, SERVER]], [1, 1]),
    "the server's process is first, the request last": ([[SERVED, SERVER], [CALLER, ROOT], [REQUEST]], [0, 1, 1]),
    "the server calls its tool twice": ([[SERVED, SERVED_TOO, SERVER], [REQUEST, CALLER, ROOT]], [0, 1]),
    "the caller sends no spans": ([[SERVED, SERVER]], [0]),
    "the server's retrieval is first": ([[FOUND, SERVER], [ASKED, ROOT], [REQUEST]], [0, 1, 1]),
    "the server retrieves twice": ([[FOUND, FOUND_TOO, SERVER], [REQUEST, ASKED, ROOT]], [0, 1]),
    "a parent comes after its time placed the call": ([[HELPER, ROOT, SERVED], [SERVER, REQUEST], [CALLER]], [0, 0, 1]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("restarts", [False, True], ids=["one process", "restarts"])
def test_a_call_that_comes_in_pieces_is_sent_once_and_as_soon_as_nothing_can_come_above_it(
    case: str, restarts: bool
) -> None:
    batches, early = CASES[case]
    for place, expected in enumerate(early, start=1):
        store = assembled(batches[:place], [restarts] * (place + 1))
        assert (place, store.early) == (place, expected)
    assert not_once(PROJECT, [each for batch in batches for each in batch], store.calls) == []


def test_a_restarted_trace_names_the_event_that_was_sent() -> None:
    store = Store()
    store.spans = [ROOT, BETWEEN, INNER]
    (sent,) = store.trace().ready()
    store.send([sent])
    store.spans.append(OUTER)
    trace = store.trace()
    assert trace.close() == []
    assert {trace.targets[each.span_id] for each in (OUTER, INNER)} == {sent.event_id}
