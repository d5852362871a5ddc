"""Golden datasets: questions with expected documents and answers. Pure: text in, models out.

Three forms are read, told apart by their first character and line:

- JSON, one object: `{"version": "1.0.0", "cases": [...]}`, optionally with `name`, `created_at`, `description` and others;
- NDJSON with a header: the first line is that object without `cases`, with `"record": "dataset"` or a `version`; each further line a case;
- NDJSON of cases alone; the version is then `0`.

The schema only grows. An unknown field of a case is rejected, since it may be a misspelt one; a team's own fields belong into
its `metadata`.
"""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from assay_evals.dataset.model import Case, Dataset, DatasetError
from assay_evals.dataset.scorer_specs import CaseScorer
from assay_evals.field_names import nearest
from assay_evals.strict_json import JsonError, JsonSyntaxError, loads
from assay_schema.limits import NAME_MAX_CHARS
from assay_schema.problems import in_words


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


def looks_like_dataset(text: str) -> bool:
    """Return True for a text that begins as a golden dataset does, valid or not."""
    text = text.removeprefix("\ufeff").strip()
    for beginning in (text, text.partition("\n")[0]):
        record = _line(beginning)
        if isinstance(record, dict):
            return _is_header(record) or "cases" in record or ("query" in record and "queries" not in record)
    return False


def write_dataset(dataset: Dataset) -> Iterator[str]:
    """Yield the dataset as NDJSON lines with a header, without line ends, for `read_dataset`."""
    header = dataset.model_dump(mode="json", exclude={"cases"}, exclude_none=True)
    yield json.dumps({"record": "dataset"} | header, ensure_ascii=False)
    for case in dataset.cases:
        yield json.dumps(case.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
