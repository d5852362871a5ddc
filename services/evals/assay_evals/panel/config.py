"""A panel file: the judges, the dimensions that they score, and what passes.

TOML. Unknown keys are rejected, because a setting without effect must not look effective.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from assay_evals.errors import EvalsError
from assay_evals.files import text_of
from assay_schema.problems import in_words

#: Scores are integers from 1 to this.
HIGHEST = 10
#: A name of a family or a dimension; a dimension is also a key of the reply.
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,39}$")]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PanelError(EvalsError):
    """An unusable panel file. The message names the key and the fix."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


#: Keys that one backend uses alone. The prices of Anthropic's models are those of the price list.
_OF_OPENAI = frozenset({"price_input_usd", "price_output_usd", "json_mode"})
_OF_ANTHROPIC = frozenset({"effort"})


class PanelJudge(_Part):
    """A judge of the panel: a model, its family, and where it is called."""

    family: Name
    backend: Literal["anthropic", "openai"]
    model: Annotated[str, Field(min_length=1, max_length=200)]
    base_url: str | None = None
    api_key_file: Path | None = None
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    price_input_usd: Price | None = None
    price_output_usd: Price | None = None
    json_mode: Literal["json_schema", "json_object", "none"] = "json_schema"
    effort: Literal["low", "medium", "high"] = "low"
    max_output_tokens: Annotated[int, Field(ge=256, le=32_000)] = 1_024

    @model_validator(mode="after")
    def _used(self) -> "PanelJudge":
        if self.api_key_file and self.api_key_env:
            raise ValueError("has two keys: set api_key_file or api_key_env")
        other = _OF_ANTHROPIC if self.backend == "openai" else _OF_OPENAI
        if unused := sorted(self.model_fields_set & other):
            raise ValueError(f"has {unused[0]}, which the backend {self.backend} does not use")
        return self

    @property
    def name(self) -> str:
        """The judge as reports name it."""
        return f"{self.family}/{self.model}"


class Dimension(_Part):
    """One property of an answer that judges score from 1 to 10."""

    name: Name
    description: Annotated[str, Field(min_length=1, max_length=500)]


#: Dimensions of a panel that names none.
QUESTION_ANSWERING = (
    Dimension(
        name="correctness",
        description="The answer says what the reference says or the rubric asks for, if there is one, and otherwise nothing that is false.",
    ),
    Dimension(name="directness", description="The answer answers the question that was asked, and says little else."),
)


class Panel(_Part):
    """The whole file.

    An answer passes if each dimension's mean reaches `pass_mean` and no score is below `pass_least`.
    """

    judges: Annotated[tuple[PanelJudge, ...], Field(min_length=2, max_length=5)]
    dimensions: Annotated[tuple[Dimension, ...], Field(min_length=1, max_length=8)] = QUESTION_ANSWERING
    pass_mean: Annotated[float, Field(ge=1, le=HIGHEST, allow_inf_nan=False)] = 7.0
    pass_least: Annotated[float, Field(ge=1, le=HIGHEST, allow_inf_nan=False)] = 5.0

    @model_validator(mode="after")
    def _different(self) -> "Panel":
        if len({judge.family for judge in self.judges}) < 2:
            raise ValueError(
                "has judges of one family only, which share their blind spots: add a judge of another family"
            )
        names = [judge.name for judge in self.judges]
        if len(set(names)) < len(names):
            raise ValueError("lists one judge twice: --cycles has each judge score an answer several times")
        if len({dimension.name for dimension in self.dimensions}) < len(self.dimensions):
            raise ValueError("lists one dimension twice")
        return self

    @property
    def families(self) -> tuple[str, ...]:
        """The families, in the file's order."""
        return tuple(dict.fromkeys(judge.family for judge in self.judges))


def read_panel(path: Path) -> Panel:
    """Read a panel file. Raises `PanelError`; never quotes the file's content."""
    try:
        document = tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise PanelError(f"{path}: not TOML: {error}") from None
    except EvalsError as error:
        raise PanelError(str(error)) from None
    try:
        return Panel.model_validate(document)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        message = "unknown key" if problem["type"] == "extra_forbidden" else in_words(problem)
        raise PanelError(f"{path}: {where}: {message}" if where else f"{path}: {message}") from None
