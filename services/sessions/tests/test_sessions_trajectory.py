"""Trajectory metrics: the published definitions, their edge cases, and alignments that explain the numbers."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_sessions.trajectory import AlignedCall, ToolCall, TrajectoryScore, calls_of, compare, single_tool_use
from assay_sessions.trajectory_args import ARGS_MODES, EXACT, IGNORE_ARGS, ArgsMode, Matching, arguments, canonical
from tests.support.trajectories import trajectory_pairs

SEARCH, OTHER_SEARCH = ToolCall("search", {"q": "x"}), ToolCall("search", {"q": "y"})
READ, WRITE = ToolCall("read", {"path": "a"}), ToolCall("write", {"path": "b", "text": "t"})


def f(**args: Any) -> ToolCall:
    return ToolCall("f", args)


#: name: reference, session, "exact in_order any_order superset unordered" of ADK and agentevals, also with ignored arguments;
#: precision, recall.
ORACLES: dict[str, tuple[list[ToolCall], list[ToolCall], str, str, float | None, float | None]] = {
    "both empty": ([], [], "11111", "11111", None, None),
    "reference empty": ([], [SEARCH], "01110", "01110", 0, None),
    "session empty": ([SEARCH], [], "00000", "00000", None, 0),
    "one equal": ([SEARCH], [SEARCH], "11111", "11111", 1, 1),
    "three equal": ([SEARCH, READ, WRITE], [SEARCH, READ, WRITE], "11111", "11111", 1, 1),
    "swapped": ([SEARCH, READ], [READ, SEARCH], "00111", "00111", 1, 1),
    "extra in the middle": ([SEARCH, READ], [SEARCH, WRITE, READ], "01110", "01110", 2 / 3, 1),
    "extra at the end": ([SEARCH], [SEARCH, READ], "01110", "01110", 1 / 2, 1),
    "missing at the end": ([SEARCH, READ], [SEARCH], "00000", "00000", 1, 1 / 2),
    "repeated in the session": ([SEARCH], [SEARCH, SEARCH], "01110", "01110", 1 / 2, 1),
    "repeated in the reference": ([SEARCH, SEARCH], [SEARCH], "00000", "00000", 1, 1 / 2),
    "repeated in both": ([SEARCH, SEARCH], [SEARCH, SEARCH], "11111", "11111", 1, 1),
    "repeated elsewhere": ([SEARCH, READ, SEARCH], [SEARCH, SEARCH, READ], "00111", "00111", 1, 1),
    "disjoint": ([SEARCH], [READ], "00000", "00000", 0, 0),
    "another argument": ([SEARCH], [OTHER_SEARCH], "00000", "11111", 0, 0),
    "extra argument": ([SEARCH], [ToolCall("search", {"q": "x", "limit": 5})], "00000", "11111", 0, 0),
    "missing argument": ([ToolCall("search", {"q": "x", "limit": 5})], [SEARCH], "00000", "11111", 0, 0),
    "order of keys": ([WRITE], [ToolCall("write", {"text": "t", "path": "b"})], "11111", "11111", 1, 1),
    "number and text": ([f(n=1)], [f(n="1")], "00000", "11111", 0, 0),
    "whole number and float": ([f(n=1)], [f(n=1.0)], "11111", "11111", 1, 1),
    "nested": ([f(o={"a": [1, 2]})], [f(o={"a": [1, 2]})], "11111", "11111", 1, 1),
    "order of a list": ([f(o=[1, 2])], [f(o=[2, 1])], "00000", "11111", 0, 0),
    "null and absent": ([f(a=None)], [f()], "00000", "11111", 0, 0),
    "no arguments": ([f()], [f()], "11111", "11111", 1, 1),
    "case of a name": ([ToolCall("Search", {"q": "x"})], [SEARCH], "00000", "00000", 0, 0),
    "two of three": ([SEARCH, READ, WRITE], [SEARCH, READ], "00000", "00000", 1, 2 / 3),
    "one of two with wrong arguments": ([SEARCH, READ], [OTHER_SEARCH, READ], "00000", "11111", 1 / 2, 1 / 2),
    "in order with a swap before": ([SEARCH, READ, WRITE], [READ, SEARCH, READ, WRITE], "01110", "01110", 3 / 4, 1),
}
#: ADK and agentevals compare in Python, where True == 1; in JSON they are different values.
TRUE_AND_ONE = ([f(n=1)], [f(n=True)])


def matches(score: TrajectoryScore) -> str:
    columns = (score.exact, score.in_order, score.any_order, score.superset, score.unordered)
    return "".join(str(int(each)) for each in columns)


@pytest.mark.parametrize("case", ORACLES)
def test_metrics_are_those_of_adk_and_agentevals(case: str) -> None:
    reference, predicted, exact, ignored, precision, recall = ORACLES[case]
    score = compare(reference, predicted)
    assert matches(score) == exact
    assert matches(compare(reference, predicted, IGNORE_ARGS)) == ignored
    assert (score.precision, score.recall) == (precision, recall)


def test_true_is_not_one_unlike_in_adk_and_agentevals() -> None:
    assert matches(compare(*TRUE_AND_ONE)) == "00000"
    assert matches(compare(*TRUE_AND_ONE, IGNORE_ARGS)) == "11111"


def adk(reference: Sequence[ToolCall], predicted: Sequence[ToolCall], *, ignore_args: bool) -> tuple[bool, bool, bool]:
    """ADK's definitions: pairwise equality; a subsequence; each expected call removes one equal call."""

    def same(one: ToolCall, other: ToolCall) -> bool:
        return one.name == other.name and (ignore_args or one.args == other.args)

    exact = len(reference) == len(predicted) and all(map(same, reference, predicted))
    following = iter(predicted)
    in_order = all(any(same(each, wanted) for each in following) for wanted in reference)
    left = list(predicted)
    any_order = True
    for wanted in reference:
        found = next((each for each in left if same(each, wanted)), None)
        if found is None:
            any_order = False
            break
        left.remove(found)
    return exact, in_order, any_order


