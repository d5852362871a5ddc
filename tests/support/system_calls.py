"""Make one system call of a running process fail, or kill the process at it: faults that random kills never hit.

Needs the right to trace one's own processes; `missing()` says why a call cannot be broken here.
"""

import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path


@cache
def missing() -> str:
    """Return why calls cannot be broken here; '' if they can."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return "calls are broken on Linux x86-64 only"
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            with broken(process.pid, "rename", "error=ENOSPC"):
                return ""
        except RuntimeError:
            return "processes may not be traced here"
        finally:
            process.kill()


@contextmanager
def broken(pid: int, calls: str, fault: str, *, path: Path | None = None) -> Iterator["subprocess.Popen[str]"]:
    """While the block runs, break `calls` (comma-separated, such as `rename,renameat2`) of all threads of `pid` as `fault` describes.

    - `error=ENOSPC` fails each call; `error=EIO:when=1` the first call of each thread; `:when=5+20` the fifth and every 20th after.
    - `signal=SIGKILL:when=3` sends a signal before the call; `delay_enter=500000` delays it, in microseconds.
    - `list` makes the tracer, which is yielded, print the names of the calls.

    `path` limits all of this to calls on this file, or on anything in this directory.
    Raises: RuntimeError if the process cannot be traced.
    """
    command = [
        sys.executable,
        "-m",
        "tests.support.call_tracer",
        str(pid),
        calls,
        fault,
        *([str(path)] if path else []),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stdout is not None
        try:
            if tracer.stdout.readline() != "traced\n":
                raise RuntimeError(f"{pid} cannot be traced: {tracer.communicate(timeout=60)[1]}")
            yield tracer
        finally:
            tracer.terminate()
