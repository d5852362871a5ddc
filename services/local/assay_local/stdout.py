"""The standard output of a process whose reader may have left."""

import contextlib
import os
import sys


def leave_stdout() -> None:
    """Let the interpreter's own flush at exit go nowhere: the pipe may be gone, and half a line must not be completed."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
