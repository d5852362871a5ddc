"""The console's pages in a real browser: nothing runs that should not, everything can be read and reached."""

import gzip
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import assay_console
from assay_console.pages import PAGES
from tests.console.conftest import Shop
from tests.support.browser import Window, window
from tests.support.console import Console
from tests.support.console_rows import path_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

#: Rules of WCAG 2.2 AA and what axe calls best practice.
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
NAMES = [page.name for page in PAGES]


#: The rules that look at colours. The others find the same in light and in dark, since the document is the same.
_OF_COLOURS = ["color-contrast", "link-in-text-block"]
#: Sums the shifts of the layout, which people notice from 0.02 on.
_SHIFT = (
    "window.shift = 0; new PerformanceObserver(list => list.getEntries().forEach(each => window.shift += each.value))"
    ".observe({type: 'layout-shift', buffered: true});"
)
#: Every element whose colour stands for a state.
_STATES = ".badge, .verdict, .notice, .kind"
#: Tables that are wider than their place and can be scrolled, but for results of SQL and numbers that are folded away.
_WIDER = """[...document.querySelectorAll('main .wide:not(.result)')]
    .filter(e => !e.closest('details:not([open])') && e.scrollWidth > e.clientWidth + 1)
    .map(e => [e.querySelector('table').className, e.scrollWidth, e.clientWidth])"""
#: What cells of cards say that they are, and what the heads of their columns do.
_CARDS = """[...document.querySelectorAll('table.cards')].flatMap(table => {
    const heads = [...table.tHead.rows[0].cells].map(e => e.querySelector('.unseen') ? null : e.textContent.trim());
    return [...table.tBodies[0].rows].flatMap(row => [...row.cells].map((e, at) => [e.dataset.th ?? null, heads[at]]));
})"""


@dataclass(frozen=True)
class Shown:
    """A page of the shop that was opened in a wide window, and how far its layout shifted meanwhile."""

    window: Window
    shift: float


@pytest.fixture(scope="module")
def shown_window(browser: "Browser", shop: Shop) -> Iterator[Window]:
    with window(browser, shop.console, still=True) as found:
        found.page.add_init_script(_SHIFT)
        yield found


@pytest.fixture(scope="module", params=NAMES)
def shown(request: pytest.FixtureRequest, shop: Shop, shown_window: Window) -> Shown:
    """Each page once for all tests that look at it. They choose how it looks, and change nothing else."""
    shown_window.renew()
    shown_window.open(path_of(request.param, shop.rows))
    return Shown(shown_window, shift(shown_window.page))


def shift(page: Any) -> float:
    """Return how far the layout has shifted once everything that the scripts changed was painted and noted: two frames later."""
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
    )
    return float(page.evaluate("window.shift"))


@pytest.fixture(scope="module")
def shop_window_without_scripts(browser: "Browser", shop: Shop) -> Iterator[Window]:
    with window(browser, shop.console, scripts=False) as found:
        yield found


@pytest.fixture(scope="module")
def empty_window(browser: "Browser", empty: Console) -> Iterator[Window]:
    with window(browser, empty, still=True) as found:
        yield found


def violations(found: Window) -> list[str]:
    """Return what axe finds wrong with a page in light and in dark, with the place of each."""
    every = {"type": "tag", "values": _TAGS}
    return [
        *_violations(found, every, dark=False),
        *_violations(found, {"type": "rule", "values": _OF_COLOURS}, dark=True),
    ]


def _violations(found: Window, rules: dict[str, Any], *, dark: bool) -> list[str]:
    from axe_playwright_python.base import AXE_SCRIPT

    found.look(dark=dark)
    if not found.page.evaluate("'axe' in window"):
        found.page.evaluate(AXE_SCRIPT)
    # Without `resultTypes`, most of the time goes into describing every element that has no violation.
    asked = {"runOnly": rules, "resultTypes": ["violations"]}
    return [
        f"{each['id']}: {each['help']}: {[node['target'] for node in each['nodes']][:3]}"
        for each in found.page.evaluate("asked => axe.run(asked)", asked)["violations"]
    ]


