"""Results of cases in a run, with or without an answer. Pure."""

import math
from collections.abc import Sequence

from assay_evals.dataset.case_slices import case_slices
from assay_evals.dataset.model import Case
from assay_evals.metrics.answer_coverage import answer_coverage
from assay_evals.metrics.case_metrics import case_metrics
from assay_evals.metrics.retrieval import judge, retrieval_metrics
from assay_evals.run.model import CaseResult, RunConfig
from assay_evals.target.response import TargetResponse


def score(cases: Sequence[Case], answers: Sequence[TargetResponse], config: RunConfig) -> list[dict[str, float | None]]:
    """Compute each case's retrieval metrics, and those of `case_metrics` and `coverage` that apply."""
    judged = judge(
        [case.relevance for case in cases],
        [answer.named_as(case.relevance) for case, answer in zip(cases, answers, strict=True)],
        depth=max(config.cutoffs),
    )
    table = retrieval_metrics(judged, config.cutoffs, config.gain)
    rows: list[dict[str, float | None]] = [
        {name: None if math.isnan(values[place]) else float(values[place]) for name, values in table.items()}
        for place in range(len(cases))
    ]
    for row, case, answer in zip(rows, cases, answers, strict=True):
        if case.query_type != "null" and not any(case.relevance.values()):
            row.update(dict.fromkeys(row))  # there are no expected documents
        row.update(case_metrics(case, answer, max(config.cutoffs)) | answer_coverage(case, answer))
    return rows


def case_result(case: Case, answer: TargetResponse, metrics: dict[str, float | None], tries: int) -> CaseResult:
    """Return the result of an answered case."""
    return CaseResult(
        case_id=case.id,
        query_type=case.query_type,
        retrieved=list(dict.fromkeys(answer.named_as(case.relevance))),
        latency_ms=answer.latency_ms,
        metrics=metrics,
        tries=tries,
        cluster=case.cluster,
        weight=1 / case.inclusion_probability,
        slices=case_slices(case),
    )


def case_error(case: Case, error: str, tries: int) -> CaseResult:
    """Return the result of a case without an answer."""
    weight = 1 / case.inclusion_probability
    return CaseResult(
        case.id, case.query_type, [], None, {}, error, tries, case.cluster, weight, slices=case_slices(case)
    )
