"""Render documents with templates.

Everything is escaped; a name that a template does not get is an error.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from assay_console import cell_charts, charts, drawings, formats
from assay_console.commands import data_option, with_option
from assay_console.forest import forest
from assay_console.page import Ask
from assay_console.scope import RANGES, iso, joined, link

#: Option that the commands of the page that is being rendered need.
_DATA_OPTION: ContextVar[str] = ContextVar("data_option", default="")


@cache
def environment() -> Environment:
    """Return the templates, with the formats and charts that they use."""
    templates = Environment(
        loader=PackageLoader("assay_console", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (
        *(formats.number, formats.share, formats.interval, formats.milliseconds, formats.duration, formats.moment),
        *(formats.captured, formats.visible, formats.short_id, formats.evidence, iso, joined),
        *(formats.measured, formats.measured_interval),
    ):
        templates.filters[function.__name__] = function
    templates.filters["quoted"] = partial(quote, safe="")
    templates.filters["runnable"] = _runnable
    templates.filters["as_parameters"] = _as_parameters
    templates.globals.update(link=link, charts=charts, cell_charts=cell_charts, forest=forest, drawings=drawings)
    templates.globals.update(ranges=tuple(RANGES))
    return templates


def render(template: str, **values: Any) -> str:
    """Return a page as HTML. Its commands name the data directory of `ask`, if there is one."""
    ask = values.get("ask")
    option = _DATA_OPTION.set(data_option(ask.settings) if isinstance(ask, Ask) else "")
    try:
        return environment().get_template(template).render(values)
    finally:
        _DATA_OPTION.reset(option)


def _runnable(text: str) -> str:
    return with_option(text, _DATA_OPTION.get())


def _as_parameters(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of SQL parameters as parameters of a link to `/sql`."""
    return {f"param_{name}": value for name, value in values.items()}
