"""The judge's YAML file: checks for every answer, boosts for the sample, prices of models.

Pure except for reading the file. Checks are layer 1: they are free, need no model, and run on all answers. Each is a
named yes or no.
"""

from collections.abc import Callable
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from assay_judge.patterns import compiled, found, instructs
from assay_judge.text import citations_of, script_of
from assay_schema.events import Answer
from assay_schema.problems import in_words
from assay_schema.scores import CheckName
from assay_schema.settings import SettingsError

Probability = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def _compiled(pattern: str | None) -> str | None:
    if pattern is not None:
        compiled(pattern)
    return pattern


class Check(_Part):
    """A check. It passes if all of its conditions are met."""

    name: CheckName
    not_empty: bool = False
    citations_exist: bool = False
    same_script_as_query: bool = False
    no_injected_instruction: bool = False
    must_match: str | None = None
    must_not_match: str | None = None
    characters_at_least: Annotated[int, Field(ge=0)] | None = None
    characters_at_most: Annotated[int, Field(ge=0)] | None = None
    latency_ms_at_most: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    citations_at_least: Annotated[int, Field(ge=0)] | None = None

    @field_validator("must_match", "must_not_match")
    @classmethod
    def _a_pattern(cls, pattern: str | None) -> str | None:
        return _compiled(pattern)

    @model_validator(mode="after")
    def _asks_for_something(self) -> "Check":
        if self.model_fields_set <= {"name"}:
            raise ValueError(f"check {self.name} has no condition; give it one of {', '.join(_ASKS)}")
        return self

    def passes(self, answer: Answer) -> bool:
        """True if an answer passes."""
        return all(
            asks(answer, getattr(self, name))
            for name, asks in _ASKS.items()
            if getattr(self, name) not in (None, False)
        )


def _citations_exist(answer: Answer, _: Any) -> bool:
    context_ids = {context.id for context in answer.contexts}
    _, unknown = citations_of(answer)
    return not unknown and all(citation.context_id in context_ids for citation in answer.citations)


_ASKS: dict[str, Callable[[Answer, Any], bool]] = {
    "not_empty": lambda answer, _: bool(answer.answer.strip()),
    "citations_exist": _citations_exist,
    "same_script_as_query": lambda answer, _: script_of(answer.answer) in (script_of(answer.query), None),
    "no_injected_instruction": lambda answer, _: (
        not any(instructs(text) for text in (answer.answer, *(context.text for context in answer.contexts)))
    ),
    "must_match": lambda answer, pattern: found(pattern, answer.answer),
    "must_not_match": lambda answer, pattern: not found(pattern, answer.answer),
    "characters_at_least": lambda answer, least: len(answer.answer) >= least,
    "characters_at_most": lambda answer, most: len(answer.answer) <= most,
    "latency_ms_at_most": lambda answer, most: answer.latency_ms <= most,
    "citations_at_least": lambda answer, least: len(answer.citations) + len(citations_of(answer)[0]) >= least,
}


class Boost(_Part):
    """A rule to judge some answers more often, for review.

    Boosted answers count in published rates only as far as they are in the base stream.
    """

    name: CheckName
    probability: Probability
    project: str | None = None
    top_score_below: Annotated[float, Field(allow_inf_nan=False)] | None = None
    failed_check: CheckName | None = None
    query_matches: str | None = None
    answer_matches: str | None = None
    model_matches: str | None = None

    @field_validator("query_matches", "answer_matches", "model_matches")
    @classmethod
    def _a_pattern(cls, pattern: str | None) -> str | None:
        return _compiled(pattern)

    def applies(self, project: str, answer: Answer, checks: dict[str, bool]) -> bool:
        """True if all its conditions are met."""
        scores = [context.score for context in answer.contexts if context.score is not None]
        patterns = (
            (self.query_matches, answer.query),
            (self.answer_matches, answer.answer),
            (self.model_matches, answer.model),
        )
        return (
            self.project in (None, project)
            and (self.top_score_below is None or (bool(scores) and max(scores) < self.top_score_below))
            and (self.failed_check is None or checks.get(self.failed_check) is False)
            and all(pattern is None or found(pattern, text) for pattern, text in patterns)
        )


class Price(_Part):
    """US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None
    #: Price of a request in a batch, as a share of the price.
    batch: Probability = 0.5


class Prices(_Part):
    """A dated price list."""

    as_of: str
    models: dict[str, Price]

    @field_validator("as_of", mode="before")
    @classmethod
    def _a_date(cls, value: Any) -> str:
        return str(value)  # YAML parses it as a date


class JudgeConfig(_Part):
    """The whole file. Defaults come with Assay."""

    checks: list[Check]
    boosts: list[Boost]
    prices: Prices

    @model_validator(mode="after")
    def _names_are_distinct(self) -> "JudgeConfig":
        for what in (self.checks, self.boosts):
            names = [each.name for each in what]
            if repeated := {name for name in names if names.count(name) > 1}:
                raise ValueError(f"named twice: {', '.join(sorted(repeated))}")
        return self

    def check(self, answer: Answer) -> dict[str, bool]:
        """Run all checks (layer 1). Returns by name whether the answer passes."""
        return {check.name: check.passes(answer) for check in self.checks}

    def boosts_for(self, project: str, answer: Answer, checks: dict[str, bool]) -> list[tuple[str, float]]:
        """Return the names and probabilities of the boosts that apply."""
        return [(boost.name, boost.probability) for boost in self.boosts if boost.applies(project, answer, checks)]

    @cached_property
    def known_models(self) -> str:
        """Names of the models with a price, for messages."""
        return ", ".join(sorted(self.prices.models))


def load_judge_config(path: Path | None) -> JudgeConfig:
    """Load the rules of a file over the defaults.

    Raises `SettingsError` that names the place of an error.
    """
    ours = yaml.safe_load(files("assay_judge").joinpath("rules.yaml").read_text(encoding="utf-8"))
    if path is None:
        return JudgeConfig.model_validate(ours)
    try:
        theirs = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read judge.rules_file: {error}") from None
    except yaml.YAMLError as error:
        raise SettingsError(f"judge.rules_file {path} is not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(theirs, dict):
        raise SettingsError(f"judge.rules_file {path}: must contain checks, boosts or prices")
    merged = ours | theirs
    if isinstance(theirs.get("prices"), dict) and isinstance(theirs["prices"].get("models"), dict):
        merged["prices"] = {
            "as_of": theirs["prices"].get("as_of", "unknown"),
            "models": ours["prices"]["models"] | theirs["prices"]["models"],
        }
    try:
        return JudgeConfig.model_validate(merged)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise SettingsError(f"judge.rules_file {path}: {where}: {in_words(problem)}") from None
