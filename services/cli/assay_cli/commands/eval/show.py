"""`assay eval show` and `assay eval store`: show or store an existing run."""

from typing import Annotated

import typer

from assay_cli.options import Comment, DataDirectory, InStore, RunsFolder, Slices
from assay_cli.output.runs import show_run, tell_replaced
from assay_cli.output.terminal import echo
from assay_operations.actor import local_actor
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations import run_store as evaluation_store
from assay_operations.evaluations.rules import expect_slices, fields_of, rules_of
from assay_operations.evaluations.runs import DEFAULT_RUNS, find_run


def store(
    name: Annotated[str, typer.Argument(metavar="RUN", help="Name or folder of the run.")],
    runs: RunsFolder = DEFAULT_RUNS,
    comment: Comment = "",
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Write a run from its folder to the store; an existing copy is replaced.

    A copy is a stored run with the same name, start and configuration. If rows of it change, that is recorded
    (`assay operations list`).
    """
    actor = local_actor(comment)
    stored = evaluation_store.store(find_run(name, runs), data, actor)
    echo(stored.run_id)
    tell_replaced(stored)


def show(
    name: Annotated[str, typer.Argument(metavar="RUN", help="Name or folder of the run.")],
    runs: RunsFolder = DEFAULT_RUNS,
    slices: Slices = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole report as JSON, cases included.")] = False,
    in_store: InStore = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show a run: metrics with intervals, latency, and query types."""
    found = evaluation_store.stored(name, data) if in_store else find_run(name, runs)
    from assay_evals.compare.slices import slice_checks

    fields = fields_of(slices, held := rules_of(None))
    expect_slices(held, fields, found.results)
    show_run(found, as_json, checks=slice_checks(found, fields, (), {}))
