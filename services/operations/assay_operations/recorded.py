"""List recorded operations."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.audit import Trail
from assay_operations.clients import open_store, settings_for

if TYPE_CHECKING:
    from assay_runtime.store import Client


@dataclass(frozen=True)
class Recorded:
    """Recorded operations, newest first, and the number of records that the store has not taken yet."""

    rows: list[dict[str, Any]]
    waiting: int
    #: Where these wait.
    folder: Path
    #: Why there is no row; empty if there are any.
    nothing: str = ""


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
        nothing = "" if rows else _nothing(client)
    return Recorded(rows, trail.waiting(), trail.file.parent, nothing)


def _nothing(client: "Client") -> str:
    """Return why no operation was found: none is recorded, or none matches, with the names that would."""
    count, operations, actors = client.query(
        "SELECT count(), arraySort(groupUniqArray(100)(toString(operation))), arraySort(groupUniqArray(20)(toString(actor))) "
        "FROM operations"
    ).result_rows[0]
    if not count:
        return "no operation is recorded"
    return f"none of {count:,} matches; operations are: {', '.join(operations)}; actors are: {', '.join(actors)}"