def agentevals_superset(outer: Sequence[ToolCall], inner: Sequence[ToolCall], *, ignore_args: bool) -> bool:
    """The definition of agentevals: each call of `inner` has a call of `outer` for itself. `unordered` is this in both directions."""
    used = set[int]()
    for wanted in inner:
        for place, each in enumerate(outer):
            if place not in used and each.name == wanted.name and (ignore_args or each.args == wanted.args):
                used.add(place)
                break
        else:
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("ignore_args", [False, True])
def test_random_trajectories_score_as_the_definitions_say(ignore_args: bool) -> None:
    matching = IGNORE_ARGS if ignore_args else EXACT
    for reference, predicted in trajectory_pairs():
        score = compare(reference, predicted, matching)
        superset = agentevals_superset(predicted, reference, ignore_args=ignore_args)
        unordered = superset and agentevals_superset(reference, predicted, ignore_args=ignore_args)
        found = (score.exact, score.in_order, score.any_order, score.superset, score.unordered)
        expected = (*adk(reference, predicted, ignore_args=ignore_args), superset, unordered)
        assert found == expected, (reference, predicted)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (-0.0, 0),
        (1e21, 10**21),
        ({"a": 1, "b": [{"c": None}]}, {"b": [{"c": None}], "a": 1.0}),
        ("é", "\u00e9"),
        ([], ()),
    ],
)
def test_equal_json_has_one_canonical_text(one: Any, other: Any) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (0, None),
        (0, ""),
        (1, "1"),
        (1, 1.5),
        ({}, []),
        ({"a": None}, {}),
        ([1, 2], [2, 1]),
        ([[1], 2], [[1, 2]]),
        ([1, 2], [12]),
        ({"a": [1]}, {"a": 1}),
        ("\u00e9", "e\u0301"),
        (2**53, 2**53 + 1),
        ("]", []),
        ({"a": "1,b"}, {"a": 1, "b": ""}),
    ],
)
def test_different_json_has_different_canonical_texts(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other)


def test_arguments_of_any_depth_are_compared() -> None:
    deep: Any = 1
    for _ in range(50_000):
        deep = {"a": [deep]}
    assert compare([f(o=deep)], [f(o=deep)]).exact


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_a_canonical_text_has_no_choice_of_key_order(value: Any) -> None:
    def reversed_keys(each: Any) -> Any:
        if isinstance(each, dict):
            return {name: reversed_keys(each[name]) for name in reversed(each)}
        return [reversed_keys(item) for item in each] if isinstance(each, list) else each

    assert canonical(value) == canonical(reversed_keys(value))


@pytest.mark.parametrize(
    ("mode", "given_args", "fits"),
    [
        ("exact", {"q": "x"}, True),
        ("exact", {"q": "x", "limit": 5}, False),
        ("subset", {}, True),
        ("subset", {"q": "x"}, True),
        ("subset", {"q": "x", "limit": 5}, False),
        ("subset", {"q": "y"}, False),
        ("superset", {"q": "x", "limit": 5}, True),
        ("superset", {}, False),
        ("superset", {"q": "y", "limit": 5}, False),
        ("ignore", {"z": 1}, True),
    ],
)
def test_a_tool_has_its_mode_of_comparing_arguments(mode: ArgsMode, given_args: dict[str, Any], fits: bool) -> None:
    matching = Matching(tools={"search": mode})
    assert compare([SEARCH], [ToolCall("search", given_args)], matching).exact is fits
    assert not compare([READ], [ToolCall("read", {"path": "z"})], matching).any_order


