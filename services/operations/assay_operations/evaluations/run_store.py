"""Write, list and read evaluation runs in the store, as the identity `evaluator`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.actor import Actor, local_actor
from assay_operations.audit import operator_trail
from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_evals.reporters import Report
    from assay_evals.run.model import Run
    from assay_evals.run.run_store import StoredRun


@dataclass(frozen=True)
class Plan:
    """A run to store, and the number of rows in the store that it changes.

    It is 0 for a new run, or the same one.
    """

    #: Data directory of the settings.
    data: Path
    run: "Run"
    replaces: int


@dataclass(frozen=True)
class Stored:
    """A run in the store: its id, and the number of rows that were there and changed."""

    run_id: str
    replaced: int


def plan_store(run: "Run", data: Path) -> Plan:
    """Compare a run with the store. Raises `OperationError`; the files stay in any case."""
    from assay_evals.run.run_store import replaced_rows

    with _kept_on_disk(run), open_store(settings_for("evaluator", data).store) as client:
        return Plan(data, run, replaced_rows(client, run))


def apply(plan: Plan, actor: Actor) -> Stored:
    """Write the planned run and its results. It is recorded if it changes rows, which are counted again.

    Idempotent: repeat it after an error. Raises `OperationError`; the files stay in any case.
    """
    from assay_evals.run.run_store import identity, replaced_rows, store_run

    settings, run = settings_for("evaluator", plan.data).store, plan.run
    with _kept_on_disk(run), open_store(settings) as client:
        replaced = replaced_rows(client, run)
        if not replaced:
            return Stored(str(store_run(client, settings, run)), 0)
        target = {"run_id": str(identity(run)), "name": run.run_id, "project": run.config.project}
        attempt = operator_trail(plan.data, otherwise=settings).attempt(
            "eval store", actor, identity=settings.user, target=target, planned=replaced
        )
        with attempt:
            run_id = store_run(client, settings, run)
            attempt.changed = replaced
        return Stored(str(run_id), replaced)


def store(run: "Run", data: Path, actor: Actor) -> Stored:
    """Plan and apply. Raises `OperationError`; the files stay in any case."""
    return apply(plan_store(run, data), actor)


@contextmanager
def _kept_on_disk(run: "Run") -> Iterator[None]:
    try:
        yield
    except OperationError as error:
        raise OperationError(
            error.kind, f"{error}; the run is on disk; to store it later: assay eval store {run.run_id}"
        ) from None


class ClickHouse:
    """The store as a reporter: an existing run is replaced, which is recorded."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def report(self, report: "Report") -> str:
        """Write the run and its results, without texts."""
        return f"run {store(report.run, self._data, local_actor()).run_id}"


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
