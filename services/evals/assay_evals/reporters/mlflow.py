"""Send a run to MLflow (REST API 2.0): an experiment per project and dataset, with its metrics."""

import os
import re
from datetime import datetime
from typing import Any

from assay_evals.reporters import Report, ReporterError
from assay_evals.reporters.api import Api, field
from assay_evals.run.run_store import identity

#: What a batch may hold.
_METRICS, _PARAMS, _VALUE_CHARS = 1000, 100, 500
_ROOT = "/api/2.0/mlflow"
_TAG = "assay.run"


class MLflow:
    """Reports to MLflow. A repeated report replaces metrics that differ: MLflow shows the latest value."""

    def __init__(self, url: str) -> None:
        self._url = url

    def report(self, report: Report) -> str:
        """Find or create the run, and log its numbers."""
        token, user = os.environ.get("MLFLOW_TRACKING_TOKEN"), os.environ.get("MLFLOW_TRACKING_USERNAME")
        headers = {"Authorization": f"Bearer {token}"} if token else None
        auth = (user, os.environ.get("MLFLOW_TRACKING_PASSWORD", "")) if user and not token else None
        with Api("mlflow", self._url, headers=headers, auth=auth) as api:
            experiment = _experiment(api, f"assay/{report.run.config.project}/{report.run.config.dataset}")
            run = _run(api, experiment, report)
            facts = {name: str(value)[:_VALUE_CHARS] for name, value in report.facts().items()}
            metrics = _metrics(report)
            for start in range(0, max(len(metrics), 1), _METRICS):
                params = [{"key": key, "value": value} for key, value in facts.items()][:_PARAMS] if start == 0 else []
                body = {"run_id": run, "metrics": metrics[start : start + _METRICS], "params": params}
                api.send("POST", f"{_ROOT}/runs/log-batch", body)
            ended = report.run.completed_at
            state = {"status": "FINISHED", "end_time": _ms(ended)} if ended else {"status": "RUNNING"}
            api.send("POST", f"{_ROOT}/runs/update", {"run_id": run, **state})
        return f"experiment {experiment}, run {run}"


def _experiment(api: Api, name: str) -> str:
    found = api.send("GET", f"{_ROOT}/experiments/get-by-name", missing_ok=True, experiment_name=name)
    if found is None:
        found = {"experiment": api.send("POST", f"{_ROOT}/experiments/create", {"name": name})}
    return str(field(found, "experiment", "experiment_id", who=api.who))


def _run(api: Api, experiment: str, report: Report) -> str:
    mark = str(identity(report.run))
    query = {"experiment_ids": [experiment], "filter": f"tags.`{_TAG}` = '{mark}'", "max_results": 1}
    found = api.send("POST", f"{_ROOT}/runs/search", query).get("runs") or []
    if found:
        return str(field(found[0], "info", "run_id", who=api.who))
    tags = {_TAG: mark, "mlflow.runName": report.run.run_id, "mlflow.source.git.commit": report.run.config.code_version}
    tags |= {f"assay.tag.{tag}": "true" for tag in report.run.config.tags}
    body = {
        "experiment_id": experiment,
        "run_name": report.run.run_id,
        "start_time": _ms(report.run.started_at),
        "tags": [{"key": _key(key), "value": value} for key, value in tags.items() if value],
    }
    return str(field(api.send("POST", f"{_ROOT}/runs/create", body), "run", "info", "run_id", who=api.who))


def _metrics(report: Report) -> list[dict[str, Any]]:
    values = {"cases": float(len(report.run.results)), "errored": float(len(report.run.errored))} | report.run.latency()
    for name, each in report.run.summary().items():
        values |= {name: each.mean, f"{name}/low": each.low, f"{name}/high": each.high, f"{name}/n": float(each.n)}
    at = _ms(report.run.completed_at or report.run.started_at)
    return [{"key": _key(name), "value": value, "timestamp": at, "step": 0} for name, value in values.items()]


def _key(name: str) -> str:
    """Convert a name for MLflow: `recall@5` becomes `recall_at_5`."""
    return re.sub(r"[^\w.\- /]", "_", name.replace("@", "_at_"))[:250]


def _ms(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)


def mlflow(where: str | None) -> MLflow:
    """Set up `mlflow` or `mlflow=URL`; default: MLFLOW_TRACKING_URI.

    Credentials come from MLFLOW_TRACKING_TOKEN, or _USERNAME and _PASSWORD.
    """
    url = where or os.environ.get("MLFLOW_TRACKING_URI")
    if not url:
        raise ReporterError("mlflow: say where: --to mlflow=https://host, or set MLFLOW_TRACKING_URI")
    return MLflow(url)