def test_the_first_call_that_matches_is_not_taken_from_one_that_needs_it() -> None:
    """A greedy pairing gives the narrow call to the reference that any call would satisfy."""
    reference = [ToolCall("search", {}), SEARCH]
    predicted = [ToolCall("search", {"q": "x", "n": 1}), OTHER_SEARCH]
    score = compare(reference, predicted, Matching("superset"))
    assert (score.any_order, score.unordered, score.recall, score.in_order) == (True, True, 1.0, False)
    assert score.alignment == (
        AlignedCall("matched", "search", 0, 1, in_order=score.alignment[0].in_order),
        AlignedCall("matched", "search", 1, 0, in_order=score.alignment[1].in_order),
    )
    assert [each.in_order for each in score.alignment].count(False) == 1


few_args = st.dictionaries(st.sampled_from("ab"), st.integers(0, 1), max_size=2)
few_calls = st.lists(st.builds(ToolCall, st.sampled_from(["f", "g"]), few_args), max_size=4)


@given(few_calls, few_calls, st.sampled_from(ARGS_MODES), st.sampled_from(ARGS_MODES))
def test_as_many_calls_are_paired_as_is_possible(
    reference: list[ToolCall], predicted: list[ToolCall], one: ArgsMode, other: ArgsMode
) -> None:
    matching = Matching(one, {"g": other})
    wanted = [arguments(each.name, each.args, matching) for each in reference]
    made = [arguments(each.name, each.args, matching) for each in predicted]
    short, long = sorted((len(wanted), len(made)))
    most = 0
    for chosen in permutations(range(long), short):
        pairs = enumerate(chosen) if len(wanted) == short else ((left, right) for right, left in enumerate(chosen))
        most = max(most, sum(made[right].fits(wanted[left]) for left, right in pairs))
    score = compare(reference, predicted, matching)
    matched = [each for each in score.alignment if each.outcome == "matched"]
    assert len(matched) == most
    assert all(made[each.predicted or 0].fits(wanted[each.reference or 0]) for each in matched)
    assert sorted(each.reference for each in score.alignment if each.reference is not None) == [*range(len(wanted))]
    assert sorted(each.predicted for each in score.alignment if each.predicted is not None) == [*range(len(made))]
    assert score.in_order is (score.any_order and all(each.in_order for each in score.alignment))
    assert score.exact <= score.unordered <= score.any_order
    assert score.exact <= score.in_order <= score.any_order


def test_an_alignment_says_what_happened_to_each_call() -> None:
    score = compare([READ, SEARCH, WRITE], [WRITE, OTHER_SEARCH, READ, READ])
    assert score.alignment == (
        AlignedCall("matched", "read", 0, 2, in_order=score.alignment[0].in_order),
        AlignedCall("wrong_args", "search", 1, 1),
        AlignedCall("matched", "write", 2, 0, in_order=score.alignment[2].in_order),
        AlignedCall("extra", "read", None, 3),
    )
    assert [each.in_order for each in score.alignment].count(False) == 1
    assert compare([READ], []).alignment == (AlignedCall("missing", "read", 0),)


def test_long_trajectories_are_compared_in_every_mode() -> None:
    """2,000 calls of one tool, in the worst order for a search that looks for pairs one by one."""
    reference = [f(a=number, b=number % 7) for number in range(2_000)]
    predicted = [f(a=number, b=number % 7, c=1) for number in reversed(range(2_000))]
    assert compare(reference, reference[::-1]).unordered
    assert compare(reference, predicted, Matching("superset")).unordered
    assert compare(predicted, reference, Matching("subset")).unordered
    assert compare(reference, predicted, IGNORE_ARGS).exact
    chain = [f(**{str(number): 1, str(number + 1): 1}) for number in range(1_000)]
    links = [f(**{str(number): 1}) for number in range(1_000)]
    assert compare(links, chain, Matching("superset")).unordered


def test_single_tool_use_looks_at_names_alone() -> None:
    assert single_tool_use([READ, WRITE], "write")
    assert not single_tool_use([READ], "write")
    assert not single_tool_use([], "write")


def test_a_trajectory_is_the_agents_calls_of_a_document() -> None:
    def event(name: str, executed_by: str) -> dict[str, Any]:
        return {"function_call": {"name": name, "args": {"n": 1}}, "turn": 2, "executed_by": executed_by}

    document = {"intermediate_events": [event("read", "agent"), event("bash", "user"), event("edit", "agent")]}
    assert calls_of(document) == [ToolCall("read", {"n": 1}), ToolCall("edit", {"n": 1})]


def test_values_are_numbers_or_nothing() -> None:
    assert compare([], []).values() == {
        "exact": 1.0,
        "in_order": 1.0,
        "any_order": 1.0,
        "superset": 1.0,
        "unordered": 1.0,
        "precision": None,
        "recall": None,
    }
