"""The tree of a trace's spans is the same whatever their order: it is compared with one that is made at once."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_assembler.mapping import step_of
from assay_assembler.node import Node
from assay_assembler.span import Span
from assay_assembler.tree import AGENTS_MAX, Tree
from tests.support.spans import span, span_id

KINDS = ({}, {"gen_ai.operation.name": "invoke_agent"}, {"gen_ai.operation.name": "execute_tool"})


def node(one: Span) -> Node:
    return Node.of(one, step_of(one))


def agents_around(one: Span, spans: list[Span]) -> list[Span]:
    """Return the agents around a span that contain no other of them."""

    def contains(outer: Span, inner: Span) -> bool:
        return outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns

    def same(a: Span, b: Span) -> bool:
        return (a.start_ns, a.end_ns) == (b.start_ns, b.end_ns)

    agents = [each for each in spans if each.attributes == KINDS[1] and each is not one]
    holding = [each for each in agents if contains(each, one) and not same(each, one)]
    return [each for each in holding if all(each is other or not contains(each, other) for other in holding)]


def above(one: Span, spans: dict[str, Span]) -> Iterator[Span]:
    """Yield the ancestors of a span. Raises `RecursionError` in a cycle."""
    for _ in range(len(spans) + 1):
        parent = spans.get(one.parent_id)
        if parent is None and one.parent_id:
            around = agents_around(one, list(spans.values()))
            parent = around[0] if len(around) == 1 else None
        if parent is None or parent is one:
            return
        one = parent
        yield one
    raise RecursionError


@st.composite
def traces(draw: st.DrawFn) -> list[Span]:
    spans = []
    for number in range(1, draw(st.integers(1, 9)) + 1):
        start = draw(st.integers(0, 4))
        parent = draw(st.integers(0, number - 1) | st.integers(90, 92))
        one = span(draw(st.sampled_from(KINDS)), number=number, parent=parent, start_ms=start)
        remote = not parent or draw(st.booleans())
        spans.append(one._replace(end_ns=one.start_ns + draw(st.integers(0, 5)) * 1_000_000, local_root=remote))
    return draw(st.permutations(spans))


@given(traces(), st.data())
def test_a_tree_that_grows_is_the_one_that_is_made_at_once(spans: list[Span], data: st.DataObject) -> None:
    tree, known, newly = Tree(), dict[str, Span](), set[str]()
    for one in spans:
        tree.add(node(one))
        known[one.span_id] = one
        if data.draw(st.booleans()):
            continue  # several spans in one entry
        tree.settle()
        try:
            chains = {key: [each, *above(each, known)] for key, each in known.items()}
        except RecursionError:
            return  # an agent within an orphan that it is around
        firsts = {key: chain[-1] for key, chain in chains.items()}
        complete = {
            key: last.local_root and not (last.parent_id and last.attributes == KINDS[2])
            for key, last in firsts.items()
        }
        assert {key: each.complete for key, each in tree.nodes.items()} == complete
        fixed = {
            key: complete[key]
            and not firsts[key].parent_id
            and all(inner.parent_id == outer.span_id for inner, outer in pairwise(chain))
            for key, chain in chains.items()
        }
        assert {key: each.fixed for key, each in tree.nodes.items()} == fixed
        newly.update(each.span_id for each in tree.newly_fixed())
        assert newly == {key for key, is_fixed in fixed.items() if is_fixed}
        assert tree.is_complete is all(complete.values())
        for key, chain in chains.items():
            assert [each.span_id for each in tree.nodes[key].ancestors()] == [each.span_id for each in chain[1:]]


def test_a_span_is_newly_fixed_once_and_again_if_it_changes() -> None:
    tree = Tree()
    tree.add(node(span({}, number=2, parent=1)))
    assert tree.newly_fixed() == []
    tree.add(node(span({}, number=1)))
    first, second = tree.nodes[span_id(1)], tree.nodes[span_id(2)]
    assert {each.span_id for each in tree.newly_fixed()} == {span_id(1), span_id(2)}
    assert tree.newly_fixed() == []
    second.remap(span(KINDS[2], number=2, parent=1), step_of(span(KINDS[2])))
    tree.changed(second)
    assert tree.newly_fixed() == [second]
    assert second.parent is first


@pytest.mark.parametrize(("agents", "within"), [(AGENTS_MAX, True), (AGENTS_MAX + 1, False)])
def test_a_span_without_its_parent_is_within_an_agent_unless_there_are_too_many(agents: int, within: bool) -> None:
    tree = Tree()
    tree.add(node(span({}, number=999, parent=998, start_ms=500, end_ms=501)))
    for number in range(1, agents + 1):
        tree.add(node(span(KINDS[1], number=number, end_ms=1000 + number)))
        tree.settle()
    assert (tree.nodes[span_id(999)].parent is tree.nodes[span_id(1)]) is within
