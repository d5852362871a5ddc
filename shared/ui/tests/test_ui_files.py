"""A page and a drawing that are one file."""

import base64
import hashlib
import html
import re
from xml.etree import ElementTree as ET  # reads what the project itself wrote

import pytest

from assay_ui.charts import BandPoint, Shade, band_marks
from assay_ui.formats import captured, counted, probability, signed
from assay_ui.picture import picture
from assay_ui.rendering import file_templates

HOSTILE = '<script>alert(1)</script>\x1b[2J\x00\u202e"'


def test_a_picture_is_xml_that_draws_hostile_titles_as_text() -> None:
    marks = band_marks([BandPoint(0, 0.5), BandPoint(1, 0.6)], [Shade("warn", HOSTILE, 0, 1)], 200)
    drawn = picture(HOSTILE, marks, 200, HOSTILE)
    root = ET.fromstring(drawn)  # noqa: S314
    tags = {each.tag.rpartition("}")[2] for each in root.iter()}
    assert "script" not in tags
    assert {"style", "polyline", "polygon", "title"} <= tags
    assert not set(drawn) & {"\x1b", "\x00", "\u202e"}


def test_a_picture_without_marks_is_its_title() -> None:
    assert "nothing yet" in "".join(ET.fromstring(picture("nothing yet", (), 0)).itertext())  # noqa: S314


def test_the_content_policy_of_a_page_allows_exactly_its_own_stylesheet() -> None:
    page = file_templates("assay_ui").get_template("file.html").render()
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert html.unescape(policy[1]) == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert page.startswith("<!doctype html>")


def test_a_file_names_characters_that_steer_a_terminal_and_does_not_contain_them() -> None:
    shown = captured(HOSTILE, keep=False)
    assert not set(shown) & {"\x1b", "\x00", "\u202e"}
    assert 'data-char="001B"' in shown
    assert "\x1b" in captured(HOSTILE)


@pytest.mark.parametrize(("value", "shown"), [(0.1, "+0.100"), (-0.1, "−0.100"), (0.0, "0.000"), (None, "–")])
def test_a_difference_has_its_sign(value: float | None, shown: str) -> None:
    assert signed(value) == shown


@pytest.mark.parametrize(
    ("p", "shown"), [(None, "–"), (0.0, "< 0.001"), (0.0009, "< 0.001"), (0.001, "0.001"), (1.0, "1.000")]
)
def test_a_p_value_is_never_printed_as_0(p: float | None, shown: str) -> None:
    assert probability(p) == shown


@pytest.mark.parametrize(
    ("count", "nouns", "shown"),
    [
        (0, ["row"], "0 rows"),
        (1, ["row"], "1 row"),
        (1_234, ["row"], "1,234 rows"),
        (1, ["entry waits", "entries wait"], "1 entry waits"),
        (2, ["entry waits", "entries wait"], "2 entries wait"),
    ],
)
def test_a_number_of_things_has_their_noun_in_the_right_form(count: int, nouns: list[str], shown: str) -> None:
    assert counted(count, *nouns) == shown
