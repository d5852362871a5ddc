"""Rules with a limit: turns, calls, errors, cost and time of a session. Pure."""

from typing import Annotated

from pydantic import Field

from assay_sessions.checks.finding import NOT_APPLICABLE, PASS, Finding, decided, failed, tool_name
from assay_sessions.checks.rule import Rule
from assay_sessions.checks.session import Session

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class MaxTurns(Rule):
    """Number of turns of the user and of the agent."""

    limit: Count

    def check(self, session: Session) -> Finding:
        """Decide about one session."""
        if session.is_empty:
            return NOT_APPLICABLE
        turns = len(session.contents) + bool(session.document["response"]["candidates"])
        turns = int(session.metadata.get("total_turns", turns))
        return decided(turns > self.limit, f"{turns:,} turns, at most {self.limit:,}")


class MaxCalls(Rule):
    """Number of tool calls of the agent."""

    limit: Count

    def check(self, session: Session) -> Finding:
        """Decide about one session."""
        if session.is_empty:
            return NOT_APPLICABLE
        if len(session.calls) <= self.limit:
            return PASS
        first = session.calls[self.limit]
        return failed(f"{len(session.calls):,} calls, at most {self.limit:,}", turn=first.turn, call=first.number)


class MaxErrors(Rule):
    """Number of tool calls that ended in an error."""

    limit: Count

    def check(self, session: Session) -> Finding:
        """Decide about one session; one without calls is not applicable."""
        if not session.calls:
            return NOT_APPLICABLE
        errors = [call for call in session.calls if call.status == "error"]
        if len(errors) <= self.limit:
            return PASS
        first = errors[self.limit]
        detail = f"{len(errors):,} call(s) with an error, at most {self.limit:,}; that of {tool_name(first.name)} is too many"
        return failed(detail, turn=first.turn, call=first.number)


class MaxCost(Rule):
    """Cost of a session in US dollars, as its agent recorded it."""

    limit: Amount

    def check(self, session: Session) -> Finding:
        """Decide about one session; one without a recorded cost is not applicable."""
        cost = session.metadata.get("cost_usd")
        if not isinstance(cost, int | float):
            return NOT_APPLICABLE
        return decided(cost > self.limit, f"{cost:.4f} USD, at most {self.limit:g}")


class MaxSeconds(Rule):
    """Time from the start of a session to its last change, in seconds."""

    limit: Amount

    def check(self, session: Session) -> Finding:
        """Decide about one session; one without both times is not applicable."""
        seconds = session.seconds()
        if seconds is None or session.is_empty:
            return NOT_APPLICABLE
        return decided(seconds > self.limit, f"{seconds:,.1f} s, at most {self.limit:g}")
