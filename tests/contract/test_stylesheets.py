"""The stylesheets: nothing is defined twice, nothing is unused, and a page that is one file needs nothing else."""

import re
from collections import Counter
from pathlib import Path

import pytest

from assay_ui.stylesheet import STATIC, drawing_style, page_style

ROOT = Path(__file__).parents[2]
SHEETS = [*sorted(STATIC.glob("*.css")), ROOT / "services/console/assay_console/static/console.css"]
PACKAGES = ("shared/ui/assay_ui", "services/console/assay_console", "services/evals/assay_evals/report")
#: Classes that end with a kind of events, a series or a verdict.
MADE = re.compile(r"(k|s|v)-\w+")
#: States of a period, which `charts.band` makes classes of.
STATES = {"critical", "recovering"}


def rules(sheet: Path) -> list[tuple[str, str]]:
    """The selectors of a sheet, each with the `@media` that it is in."""
    found, open_blocks = [], list[str]()
    text = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)
    for before, brace in re.findall(r"([^{}]*)([{}])", text):
        if brace == "}":
            open_blocks.pop()
            continue
        name = " ".join(before.split())
        if not name.startswith("@"):
            found.append(("".join(open_blocks), name))
        open_blocks.append(name)
    return found


def classes_in_use() -> set[str]:
    """Names in each attribute `class` of a template or a drawing, and in what scripts do with classes."""
    files = [
        file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.suffix in (".html", ".py", ".js")
    ]
    text = "\n".join(file.read_text() for file in files)
    named = re.findall(r'class="([^"]*)"|classList\.\w+\(([^)]*)\)|className = ([^;]*);', text)
    return {name for found in named for name in re.findall(r"[\w-]+", " ".join(found))}


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_each_selector_is_defined_once(sheet: Path) -> None:
    assert [name for name, count in Counter(rules(sheet)).items() if count > 1] == []


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_each_class_is_used(sheet: Path) -> None:
    known = classes_in_use() | STATES
    styled = {name for _, selector in rules(sheet) for name in re.findall(r"\.([A-Za-z][\w-]*)", selector)}
    assert {name for name in styled - known if not MADE.fullmatch(name)} == set()


def test_a_stylesheet_of_one_file_loads_nothing() -> None:
    for style in (page_style(), drawing_style()):
        assert not re.search(r"url\(|@import|@font-face|://", style)
        assert "</" not in style


def test_a_drawing_has_plain_colours_for_programs_that_know_no_variables() -> None:
    style = drawing_style()
    assert "var(" not in style
    assert "light-dark(" not in style
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    assert ".mean { fill: none; stroke: #1f4fbf;" in light
    assert ".mean { fill: none; stroke: #8ab0ff;" in dark
