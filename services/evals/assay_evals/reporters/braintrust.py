"""Send a run to Braintrust's public API: an experiment in the project's name, an event for each case."""

import os
from typing import Any

from assay_evals.reporters import Report, ReporterError, known_scores
from assay_evals.reporters.api import Api, field
from assay_evals.run.model import CaseResult
from assay_evals.run.run_store import identity

URL = "https://api.braintrust.dev"
#: Events sent at a time.
_BATCH = 100


class Braintrust:
    """Events have the cases' ids, so a run that is reported again replaces them."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._key = key

    def report(self, report: Report) -> str:
        """Find or create project and experiment, and insert the cases."""
        run = report.run
        mark = str(identity(run))
        with Api("braintrust", self._url, headers={"Authorization": f"Bearer {self._key}"}) as api:
            project = field(api.send("POST", "/v1/project", {"name": run.config.project}), "id", who=api.who)
            about = {
                "project_id": project,
                "name": f"{run.run_id} {mark[:8]}",
                "metadata": report.facts() | {"assay_run": mark, "started_at": run.started_at},
                "tags": list(run.config.tags),
            }
            experiment = field(api.send("POST", "/v1/experiment", about), "id", who=api.who)
            for start in range(0, len(run.results), _BATCH):
                events = [_event(report, mark, each) for each in run.results[start : start + _BATCH]]
                api.send("POST", f"/v1/experiment/{experiment}/insert", {"events": events})
        return f"project {run.config.project}, experiment {about['name']}"


def _event(report: Report, mark: str, result: CaseResult) -> dict[str, Any]:
    scores = known_scores(result)
    event: dict[str, Any] = {
        "id": f"{mark}/{result.case_id}",
        "input": report.input_of(result) or result.case_id,
        "output": result.retrieved,
        "scores": {name: value for name, value in scores.items() if 0 <= value <= 1},
        "metrics": {name: value for name, value in scores.items() if not 0 <= value <= 1},
        "metadata": {"case_id": result.case_id, "query_type": result.query_type, "weight": result.weight},
    }
    if result.latency_ms is not None:
        event["metrics"]["latency_s"] = result.latency_ms / 1000
    if result.error is not None:
        event["error"] = result.error
    if (expected := report.expected_of(result)) is not None:
        event["expected"] = expected
    return event


def braintrust(where: str | None) -> Braintrust:
    """Set up `braintrust` or `braintrust=URL`; default: BRAINTRUST_API_URL, else Braintrust's own.

    The key is BRAINTRUST_API_KEY.
    """
    key = os.environ.get("BRAINTRUST_API_KEY")
    if not key:
        raise ReporterError("braintrust: set BRAINTRUST_API_KEY")
    return Braintrust(where or os.environ.get("BRAINTRUST_API_URL") or URL, key)
