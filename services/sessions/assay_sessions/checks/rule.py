"""One rule: its settings and its check of a session. Pure."""

from abc import abstractmethod
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from assay_runtime.expressions import compiled
from assay_sessions.checks.finding import Finding
from assay_sessions.checks.session import Session


def _usable(pattern: str) -> str:
    compiled(pattern)
    return pattern


#: A pattern of RE2. One that RE2 does not support is refused when the file is read.
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=20_000), AfterValidator(_usable)]
#: Name of a tool; `*` stands for any characters.
ToolPattern = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Rule(BaseModel):
    """Settings that every rule has. `check` decides about one session."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    required: bool = Field(default=False, description="A failure fails the gate.")
    min_pass_rate: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = Field(
        default=1.0, description="Smallest share of the applicable sessions that must pass."
    )
    min_applicable: Annotated[int, Field(ge=0)] = Field(
        default=1, description="Fewest sessions to which the rule must apply for a verdict."
    )

    @abstractmethod
    def check(self, session: Session) -> Finding:
        """Decide about one session."""


def named(name: str, patterns: tuple[str, ...]) -> bool:
    """Tell if a tool's name is in a list, in which `*` stands for any characters."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
