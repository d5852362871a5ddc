"""Render documents with templates.

Everything is escaped; a name that a template does not get is an error.
"""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from assay_console import cell_charts, charts, drawings, formats
from assay_console.forest import forest
from assay_console.scope import RANGES, iso, joined, link


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
    templates.filters["as_parameters"] = _as_parameters
    templates.globals.update(link=link, charts=charts, cell_charts=cell_charts, forest=forest, drawings=drawings)
    templates.globals.update(ranges=tuple(RANGES))
    return templates


def render(template: str, **values: Any) -> str:
    """Return a page as HTML."""
    return environment().get_template(template).render(values)


def _as_parameters(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of SQL parameters as parameters of a link to `/sql`."""
    return {f"param_{name}": value for name, value in values.items()}
