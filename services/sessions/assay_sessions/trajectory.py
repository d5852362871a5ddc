"""Trajectory metrics: compare the tool calls of a session with a reference. Pure.

Calls are counted as a multiset: a call that the reference has twice must be made twice. Definitions of exact, in-order and any-order match
as in Google's ADK; of superset and unordered match as in agentevals; of precision and recall as in Vertex AI, with multiplicity.
"""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from assay_sessions.document import agent_events
from assay_sessions.record import Json
from assay_sessions.trajectory_args import EXACT, Arguments, Matching, arguments
from assay_sessions.trajectory_matching import Pairs, in_order, most_pairs

#: Names of the metrics, in the order of reports.
METRICS: Final = ("exact", "in_order", "any_order", "superset", "unordered", "precision", "recall")
#: Metrics that may have no value.
SHARES: Final = ("precision", "recall")

Outcome = Literal["matched", "wrong_args", "missing", "extra"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One step of a trajectory: a tool and its arguments."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlignedCall:
    """The outcome of one call of the reference, of the session, or of both.

    `reference` and `predicted` are indexes from 0. `wrong_args`: the tool was called, with other arguments. `in_order` is False for a
    matched call that is not where the reference has it among the other matched ones.
    """

    outcome: Outcome
    name: str
    reference: int | None = None
    predicted: int | None = None
    in_order: bool = True


@dataclass(frozen=True, slots=True)
class TrajectoryScore:
    """The metrics of one session, and the alignment that explains them.

    `precision` is None without calls, and `recall` without reference calls: 0/0 is not a score.
    """

    exact: bool
    in_order: bool
    any_order: bool
    unordered: bool
    precision: float | None
    recall: float | None
    alignment: tuple[AlignedCall, ...]

    @property
    def superset(self) -> bool:
        """True if the session makes every call of the reference: equal to `any_order`."""
        return self.any_order

    def values(self) -> dict[str, float | None]:
        """Return the metrics by name, matches as 1 and 0."""
        values = {name: getattr(self, name) for name in METRICS}
        return {name: None if value is None else float(value) for name, value in values.items()}


def compare(
    reference: Sequence[ToolCall], predicted: Sequence[ToolCall], matching: Matching = EXACT
) -> TrajectoryScore:
    """Compare the calls of a session with those of a reference."""
    wanted = [arguments(call.name, call.args, matching) for call in reference]
    made = [arguments(call.name, call.args, matching) for call in predicted]
    ordered = in_order(wanted, made)
    pairs = most_pairs(wanted, made) if ordered is None else ordered
    same_length = len(wanted) == len(made)
    return TrajectoryScore(
        exact=ordered is not None and same_length,
        in_order=ordered is not None,
        any_order=len(pairs) == len(wanted),
        unordered=len(pairs) == len(wanted) and same_length,
        precision=len(pairs) / len(made) if made else None,
        recall=len(pairs) / len(wanted) if wanted else None,
        alignment=tuple(_alignment(wanted, made, pairs)),
    )


def single_tool_use(predicted: Sequence[ToolCall], name: str) -> bool:
    """Tell if a session calls a tool at all, with any arguments."""
    return any(call.name == name for call in predicted)


def calls_of(document: Json) -> list[ToolCall]:
    """Return the agent's calls in a document, in order, without commands that the user ran."""
    calls = (event["function_call"] for event in agent_events(document))
    return [ToolCall(call["name"], call.get("args") or {}) for call in calls]


def _alignment(wanted: list[Arguments], made: list[Arguments], pairs: Pairs) -> list[AlignedCall]:
    """List the reference calls in order, then the calls that it does not have."""
    kept = _increasing([pairs[number] for number in sorted(pairs)])
    taken = set(pairs.values())
    others = defaultdict[str, deque[int]](deque)
    for place, call in enumerate(made):
        if place not in taken:
            others[call.tool].append(place)
    rows = []
    for number, call in enumerate(wanted):
        if number in pairs:
            rows.append(AlignedCall("matched", call.tool, number, pairs[number], in_order=pairs[number] in kept))
        elif others.get(call.tool):
            rows.append(AlignedCall("wrong_args", call.tool, number, others[call.tool].popleft()))
        else:
            rows.append(AlignedCall("missing", call.tool, number))
    extra = sorted(place for places in others.values() for place in places)
    return rows + [AlignedCall("extra", made[place].tool, None, place) for place in extra]


def _increasing(places: list[int]) -> set[int]:
    """Return the members of a longest increasing subsequence of distinct numbers."""
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for place in places:
        at = bisect_left(ends, place)
        before[place] = ends[at - 1] if at else None
        ends[at : at + 1] = [place]
    members = set[int]()
    last = ends[-1] if ends else None
    while last is not None:
        members.add(last)
        last = before[last]
    return members
