"""Confirmation prompt before something is deleted permanently, or changes what stored data means."""

import sys
from collections.abc import Callable

import typer

from assay_cli.errors import CommandError
from assay_cli.output.terminal import echo, printable


def agreed(
    show: Callable[[], None], question: str, *, yes: bool, undone: str = "deleted", dry_run: str = "count only"
) -> bool:
    """Show what would change and ask, unless `yes`. Report a refusal.

    Raises `CommandError` without a terminal. `undone`: what then did not happen. `dry_run`: what --dry-run does, or "".
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        rest = f", or --dry-run to {dry_run}" if dry_run else ""
        raise CommandError(f"not a terminal, so nothing was {undone}; pass --yes to confirm{rest}")
    show()
    agrees = typer.confirm(printable(question), err=True)
    if not agrees:
        echo(f"nothing was {undone}", err=True)
    return agrees