@pytest.mark.slow
def test_a_page_is_accessible_in_light_and_dark_and_asks_nobody_else(shown: Shown) -> None:
    page = shown.window.page
    assert page.locator("main").inner_text().strip(), "the page is blank"
    assert page.locator(".needs-scripts:visible").count() == page.locator(".needs-scripts").count()
    assert page.locator(".without-scripts:visible").count() == 0
    assert violations(shown.window) == []
    assert shown.window.complaints == []
    assert shown.window.foreign == []


@pytest.mark.slow
def test_a_narrow_window_scrolls_in_one_direction(shown: Shown) -> None:
    page = shown.window.page
    for width in (640, 390, 320):
        shown.window.look(width, 844)
        wide = page.evaluate(
            "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1"
            " && !e.closest('.wide, .chart, pre, .rail, .unseen, .skip')).map(e => e.tagName + '.' + e.className).slice(0, 5)"
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, wide)


@pytest.mark.slow
def test_no_table_of_a_page_scrolls_sideways(shown: Shown) -> None:
    page = shown.window.page
    for width in (1280, 768, 390):
        shown.window.look(width, 844)
        assert page.evaluate(_WIDER) == [], width
    shown.window.look()
    assert [(said, head) for said, head in page.evaluate(_CARDS) if said != head] == []


@pytest.mark.slow
def test_states_are_told_without_colours_and_nothing_moves_for_those_who_asked(shown: Shown) -> None:
    shown.window.look(calm=True)
    page = shown.window.page
    silent = page.evaluate(
        f"[...document.querySelectorAll('{_STATES}')].filter(e => e.checkVisibility() && !e.innerText.trim() && !e.ariaLabel)"
        ".map(e => e.outerHTML)"
    )
    assert silent == []
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    moving = page.evaluate(
        "[...document.querySelectorAll('*')].filter(e => { const s = getComputedStyle(e);"
        " return s.animationName !== 'none' || parseFloat(s.transitionDuration) > 0 || s.scrollBehavior === 'smooth' })"
        ".map(e => e.tagName + '.' + e.className)"
    )
    assert moving == []


@pytest.mark.slow
def test_nothing_moves_when_the_scripts_run(shown: Shown) -> None:
    assert shown.shift <= 0.02


def test_nothing_moves_on_a_phone_when_the_scripts_run(browser: "Browser", shop: Shop) -> None:
    with window(browser, shop.console, width=390, height=844) as phone:
        phone.page.add_init_script(_SHIFT)
        moved = {name: shift(phone.open(path_of(name, shop.rows))) for name in NAMES}
        assert {name: far for name, far in moved.items() if far > 0.02} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_empty_page_says_why_and_is_accessible(empty_window: Window, name: str) -> None:
    empty_window.renew()
    page = empty_window.open(path_of(name, None))
    assert len(page.locator("main").inner_text().strip()) > 30
    assert violations(empty_window) == []
    assert [each for each in empty_window.complaints if "404" not in each] == []
    assert empty_window.foreign == []


def test_links_in_an_answer_are_as_high_as_a_finger_needs_on_a_phone(browser: "Browser", shop: Shop) -> None:
    with window(browser, shop.console, width=390, height=844) as phone:
        links = phone.open(path_of("event", shop.rows)).locator(":is(.answer, .claims, .passage) a")
        heights = links.evaluate_all("all => all.map(e => [e.textContent, e.getBoundingClientRect().height])")
        assert len(heights) >= 3
        assert [(text, height) for text, height in heights if height < 24] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_page_works_without_scripts(shop: Shop, shop_window_without_scripts: Window, name: str) -> None:
    page = shop_window_without_scripts.open(path_of(name, shop.rows))
    assert page.locator("h1").count() == 1
    assert page.locator(".needs-scripts:visible").count() == 0, "a button that does nothing"
    assert page.locator(".without-scripts:visible").count() == page.locator(".without-scripts").count()
    assert page.locator("main").inner_text().strip()


def test_the_menu_leads_to_every_page_by_keyboard(opened: Window) -> None:
    page = opened.open("/alerts")
    for each in PAGES:
        if each.key:
            page.keyboard.press("g")
            with page.expect_navigation():
                page.keyboard.press(each.key)
            assert page.locator("body").get_attribute("data-page") == each.name


