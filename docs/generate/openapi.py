"""Generate the OpenAPI 3.1 documents of the gateway and the console from their models, limits and settings.

`python -m docs.generate.openapi` prints the documents; `--write` writes them, `--check` exits 1 if one is outdated.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from assay_console.openapi import openapi
from assay_console.pages import ACTIONS, PAGES
from assay_gateway.application import BEACON, FEEDBACK_BYTES, JSON, NDJSON, PROTOBUF
from assay_gateway.events import LISTED_MAX
from assay_gateway.feedback import Verdict
from assay_gateway.items import ITEMS_MAX
from assay_schema.events import Event
from assay_schema.settings import GatewaySettings
from docs.generate.keep import keep

_FOLDER = Path(__file__).parents[2] / "docs" / "openapi"
GATEWAY, CONSOLE = _FOLDER / "gateway.json", _FOLDER / "console.json"
_REF = "#/components/schemas/{model}"
#: Members that the gateway fills in.
_OPTIONAL = ("schema_version", "event_id", "project", "service", "occurred_at")
_REASONS = {
    "400": "No event was accepted, or the body cannot be read.",
    "401": "No valid key.",
    "403": "The key must not do this.",
    "404": "No such answer is known, or not yet: send it again some seconds later.",
    "405": "Another method is used.",
    "408": "The body took too long.",
    "413": "The body is over the limit.",
    "415": "The type or encoding is not read.",
    "429": "The rate of the key is used up.",
    "500": "A bug.",
    "503": "Send it again after `Retry-After`.",
}


def document() -> str:
    """Return the document as JSON."""
    events = TypeAdapter(Event).json_schema(ref_template=_REF)
    verdict = Verdict.model_json_schema(ref_template=_REF)
    models = {**events.pop("$defs"), **verdict.pop("$defs"), "Verdict": verdict}
    for name in ("RetrievalEvent", "AnswerEvent", "FeedbackEvent", "ToolCallEvent", "ServerEventEvent", "SessionEvent"):
        required = models[name]["required"]
        models[name]["required"] = [each for each in required if each not in _OPTIONAL]
    models |= {"Event": events, **_answers()}
    made = {
        "openapi": "3.1.0",
        "info": {"title": "Assay gateway", "version": "1", "description": "Events over HTTP. See docs/gateway.md."},
        "servers": [{"url": f"http://127.0.0.1:{GatewaySettings().listen_port}"}],
        "security": [{"bearer": []}, {"basic": []}, {"header": []}],
        "paths": {
            "/v1/events": _events(),
            "/v1/traces": _otlp("sendSpans", "Send spans", _exported("resourceSpans", "scopeSpans", "spans")),
            "/v1/logs": _otlp("sendLogs", "Send log records", _exported("resourceLogs", "scopeLogs", "logRecords")),
            "/v1/metrics": _otlp("sendMetrics", "Take metrics, which are not stored", {}),
            "/v1/feedback": _feedback(),
        },
        "components": {
            "schemas": models,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic", "description": "The key is the password."},
                "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "query": {"type": "apiKey", "in": "query", "name": "key", "description": "Feedback only."},
            },
        },
    }
    return json.dumps(made, indent=2, sort_keys=True) + "\n"


def _answers() -> dict[str, Any]:
    text, count = {"type": "string"}, {"type": "integer", "minimum": 0}
    rejection = {"index": count, "event_id": {"type": ["string", "null"]}, "rule": text, "detail": text}
    accepted = {
        "request_id": text,
        "accepted": count,
        "rejected": {"type": "array", "maxItems": LISTED_MAX, "items": _object(rejection)},
        "rejected_total": count,
    }
    error: dict[str, Any] = {
        "type": "object",
        "properties": {"code": text, "message": text},
        "required": ["code", "message"],
    }
    return {
        "Accepted": _object(accepted),
        "Error": _object({"error": error, "request_id": text}),
        "ExportError": _object({"error": error, "request_id": text, "message": text}),
        "FeedbackAccepted": _object({"request_id": text, "event_id": {"type": "string", "format": "uuid"}}),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


def _events() -> dict[str, Any]:
    events = {"type": "array", "items": _ref("Event"), "maxItems": ITEMS_MAX}
    batch = {"anyOf": [events, _object({"events": events})]}
    content: dict[str, Any] = {media_type: {"schema": batch} for media_type in JSON}
    content |= {media_type: {"schema": {"type": "string"}} for media_type in NDJSON}
    return {
        "post": {
            "operationId": "sendEvents",
            "summary": "Send events",
            "description": f"At most {GatewaySettings().body_bytes} bytes by default, plain, gzip or deflate.",
            "requestBody": {"required": True, "content": content},
            "responses": {
                "200": _answer("The accepted events are stored.", _ref("Accepted")),
                **_errors("401", "403", "408", "413", "415", "429", "500", "503"),
                "400": _answer(_REASONS["400"], {"anyOf": [_ref("Accepted"), _ref("Error")]}),
            },
        }
    }


def _feedback() -> dict[str, Any]:
    return {
        "post": {
            "operationId": "sendFeedback",
            "summary": "Send a verdict from a web page",
            "description": f"At most {FEEDBACK_BYTES} bytes.",
            "security": [{"bearer": []}, {"basic": []}, {"header": []}, {"query": []}],
            "requestBody": {
                "required": True,
                "content": {media_type: {"schema": _ref("Verdict")} for media_type in (*JSON, *BEACON)},
            },
            "responses": {
                "202": _answer("The verdict is stored.", _ref("FeedbackAccepted")),
                **_errors("400", "401", "403", "404", "408", "413", "415", "429", "500", "503"),
            },
        },
        "options": {
            "operationId": "askBeforeFeedback",
            "summary": "Ask whether a page may send feedback",
            "security": [],
            "responses": {"200": _answer("CORS headers, if a key lists the origin.", {"type": "object"})},
        },
    }


def _exported(resources: str, scopes: str, items: str) -> dict[str, Any]:
    """Return the schema of the parts of an export request that the gateway reads itself."""
    identifiers = {
        "traceId": {"type": "string", "pattern": "^[0-9A-Fa-f]{32}$"},
        "spanId": {"type": "string", "pattern": "^[0-9A-Fa-f]{16}$"},
    }
    item = {"type": "object", "properties": identifiers, "required": sorted(identifiers)}
    scope = {"type": "object", "properties": {"scope": {"type": "object"}, items: {"type": "array", "items": item}}}
    resource = {"resource": {"type": "object"}, scopes: {"type": "array", "items": scope}}
    return {
        "type": "object",
        "properties": {resources: {"type": "array", "items": {"type": "object", "properties": resource}}},
    }


def _otlp(operation: str, summary: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a route of OpenTelemetry exporters: the answer has the type of the request."""
    content: dict[str, Any] = {media_type: {"schema": schema} for media_type in JSON}
    binary = {media_type: {"schema": {"type": "string", "format": "binary"}} for media_type in PROTOBUF}
    answer = {media_type: {"schema": {"type": "object"}} for media_type in JSON} | binary
    refused = _errors("400", "401", "403", "405", "408", "413", "415", "429", "500", "503")
    for status in refused.keys() - {"500"}:
        refused[status]["content"] = {"application/json": {"schema": _ref("ExportError")}} | binary
    return {
        "post": {
            "operationId": operation,
            "summary": f"{summary} of OpenTelemetry (OTLP/HTTP)",
            "description": f"At most {GatewaySettings().otlp_bytes} bytes by default, plain, gzip or deflate.",
            "requestBody": {"required": True, "content": content | binary},
            "responses": {"200": {"description": "Nothing to send again.", "content": answer}, **refused},
        }
    }


def _errors(*statuses: str) -> dict[str, Any]:
    waits = {"Retry-After": {"schema": {"type": "integer", "minimum": 1, "maximum": 5}}}
    found = {status: _answer(_REASONS[status], _ref("Error")) for status in statuses if status != "500"}
    for status in {"404", "429", "503"} & found.keys():
        found[status]["headers"] = waits
    return found | {"500": _answer(_REASONS["500"], _object({"request_id": {"type": "string"}}))}


def _answer(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": _REF.format(model=name)}


def of_console() -> str:
    """Return the document of the console's read API as JSON."""
    return json.dumps(openapi(PAGES, ACTIONS), indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Run the command."""
    return keep({GATEWAY: document(), CONSOLE: of_console()}, arguments, "python -m docs.generate.openapi")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
