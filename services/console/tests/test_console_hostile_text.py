"""Captured text in attributes and drawings: no character that cannot be seen, or that turns text around, is there raw."""

import re
from pathlib import Path

import pytest

import assay_console
import assay_evals
import assay_ui
from assay_ui.cell_charts import dot, sparkline
from assay_ui.charts import BandPoint, Series, Shade, band, bars
from assay_ui.forest import ForestRow, forest
from assay_ui.formats import captured, visible

TEMPLATES = sorted(
    file for package in (assay_console, assay_evals, assay_ui) for file in Path(package.__file__).parent.rglob("*.html")
)
HOSTILE = '\u202egnp.exe\u202c\u2066x\u2069\u200b\x07\x1b[31m\x00\u2028"><script>'
UNSEEN = re.compile("[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f]")
#: What a title may show without the filter: numbers, and words of the template.
_SAFE = re.compile(r"^ loop\.index $|\|\s*(visible|number|milliseconds|duration)\b")


def test_a_character_that_cannot_be_seen_appears_by_its_code_point() -> None:
    assert visible("a\u202eb\x00c") == "a[U+202E]b[U+0000]c"
    assert visible("Größe 1\t2\nΩ") == "Größe 1\t2\nΩ"
    assert visible(None) == ""


@pytest.mark.parametrize(
    "drawn",
    [
        sparkline([1, 2], HOSTILE),
        dot(0, 0.5, 1, (0, 1), HOSTILE),
        bars(HOSTILE, [0], 1000, [Series("answers", "answer", (3,))]),
        band(HOSTILE, [BandPoint(0, 0.5, breaks=HOSTILE), BandPoint(1, 0.6)], [Shade("warn", HOSTILE, 0, 1)]),
        forest(HOSTILE, [ForestRow(HOSTILE, -0.1, 0, 0.1, -0.05, "pass", HOSTILE)]),
    ],
    ids=["sparkline", "dot", "bars", "band", "forest"],
)
def test_a_drawing_has_its_words_visible_and_escaped(drawn: str) -> None:
    assert "[U+202E]gnp.exe" in drawn
    assert UNSEEN.search(drawn) is None
    assert "<script>" not in drawn


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_a_title_shows_text_only_through_the_visible_form(template: Path) -> None:
    titles = re.findall(r'\b(?:title|aria-label|alt|placeholder)="([^"]*)"', template.read_text())
    shown = [each for title in titles for each in re.findall(r"\{\{(.*?)\}\}", title)]
    assert [each for each in shown if not _SAFE.search(each)] == []


def test_captured_text_is_there_to_copy_but_for_what_html_cannot_have() -> None:
    shown = str(captured("a\u202eb\x00"))
    assert '<span class="invisible" title="RIGHT-TO-LEFT OVERRIDE" data-char="202E">\u202e</span>' in shown
    assert "\x00" not in shown
