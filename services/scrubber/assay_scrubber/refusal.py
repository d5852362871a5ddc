"""The refusal policy of a tool server: which categories of personal data a call must not touch. Pure.

A server that knows the categories of the columns that a call would read (`assay_scrubber.columns`) asks `check` before it runs the call,
returns the refusal's `envelope()` to the agent, and captures its `summary()`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .policy import FLOOR, PolicyError
from .taxonomy import Category

#: `error_kind` of a call that the policy refuses.
PII_BLOCKED = "pii_blocked"


@dataclass(frozen=True, slots=True)
class RefusalPolicy:
    """The categories that no call may touch.

    Credentials, payment cards and government ids are always among them.
    """

    blocked: frozenset[Category] = FLOOR

    @classmethod
    def of(cls, names: Iterable[str] = ()) -> "RefusalPolicy":
        """Return the policy that also blocks these categories.

        Raises `PolicyError` that lists the twelve for another name.

        Call it when the server starts, so that a misspelt name never means less protection.
        """
        return cls(FLOOR | frozenset(_category(name) for name in names))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused call: the categories it would have touched, and those that the policy blocks."""

    attempted: frozenset[Category]
    blocked: frozenset[Category]

    def envelope(self) -> dict[str, Any]:
        """Return the response for the agent.

        It names the blocked categories alone, so that refusals do not describe the data.
        """
        names = ", ".join(sorted(self.blocked))
        return {
            "status": "refused",
            "error": {
                "kind": PII_BLOCKED,
                "message": f"the policy of this server blocks {names}",
                "recovery": "ask for other columns, or for a count without them",
            },
        }

    def summary(self) -> dict[str, list[str]]:
        """Return the `result_summary` of the captured call. The scrubber adds both sets to its row."""
        return {"pii_attempted": sorted(self.attempted), "pii_blocked": sorted(self.blocked)}


def check(categories: Iterable[str], policy: RefusalPolicy) -> Refusal | None:
    """Return the refusal of a call that would touch these categories; None if it may run.

    Raises `PolicyError` for another name.
    """
    attempted = frozenset(_category(name) for name in categories)
    blocked = attempted & policy.blocked
    return Refusal(attempted, blocked) if blocked else None


def declared(summary: Any) -> tuple[list[str], list[str]]:
    """Return the sets that the `result_summary` of a refused call states: attempted and blocked.

    Other names are left out.
    """
    if not isinstance(summary, dict):
        return [], []
    attempted, blocked = (_known(summary.get(name)) for name in ("pii_attempted", "pii_blocked"))
    return sorted(attempted | blocked), sorted(blocked)


def _category(name: str) -> Category:
    try:
        return Category(name)
    except ValueError:
        raise PolicyError(f"unknown category {name!r}; valid: {', '.join(sorted(Category))}") from None


def _known(names: Any) -> set[str]:
    listed = names if isinstance(names, list) else []
    return {name for name in listed if isinstance(name, str) and name in set(Category)}
