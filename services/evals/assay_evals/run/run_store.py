"""Runs in the store: tables `eval_runs` and `eval_results`, written idempotently.

A run's id is derived from its name, its start and its configuration, so storing it again (after `--resume`, or after an
error) replaces its rows. Results are written first: a visible run has all of its results. Texts that a target returned
are not part of a run.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

import numpy as np
import orjson

from assay_evals.run.model import CaseResult, Run, RunConfig, RunError
from assay_runtime.store import Client, insert_json_rows
from assay_schema.settings import StoreSettings

#: Results sent to the store at a time.
BATCH_ROWS = 5_000
DETAIL_LONGEST = 2_000
_RESULT_COLUMNS = (
    "case_id", "query_type", "retrieved", "latency_ms", "metrics", "error", "tries", "cluster", "weight",
)  # fmt: skip
_CONFIG_FIELDS = {field.name for field in fields(RunConfig)}
_RESULT_FIELDS = {field.name for field in fields(CaseResult)}


@dataclass(frozen=True)
class StoredRun:
    """A run as shown in the list."""

    run_id: uuid.UUID
    name: str
    project: str
    dataset: str
    dataset_version: str
    target: str
    started_at: str
    completed_at: str | None
    cases: int
    errored: int
    means: dict[str, float]


def identity(run: Run) -> uuid.UUID:
    """Return the run's id in the store, derived from the run."""
    config = orjson.dumps(run.config.as_json(), option=orjson.OPT_SORT_KEYS).decode()
    return uuid.uuid5(uuid.NAMESPACE_OID, f"assay/run/{run.run_id}/{run.started_at}/{config}")


def store_run(client: Client, settings: StoreSettings, run: Run) -> uuid.UUID:
    """Write a run and its results; returns its id.

    Idempotent: repeat after an error. Raises the driver's errors.
    """
    run_id = identity(run)
    for start in range(0, len(run.results), BATCH_ROWS):
        rows = list(_result_rows(run, run_id, start))
        insert_json_rows(client, f"{settings.base_database}.eval_results", b"".join(rows), len(rows))
    insert_json_rows(client, f"{settings.base_database}.eval_runs", _line(_run_row(run, run_id)), 1)
    return run_id


def replaced_rows(client: Client, run: Run) -> int:
    """Count the rows in the store that storing this run would change: its own, and those of its results.

    0 if it is not in the store, or is there as it is. The client uses the views' database.
    """
    try:
        stored = load_stored(client, str(run_id := identity(run)))
    except RunError:
        return 0
    before = {result.case_id: line for result, line in zip(stored.results, _all_rows(stored, run_id), strict=True)}
    pairs = zip(run.results, _all_rows(run, run_id), strict=True)
    changed = sum(before.get(result.case_id, line) != line for result, line in pairs)
    return changed + (_run_row(stored, run_id) != _run_row(run, run_id) or changed > 0)


def _all_rows(run: Run, run_id: uuid.UUID) -> Iterator[bytes]:
    for start in range(0, len(run.results), BATCH_ROWS):
        yield from _result_rows(run, run_id, start)


def _result_rows(run: Run, run_id: uuid.UUID, start: int) -> Iterator[bytes]:
    for place, result in enumerate(run.results[start : start + BATCH_ROWS], start=start):
        whole = asdict(result)
        row = {name: whole.pop(name) for name in _RESULT_COLUMNS}
        row["error"] = None if result.error is None else result.error[:DETAIL_LONGEST]
        common = {"schema_version": 1, "run_id": str(run_id), "project": run.config.project, "place": place}
        yield _line(row | common | {"started_at": run.started_at, "details": _text(whole)})


def _run_row(run: Run, run_id: uuid.UUID) -> dict[str, Any]:
    config = run.config
    return {
        "schema_version": 1,
        "run_id": str(run_id),
        "name": run.run_id[:255],
        "project": config.project,
        "label": config.label,
        "dataset": config.dataset,
        "dataset_version": config.dataset_version,
        "dataset_fingerprint": config.dataset_fingerprint,
        "target": config.target,
        "code_version": config.code_version,
        "judge": config.judge,
        "seed": config.seed,
        "config": _text(config.as_json()),
        "started_at": run.started_at,
        "completed_at": run.completed_at,
        "cases": len(run.results),
        "errored": len(run.errored),
        "means": means(run),
        "latency_ms": run.latency(),
        "details": "{}",
    }


