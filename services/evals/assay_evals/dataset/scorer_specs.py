"""Specifications of scorers: kind, parameter and name, from a dataset, a file or the command line.

Pure.

| type | value | the score |
| --- | --- | --- |
| `contains`, `not_contains` | a text, or a list of texts | 1 where the answer holds all of them, or none |
| `equals` | a text, or a list of texts | 1 where the answer is one of them, white space around it aside |
| `regex` | a pattern of RE2 | 1 where it is found in the answer |
| `json_schema` | a JSON Schema (2020-12) | 1 where the answer is JSON that fits |
| `similarity` | a text, or nothing for the case's expected answer | F1 of the words of both (`answer_f1`), 0 to 1 |
| `rubric` | a question about the answer | what the judge's model says: 1 for yes, 0 for no |
| `function` | `module:function` | what the function returns, 0 to 1; never in a dataset, which runs no code |
"""

import hashlib
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from assay_evals.errors import EvalsError
from assay_evals.field_names import nearest
from assay_runtime.expressions import compiled
from assay_schema.problems import in_words

#: What names of scorers' metrics begin with.
SCORE = "score:"
TEXTS = ("contains", "not_contains", "equals")
TYPES = (*TEXTS, "regex", "json_schema", "similarity", "rubric", "function")
#: Longest text of a scorer, in characters.
VALUE_MAX = 20_000
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


class ScorerUsageError(EvalsError):
    """A scorer with an invalid specification; the message shows a valid one."""


class ScorerSpec(BaseModel):
    """One scorer. Its metric is `score:NAME`, where the name defaults to its type."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    type: str
    value: str | list[str] | dict[str, Any] | None = None
    name: str | None = None
    ignore_case: bool = False

    @field_validator("type")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in TYPES:
            raise ValueError(f"no scorer{nearest(value[:64], TYPES)}: it is one of {', '.join(TYPES)}")
        return value

    @field_validator("name")
    @classmethod
    def _usable(cls, value: str | None) -> str | None:
        if value is not None and not _NAME.fullmatch(value):
            raise ValueError("a name is a letter, then letters, digits and . _ - (64 at most)")
        return value

    @model_validator(mode="after")
    def _fits(self) -> "ScorerSpec":
        value = self.value
        if self.ignore_case and self.type not in (*TEXTS, "regex"):
            raise ValueError(f"ignore_case says nothing to {self.type}")
        if self.type in TEXTS and (not self.texts or not all(text.strip() for text in self.texts)):
            raise ValueError(f"{self.type} needs a value: a text, or a list of texts, none of them blank")
        if any(len(text) > VALUE_MAX for text in self.texts):
            raise ValueError(f"value is longer than {VALUE_MAX:,} characters")
        if self.type in ("regex", "rubric", "function") and not (isinstance(value, str) and value.strip()):
            raise ValueError(f"{self.type} needs a value: a text")
        if self.type == "similarity" and not (value is None or (isinstance(value, str) and value.strip())):
            raise ValueError("similarity takes a text as its value, or none for the case's expected_answer")
        if self.type == "function" and not _FUNCTION.fullmatch(str(value)):
            raise ValueError("function needs module:function as its value")
        if self.type == "regex":
            compiled(self.pattern)
        if self.type == "json_schema":
            if not isinstance(value, dict):
                raise ValueError("json_schema needs a value: a JSON Schema, an object")
            _expect_schema(value)
        return self

    @property
    def texts(self) -> list[str]:
        """The value if it is a text, or texts."""
        return [self.value] if isinstance(self.value, str) else self.value if isinstance(self.value, list) else []

    @property
    def pattern(self) -> str:
        """The regular expression, with its flag."""
        return f"(?i){self.value}" if self.ignore_case else str(self.value)

    @property
    def metric(self) -> str:
        """Name of its metric."""
        return SCORE + (self.name or self.type)

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that change if it measures something different under the same name."""
        asked = orjson.dumps(self.model_dump(exclude={"name"}), option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(asked).hexdigest()[:12]


class CaseScorer(ScorerSpec):
    """An assertion of a case."""

    @field_validator("type")
    @classmethod
    def _runs_no_code(cls, value: str) -> str:
        if value == "function":
            raise ValueError("a dataset runs no code: name the function with --scorer, or in the rules file")
        return value


class NamedScorer(ScorerSpec):
    """A scorer of a rules file: it has a name."""

    name: str = Field()


def _expect_schema(schema: dict[str, Any]) -> None:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError) as error:
        where = getattr(error, "json_path", "$")
        raise ValueError(f"no JSON Schema: see {where}") from None
    for name, value in _keywords(schema):
        if name in ("patternProperties", "$dynamicRef"):
            raise ValueError(f"a schema here has no {name}")
        if name == "$ref" and isinstance(value, str) and not value.startswith("#"):
            raise ValueError("a schema here refers to itself alone: a $ref begins with #")
        if name == "pattern" and isinstance(value, str):
            compiled(value)


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    left = [schema]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield from value.items()
            left += value.values()
        elif isinstance(value, list):
            left += value


def spec_of(text: str) -> ScorerSpec:
    """Parse a scorer from the command line. Raises `ScorerUsageError`.

    Forms: `[NAME=]TYPE[:VALUE]`, or `[NAME=]module:function`.

    A JSON Schema is named by its file.
    """
    match = re.fullmatch(r"(?:([A-Za-z][A-Za-z0-9_.-]*)=)?([A-Za-z_][\w.]*)(?::(.*))?", text, re.DOTALL)
    if match is None:
        raise ScorerUsageError("write NAME=TYPE:VALUE, such as polite=contains:please, or NAME=module:function")
    name, kind, value = match.groups()
    given: dict[str, Any] = {"type": kind, "value": value, "name": name}
    if kind not in TYPES and _FUNCTION.fullmatch(f"{kind}:{value}"):
        given = {"type": "function", "value": f"{kind}:{value}", "name": name or str(value).rpartition(".")[2][:64]}
    if kind == "json_schema" and value is not None:
        given["value"] = _schema_file(Path(value))
    try:
        return ScorerSpec.model_validate(given)
    except ValidationError as error:
        problem = error.errors()[0]
        raise ScorerUsageError(in_words(problem)) from None


def _schema_file(path: Path) -> Any:
    from assay_evals.strict_json import JsonError, loads

    try:
        return loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScorerUsageError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    except (JsonError, UnicodeDecodeError) as error:
        raise ScorerUsageError(f"{path}: {error if isinstance(error, JsonError) else 'not UTF-8'}") from None
