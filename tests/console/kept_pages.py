"""Documents of pages that are kept next to this module, and the pages that they are.

A page that reads a store shows other times and counts each time. These read nothing: a document that is kept, a frame and a range that
are written here, and the templates and styles as they are. So only a change of these is a change of the picture.
"""

import html
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay_console.frame import Frame
from assay_console.page import Ask
from assay_console.pages import PAGES
from assay_console.people import Person, Role
from assay_console.rendering import render
from assay_console.scope import scope_of
from assay_console.shell import shell_of
from assay_schema.settings import Settings
from tests.console.kept_pictures import FOLDER
from tests.support.browser import Window
from tests.support.console import Console
from tests.support.console_rows import Filled, path_of

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

NAMES = ("overview", "event", "alert", "label", "compare")
#: Of pages that are about a range which ends now.
_NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
_FRAME = Frame(("hostile", "shop"), 61.0, _NOW, 1)
_JSON = re.compile(r'<a href="([^"]+)">JSON</a>')
#: Scripts would go on: pages refresh themselves.
_SCRIPT = re.compile(r"<script\b[^>]*></script>")


def taken(console: Console, rows: Filled) -> dict[str, Any]:
    """Return the documents of a console with rows, by name. Services are those of no host."""
    found = {}
    for name in NAMES:
        link = _JSON.search(console.get(path_of(name, rows), "OPERATOR").text)
        assert link, f"{name} has no link to its JSON"
        found[name] = console.get(html.unescape(link[1]), "OPERATOR").json
    found["overview"]["services"] = [{"name": name, "state": "good", "problems": []} for name in ("gateway", "writer")]
    return found


def keep(documents: dict[str, Any], folder: Path = FOLDER) -> None:
    """Keep documents."""
    (folder / "documents.json").write_text(json.dumps(documents, indent=1, ensure_ascii=False) + "\n")


def file_of(name: str) -> Path:
    """Return the file of a page's picture: 1280 wide, light."""
    return FOLDER / f"page-{name}.png"


def html_of(name: str, folder: Path = FOLDER) -> str:
    """Return a kept page, without its scripts. Raises `pydantic.ValidationError` if its document is of an earlier shape."""
    page = next(each for each in PAGES if each.name == name)
    kept = json.loads((folder / "documents.json").read_text())[name]
    parameters = {"project": "shop"} if page.by_project else {}
    ask = Ask(
        parameters, {}, scope_of(parameters, int(_NOW.timestamp() * 1000), page.span or "24h"), Person("jo", Role.OPERATOR),
        Settings(), *(cast("Any", None),) * 5,
    )  # fmt: skip
    document = page.document.model_validate(kept)
    text = render(
        page.template_name, doc=document, page=page, ask=ask, frame=_FRAME, refused=None, **shell_of(page, ask)
    )
    return _SCRIPT.sub("", text)


def opened(window: Window, name: str, folder: Path = FOLDER) -> "Page":
    """Open a kept page, with the styles of the console that runs."""
    text = html_of(name, folder)

    def answer(route: "Route") -> None:
        route.fulfill(status=200, content_type="text/html; charset=utf-8", body=text)

    window.page.route(f"**/kept/{name}", answer)
    return window.open(f"/kept/{name}")
