"""Actions on the dead letters of a filter: their plan, and the check that they are those shown."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from assay_console.page import Ask, Parameter
from assay_operations.dead_letters.choose import Choice
from assay_operations.dead_letters.letters import Name, filter_of
from assay_operations.errors import OperationError
from assay_operations.operator_config import data_of

P = TypeVar("P")

COMMENT = Parameter("comment", "Why, for the audit record.", longest=500, typed=True)
EXPECTED = Parameter("expected", "The `digest` that was shown; other letters are refused.", longest=64)


class LettersPlan(Protocol):
    """A plan of an action on dead letters."""

    @property
    def names(self) -> tuple[Name, ...]:
        """The letters."""

    @property
    def digest(self) -> str:
        """A text that names the letters: other letters have another one."""


def planned(ask: Ask, verb: str, plan: Callable[[Path, Choice, Path], P], command: str, reason: str, stage: str) -> P:
    """Plan an action on the letters of a filter. Raises `OperationError`.

    Blocks: call it in a thread.

    `command`: what to run instead, if this console has no credentials of an operator.
    """
    file = ask.settings.console.operator_config
    if file is None:
        raise OperationError("refused", "this console has no credentials of an operator", f"run: {command}")
    wanted = filter_of(reason or None, stage or None, None)
    return plan(data_of(file), Choice(verb, None, not wanted, wanted), file)


def check_shown(plan: LettersPlan, fields: Mapping[str, str]) -> None:
    """Raise `OperationError` if the letters are not those that the person saw."""
    if fields.get("expected") != plan.digest:
        raise OperationError(
            "conflict",
            f"the dead letters have changed: there are {len(plan.names):,} now",
            "look again, then decide",
        )
