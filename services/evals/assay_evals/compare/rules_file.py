"""A team's rules file, next to its dataset: scorers, thresholds, floors and slices.

TOML or YAML, by the file's name. Unknown keys are rejected with the nearest known name, because a rule without effect
must not look effective.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from assay_evals.compare.slices import SliceFloor
from assay_evals.compare.verdicts import DEFAULT_RULES, Rule, Stage, rule_of
from assay_evals.dataset.case_slices import FIELDS
from assay_evals.dataset.scorer_specs import SCORE, NamedScorer
from assay_evals.errors import EvalsError
from assay_evals.field_names import nearest
from assay_evals.files import text_of
from assay_evals.metrics.answer_coverage import CHECK_FAILED, JUDGE_NOISE
from assay_evals.metrics.case_metrics import PATH
from assay_evals.metrics.metric_names import AT_RANK, is_share
from assay_schema.problems import in_words

Number = Annotated[float, Field(allow_inf_nan=False)]
#: Metrics without their own rule by default.
_WITHOUT_RULE = ("required_citations", "required_entities", "recall", "precision", "ndcg", "hit")
LONGEST_BYTES = 1_000_000


class RulesError(EvalsError):
    """An unusable rules file. The message names the invalid key and the fix."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class MetricRule(_Part):
    """Requirements for one metric."""

    threshold: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Change for the worse that fails."
    )
    floor: Number | None = Field(default=None, description="Minimum of the mean.")
    stage: Stage | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "MetricRule":
        if not self.model_fields_set:
            raise ValueError("has no effect: give it a threshold, a floor or a stage")
        return self


class SliceRule(_Part):
    """Requirements for slices of a field: the slice of `value`, or each."""

    field: str
    value: str | None = None
    floors: dict[str, Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]] = Field(default_factory=dict)
    stage: Stage = Stage.BLOCK

    @model_validator(mode="after")
    def _known(self) -> "SliceRule":
        if self.field not in FIELDS:
            raise ValueError(f"not a field of slices{nearest(self.field[:64], FIELDS)}: use one of {', '.join(FIELDS)}")
        if self.value is not None and not self.floors:
            raise ValueError("one slice by its value needs floors")
        unfit = next((metric for metric in self.floors if metric in DEFAULT_RULES and not is_share(metric)), None)
        if unfit:
            raise ValueError(f"{unfit} is not a share: slices have floors of shares only")
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
            raise ValueError(f"two scorers are called {again}: rename one")
        for metric, rule in self.metrics.items():
            expect_share(metric, rule.floor)
        return self

    def rules(self) -> dict[str, Rule]:
        """Return the rule of each metric, including the default ones."""
        by_metric = dict(DEFAULT_RULES)
        for metric, given in self.metrics.items():
            by_metric[metric] = changed(by_metric, metric, given.model_dump(exclude_none=True))
        return by_metric

    @property
    def fields(self) -> list[str]:
        """Fields of the slices."""
        return list(dict.fromkeys(each.field for each in self.slices))

    def slice_floors(self) -> list[SliceFloor]:
        """Return the floors of slices."""
        return [
            SliceFloor(each.field, metric, floor, each.value, each.stage)
            for each in self.slices
            for metric, floor in each.floors.items()
        ]

    def expect_slices(self, values: Mapping[str, Iterable[str]]) -> None:
        """Raise `RulesError` for a slice without cases: `values` by field."""
        for place, each in enumerate(self.slices):
            slice_values = sorted(set(values[each.field]))
            if not slice_values:
                raise RulesError(f"slices.{place}.field: no case has a {each.field}, so the floor would have no effect")
            if each.value is not None and each.value not in slice_values:
                where = f"slices.{place}.value: no case has the {each.field} {each.value}"
                raise RulesError(f"{where}{nearest(each.value, slice_values)}")

    def expect_known(self, measured: Iterable[str] = ()) -> None:
        """Raise `RulesError` if a rule names a metric that is neither known nor `measured`."""
        metric_names = [*measured, *(each.metric for each in self.scorers)]
        for metric in self.metrics:
            expect_metric(metric, metric_names, f"metrics.{metric}")
        for place, each in enumerate(self.slices):
            for metric in each.floors:
                expect_metric(metric, metric_names, where := f"slices.{place}.floors.{metric}")
                if not is_share(metric):
                    raise RulesError(
                        f"{where}: slices support shares only; use it for the whole run, in [metrics.{metric}]"
                    )


