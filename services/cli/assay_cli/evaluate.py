"""`assay eval`: ask a system every question of a golden dataset, and compare such runs."""

import asyncio
import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay_cli import evaluation_store
from assay_cli.asking import Concurrency, Deadline, Retries, ShowErrors, System, TargetName, Workspace, a_number
from assay_cli.checkout import checkout
from assay_cli.connect import DEFAULT_DATA, DataDirectory
from assay_cli.dataset import load
from assay_cli.dataset_making import expect_reviewed
from assay_cli.errors import FINDING, CommandError
from assay_cli.errors_of_targets import ERRORS_SHOWN, ErrorsOfTarget
from assay_cli.evaluation_store import InStore
from assay_cli.judged import judge_named, tell, with_spending
from assay_cli.progress import Mode, Progress
from assay_cli.terminal import echo, emit, ends_quietly, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay_evals.comparison import Rule, Verdict
    from assay_evals.dataset import Dataset
    from assay_evals.paired import PairedRuns
    from assay_evals.runs import Run

evaluate = typer.Typer(no_args_is_help=True, help="Evaluation runs over golden datasets: run, list, show, compare.")

#: Exit code of a comparison that cannot tell.
INCONCLUSIVE = 3
DEFAULT_RUNS = Path("runs")
RunsFolder = Annotated[Path, typer.Option("--runs", help="Folder that holds the runs.")]


class Undecided(StrEnum):
    """What metrics that cannot tell count as."""

    INCONCLUSIVE = "inconclusive"
    PASS = "pass"  # noqa: S105
    FAIL = "fail"


@evaluate.command()
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
    seed: Annotated[int, typer.Option(min=0, help="Of the resamples behind the intervals.")] = 0,
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
    no_judge_cache: Annotated[
        bool, typer.Option("--no-judge-cache", help="Pay for verdicts again that an earlier run paid for.")
    ] = False,
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
    """Ask a system every question of a dataset and write the run down as it goes. Exits 1 if a case ended in an error."""
    from assay_cli import reporting
    from assay_evals.evaluation import evaluate_into
    from assay_evals.runs import CaseResult, RunConfig, RunFolder
    from assay_evals.target_names import shown

    if resume and name is None:
        raise CommandError("--resume needs --name, the run to go on with")
    golden = load(dataset, "--dataset")
    if limit is not None:
        if limit < 1:
            raise CommandError(f"--limit: {limit} is below 1")
        golden = golden.model_copy(update={"cases": golden.cases[:limit]})
    expect_reviewed(golden, dataset, required=require_reviewed)
    if gain not in ("linear", "burges"):
        raise CommandError(f"--gain: {gain!r} is not one of linear, burges")
    reporters = reporting.open_reporters(report, "--report")
    judged = judge_named(judge, judge_budget, cached_in=None if no_judge_cache else runs, repeats=repeats)
    config = RunConfig.of(
        golden,
        shown(target),
        k=k,
        cutoffs=_cutoffs(cutoffs, k),
        gain=gain,
        seed=seed,
        **asdict(checkout()),
        judge=judged.fingerprint if judged else None,
        options={"repeats": repeats} if repeats else {},
        label=label,
        project=project,
        tags=tuple(sorted({*(tag or ())})),
    )
    name = free_name(name, runs, resume)  # before the target is loaded, which may take a while
    system = System(target, workspace, concurrency, deadline, retries, ErrorsOfTarget(show_errors))
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
                return await evaluate_into(folder, golden, asked, how, judge=judged, on_result=count)
            finally:
                if judged:
                    await judged.close()

        done = asyncio.run(work())
    unknown = tell(judged)
    _tell_unread(folder.unread)
    if to_store:
        evaluation_store.store(done, data)
    _show(done, as_json)
    reporting.report_run(done, reporters, golden if report_text else None)
    system.errors.say_how()
    if done.errored or unknown:
        raise typer.Exit(FINDING)


