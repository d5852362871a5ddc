"""Send a run as OpenTelemetry events (`gen_ai.evaluation.result`), as logs by OTLP over HTTP.

There is one event for each case and metric.
"""

import hashlib
import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from assay_evals.reporters import Report, ReporterError, known_scores
from assay_evals.reporters.api import Api
from assay_evals.run.model import CaseResult
from assay_evals.run.run_store import identity

EVENT = "gen_ai.evaluation.result"
_NAME = "gen_ai.evaluation.name"
#: Events sent at a time.
_BATCH = 1000


class OpenTelemetry:
    """Reports by OpenTelemetry.

    A repeated report appears twice in the collector, with the same trace ids.
    """

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._url = url
        self._headers = headers

    def report(self, report: Report) -> str:
        """Send an event for each metric of each case, and one for each failed case."""
        run_id = str(identity(report.run))
        events = [event for result in report.run.results for event in _events(report, result, run_id)]
        facts = {f"assay.{name}": str(value) for name, value in report.facts().items()}
        resource = {"service.name": "assay", "assay.run": report.run.run_id, "assay.run_id": run_id}
        with Api("otel", self._url, headers=self._headers) as api:
            for start in range(0, len(events), _BATCH):
                logs = {"scope": {"name": "assay"}, "logRecords": events[start : start + _BATCH]}
                whole = {"resource": {"attributes": _pairs(resource | facts)}, "scopeLogs": [logs]}
                answer = api.send("POST", "/v1/logs", {"resourceLogs": [whole]})
                partial = answer.get("partialSuccess") if isinstance(answer, dict) else None
                if isinstance(partial, dict) and int(partial.get("rejectedLogRecords", 0)):
                    raise ReporterError(f"otel: the collector rejected {int(partial['rejectedLogRecords']):,} events")
        return f"{len(events):,} events at {self._url}"


def _events(report: Report, result: CaseResult, run_id: str) -> Iterator[dict[str, Any]]:
    common = {"assay.case_id": result.case_id, "assay.query_type": result.query_type}
    if (query := report.input_of(result)) is not None:
        common["assay.query"] = query
    if result.error is not None:
        yield _event(report, result, run_id, common | {_NAME: "answered", "error.type": result.error})
    for name, value in known_scores(result).items():
        yield _event(report, result, run_id, common | {_NAME: name, "gen_ai.evaluation.score.value": value})


def _event(report: Report, result: CaseResult, run_id: str, attributes: dict[str, Any]) -> dict[str, Any]:
    moment = datetime.fromisoformat(report.run.completed_at or report.run.started_at)
    return {
        "timeUnixNano": str(int(moment.timestamp() * 1e9)),
        "severityNumber": 9,
        "eventName": EVENT,
        "traceId": hashlib.sha256(f"{run_id}/{result.case_id}".encode()).hexdigest()[:32],
        "spanId": hashlib.sha256(f"{run_id}/{result.case_id}/span".encode()).hexdigest()[:16],
        "attributes": _pairs(attributes),
    }


def _pairs(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": name, "value": {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}}
        for name, value in values.items()
    ]


def otel(where: str | None) -> OpenTelemetry:
    """Set up `otel` or `otel=URL`; default: OTEL_EXPORTER_OTLP_ENDPOINT.

    Headers: OTEL_EXPORTER_OTLP_HEADERS, as `name=value,name=value`.
    """
    url = where or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if not url:
        raise ReporterError("otel: say where: --to otel=http://127.0.0.1:4318, or set OTEL_EXPORTER_OTLP_ENDPOINT")
    pairs = (each.partition("=") for each in os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(",") if "=" in each)
    return OpenTelemetry(url, {name.strip(): unquote(value.strip()) for name, _, value in pairs})
