"""Pages of golden datasets, which evaluations test with."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from assay_console.page import Action, Ask, Document, Done, File, Page, Panel, Parameter
from assay_console.people import Role
from assay_console.scope import link
from assay_operations.errors import OperationError
from assay_operations.golden.datasets import (
    SavedCase,
    StoredDataset,
    cases_of,
    dataset_of,
    latest_version,
    list_datasets,
)
from assay_operations.golden.enough import Enough, enough_of
from assay_operations.golden.save import retire_case

if TYPE_CHECKING:
    from assay_evals.dataset.model import Dataset

#: Cases that the page of a dataset shows; the export has all.
SHOWN_MAX = 500
#: Lines of an export that are sent at a time.
_LINES = 200


class Datasets(Document):
    """Datasets of reviewed cases."""

    rows: Panel[list[StoredDataset]]


class Case(Document):
    """A case of a dataset."""

    case_id: str
    version: int
    event_id: str | None
    question: str
    expected: tuple[str, ...]
    null_case: bool
    expected_answer: str
    inclusion_probability: float
    reviewer: str
    at: datetime


class GoldenDataset(Document):
    """A dataset, its cases, and how to run an evaluation with it."""

    summary: StoredDataset
    cases: tuple[Case, ...]
    enough: Enough
    #: Commands that write it to a file, run an evaluation with it before a change and after it, and compare both.
    export: str
    run: str
    run_change: str
    compare: str
    #: True if there are too few cases for a pass that excludes a loss: `compare` then passes what shows no significant one.
    is_small: bool
    may_retire: bool


async def read_list(ask: Ask) -> Datasets:
    """Read the datasets of the project, or of all."""
    return Datasets(rows=await ask.panel(list_datasets, project=ask.scope.project))


async def read_one(ask: Ask) -> GoldenDataset:
    """Read one dataset."""
    summary = await _summary(ask)
    cases = await ask.store(cases_of, summary.project, summary.name)
    enough = enough_of(cases)
    # Null cases decide about another metric, which takes as many.
    is_small = enough.answerable < enough.needed or 0 < summary.null_cases < enough.needed
    file = f"{summary.name}.jsonl"
    # A run of another project would not find the questions of this one.
    run = f"assay eval run --dataset {file} --target MODULE:FUNCTION --project {summary.project} --store"
    return GoldenDataset(
        summary=summary,
        cases=tuple(case_of(each) for each in sorted(cases, key=lambda case: case.at, reverse=True)[:SHOWN_MAX]),
        enough=enough,
        export=f"assay dataset export {summary.name} --project {summary.project} > {file}",
        run=f"{run} --name main",
        run_change=f"{run} --name change",
        compare=f"assay eval compare main change --html report.html --dataset {file}"
        f"{' --inconclusive pass' if is_small else ''}",
        is_small=is_small,
        may_retire=ask.person.role >= Role.LABELLER,
    )


async def _summary(ask: Ask) -> StoredDataset:
    name = ask.path["name"]
    rows = [each for each in await ask.store(list_datasets, project=ask.scope.project) if each.name == name]
    if len(rows) > 1:
        raise OperationError(
            "invalid", f"several projects have a dataset of this name: {', '.join(each.project for each in rows)}",
            "choose a project",
        )  # fmt: skip
    if not rows:
        raise OperationError(
            "not_found", "no dataset of this name is stored", "make one of captured questions: /review"
        )
    return rows[0]


def case_of(each: SavedCase) -> Case:
    """Return a case for the page. Pure."""
    return Case(
        case_id=each.case_id,
        version=each.version,
        event_id=each.event_id,
        question=each.query,
        expected=each.expected_slugs or tuple(map(str, each.expected_chunk_ids)),
        null_case=each.null_case,
        expected_answer=each.expected_answer or "",
        inclusion_probability=each.inclusion_probability,
        reviewer=each.reviewer,
        at=each.at,
    )


async def export(ask: Ask) -> File:
    """Make the file of a dataset, as `assay dataset export` prints it."""
    summary = await _summary(ask)
    made = await ask.store(dataset_of, summary.name, project=summary.project)
    return File(f"{summary.name}-{made.version}.jsonl", "application/x-ndjson", _lines(made))


def _lines(made: "Dataset") -> Iterator[bytes]:
    from assay_evals.dataset.file_format import write_dataset

    waiting: list[str] = []
    for line in write_dataset(made):
        waiting.append(f"{line}\n")
        if len(waiting) == _LINES:
            yield "".join(waiting).encode()
            waiting.clear()
    yield "".join(waiting).encode()


async def retire(ask: Ask, fields: Mapping[str, str]) -> Done:
    """Take a case out of its dataset. One that is out already stays so."""
    project, name, case_id = fields.get("project") or "default", ask.path["name"], ask.path["case_id"]
    base = fields.get("base_version", "")
    if not (base.isascii() and base.isdecimal()):
        raise OperationError("invalid", "base_version: name the version that you saw")
    try:
        await ask.store(
            retire_case, ask.settings.store, project, name, case_id, ask.person.name, base_version=int(base)
        )
    except OperationError as error:
        before = await ask.store(latest_version, project, name, case_id) if error.kind == "not_found" else None
        if before is None:
            raise
    left = [each for each in await ask.store(list_datasets, project=project) if each.name == name]
    return Done(link(f"/datasets/{name}" if left else "/datasets", {"project": project}))


PAGE = Page(
    "datasets",
    "/datasets",
    "Datasets",
    "What do we test with?",
    read_list,
    Datasets,
    span="",
    by_project=True,
    key="d",
    sql="SELECT project, dataset, case_id, version, query, reviewer, at, retired FROM dataset_case_versions ORDER BY at DESC LIMIT 100",
)
ONE = Page(
    "dataset",
    "/datasets/{name}",
    "Dataset",
    "What is in it, and who decided?",
    read_one,
    GoldenDataset,
    span="",
    by_project=True,
    within="datasets",
    command="assay dataset export {name}{and_project}",
    export=export,
)
RETIRE = Action(
    "/datasets/{name}/cases/{case_id}/retire",
    "Take a case out of a dataset. Its versions stay in the store.",
    Role.LABELLER,
    retire,
    (
        Parameter("project", "Project of the dataset.", longest=64),
        Parameter("base_version", "Version that you saw.", longest=9),
    ),
)
