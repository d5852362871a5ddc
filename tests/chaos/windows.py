"""`assay export`, as its users run it, in windows that chain from the first event of a run to its last, whatever is broken meanwhile."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import orjson

from tests.chaos.ledger import Window

KINDS = ("retrieval", "answer", "feedback", "tool_call", "server_event", "session")


class Exporter:
    """Exports one kind after the other from a thread. A run that fails is thrown away, as its exit code demands, and repeated."""

    def __init__(self, directory: Path, settings_file: Path, *, often: bool = False) -> None:
        """`often`: the kind that most events have, again and again, so that the short time in which a proof's fault shows is met."""
        self._kinds, self._pause_s = (KINDS[:1], 0.1) if often else (KINDS, 3.0)
        self.windows: dict[str, list[Window]] = {kind: [] for kind in KINDS}
        self.failed = 0
        self._directory = directory
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        self._environment["ASSAY_CONFIG"] = str(settings_file)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="exporter", daemon=True)

    def start(self) -> "Exporter":
        """Export every few seconds."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Finish the window that is open."""
        self._over.set()
        self._thread.join(120)

    def _run(self) -> None:
        while not self._over.is_set():
            for kind in self._kinds:
                if not self._over.wait(self._pause_s):
                    self.export(kind)

    def export(self, kind: str) -> bool:
        """One window. False if the export failed."""
        cursor = self._directory / f"{kind}.cursor"
        after = int(cursor.read_text()) if cursor.exists() else -1
        command = [sys.executable, "-m", "assay_cli", "export", "--quiet", "--kind", kind, "--cursor-file", str(cursor)]
        out = self._directory / f"{kind}.ndjson"
        with out.open("wb") as file:
            done = subprocess.run(
                command,
                stdout=file,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                cwd=self._directory,
                timeout=300,
            )
        if done.returncode:
            self.failed += 1
            return False
        with out.open("rb") as file:
            rows = [(row["id"], row["event_id"]) for row in map(orjson.loads, file)]
        self.windows[kind].append(Window(after, int(cursor.read_text()), rows))
        return True

    def finish(self, upto: int) -> None:
        """Export the rest, up to a watermark at least."""
        for kind in KINDS:
            for _ in range(20):
                if self.export(kind) and self.windows[kind][-1].upto >= upto:
                    break
