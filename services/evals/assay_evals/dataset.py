"""Golden datasets: questions with expected documents and answers. Pure: text in, models out.

Three forms are read, told apart by their first character and line:

- JSON, one object: `{"version": "1.0.0", "cases": [...]}`, optionally with `name`, `created_at`, `description` and others;
- NDJSON with a header: the first line is that object without `cases`, with `"record": "dataset"` or a `version`; each further line a case;
- NDJSON of cases alone; the version is then `0`.

The schema only grows. An unknown field of a case is rejected, since it may be a misspelt one; a team's own fields belong into
its `metadata`.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from assay_evals.dataset_fields import in_snake_case, nearest
from assay_evals.errors import EvalsError
from assay_evals.scorer_specs import CaseScorer
from assay_evals.strict_json import JsonError, JsonSyntaxError, loads
from assay_schema.limits import NAME_MAX_CHARS, QUERY_MAX_CHARS
from assay_schema.problems import in_words

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
        """True if an answer is expected, whatever is retrieved."""
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


def read_dataset(text: str) -> Dataset:
    """Parse a dataset. Raises `DatasetError` with every problem and its line or place."""
    header, records = _records(text.removeprefix("\ufeff"))  # as editors on Windows begin a file
    cases, problems = [], []
    place_by_id: dict[str, str] = {}
    for place, record in records:
        if isinstance(record, JsonError):
            problems.append(f"{place}: {record}")
            continue
        name = record.get("id") if isinstance(record, dict) else None
        if isinstance(name, str) and place_by_id.setdefault(name, place) != place:
            problems.append(f"{place}: the id {name[:NAME_MAX_CHARS]} is already that of {place_by_id[name]}")
        try:
            cases.append(Case.model_validate(record))
        except ValidationError as error:
            problems += [f"{place}: {explain(problem)}" for problem in error.errors()]
    if not records:
        problems.append("no cases: a dataset has at least one")
    try:
        dataset = Dataset.model_validate(header | {"cases": cases})
    except ValidationError as error:
        problems += [f"header: {explain(problem)}" for problem in error.errors()]
    if problems:
        raise DatasetError(problems)
    return dataset


def explain(problem: Any) -> str:
    """Describe one problem of a `ValidationError` with its field, never with a value."""
    where = ".".join(str(part)[:64] for part in problem["loc"])
    if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
        return f"{where}: not a field of a case{nearest(where, Case.model_fields)}; put your own fields into metadata"
    if problem["type"] == "extra_forbidden" and problem["loc"][0] == "scorers":
        return f"{where}: no such key{nearest(str(problem['loc'][-1]), CaseScorer.model_fields)}"
    message = in_words(problem)
    return f"{where}: {message}" if where else message


def _records(text: str) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """Return the header, and each record with its place; an invalid line becomes a `JsonError`."""
    broken: JsonSyntaxError | None = None
    try:
        whole = loads(text)
    except JsonSyntaxError as error:
        whole, broken = None, error
    except JsonError as error:
        begin, _, rest = text.strip().partition("\n")
        if not rest or isinstance(_line(begin), JsonSyntaxError):
            raise DatasetError([str(error)]) from None
        whole = None  # lines of JSON, each with its own problems
    if isinstance(whole, dict) and isinstance(whole.get("cases"), list):
        header = {key: value for key, value in whole.items() if key != "cases"}
        return header, [(f"case {number}", case) for number, case in enumerate(whole["cases"], start=1)]
    if isinstance(whole, list):
        return {}, [(f"case {number}", case) for number, case in enumerate(whole, start=1)]
    # Not splitlines(), which also splits at characters that may stand in a JSON string, such as U+2028.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    records = [(f"line {number}", _line(line)) for number, line in lines]
    if broken and records and not any(isinstance(record, dict) for _, record in records):
        # Nothing here is a line of NDJSON: one document, broken in one place, and not as many problems as it has lines.
        raise DatasetError([f"line {broken.line if len(lines) > 1 else lines[0][0]}: {broken}"])
    if records and _is_header(first := records[0][1]):
        return {key: value for key, value in first.items() if key not in {"record", "cases"}}, records[1:]
    return {}, records


def _line(text: str) -> Any:
    try:
        return loads(text)
    except JsonError as error:
        return error


def _is_header(record: Any) -> bool:
    """True if a first line is a header. A case with a missing or misspelt query must not pass for one."""
    return isinstance(record, dict) and (
        record.get("record") == "dataset" or ("version" in record and not record.keys() & {"id", "query"})
    )


def write_dataset(dataset: Dataset) -> Iterator[str]:
    """Yield the dataset as NDJSON lines with a header, without line ends, for `read_dataset`."""
    header = dataset.model_dump(mode="json", exclude={"cases"}, exclude_none=True)
    yield json.dumps({"record": "dataset"} | header, ensure_ascii=False)
    for case in dataset.cases:
        yield json.dumps(case.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)


@dataclass(frozen=True)
class DatasetStats:
    """Number of cases of each kind."""

    cases: int
    by_query_type: dict[str, int]
    by_source: dict[str, int]
    by_complexity: dict[str, int]
    judged_documents: int
    mean_relevant: float
    with_answer: int
    duplicate_queries: int


def dataset_stats(dataset: Dataset) -> DatasetStats:
    """Count the cases of a dataset."""
    relevant = [sum(grade > 0 for grade in case.relevance.values()) for case in dataset.cases]
    queries = Counter(normalise(case.query) for case in dataset.cases)
    ranked = [count for count in relevant if count]
    return DatasetStats(
        cases=len(dataset.cases),
        by_query_type=dict(Counter(case.query_type for case in dataset.cases).most_common()),
        by_source=dict(Counter(case.source for case in dataset.cases).most_common()),
        by_complexity=dict(Counter(case.complexity for case in dataset.cases).most_common()),
        judged_documents=len({document for case in dataset.cases for document in case.relevance}),
        mean_relevant=sum(ranked) / len(ranked) if ranked else 0.0,
        with_answer=sum(case.expected_answer is not None for case in dataset.cases),
        duplicate_queries=sum(count - 1 for count in queries.values()),
    )


def normalise(query: str) -> str:
    """Normalize case and white space of a query, to compare queries."""
    return re.sub(r"\s+", " ", query.lower()).strip()


@dataclass(frozen=True)
class DatasetDiff:
    """Ids of cases, sorted. `changed` contains the fields that differ."""

    added: list[str]
    removed: list[str]
    changed: dict[str, list[str]]

    @property
    def same(self) -> bool:
        """True if nothing differs."""
        return not (self.added or self.removed or self.changed)


def diff_datasets(old: Dataset, new: Dataset) -> DatasetDiff:
    """Return the changes of the cases between two datasets."""
    before, after = ({case.id: case for case in each.cases} for each in (old, new))
    changed = {}
    for name in sorted(before.keys() & after.keys()):
        one, other = before[name].model_dump(mode="json"), after[name].model_dump(mode="json")
        if fields := sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key)):
            changed[name] = fields
    return DatasetDiff(sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys()), changed)


def merge_datasets(base: Dataset, others: Iterable[Dataset], *, version: str | None = None) -> Dataset:
    """Merge the cases of all datasets, in order.

    A case in several datasets must be the same in each, else `DatasetError` names it.
    """
    merged = {case.id: case for case in base.cases}
    problems = []
    for other in others:
        problems += [
            f"case {case.id} differs between the datasets: rename one, or take one away"
            for case in other.cases
            if merged.setdefault(case.id, case) != case
        ]
    if problems:
        raise DatasetError(problems)
    return base.model_copy(update={"cases": list(merged.values()), "version": version or base.version})
