"""Render documents with templates."""

from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup

from assay_console import drawings
from assay_console.commands import data_option, in_sentence, with_option
from assay_console.page import Ask
from assay_console.scope import RANGES, iso, joined, link
from assay_schema.settings import Settings
from assay_ui.formats import coded
from assay_ui.rendering import templates

#: Option that the commands of the page that is being rendered need.
_DATA_OPTION: ContextVar[str] = ContextVar("data_option", default="")


@cache
def environment() -> Environment:
    """Return the templates of the console."""
    found = templates("assay_console")
    found.filters.update(
        iso=iso, joined=joined, quoted=partial(quote, safe=""), as_parameters=_as_parameters, runnable=_runnable,
        coded=_coded,
    )  # fmt: skip
    found.globals.update(link=link, drawings=drawings, ranges=tuple(RANGES))
    return found


def render(template: str, **values: Any) -> str:
    """Return a page as HTML. Its commands name the data directory of `ask` or `settings`, if any."""
    ask = values.get("ask")
    settings = ask.settings if isinstance(ask, Ask) else values.get("settings")
    option = _DATA_OPTION.set(data_option(settings) if isinstance(settings, Settings) else "")
    try:
        return environment().get_template(template).render(values)
    finally:
        _DATA_OPTION.reset(option)


def _runnable(text: str) -> str:
    return with_option(text, _DATA_OPTION.get())


def _coded(text: str) -> Markup:
    return coded(in_sentence(text, _DATA_OPTION.get()))


def _as_parameters(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of SQL parameters as parameters of a link to `/sql`."""
    return {f"param_{name}": value for name, value in values.items()}
