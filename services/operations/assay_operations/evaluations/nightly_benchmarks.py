"""Benchmarks of a night: LongMemEval on a memory, and a panel of judges on its answers."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.longmemeval import (
    Finished,
    LongMemEvalRequest,
    PreparedLongMemEval,
    prepare_longmemeval,
)
from assay_operations.evaluations.longmemeval_output import dataset_of
from assay_operations.evaluations.nightly_rules import not_trusted
from assay_operations.evaluations.nightly_work import (
    beyond_estimate,
    expect_trusted_target,
    measured_enough,
    night_name,
    replies_of_night,
    require_key,
    settings_named,
)
from assay_operations.evaluations.panel import PanelRequest, outcomes, prepare_panel
from assay_operations.evaluations.target import TargetConfig
from assay_operations.progress import Unseen
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_evals.compare.compare_runs import PairedRuns
    from assay_evals.nightly import Attempt

#: Level of significance at which a night is worse than the one it is compared with.
_ALPHA = 0.05


@dataclass
class LongMemEvalNight:
    """LongMemEval on `nightly_longmemeval.target`.

    Raises `OperationError` for code in a file that was read implicitly.
    """

    settings: Settings
    cost_usd: float = 0.0

    def __post_init__(self) -> None:
        from assay_evals.longmemeval.memory import BM25
        from assay_evals.nightly import evaluation_of

        of = self.settings.nightly_longmemeval
        assert of.dataset is not None
        if of.target != BM25:
            expect_trusted_target("nightly_longmemeval", of.target)
        self._dataset = of.dataset
        self.evaluation = evaluation_of(f"longmemeval-{of.dataset.stem}", of.target)

    def output_of(self, at: datetime) -> Path:
        """Return the output file of a night: another one if the settings change during the night."""
        inputs = self.settings.nightly_longmemeval.model_dump_json(include={"dataset", "target", "limit", "judge"})
        digest = hashlib.sha256(inputs.encode()).hexdigest()[:8]
        return Path(self.settings.evals.runs_dir) / f"{night_name(self.settings, at)}-longmemeval-{digest}.jsonl"

    def run(self, attempt: "Attempt", attempts: "Sequence[Attempt]") -> "tuple[Attempt, PairedRuns | None]":
        """Ask the questions that earlier attempts left open, and compare with the last night that passed."""
        of = self.settings.nightly_longmemeval
        if of.judge == "anthropic":
            require_key(self.settings, "nightly_longmemeval.judge")
        output = self.output_of(attempt.started_at)
        baseline = of.baseline or _last_output(output.parent, attempts, self._dataset)
        request = LongMemEvalRequest(
            self._dataset,
            TargetConfig(of.target, concurrency=4, deadline_s=600.0),
            limit=of.limit,
            retrieval_only=of.judge == "none",
            judge=None if of.judge == "none" else of.judge,
            judge_budget=str(of.budget_usd),
            by_type=True,
            by_type_floor=None if of.floor is None else str(of.floor),
            output=output,
            resume=True,
            baseline=baseline,
            spending=output.with_name(f"{night_name(self.settings, attempt.started_at)}-longmemeval.judge.ndjson"),
        )
        options = {"--judge-budget": "budget_usd", "--by-type-floor": "floor", "DATASET": "dataset"}
        options |= {f"--{name}": name for name in ("judge", "target", "limit", "baseline")}
        with settings_named({option: f"nightly_longmemeval.{name}" for option, name in options.items()}):
            prepared = prepare_longmemeval(request)
            try:
                finished = prepared.run(Unseen(), within_s=self.settings.evals.deadline_minutes * 60)
            finally:
                self.cost_usd = prepared.grader.cost_usd if prepared.grader else 0.0
        attempt = replace(attempt, run_name=output.name, baseline=baseline.name if baseline else "")
        return _outcome(attempt, prepared, finished), None


def _last_output(folder: Path, attempts: "Sequence[Attempt]", dataset: Path) -> Path | None:
    """Return the output of the last night that passed on the same file; None without one, or if it was deleted.

    Questions of another file cannot be compared.
    """
    from assay_evals.nightly import Outcome

    passed = [each for each in attempts if each.outcome is Outcome.PASS and each.run_name]
    names = [each.run_name for each in sorted(passed, key=lambda each: each.started_at, reverse=True)]
    outputs = [folder / name for name in names if (folder / name).exists()]
    if not outputs or not dataset.is_file():  # a missing file is an error later
        return None
    with dataset.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return next((output for output in outputs if dataset_of(output) == sha256), None)


def _outcome(attempt: "Attempt", prepared: PreparedLongMemEval, finished: Finished) -> "Attempt":
    from assay_evals.longmemeval.summary_text import floor_text
    from assay_evals.nightly import Outcome, beyond_budget

    results, grader = finished.results, prepared.grader
    failed = [f"recall of {name}" for name in finished.below]
    sentences = [f"{len(results):,} questions"]
    sentences += [] if finished.compared else ["the first night of this dataset: there is nothing to compare with"]
    sentences += [floor_text(name, share, prepared.floor or 0.0) for name, share in finished.below.items()]
    changes = finished.compared.changes if finished.compared else {}
    for name, change in changes.items():
        if change.p_holm < _ALPHA and change.change < 0:
            failed.append(name)
            sentences.append(f"{name} {change.baseline:.3f} to {change.run:.3f} (p {change.p_holm:.3g})")
    errored = sum(each.error is not None for each in results)
    if errored:
        sentences.append(f"{errored:,} ended in an error, and count as wrong")
    attempt = replace(
        attempt, cases=len(results), errored=errored, failed_metrics=failed, detail="; ".join(sentences),
        outcome=Outcome.FAIL if failed else Outcome.PASS,
    )  # fmt: skip
    if grader is not None and grader.skipped:
        why = f"{grader.skipped:,} went unjudged: nightly_longmemeval.budget_usd was used up"
        return replace(beyond_budget(replace(attempt, errored=0), why), errored=errored)
    if errored and finished.compared is None and not failed:  # it would become the baseline of the next
        return replace(attempt, outcome=Outcome.ERROR, detail=f"{errored:,} of {len(results):,} ended in an error")
    whole = sum(not each.failed for each in results)
    return measured_enough(
        attempt, whole, len(results), "questions have an answer" + (" and a verdict" if grader else "")
    )


@dataclass
class CrossModalNight:
    """A panel's verdict on answers: those of a file, or those of the night's LongMemEval.

    Raises `OperationError` for a panel file that a file named which was read implicitly, and without answers to judge.
    """

    settings: Settings
    cost_usd: float = 0.0

    def __post_init__(self) -> None:
        from assay_evals.nightly import evaluation_of
        from assay_runtime.config import is_implicit

        of = self.settings.nightly_cross_modal
        assert of.panel is not None
        if is_implicit("nightly_cross_modal", "panel"):
            raise not_trusted("panel", "it names keys, and where they are sent", "nightly_cross_modal")
        if of.answers is None and self.settings.nightly_longmemeval.dataset is None:
            raise OperationError(
                "invalid",
                "nightly_cross_modal has no answers to judge: set nightly_cross_modal.answers, or nightly_longmemeval.dataset",
            )
        if of.answers is None and self.settings.nightly_longmemeval.judge == "none":
            raise OperationError(
                "invalid",
                "nightly_cross_modal judges the answers of nightly_longmemeval, which has none without a judge: set "
                "nightly_longmemeval.judge, or nightly_cross_modal.answers",
            )
        self._panel = of.panel
        self.evaluation = evaluation_of(f"cross-modal-{of.panel.stem}", str(of.answers or "longmemeval"))

    def run(self, attempt: "Attempt", _: "Sequence[Attempt]") -> "tuple[Attempt, PairedRuns | None]":
        """Have the answers judged, within what earlier attempts of this night left of the budget."""
        from assay_evals.nightly import Outcome

        of, runs = self.settings.nightly_cross_modal, Path(self.settings.evals.runs_dir)
        name = f"{night_name(self.settings, attempt.started_at)}-cross-modal"
        request = PanelRequest(
            of.answers or self._of_longmemeval(attempt.started_at),
            self._panel,
            limit=of.limit,
            max_usd=of.budget_usd,
            cached_in=replies_of_night(self.settings, attempt.started_at),
            output=runs / f"{name}.json",
            spending=runs / f"{name}.judge.ndjson",
        )
        options = {"--batch": "answers", "--panel": "panel", "--limit": "limit", "--max-usd": "budget_usd"}
        with settings_named({option: f"nightly_cross_modal.{name}" for option, name in options.items()}):
            prepared = prepare_panel(request)
            attempt = replace(attempt, run_name=f"{name}.json")
            if prepared.estimated_usd > prepared.left_usd:
                asyncio.run(prepared.close())
                return beyond_estimate(attempt, prepared.estimated_usd, prepared.left_usd, "nightly_cross_modal"), None

            async def judge() -> dict[str, object]:
                async with asyncio.timeout(self.settings.evals.deadline_minutes * 60):
                    return await prepared.run()

            try:
                summary = asyncio.run(judge())
            finally:
                self.cost_usd = prepared.cost_usd
            prepared.keep(summary)
        verdict = Outcome(str(summary["verdict"]))
        decided = int(str(summary["pass"])) + int(str(summary["fail"]))
        if verdict is Outcome.ERROR and not summary["error"] and decided:  # lines without an answer stay without one
            verdict = Outcome.FAIL if summary["fail"] else Outcome.INCONCLUSIVE
        if summary["unjudged"] and verdict is Outcome.INCONCLUSIVE:
            verdict = Outcome.BUDGET_EXCEEDED
        rate = summary["pass_rate"]
        said = [", ".join(f"{count:,} {outcome}" for outcome, count in outcomes(summary))]
        said += (
            [f"pass rate {rate['value']:.1%} ({rate['low']:.1%} to {rate['high']:.1%})"]
            if isinstance(rate, dict)
            else []
        )
        return replace(
            attempt,
            outcome=verdict,
            cases=int(str(summary["total"])),
            errored=sum(int(str(summary[each])) for each in ("error", "upstream_error", "malformed")),
            failed_metrics=["pass_rate"] if verdict is Outcome.FAIL else [],
            detail="; ".join(said),
        ), None

    def _of_longmemeval(self, at: datetime) -> Path:
        """Return the night's answers. Raises `OperationError` until they are complete."""
        output = LongMemEvalNight(self.settings).output_of(at)
        if not output.with_name(f"{output.name}.summary.json").exists():
            raise OperationError(
                "unavailable", "LongMemEval has no complete answers of this night: see its own outcome"
            )
        return output
