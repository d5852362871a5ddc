"""Pages that lead on from an error: the one of a refused form, and those around the address. Pure."""

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.routing import compile_path

from assay_console.page import Page
from assay_console.pages import PAGES

_PATTERNS = tuple((compile_path(page.path)[0], page) for page in PAGES)
_BY_NAME = {page.name: page for page in PAGES}


def ways_out(request: Request) -> dict[str, str]:
    """Return titles of pages by their address, the nearest first."""
    is_form = request.method == "POST"
    found: dict[str, str] = {}
    parents: dict[str, str] = {}
    if is_form and (before := page_before(request)):
        found[before] = "Back to the page before"
    parts = request.scope["raw_path"].decode().split("/")[1:]
    for end in range(len(parts), 0, -1):
        path = "/" + "/".join(parts[:end])
        page = _page_at(path)
        if page is None or path == "/":
            continue
        if end < len(parts) or is_form:
            found.setdefault(path, page.title)
        if page.within:
            parents[_BY_NAME[page.within].path] = _BY_NAME[page.within].title
    return found | parents | {"/": "Overview"}


def page_before(request: Request) -> str:
    """Return the page that a form was sent from, with its parameters; empty if it is not known."""
    try:
        address = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return ""
    if address.netloc != request.headers.get("host") or _page_at(address.path) is None:
        return ""
    return f"{address.path}?{address.query}" if address.query else address.path


def _page_at(path: str) -> Page | None:
    return next((page for pattern, page in _PATTERNS if pattern.match(path)), None)