@evaluate.command("store")
def store_run(
    name: Annotated[str, typer.Argument(metavar="RUN", help="A run's name, or its folder.")],
    runs: RunsFolder = DEFAULT_RUNS,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Write a run from its folder to the store; one that is there is replaced."""
    echo(evaluation_store.store(find_run(name, runs), data))


@evaluate.command()
def show(
    name: Annotated[str, typer.Argument(metavar="RUN", help="A run's name, or its folder.")],
    runs: RunsFolder = DEFAULT_RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="The whole report, cases included.")] = False,
    in_store: InStore = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show a run: its metrics with intervals, latency, and types of query."""
    found = evaluation_store.stored(name, data) if in_store else find_run(name, runs)
    _show(found, as_json)


@evaluate.command()
def compare(
    baseline: Annotated[str, typer.Argument(help="A run's name, or its folder.")],
    candidate: Annotated[str, typer.Argument(help="Another, over the same cases.")],
    runs: RunsFolder = DEFAULT_RUNS,
    threshold: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=NUMBER", help="The worsening that fails a metric, such as recall@10=0.03."),
    ] = None,
    floor: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=NUMBER", help="What the candidate's mean must reach.")
    ] = None,
    stage: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=STAGE", help="informational, warn or block, such as mrr=warn.")
    ] = None,
    inconclusive: Annotated[
        Undecided, typer.Option(help="What metrics that cannot tell count as.")
    ] = Undecided.INCONCLUSIVE,
    seed: Annotated[int, typer.Option(min=0, help="Of the resamples.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="The comparison as JSON on stdout.")] = False,
    markdown: Annotated[Path | None, typer.Option(help="Write a report for a pull request here.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures here.")] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="The dataset, so that the page marks what should come back.")
    ] = None,
    in_store: InStore = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Compare two runs, case by case. Exits 0 pass, 1 fail, 2 if they cannot be compared, 3 if there are too few cases to tell."""
    from assay_evals import report
    from assay_evals.comparison import Verdict
    from assay_evals.paired import compare_runs

    rules = _rules(threshold, floor, stage)
    for option, path in (("--markdown", markdown), ("--junit", junit), ("--html", html)):
        _expect_place(option, path)
    before, after = (
        evaluation_store.stored(name, data) if in_store else find_run(name, runs) for name in (baseline, candidate)
    )
    golden = load(dataset, "--dataset") if dataset else None
    if golden and not any(_asked(golden, each) for each in (before, after)):
        raise CommandError(f"--dataset: {dataset} is not what these runs were asked: give that one, or leave it out")
    paired = compare_runs(before, after, rules=rules, seed=seed)
    _expect_measured("--threshold", threshold, paired)
    _expect_measured("--floor", floor, paired)
    lost = paired.comparison.metrics_only_baseline  # these fail, and the report says so
    blocking = [each for each in stage or [] if each.endswith("=block") and each.rpartition("=")[0] not in lost]
    _expect_measured("--stage", blocking, paired)
    counts_as = Verdict(inconclusive.value)
    verdict = paired.comparison.verdict(inconclusive=counts_as)
    if markdown:
        _write("--markdown", markdown, report.markdown(paired, verdict))
    if junit:
        _write("--junit", junit, report.junit(paired, inconclusive=counts_as))
    if html:
        cases = golden.cases if golden else []
        right = {case.id: {name for name, grade in case.relevance.items() if grade > 0} for case in cases}
        _write("--html", html, report.html(paired, verdict, relevance=right))
    if as_json:
        emit(json.dumps(report.as_json(paired, verdict), ensure_ascii=False, indent=2))
    else:
        echo(_compared(paired, verdict))
    code = {Verdict.PASS: 0, Verdict.FAIL: FINDING, Verdict.INCONCLUSIVE: INCONCLUSIVE}[verdict]
    if code:
        raise typer.Exit(code)


def _tell_unread(unread: "Mapping[str, int]") -> None:
    for field, results in unread.items():
        told = f"{results:,} result(s) say {field} in a way that cannot be read"
        echo(f"{told}: they count as if they said none", err=True)


def _asked(golden: "Dataset", found: "Run") -> bool:
    """Whether a run was asked this dataset, or, as with `--limit`, a part of it."""
    cases = {result.case_id for result in found.results}
    part = golden.model_copy(update={"cases": [case for case in golden.cases if case.id in cases]})
    return found.config.dataset_fingerprint in (golden.fingerprint, part.fingerprint)


def _expect_place(option: str, path: Path | None) -> None:
    """A report's file that cannot be one is told before anything is written."""
    if path is None:
        return
    if path.name == "-" or path.is_dir():
        raise CommandError(f"{option}: {path} is {'a folder' if path.is_dir() else 'not a file'}: name a file")
    if not path.parent.is_dir():
        raise CommandError(f"{option}: no folder {path.parent}")


