"""Evaluate a target over a dataset: ask every case, score it, and store the run.

The command line, notebooks and tests all use this module.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from assay_evals.compare.compare_runs import PairedRuns, compare_runs
from assay_evals.compare.verdicts import Rule, Verdict
from assay_evals.dataset.file_format import read_dataset
from assay_evals.dataset.model import Case, Dataset
from assay_evals.files import text_of
from assay_evals.metrics.answer_coverage import GivenAnswers
from assay_evals.metrics.scorers import Scoring
from assay_evals.report.wording import change, meaning, problems
from assay_evals.run.case_results import case_error, case_result, score
from assay_evals.run.folder import RunFolder, read_run, run_folder
from assay_evals.run.model import CaseResult, Run, RunConfig
from assay_evals.target.redaction import redact_target
from assay_evals.target.response import TargetResponse
from assay_evals.target.runner import RunnerOptions, run_sync, stream_queries
from assay_evals.target.targets import Question, Target, as_target

#: Scores an answer beyond its retrieval: metrics by name, None where they do not apply.
AnswerJudge = Callable[[Case, TargetResponse], Awaitable[Mapping[str, float | None]]]


async def evaluate_into(
    folder: RunFolder,
    dataset: Dataset,
    target: Target,
    options: RunnerOptions,
    *,
    judge: AnswerJudge | None = None,
    scoring: Scoring | None = None,
    on_result: Callable[[CaseResult], None] | None = None,
) -> Run:
    """Ask the cases that the folder does not contain yet. Closes the target.

    Each result is on disk once it and those before it are done.
    """
    left = [case for case in dataset.cases if case.id not in folder.done]
    scores, given = scoring or Scoring(), GivenAnswers()

    async def judged(case: Case, answer: TargetResponse) -> Mapping[str, float | None]:
        own = await scores(case, answer)  # first, since one that fails makes the case an error, which is worth no money
        return {**own, **(await judge(case, answer) if judge else {})}

    replies = stream_queries(
        target, left, lambda case: Question(case.query, limit=folder.config.k), options, judge=judged
    )
    try:
        async with aclosing(replies):
            async for reply in replies:
                case, answer = reply.item, reply.answer
                if answer is None:
                    result = case_error(case, reply.error or "no answer", reply.tries)
                else:
                    metrics = {**score([case], [answer], folder.config)[0], **given.add(case, answer), **reply.judged}
                    result = case_result(case, answer, metrics, reply.tries)
                    folder.unparsed_fields.update(answer.unparsed_fields)
                    folder.misspelt_keys.update(answer.misspelt_keys.items())
                folder.add(result)
                if on_result:
                    on_result(result)
        return folder.finish(case.id for case in dataset.cases)
    finally:
        folder.close()
        scores.close()
        await target.close()


def evaluate(
    dataset: Dataset | str | Path,
    target: Callable[..., Any] | str,
    runs: str | Path,
    name: str,
    *,
    runner_options: RunnerOptions | None = None,
    resume: bool = False,
    **options: Any,
) -> Run:
    """Evaluate from a notebook or a test, even with a running loop; the run is stored in `runs/name`.

    `target` is a function, or a name as on the command line; `options` are fields of `RunConfig`. Raises `EvalsError`.
    """
    golden = dataset if isinstance(dataset, Dataset) else read_dataset(text_of(dataset))
    runner_options = runner_options or RunnerOptions()
    named = redact_target(target) if isinstance(target, str) else f"{target.__module__}:{target.__qualname__}"
    folder = RunFolder(
        run_folder(Path(runs), name),
        RunConfig.of(golden, named, **options),
        resume=resume,
        target=target if isinstance(target, str) else None,
    )
    return run_sync(
        evaluate_into(
            folder, golden, as_target(target, runner_options.deadline_s, runner_options.concurrency), runner_options
        )
    )


def assert_no_regression(
    baseline: Run | str | Path,
    candidate: Run | str | Path,
    *,
    rules: Mapping[str, Rule] | None = None,
    inconclusive: Verdict = Verdict.PASS,
    seed: int = 0,
) -> PairedRuns:
    """Assert in a test that the candidate has no regression.

    Raises `AssertionError` with a line for each metric that has one.

    Runs may be given by their folders. `inconclusive` is the verdict that metrics with too few cases count as: pass by
    default, since no regression is shown, or `Verdict.FAIL` (the command line reports them as inconclusive, exit code
    3).
    """
    one, other = (each if isinstance(each, Run) else read_run(Path(each)) for each in (baseline, candidate))
    paired = compare_runs(one, other, rules=rules, seed=seed)
    verdict = paired.comparison.verdict(inconclusive=inconclusive)
    if verdict is not Verdict.PASS:
        lines = [
            f"{each.metric}: {change(each)}: {meaning(each)}"
            for each in paired.comparison.metrics
            if each.verdict is not Verdict.PASS
        ]
        raise AssertionError("\n".join([f"evaluation: {verdict.value}", *problems(paired), *lines]))
    return paired
