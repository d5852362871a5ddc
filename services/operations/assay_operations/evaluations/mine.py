"""Mine golden cases from rows of production."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.evaluations.files import rows_of
from assay_operations.events.filters import Range
from assay_operations.time_bounds import duration_ms

if TYPE_CHECKING:
    from assay_evals.dataset.mining import Mined, Miner
    from assay_evals.dataset.model import Dataset
    from assay_runtime.store import Client

#: Columns that are read from the views: scrubbed questions, ids, verdicts; no answers and no texts of feedback.
_READ = {
    "feedback": "event_id, target_event_id, verdict",
    "answers": "event_id, project, query, citations.context_id AS cited, contexts.id AS context_ids",
    "candidates": "event_id, project, query, retrieved_slugs, pii_families",
}


def miner_of_files(files: list[Path], project: str, *, include_scrubbed: bool) -> "Miner":
    """Return a miner of rows of `assay export`."""
    from assay_evals.dataset.mining import Miner

    miner = Miner(include_scrubbed=include_scrubbed)
    _read_files(files, miner, project)
    return miner


def miner_of_store(data: Path, since: str, project: str, rows: int, *, include_scrubbed: bool) -> "Miner":
    """Return a miner of the newest rows of the store."""
    from assay_evals.dataset.mining import Miner

    miner = Miner(include_scrubbed=include_scrubbed)
    with open_store(settings_for("sre", data).store) as client:
        span = Range(max(0, time.time_ns() // 1_000_000 - duration_ms(since, "--since")))
        read_rows(client, miner, span, project, rows)
    return miner


def mine(
    miner: "Miner", limit: int, *, known: "Dataset | None", alike: float, negative_only: bool
) -> "tuple[Mined, str]":
    """Return the cases, and the name of the embedder that found similar questions."""
    from assay_drift.embedding import embedder

    name, embed = embedder()
    return miner.cases(limit, embed, known=known, alike=alike, negative_only=negative_only), name


def _read_files(files: list[Path], miner: "Miner", project: str) -> None:
    """Read the rows of exported files, and scrub their questions again."""
    from assay_evals.dataset.captured_rows import CapturedError
    from assay_operations.scrub import policies
    from assay_scrubber.engine import Scrubber

    scrubber = Scrubber(policies(None).of(project or "default"))
    for where, row in rows_of(files):
        if not project or row.get("project", "default") == project:
            try:
                miner.add(_scrubbed(row, scrubber))
            except CapturedError as error:
                raise OperationError("invalid", f"{where}: {error}") from None


def _scrubbed(row: dict[str, Any], scrubber: Any) -> dict[str, Any]:
    """Scrub the question of a row again, since a file may be hand-made; scrubbed text stays the same."""
    query = row.get("query")
    return row | {"query": scrubber.scrub(query).text} if isinstance(query, str) else row


def read_rows(client: "Client", miner: "Miner", span: Range, project: str, rows: int) -> None:
    """Read the newest rows of the range, at most `rows` of each kind."""
    for view, columns in _READ.items():
        for row in _rows(client, view, columns, span, project, rows):
            if view == "answers":
                row["citations"] = [{"context_id": name} for name in row.pop("cited")]
                row["contexts"] = [{"id": name} for name in row.pop("context_ids")]
            miner.add(row)


def _rows(client: "Client", view: str, columns: str, span: Range, project: str, rows: int) -> Iterator[dict[str, Any]]:
    of_project = " AND project = {project:String}" if project else ""
    query = (
        f"SELECT {columns} FROM {view}"  # noqa: S608  # constants
        " WHERE event_time >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')"
        " AND event_time < fromUnixTimestamp64Milli({to:Int64}, 'UTC')"
        f"{of_project} ORDER BY event_time DESC LIMIT {{rows:UInt64}}"
    )
    with client.query_row_block_stream(
        query, parameters={"from": span.from_ms, "to": span.to_ms, "project": project, "rows": rows}
    ) as stream:
        names = stream.source.column_names
        for block in stream:
            for row in block:
                yield dict(zip(names, row, strict=True))
