"""A team's rules, checked in beside its dataset: scorers, thresholds, floors and slices. Pure but for reading the file.

TOML or YAML, by the file's name. What nobody knows is refused, with the nearest known name: a rule that holds nothing must not look as if.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from assay_evals.case_metrics import PATH
from assay_evals.coverage import CHECK_FAILED, JUDGE_NOISE
from assay_evals.dataset_fields import nearest
from assay_evals.errors import EvalsError
from assay_evals.files import text_of
from assay_evals.scorer_specs import SCORE, NamedScorer
from assay_evals.slices import FIELDS, SliceFloor
from assay_evals.verdicts import AT_RANK, DEFAULT_RULES, Rule, Stage, is_share, rule_of
from assay_schema.problems import in_words

Number = Annotated[float, Field(allow_inf_nan=False)]
#: Metrics that have no rule of their own by default.
_WITHOUT_RULE = ("required_citations", "required_entities", "recall", "precision", "ndcg", "hit")
LONGEST_BYTES = 1_000_000


class RulesError(EvalsError):
    """A rules file that cannot be used. Says which key is wrong and how to mend it."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class MetricRule(_Part):
    """What one metric is held against."""

    threshold: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="The worsening that fails."
    )
    floor: Number | None = Field(default=None, description="What the mean must reach.")
    stage: Stage | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "MetricRule":
        if not self.model_fields_set:
            raise ValueError("says nothing: give it a threshold, a floor or a stage")
        return self


class SliceRule(_Part):
    """What slices of a field are held against: the one of `value`, or each."""

    field: str
    value: str | None = None
    floors: dict[str, Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]] = Field(default_factory=dict)
    stage: Stage = Stage.BLOCK

    @model_validator(mode="after")
    def _known(self) -> "SliceRule":
        if self.field not in FIELDS:
            raise ValueError(f"no field of slices{nearest(self.field[:64], FIELDS)}: it is one of {', '.join(FIELDS)}")
        if self.value is not None and not self.floors:
            raise ValueError("one slice by its value needs floors")
        unfit = next((metric for metric in self.floors if metric in DEFAULT_RULES and not is_share(metric)), None)
        if unfit:
            raise ValueError(f"{unfit} is no share: slices have floors of shares")
        return self


class RulesFile(_Part):
    """The whole file."""

    scorers: list[NamedScorer] = Field(default_factory=list)
    metrics: dict[str, MetricRule] = Field(default_factory=dict)
    slices: list[SliceRule] = Field(default_factory=list)

    @model_validator(mode="after")
    def _consistent(self) -> "RulesFile":
        names = [each.name for each in self.scorers]
        if again := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two scorers are called {again}: give one another name")
        for metric, rule in self.metrics.items():
            expect_share(metric, rule.floor)
        return self

    def rules(self) -> dict[str, Rule]:
        """The rule of each metric, the default ones included."""
        found = dict(DEFAULT_RULES)
        for metric, given in self.metrics.items():
            found[metric] = changed(found, metric, given.model_dump(exclude_none=True))
        return found

    @property
    def fields(self) -> list[str]:
        """What it slices by."""
        return list(dict.fromkeys(each.field for each in self.slices))

    def slice_floors(self) -> list[SliceFloor]:
        """The floors of slices."""
        return [
            SliceFloor(each.field, metric, floor, each.value, each.stage)
            for each in self.slices
            for metric, floor in each.floors.items()
        ]

    def expect_slices(self, values: Mapping[str, Iterable[str]]) -> None:
        """Raises `RulesError` for a slice that no case is in: `values` by field."""
        for place, each in enumerate(self.slices):
            known = sorted(set(values[each.field]))
            if not known:
                raise RulesError(f"slices.{place}.field: no case has a {each.field}, so no floor would be held")
            if each.value is not None and each.value not in known:
                where = f"slices.{place}.value: no case has the {each.field} {each.value}"
                raise RulesError(f"{where}{nearest(each.value, known)}")

    def expect_known(self, measured: Iterable[str] = ()) -> None:
        """Raises `RulesError` where a rule names a metric that is neither known nor `measured`."""
        known = [*measured, *(each.metric for each in self.scorers)]
        for metric in self.metrics:
            expect_metric(metric, known, f"metrics.{metric}")
        for place, each in enumerate(self.slices):
            for metric in each.floors:
                expect_metric(metric, known, where := f"slices.{place}.floors.{metric}")
                if not is_share(metric):
                    raise RulesError(
                        f"{where}: slices hold shares alone; hold it for the whole run, in [metrics.{metric}]"
                    )


