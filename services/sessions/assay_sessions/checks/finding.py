"""Findings of a rule on one session: pass, fail or not applicable, and the place that decided. Pure."""

import re
from typing import Final, Literal, NamedTuple

State = Literal["pass", "fail", "not_applicable"]
#: Names of tools as programs choose them. A model can call a tool by any text, which is captured text.
_TOOL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,63}")


class Place(NamedTuple):
    """A place in a session.

    The turn as in `intermediate_events`, and the number of the call among them, both from 1."""

    turn: int | None = None
    call: int | None = None

    def __str__(self) -> str:
        parts = [f"turn {self.turn}"] if self.turn is not None else []
        parts += [f"call {self.call}"] if self.call is not None else []
        return ", ".join(parts)


class Finding(NamedTuple):
    """The outcome of a rule on one session.

    `detail` has counts, limits and names of tools, never arguments, outputs or words."""

    state: State
    detail: str = ""
    place: Place = Place()


PASS: Final = Finding("pass")
NOT_APPLICABLE: Final = Finding("not_applicable")


def failed(detail: str, *, turn: int | None = None, call: int | None = None) -> Finding:
    """Return a failure at a place."""
    return Finding("fail", detail, Place(turn, call))


def decided(fails: bool, detail: str) -> Finding:
    """Return a failure of the whole session, or a pass."""
    return failed(detail) if fails else PASS


def tool_name(name: str) -> str:
    """Return a tool's name for a report, or a placeholder if it does not look like one."""
    return name if _TOOL_NAME.fullmatch(name) else "(a tool with an unusual name)"
