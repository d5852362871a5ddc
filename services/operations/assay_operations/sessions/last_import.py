"""The problems of the last import on this host, which `assay doctor` shows."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

from assay_sessions.readers import Problem

_FILE = "last-import.json"
#: Kinds of problems that an update of Assay may fix.
_FORMAT = ("unknown_type", "unknown_schema")


def remember(data: Path, problems: Mapping[Problem, int]) -> None:
    """Write the problems of an import into the data directory, if there is one.

    It holds no captured text.
    """
    if data.is_dir():
        found = [[problem.kind, problem.path, problem.detail, count] for problem, count in sorted(problems.items())]
        with contextlib.suppress(OSError):  # another user's directory: doctor says less
            (data / _FILE).write_text(json.dumps(found), encoding="utf-8")


def not_understood(data: Path) -> list[str]:
    """Return the types and files that no reader knew in the last import on this host."""
    try:
        found = json.loads((data / _FILE).read_text(encoding="utf-8"))
        return [f"{detail or path} ({count:,})" for kind, path, detail, count in found if kind in _FORMAT]
    except (OSError, ValueError, TypeError):
        return []
