"""`assay eval list` and `assay eval import`: the runs there are, and those that another program made."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.options import DataDirectory, InStore, RunsFolder
from assay_cli.output.runs import summary_of
from assay_cli.output.terminal import echo, emit
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations import run_store as evaluation_store
from assay_operations.evaluations.import_run import import_trec
from assay_operations.evaluations.runs import DEFAULT_RUNS
from assay_operations.evaluations.tags import tags_of

if TYPE_CHECKING:
    from assay_evals.runs import Run
    from assay_evals.stored import StoredRun


def list_runs(
    runs: RunsFolder = DEFAULT_RUNS,
    limit: Annotated[int, typer.Option(min=1, help="The newest N.")] = 1_000,
    project: Annotated[str, typer.Option(help="Of this tenant's system only.")] = "",
    tag: Annotated[str, typer.Option(help="With this tag only.")] = "",
    branch: Annotated[str, typer.Option(help="Made on this branch only.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    in_store: InStore = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """List runs, the newest last."""
    if in_store:
        stored = evaluation_store.stored_runs(data, project=project, branch=branch, tag=tag, limit=limit)
        _list_stored(stored, as_json)
        return
    found = [each for folder in sorted(runs.iterdir()) if (each := _read(folder))] if runs.is_dir() else []
    chosen = [
        each
        for each in sorted(found, key=lambda one: one.started_at)
        if (not project or each.config.project == project)
        and (not tag or tag in each.config.tags)
        and (not branch or each.config.branch == branch)
    ][-limit:]
    for each in chosen:
        _tell(each, as_json)
    if not found:
        echo(f"no runs in {runs}; start one with: assay eval run", err=True)
    elif not chosen:
        echo(f"none of {len(found):,} run(s) in {runs} has this project, tag and branch", err=True)


def _tell(run: "Run", as_json: bool) -> None:
    config = run.config
    if as_json:
        shape = {"run_id": run.run_id, "started_at": run.started_at, "completed_at": run.completed_at}
        counts = {"cases": len(run.results), "errored": len(run.errored)}
        of = {"project": config.project, "tags": list(config.tags), "branch": config.branch}
        code = {"code_version": config.code_version, "dirty": config.dirty}
        emit(json.dumps(shape | counts | of | code, ensure_ascii=False))
        return
    state = "ended" if run.completed_at else "stopped: go on with --resume"
    cases = f"{len(run.results):,} cases, {len(run.errored)} errored"
    made = [config.branch or "", "changed files" if config.dirty else "", *config.tags]
    where = "".join(f", {each}" for each in made if each)
    echo(f"{run.run_id:28} {run.started_at[:19]}  {config.dataset} {config.dataset_version}  {cases}, {state}{where}")


def _list_stored(found: "list[StoredRun]", as_json: bool) -> None:
    for each in found:
        if as_json:
            emit(json.dumps(asdict(each) | {"run_id": str(each.run_id)}, ensure_ascii=False))
        else:
            state = "ended" if each.completed_at else "stopped"
            cases = f"{each.cases:,} cases, {each.errored} errored"
            echo(
                f"{each.name:28} {each.started_at[:19]}  {each.dataset} {each.dataset_version}  {cases}, {state}  {each.run_id}"
            )
    if not found:
        echo("no such runs in the store; store one with: assay eval run --store, or assay eval store RUN", err=True)


def _read(folder: Path) -> "Run | None":
    """A run for the list, which one folder that cannot be read does not keep from the others."""
    from assay_evals.runs import RUN_FILE, RunError, read_run

    try:
        return read_run(folder) if (folder / RUN_FILE).exists() else None
    except RunError as error:
        echo(f"left out: {error}", err=True)
        return None


def import_run(
    file: Annotated[Path, typer.Argument(help="Results as TREC has them: qid Q0 docid rank score tag.")],
    dataset: Annotated[Path, typer.Option(help="The golden dataset, whose case ids are the file's qids.")],
    name: Annotated[str | None, typer.Option(help="The run's name; default: the time.")] = None,
    runs: RunsFolder = DEFAULT_RUNS,
    k: Annotated[int, typer.Option("-k", min=1, help="How many results count.")] = 10,
    project: Annotated[str, typer.Option(help="The tenant whose system this is.")] = "default",
    tag: Annotated[list[str] | None, typer.Option(help="A word to find the run by; may be repeated.")] = None,
) -> None:
    """Make a run of what another program retrieved, to compare with others. A case that the file lacks was answered with nothing."""
    made = import_trec(file, dataset, name, runs, k=k, project=project, tags=tags_of(tag))
    echo(summary_of(made.run))
    for count, what in (
        (made.missing, "case(s) that the file lacks count as nothing found"),
        (made.unasked, "qid(s) left out: no case"),
    ):
        if count:
            echo(f"{count:,} {what}", err=True)
