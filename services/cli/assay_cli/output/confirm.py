"""The question before something is deleted for ever."""

import sys
from collections.abc import Callable

import typer

from assay_cli.errors import CommandError
from assay_cli.output.terminal import printable


def agreed(show: Callable[[], None], question: str) -> bool:
    """Show on stderr what is about to go, and ask. Raises `CommandError` where nobody can be asked: silence is not consent."""
    if not sys.stdin.isatty():
        raise CommandError("nobody can be asked here, so nothing was deleted; say --yes (or --dry-run to count only)")
    show()
    return typer.confirm(printable(question), err=True)
