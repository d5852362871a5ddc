"""Audit log in `<data>/audit`: one JSON line per attempt, one file per kind and ISO week.

Files are append-only, and only their owner can read them. Entries contain names, hashes and numbers, never captured text.
"""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay_access.errors import AccessError
from assay_access.secrets import make_private

FOLDER = "audit"


def record(data: Path, kind: str, entry: Mapping[str, Any]) -> str:
    """Append an entry, with its time as `ts`. Never raises: returns the reason of a failure, else ''."""
    now = datetime.now(UTC)
    year, week, _ = now.isocalendar()
    path = data / FOLDER / f"{kind}-{year}-W{week:02}.jsonl"
    line = json.dumps({"ts": now.isoformat(timespec="milliseconds")} | dict(entry), ensure_ascii=False) + "\n"
    try:
        make_private(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line.encode())  # at once, so that lines of several processes do not mix
        finally:
            os.close(descriptor)
    except (OSError, AccessError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return f"not recorded in {path}: {reason}"
    return ""
