"""Save a reviewed case as a new version, or retire it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson

from assay_operations.errors import OperationError
from assay_operations.golden.datasets import SavedCase, latest_version
from assay_operations.labelling.queues import checked_event, checked_labeller, checked_name
from assay_operations.time_bounds import iso
from assay_schema.limits import NAME_MAX_CHARS, QUERY_MAX_CHARS
from assay_schema.settings import StoreSettings

if TYPE_CHECKING:
    from assay_runtime.store import Client as Store

#: Items that a case expects at most, as in the table `dataset_cases`.
_EXPECTED_MAX = 10_000

_QUERY = """
SELECT query FROM candidates
WHERE project = {project:String} AND event_id = {event:UUID} AND event_time = UUIDv7ToDateTime({event:UUID}, 'UTC')
"""


@dataclass(frozen=True)
class Review:
    """Decision of a reviewer about a question.

    It names the documents that answer it, the answer that is right, or both; or it is a null case, which no document answers.
    """

    expected_slugs: Sequence[str] = ()
    expected_chunk_ids: Sequence[int] = ()
    null_case: bool = False
    expected_answer: str = ""


def save_case(
    store: "Store",
    settings: StoreSettings,
    project: str,
    dataset: str,
    review: Review,
    reviewer: str,
    *,
    event_id: str,
    inclusion_probability: float = 1.0,
    base_version: int = 0,
) -> SavedCase:
    """Save a case of a captured retrieval as its next version, and return it.

    Raises `OperationError`, of kind `conflict` if another version was saved meanwhile. `base_version`: the version that the reviewer saw;
    0 for a new case. The question is that of the stored retrieval, or of the version before if the retrieval is not stored any more.
    """
    checked_name(project, "project")
    checked_name(dataset, "dataset")
    event, reviewer = checked_event(event_id), checked_labeller(reviewer)
    answer = _checked(review)
    if not 0 < inclusion_probability <= 1:
        raise OperationError("invalid", "an inclusion probability is above 0 and at most 1")
    before = latest_version(store, project, dataset, case_id_of(event))
    slugs, chunks = tuple(dict.fromkeys(review.expected_slugs)), tuple(dict.fromkeys(review.expected_chunk_ids))
    decided = (reviewer, slugs, chunks, review.null_case, answer)
    if (
        before
        and not before.retired
        and decided
        == (
            before.reviewer,
            before.expected_slugs,
            before.expected_chunk_ids,
            before.null_case,
            before.expected_answer,
        )
    ):
        return before  # submitted again
    case = SavedCase(
        project,
        dataset,
        case_id_of(event),
        _next_version(before, base_version),
        event,
        before.query if before else _query(store, project, event),
        slugs,
        chunks,
        review.null_case,
        answer,
        before.inclusion_probability if before else inclusion_probability,
        reviewer,
        datetime.now(UTC),
    )
    return _insert(store, settings, case)


def retire_case(
    store: "Store",
    settings: StoreSettings,
    project: str,
    dataset: str,
    case_id: str,
    reviewer: str,
    *,
    base_version: int,
) -> SavedCase:
    """Take a case out of a dataset, with a new version.

    Raises `OperationError`, of kind `conflict` if another version was saved meanwhile.
    """
    checked_name(project, "project")
    checked_name(dataset, "dataset")
    before = latest_version(store, project, dataset, case_id)
    if before is None or before.retired:
        raise OperationError("not_found", f"the dataset {dataset} of project {project} has no such case")
    version = _next_version(before, base_version)
    gone = replace(before, version=version, reviewer=checked_labeller(reviewer), at=datetime.now(UTC), retired=True)
    return _insert(store, settings, gone)


def case_id_of(event_id: str) -> str:
    """Return the id of the case of a retrieval: a retrieval has at most one case in a dataset."""
    return f"event-{event_id}"


def _checked(review: Review) -> str | None:
    """Return the expected answer, scrubbed. Raises `OperationError` for a review that contradicts itself."""
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.policy import Policy

    words = review.expected_answer.strip()
    answer = Scrubber(Policy()).scrub(words.encode(errors="replace").decode()).text if words else ""
    names = (*review.expected_slugs, *review.expected_chunk_ids)
    if review.null_case and (names or answer):
        raise OperationError("invalid", "a null case expects no document and no answer")
    if not (review.null_case or names or answer):
        raise OperationError("invalid", "name a document, the answer that is right, or make it a null case")
    if any(not 1 <= len(slug) <= NAME_MAX_CHARS for slug in review.expected_slugs) or len(names) > _EXPECTED_MAX:
        raise OperationError(
            "invalid", f"a case expects at most {_EXPECTED_MAX:,} documents of 1 to {NAME_MAX_CHARS:,} characters"
        )
    if any(not -(1 << 63) <= chunk < 1 << 63 for chunk in review.expected_chunk_ids):
        raise OperationError("invalid", "an id of a chunk is an integer of 64 bits")
    if len(answer) > QUERY_MAX_CHARS:
        raise OperationError("invalid", f"an expected answer has at most {QUERY_MAX_CHARS:,} characters")
    return answer or None


def _next_version(before: SavedCase | None, base_version: int) -> int:
    """Return the number of the next version. Raises `OperationError` if the reviewer saw another version than the latest."""
    seen = 0 if before is None or before.retired else before.version
    if base_version != seen:
        raise _conflict()
    return before.version + 1 if before else 1


def _conflict() -> OperationError:
    return OperationError(
        "conflict",
        "the case was changed meanwhile",
        "open it again to see the other version: what you save over it replaces it",
    )


def _query(store: "Store", project: str, event: str) -> str:
    rows = store.query(_QUERY, parameters={"project": project, "event": event}).result_rows
    if not rows:
        raise OperationError("not_found", f"no retrieval {event} is stored in project {project}")
    if not str(rows[0][0]).strip():
        raise OperationError("invalid", "the retrieval has no question, so it cannot become a case")
    return str(rows[0][0])


def _insert(store: "Store", settings: StoreSettings, case: SavedCase) -> SavedCase:
    """Store a version, and return it. Raises `OperationError` if another reviewer's row of the same version was first."""
    from assay_runtime.store import insert_json_rows

    at = iso(case.at, "microseconds")
    row = {name: getattr(case, name) for name in case.__dataclass_fields__} | {"schema_version": 1, "at": at}
    insert_json_rows(store, f"{settings.base_database}.dataset_cases", orjson.dumps(row), 1)
    found = latest_version(store, case.project, case.dataset, case.case_id)
    if found is None or (found.version, found.reviewer, found.at.replace(tzinfo=UTC)) != (
        case.version,
        case.reviewer,
        case.at,
    ):
        raise _conflict()
    return found
