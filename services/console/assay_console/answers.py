"""Answers of the console: documents as JSON, and problems as a page or as JSON."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from assay_console.commands import data_option, in_sentence
from assay_console.page import Ask, Document
from assay_console.pages import PAGES
from assay_console.rendering import render
from assay_console.ways_out import ways_out
from assay_schema.settings import Settings

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


@dataclass(frozen=True)
class Sent:
    """The form that an action refused: its fields, and the names of those that a person wrote."""

    fields: Mapping[str, str]
    typed: tuple[str, ...]


def problem(
    request: Request,
    settings: Settings,
    status: int,
    message: str,
    fix: str,
    surroundings: Mapping[str, Any] | None = None,
) -> Response:
    """Answer with what happened, what helps, and what a person wrote into the refused form.

    Commands name the data directory that they need. `surroundings`: what the frame shows of the page that could not be
    shown; None: there is no frame.
    """
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if is_api(request):
        fix = in_sentence(fix, data_option(settings))
        return json_answer({"error": {"status": status, "message": message, "fix": fix}}, status, headers)
    sent: Sent | None = getattr(request.state, "sent", None)
    given = {*request.query_params, *(sent.fields if sent else ())}
    about = {
        "settings": settings,
        "status": status,
        "title": _TITLES[status],
        "message": message,
        "is_about_a_field": message.partition(":")[0] in given,
        "fix": fix,
        "sent": sent if sent and any(sent.fields.get(name) for name in sent.typed) else None,
        "path": request.scope["raw_path"].decode(),
        "ways": ways_out(request) if status != 401 else {},
        "pages": PAGES,
    }
    text = render("problem.html", **{**(surroundings or {}), **about})
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
