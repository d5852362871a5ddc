"""Captured retrievals for review: the next cases of a golden dataset."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assay_operations.evaluations.mine import mine, read_rows
from assay_operations.events.filters import Range
from assay_operations.golden.datasets import cases_of, in_file_form
from assay_operations.time_bounds import utc

if TYPE_CHECKING:
    from assay_runtime.store import Client as Store

#: Rows of each kind, the newest of the range, that candidates are chosen from.
ROWS = 5_000
#: Cosine from which on two questions count as one, as for `assay dataset mine`.
ALIKE = 0.95

_RETRIEVALS = """
WITH arrayMap(id -> UUIDv7ToDateTime(id, 'UTC'), {ids:Array(UUID)}) AS times
SELECT toString(c.event_id) AS event_id, c.event_time AS event_time, retrieved_slugs, retrieved_chunk_ids, retrieved_scores
FROM candidates AS c
WHERE c.project = {project:String} AND c.event_id IN {ids:Array(UUID)} AND c.event_time BETWEEN arrayMin(times) AND arrayMax(times)
"""


@dataclass(frozen=True)
class Candidate:
    """A captured question with what was retrieved for it, to be reviewed as a case.

    It has no texts of passages, because a list of candidates would be large; `retrieval_of` reads those of one.
    """

    event_id: str
    event_time: datetime
    project: str
    query: str
    #: Distinct slugs, and one chunk id and score for each hit, in result order.
    slugs: tuple[str, ...]
    chunk_ids: tuple[int, ...]
    scores: tuple[float, ...]
    #: Number of retrievals of this and similar questions, and of verdicts on them.
    times: int
    positive: int
    negative: int
    #: Documents that people found good, best first.
    good: tuple[str, ...]
    #: Probability with which the question was drawn; keep it in the case.
    inclusion_probability: float


def review_candidates(
    store: "Store",
    *,
    project: str,
    dataset: str,
    limit: int = 50,
    span: Range = Range(),  # noqa: B008 - it never changes
    rows: int = ROWS,
    negative_only: bool = False,
    include_scrubbed: bool = False,
) -> list[Candidate]:
    """Return questions to review, those with negative feedback first. Raises `OperationError`.

    Questions of the dataset are left out, retired ones too. The others are chosen as by `assay dataset mine`: similar questions are
    joined, and those without feedback are drawn by hash, the same for the same rows.
    """
    from assay_evals.dataset.mining import Miner

    saved = [replace(case, retired=False) for case in cases_of(store, project, dataset, with_retired=True)]
    miner = Miner(include_scrubbed=include_scrubbed)
    read_rows(store, miner, span, project, rows)
    known = in_file_form(saved) if saved else None
    mined, _ = mine(miner, limit, known=known, alike=ALIKE, negative_only=negative_only)
    drawn = [each for each in mined.drawn if each.question.event_id]
    retrievals = _retrievals(store, project, [each.question.event_id for each in drawn])
    return [
        _candidate(project, retrievals[each.question.event_id], each.question, each.probability)
        for each in drawn
        if each.question.event_id in retrievals
    ]


def _retrievals(store: "Store", project: str, ids: list[str]) -> dict[str, dict[str, Any]]:
    if not ids:
        return {}
    rows = store.query(_RETRIEVALS, parameters={"project": project, "ids": ids}).named_results()
    return {row["event_id"]: dict(row) for row in rows}


def _candidate(project: str, row: dict[str, Any], question: Any, probability: float) -> Candidate:
    return Candidate(
        row["event_id"],
        utc(row["event_time"]),
        project,
        question.query,
        tuple(row["retrieved_slugs"]),
        tuple(row["retrieved_chunk_ids"]),
        tuple(row["retrieved_scores"]),
        question.times,
        question.positive,
        question.negative,
        tuple(name for name, _ in question.good.most_common()),
        probability,
    )
