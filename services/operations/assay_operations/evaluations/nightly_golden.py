"""The nightly evaluation of a golden dataset: a run, compared with a baseline, and its floors."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.clients import open_store
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.nightly_rules import baseline_of, rules_for
from assay_operations.evaluations.nightly_work import expect_trusted_target, night_name, require_key
from assay_operations.evaluations.rules import expect_slices, floors_of, scoring_of
from assay_operations.evaluations.target import log_no_tries
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_evals.compare.compare_runs import PairedRuns
    from assay_evals.nightly import Attempt
    from assay_evals.run.model import Run


@dataclass
class GoldenNight:
    """The evaluation of `evals.dataset`.

    Raises `OperationError` for code in a file that was read implicitly.
    """

    settings: Settings
    rules: Path | None = None
    scorers: list[str] | None = None
    cost_usd: float = 0.0

    def __post_init__(self) -> None:
        from assay_evals.nightly import evaluation_of

        evals = self.settings.evals
        assert evals.dataset is not None
        assert evals.target
        expect_trusted_target("evals", evals.target)
        self._dataset, self._target = evals.dataset, evals.target
        self.evaluation = evaluation_of(self._dataset.stem, self._target)

    def run(self, attempt: "Attempt", attempts: "Sequence[Attempt]") -> "tuple[Attempt, PairedRuns | None]":
        """Run it, and return the attempt with its outcome, and the comparison."""
        from assay_evals.compare.compare_runs import compare_runs
        from assay_evals.compare.slices import slice_checks
        from assay_evals.evaluation import evaluate_into
        from assay_evals.nightly import Outcome, beyond_budget, judged
        from assay_evals.run.folder import RunFolder
        from assay_evals.run.model import RunConfig, RunError
        from assay_evals.run.run_store import store_run
        from assay_evals.target.redaction import redact_target
        from assay_evals.target.runner import RunnerOptions
        from assay_evals.target.targets import open_target
        from assay_judge.pricing import dollars
        from assay_judge.reasons import reasons
        from assay_operations.evaluations.judge_options import with_spending
        from assay_operations.evaluations.run_judge import RunJudge

        log_no_tries()
        evals, began = self.settings.evals, attempt
        golden, held = load(self._dataset, "evals.dataset"), rules_for(self.rules, evals.rules)
        expect_slices(held, (), golden.cases)
        if evals.judge == "anthropic":
            require_key(self.settings, "evals.judge")
        judge = None if evals.judge == "none" else RunJudge(evals.judge, evals.budget_usd)
        asking = RunnerOptions()
        scoring = scoring_of(self.scorers, held, golden.cases, judge.rubric if judge else None, asking.deadline_s)
        config = RunConfig.of(
            golden,
            redact_target(self._target),
            judge=judge.fingerprint if judge else None,
            project=evals.project,
            label="nightly",
            scorers=scoring.digests,
        )
        name = night = night_name(self.settings, attempt.started_at)
        try:
            folder = RunFolder(Path(evals.runs_dir) / name, config, resume=True, target=self._target)
        except RunError:  # the dataset, or a scorer, changed since an earlier attempt of this night
            name = f"{name}-{attempt.started_at:%H%M%S}"
            folder = RunFolder(Path(evals.runs_dir) / name, config, resume=True, target=self._target)
        with_spending(
            judge, folder, Path(evals.runs_dir) / night
        )  # one budget for all attempts of a night, regardless of their names
        asked = open_target(self._target)
        working = evaluate_into(folder, golden, asked, asking, judge=judge, scoring=scoring)

        async def work() -> "Run":
            try:
                async with asyncio.timeout(evals.deadline_minutes * 60):
                    return await working
            finally:
                if judge is not None:
                    self.cost_usd = dollars(judge.spent - judge.spent_before)
                    await judge.close()

        run = asyncio.run(work())
        with open_store(self.settings.store) as client:
            run_id = store_run(client, self.settings.store, run)
            attempt = replace(attempt, run_id=run_id, run_name=name, cases=len(run.results), errored=len(run.errored))
            before = baseline_of(client, evals, attempts, config)
        holding, floors = held.rules(), held.slice_floors()
        paired = compare_runs(before, run, rules=holding, floors=floors) if before else None
        checks = paired.checks if paired else slice_checks(run, held.fields, floors, holding)
        attempt = judged(attempt, paired, floors_of(run, held, scoring.rubrics(golden.cases)), checks)
        attempt = replace(attempt, baseline=before.run_id if before else "")
        if judge is not None:
            if judge.failed:
                _, why = reasons(judge.failures)[0]
                detail = f"the judge gave no verdict for any of {judge.errors:,} answers, most often because: {why}"
                return replace(began, outcome=Outcome.ERROR, detail=detail), None
            if judge.skipped:
                detail = f"{judge.skipped} answers went unjudged: evals.budget_usd ({evals.budget_usd:g}) was used up"
                attempt = beyond_budget(attempt, detail)
        return attempt, paired
