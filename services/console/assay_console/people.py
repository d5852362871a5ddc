"""People and their roles. Pure."""

from dataclasses import dataclass
from enum import IntEnum


class Role(IntEnum):
    """Permission of a person. Each role includes the ones before it."""

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
    """A person or a key of the API: name for the audit records, role. `project`: the only one it reads."""

    name: str
    role: Role
    project: str | None = None
