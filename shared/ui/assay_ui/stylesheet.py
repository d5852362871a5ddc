"""The stylesheet: whole for a page, or with every colour resolved for an SVG file."""

import re
from functools import cache, partial
from pathlib import Path

#: The files that a browser gets from the console, and that a report contains.
STATIC = Path(__file__).parent / "static"
_COLOUR = re.compile(r"(--[\w-]+): light-dark\((\S+), (\S+)\);")
_USE = re.compile(r"var\((--[\w-]+)\)")


@cache
def page_style() -> str:
    """Return the stylesheet of a page that is one file."""
    return _text("drawing.css") + _text("look.css")


@cache
def drawing_style() -> str:
    """Return the stylesheet of a drawing that is one file: light, and dark where the viewer's system is.

    Programs that convert SVG know neither variables nor `light-dark()`, so each colour is a plain value. They skip
    `@media`, so a converted picture is light.
    """
    colours = {name: values for name, *values in _COLOUR.findall(_text("look.css"))}
    rules = "".join(line for line in _text("drawing.css").splitlines(keepends=True) if not line.startswith("/*"))
    light, dark = (_USE.sub(partial(_colour, colours, place), rules) for place in (0, 1))
    return f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _colour(colours: dict[str, list[str]], place: int, use: re.Match[str]) -> str:
    return colours[use[1]][place]


def _text(name: str) -> str:
    return (STATIC / name).read_text("utf-8")
