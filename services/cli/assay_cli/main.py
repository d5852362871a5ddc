"""The `assay` command: its subcommands, and how their errors are reported.

Exit codes: 0 ok, 1 a finding, 2 a usage or operational error, or a bug. An error that the user can fix is one line on stderr; a traceback
is a bug.
"""

import importlib.metadata
import logging
import os
import sys
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Annotated, Any, ClassVar, NoReturn

import typer

from assay_cli.exit_codes import OPERATIONAL
from assay_cli.lazy import LazyGroup
from assay_cli.output.terminal import echo

#: Commands by panel of the help, in the order and by the names of the README's list of pages.
_PANELS = {
    "Capture and scrub": ("scrub", "pii", "feedback", "keys"),
    "Use the data": ("query", "tail", "export", "sessions", "audit", "console"),
    "Monitor quality": ("judge", "drift", "alerts"),
    "Evaluate changes": ("eval", "dataset", "replay", "gate", "bench"),
    "Run it": ("up", "doctor", "migrate", "dead", "prune", "operations"),
}


class _Commands(LazyGroup):
    """Turn the errors that `explain` knows into one line on stderr and exit code 2."""

    members: ClassVar[Mapping[str, str]] = {
        name: f"assay_cli.commands.{name}:{name}" for names in _PANELS.values() for name in names
    }
    panels: ClassVar[Mapping[str, str]] = {name: panel for panel, names in _PANELS.items() for name in names}

    def invoke(self, ctx: Any) -> Any:
        # numpy reads this on import. Resampling multiplies many small matrices, which takes two to six times as long in several threads
        # as in one, because the threads wait for one another.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # The store's client also logs the errors that it raises; without a handler they would be printed twice.
        logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())
        try:
            return super().invoke(ctx)
        except Exception as error:
            from assay_operations.errors import explain

            message = explain(error)
            if message is None:
                sys.excepthook = _traceback
                raise
            echo(f"assay: {message}", err=True)
            raise typer.Exit(OPERATIONAL) from None


def _traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> NoReturn:
    """Print the traceback of a bug. Its text can contain captured data, so it is filtered for the terminal.

    The exit code is not Python's 1, which means a finding: a mismatch of `assay audit verify`, for example.
    """
    echo("".join(traceback.format_exception(kind, error, trace)), err=True, nl=False)
    raise SystemExit(OPERATIONAL)


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"assay {importlib.metadata.version('assay-cli')}")
        raise typer.Exit


app = typer.Typer(cls=_Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def assay(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Capture, scrub, store, query and evaluate what retrieval systems do."""
