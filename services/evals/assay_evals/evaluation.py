"""Evaluate a target over a dataset: ask every case, score it, and store the run.

The command line, notebooks and tests all use this module.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from assay_evals.case_results import case_error, case_result, score
from assay_evals.coverage import GivenAnswers
from assay_evals.dataset import Case, Dataset, read_dataset
from assay_evals.files import text_of
from assay_evals.paired import PairedRuns, compare_runs
from assay_evals.replay import Retrieved
from assay_evals.report import change, meaning, problems
from assay_evals.runner import Asking, ask_all, to_the_end
from assay_evals.runs import CaseResult, Run, RunConfig, RunFolder, read_run, run_folder
from assay_evals.scorers import Scoring
from assay_evals.target_names import shown
from assay_evals.targets import Question, Target, opened
from assay_evals.verdicts import Rule, Verdict

#: Scores an answer beyond its retrieval: metrics by name, None where they do not apply.
AnswerJudge = Callable[[Case, Retrieved], Awaitable[Mapping[str, float | None]]]


async def evaluate_into(
    folder: RunFolder,
    dataset: Dataset,
    target: Target,
    how: Asking,
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

    async def judged(case: Case, answer: Retrieved) -> Mapping[str, float | None]:
        own = await scores(case, answer)  # first, since one that fails makes the case an error, which is worth no money
        return {**own, **(await judge(case, answer) if judge else {})}

    asking = ask_all(target, left, lambda case: Question(case.query, limit=folder.config.k), how, judge=judged)
    try:
        async with aclosing(asking) as answers:
            async for asked in answers:
                case, answer = asked.item, asked.answer
                if answer is None:
                    result = case_error(case, asked.error or "no answer", asked.tries)
                else:
                    metrics = {**score([case], [answer], folder.config)[0], **given.add(case, answer), **asked.judged}
                    result = case_result(case, answer, metrics, asked.tries)
                    folder.unread.update(answer.unread)
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
    how: Asking | None = None,
    resume: bool = False,
    **options: Any,
) -> Run:
    """Evaluate from a notebook or a test, even with a running loop; the run is stored in `runs/name`.

    `target` is a function, or a name as on the command line; `options` are fields of `RunConfig`. Raises `EvalsError`.
    """
    golden = dataset if isinstance(dataset, Dataset) else read_dataset(text_of(dataset))
    asking = how or Asking()
    named = shown(target) if isinstance(target, str) else f"{target.__module__}:{target.__qualname__}"
    folder = RunFolder(
        run_folder(Path(runs), name),
        RunConfig.of(golden, named, **options),
        resume=resume,
        target=target if isinstance(target, str) else None,
    )
    return to_the_end(evaluate_into(folder, golden, opened(target, asking.deadline_s, asking.concurrency), asking))


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
