"""Import datasets and runs: TREC, BEIR, CSV, and a gate's relevance judgements.

Pure: text in, models out.

Every problem names its line; none quotes a query or an answer.
"""

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pydantic import ValidationError

from assay_evals.dataset.file_format import explain
from assay_evals.dataset.model import Case, Dataset, DatasetError, Document, document_id
from assay_evals.dataset.qrels import DEFAULT_SOURCE, KnownQuery
from assay_evals.field_names import in_snake_case, nearest
from assay_evals.strict_json import JsonError, loads
from assay_schema.limits import NAME_MAX_CHARS

#: The highest grade of a case; grades above it, which some collections have, count as this one.
_GRADE_MAX = 3
#: Maximum number of problems that are reported per file.
_PROBLEMS_MAX = 50
#: Columns of a CSV file that hold several values, and what parts these.
_LISTS = ("expected_ids", "required_citations", "required_entities", "expected_actors", "tags")
_PARTS = ";"
#: First words of a header line of judgements, as BEIR writes one.
_HEADERS = ("query-id", "query_id", "qid")

Grades = dict[str, dict[str, int]]


def read_judgements(text: str) -> Grades:
    """Parse grades by question and document.

    Formats: TREC's `qid 0 docid grade`, or BEIR's `qid docid grade` with or without a header line. Grades below 0,
    which TREC uses for spam, become 0. Raises `DatasetError`.
    """
    found: Grades = defaultdict(dict)
    problems = []
    for number, line in _lines(text):
        fields = line.split("\t") if "\t" in line else line.split()
        name, document, grade = (fields[0], fields[-2], _whole(fields[-1])) if len(fields) in (3, 4) else ("", "", None)
        if number == 1 and grade is None and fields[0].lower() in _HEADERS:
            continue
        if grade is None or not name or not document:
            problems.append(f"line {number}: write qid 0 docid grade, or qid docid grade")
        elif found[name].setdefault(document, grade) != grade:
            problems.append(f"line {number}: the same document has another grade above")
    if not found and not problems:
        problems.append("no judgements")
    _raise(problems)
    return {
        name: {each: min(max(grade, 0), _GRADE_MAX) for each, grade in grades.items()} for name, grades in found.items()
    }


def read_queries(text: str) -> dict[str, str]:
    """Parse questions by id. Raises `DatasetError`.

    Formats: lines of `qid<TAB>question`, or BEIR's NDJSON with `_id` and `text`.
    """
    queries: dict[str, str] = {}
    problems = []
    for number, line in _lines(text):
        name, query = _json_query(line) if line.startswith("{") else [*line.split("\t", 1), ""][:2]
        if not name or not query.strip():
            problems.append(f'line {number}: write qid<TAB>question, or {{"_id": "...", "text": "..."}}')
        elif queries.setdefault(name, query) != query:
            problems.append(f"line {number}: the same id has another question above")
    if not queries and not problems:
        problems.append("no questions")
    _raise(problems)
    return queries


def _json_query(line: str) -> tuple[str, str]:
    try:
        record = loads(line)
    except JsonError:
        return "", ""
    name, query = (record.get("_id"), record.get("text")) if isinstance(record, dict) else (None, None)
    return (str(name), query) if isinstance(name, str | int) and isinstance(query, str) else ("", "")


def from_judgements(grades: Grades, queries: Mapping[str, str], *, name: str) -> tuple[Dataset, list[str]]:
    """Build a dataset of the judged questions, with notes on omitted ones.

    Omitted are questions without a judgement, judgements without a question, and questions whose documents all have
    grade 0.
    """
    cases: list[Case] = []
    problems: list[str] = []
    for query_id, query in queries.items():
        if any(grades.get(query_id, {}).values()):
            cases += _case({"id": query_id, "query": query, "graded_relevance": grades[query_id]}, query_id, problems)
    _raise(problems)
    left = {
        "question(s) without a judgement": len(queries.keys() - grades.keys()),
        "question(s) without a relevant document": sum(
            not any(grades[each].values()) for each in queries.keys() & grades.keys()
        ),
        "judged id(s) without a question": len(grades.keys() - queries.keys()),
    }
    notes = [f"left out: {count:,} {what}" for what, count in left.items() if count]
    if not cases:
        raise DatasetError(["no question has a relevant document: do the ids of both files belong together?", *notes])
    return Dataset(name=name, cases=cases), notes


def from_csv(text: str, *, name: str) -> Dataset:
    """Parse a dataset from a CSV table with a header line.

    Columns are a case's fields, `;` separates several values; graded ids are `id=3`. Raises `DatasetError`, also for an
    unknown column; your own column is called `metadata.NAME`.
    """
    # The whole file is in memory already, so no cell is too long to read.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    problems: list[str] = []
    cases: list[Case] = []
    places: dict[str, str] = {}
    try:
        columns = [column.strip() for column in next(reader, [])]
        problems += _other_separator(columns) or _wrong_columns(columns)
        for row in reader if not problems else ():
            place = f"line {reader.line_num}"
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(columns):
                problems.append(f"{place}: {len(row)} cells, and {len(columns)} columns")
                continue
            try:
                record = _record(columns, row)
            except ValueError as error:
                problems.append(f"{place}: {error}")
                continue
            for case in _case({"id": f"row-{len(cases) + 1}"} | record, place, problems):
                cases.append(case)
                if places.setdefault(case.id, place) != place:
                    problems.append(f"{place}: the id {case.id} is already that of {places[case.id]}")
    except csv.Error as error:
        problems.append(f"line {reader.line_num}: not CSV ({error})")
    if not cases and not problems:
        problems.append("no cases: write a header line and a line for each")
    _raise(problems)
    return Dataset(name=name, cases=cases)


