"""`assay eval run`: ask a system every question of a golden dataset."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.exit_codes import FINDING
from assay_cli.options import DataDirectory, Rules, RunsFolder, Scorers, Slices
from assay_cli.output.floors import exit_code, tell_floors
from assay_cli.output.judging import tell
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.runs import show_run
from assay_cli.output.target_errors import ErrorsOfTarget
from assay_cli.output.terminal import echo, ends_quietly
from assay_cli.target_options import Concurrency, Deadline, Retries, ShowErrors, TargetName, Workspace
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations import run_store as evaluation_store
from assay_operations.evaluations.reports import report_run
from assay_operations.evaluations.run import RunRequest, plan_run
from assay_operations.evaluations.runs import DEFAULT_RUNS
from assay_operations.evaluations.target import TargetConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay_evals.dataset import Dataset
    from assay_evals.runs import Run


def run(
    dataset: Annotated[Path, typer.Option(help="The golden dataset.")],
    target: TargetName,
    name: Annotated[str | None, typer.Option(help="The run's name; default: the time.")] = None,
    runs: RunsFolder = DEFAULT_RUNS,
    k: Annotated[int, typer.Option("-k", help="How many results are asked for.")] = 10,
    cutoffs: Annotated[
        str | None,
        typer.Option(
            metavar="RANKS",
            help="Ranks at which metrics are cut off; default 5,10, as far as -k reaches.",
            show_default=False,
        ),
    ] = None,
    gain: Annotated[
        str, typer.Option(metavar="linear|burges", help="Gain of nDCG: the grade, or 2^grade - 1.")
    ] = "linear",
    label: Annotated[str | None, typer.Option(help="What reports call this run; default: its name.")] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first N cases.")] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Ask N of the cases that stand for all: the same ones each time.")
    ] = None,
    slices: Slices = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample, and of the resamples behind the intervals.")] = 0,
    judge: Annotated[
        str | None, typer.Option(metavar="lexical|anthropic|openai", help="Judge the answers too, as production's are.")
    ] = None,
    judge_budget: Annotated[
        str | None,
        typer.Option(metavar="USD", help="Most that judging this run may cost; default 1.", show_default=False),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Judge each answer K times (2 to 10): means count, and the judge's own noise is reported."
        ),
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Have the judge's model hold answers against the expected ones too.")
    ] = False,
    no_judge_cache: Annotated[
        bool, typer.Option("--no-judge-cache", help="Pay for verdicts again that an earlier run paid for.")
    ] = False,
    scorer: Scorers = None,
    rules: Rules = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    project: Annotated[str, typer.Option(help="The tenant whose system this is.")] = "default",
    tag: Annotated[list[str] | None, typer.Option(help="A word to find the run by; may be repeated.")] = None,
    require_reviewed: Annotated[
        bool, typer.Option("--require-reviewed", help="Refuse a dataset with cases that nobody looked at.")
    ] = False,
    to_store: Annotated[bool, typer.Option("--store", help="Write the run to the store as well.")] = False,
    report: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=WHERE]", help="Hand the run over too, as `assay eval report` does; may be repeated."
        ),
    ] = None,
    report_text: Annotated[bool, typer.Option("--report-text", help="With questions and expected answers.")] = False,
    data: DataDirectory = DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON on stdout.")] = False,
    workspace: Workspace = None,
    concurrency: Concurrency = 5,
    deadline: Deadline = 30.0,
    retries: Retries = 2,
    show_errors: ShowErrors = False,
    progress: Annotated[Mode, typer.Option(help="Progress on stderr: for people, as JSON, or none.")] = Mode.AUTO,
) -> None:
    """Ask a system every question of a dataset and write the run down as it goes. Exits 1 if a case ended in an error, or a floor
    of --rules that blocks is not reached.
    """
    errors = ErrorsOfTarget(show_errors)
    system = TargetConfig(target, workspace, concurrency, deadline, retries, on_error=errors, keep_said=show_errors)
    request = RunRequest(
        dataset, system, runs, name=name, resume=resume, k=k, cutoffs=cutoffs, gain=gain, label=label, limit=limit,
        sample=sample, slices=slices, seed=seed, judge=judge, judge_budget=judge_budget, repeats=repeats,
        reference=reference, judge_cache=not no_judge_cache, scorers=scorer, rules=rules, project=project, tags=tag,
        require_reviewed=require_reviewed, reporters=report,
    )  # fmt: skip
    plan = plan_run(request, _tell)

    def kept() -> str:
        count = f"{len(plan.folder.done):,} of {len(plan.golden.cases):,} cases are done"
        return f"{count}; go on with the same command and: --name {plan.name} --resume"

    with ends_quietly(stopped=kept), Progress(progress) as seen:
        done = asyncio.run(plan.run(seen))
    unknown = tell(plan.judge)
    _tell_unread(plan.folder.unread)
    _tell_nothing_found(plan.golden, done)
    if to_store:
        evaluation_store.store(done, data)
    floors, checks = plan.floors(done), plan.checks(done)
    show_run(done, as_json, floors if rules else None, checks)
    tell_floors(floors)
    report_run(done, plan.reporters, plan.golden if report_text else None, _tell)
    errors.say_how()
    if code := FINDING if unknown else exit_code(done, floors, checks):
        raise typer.Exit(code)


def _tell(text: str) -> None:
    echo(text, err=True)


def _tell_unread(unread: "Mapping[str, int]") -> None:
    for field, results in unread.items():
        told = f"{results:,} result(s) say {field} in a way that cannot be read"
        echo(f"{told}: they count as if they said none", err=True)


def _tell_nothing_found(golden: "Dataset", found: "Run") -> None:
    """That no question got a result, though results are expected: the likeliest reason is a reply of another form."""
    expected = {case.id for case in golden.cases if case.relevance}
    asked = [each for each in found.results if each.case_id in expected and not each.error]
    if asked and not any(each.retrieved for each in asked):
        echo("no question got a result: a reply has them under `results`, see docs/evaluation.md, targets", err=True)
