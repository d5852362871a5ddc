"""Who asks, and what they may do. Pure."""

from dataclasses import dataclass
from enum import IntEnum


class Role(IntEnum):
    """What a person may do. Each role includes the ones before it."""

    #: Read every page.
    VIEWER = 1
    #: Label answers and edit datasets.
    LABELLER = 2
    #: Acknowledge alerts and requeue dead letters.
    OPERATOR = 3

    @property
    def label(self) -> str:
        """The role in lower case, as pages and the API show it."""
        return self.name.lower()


@dataclass(frozen=True)
class Person:
    """Who asks: a name for the audit records, and a role. `project` limits a key of the API to one project."""

    name: str
    role: Role
    project: str | None = None
