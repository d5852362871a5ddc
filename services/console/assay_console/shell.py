"""The shell of a page: navigation, and the link, JSON, SQL and command of its document."""

import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from assay_console.commands import data_option
from assay_console.page import Ask, Page
from assay_console.pages import PAGES
from assay_console.scope import link


def shell_of(page: Page, ask: Ask) -> dict[str, Any]:
    """Return what surrounds the document of a page; `frame_of` reads what is from the store."""
    here = link(_filled(page.path, ask.path), dict(ask.parameters))
    return {
        "pages": PAGES,
        "person": ask.person,
        "scope": ask.scope,
        "here": here,
        "fixed": _fixed(page, ask),
        "json": link(_filled(page.api_path, ask.path), dict(ask.parameters)),
        "keep": ask.scope.parameters(),
        "command": _command(page, ask),
        "sql": page.sql,
    }


def _fixed(page: Page, ask: Ask) -> str:
    """Return the link that shows the same times to anyone who opens it later; empty if the times of this one are fixed, or it has none."""
    if not page.span or not ask.scope.span:
        return ""
    return link(_filled(page.path, ask.path), dict(ask.parameters), {"t": ""}, ask.scope.parameters(pinned=True))


def _filled(path: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", quote(value, safe="")).replace(f"{{{name}:path}}", quote(value))
    return path


def _command(page: Page, ask: Ask) -> str:
    """Return the command that prints what the page shows; empty if there is none."""
    if not page.command:
        return ""
    project = f" --project {shlex.quote(ask.scope.project)}" if ask.scope.project else ""
    given = {name: shlex.quote(value) for name, value in {**ask.parameters, **ask.path}.items() if value}
    values = {**given, "and_project": project, "span": ask.scope.span or ask.scope.from_iso}
    # Not `with_option`: a quoted value may look like a redirection.
    return page.command.format_map(_Missing(values)) + data_option(ask.settings)


class _Missing(dict[str, str]):
    """Values of places: `{and_NAME}` is an option if NAME is given, and `{NAME}` is a value to fill in if it is not."""

    def __missing__(self, key: str) -> str:
        name = key.removeprefix("and_")
        if name == key:
            return key.upper()
        return f" --{name.replace('_', '-')} {self[name]}" if self.get(name) else ""
