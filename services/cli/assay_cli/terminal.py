"""How commands that print a stream end when the reader leaves or a person presses Ctrl-C."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

import typer

#: 128 + SIGINT, what shells report for a program that Ctrl-C ended.
INTERRUPTED = 130


@contextlib.contextmanager
def ends_quietly(*, interrupted: int = INTERRUPTED, stopped: Callable[[], str] | None = None) -> Iterator[None]:
    """No traceback: exit 0 when the reader closed the pipe (as `head` does), `interrupted` on Ctrl-C.

    `stopped` is what a person who pressed it is told: what is kept, and how to go on.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        leave_stdout()
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        leave_stdout()
        if stopped:
            typer.echo(f"stopped: {stopped()}", err=True)
        raise typer.Exit(interrupted) from None


def leave_stdout() -> None:
    """Let the interpreter's own flush at exit go nowhere: the pipe may be gone, and half a line must not be completed."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def printable(text: str) -> str:
    """Captured text for a terminal: control characters, which could move the cursor or worse, shown as spaces."""
    return "".join(character if character.isprintable() else " " for character in text)
