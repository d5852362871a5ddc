"""Compare a system with a baseline, with qrels, or both."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.errors import OperationError
from assay_operations.evaluations.baselines import baseline_of, floors_given, qrels_of, thresholds_of
from assay_operations.evaluations.gate_answers import Answers, answers_held
from assay_operations.evaluations.target import TargetConfig
from assay_operations.progress import Counts

if TYPE_CHECKING:
    from assay_evals.compare.verdicts import Verdict
    from assay_evals.dataset.qrels import KnownQuery
    from assay_evals.replay.baseline import Baseline, Thresholds
    from assay_evals.replay.correctness import Floors
    from assay_evals.target.runner import RunnerOptions
    from assay_evals.target.targets import Target

#: Three thresholds as text; None keeps the default.
Typed = tuple[str | None, str | None, str | None]


@dataclass(frozen=True)
class GatePlan:
    """A gate that passed every check that costs nothing."""

    target: "Target"
    options: "RunnerOptions"
    published: "Baseline | None"
    known: "list[KnownQuery]"
    k: int
    thresholds: "Thresholds"
    floors: "Floors"
    answers: Answers | None
    #: The files of the options, by gate and key in the verdict.
    files: dict[tuple[str, str], Path]

    def run(self, seen: Counts, inconclusive: "Verdict") -> dict[str, Any]:
        """Run the gate and return the verdict as JSON data. `inconclusive` is the verdict for too few rows."""
        from assay_evals.replay.replay_runner import run_gate

        seen.total = (len(self.published.rows) if self.published else 0) + len(self.known)

        def count() -> None:
            seen.rows += 1

        verdict = run_gate(
            self.target,
            baseline=self.published,
            qrels=self.known,
            k=self.k,
            thresholds=self.thresholds,
            floors=self.floors,
            rules=self.answers.rules if self.answers else None,
            scoring=self.answers.scoring if self.answers else None,
            inconclusive=inconclusive,
            runner_options=self.options,
            on_answer=count,
            closing=self.answers.close if self.answers else None,
        )
        for (part, name), path in self.files.items():
            verdict.get(part, {})[name] = os.fspath(path)
        return verdict


def plan_gate(
    system: TargetConfig,
    *,
    baseline: Path | None,
    qrels: Path | None,
    k: int,
    rules: Path | None,
    scorers: list[str] | None,
    judge: str | None,
    judge_budget: str | None,
    of_baseline: Typed,
    of_known: Typed,
) -> GatePlan:
    """Validate everything before the system is queried or anything is paid. Raises `OperationError`."""
    from assay_evals.replay.baseline import Thresholds
    from assay_evals.replay.correctness import Floors

    if baseline is None and qrels is None:
        raise OperationError("invalid", "nothing to compare with; pass --baseline, --qrels, or both")
    if k < 1:
        raise OperationError("invalid", f"-k: {k} is below 1")
    published = baseline_of(baseline) if baseline else None
    limits = thresholds_of(published.thresholds if published else Thresholds(), *of_baseline)
    floors = floors_given(Floors(), *of_known)
    _expect_file(baseline, of_baseline, "--threshold-jaccard, -top1 and -latency-multiplier are of --baseline")
    _expect_file(qrels, of_known, "--threshold-recall, -first-relevant and -expected-top1 are of --qrels")
    known = qrels_of(qrels) if qrels else []
    answers = answers_held(rules, scorers, judge, judge_budget, system.deadline_s)
    target, options = system.open()
    given = {
        ("regression_gate", "baseline_path"): baseline,
        ("correctness_gate", "qrels_path"): qrels,
        ("rules_gate", "rules_path"): rules,
    }
    files = {place: path for place, path in given.items() if path is not None}
    return GatePlan(target, options, published, known, k, limits, floors, answers, files)


def _expect_file(file: Path | None, thresholds: Typed, needed: str) -> None:
    """Refuse a threshold of a gate that does not run: it would silently have no effect."""
    if file is None and any(threshold is not None for threshold in thresholds):
        raise OperationError("invalid", f"{needed}: pass that too")
