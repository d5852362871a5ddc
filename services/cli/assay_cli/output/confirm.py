"""Confirmation prompt before something is deleted permanently."""

import sys
from collections.abc import Callable

import typer

from assay_cli.errors import CommandError
from assay_cli.output.terminal import printable


def agreed(show: Callable[[], None], question: str, *, undone: str = "deleted", dry_run: str = "count only") -> bool:
    """Show what would be deleted, and ask for confirmation. Raises `CommandError` without a terminal.

    `undone` and `dry_run` complete its message: what did not happen, and what --dry-run does.
    """
    if not sys.stdin.isatty():
        raise CommandError(f"not a terminal, so nothing was {undone}; pass --yes to confirm, or --dry-run to {dry_run}")
    show()
    return typer.confirm(printable(question), err=True)