def expect_share(metric: str, floor: float | None) -> None:
    """Raise `ValueError` for a floor that no share can reach, or fall below."""
    if floor is not None and is_share(metric) and not 0 <= floor <= 1:
        raise ValueError(f"metrics.{metric}.floor: must be between 0 and 1, like a share")


def changed(rules: Mapping[str, Rule], metric: str, given: Mapping[str, Any]) -> Rule:
    """Return a metric's rule with the given changes.

    A scorer's metric with a requirement blocks, unless a stage is given.
    """
    before = rule_of(metric, rules)
    blocks = {"stage": Stage.BLOCK} if metric.startswith(SCORE) and {"threshold", "floor"} & given.keys() else {}
    return replace(before, **{**blocks, **given})


def expect_metric(metric: str, measured: Sequence[str], where: str) -> None:
    """Raise `RulesError` with the nearest known metric, unless it is Assay's or `measured`."""
    kind, at, rank = metric.partition("@")
    by_kind = (at and kind in AT_RANK and rank.isdecimal()) or metric.startswith((PATH, CHECK_FAILED, JUDGE_NOISE))
    if by_kind or metric in DEFAULT_RULES or metric in _WITHOUT_RULE or metric in measured:
        return
    metric_names = sorted({*DEFAULT_RULES, *_WITHOUT_RULE, *measured})
    if metric.startswith(SCORE):
        ours = sorted(each for each in measured if each.startswith(SCORE))
        near = nearest(metric, ours) or (
            f": the available ones are {', '.join(ours)}" if ours else ": there are no scorers"
        )
        raise RulesError(f"{where}: no scorer of that name{near}")
    raise RulesError(f"{where}: no metric of that name{nearest(metric, metric_names)}")


def read_rules(path: Path) -> RulesFile:
    """Read the rules of a file. Raises `RulesError`."""
    text = text_of(path)
    if len(text) > LONGEST_BYTES:
        raise RulesError(f"{path}: longer than {LONGEST_BYTES:,} characters")
    if not (parsed := _parsed(path, text)):
        raise RulesError(f"{path}: no rules: an empty file would check nothing, silently")
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
            f"{path}: line {twice.start_mark.line + 1}: the key {twice.value[:64]} appears twice in one table"
        )
    return {} if value is None else value


def _key_twice(top: Any) -> Any:
    """Return the second of two equal keys of a YAML document, as its node; None without duplicates."""
    left, known = [top], set[int]()
    while left:
        node = left.pop()
        if node is None or isinstance(node.value, str) or id(node) in known:
            continue
        known.add(id(node))  # an alias is the node it stands for
        keys = set[str]()
        for each in node.value:
            key, value = each if isinstance(each, tuple) else (None, each)
            left.append(value)
            if key is not None and isinstance(key.value, str):
                if key.value in keys:
                    return key
                keys.add(key.value)
    return None


def _explain(problem: Any) -> str:
    """Describe one problem with its key, never a value; for an unknown key, with the nearest known one."""
    where = ".".join(str(part)[:64] for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        parts: dict[str, type[BaseModel]] = {"scorers": NamedScorer, "metrics": MetricRule, "slices": SliceRule}
        kind = parts.get(str(problem["loc"][0]), RulesFile) if len(problem["loc"]) > 1 else RulesFile
        return f"{where}: unknown key{nearest(str(problem['loc'][-1]), kind.model_fields)}"
    message = in_words(problem)
    return f"{where}: {message}" if where else message
