"""The summary of a batch, as a document. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assay_evals.panel.agreement import agreement, self_preference
from assay_evals.panel.batch import Batch
from assay_evals.panel.config import Panel
from assay_evals.panel.scoring import Judged, Outcome
from assay_runtime.shares import wilson

KIND = "cross_modal_batch_summary"


@dataclass(frozen=True)
class Costs:
    """Cost of a batch in US dollars.

    `actual` counts a call that failed and may have been billed with its upper bound.
    """

    estimated: float
    actual: float
    cap: float
    by_family: Mapping[str, float]


def verdict_of(batch: Batch, judged: Sequence[Judged]) -> Outcome:
    """Return the verdict on a batch: an error before a failure, a failure before what is not known."""
    outcomes = {each.outcome for each in judged}
    if batch.upstream_errors or batch.malformed or Outcome.ERROR in outcomes or not judged:
        return Outcome.ERROR
    if Outcome.FAIL in outcomes:
        return Outcome.FAIL
    if outcomes & {Outcome.INCONCLUSIVE, Outcome.UNJUDGED}:
        return Outcome.INCONCLUSIVE
    return Outcome.PASS


def summary_of(
    batch: Batch,
    judged: Sequence[Judged],
    panel: Panel,
    costs: Costs,
    *,
    cycles: int,
    concurrent: int,
    seed: int,
    at: datetime,
) -> dict[str, Any]:
    """Return the summary of a batch: its verdict, its figures, and each question.

    The rate is of the answers with a verdict; `inconclusive_share` and `coverage` say how many have none.
    """
    counts = Counter(each.outcome for each in judged)
    decided = counts[Outcome.PASS] + counts[Outcome.FAIL]
    tried = decided + counts[Outcome.INCONCLUSIVE]
    rate = wilson(counts[Outcome.PASS], decided)
    return {
        "schema_version": 1,
        "kind": KIND,
        "timestamp": at.isoformat(timespec="milliseconds"),
        "total": len(judged) + len(batch.upstream_errors) + len(batch.malformed),
        "pass": counts[Outcome.PASS],
        "fail": counts[Outcome.FAIL],
        "inconclusive": counts[Outcome.INCONCLUSIVE],
        "error": counts[Outcome.ERROR],
        "unjudged": counts[Outcome.UNJUDGED],
        "upstream_error": len(batch.upstream_errors),
        "malformed": len(batch.malformed),
        "verdict": verdict_of(batch, judged).value,
        "pass_rate": None if rate is None else dict(zip(("value", "low", "high"), rate, strict=True)),
        "pass_rate_of": decided,
        "inconclusive_share": counts[Outcome.INCONCLUSIVE] / tried if tried else None,
        "coverage": decided / len(judged) if judged else None,
        "lines_in_file": batch.lines,
        "seed": seed,
        "est_cost_usd": costs.estimated,
        "cost_usd": costs.actual,
        "max_usd": costs.cap,
        "cost_usd_by_family": dict(costs.by_family),
        "slots": [{"family": judge.family, "model": judge.model, "backend": judge.backend} for judge in panel.judges],
        "cycles_per_question": cycles,
        "concurrent": concurrent,
        "pass_mean": panel.pass_mean,
        "pass_least": panel.pass_least,
        "agreement": {
            dimension.name: agreement(judged, dimension.name, seed)._asdict() for dimension in panel.dimensions
        },
        "answers_by_family": dict(Counter(each.item.family for each in judged if each.item.family is not None)),
        "self_preference": {
            family: {"preference": found.preference} | found._asdict()
            for family, found in self_preference(judged, panel.families).items()
        },
        "malformed_lines": [{"line": number, "reason": reason} for number, reason in batch.malformed],
        "per_question": [
            *(_question(each) for each in judged),
            *({"question_id": name, "verdict": "upstream_error"} for name in batch.upstream_errors),
        ],
    }


def _question(judged: Judged) -> dict[str, Any]:
    row: dict[str, Any] = {"question_id": judged.item.question_id, "verdict": judged.outcome.value}
    if judged.errors:
        row["errors"] = dict(judged.errors)
    if judged.replies:
        row["final_aggregate"] = judged.means
        row["scores"] = [
            {"family": reply.family, "judge": reply.judge, "scores": dict(reply.scores), "reasons": dict(reply.reasons)}
            for reply in judged.replies
        ]
    return row
