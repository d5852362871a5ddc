"""Confirmation prompt before something is deleted permanently, or changes what stored data means."""

import sys
from collections.abc import Callable

import typer

from assay_cli.errors import CommandError
from assay_cli.output.terminal import printable

#: Fix of a deletion without a terminal.
_DELETION = "nothing was deleted; pass --yes to confirm, or --dry-run to count only"


def agreed(show: Callable[[], None], question: str, *, otherwise: str = _DELETION) -> bool:
    """Show what would be changed, and ask for confirmation. Raises `CommandError` without a terminal."""
    if not sys.stdin.isatty():
        raise CommandError(f"not a terminal, so {otherwise}")
    show()
    return typer.confirm(printable(question), err=True)