def expect_share(metric: str, floor: float | None) -> None:
    """Raises `ValueError` for a floor that no share can reach, or fall below."""
    if floor is not None and is_share(metric) and not 0 <= floor <= 1:
        raise ValueError(f"metrics.{metric}.floor: is not between 0 and 1, where shares are")


def changed(rules: Mapping[str, Rule], metric: str, given: Mapping[str, Any]) -> Rule:
    """A metric's rule with what is given of it. A scorer's metric that is held against something blocks, unless a stage is given."""
    before = rule_of(metric, rules)
    blocks = {"stage": Stage.BLOCK} if metric.startswith(SCORE) and {"threshold", "floor"} & given.keys() else {}
    return replace(before, **{**blocks, **given})


def expect_metric(metric: str, measured: Sequence[str], where: str) -> None:
    """Raises `RulesError` for a metric that is neither Assay's nor `measured`, with the nearest that is."""
    kind, at, rank = metric.partition("@")
    by_kind = (at and kind in AT_RANK and rank.isdecimal()) or metric.startswith((PATH, CHECK_FAILED, JUDGE_NOISE))
    if by_kind or metric in DEFAULT_RULES or metric in _WITHOUT_RULE or metric in measured:
        return
    known = sorted({*DEFAULT_RULES, *_WITHOUT_RULE, *measured})
    if metric.startswith(SCORE):
        ours = sorted(each for each in measured if each.startswith(SCORE))
        near = nearest(metric, ours) or (f": there are {', '.join(ours)}" if ours else ": there is no scorer")
        raise RulesError(f"{where}: no scorer of that name{near}")
    raise RulesError(f"{where}: no metric of that name{nearest(metric, known)}")


def read_rules(path: Path) -> RulesFile:
    """The rules of a file. Raises `RulesError`."""
    text = text_of(path)
    if len(text) > LONGEST_BYTES:
        raise RulesError(f"{path}: longer than {LONGEST_BYTES:,} characters")
    if not (parsed := _parsed(path, text)):
        raise RulesError(f"{path}: no rules: an empty file would hold nothing back, in silence")
    try:
        return RulesFile.model_validate(parsed)
    except ValidationError as error:
        raise RulesError(f"{path}: {_explain(error.errors()[0])}") from None


def _parsed(path: Path, text: str) -> Any:
    if path.suffix == ".toml":
        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise RulesError(f"{path}: not TOML: {error}") from None
    if path.suffix not in (".yaml", ".yml"):
        raise RulesError(f"{path}: name it .toml, .yaml or .yml")
    import yaml

    try:
        twice = _key_twice(yaml.compose(text, Loader=yaml.SafeLoader))
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        raise RulesError(f"{path}: not YAML{f': line {mark.line + 1}' if mark else ''}") from None
    if twice is not None:
        raise RulesError(
            f"{path}: line {twice.start_mark.line + 1}: the key {twice.value[:64]} stands twice in one table"
        )
    return {} if value is None else value


def _key_twice(top: Any) -> Any:
    """The second of two equal keys of a YAML document, as its node; None where each stands once."""
    left, known = [top], set[int]()
    while left:
        node = left.pop()
        if node is None or isinstance(node.value, str) or id(node) in known:
            continue
        known.add(id(node))  # an alias is the node it stands for
        seen = set[str]()
        for each in node.value:
            key, value = each if isinstance(each, tuple) else (None, each)
            left.append(value)
            if key is not None and isinstance(key.value, str):
                if key.value in seen:
                    return key
                seen.add(key.value)
    return None


def _explain(problem: Any) -> str:
    """One problem with its key, never a value; a key that nobody knows with the nearest that is known."""
    where = ".".join(str(part)[:64] for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        parts: dict[str, type[BaseModel]] = {"scorers": NamedScorer, "metrics": MetricRule, "slices": SliceRule}
        kind = parts.get(str(problem["loc"][0]), RulesFile) if len(problem["loc"]) > 1 else RulesFile
        return f"{where}: no such key{nearest(str(problem['loc'][-1]), kind.model_fields)}"
    message = in_words(problem)
    return f"{where}: {message}" if where else message
