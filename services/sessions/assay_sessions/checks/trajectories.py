"""Rules on the comparison of a session with its reference trajectory. Pure."""

from abc import abstractmethod
from collections import Counter
from typing import Annotated

from pydantic import Field

from assay_sessions.checks.finding import NOT_APPLICABLE, PASS, Finding, Place, tool_name
from assay_sessions.checks.rule import Rule
from assay_sessions.checks.session import Session
from assay_sessions.trajectory import AlignedCall, TrajectoryScore

#: Names of tools that a detail spells out; the rest is counted.
_LISTED = 3
_WORDS = {"missing": "missing", "wrong_args": "with other arguments", "extra": "extra"}


class TrajectoryRule(Rule):
    """A session with a reference trajectory meets it by one metric."""

    def check(self, session: Session) -> Finding:
        """Decide about one session; one without a reference or a value is not applicable."""
        meets = None if session.score is None else self.meets(session.score)
        if session.score is None or meets is None:
            return NOT_APPLICABLE
        return PASS if meets else Finding("fail", explained(session.score), _first(session.score, session))

    @abstractmethod
    def meets(self, score: TrajectoryScore) -> bool | None:
        """Decide about a score; None without a value."""


class TrajectoryExact(TrajectoryRule):
    """The calls are those of the reference, in its order."""

    def meets(self, score: TrajectoryScore) -> bool | None:
        """Decide about a score."""
        return score.exact


class TrajectoryInOrder(TrajectoryRule):
    """All calls of the reference are made in its order; others may be between them."""

    def meets(self, score: TrajectoryScore) -> bool | None:
        """Decide about a score."""
        return score.in_order


class TrajectoryAnyOrder(TrajectoryRule):
    """All calls of the reference are made, in any order; others are allowed."""

    def meets(self, score: TrajectoryScore) -> bool | None:
        """Decide about a score."""
        return score.any_order


class TrajectoryUnordered(TrajectoryRule):
    """The calls are those of the reference, in any order."""

    def meets(self, score: TrajectoryScore) -> bool | None:
        """Decide about a score."""
        return score.unordered


class TrajectoryPrecision(TrajectoryRule):
    """Enough of the calls are calls of the reference."""

    at_least: Annotated[float, Field(gt=0, le=1)] = 1.0

    def meets(self, score: TrajectoryScore) -> bool | None:
        """Decide about a score."""
        return None if score.precision is None else score.precision >= self.at_least


class TrajectoryRecall(TrajectoryRule):
    """Enough of the calls of the reference are made."""

    at_least: Annotated[float, Field(gt=0, le=1)] = 1.0

    def meets(self, score: TrajectoryScore) -> bool | None:
        """Decide about a score."""
        return None if score.recall is None else score.recall >= self.at_least


def explained(score: TrajectoryScore) -> str:
    """Describe an alignment by counts and names of tools."""
    parts = []
    for outcome, words in _WORDS.items():
        names = Counter(tool_name(each.name) for each in score.alignment if each.outcome == outcome)
        if names:
            listed = ", ".join(name for name, _ in names.most_common(_LISTED))
            parts.append(f"{names.total():,} {words} ({listed}{', ...' if len(names) > _LISTED else ''})")
    if moved := sum(not each.in_order for each in score.alignment):
        parts.append(f"{moved:,} out of order")
    return "; ".join(parts)


def _first(score: TrajectoryScore, session: Session) -> Place:
    """Return the place of the first call of the session that is not as in the reference."""
    others = [each.predicted for each in score.alignment if _differs(each) and each.predicted is not None]
    if not others:
        return Place()
    call = session.calls[min(others)]
    return Place(call.turn, call.number)


def _differs(each: AlignedCall) -> bool:
    return each.outcome != "matched" or not each.in_order
