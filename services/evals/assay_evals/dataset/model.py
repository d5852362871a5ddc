"""Models of a golden dataset: cases, versions, fingerprints. Pure."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from assay_evals.dataset.scorer_specs import CaseScorer
from assay_evals.errors import EvalsError
from assay_evals.field_names import in_snake_case
from assay_schema.limits import NAME_MAX_CHARS, QUERY_MAX_CHARS

#: A document's source, None where it does not matter or is not known, and its slug.
Document = tuple[str | None, str]
QueryType = Literal["temporal", "actor", "technical", "status", "multi-hop", "null"]
Grade = Annotated[int, Field(ge=0, le=3)]
Identifier = Annotated[str, Field(min_length=1, max_length=NAME_MAX_CHARS)]


class DatasetError(EvalsError):
    """A dataset that cannot be read.

    Each problem names its line or case; none quotes a query or an answer.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


def _in_utc(value: datetime) -> datetime:
    return value if value.tzinfo else value.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_in_utc)]


class TimeWindow(BaseModel):
    """A span of time, `since` <= time < `until`; one of them may be missing.

    A time without a zone is in UTC, a date stands for its midnight.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    since: Moment | None = None
    until: Moment | None = None

    @model_validator(mode="after")
    def _some_time(self) -> "TimeWindow":
        if self.since is None and self.until is None:
            raise ValueError("a window needs since, until, or both")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ValueError("since must be before until")
        return self

    def __contains__(self, time: datetime) -> bool:
        time = _in_utc(time)
        return (self.since is None or self.since <= time) and (self.until is None or time < self.until)


class Case(BaseModel):
    """One question. A null case expects nothing: its documents have no grade above 0.

    Ids are slugs, or `source::slug` where one slug stands in several sources.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    id: Identifier
    query: Annotated[str, Field(min_length=1, max_length=QUERY_MAX_CHARS)]
    query_type: QueryType = "technical"
    expected_ids: list[Identifier] = Field(default_factory=list, description="What should be retrieved, best first.")
    graded_relevance: dict[Identifier, Grade] = Field(
        default_factory=dict, description="Grades 0 (irrelevant) to 3; wins over `expected_ids`, which count as 1."
    )
    expected_answer: str | None = None
    required_citations: list[Identifier] = Field(default_factory=list, description="Ids an answer must cite.")
    required_entities: list[str] = Field(default_factory=list, description="Words an answer must contain.")
    time_window: TimeWindow | None = Field(default=None, description="When what is retrieved should be from.")
    expected_actors: list[Identifier] = Field(
        default_factory=list, description="Whom results should concern, any of them."
    )
    complexity: Literal["simple", "medium", "complex"] = "simple"
    source: Literal["manual", "synthetic", "production", "scenario"] = "manual"
    notes: str | None = None
    cluster: str | None = Field(
        default=None, description="Cases of one session or document share it, and are resampled together."
    )
    inclusion_probability: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="With which probability a mined case was chosen; averages weigh it by the inverse."
    )

    tags: list[Identifier] = Field(default_factory=list, description="What a team groups cases by.")
    reviewed: bool = Field(
        default=True, description="False for a mined or generated case, until a person has reviewed it."
    )
    scorers: list[CaseScorer] = Field(
        default_factory=list,
        description="What its answer must be like, also written `assert`; each is a metric `score:NAME`.",
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="A team's own fields; Assay only keeps them.")

    @model_validator(mode="before")
    @classmethod
    def _other_spellings(cls, value: Any) -> Any:
        """Accept names in camelCase, and `relevant: [{slug, grade, source_id?}]` for `graded_relevance`."""
        value = in_snake_case(value)
        if isinstance(value, dict) and "assert" in value:
            if "scorers" in value:
                raise ValueError("assert is another way to write scorers: keep one of them")
            value["scorers"] = value.pop("assert")
        if isinstance(value, dict) and "relevant" in value:
            judged = value.pop("relevant")
            if not isinstance(judged, list) or not all(
                isinstance(each, Mapping) and isinstance(each.get("slug"), str) for each in judged
            ):
                raise ValueError("relevant must be a list of objects with a slug")
            value["graded_relevance"] = value.get("graded_relevance") or {
                document_id(each["slug"], each.get("source_id")): each.get("grade", 1) for each in judged
            }
        return value

    @model_validator(mode="after")
    def _consistent(self) -> "Case":
        if not self.query.strip():
            raise ValueError("query is blank: nothing is asked")
        relevant = any(grade > 0 for grade in self.relevance.values())
        if self.query_type == "null" and relevant:
            raise ValueError("a null case expects nothing: take its expected ids away, or change its query_type")
        if self.query_type != "null" and not relevant and not self.says_of_answers:
            raise ValueError(
                "no expected id: name at least one, say what the answer should be, or set query_type to null"
            )
        if len(set(self.expected_ids)) != len(self.expected_ids):
            raise ValueError("expected_ids holds an id twice")
        return self

    @property
    def says_of_answers(self) -> bool:
        """True if an answer is expected, regardless of the results."""
        return bool(self.expected_answer or self.required_entities or self.required_citations or self.scorers)

    @property
    def relevance(self) -> dict[str, int]:
        """Return grades by document id; other ids have grade 0."""
        return self.graded_relevance or dict.fromkeys(self.expected_ids, 1)


def document_id(slug: str, source: str | None = None) -> str:
    """Return the name of a document: the slug, or `source::slug`."""
    return f"{source}::{slug}" if source else slug


class Change(BaseModel):
    """Changes of one version of a dataset: ids of cases, and the reason in a sentence."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    version: str
    at: str
    note: str
    added: list[Identifier] = Field(default_factory=list)
    removed: list[Identifier] = Field(default_factory=list)
    changed: list[Identifier] = Field(default_factory=list)


class Dataset(BaseModel):
    """A versioned set of cases.

    Unknown header fields are kept: none changes the questions or expectations.
    """

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    version: str = "0"
    name: str = "dataset"
    created_at: str | None = None
    description: str | None = None
    changelog: list[Change] = Field(default_factory=list, description="What each version changed, the newest first.")
    cases: list[Case]

    @model_validator(mode="before")
    @classmethod
    def _other_spellings(cls, value: Any) -> Any:
        return in_snake_case(value)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over every field of every case, ordered by id: equal exactly if the cases are equal."""
        ordered = sorted(self.cases, key=lambda case: case.id)
        return hashlib.sha256(b"\n".join(_canonical(case) for case in ordered)).hexdigest()


#: Fields that cases had not from the beginning: where they are not set a case has the bytes, and a dataset the fingerprint, it had before.
_LATER_FIELDS = ("time_window", "expected_actors", "tags", "scorers", "metadata")
#: Fields that say nothing of what is asked or expected.
_ASIDE = {"reviewed"}


def _canonical(case: Case) -> bytes:
    unset = _ASIDE | {name for name in _LATER_FIELDS if not getattr(case, name)}
    return orjson.dumps(case.model_dump(mode="json", exclude=unset), option=orjson.OPT_SORT_KEYS)


def normalise(query: str) -> str:
    """Normalize case and white space of a query, to compare queries."""
    return re.sub(r"\s+", " ", query.lower()).strip()
