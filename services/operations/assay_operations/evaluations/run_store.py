"""Write, list and read evaluation runs in the store, as the identity `evaluator`."""

from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_evals.reporters import Report
    from assay_evals.run.model import Run
    from assay_evals.run.run_store import StoredRun


def store(run: "Run", data: Path) -> str:
    """Write a run to the store, and return its id. Raises `OperationError`; the files stay in any case."""
    from assay_evals.run.run_store import store_run

    try:
        settings = settings_for("evaluator", data).store
        with open_store(settings) as client:
            return str(store_run(client, settings, run))
    except OperationError as error:
        raise OperationError(
            "unavailable", f"{error}; the run is on disk; to store it later: assay eval store {run.run_id}"
        ) from None


class ClickHouse:
    """The store as a reporter: an existing run is replaced."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def report(self, report: "Report") -> str:
        """Write the run and its results, without texts."""
        return f"run {store(report.run, self._data)}"


def clickhouse(where: str | None) -> ClickHouse:
    """Open the reporter `clickhouse` or `clickhouse=DATA`, with DATA the data directory of `assay up`."""
    return ClickHouse(Path(where) if where else DEFAULT_DATA)


def stored(name: str, data: Path) -> "Run":
    """Read a run from the store."""
    from assay_evals.run.run_store import load_stored

    with open_store(settings_for("evaluator", data).store) as client:
        return load_stored(client, name)


def stored_runs(
    data: Path, *, project: str = "", branch: str = "", tag: str = "", limit: int = 1_000
) -> "list[StoredRun]":
    """List the newest runs that match, newest last."""
    from assay_evals.run.run_store import list_stored

    with open_store(settings_for("evaluator", data).store) as client:
        return list_stored(client, project=project, branch=branch, tag=tag, limit=limit)
