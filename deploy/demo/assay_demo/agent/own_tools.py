"""The tools that the agent runs itself: write a file and run tests, in a temporary directory."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_schema.fields import ToolStatus

#: The only command that the agent is allowed to run.
ALLOWED = ("python", "-m", "unittest")
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call, as the agent sees it."""

    output: str
    status: ToolStatus = "success"
    error_kind: str | None = None
    exit_code: int | None = None


class OwnTools:
    """`write` and `bash`, as coding agents have them."""

    NAMES = ("write", "bash")

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def run(self, name: str, args: Mapping[str, Any]) -> Result:
        """Run one of `NAMES`."""
        return self._write(**args) if name == "write" else self._bash(**args)

    def _write(self, path: str, text: str) -> Result:
        (self._directory / Path(path).name).write_text(text, encoding="utf-8")
        return Result(f"wrote {path}")

    def _bash(self, command: str) -> Result:
        words = tuple(shlex.split(command))
        if words[: len(ALLOWED)] != ALLOWED:
            return Result(f"only {shlex.join(ALLOWED)} is allowed", "refused", "rule_refused")
        done = subprocess.run(
            [sys.executable, *words[1:]],
            cwd=self._directory,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        output = done.stdout + done.stderr
        if done.returncode:
            return Result(output, "error", "exit_code", done.returncode)
        return Result(output, exit_code=0)
