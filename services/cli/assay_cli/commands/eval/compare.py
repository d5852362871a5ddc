"""`assay eval compare`: compare two runs case by case, with a verdict on the change."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING, INCONCLUSIVE
from assay_cli.options import DataDirectory, InStore, Rules, RunsFolder, Slices
from assay_cli.output.terminal import echo, emit, printable
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations import run_store as evaluation_store
from assay_operations.evaluations.compare import compared, rules_given, was_asked
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.reports import expect_place, write_report
from assay_operations.evaluations.rules import rules_of
from assay_operations.evaluations.runs import DEFAULT_RUNS, find_run

if TYPE_CHECKING:
    from assay_evals.compare.compare_runs import PairedRuns
    from assay_evals.compare.verdicts import Verdict


class Undecided(StrEnum):
    """Verdict that inconclusive metrics count as."""

    INCONCLUSIVE = "inconclusive"
    PASS = "pass"  # noqa: S105
    FAIL = "fail"


def compare(
    baseline: Annotated[str, typer.Argument(help="Name or folder of the baseline run.")],
    candidate: Annotated[str, typer.Argument(help="Name or folder of the candidate run, over the same cases.")],
    runs: RunsFolder = DEFAULT_RUNS,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=NUMBER", help="Regression that fails a metric, for example recall@10=0.03; repeatable."
        ),
    ] = None,
    floor: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=NUMBER", help="Minimum of the candidate's mean, for example mrr=0.5; repeatable."),
    ] = None,
    stage: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=STAGE", help="informational, warn or block, for example mrr=warn; repeatable."),
    ] = None,
    rules: Rules = None,
    slices: Slices = None,
    inconclusive: Annotated[
        Undecided, typer.Option(help="Treat inconclusive metrics as pass or fail.")
    ] = Undecided.INCONCLUSIVE,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the resampling.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a Markdown report for a pull request to this file.")
    ] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write an HTML report with charts to this file.")] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="Dataset of the runs, so that the HTML report marks relevant results.")
    ] = None,
    in_store: InStore = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Compare two runs case by case.

    Exit code 0 pass, 1 fail or not comparable, 2 no comparison was made (such as a missing run), 3 too few cases for a verdict.
    """
    from assay_evals.compare.verdicts import Verdict
    from assay_evals.report.document import as_json as comparison_document
    from assay_evals.report.html import html as html_report
    from assay_evals.report.junit import junit
    from assay_evals.report.markdown import markdown as markdown_report

    held = rules_of(rules)
    holding = rules_given(held, threshold, floor, stage)
    for option, path in (("--markdown", markdown), ("--junit", junit_file), ("--html", html)):
        expect_place(option, path)
    before, after = (
        evaluation_store.stored(name, data) if in_store else find_run(name, runs) for name in (baseline, candidate)
    )
    golden = load(dataset, "--dataset") if dataset else None
    if golden and not any(was_asked(golden, run) for run in (before, after)):
        raise CommandError(f"--dataset: {dataset} is not the dataset of these runs: pass the right one, or omit it")
    paired = compared(
        before, after, held, holding, slices=slices, seed=seed, thresholds=threshold, floors=floor, stages=stage
    )
    counts_as = Verdict(inconclusive.value)
    verdict = paired.verdict(counts_as)
    if markdown:
        write_report("--markdown", markdown, markdown_report(paired, verdict))
    if junit_file:
        write_report("--junit", junit_file, junit(paired, inconclusive=counts_as))
    if html:
        cases = golden.cases if golden else []
        right = {case.id: {name for name, grade in case.relevance.items() if grade > 0} for case in cases}
        write_report("--html", html, html_report(paired, verdict, relevance=right))
    if as_json:
        emit(json.dumps(comparison_document(paired, verdict), ensure_ascii=False, indent=2))
    else:
        echo(_compared(paired, verdict))
    code = {Verdict.PASS: 0, Verdict.FAIL: FINDING, Verdict.INCONCLUSIVE: INCONCLUSIVE}[verdict]
    if code:
        raise typer.Exit(code)


def _compared(paired: "PairedRuns", verdict: "Verdict") -> str:
    from assay_evals.report.wording import change, meaning, notes, number, problems, slices_in_words

    lines = [
        f"{row.verdict.value:13} {row.metric:16} {number(row.baseline, row.metric):>9} {number(row.candidate, row.metric):>9}"
        f"  {change(row):32} {row.rule.stage.value:14} {meaning(row)}"
        for row in paired.comparison.metrics
    ]
    sliced = slices_in_words([*paired.checks, *paired.changes])
    return "\n".join(map(printable, [*problems(paired), *lines, *sliced, *notes(paired), f"verdict: {verdict.value}"]))
