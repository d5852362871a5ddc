"""Everything the command prints goes through here: text for people, data for programs, and how both end.

What is shown was captured from strangers, or answered by systems under test. A terminal obeys control characters in it: they can clear the
screen, set the title, write to the clipboard, or reverse what is read. So text for people never has any, wherever it goes. Data for
programs (NDJSON, CSV, scrubbed text) is exact in a file or a pipe, and filtered like text only where stdout is a terminal.
"""

import codecs
import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

import typer

from assay_local.stdout import leave_stdout
from assay_schema.printable import printable, printable_lines

__all__ = [
    "INTERRUPTED",
    "asked",
    "can_ask",
    "closed_stream",
    "data_output",
    "echo",
    "emit",
    "ends_quietly",
    "leave_stdout",
    "printable",
]

#: 128 + SIGINT, what shells report for a program that Ctrl-C ended.
INTERRUPTED = 130


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text for people. Line feeds and tabs stay; every other control character becomes a space."""
    typer.echo(printable_lines(str(text)), err=err, nl=nl)


def emit(text: str, *, nl: bool = True) -> None:
    """Print data for programs: exact, but where stdout is a terminal."""
    typer.echo(printable_lines(text) if sys.stdout.isatty() else text, nl=nl)


def data_output() -> BinaryIO:
    """Where data for programs is streamed to: stdout's bytes, filtered where it is a terminal."""
    return cast("BinaryIO", _Filtered(sys.stdout.buffer)) if sys.stdout.isatty() else sys.stdout.buffer


def closed_stream() -> str:
    """`stdin` or `stdout` where the caller closed it (`<&-`, `>&-`), or ''."""
    return "stdin" if sys.stdin is None else "stdout" if sys.stdout is None else ""


def can_ask() -> bool:
    """Whether a person is there to answer."""
    return sys.stdin.isatty()


def asked(question: str, default: str) -> str:
    """What a person answers to a question on stderr, in small letters; nothing but Enter is the default."""
    answer: str = typer.prompt(printable(question), default=default, err=True)
    return answer.strip().lower()


class _Filtered(io.BufferedIOBase):
    """Passes UTF-8 on without its control characters; pieces may end within a character."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._decode = out, codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(cast("bytes", data))
        self._out.write(printable_lines(self._decode(piece)).encode())
        return len(piece)

    def flush(self) -> None:
        self._out.flush()

    def fileno(self) -> int:
        return self._out.fileno()


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
            echo(f"stopped: {stopped()}", err=True)
        raise typer.Exit(interrupted) from None
