"""Contradictions of a night: how often documents that a system retrieves contradict each other."""

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.errors import OperationError
from assay_operations.evaluations.contradiction_sources import Source
from assay_operations.evaluations.contradictions import ContradictionsRequest, prepare_contradictions
from assay_operations.evaluations.nightly_work import (
    beyond_estimate,
    expect_trusted_target,
    measured_enough,
    night_name,
    replies_of_night,
    settings_named,
)
from assay_operations.evaluations.target import TargetConfig
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_evals.compare.compare_runs import PairedRuns
    from assay_evals.contradictions.judging import Severity
    from assay_evals.nightly import Attempt

SECTION = "nightly_contradictions"
_OPTIONS = {
    "--queries-file": "queries",
    "--target": "target",
    "--limit": "limit",
    "--top-k": "top_k",
    "--budget-usd": "budget_usd",
}


@dataclass
class ContradictionsNight:
    """The rate of contradictions of `nightly_contradictions.queries`.

    `data`: the directory of the identities. Raises `OperationError` without a target, and for code in a file that was read implicitly.
    """

    settings: Settings
    data: Path
    cost_usd: float = 0.0

    def __post_init__(self) -> None:
        from assay_evals.nightly import evaluation_of

        of = self.settings.nightly_contradictions
        assert of.queries is not None
        if not of.target:
            raise OperationError("invalid", f"{SECTION}.queries needs {SECTION}.target, which returns the documents")
        expect_trusted_target(SECTION, of.target)
        self._queries, self._target = of.queries, of.target
        self.evaluation = evaluation_of(f"contradictions-{of.queries.stem}", of.target)

    def run(self, attempt: "Attempt", _: "Sequence[Attempt]") -> "tuple[Attempt, PairedRuns | None]":
        """Judge the pairs, within what earlier attempts of this night left of the budget, and store the run."""

        of, evals = self.settings.nightly_contradictions, self.settings.evals
        name, runs = f"{night_name(self.settings, attempt.started_at)}-contradictions", Path(evals.runs_dir)
        deadline_s = evals.deadline_minutes * 60
        until = time.monotonic() + deadline_s
        source = Source(
            queries_file=self._queries,
            system=TargetConfig(self._target, within_s=deadline_s),
            project=evals.project,
            limit=of.limit,
            top_k=of.top_k,
        )
        request = ContradictionsRequest(
            source,
            budget_usd=of.budget_usd,
            cached_in=replies_of_night(self.settings, attempt.started_at),
            output=runs / f"{name}.json",
            spending=runs / f"{name}.judge.ndjson",
            data=self.data,
        )
        attempt = replace(attempt, run_name=f"{name}.json")
        with settings_named({option: f"{SECTION}.{setting}" for option, setting in _OPTIONS.items()}):
            prepared = prepare_contradictions(request)
            if prepared.estimated_usd > prepared.left_usd:
                asyncio.run(prepared.calls.close())
                return beyond_estimate(attempt, prepared.estimated_usd, prepared.left_usd, SECTION), None
            try:
                done = prepared.run(within_s=max(0.0, until - time.monotonic()))
            finally:
                self.cost_usd = prepared.cost_usd
            prepared.keep(done)
        return self._outcome(attempt, done.report, prepared.standing(done)), None

    def _outcome(self, attempt: "Attempt", report: dict[str, Any], standing: "Collection[Severity]") -> "Attempt":
        """Return the attempt with its outcome. `standing`: severities of findings that no person refuted."""
        from assay_evals.contradictions.report import BUDGET, exceeded
        from assay_evals.nightly import Outcome, beyond_budget

        of, rate = self.settings.nightly_contradictions, report["rates"]["queries"]
        attempt = replace(
            attempt,
            cases=report["pairs_intended"],
            errored=report["judge_errors"]["total"],
        )
        beyond = report["stopped_by"] == BUDGET
        if report["stopped_by"] and not beyond:
            return replace(attempt, outcome=Outcome.ERROR, detail=report["stopped_by"])
        failed = exceeded(report, standing, of.max_rate, of.fail_on)
        detail = f"{report['pairs_judged']:,} pairs judged, {len(report['findings']):,} findings"
        if rate["estimate"] is not None:
            detail += f"; {rate['estimate']:.1%} of questions contradict ({rate['lower']:.1%} to {rate['upper']:.1%})"
        attempt = replace(
            attempt, detail=detail, failed_metrics=failed, outcome=Outcome.FAIL if failed else Outcome.PASS
        )
        if beyond:
            left = report["pairs_intended"] - report["pairs_judged"]
            return beyond_budget(
                replace(attempt, errored=0), f"{left:,} pairs went unjudged: {SECTION}.budget_usd was used up"
            )
        return measured_enough(attempt, report["pairs_judged"], report["pairs_intended"], "pairs have a verdict")
