"""Make one system call of a running process fail, or kill the process at it: faults that random kills never hit.

Needs `strace` and the right to trace one's own processes; `missing()` says why it cannot be had.
"""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.programs import found, lacking

#: How long strace may take to attach, in seconds.
ATTACH_S = 60


def missing() -> str:
    """Why no call can be broken here; '' if it can."""
    if not found("strace"):
        return lacking("strace")
    tried = subprocess.run(
        ["strace", "-e", "trace=none", "-e", "inject=rename:error=ENOSPC", "true"], capture_output=True, timeout=60
    )
    return "" if tried.returncode == 0 else "strace may not trace here"


@contextmanager
def broken(pid: int, calls: str, fault: str, *, path: Path | None = None) -> Iterator[Path]:
    """While the block runs, `calls` (comma-separated, such as `rename,renameat2`) of all threads of `pid` meet `fault`.

    `fault` in strace's words: `error=ENOSPC`, `error=EIO:when=1` (the first time only), `signal=SIGKILL:when=3`, `delay_enter=500000`.
    `path` limits it to calls that name this file. Yields strace's log. A process that is killed ends the tracing.
    """
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "strace.log"
        command = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={calls}", "-e", f"inject={calls}:{fault}"]
        command += ["-P", str(path)] if path else []
        tracer = subprocess.Popen([*command, "-p", str(pid)], stderr=subprocess.PIPE)
        try:
            _wait_attached(tracer, pid)
            yield log
        finally:
            tracer.terminate()
            _, said = tracer.communicate(timeout=60)
            if b"attach: ptrace" in said:
                raise RuntimeError(said.decode())


def _wait_attached(tracer: "subprocess.Popen[bytes]", pid: int) -> None:
    deadline = time.monotonic() + ATTACH_S
    while not _all_threads_are_traced(pid):
        if tracer.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(
                f"strace did not attach to {pid}: {tracer.stderr.read().decode() if tracer.stderr else ''}"
            )
        time.sleep(0.01)


def _all_threads_are_traced(pid: int) -> bool:
    tracers = []
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            tracers.append("TracerPid:\t0\n" not in status.read_text())
        except FileNotFoundError:  # a thread that ended meanwhile
            continue
    return bool(tracers) and all(tracers)
