"""`assay console`: links to the web console."""

import typer

from assay_cli.options import DataDirectory
from assay_cli.output.terminal import echo
from assay_operations.clients import DEFAULT_DATA
from assay_operations.console_link import link

console = typer.Typer(no_args_is_help=True, help="Open the web console.")


@console.callback()
def _group() -> None:
    """Open the web console."""


@console.command()
def url(data: DataDirectory = DEFAULT_DATA) -> None:
    """Print a link that signs you in to the console. It works once, within ten minutes."""
    echo(link(data))