@pytest.mark.parametrize(
    ("path", "works", "not_here"),
    [
        ("/events?kind=answer&t=7d", {"?", "/", "g", "j", "k", "Enter", "[", "]", "-", "+", "r", "w"}, {".", "p", "A"}),
        ("/sql", {"?", "/", "g", "r", "Ctrl+Enter"}, {"[", "-", "j", "."}),
        ("/health", {"?", "g", "r", "."}, {"/", "[", "j", "Enter"}),
        ("/alerts?state=all&t=30d", {"?", "/", "g", "j", "k", "Enter", "[", "]", ".", "r"}, {"w", "A"}),
    ],
)
def test_the_sheet_lists_the_keys_that_work_on_the_page(
    opened: Window, path: str, works: set[str], not_here: set[str]
) -> None:
    page = opened.open(path)
    page.keyboard.press("?")
    page.locator("dialog").wait_for()
    keys = set(page.locator("dialog kbd").all_text_contents())
    assert works <= keys
    assert not keys & not_here


#: Presses Escape in the page while its statement runs: the driver waits for the answer before it looks at the page again.
_CANCELS = """
() => {
  const line = document.getElementById("running");
  window.said = [];
  new MutationObserver((_, observer) => {
    if (line.hidden) return;
    observer.disconnect();
    setTimeout(() => {
      window.said.push(line.innerText);
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
      window.said.push(line.innerText);
    }, 300);
  }).observe(line, { attributes: true });
}
"""


def test_a_running_statement_shows_its_time_and_is_cancelled(opened: Window, shop: Shop) -> None:
    slow = "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 7 SETTINGS max_threads = 1"
    page = opened.open("/sql")
    page.locator("#q").fill(slow)
    page.evaluate(_CANCELS)
    page.locator("#sql .primary").click(no_wait_after=True)
    deadline = time.monotonic() + 60
    while len(said := page.evaluate("window.said")) < 2:
        assert time.monotonic() < deadline, said
        time.sleep(0.05)
    assert said[0].startswith("Running, ")
    assert said[1].strip() == "Cancelled."
    assert page.url == f"{shop.console.url}/sql", "the answer never came"
    assert opened.complaints == []
    page.locator("#q").fill("SELECT 40 + 2 AS n")
    with page.expect_navigation():
        page.locator("#sql .primary").click()
    assert page.locator(".result td").inner_text() == "42"


def test_the_sheet_of_keys_opens_and_can_switch_them_off(opened: Window) -> None:
    page = opened.open("/datasets")  # it does not load itself again
    page.keyboard.press("?")
    dialog = page.locator("dialog")
    assert "this sheet" in dialog.inner_text()
    assert violations(opened) == []
    dialog.locator("input[type=checkbox]").uncheck()
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    page.keyboard.press("?")
    assert page.locator("dialog").count() == 0
    page.locator("[data-action=keys]").click()
    page.locator("dialog input[type=checkbox]").check()
    page.locator("dialog button").click()
    page.keyboard.press("?")
    assert page.locator("dialog").count() == 1


def test_every_control_is_reached_by_tab_and_shows_its_focus(opened: Window) -> None:
    page = opened.open("/alerts")
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        where = page.evaluate(
            "(() => { const e = document.activeElement, s = getComputedStyle(e.matches('.ranges input') ? e.nextElementSibling : e);"
            " return [e.tagName, e.href ?? e.name ?? '', s.outlineStyle, s.outlineWidth] })()"
        )
        if where[0] == "BODY":
            break
        seen.append(where)
    assert seen[0][1].endswith("#main"), "first a link past the frame"
    assert [each for each in seen if each[2] == "none" or each[3] == "0px"] == []
    assert {each.path for each in PAGES if each.key} <= {re.sub(r"^http://[^/]+|\?.*", "", each[1]) for each in seen}


def test_pages_and_scripts_stay_small(shop: Shop) -> None:
    """60 KB for styles and scripts, 40 KB for a page, compressed."""
    static = Path(assay_console.__file__).parent / "static"
    files = [each for each in static.iterdir() if each.suffix in (".css", ".js")]
    assert sum(len(gzip.compress(each.read_bytes(), 6)) for each in files) <= 60_000
    for name in NAMES:
        page = shop.console.get(path_of(name, shop.rows), role="OPERATOR", Accept_Encoding="gzip")
        assert len(page.body) <= 40_000, name
