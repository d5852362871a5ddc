"""Templates with the components, formats and charts that every page has.

Everything is escaped; a name that a template does not get is an error.
"""

import base64
import hashlib
from functools import partial

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from assay_ui import cell_charts, charts, formats
from assay_ui.forest import changes_drawn, forest
from assay_ui.stylesheet import page_style


def templates(package: str, folder: str = "templates") -> Environment:
    """Return the templates of a package, which can import `ui.html` and what else is here."""
    found = Environment(
        loader=ChoiceLoader([PackageLoader(package, folder), PackageLoader("assay_ui", "templates")]),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (
        *(formats.number, formats.counted, formats.share, formats.interval, formats.milliseconds, formats.duration),
        *(formats.moment, formats.captured, formats.visible, formats.short_id, formats.evidence, formats.probability),
        *(formats.measured, formats.measured_interval, formats.signed, formats.coded, formats.sentence, formats.drawn),
    ):
        found.filters[function.__name__] = function
    found.filters["runnable"] = str  # a page that knows more makes commands that run as they are
    found.globals.update(charts=charts, cell_charts=cell_charts, forest=forest, changes_drawn=changes_drawn)
    return found


def file_templates(package: str, folder: str = "templates") -> Environment:
    """Return templates of pages that are one file and extend `file.html`.

    Programs other than browsers read files: characters that steer a terminal are not in them.
    """
    found = templates(package, folder)
    found.filters["captured"] = partial(formats.captured, keep=False)
    style = page_style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    found.globals.update(style=Markup(style), style_source=f"'sha256-{digest}'")  # noqa: S704  # the package's own file
    return found
