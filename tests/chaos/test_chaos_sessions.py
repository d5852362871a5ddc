"""Sessions of several parts: what producers send of them, and what counts as shown too early or not at all."""

import itertools
import random
from collections import Counter

import pytest

from tests.chaos.sessions import PARTS_MOST, Part, Sessions, Shown, Stored, read, too_early, unlike, whole, written

DRAWN = 5_000


def drawn(seed: int = 7) -> list[Part]:
    sessions = Sessions(random.Random(seed), "producer")
    return [sessions.draw()._replace(event_id=f"{number}") for number in range(DRAWN)]


def test_a_producer_sends_each_part_of_a_revision_at_most_once_and_never_an_older_revision_again() -> None:
    parts = drawn()
    assert len({part[:3] for part in parts}) == len(parts)
    assert all(1 <= part.part <= part.parts <= PARTS_MOST for part in parts)
    of_session: dict[str, list[Part]] = {}
    for part in parts:
        of_session.setdefault(part.session_id, []).append(part)
    assert all(a.revision <= b.revision for of in of_session.values() for a, b in itertools.pairwise(of))
    sizes = {part[:2]: part.parts for part in parts}
    assert len(sizes) == len({(*part[:2], part.parts) for part in parts})
    assert {*sizes.values()} == {*range(1, PARTS_MOST + 1)}


def test_some_revisions_are_whole_some_are_replaced_before_and_some_never_end() -> None:
    parts = drawn()
    counts = Counter(part[:2] for part in parts)
    newest = {part.session_id: part.revision for part in sorted(parts)}
    cut = [part for part in parts if counts[part[:2]] < part.parts]
    assert any(part.revision < newest[part.session_id] for part in cut)
    assert any(part.revision == newest[part.session_id] for part in cut)
    ended = whole(parts, {part.event_id for part in parts})
    assert len({part.session_id for part in cut if part.revision == newest[part.session_id]} & ended.keys()) == 0
    assert any(row.parts > 1 and row.revision > min(newest.values()) for row in ended.values())


def test_the_ledger_of_a_producer_is_read_as_it_was_written() -> None:
    parts = drawn()[:100]
    assert read(written(parts)) == parts


def stored(*parts: int, session_id: str = "a", revision: int = 1) -> Stored:
    return {(session_id, revision): Counter(parts)}


@pytest.mark.parametrize(
    ("row", "stored", "early"),
    [
        pytest.param(Shown(1, 2, True), stored(1, 2), False, id="all stored"),
        pytest.param(Shown(1, 2, False), stored(1), False, id="incomplete and shown so"),
        pytest.param(Shown(1, 2, False), stored(1, 2), False, id="stored since"),
        pytest.param(Shown(1, 2, True), stored(2), True, id="one missing"),
        pytest.param(Shown(1, 2, True), stored(1, 2, 2), True, id="one twice"),
        pytest.param(Shown(1, 2, True), stored(2, 2), True, id="one twice and one missing"),
        pytest.param(Shown(1, 2, True), stored(1, 2, 3), True, id="one too many"),
        pytest.param(Shown(1, 2, True), stored(1, 2, revision=2), True, id="those of another revision"),
        pytest.param(Shown(1, 2, True), stored(1, 2, session_id="b"), True, id="those of another session"),
    ],
)
def test_complete_is_what_has_exactly_its_parts(row: Shown, stored: Stored, early: bool) -> None:
    assert bool(too_early({"a": row}, stored)) == early


def test_a_session_is_expected_in_its_newest_revision_once_every_part_was_handed_over() -> None:
    tried = [
        Part("old and whole", 1, 1, 1, "1"),
        Part("replaced", 1, 1, 2, "2"),
        Part("replaced", 2, 2, 2, "3"),
        Part("replaced", 2, 1, 2, "4"),
        Part("not confirmed", 1, 1, 2, "5"),
        Part("not confirmed", 1, 2, 2, "6"),
        Part("replaced in part", 1, 1, 1, "7"),
        Part("replaced in part", 2, 1, 2, "8"),
    ]
    expected = whole(tried, {"1", "2", "3", "4", "5", "7", "8"})
    assert expected == {"old and whole": Shown(1, 1, True), "replaced": Shown(2, 2, True)}


def test_a_session_sent_whole_is_to_be_shown_so() -> None:
    expected = {name: Shown(2, 3, True) for name in "abcd"}
    shown = expected | {"b": Shown(2, 3, False), "c": Shown(1, 3, True), "x": Shown(1, 2, False)}
    del shown["d"]
    assert unlike(expected, expected) == []
    assert unlike(expected, shown) == ["3 sessions sent whole are not shown as complete in their newest revision"]
