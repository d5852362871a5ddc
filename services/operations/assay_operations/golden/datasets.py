"""Datasets of reviewed cases in the store."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assay_operations.errors import OperationError
from assay_operations.labelling.queues import checked_name
from assay_operations.time_bounds import utc

if TYPE_CHECKING:
    from assay_evals.dataset.model import Case, Dataset
    from assay_runtime.store import Client as Store

_CASES = """
SELECT project, dataset, case_id, version, toString(c.event_id) AS event_id, query, expected_slugs, expected_chunk_ids, null_case,
    expected_answer, inclusion_probability, reviewer, at, retired
FROM dataset_case_versions AS c
WHERE ({project:String} = '' OR project = {project:String}) AND ({dataset:String} = '' OR dataset = {dataset:String})
    AND ({case:String} = '' OR case_id = {case:String})
ORDER BY project, dataset, case_id, version DESC
LIMIT 1 BY project, dataset, case_id
"""
_QUESTIONS = """
SELECT case_id, argMax(query, version) FROM dataset_case_versions
WHERE project = {project:String} AND dataset = {dataset:String} AND case_id IN {cases:Array(String)}
GROUP BY case_id
"""


@dataclass(frozen=True)
class SavedCase:
    """The latest version of a reviewed case."""

    project: str
    dataset: str
    case_id: str
    version: int
    #: The retrieval that it came from, if any.
    event_id: str | None
    query: str
    expected_slugs: tuple[str, ...]
    expected_chunk_ids: tuple[int, ...]
    null_case: bool
    expected_answer: str | None
    inclusion_probability: float
    reviewer: str
    at: datetime
    #: True if this version takes the case out of the dataset.
    retired: bool = False


@dataclass(frozen=True)
class StoredDataset:
    """A dataset in the store: what it contains, and who changed it last."""

    project: str
    name: str
    version: str
    fingerprint: str
    cases: int
    null_cases: int
    reviewers: tuple[str, ...]
    at: datetime


def list_datasets(store: "Store", *, project: str = "") -> list[StoredDataset]:
    """List the datasets of a project, or of all, with their versions and fingerprints."""
    groups: dict[tuple[str, str], list[SavedCase]] = {}
    for case in _read(store, project=project):
        groups.setdefault((case.project, case.dataset), []).append(case)
    return [_summary(cases) for cases in groups.values() if any(not case.retired for case in cases)]


def cases_of(store: "Store", project: str, dataset: str, *, with_retired: bool = False) -> list[SavedCase]:
    """Return the cases of a dataset, none if there is no such dataset."""
    cases = _read(store, project=checked_name(project, "project"), dataset=checked_name(dataset, "dataset"))
    return [case for case in cases if with_retired or not case.retired]


def latest_version(store: "Store", project: str, dataset: str, case_id: str) -> SavedCase | None:
    """Return the latest version of a case, which may be retired; None for a new case."""
    return next(iter(_read(store, project=project, dataset=dataset, case=case_id)), None)


def questions_of(store: "Store", project: str, dataset: str, case_ids: tuple[str, ...]) -> dict[str, str]:
    """Return the questions of cases by id, in the latest version; without those that are not stored."""
    wanted = {"project": project, "dataset": dataset, "cases": list(case_ids)}
    return {str(case): str(query) for case, query in store.query(_QUESTIONS, parameters=wanted).result_rows}


def dataset_of(store: "Store", name: str, *, project: str = "") -> "Dataset":
    """Return a dataset in the form of files.

    Raises `OperationError` if there is none, or if several projects have one of this name.
    """
    cases = list(_read(store, project=project, dataset=checked_name(name, "dataset")))
    projects = sorted({case.project for case in cases if not case.retired})
    if len(projects) > 1:
        raise OperationError(
            "invalid", f"several projects have a dataset {name}: {', '.join(projects)}", "name one with --project"
        )
    if not projects:
        raise OperationError("not_found", f"no dataset {name}{f' of project {project}' if project else ''} is stored")
    return in_file_form([case for case in cases if case.project == projects[0]])


def in_file_form(cases: list[SavedCase]) -> "Dataset":
    """Convert the cases of one dataset to the form of files. Pure.

    `cases` are the latest versions, retired ones too. The version of the dataset is the number of saved versions of its cases, so it
    rises with each change.
    """
    from assay_evals.dataset.model import Dataset

    return Dataset(
        name=cases[0].dataset,
        version=str(sum(case.version for case in cases)),
        created_at=max(case.at for case in cases).date().isoformat(),
        cases=[_file_case(case) for case in cases if not case.retired],
    )


def _file_case(case: SavedCase) -> "Case":
    from assay_evals.dataset.model import Case

    metadata: dict[str, Any] = {"event_id": case.event_id} if case.event_id else {}
    if case.expected_slugs and case.expected_chunk_ids:
        metadata["expected_chunk_ids"] = list(case.expected_chunk_ids)
    return Case(
        id=case.case_id,
        query=case.query,
        query_type="null" if case.null_case else "technical",
        expected_ids=list(case.expected_slugs) or [str(chunk) for chunk in case.expected_chunk_ids],
        expected_answer=case.expected_answer,
        source="production",
        inclusion_probability=case.inclusion_probability,
        metadata=metadata,
    )


def _summary(cases: list[SavedCase]) -> StoredDataset:
    made, last, first = in_file_form(cases), max(case.at for case in cases), cases[0]
    live = [case for case in cases if not case.retired]
    reviewers = tuple(sorted({case.reviewer for case in live}))
    null_cases = sum(case.null_case for case in live)
    return StoredDataset(
        first.project, first.dataset, made.version, made.fingerprint, len(live), null_cases, reviewers, last
    )


def _read(store: "Store", *, project: str = "", dataset: str = "", case: str = "") -> Iterable[SavedCase]:
    rows = store.query(_CASES, parameters={"project": project, "dataset": dataset, "case": case}).named_results()
    for row in rows:
        listed = {name: tuple(row[name]) for name in ("expected_slugs", "expected_chunk_ids")}
        yield SavedCase(**(dict(row) | listed | {"at": utc(row["at"])}))
