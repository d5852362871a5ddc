"""Output of the processes: on the terminal with a prefix, and in one bounded file each."""

import sys
from pathlib import Path
from typing import IO

from rich.console import RenderableType
from rich.text import Text

from assay_access.secrets import make_private
from assay_local.console import Console
from assay_local.stdout import leave_stdout

#: Size at which a log file is renamed to `.1`, replacing the previous one, in bytes.
LOG_MAX_BYTES = 10 * 1024 * 1024
_COLOURS = {
    "redis": "red",
    "store": "yellow",
    "migrate": "blue",
    "scrubber": "magenta",
    "writer": "cyan",
    "demo": "green",
}


class Terminal(Console):
    """A console that a closed pipe or terminal only silences: the system keeps running."""

    def show(self, *renderables: RenderableType) -> None:
        """Print, unless the terminal is closed. Lines are not wrapped."""
        try:
            self.print(*renderables, soft_wrap=True)
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Silence the console instead of exiting as Rich does.

        The interpreter's flush at exit would otherwise change the exit code to 120.
        """
        self.quiet = True
        if self.file is sys.stdout:
            leave_stdout()


class BoundedLog:
    """A log file of at most `limit` bytes, and its predecessor of the same size."""

    def __init__(self, path: Path, *, keep: bool, limit: int = LOG_MAX_BYTES) -> None:
        self._path = path
        self._limit = limit
        self._file: IO[bytes] = path.open("ab" if keep else "wb", buffering=0)
        path.chmod(0o600)
        self._size = path.stat().st_size

    def write(self, line: str) -> None:
        """Append a line."""
        data = line.encode() + b"\n"
        if self._size + len(data) > self._limit and self._size:
            self._file.close()
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            self._file = self._path.open("wb", buffering=0)
            self._path.chmod(0o600)
            self._size = 0
        self._file.write(data)
        self._size += len(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ProcessLogs:
    """Writes the lines of each process to its file and, prefixed and coloured, to the terminal."""

    def __init__(self, directory: Path, console: Terminal, *, keep: bool) -> None:
        make_private(directory)
        self._directory = directory
        self._console = console
        self._keep = keep
        self._logs: dict[str, BoundedLog] = {}
        self._disk_full = False

    def line(self, name: str, text: str) -> None:
        """Write one line of a process. On a full disk it goes to the terminal only."""
        try:
            if name not in self._logs:
                self._logs[name] = BoundedLog(self._directory / f"{name}.log", keep=self._keep)
            self._logs[name].write(text)
            self._disk_full = False
        except OSError as error:
            if not self._disk_full:
                self._disk_full = True
                self.announce(f"cannot write to {self._directory} ({error.strerror}); logs go to the terminal only")
        colour = _COLOURS.get(name, "white")
        self._console.show(Text.assemble((f"{name:>8} | ", colour), text))

    def announce(self, text: str) -> None:
        """Print a message of the supervisor itself."""
        self._console.show(Text.assemble((f"{'assay':>8} | ", "bold"), (text, "bold")))

    def close(self) -> None:
        """Close the files."""
        for log in self._logs.values():
            log.close()
