"""`assay eval run`: evaluate a system on a golden dataset."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.exit_codes import FINDING
from assay_cli.option_groups import grouped
from assay_cli.options import DataDirectory, Rules, RunsFolder, Scorers, Slices
from assay_cli.output.floors import tell_floors
from assay_cli.output.judging import tell
from assay_cli.output.progress import Progress
from assay_cli.output.runs import show_run, tell_replaced
from assay_cli.output.terminal import echo, ends_quietly, own_stdout
from assay_cli.target_options import TargetOptions
from assay_operations.actor import local_actor
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations import run_store as evaluation_store
from assay_operations.evaluations.reports import report_run
from assay_operations.evaluations.run import RunRequest, prepare_run
from assay_operations.evaluations.runs import DEFAULT_RUNS


@dataclass(frozen=True)
class RunOptions:
    """Dataset, scoring and destination of a run."""

    dataset: Annotated[Path, typer.Option(help="Golden dataset.")]
    name: Annotated[str | None, typer.Option(help="Name of the run; default: the current time.")] = None
    runs: RunsFolder = DEFAULT_RUNS
    k: Annotated[int, typer.Option("-k", help="Number of results to request per query.")] = 10
    cutoffs: Annotated[
        str | None,
        typer.Option(
            metavar="RANKS",
            help="Cutoff ranks of the metrics; default 5,10, up to -k.",
            show_default=False,
        ),
    ] = None
    gain: Annotated[
        str, typer.Option(metavar="linear|burges", help="Gain function of nDCG: the grade, or 2^grade - 1.")
    ] = "linear"
    label: Annotated[str | None, typer.Option(help="Label of the run in reports; default: its name.")] = None
    limit: Annotated[int | None, typer.Option(help="Only the first N cases; default: all.")] = None
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Run a representative sample of N cases, the same each time; default: all."),
    ] = None
    slices: Slices = None
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the sample and of the resampling.")] = 0
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="lexical|anthropic|openai", help="Also score the answers, with the same judge as production."
        ),
    ] = None
    judge_budget: Annotated[
        str | None,
        typer.Option(metavar="USD", help="Budget for judging this run, in USD; default 1.", show_default=False),
    ] = None
    repeats: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Judge each answer K times (2 to 10), use the means, and report the noise of the judge; default: once.",
        ),
    ] = None
    reference: Annotated[
        bool, typer.Option("--reference", help="Also have the judge's model compare answers with the expected ones.")
    ] = False
    no_judge_cache: Annotated[bool, typer.Option("--no-judge-cache", help="Do not reuse verdicts of earlier runs.")] = (
        False
    )
    scorers: Scorers = None
    rules: Rules = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False
    project: Annotated[str, typer.Option(help="Project of the system.")] = "default"
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Tag to find the run by; repeatable.")] = None
    require_reviewed: Annotated[
        bool, typer.Option("--require-reviewed", help="Refuse a dataset with unreviewed cases.")
    ] = False
    reporters: Annotated[
        list[str] | None,
        typer.Option(
            "--report",
            metavar="NAME[=WHERE]",
            help="Also send the run to a tracker, like `assay eval report`; repeatable.",
        ),
    ] = None


@grouped
def run(
    options: RunOptions,
    target: TargetOptions,
    to_store: Annotated[
        bool, typer.Option("--store", help="Also write the run to the store; replacing a stored run is recorded.")
    ] = False,
    report_text: Annotated[
        bool, typer.Option("--report-text", help="With --report: include questions and expected answers.")
    ] = False,
    data: DataDirectory = DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Run every case of a dataset against a system, and record the results as they come.

    Exit code 0 if every case ran, 1 if a case ended in an error or a blocking floor of --rules was missed, 3 if there are too few cases
    for a verdict.
    """
    system, errors = target.config()
    with own_stdout():
        prepared = prepare_run(RunRequest(system=system, **vars(options)), _tell)

    def kept() -> str:
        count = f"{len(prepared.folder.done):,} of {len(prepared.golden.cases):,} cases are done"
        return f"{count}; to continue, run the same command with: --name {prepared.name} --resume"

    with ends_quietly(stopped=kept), own_stdout(), Progress(target.progress) as counter:
        done = asyncio.run(prepared.run(counter))
    unknown = tell(prepared.judge)
    for warning in prepared.warnings(done):
        _tell(warning)
    if to_store:
        tell_replaced(evaluation_store.store(done, data, local_actor()))
    floors, checks = prepared.floors(done), prepared.checks(done)
    show_run(done, as_json, floors if options.rules else None, checks)
    code = tell_floors(done, floors, checks)
    report_run(done, prepared.reporters, prepared.golden if report_text else None, _tell)
    errors.say_how()
    if code := FINDING if unknown else code:
        raise typer.Exit(code)


def _tell(text: str) -> None:
    echo(text, err=True)
