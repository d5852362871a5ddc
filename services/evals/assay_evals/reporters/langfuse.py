"""Send a run to Langfuse: an experiment item per case by OpenTelemetry, and metrics as scores."""

import hashlib
import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from assay_evals.reporters import Report, ReporterError, known_scores
from assay_evals.reporters.api import Api
from assay_evals.run.model import CaseResult
from assay_evals.run.run_store import identity

URL = "https://cloud.langfuse.com"
#: Cases, and scores, sent at a time.
_SPANS, _SCORES = 200, 500
#: Which form of spans it is sent.
_VERSION = {"x-langfuse-ingestion-version": "4"}


class Langfuse:
    """Ids of traces and scores derive from run and case, so a run that is reported again replaces them."""

    def __init__(self, url: str, keys: tuple[str, str]) -> None:
        self._url = url
        self._keys = keys

    def report(self, report: Report) -> str:
        """Send the items, then their scores."""
        run, mark = report.run, str(identity(report.run))
        with Api("langfuse", self._url, headers=_VERSION, auth=self._keys) as api:
            for start in range(0, len(run.results), _SPANS):
                spans = [_span(report, mark, each) for each in run.results[start : start + _SPANS]]
                scope = {"scope": {"name": "assay"}, "spans": spans}
                body = {
                    "resourceSpans": [
                        {"resource": {"attributes": _pairs({"service.name": "assay"})}, "scopeSpans": [scope]}
                    ]
                }
                api.send("POST", "/api/public/otel/v1/traces", body)
            scores = [event for result in run.results for event in _scores(report, mark, result)]
            refused = 0
            for start in range(0, len(scores), _SCORES):
                answer = api.send("POST", "/api/public/ingestion", {"batch": scores[start : start + _SCORES]})
                refused += len(answer.get("errors", ()) if isinstance(answer, dict) else ())
        if refused:
            raise ReporterError(f"langfuse: took the run, but refused {refused:,} of {len(scores):,} scores")
        return f"experiment {run.run_id}"


def _trace_id(mark: str, result: CaseResult) -> str:
    return hashlib.sha256(f"{mark}/{result.case_id}".encode()).hexdigest()[:32]


def _span_id(mark: str, result: CaseResult) -> str:
    return hashlib.sha256(f"{mark}/{result.case_id}/span".encode()).hexdigest()[:16]


def _span(report: Report, mark: str, result: CaseResult) -> dict[str, Any]:
    began = datetime.fromisoformat(report.run.started_at)
    ended = began + timedelta(milliseconds=result.latency_ms or 0.0)
    values = {
        "langfuse.trace.name": report.run.config.dataset,
        "langfuse.environment": "experiment",
        "langfuse.experiment.id": mark,
        "langfuse.experiment.name": report.run.run_id,
        "langfuse.experiment.metadata": json.dumps(report.facts()),
        "langfuse.experiment.item.id": result.case_id,
        "langfuse.experiment.item.root_observation_id": _span_id(mark, result),
        "langfuse.observation.input": report.input_of(result),
        "langfuse.observation.output": json.dumps(result.retrieved, ensure_ascii=False),
        "langfuse.experiment.item.expected_output": report.expected_of(result),
        "langfuse.observation.level": "ERROR" if result.error else None,
        "langfuse.observation.status_message": result.error,
    }
    return {
        "traceId": _trace_id(mark, result),
        "spanId": _span_id(mark, result),
        "name": result.case_id,
        "kind": 1,
        "startTimeUnixNano": str(int(began.timestamp() * 1e9)),
        "endTimeUnixNano": str(int(ended.timestamp() * 1e9)),
        "attributes": _pairs(values),
    }


def _pairs(values: dict[str, str | None]) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": value}} for name, value in values.items() if value is not None]


def _scores(report: Report, mark: str, result: CaseResult) -> Iterator[dict[str, Any]]:
    for name, value in known_scores(result).items():
        of = hashlib.sha256(f"{mark}/{result.case_id}/{name}".encode()).hexdigest()[:32]
        yield {
            "id": of,
            "type": "score-create",
            "timestamp": report.run.completed_at or report.run.started_at,
            "body": {
                "id": of,
                "traceId": _trace_id(mark, result),
                "observationId": _span_id(mark, result),
                "name": name,
                "value": value,
                "dataType": "NUMERIC",
                "environment": "experiment",
            },
        }


def langfuse(where: str | None) -> Langfuse:
    """Set up `langfuse` or `langfuse=URL`; default: LANGFUSE_HOST, else Langfuse's cloud.

    Keys: LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY.
    """
    public, secret = os.environ.get("LANGFUSE_PUBLIC_KEY"), os.environ.get("LANGFUSE_SECRET_KEY")
    if not public or not secret:
        raise ReporterError("langfuse: set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY")
    return Langfuse(
        where or os.environ.get("LANGFUSE_HOST") or os.environ.get("LANGFUSE_BASE_URL") or URL, (public, secret)
    )
