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
class GateRequest:
    """Options of `assay gate`. A threshold is text, so that an absent one differs from every number."""

    system: TargetConfig
    baseline: Path | None = None
    qrels: Path | None = None
    k: int = 10
    threshold_jaccard: str | None = None
    threshold_top1: str | None = None
    threshold_latency_multiplier: str | None = None
    threshold_recall: str | None = None
    threshold_first_relevant: str | None = None
    threshold_expected_top1: str | None = None
    rules: Path | None = None
    scorers: list[str] | None = None
    judge: str | None = None
    judge_budget: str | None = None


@dataclass(frozen=True)
class PreparedGate:
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


def prepare_gate(request: GateRequest) -> PreparedGate:
    """Validate everything before the system is queried or anything is paid. Raises `OperationError`."""
    from assay_evals.replay.baseline import Thresholds
    from assay_evals.replay.correctness import Floors

    baseline, qrels = request.baseline, request.qrels
    of_baseline = (request.threshold_jaccard, request.threshold_top1, request.threshold_latency_multiplier)
    of_known = (request.threshold_recall, request.threshold_first_relevant, request.threshold_expected_top1)
    if baseline is None and qrels is None:
        raise OperationError("invalid", "nothing to compare with; pass --baseline, --qrels, or both")
    if request.k < 1:
        raise OperationError("invalid", f"-k: {request.k} is below 1")
    published = baseline_of(baseline) if baseline else None
    limits = thresholds_of(published.thresholds if published else Thresholds(), *of_baseline)
    floors = floors_given(Floors(), *of_known)
    _expect_file(baseline, of_baseline, "--threshold-jaccard, -top1 and -latency-multiplier are of --baseline")
    _expect_file(qrels, of_known, "--threshold-recall, -first-relevant and -expected-top1 are of --qrels")
    known = qrels_of(qrels) if qrels else []
    answers = answers_held(
        request.rules, request.scorers, request.judge, request.judge_budget, request.system.deadline_s
    )
    target, options = request.system.open()
    given = {
        ("regression_gate", "baseline_path"): baseline,
        ("correctness_gate", "qrels_path"): qrels,
        ("rules_gate", "rules_path"): request.rules,
    }
    files = {place: path for place, path in given.items() if path is not None}
    return PreparedGate(target, options, published, known, request.k, limits, floors, answers, files)


def _expect_file(file: Path | None, thresholds: Typed, needed: str) -> None:
    """Refuse a threshold of a gate that does not run: it would silently have no effect."""
    if file is None and any(threshold is not None for threshold in thresholds):
        raise OperationError("invalid", f"{needed}: pass that too")
