"""Evaluate a system on a golden dataset, and record the run as it progresses."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.checkout import checkout
from assay_operations.evaluations.datasets import expect_reviewed, load
from assay_operations.evaluations.judge_options import judge_named, with_spending
from assay_operations.evaluations.reports import open_reporters
from assay_operations.evaluations.rules import expect_slices, fields_of, floors_of, part_of, rules_of, scoring_of
from assay_operations.evaluations.runs import cutoffs_of, free_name
from assay_operations.evaluations.tags import tags_of
from assay_operations.evaluations.target import TargetConfig
from assay_operations.progress import Counts

if TYPE_CHECKING:
    from assay_evals.compare.floors import FloorCheck
    from assay_evals.compare.rules_file import RulesFile
    from assay_evals.compare.slices import SliceCheck
    from assay_evals.dataset.model import Dataset
    from assay_evals.metrics.scorers import Scoring
    from assay_evals.reporters import Reporter
    from assay_evals.run.folder import RunFolder
    from assay_evals.run.model import CaseResult, Run
    from assay_evals.target.runner import RunnerOptions
    from assay_evals.target.targets import Target
    from assay_operations.evaluations.run_judge import RunJudge


@dataclass(frozen=True)
class RunRequest:
    """Options of `assay eval run`; None is the default."""

    dataset: Path
    system: TargetConfig
    #: The folder of runs.
    runs: Path
    name: str | None = None
    resume: bool = False
    k: int = 10
    cutoffs: str | None = None
    gain: str = "linear"
    label: str | None = None
    limit: int | None = None
    sample: int | None = None
    slices: list[str] | None = None
    seed: int = 0
    judge: str | None = None
    judge_budget: str | None = None
    repeats: int | None = None
    reference: bool = False
    no_judge_cache: bool = False
    scorers: list[str] | None = None
    rules: Path | None = None
    project: str = "default"
    tags: list[str] | None = None
    require_reviewed: bool = False
    reporters: list[str] | None = None


@dataclass(frozen=True)
class PreparedRun:
    """A run that passed every check that costs nothing."""

    name: str
    golden: "Dataset"
    folder: "RunFolder"
    judge: "RunJudge | None"
    reporters: "list[tuple[str, Reporter]]"
    target: "Target"
    options: "RunnerOptions"
    scoring: "Scoring"
    held: "RulesFile"
    fields: list[str]

    async def run(self, seen: Counts) -> "Run":
        """Run the cases that are not done yet."""
        from assay_evals.evaluation import evaluate_into

        seen.total, seen.rows = len(self.golden.cases), len(self.folder.done)

        def count(_: "CaseResult") -> None:
            seen.rows += 1

        try:
            return await evaluate_into(
                self.folder,
                self.golden,
                self.target,
                self.options,
                judge=self.judge,
                scoring=self.scoring,
                on_result=count,
            )
        finally:
            if self.judge:
                await self.judge.close()

    def warnings(self, done: "Run") -> list[str]:
        """Return warnings about responses that were probably not parsed as the target meant them."""
        from assay_evals.target.response_parsing import unparsed_in_words

        warnings = unparsed_in_words(self.folder.unparsed_fields, self.folder.misspelt_keys)
        expected = {case.id for case in self.golden.cases if case.relevance}
        answered = [result for result in done.results if result.case_id in expected and not result.error]
        if answered and not any(result.retrieved for result in answered):
            warnings.append(
                "no query got a result: a response needs them under `results`, see docs/evaluation.md, targets"
            )
        return warnings

    def floors(self, done: "Run") -> "list[FloorCheck]":
        """Check the floors of the run."""
        return floors_of(done, self.held, self.scoring.rubrics(self.golden.cases))

    def checks(self, done: "Run") -> "list[SliceCheck]":
        """Check the slices of the run."""
        from assay_evals.compare.slices import slice_checks

        return slice_checks(done, self.fields, self.held.slice_floors(), self.held.rules())


def prepare_run(request: RunRequest, tell: Callable[[str], None]) -> PreparedRun:
    """Validate everything before anything is asked or paid; `tell` gets warnings.

    Raises `OperationError`.
    """
    from assay_evals.run.folder import RunFolder
    from assay_evals.run.model import RunConfig
    from assay_evals.target.redaction import redact_target

    if request.resume and request.name is None:
        raise OperationError("invalid", "--resume needs --name, the run to continue")
    golden = load(request.dataset, "--dataset")
    fields = fields_of(request.slices, held := rules_of(request.rules))
    expect_slices(held, fields, golden.cases)
    whole, golden, chosen = part_of(golden, request.limit, request.sample, request.seed, fields)
    expect_reviewed(golden, request.dataset, tell, required=request.require_reviewed)
    if request.gain not in ("linear", "burges"):
        raise OperationError("invalid", f"--gain: {request.gain!r} is not one of linear, burges")
    reporters = open_reporters(request.reporters, "--report")
    if request.reference and not any(case.expected_answer for case in golden.cases):
        raise OperationError("invalid", "--reference: no case has an expected_answer to compare with")
    judge = judge_named(
        request.judge,
        request.judge_budget,
        cached_in=None if request.no_judge_cache else request.runs,
        repeats=request.repeats,
        reference=request.reference,
    )
    rubric = judge.rubric if judge else None
    scoring = scoring_of(request.scorers, held, golden.cases, rubric, request.system.deadline_s)
    config = RunConfig.of(
        whole,
        redact_target(request.system.target),
        k=request.k,
        cutoffs=cutoffs_of(request.cutoffs, request.k),
        gain=request.gain,
        seed=request.seed,
        **asdict(checkout()),
        judge=judge.fingerprint if judge else None,
        options={"repeats": request.repeats} if request.repeats else {},
        label=request.label,
        project=request.project,
        tags=tags_of(request.tags),
        scorers=scoring.digests | (judge.digests if judge else {}),
        sample=chosen,
        concurrency=request.system.concurrency,
    )
    # The name is found before the target is loaded, which may take a while.
    name = free_name(request.name, request.runs, request.resume)
    target, options = request.system.open()
    folder = RunFolder(request.runs / name, config, resume=request.resume, target=request.system.target)
    with_spending(judge, folder)
    return PreparedRun(name, golden, folder, judge, reporters, target, options, scoring, held, fields)
