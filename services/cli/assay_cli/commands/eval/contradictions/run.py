"""`assay eval contradictions run`: judge pairs of documents that one question retrieved."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING, OPERATIONAL
from assay_cli.option_groups import grouped
from assay_cli.options import DataDirectory, RunsFolder
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.target_errors import ErrorsOfTarget
from assay_cli.output.terminal import echo, emit, ends_quietly, own_stdout
from assay_cli.target_options import ShowErrors, Workspace
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations.contradiction_sources import Source
from assay_operations.evaluations.contradictions import ContradictionsRequest, prepare_contradictions
from assay_operations.evaluations.runs import DEFAULT_RUNS
from assay_operations.evaluations.target import TargetConfig
from assay_operations.numbers import a_number

SEVERITIES = ("info", "low", "medium", "high")


@dataclass(frozen=True)
class SourceOptions:
    """Questions and the documents that they retrieved."""

    from_capture: Annotated[
        bool, typer.Option("--from-capture", help="Distinct captured questions with the texts of their documents.")
    ] = False
    queries_file: Annotated[
        Path | None, typer.Option(help="Questions, plain lines or JSON lines with `query`; needs --target.")
    ] = None
    query: Annotated[str | None, typer.Option(help="One question; needs --target.")] = None
    target: Annotated[
        str | None,
        typer.Option(
            help="System that retrieves: http://host/path, module:function, or 'command: program --flag'.",
            show_default=False,
        ),
    ] = None
    workspace: Workspace = None
    concurrency: Annotated[
        int, typer.Option(help="Number of queries to the target, and of pairs that are judged, at a time.")
    ] = 4
    deadline: Annotated[float, typer.Option(help="Timeout of one query in seconds, retries included.")] = 30.0
    retries: Annotated[int, typer.Option(help="Retries per query for errors that may be transient.")] = 2
    show_errors: ShowErrors = False
    project: Annotated[str, typer.Option(help="Project of captured questions, and of the run.")] = "default"
    since: Annotated[str, typer.Option(help="Captured within this duration, for example 7d.")] = "30d"
    order: Annotated[
        str, typer.Option(metavar="newest|random", help="Which captured questions: the newest, or a random sample.")
    ] = "newest"
    limit: Annotated[
        int | None,
        typer.Option(help="Maximum number of distinct questions; default: 50 of the captured, all of a file."),
    ] = None
    top_k: Annotated[int, typer.Option(help="Number of documents of each question, the first ones.")] = 5
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the samples and of the order.")] = 0


@dataclass(frozen=True)
class PairOptions:
    """Pairs of documents, the judge, and its limits."""

    pairs_per_query: Annotated[
        int | None, typer.Option(help="Number of pairs of each question, a random sample; default: all.")
    ] = None
    max_pair_chars: Annotated[int, typer.Option(help="Characters of each text that the judge receives.")] = 1_500
    model: Annotated[str | None, typer.Option(help="Model of the judge's API; default: judge.model.")] = None
    budget_usd: Annotated[str, typer.Option("--budget-usd", metavar="USD", help="Maximum cost, never exceeded.")] = "5"
    yes: Annotated[bool, typer.Option("--yes", help="Start even if the usual cost is above the maximum.")] = False
    no_judge_cache: Annotated[bool, typer.Option("--no-judge-cache", help="Do not reuse replies of earlier runs.")] = (
        False
    )
    max_rate: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Exit with 1 if the share of questions is significantly above this, 0 to 1; default: none.",
        ),
    ] = None
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(SEVERITIES),
            help="Exit with 1 for a finding of this severity or a higher one in a pair that no person refuted; default: none.",
        ),
    ] = None
    output: Annotated[Path | None, typer.Option(help="Also write the report to this file, as JSON.")] = None
    no_store: Annotated[
        bool, typer.Option("--no-store", help="Store nothing, so that findings have no state and the trend no point.")
    ] = False


@grouped
def run(
    source: SourceOptions,
    options: PairOptions,
    runs: RunsFolder = DEFAULT_RUNS,
    data: DataDirectory = DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    progress: Annotated[Mode, typer.Option(help="Progress on stderr.")] = Mode.AUTO,
) -> None:
    """Judge pairs of documents that one question retrieved, and report the rate of contradictions.

    Exit code 0 for any rate, 1 if --max-rate or --fail-on is exceeded, 2 if no pair was judged or the API refused further calls.
    """
    from assay_evals.contradictions.report import BUDGET, exceeded, report_text

    cap, limit = a_number(options.budget_usd, "--budget-usd"), a_number(options.max_rate, "--max-rate")
    assert cap is not None
    if limit is not None and not 0 <= limit <= 1:
        raise CommandError("--max-rate is not between 0 and 1")
    if options.fail_on is not None and options.fail_on not in SEVERITIES:
        raise CommandError(f"--fail-on is one of {', '.join(SEVERITIES)}")
    errors = ErrorsOfTarget(source.show_errors)
    cached_in = None if options.no_judge_cache else runs
    with own_stdout():
        prepared = prepare_contradictions(
            ContradictionsRequest(
                _source(source, errors),
                pairs_per_query=options.pairs_per_query,
                max_pair_chars=options.max_pair_chars,
                model=options.model,
                budget_usd=cap,
                concurrency=source.concurrency,
                cached_in=cached_in,
                output=options.output,
                store=not options.no_store,
                data=data,
            )
        )
    if prepared.estimated_usd > cap and not options.yes:
        raise CommandError(
            f"judging {len(prepared.pairs):,} pairs usually costs ${prepared.estimated_usd:.2f}, and --budget-usd is ${cap:.2f}: raise it, "
            "lower --limit, --top-k or --pairs-per-query, or pass --yes: judging then stops at the maximum, after a random part"
        )
    cached = prepared.calls.cache is not None  # there is none without a key to encrypt it with
    kept = "replies are cached; run the same command again to go on" if cached else "the replies so far are lost"
    with ends_quietly(stopped=lambda: kept), own_stdout(), Progress(progress) as counter:
        done = prepared.run(counter)
    report = done.report
    if as_json:
        emit(json.dumps(report, ensure_ascii=False))
    else:
        echo(report_text(report))
    errors.say_how()
    prepared.keep(done)
    if not report["pairs_judged"] or report["stopped_by"] not in (None, BUDGET):
        raise typer.Exit(OPERATIONAL)
    if exceeded(report, prepared.standing(done), limit, options.fail_on):
        raise typer.Exit(FINDING)


def _source(options: SourceOptions, errors: ErrorsOfTarget) -> Source:
    system = None
    if options.target is not None:
        system = TargetConfig(
            options.target, options.workspace, options.concurrency, options.deadline, options.retries,
            on_error=errors, keep_message=options.show_errors,
        )  # fmt: skip
    if options.order not in ("newest", "random"):
        raise CommandError("--order is newest or random")
    return Source(
        from_capture=options.from_capture,
        queries_file=options.queries_file,
        query=options.query,
        system=system,
        project=options.project,
        since=options.since,
        order="random" if options.order == "random" else "newest",
        limit=options.limit,
        top_k=options.top_k,
        seed=options.seed,
    )
