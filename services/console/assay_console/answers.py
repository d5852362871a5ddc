"""Answers of the console: documents as JSON, and problems as a page or as JSON."""

import time
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from assay_console.page import Ask, Document
from assay_console.rendering import render

STATUS = {"unavailable": 503, "refused": 403, "not_found": 404, "invalid": 422, "conflict": 409}
_TITLES = {
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    409: "Conflict",
    422: "Invalid",
    500: "Error",
    503: "Not available",
}


def is_api(request: Request) -> bool:
    """Return True for a request of the read API, which is answered with JSON."""
    return request.url.path.startswith("/api/")


def problem(request: Request, status: int, message: str, fix: str) -> Response:
    """Answer with what happened and what helps."""
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if is_api(request):
        return json_answer({"error": {"status": status, "message": message, "fix": fix}}, status, headers)
    text = render("problem.html", status=status, title=_TITLES[status], message=message, fix=fix)
    return HTMLResponse(text, status, headers)


def json_answer(
    document: Document | dict[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with a document as JSON."""
    value = document.model_dump(mode="json") if isinstance(document, Document) else document
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    return Response(body, status, dict(headers or {}), media_type="application/json")


def timing(ask: Ask, started: float) -> dict[str, str]:
    """Return the headers that tell what an answer cost."""
    took = (time.perf_counter() - started) * 1000
    return {
        "server-timing": f"page;dur={took:.1f}, store;dur={ask.cost.took_ms:.1f}",
        "x-rows-read": str(ask.cost.rows_read),
    }
