"""The OpenAPI document of the read API, from the table of pages. Pure."""

import re
from collections.abc import Sequence
from typing import Any

from pydantic.json_schema import models_json_schema

from assay_console.page import Action, Document, Page, Parameter
from assay_console.scope import RANGES

_REF = "#/components/schemas/{model}"
_ERROR = {
    "description": "What happened, and what helps.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}


def openapi(pages: Sequence[Page], actions: Sequence[Action]) -> dict[str, Any]:
    """Return the document: a GET for each page, a POST for each action."""
    mapping, definitions = models_json_schema([(page.document, "serialization") for page in pages], ref_template=_REF)
    schemas = definitions.get("$defs", {})
    schemas["Error"] = {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "status": {"type": "integer"},
                    "message": {"type": "string"},
                    "fix": {"type": "string"},
                },
                "required": ["status", "message", "fix"],
            }
        },
        "required": ["error"],
    }
    paths: dict[str, Any] = {}
    for page in pages:
        schema = mapping[(page.document, "serialization")]
        path = re.sub(r":\w+}", "}", page.api_path.removeprefix("/api/v1"))
        paths[path] = {"get": _get(page, schema)}
        if page.export is not None:
            paths[f"{path}/export"] = {"get": _export(page)}
        if page.stream:
            paths[page.stream] = {"get": _stream(page, schema)}
    for action in actions:
        paths.setdefault(action.path, {})["post"] = _post(action)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Assay read API",
            "version": "1",
            "description": "The documents that the console's pages show. Version 1 only grows.",
        },
        "servers": [{"url": "/api/v1"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "A key of kind `read`."}},
        },
    }


def _get(page: Page, schema: dict[str, Any]) -> dict[str, Any]:
    query = [*page.parameters, Parameter("project", "Only this project; empty: all.")]
    if page.span:
        query += [
            Parameter("t", "Range that ends now.", tuple(RANGES), page.span),
            Parameter("from", "Start of the range, ISO 8601, UTC; without `t`, which takes precedence."),
            Parameter("to", "End of the range, exclusive; without it: now."),
        ]
    missing = _ERROR
    if page.document.http_status is not Document.http_status:  # the document itself says why something is not here
        either = {"anyOf": [schema, {"$ref": "#/components/schemas/Error"}]}
        missing = {"description": "Why it is not here.", "content": {"application/json": {"schema": either}}}
    return {
        "operationId": page.name,
        "summary": page.question,
        "parameters": [*_path_parameters(page.path), *(_parameter(each) for each in query)],
        "responses": {
            "200": {"description": page.title, "content": {"application/json": {"schema": schema}}},
            **dict.fromkeys(("401", "403", "404", "422", "503"), _ERROR),
            "404": missing,
        },
    }


def _export(page: Page) -> dict[str, Any]:
    found = _get(page, {})
    file = {"description": "The file.", "content": {each: {"schema": {"type": "string"}} for each in page.export_types}}
    return found | {
        "operationId": f"{page.name}_export",
        "summary": "The same as a file.",
        "responses": found["responses"] | {"200": file},
    }


def _stream(page: Page, schema: dict[str, Any]) -> dict[str, Any]:
    events = {"description": "Events as they come; `Last-Event-ID` resumes.", "content": {"text/event-stream": {}}}
    described = _get(page, schema)
    return described | {
        "operationId": f"{page.name}_stream",
        "responses": described["responses"] | {"200": events},
    }


def _post(action: Action) -> dict[str, Any]:
    properties = {
        each.name: {
            "type": "string",
            "description": each.description,
            "maxLength": each.longest,
            **({"enum": ["", *each.choices]} if each.choices else {}),
        }
        for each in action.fields
    }
    location = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
    return {
        "operationId": re.sub(r"\W+", "_", action.path.strip("/")),
        "summary": action.summary,
        "description": f"Needs the role {action.role.label}.",
        "parameters": _path_parameters(action.path),
        "requestBody": {
            "content": {
                "application/json": {
                    "schema": {"type": "object", "properties": properties, "additionalProperties": False}
                }
            }
        },
        "responses": {
            "200": {"description": "Done.", "content": {"application/json": {"schema": location}}},
            **dict.fromkeys(("401", "403", "404", "409", "422", "503"), _ERROR),
        },
    }


def _path_parameters(path: str) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)(?::\w+)?\}", path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _parameter(each: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "maxLength": each.longest}
    if each.choices and not each.many:
        schema["enum"] = ["", *each.choices]
    if each.default:
        schema["default"] = each.default
    several = " Several are separated by commas; a comma in a value is `\\,`." if each.many else ""
    return {"name": each.name, "in": "query", "description": each.description + several, "schema": schema}
