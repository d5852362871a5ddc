"""Render documents with templates."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from jinja2 import Environment

from assay_console import drawings
from assay_console.scope import RANGES, iso, joined, link
from assay_ui.rendering import templates


@cache
def environment() -> Environment:
    """Return the templates of the console."""
    found = templates("assay_console")
    found.filters.update(iso=iso, joined=joined, quoted=partial(quote, safe=""), as_parameters=_as_parameters)
    found.globals.update(link=link, drawings=drawings, ranges=tuple(RANGES))
    return found


def render(template: str, **values: Any) -> str:
    """Return a page as HTML."""
    return environment().get_template(template).render(values)


def _as_parameters(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of SQL parameters as parameters of a link to `/sql`."""
    return {f"param_{name}": value for name, value in values.items()}
