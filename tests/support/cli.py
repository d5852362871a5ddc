"""Run the `assay` command as people do: a process with one identity's settings file."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from typer.testing import CliRunner

from assay_cli.main import app
from tests.support.store import PASSWORD


class Cli:
    """Run `assay` in its own directory against the given addresses, without inherited settings."""

    def __init__(
        self, directory: Path, *, store_url: str | None = None, redis_url: str | None = None, shards: int = 1
    ) -> None:
        self.directory = directory
        self._store_url = store_url or "http://127.0.0.1:1"
        self._redis_url = redis_url or "redis://127.0.0.1:1/0"
        self._shards = shards

    def settings_file(self, role: str, extra: str = "") -> Path:
        """Write the settings of an identity; `extra` is more TOML."""
        path = self.directory / f"{role}.toml"
        store = f'[store]\nurl = "{self._store_url}"\nuser = "{role}"\npassword = "{PASSWORD}"\n'
        path.write_text(
            f'[redis]\nurl = "{self._redis_url.format(role=role)}"\nshards = {self._shards}\n{store}{extra}'
        )
        path.chmod(0o600)
        return path

    def start(
        self,
        *arguments: str,
        role: str,
        extra: str = "",
        stdin: int = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:
        """Start a command."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        return subprocess.Popen(
            [str(Path(sys.executable).parent / "assay"), *arguments],
            cwd=self.directory,
            env={**inherited, "ASSAY_CONFIG": str(self.settings_file(role, extra)), "COLUMNS": "200"},
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments: str, role: str, extra: str = "") -> "subprocess.CompletedProcess[bytes]":
        """Run a command to its end."""
        process = self.start(*arguments, role=role, extra=extra)
        try:
            out, err = process.communicate(timeout=200)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def call(self, *arguments: str, role: str, extra: str = "") -> "subprocess.CompletedProcess[bytes]":
        """Run a command in this process: faster, with the same output and result."""
        settings = {"ASSAY_CONFIG": str(self.settings_file(role, extra)), "COLUMNS": "200"}
        with contextlib.chdir(self.directory):
            return called(*arguments, settings=settings)


def called(*arguments: str, settings: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[bytes]":
    """Run a command in this process, without inherited settings."""
    inherited: dict[str, str | None] = {name: None for name in os.environ if name.startswith("ASSAY_")}
    done = CliRunner().invoke(app, arguments, env={**inherited, **(settings or {})})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout_bytes, done.stderr_bytes)


class Output:
    """Read the lines that a running process prints as they come."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self.lines: list[bytes] = []
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in iter(self._stream.readline, b""):
            self.lines.append(line)

    def wait_for(self, seen: Callable[[list[bytes]], bool], seconds: float = 60) -> list[bytes]:
        """Return the lines so far, once `seen` is true for them."""
        deadline = time.monotonic() + seconds
        while not seen(self.lines):
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.01)
        return self.lines


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process in any state, and close its pipes."""
    process.kill()
    process.wait(60)
    for stream in (process.stdout, process.stderr):
        if stream is not None and not stream.closed:
            stream.close()
