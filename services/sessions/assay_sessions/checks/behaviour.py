"""Rules on the calls of an agent: loops, refusals, edits, tools, commands, outputs. Pure."""

from collections import Counter
from typing import Annotated

from pydantic import Field, model_validator

from assay_runtime.expressions import found
from assay_sessions.checks.finding import NOT_APPLICABLE, PASS, Finding, failed, tool_name
from assay_sessions.checks.rule import Pattern, Rule, ToolPattern, named
from assay_sessions.checks.session import MadeCall, Session
from assay_sessions.checks.tools import SeenPaths, command_of, patched, paths_of
from assay_sessions.readers.results import UNKNOWN_NAME


class Answered(Rule):
    """The session ended with an answer."""

    def check(self, session: Session) -> Finding:
        """Decide about one session; aborted ones are those of `not_aborted`."""
        if session.is_empty or session.status == "aborted":
            return NOT_APPLICABLE
        return PASS if session.status == "answered" else failed("no answer after the last turn of the user")


class NotAborted(Rule):
    """The session was not interrupted."""

    def check(self, session: Session) -> Finding:
        """Decide about one session."""
        if session.is_empty:
            return NOT_APPLICABLE
        return failed("interrupted") if session.status == "aborted" else PASS


class NoLoops(Rule):
    """No call is repeated with the same arguments."""

    in_a_row: Annotated[int, Field(ge=0)] = Field(
        default=3, description="Equal calls in a row that fail; 0: any number."
    )
    overall: Annotated[int, Field(ge=0)] = Field(default=0, description="Equal calls that fail; 0: any number.")

    @model_validator(mode="after")
    def _has_a_limit(self) -> "NoLoops":
        if 1 in (self.in_a_row, self.overall):
            raise ValueError("in_a_row and overall must be 0 or at least 2: one call is no repetition")
        if not self.in_a_row and not self.overall:
            raise ValueError("in_a_row and overall are both 0: give one of them at least 2")
        return self

    def check(self, session: Session) -> Finding:
        """Decide about one session; one with too few calls for a repetition is not applicable."""
        if len(session.calls) < min(limit for limit in (self.in_a_row, self.overall) if limit):
            return NOT_APPLICABLE
        counts, row, before = Counter[str](), 0, None
        for call, key in zip(session.calls, session.call_keys, strict=True):
            row = row + 1 if key == before else 1
            before = key
            counts[key] += 1
            if row == self.in_a_row:
                return self._failed(call, f"{row:,} equal calls of {tool_name(call.name)} in a row")
            if counts[key] == self.overall:
                return self._failed(call, f"{self.overall:,} equal calls of {tool_name(call.name)}")
        return PASS

    @staticmethod
    def _failed(call: MadeCall, detail: str) -> Finding:
        return failed(detail, turn=call.turn, call=call.number)


class NoCallAfterRefusal(Rule):
    """A refused call is not made again with the same arguments before the user speaks."""

    def check(self, session: Session) -> Finding:
        """Decide about one session; one without a refusal is not applicable."""
        refused = set[tuple[int, str]]()
        for call, key in zip(session.calls, session.call_keys, strict=True):
            if (call.turn, key) in refused:
                return failed(f"{tool_name(call.name)} again after its refusal", turn=call.turn, call=call.number)
            if call.status == "refused":
                refused.add((call.turn, key))
        return PASS if refused else NOT_APPLICABLE


class ReadsBeforeEdits(Rule):
    """A file is read before it is edited."""

    def check(self, session: Session) -> Finding:
        """Decide about one session; one without a successful edit of a named file is not applicable.

        A file counts as read if the agent read or wrote it, or ran a command that names it.
        """
        seen, edits = SeenPaths(), 0
        for call in session.calls:
            if call.status != "success":
                continue
            edited = _edited(call)
            edits += len(edited)
            if any(path not in seen for path in edited):
                return failed(f"{tool_name(call.name)} of a file that was not read", turn=call.turn, call=call.number)
            if call.role == "run":
                seen.add_command(command_of(call.args))
            elif call.role is not None:
                for path in (*paths_of(call.args), *(path for path, _ in patched(call.args))):
                    seen.add(path)
        return PASS if edits else NOT_APPLICABLE


def _edited(call: MadeCall) -> list[str]:
    if call.role != "edit":
        return []
    return [*paths_of(call.args), *(path for path, existed in patched(call.args) if existed)]


class NoForbiddenTools(Rule):
    """Some tools are never called."""

    tools: Annotated[tuple[ToolPattern, ...], Field(min_length=1)]

    def check(self, session: Session) -> Finding:
        """Decide about one session."""
        if session.is_empty:
            return NOT_APPLICABLE
        for call in session.calls:
            if named(call.name, self.tools):
                return failed(f"{tool_name(call.name)} is forbidden", turn=call.turn, call=call.number)
        return PASS


class RequiredTools(Rule):
    """Each of some tools is called at least once."""

    tools: Annotated[tuple[ToolPattern, ...], Field(min_length=1)]

    def check(self, session: Session) -> Finding:
        """Decide about one session."""
        if session.is_empty:
            return NOT_APPLICABLE
        names = {call.name for call in session.calls}
        lacking = [tool for tool in self.tools if not any(named(name, (tool,)) for name in names)]
        return failed(f"not called: {', '.join(lacking)}") if lacking else PASS


class NoUnknownTools(Rule):
    """Only tools that exist are called."""

    def check(self, session: Session) -> Finding:
        """Decide about one session; one without calls is not applicable.

        The agent knows its tools and wrote the error: there is no list of tools here.
        """
        for call in session.calls:
            if call.error_kind == UNKNOWN_NAME:
                detail = f"{tool_name(call.name)} is not a tool of the agent, according to its log; only the agent's settings add one"
                return failed(detail, turn=call.turn, call=call.number)
        return PASS if session.calls else NOT_APPLICABLE


class NoFailedCommands(Rule):
    """Commands exit with 0."""

    ignore: tuple[Pattern, ...] = Field(default=(), description="Commands that may fail.")

    def check(self, session: Session) -> Finding:
        """Decide about one session; one without a command with a known outcome is not applicable."""
        commands = 0
        for call in session.calls:
            if call.role != "run" or not call.outcome_known:
                continue
            if any(found(pattern, command_of(call.args)) for pattern in self.ignore):
                continue
            commands += 1
            if call.failed:
                code = "" if call.exit_code is None else f" with exit code {call.exit_code}"
                return failed(f"{tool_name(call.name)} failed{code}", turn=call.turn, call=call.number)
        return PASS if commands else NOT_APPLICABLE


class NoTruncatedOutputs(Rule):
    """The agent saw the results of its calls whole."""

    def check(self, session: Session) -> Finding:
        """Decide about one session; one without calls is not applicable."""
        for call in session.calls:
            if call.truncated:
                return failed(f"the result of {tool_name(call.name)} was cut", turn=call.turn, call=call.number)
        return PASS if session.calls else NOT_APPLICABLE
