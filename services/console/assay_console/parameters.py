"""Read the parameters of a URL and the fields of a form, and check them against the page or action."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

import orjson
from starlette.requests import Request

from assay_console.guard import BODY_MAX
from assay_console.page import Action, Page
from assay_console.scope import values_of
from assay_operations.errors import OperationError


def checked_parameters(page: Page, given: list[tuple[str, str]]) -> dict[str, str]:
    """Return the parameters of a URL. Those with one name are joined with commas where a page allows it."""
    known = {each.name: each for each in page.parameters}
    known_names = {*known, "project", "t", "from", "to"}  # a page without a range keeps it for the next one
    found: dict[str, str] = {}
    for name, value in given:
        prefix = next((each for each in page.parameters if each.prefix and name.startswith(each.name)), None)
        if name not in known_names and prefix is None:
            if name.startswith(("utm_", "_")):
                continue
            raise OperationError(
                "invalid", f"this page has no parameter {name[:40]!r}; it has: {', '.join(sorted(known_names))}"
            )
        parameter = known.get(name, prefix)
        if len(value) > (parameter.longest if parameter else 400):
            raise OperationError("invalid", f"{name}: longer than {parameter.longest if parameter else 400} characters")
        if name in found and parameter is not None and parameter.many:
            value = f"{found[name]},{value}" if found[name] and value else found[name] or value  # noqa: PLW2901
        elif found.get(name):
            if value not in ("", found[name]):
                raise OperationError("invalid", f"{name}: only one value is possible")
            continue
        if parameter is not None and parameter.choices and value:
            for each in values_of(value) if parameter.many else [value]:
                if each not in parameter.choices:
                    raise OperationError(
                        "invalid", f"{name}: {each[:40]!r} is not one of {', '.join(parameter.choices)}"
                    )
        found[name] = value
    return found


def checked_fields(action: Action, body: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of an action. Raises `OperationError`."""
    known = {each.name: each for each in action.fields}
    for name, value in body.items():
        if name not in known:
            raise OperationError("invalid", f"unknown field {name[:40]!r}; known: {', '.join(known) or 'none'}")
        if len(value) > known[name].longest:
            raise OperationError("invalid", f"{name}: longer than {known[name].longest} characters")
        if known[name].choices and value and value not in known[name].choices:
            raise OperationError("invalid", f"{name}: {value[:40]!r} is not one of {', '.join(known[name].choices)}")
    return dict(body)


async def body_of(request: Request) -> dict[str, str]:
    """Return the fields of a form or of a JSON object. Several of a name are joined with commas."""
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > BODY_MAX:
            raise OperationError("invalid", f"the form is larger than {BODY_MAX >> 20} MiB")
    if request.headers.get("content-type", "").partition(";")[0].strip() == "application/json":
        try:
            document = orjson.loads(raw or b"{}")
        except orjson.JSONDecodeError:
            raise OperationError("invalid", "the body is not JSON") from None
        if not isinstance(document, dict) or not all(isinstance(each, str) for each in document.values()):
            raise OperationError("invalid", "the body must be a JSON object of texts")
        return document
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=1000)
    except (UnicodeDecodeError, ValueError):
        raise OperationError("invalid", "the body is not a form") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        found[name] = f"{found[name]},{value}" if name in found else value
    return found
