"""Standard output of a process whose reader may have closed the pipe."""

import contextlib
import os
import sys


def leave_stdout() -> None:
    """Redirect stdout to the null device, so that the interpreter's flush at exit cannot fail.

    The pipe may be closed, and half a line must not be completed.
    """
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
