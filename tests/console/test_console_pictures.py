"""Components and pages look as they are kept: `python -m tests.console.pictures --keep` keeps them anew after a change that is meant."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.console import kept_pages
from tests.console.kept_pictures import (
    DIFFERENT_MAX,
    FOLDER,
    SCHEMES,
    WIDTHS,
    file_of,
    fingerprint,
    kept,
    picture_of,
    places,
    shown,
)
from tests.support.browser import Window, window
from tests.support.console import Console

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def empty_window(browser: "Browser", empty: Console) -> Iterator[Window]:
    with window(browser, empty) as found:
        yield found


@pytest.fixture
def opened(empty_window: Window) -> Window:
    """A window of a console on an empty store, as good as new."""
    empty_window.renew()
    return empty_window


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_component_looks_as_it_is_kept(
    browser: "Browser", opened: Window, width: int, scheme: str, record_property: Callable[[str, object], None]
) -> None:
    known = kept()
    opened.look(width, dark=scheme == "dark")
    page = opened.open("/patterns")
    assert places(page) == known["places"][str(width)], "blocks moved: look, then keep them with --keep"
    assert (opened.complaints, opened.foreign) == ([], [])
    same = fingerprint(browser, page) == {name: known[name] for name in ("browser", "fonts")}
    record_property("pixels", "compared" if same else "not compared: another browser or other fonts")
    if same:
        before = picture_of(page, file_of(width, scheme).read_bytes())
        share = shown(page).difference(before)
        assert share <= DIFFERENT_MAX, f"{share:.2%} of the pixels differ: look, then keep them with --keep"


@pytest.mark.parametrize("name", kept_pages.NAMES)
def test_a_page_of_a_kept_document_looks_as_it_is_kept(
    browser: "Browser", opened: Window, name: str, record_property: Callable[[str, object], None]
) -> None:
    known = kept()
    page = kept_pages.opened(opened, name)
    assert page.locator("h1").count() == 1
    assert (opened.complaints, opened.foreign) == ([], [])
    same = fingerprint(browser, page) == {name: known[name] for name in ("browser", "fonts")}
    record_property("pixels", "compared" if same else "not compared: another browser or other fonts")
    if same:
        before = picture_of(page, kept_pages.file_of(name).read_bytes())
        share = shown(page).difference(before)
        assert share <= DIFFERENT_MAX, f"{share:.2%} of the pixels differ: look, then keep them with --keep"


def test_a_change_of_a_component_is_a_difference(opened: Window) -> None:
    page = opened.open("/patterns")
    before, blocks = shown(page), places(page)
    assert picture_of(page, before.png) == before, "a kept file loses nothing"
    assert shown(page).difference(before) <= DIFFERENT_MAX, "the same page is the same picture"
    assert before.difference(replace(before, height=before.height - 1)) == 1.0
    page.evaluate("document.querySelector('.notice.bad').classList.remove('bad')")
    assert shown(page).difference(before) > DIFFERENT_MAX
    page.evaluate("document.querySelector('.cols').classList.remove('cols')")
    assert places(page) != blocks


def test_the_kept_pictures_are_small() -> None:
    assert sum(each.stat().st_size for each in FOLDER.iterdir()) < 2_000_000