def _write(option: str, path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{option}: {path} cannot be written: {error.strerror}") from None


def _show(found: "Run", as_json: bool) -> None:
    if as_json:
        emit(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
    else:
        echo(summary_of(found))


def summary_of(found: "Run") -> str:
    """A run in a screenful."""
    config = found.config
    lines = [
        f"{found.run_id}: {len(found.results):,} cases of {config.dataset} {config.dataset_version}, {len(found.errored)} errored",
        *(
            f"  {name:20} {each.mean:.3f}  [{each.low:.3f}, {each.high:.3f}]  n={each.n}"
            for name, each in found.summary().items()
        ),
        *(f"  {name:20} {value:,.1f}" for name, value in found.latency().items()),
    ]
    lines += [f"  errored: {result.case_id}: {result.error}" for result in found.errored[:ERRORS_SHOWN]]
    if (more := len(found.errored) - ERRORS_SHOWN) > 0:
        lines.append(f"  errored: and {more:,} more")
    return "\n".join(map(printable, lines))


def _compared(paired: "PairedRuns", verdict: "Verdict") -> str:
    from assay_evals.report import change, meaning, notes, number, problems

    lines = [
        f"{each.verdict.value:13} {each.metric:16} {number(each.baseline, each.metric):>9} {number(each.candidate, each.metric):>9}"
        f"  {change(each):32} {each.rule.stage.value:14} {meaning(each)}"
        for each in paired.comparison.metrics
    ]
    return "\n".join(map(printable, [*problems(paired), *lines, *notes(paired), f"verdict: {verdict.value}"]))


def _rules(thresholds: list[str] | None, floors: list[str] | None, stages: list[str] | None) -> "dict[str, Rule]":
    from assay_evals.comparison import DEFAULT_RULES, Stage, is_share, rule_of

    found = dict(DEFAULT_RULES)
    changes: list[tuple[str, dict[str, Any]]] = []
    for metric, text in _pairs("--threshold", thresholds):
        value = a_number(text, "--threshold")
        if value is None or value < 0:
            raise CommandError(f"--threshold: {metric}: below 0")
        changes.append((metric, {"threshold": value}))
    for metric, text in _pairs("--floor", floors):
        value = a_number(text, "--floor")
        if value is None or (is_share(metric) and not 0 <= value <= 1):
            raise CommandError(f"--floor: {metric}: {text} is not between 0 and 1, where shares are")
        changes.append((metric, {"floor": value}))
    for metric, text in _pairs("--stage", stages):
        if text not in list(Stage):
            raise CommandError(f"--stage: {text!r} is not one of {', '.join(Stage)}")
        changes.append((metric, {"stage": Stage(text)}))
    for metric, change in changes:
        found[metric] = replace(rule_of(metric, found), **change)
    return found


def _pairs(option: str, given: list[str] | None) -> list[tuple[str, str]]:
    pairs = [(each.rpartition("=")[0], each.rpartition("=")[2]) for each in given or []]
    if any(not metric for metric, _ in pairs):
        raise CommandError(f"{option}: write METRIC=VALUE, such as {option} mrr=0.05")
    return pairs


def _expect_measured(option: str, given: list[str] | None, paired: "PairedRuns") -> None:
    """A rule for a metric that is not there would hold nothing, in silence."""
    names = [each.metric for each in paired.comparison.metrics]
    for metric, _ in _pairs(option, given):
        if metric not in names:
            raise CommandError(
                f"{option}: the runs do not both measure {metric}; they do: {', '.join(names) or 'nothing'}"
            )


def free_name(name: str | None, runs: Path, resume: bool) -> str:
    """The run's name: the one given, or the time. Raises `CommandError` for one that is taken, or that no folder can have."""
    from assay_evals.runs import RUN_FILE, RunError, run_folder

    if name is None:
        name = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    try:
        folder = run_folder(runs, name)
    except RunError as error:
        raise CommandError(f"--name: {error}; where the runs are kept is --runs") from None
    begun = (folder / RUN_FILE).exists()
    if begun and not resume:
        raise CommandError(f"{folder} holds a run already: go on with --resume, name another, or delete that folder")
    if resume and not begun:
        raise CommandError(f"--resume: {runs} holds no run {name}: leave --resume out to begin one")
    return name


def _cutoffs(text: str | None, k: int) -> tuple[int, ...]:
    from assay_evals.metrics import DEFAULT_CUTOFFS

    if k < 1:
        raise CommandError(f"-k: {k} is below 1")
    if text is None:
        return tuple(each for each in DEFAULT_CUTOFFS if each <= k) or (k,)
    try:
        found = tuple(sorted({int(each) for each in text.split(",")}))
    except ValueError:
        raise CommandError(f"--cutoffs: {text!r} is not a list of ranks such as 5,10") from None
    if not 1 <= found[0] <= found[-1] <= k:
        raise CommandError(f"--cutoffs: {text!r} must lie between 1 and the {k} results that -k asks for")
    return found


def find_run(name: str, runs: Path) -> "Run":
    """A run by its name, or by its folder."""
    from assay_evals.runs import read_run

    return read_run(Path(name) if (Path(name) / "run.json").exists() else runs / name)
