"""List recorded operations."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_operations.audit import Trail
from assay_operations.clients import open_store, settings_for


@dataclass(frozen=True)
class Recorded:
    """Recorded operations, newest first, and the number of records that the store has not taken yet."""

    rows: list[dict[str, Any]]
    waiting: int
    #: Where these wait.
    folder: Path


def recorded(data: Path, *, since_ms: int = 0, operation: str = "", actor: str = "", limit: int = 100) -> Recorded:
    """List operations that started since a Unix millisecond.

    Records that wait in the data directory are sent first.
    """
    from assay_runtime.queries import named_queries

    store = settings_for("operator", data).store
    trail = Trail(data, store)
    wanted = {"since_ms": since_ms, "operation": operation, "actor": actor, "limit": limit}
    with open_store(store) as client:
        with contextlib.suppress(Exception):  # an identity that may only read: they stay where they are
            trail.send_waiting(client)
        rows = [dict(row) for row in client.query(named_queries()["operations"].sql, parameters=wanted).named_results()]
    return Recorded(rows, trail.waiting(), trail.file.parent)
