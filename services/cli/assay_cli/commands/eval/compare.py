"""`assay eval compare`: compare two runs case by case, with a verdict on the change."""

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.exit_codes import FINDING, INCONCLUSIVE
from assay_cli.option_groups import grouped
from assay_cli.options import DataDirectory, InStore, Rules, RunsFolder, Slices
from assay_cli.output.terminal import echo, emit
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations.compare import CompareRequest, compare_runs
from assay_operations.evaluations.runs import DEFAULT_RUNS


class Undecided(StrEnum):
    """Verdict that inconclusive metrics count as."""

    INCONCLUSIVE = "inconclusive"
    PASS = "pass"  # noqa: S105
    FAIL = "fail"


@dataclass(frozen=True)
class CompareOptions:
    """The runs to compare, the rules, and the reports to write."""

    baseline: Annotated[str, typer.Argument(help="Name or folder of the baseline run.")]
    candidate: Annotated[str, typer.Argument(help="Name or folder of the candidate run, over the same cases.")]
    runs: RunsFolder = DEFAULT_RUNS
    thresholds: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            metavar="METRIC=NUMBER",
            help="Regression that fails a metric, for example recall@10=0.03; repeatable.",
        ),
    ] = None
    floors: Annotated[
        list[str] | None,
        typer.Option(
            "--floor", metavar="METRIC=NUMBER", help="Minimum of the candidate's mean, for example mrr=0.5; repeatable."
        ),
    ] = None
    stages: Annotated[
        list[str] | None,
        typer.Option(
            "--stage", metavar="METRIC=STAGE", help="informational, warn or block, for example mrr=warn; repeatable."
        ),
    ] = None
    rules: Rules = None
    slices: Slices = None
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the resampling.")] = 0
    markdown: Annotated[Path | None, typer.Option(help="Write a Markdown report for a pull request to this file.")] = (
        None
    )
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML to this file.")] = None
    html: Annotated[Path | None, typer.Option(help="Write an HTML report with charts to this file.")] = None
    dataset: Annotated[
        Path | None, typer.Option(help="Dataset of the runs, so that the HTML report marks relevant results.")
    ] = None
    in_store: InStore = False
    data: DataDirectory = DEFAULT_DATA


@grouped
def compare(
    options: CompareOptions,
    inconclusive: Annotated[
        Undecided, typer.Option(help="Treat inconclusive metrics as pass or fail.")
    ] = Undecided.INCONCLUSIVE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare two runs case by case.

    Exit code 0 pass, 1 fail or not comparable, 2 no comparison was made (such as a missing run), 3 too few cases for a verdict.
    """
    from assay_evals.compare.verdicts import Verdict
    from assay_evals.report.document import as_json as document
    from assay_evals.report.text import comparison_text

    paired, verdict = compare_runs(CompareRequest(inconclusive=inconclusive.value, **vars(options)))
    if as_json:
        emit(json.dumps(document(paired, verdict), ensure_ascii=False, indent=2))
    else:
        echo(comparison_text(paired, verdict))
    code = {Verdict.PASS: 0, Verdict.FAIL: FINDING, Verdict.INCONCLUSIVE: INCONCLUSIVE}[verdict]
    if code:
        raise typer.Exit(code)
