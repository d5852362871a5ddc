"""The `assay` command: one typer app, one line for each command.

Exit codes: 0 ok, 1 a finding, 2 usage or operational. What a person can mend is one line on stderr; a traceback means a defect.
"""

import importlib.metadata
import logging
import sys
import traceback
from types import TracebackType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from assay_cli.alerts import alerts
from assay_cli.compare import compare
from assay_cli.dataset import dataset
from assay_cli.dataset_making import import_dataset, release, review
from assay_cli.dead import dead
from assay_cli.doctor import doctor
from assay_cli.drift import drift
from assay_cli.errors import OPERATIONAL
from assay_cli.evaluate import evaluate
from assay_cli.export import export
from assay_cli.feedback import feedback
from assay_cli.gate import bench, gate
from assay_cli.generate import generate
from assay_cli.judge import judge
from assay_cli.migrate import migrate
from assay_cli.mining import mine
from assay_cli.nightly import nightly
from assay_cli.prune import prune
from assay_cli.query import query
from assay_cli.replay import replay
from assay_cli.reporting import report
from assay_cli.runs_listed import import_run, list_runs
from assay_cli.scrub import pii, scrub
from assay_cli.tail import tail
from assay_cli.terminal import echo
from assay_cli.up import up
from assay_operations.errors import explain


class _OneLineErrors(TyperGroup):
    """Turns the errors that `explain` knows into one line on stderr and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        # The store's client also logs what it raises; without a handler that would be a second line.
        logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())
        try:
            return super().invoke(ctx)
        except Exception as error:
            message = explain(error)
            if message is None:
                sys.excepthook = _traceback
                raise
            echo(f"assay: {message}", err=True)
            raise typer.Exit(OPERATIONAL) from None


def _traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What the interpreter shows of a defect, whose text may hold anything."""
    echo("".join(traceback.format_exception(kind, error, trace)), err=True, nl=False)


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"assay {importlib.metadata.version('assay-cli')}")
        raise typer.Exit


app = typer.Typer(cls=_OneLineErrors, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def assay(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Capture what retrieval systems do, scrub it, store it, and ask about it."""


for command in (up, migrate, export, doctor, prune, query, tail, scrub, replay, gate):
    app.command()(command)
dataset.command()(mine)
dataset.command()(generate)
dataset.command("import")(import_dataset)
dataset.command()(review)
dataset.command()(release)
evaluate.command()(compare)
evaluate.command("list")(list_runs)
evaluate.command("import")(import_run)
evaluate.command()(report)
evaluate.command()(nightly)
for group, name in (
    (alerts, "alerts"),
    (bench, "bench"),
    (dataset, "dataset"),
    (dead, "dead"),
    (drift, "drift"),
    (evaluate, "eval"),
    (feedback, "feedback"),
    (judge, "judge"),
    (pii, "pii"),
):
    app.add_typer(group, name=name)