def means(run: Run) -> dict[str, float]:
    """Return each metric's mean over the applicable cases, weighted by their inverse probability."""
    weights = np.array([result.weight for result in run.results])
    stored_means = {}
    for name in run.names:
        values = run.column(name)
        if (known := ~np.isnan(values)).any():
            stored_means[name] = float(np.average(values[known], weights=weights[known]))
    return stored_means


_LISTED = (
    "run_id, name, project, dataset, dataset_version, target, toUnixTimestamp64Milli(started_at) AS began,"
    " toUnixTimestamp64Milli(completed_at) AS ended, cases, errored, means"
)


def list_stored(
    client: Client, *, project: str = "", branch: str = "", tag: str = "", limit: int = 1_000
) -> list[StoredRun]:
    """Return the newest runs, the newest last: of a project, a branch, with a tag, if given.

    The client uses the views' database.
    """
    rows = client.query(
        f"SELECT {_LISTED} FROM eval_runs WHERE ({{project:String}} = '' OR project = {{project:String}})"  # noqa: S608  # constants
        " AND ({branch:String} = '' OR JSONExtractString(config, 'branch') = {branch:String})"
        " AND ({tag:String} = '' OR has(JSONExtract(config, 'tags', 'Array(String)'), {tag:String}))"
        " ORDER BY started_at DESC, name LIMIT {limit:UInt32}",
        parameters={"project": project, "branch": branch, "tag": tag, "limit": limit},
    ).result_rows
    runs = []
    for run_id, name, of, dataset, version, target, began, ended, cases, errored, averages in reversed(rows):
        times = _moment(began) or "", _moment(ended)
        one = StoredRun(
            uuid.UUID(str(run_id)), name, of, dataset, version, target, *times, cases, errored, dict(averages)
        )
        runs.append(one)
    return runs


def load_stored(client: Client, name: str) -> Run:
    """Load a run by its name (the latest of several) or id. Raises `RunError`.

    The client uses the views' database.
    """
    try:
        column, value = "run_id", str(uuid.UUID(name))
    except ValueError:
        column, value = "name", name
    rows = client.query(
        "SELECT run_id, name, project, config, toUnixTimestamp64Milli(started_at), toUnixTimestamp64Milli(completed_at)"  # noqa: S608
        f" FROM eval_runs WHERE {column} = {{value:String}} ORDER BY started_at DESC LIMIT 1",
        parameters={"value": value},
    ).result_rows
    if not rows:
        raise RunError(f"the store contains no run {name}: see `assay eval list --store`")
    run_id, run_name, project, config, began, ended = rows[0]
    results = client.query(
        f"SELECT {', '.join(_RESULT_COLUMNS)}, details FROM eval_results"  # noqa: S608  # constants
        " WHERE project = {project:String} AND run_id = {run_id:UUID} ORDER BY place",
        parameters={"project": project, "run_id": str(run_id)},
    ).result_rows
    case_results = [_result(dict(zip((*_RESULT_COLUMNS, "details"), row, strict=True))) for row in results]
    return Run(run_name, _config(json.loads(config)), _moment(began) or "", _moment(ended), case_results)


def _config(document: dict[str, Any]) -> RunConfig:
    config_fields = {key: value for key, value in document.items() if key in _CONFIG_FIELDS}
    return RunConfig.of_json(config_fields)


def _result(row: dict[str, Any]) -> CaseResult:
    more = {key: value for key, value in json.loads(row.pop("details")).items() if key in _RESULT_FIELDS}
    return CaseResult(**(row | {"retrieved": list(row["retrieved"]), "metrics": dict(row["metrics"])} | more))


def _moment(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _text(value: Mapping[str, Any]) -> str:
    return orjson.dumps(value).decode()


def _line(row: Mapping[str, Any]) -> bytes:
    return orjson.dumps(row) + b"\n"
