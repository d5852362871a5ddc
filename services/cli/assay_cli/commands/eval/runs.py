"""`assay eval list`, `import` and `export`: list runs, and exchange them with other programs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.options import AsJsonLines, DataDirectory, InStore, RunsFolder
from assay_cli.output.terminal import echo, emit, ends_quietly
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations import run_store as evaluation_store
from assay_operations.evaluations.export_run import RunFormat, exported, exported_longmemeval
from assay_operations.evaluations.import_run import import_trec
from assay_operations.evaluations.runs import DEFAULT_RUNS, document_of, find_run, list_folder
from assay_operations.evaluations.tags import tags_of

if TYPE_CHECKING:
    from assay_evals.run.model import Run
    from assay_evals.run.run_store import StoredRun


def list_runs(
    runs: RunsFolder = DEFAULT_RUNS,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of runs, the newest.")] = 1_000,
    project: Annotated[str, typer.Option(help="Only this project; default: all.")] = "",
    tag: Annotated[str, typer.Option(help="Only runs with this tag; default: all.")] = "",
    branch: Annotated[str, typer.Option(help="Only runs of this branch; default: all.")] = "",
    as_json: AsJsonLines = False,
    in_store: InStore = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """List runs, newest last."""
    if in_store:
        stored = evaluation_store.stored_runs(data, project=project, branch=branch, tag=tag, limit=limit)
        _list_stored(stored, as_json)
        return
    chosen, existing = list_folder(runs, _skipped, project=project, tag=tag, branch=branch, limit=limit)
    for run in chosen:
        _tell(run, as_json)
    if not existing:
        echo(f"no runs in {runs}; start one with: assay eval run", err=True)
    elif not chosen:
        echo(f"none of {existing:,} run(s) in {runs} has this project, tag and branch", err=True)


def _tell(run: "Run", as_json: bool) -> None:
    from assay_evals.report.text import run_line

    if as_json:
        emit(json.dumps(document_of(run), ensure_ascii=False))
    else:
        echo(run_line(run))


def _list_stored(stored: "list[StoredRun]", as_json: bool) -> None:
    from assay_evals.report.text import stored_run_line

    for run in stored:
        if as_json:
            emit(json.dumps(asdict(run) | {"run_id": str(run.run_id)}, ensure_ascii=False))
        else:
            echo(stored_run_line(run))
    if not stored:
        echo("no such runs in the store; store one with: assay eval run --store, or assay eval store RUN", err=True)


def _skipped(error: Exception) -> None:
    echo(f"skipped: {error}", err=True)


def import_run(
    file: Annotated[Path, typer.Argument(help="Results in TREC format: qid Q0 docid rank score tag.")],
    dataset: Annotated[Path, typer.Option(help="Golden dataset whose case IDs are the qids of the file.")],
    name: Annotated[str | None, typer.Option(help="Name of the run; default: the current time.")] = None,
    runs: RunsFolder = DEFAULT_RUNS,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of results per query that count.")] = 10,
    project: Annotated[str, typer.Option(help="Project of the system.")] = "default",
    tag: Annotated[list[str] | None, typer.Option(help="Tag to find the run by; repeatable.")] = None,
) -> None:
    """Import the results of another program as a run.

    A case that is missing in the file counts as a query without results.
    """
    made = import_trec(file, dataset, name, runs, k=k, project=project, tags=tags_of(tag))
    from assay_evals.report.text import run_text

    echo(run_text(made.run))
    for count, what in (
        (made.missing, "case(s) missing in the file count as queries without results"),
        (made.unasked, "qid(s) skipped: not in the dataset"),
    ):
        if count:
            echo(f"{count:,} {what}", err=True)


def export_run(
    name: Annotated[
        str,
        typer.Argument(metavar="RUN", help="Name or folder of the run, or an output file of `assay eval longmemeval`."),
    ],
    form: Annotated[
        RunFormat,
        typer.Option(
            "--format",
            help="trec: results of the run. trec-qrels: its judgements. captured: its queries and results as captured rows. "
            "qrels: its judgements for a gate.",
        ),
    ],
    dataset: Annotated[Path | None, typer.Option(help="Dataset of the run; all formats but trec need it.")] = None,
    runs: RunsFolder = DEFAULT_RUNS,
    in_store: InStore = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Print a run in the format of another program: TREC, or captured rows and judgements for a gate.

    Cases and facts that a format cannot contain are counted on stderr. An ID that it cannot contain ends the command before anything is
    printed.
    """
    if not in_store and Path(name).is_file():
        made = exported_longmemeval(Path(name), form, dataset)
    else:
        made = exported(evaluation_store.stored(name, data) if in_store else find_run(name, runs), form, dataset)
    with ends_quietly():
        for line in made.lines:
            emit(line)
    for note in made.notes:
        echo(note, err=True)