def _other_separator(columns: list[str]) -> list[str]:
    """Return a header in one cell that another separator would split into several columns."""
    parted = {"semicolons": ";", "tabs": "\t", "pipes": "|"}
    return [
        f"line 1: the columns are parted by {name}: write the table with commas"
        for name, character in parted.items()
        if len(columns) == 1
        and "query" in (each.strip() for each in columns[0].split(character))
        and character in columns[0]
    ]


def _wrong_columns(columns: list[str]) -> list[str]:
    case_fields = list(Case.model_fields)
    problems = [
        f"line 1: column {column[:64]!r}: not a field of a case{nearest(column, case_fields)}; name your own metadata.{column[:32]}"
        for column in columns
        if in_snake_case({column: ""}).keys().isdisjoint(case_fields) and not column.startswith("metadata.")
    ]
    problems += [f"line 1: column {column[:64]!r} stands twice" for column in {*columns} if columns.count(column) > 1]
    if columns and "query" not in columns:
        problems.append("line 1: no column query")
    return problems


def _record(columns: list[str], row: list[str]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for column, text in in_snake_case(dict(zip(columns, row, strict=True))).items():
        cell = text.strip()
        if not cell:
            continue
        if column.startswith("metadata."):
            metadata = fields.setdefault("metadata", {})
            assert isinstance(metadata, dict)
            metadata[column.removeprefix("metadata.")] = cell
        elif column == "graded_relevance":
            fields[column] = _graded(cell)
        elif column in _LISTS:
            fields[column] = _parts(cell)
        elif column == "reviewed":
            fields[column] = {"true": True, "false": False}.get(cell.lower(), cell)
        elif column == "inclusion_probability":
            fields[column] = float(cell)
        else:
            fields[column] = text if column in ("query", "expected_answer") else cell
    return fields


def _parts(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(_PARTS) if part.strip()]


def _graded(cell: str) -> dict[str, int]:
    graded = {}
    for part in _parts(cell):
        name, _, grade = part.rpartition("=")
        if not name or (value := _whole(grade)) is None:
            raise ValueError("graded_relevance: write id=grade, parted by ;")
        graded[name] = value
    return graded


def from_known(questions: Iterable[KnownQuery], *, name: str) -> Dataset:
    """Build a dataset of a gate's relevance judgements.

    The expected first document has grade 3, others 1; sources are kept, except for the default.
    """
    cases: list[Case] = []
    problems: list[str] = []
    for known in questions:
        grades = {_named(each): 1 for each in known.relevant}
        if known.expected_top1:
            grades[_named(known.expected_top1)] = _GRADE_MAX
        cases += _case(
            {"id": known.query_id, "query": known.query, "graded_relevance": grades}, known.query_id, problems
        )
    _raise(problems)
    return Dataset(name=name, cases=cases)


def _named(document: Document) -> str:
    source, slug = document
    return document_id(slug, None if source == DEFAULT_SOURCE else source)


def read_trec_run(text: str) -> dict[str, list[str]]:
    """Parse documents by question, best first, from a TREC run. Raises `DatasetError`.

    Lines are `qid Q0 docid rank score tag`, ordered by score; ties keep their order.
    """
    scored: dict[str, dict[str, float]] = defaultdict(dict)
    problems = []
    for number, line in _lines(text):
        fields = line.split()
        score = _number(fields[4]) if len(fields) == 6 else None
        if score is None:
            problems.append(f"line {number}: write qid Q0 docid rank score tag")
        elif fields[2] in scored[fields[0]]:
            problems.append(f"line {number}: the question has this document above")
        else:
            scored[fields[0]][fields[2]] = score
    if not scored and not problems:
        problems.append("no results")
    _raise(problems)
    return {name: sorted(scores, key=lambda each: -scores[each]) for name, scores in scored.items()}


def _case(record: dict[str, object], place: str, problems: list[str]) -> list[Case]:
    try:
        return [Case.model_validate(record)]
    except ValidationError as error:
        problems += [f"{place[:NAME_MAX_CHARS]}: {explain(problem)}" for problem in error.errors()]
        return []


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if line.strip():
            yield number, line.strip("\r")


def _whole(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 10 else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _raise(problems: list[str]) -> None:
    if len(problems) > _PROBLEMS_MAX:
        problems = [*problems[:_PROBLEMS_MAX], f"and {len(problems) - _PROBLEMS_MAX:,} more"]
    if problems:
        raise DatasetError(problems)
