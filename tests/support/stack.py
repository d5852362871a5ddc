"""Start the whole embedded system as its users do, for measurements and end-to-end tests."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import clickhouse_connect
import psutil
import redis
from clickhouse_connect.driver.client import Client

from assay_access.settings_files import Ports
from assay_runtime.config import load_settings
from assay_runtime.connection import address
from tests.support.ports import free_ports

#: The number of ports that `assay up` takes from its base.
PORTS = len(fields(Ports))


class System:
    """Run `assay up` with its own data directory."""

    def __init__(
        self,
        data: Path,
        port_base: int,
        *options: str,
        settings: Mapping[str, str] | None = None,
        python: Sequence[str] = (sys.executable,),
    ) -> None:
        """Start the system. `settings`: additional environment variables; `python`: the interpreter, with any wrapper."""
        self._python = python
        self.data, self.port_base = data, port_base
        self._options, self._settings = options, dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "System":
        command = [
            *self._python,
            "-m",
            "assay_cli",
            "up",
            "--data",
            str(self.data),
            "--port-base",
            str(self.port_base),
            *self._options,
        ]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")
        } | self._settings
        with (self.data.parent / "up.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + 240
        while not all(self._ready(self.port_base + offset) for offset in (2, 3)):
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(self.log()[-4000:])
            time.sleep(0.1)
        return self

    def stop(self) -> int:
        """Send Ctrl-C; return the exit code."""
        assert self._process
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(240)

    def log(self) -> str:
        return (self.data.parent / "up.log").read_text(errors="replace")

    def redis(self, identity: str) -> "redis.Redis":
        settings = load_settings(self.data / "secrets" / f"{identity}.toml").redis
        return redis.Redis.from_url(address(settings), socket_timeout=60)

    def store(self, identity: str, database: str = "__default__") -> Client:
        users = json.loads((self.data / "secrets/store-users.json").read_text())
        return clickhouse_connect.get_client(
            host="127.0.0.1",
            port=self.port_base + 1,
            username=identity,
            password=users[identity]["password"],
            database=database,
            autogenerate_session_id=False,
        )

    def processes(self) -> list[psutil.Process]:
        assert self._process
        root = psutil.Process(self._process.pid)
        return [root, *root.children(recursive=True)]

    def child(self, module: str) -> psutil.Process:
        """Return the process that runs a module."""
        (found,) = [process for process in self.processes() if module in command_of(process)]
        return found

    def resident(self) -> int:
        """Return the memory of all processes together, in bytes."""
        total = 0
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total

    @staticmethod
    def _ready(port: int) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1) as answer:  # loopback
                return bool(answer.status == 200)
        except OSError:
            return False


def command_of(process: psutil.Process) -> str:
    """Return a process's command line; empty if it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def begin_with(data: Path, tables: Path) -> None:
    """Copy the data of a store that was shut down into the data directory of a system that has not started yet."""
    shutil.copytree(tables, data / "store", symlinks=True)


@contextlib.contextmanager
def running(
    directory: Path, *options: str, settings: Mapping[str, str] | None = None, tables: Path | None = None
) -> Iterator[System]:
    """Run a system for the duration of the block. `tables`: the data of a store to begin with, which spares the migrations."""
    data = directory / "data"
    data.mkdir(mode=0o700)
    if tables:
        begin_with(data, tables)
    system = System(data, free_ports(PORTS), *options, settings=settings).start()
    try:
        yield system
    finally:
        system.stop()
