"""`assay eval`: ask a system every question of a golden dataset, and compare such runs."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.errors import CommandError
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
from assay_operations.evaluations.checkout import checkout
from assay_operations.evaluations.datasets import expect_reviewed, load
from assay_operations.evaluations.judge_options import judge_named, with_spending
from assay_operations.evaluations.reports import open_reporters, report_run
from assay_operations.evaluations.rules import expect_slices, fields_of, floors_of, part_of, rules_of, scoring_of
from assay_operations.evaluations.runs import DEFAULT_RUNS, cutoffs_of, free_name
from assay_operations.evaluations.tags import tags_of
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
    from assay_evals.evaluation import evaluate_into
    from assay_evals.runs import CaseResult, RunConfig, RunFolder
    from assay_evals.slices import slice_checks
    from assay_evals.target_names import shown

    if resume and name is None:
        raise CommandError("--resume needs --name, the run to go on with")
    golden = load(dataset, "--dataset")
    fields = fields_of(slices, held := rules_of(rules))
    expect_slices(held, fields, golden.cases)
    whole, golden, chosen = part_of(golden, limit, sample, seed, fields)
    expect_reviewed(golden, dataset, lambda text: echo(text, err=True), required=require_reviewed)
    if gain not in ("linear", "burges"):
        raise CommandError(f"--gain: {gain!r} is not one of linear, burges")
    reporters = open_reporters(report, "--report")
    if reference and not any(case.expected_answer for case in golden.cases):
        raise CommandError("--reference: no case has an expected_answer to be held against")
    cached_in = None if no_judge_cache else runs
    judged = judge_named(judge, judge_budget, cached_in=cached_in, repeats=repeats, reference=reference)
    scoring = scoring_of(scorer, held, golden.cases, judged.rubric if judged else None, deadline)
    config = RunConfig.of(
        whole,
        shown(target),
        k=k,
        cutoffs=cutoffs_of(cutoffs, k),
        gain=gain,
        seed=seed,
        **asdict(checkout()),
        judge=judged.fingerprint if judged else None,
        options={"repeats": repeats} if repeats else {},
        label=label,
        project=project,
        tags=tags_of(tag),
        scorers=scoring.digests | (judged.digests if judged else {}),
        sample=chosen,
        concurrency=concurrency,
    )
    name = free_name(name, runs, resume)  # before the target is loaded, which may take a while
    errors = ErrorsOfTarget(show_errors)
    system = TargetConfig(target, workspace, concurrency, deadline, retries, on_error=errors, keep_said=show_errors)
    asked, how = system.open()
    folder = with_spending(judged, RunFolder(runs / name, config, resume=resume, target=target))

    def kept() -> str:
        count = f"{len(folder.done):,} of {len(golden.cases):,} cases are done"
        return f"{count}; go on with the same command and: --name {name} --resume"

    with ends_quietly(stopped=kept), Progress(progress) as seen:
        seen.total, seen.rows = len(golden.cases), len(folder.done)

        def count(_: CaseResult) -> None:
            seen.rows += 1

        async def work() -> "Run":
            try:
                return await evaluate_into(folder, golden, asked, how, judge=judged, scoring=scoring, on_result=count)
            finally:
                if judged:
                    await judged.close()

        done = asyncio.run(work())
    unknown = tell(judged)
    _tell_unread(folder.unread)
    _tell_nothing_found(golden, done)
    if to_store:
        evaluation_store.store(done, data)
    floors = floors_of(done, held, scoring.rubrics(golden.cases))
    checks = slice_checks(done, fields, held.slice_floors(), held.rules())
    show_run(done, as_json, floors if rules else None, checks)
    tell_floors(floors)
    report_run(done, reporters, golden if report_text else None, lambda text: echo(text, err=True))
    errors.say_how()
    if code := FINDING if unknown else exit_code(done, floors, checks):
        raise typer.Exit(code)


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
