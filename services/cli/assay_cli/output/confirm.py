"""Confirmation prompt before something is deleted permanently."""

import sys
from collections.abc import Callable

import typer

from assay_cli.errors import CommandError
from assay_cli.output.terminal import printable


def agreed(show: Callable[[], None], question: str) -> bool:
    """Show what would be deleted, and ask for confirmation. Raises `CommandError` without a terminal."""
    if not sys.stdin.isatty():
        raise CommandError("not a terminal, so nothing was deleted; pass --yes to confirm, or --dry-run to count only")
    show()
    return typer.confirm(printable(question), err=True)
