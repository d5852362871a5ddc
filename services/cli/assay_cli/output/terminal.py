"""All output of the command line: text for people, data for programs, and clean exits.

The output contains text from users and from systems under test. A terminal obeys control characters in such text: they can clear the
screen, set the title, write to the clipboard, or reverse the reading direction. So text for people never contains any, even in a file.
Data for programs (NDJSON, CSV, scrubbed text) is exact in a file or a pipe, and is filtered like text only if stdout is a terminal.
"""

import codecs
import contextlib
import io
import select
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

import typer

from assay_local.stdout import leave_stdout
from assay_schema.printable import printable, printable_lines

if TYPE_CHECKING:
    from assay_evals.dataset.model import Dataset

__all__ = [
    "INTERRUPTED",
    "asked",
    "can_ask",
    "closed_stream",
    "data_output",
    "echo",
    "emit",
    "emit_dataset",
    "ends_quietly",
    "leave_stdout",
    "notice_departed_reader",
    "own_stdout",
    "printable",
]

#: 128 + SIGINT: the exit code that shells report for a program stopped by Ctrl-C.
INTERRUPTED = 130


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text for people. Line feeds and tabs stay; every other control character becomes a space."""
    typer.echo(printable_lines(str(text)), err=err, nl=nl)


def emit(text: str, *, nl: bool = True, out: TextIO | None = None) -> None:
    """Print data for programs: exact, except on a terminal, where control characters are filtered."""
    out = out or sys.stdout
    typer.echo(printable_lines(text) if out.isatty() else text, nl=nl, file=out)


def own_stdout() -> contextlib.redirect_stdout[TextIO]:
    """Send what a target or a scorer prints to stderr, so that it cannot corrupt the data on stdout."""
    return contextlib.redirect_stdout(sys.stderr)


def kept_stdout() -> TextIO:
    """Return stdout for output while `own_stdout` redirects it."""
    return sys.stdout


def data_output() -> BinaryIO:
    """Return the byte stream of stdout for data; control characters are filtered if it is a terminal."""
    return cast("BinaryIO", _Filtered(sys.stdout.buffer)) if sys.stdout.isatty() else sys.stdout.buffer


def closed_stream() -> str:
    """Return `stdin` or `stdout` if the caller closed it (`<&-`, `>&-`), else ''."""
    return "stdin" if sys.stdin is None else "stdout" if sys.stdout is None else ""


def can_ask() -> bool:
    """Return True if stdin is a terminal, so that a prompt can be answered."""
    return sys.stdin.isatty()


def asked(question: str, default: str) -> str:
    """Prompt on stderr and return the answer in lower case; Enter alone means the default."""
    answer: str = typer.prompt(printable(question), default=default, err=True)
    return answer.strip().lower()


class _Filtered(io.BufferedIOBase):
    """Write UTF-8 without control characters; a piece may end within a character."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

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


def notice_departed_reader() -> None:
    """Raise `BrokenPipeError` if the reader of stdout is gone, even while there is nothing to write."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0)):
        raise BrokenPipeError


@contextlib.contextmanager
def ends_quietly(
    *,
    interrupted: int = INTERRUPTED,
    stopped: Callable[[], str] | None = None,
    closed: Callable[[], int] = lambda: 0,
) -> Iterator[None]:
    """Exit without a traceback: code 0 on a closed pipe (as `head` leaves), `interrupted` on Ctrl-C.

    `stopped` returns the note that is printed on Ctrl-C: what was kept, and how to resume. `closed` returns another code on a closed pipe.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        leave_stdout()
        raise typer.Exit(closed()) from None
    except KeyboardInterrupt:
        leave_stdout()
        if stopped:
            echo(f"stopped: {stopped()}", err=True)
        raise typer.Exit(interrupted) from None


def emit_dataset(dataset: "Dataset") -> None:
    """Print a golden dataset as NDJSON."""
    from assay_evals.dataset.file_format import write_dataset

    for line in write_dataset(dataset):
        emit(line)
