"""A drawing as one SVG file, which opens from a disk, in a page or in a mail. Pure."""

from collections.abc import Sequence

from markupsafe import Markup

from assay_ui.axes import BOTTOM, LEFT, RIGHT, WIDTH
from assay_ui.formats import visible
from assay_ui.stylesheet import drawing_style

#: Height of the title above the drawing.
_HEAD = 34
#: Named fonts: programs that convert SVG do not know generic families and would leave out the text.
_FONTS = "Segoe UI, Roboto, Helvetica Neue, Noto Sans, Liberation Sans, Arial, DejaVu Sans, sans-serif"


def picture(title: str, marks: Sequence[Markup], height: int, legend: str = "") -> str:
    """Return marks of `height` below their title as an SVG document: no script, no font, no reference."""
    style = Markup(drawing_style())  # noqa: S704  # the package's own file
    drawn = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="{0}" height="{1}" viewBox="0 0 {0} {1}" '
        'font-family="{2}" role="img" aria-label="{3}"><style>{4}</style><rect class="ground" width="{0}" height="{1}"/>'
        '<text class="title" x="{5}" y="22">{3}</text><text x="{6}" y="22" text-anchor="end">{7}</text>'
        '<g transform="translate(0 {8})">{9}</g></svg>'
    ).format(
        WIDTH, height + _HEAD + BOTTOM // 2, _FONTS, visible(title), style, LEFT, WIDTH - RIGHT,
        visible(legend), _HEAD, Markup("").join(marks),
    )  # fmt: skip
    return str(drawn)
