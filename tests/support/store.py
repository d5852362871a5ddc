"""Start a real embedded store on a free loopback port, for tests and benchmarks."""

import http.client
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

from assay_runtime.store import Client, connect
from assay_schema.settings import RetentionSettings, Settings, StoreSettings
from assay_store.roles import KEPT_TABLES
from tests.support.ports import free_port

ROLES = ("owner", "writer", "sre", "exporter", "evaluator", "operator", "console", "auditor")
PASSWORD = "test"
_TAMPERED = Path(__file__).with_name("tampered_store.py")
#: The views that keep the rollups, in the order of the data.
ROLLUP_REFRESHES = (
    "rollup_minute_refresh", "rollup_minute_repair", "rollup_hour_refresh", "rollup_hour_repair",
    "rollup_day_refresh", "rollup_day_repair",
)  # fmt: skip
#: Those of them that the store refreshes each minute.
MINUTELY_REFRESHES = ("rollup_minute_refresh", "rollup_hour_refresh", "rollup_day_refresh")


def refresh_rollups(owner: Client, views: Sequence[str] = ROLLUP_REFRESHES) -> None:
    """Refresh the rollups now instead of on schedule, and wait for the result.

    Twice where a refresh was already running: it can have begun before the caller's rows were stored.
    """
    for view in views:
        state = owner.query("SELECT status FROM system.view_refreshes WHERE view = {view:String}", {"view": view})
        for _ in range(1 if state.result_rows == [("Scheduled",)] else 2):
            owner.command(f"SYSTEM REFRESH VIEW assay_base.{view}")
            owner.command(f"SYSTEM WAIT VIEW assay_base.{view}")


class StoreServer:
    """A store with one user per role, named like it, all with the password `test`; `options` as on the command line.

    `tables`: the data directory of another store that was shut down; this store begins with a copy. `kill` is SIGKILL; `start` after it
    reopens the data. `may_tamper`: its owner may change every table of the audit log, as nobody may but who has the store's machine.
    """

    def __init__(
        self,
        directory: Path,
        *options: str,
        tables: Path | None = None,
        python: Sequence[str] = (sys.executable,),
        may_tamper: bool = False,
    ) -> None:
        """Prepare the store. `python`: the interpreter, with any wrapper."""
        self._options, self._tables = options, tables
        self._program = [*python, str(_TAMPERED)] if may_tamper else [*python, "-m", "assay_store"]
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the process ID of the running store."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and neither stopped nor killed."""
        return self._process is not None

    def tables_with_rows(self) -> set[str]:
        with connect(self.settings().store) as owner:
            found = owner.query("SELECT name FROM system.tables WHERE database = 'assay_base' AND total_rows > 0")
        return {str(name) for (name,) in found.result_rows}

    def empty(self, kept: Collection[str]) -> None:
        """Remove the rows of all tables except those `kept`; a store that was killed is started first.

        It begins with new tables if one has rows that no role may remove.
        """
        if not self.running:
            self.start()
        filled = self.tables_with_rows() - set(kept)
        if filled & set(KEPT_TABLES):
            self.stop()
            shutil.rmtree(self.directory / "data")
            self.start()
            return
        with connect(self.settings().store) as owner:
            owner.command("SYSTEM STOP VIEWS")  # also ends a refresh that would write rows of before
            for table in filled:
                owner.command(f"TRUNCATE TABLE assay_base.{table} SYNC")
            owner.command("SYSTEM START VIEWS")

    def rest(self) -> None:
        """Keep the store from refreshing rollups that nobody reads, until `empty`."""
        if self.running:
            with connect(self.settings().store) as owner:
                owner.command("SYSTEM STOP VIEWS")

    def start(self) -> "StoreServer":
        self.directory.mkdir(parents=True, exist_ok=True)
        data = self.directory / "data"
        if self._tables and not data.exists():
            shutil.copytree(self._tables, data, symlinks=True)
        users = self.directory / "users.json"
        users.write_text(json.dumps({role: {"role": role, "password": PASSWORD} for role in ROLES}))
        users.chmod(0o600)
        command = [*self._program, "--data", str(data)]
        command += ["--port", str(self.port), "--users", str(users), *self._options]
        with (self.directory / "store.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            try:
                self._require_ready()
                return self
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    self.kill()
                    raise RuntimeError((self.directory / "store.log").read_text()[-2000:]) from None
                time.sleep(0.05)

    def _require_ready(self) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("GET", "/readyz")
            if connection.getresponse().status != 200:
                raise ConnectionError("not ready yet")

    def settings(
        self, role: str = "owner", *, days: int = 90, projects: Mapping[str, int] | None = None, **store: object
    ) -> Settings:
        """Return the settings of one role."""
        values = {"url": self.url, "user": role, "password": PASSWORD, **store}
        return Settings(
            store=StoreSettings.model_validate(values),
            retention=RetentionSettings(days=days, projects=dict(projects or {})),
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def ended(self) -> int:
        """Wait at most a minute for the process to end by itself. Returns its exit code."""
        assert self._process is not None
        code = self._process.wait(60)
        self._process = None
        return code

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(60)
            self._process = None
