"""The console in a real browser when the store is away, by keyboard and on a phone."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

import pytest

from assay_console.reads import ROLLUP_S
from assay_runtime.store import connect, insert_json_rows
from tests.console.conftest import FilledTables, Shop
from tests.console.test_console_in_browser import NAMES, path_of, violations
from tests.support.browser import Window, window
from tests.support.console import Console, running_console
from tests.support.console_rows import Filled, alert_row
from tests.support.sample_rows import lines
from tests.support.store import StoreServer
from tests.support.wait import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

#: Pages that read nothing of the store before somebody asks, or never.
_ASKS_NOTHING = {"live", "sql", "requeue", "drop"}


#: Pages that show no last answer: those that ask nothing, forms, which show what they change as it is, and the checks of now.
_WITHOUT_LAST_ANSWER = _ASKS_NOTHING | {"acknowledge", "together", "label", "review", "health", "patterns"}


@dataclass(frozen=True)
class Away:
    """A console whose store was killed after each page had been read."""

    console: Console
    rows: Filled


@pytest.fixture(scope="module")
def away(filled: FilledTables, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Away]:
    with (
        StoreServer(tmp_path_factory.mktemp("store"), tables=filled.data) as store,
        running_console(tmp_path_factory.mktemp("console"), store) as console,
    ):
        for name in NAMES:
            assert console.get(path_of(name, filled.rows), role="OPERATOR").status == 200
        store.kill()
        read = time.monotonic()
        until(lambda: time.monotonic() > read + ROLLUP_S, pause_s=0.5)  # so long a page shows what it has, as it may
        yield Away(console, filled.rows)


@pytest.fixture(scope="module")
def away_window(browser: "Browser", away: Away) -> Iterator[Window]:
    with window(browser, away.console, still=True) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_page_whose_store_is_away_says_so_and_is_accessible(away: Away, away_window: Window, name: str) -> None:
    away_window.renew()
    page = away_window.open(path_of(name, away.rows))
    text = page.locator("main").inner_text()
    assert name in _ASKS_NOTHING or "store" in text, "the page does not say what it does not know"
    assert name in _WITHOUT_LAST_ANSWER or "This is the last answer" in text
    assert "Traceback" not in text
    assert violations(away_window) == []
    assert [each for each in away_window.complaints if "503" not in each] == []
    assert away_window.foreign == []


def test_the_last_answer_of_a_page_is_for_the_person_and_role_that_were_shown_it(away: Away) -> None:
    path = path_of("event", away.rows)
    shown = away.console.get(path, role="OPERATOR")
    assert (shown.status, "This is the last answer" in shown.text) == (200, True)
    assert away.console.get(path, role="VIEWER").status == 503
    assert away.console.get("/api/v1" + path.replace("/e/", "/events/"), role="OPERATOR").status == 503


def test_what_is_being_sent_is_sent_once(opened: Window) -> None:
    page = opened.open("/label?project=shop")
    page.evaluate(
        "document.querySelector('form.labelling').addEventListener('submit', event => event.preventDefault())"
    )
    choices = page.locator("form.labelling button")
    assert choices.first.is_enabled()
    page.keyboard.press("3")
    until(lambda: all(choices.nth(each).is_disabled() for each in range(choices.count())))


@pytest.mark.parametrize("path", ["/events?t=7d", "/audit", "/sessions?t=30d", "/alerts?state=all&t=30d"])
def test_going_back_to_a_list_puts_the_focus_on_the_row_that_was_opened(opened: Window, shop: Shop, path: str) -> None:
    page = opened.open(path)
    rows = page.locator("tr[data-href]").count()
    steps = min(3, rows)
    for _ in range(steps):
        page.keyboard.press("j")
    focused = "document.activeElement.closest('tr[data-href]')?.dataset.href ?? ''"
    row = page.evaluate(focused)
    assert row
    with page.expect_navigation():
        page.keyboard.press("Enter")
    with page.expect_navigation():
        page.keyboard.press("u")
    until(lambda: page.evaluate(focused) == row)
    if steps < rows:
        page.keyboard.press("j")
        assert page.evaluate(focused) not in ("", row), "from there on, keys go to the next row"
    page.goto(f"{shop.console.url}{path}")
    assert page.evaluate(focused) == "", "a page that is opened anew has no row chosen"


def test_a_phone_shows_what_is_wrong_without_scrolling(opened: Window) -> None:
    opened.renew(width=390, height=844)
    page = opened.open("/")
    seen = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().bottom <= innerHeight)"
        ".map(e => e.innerText ?? '').join(' ')"
    )
    assert page.locator(".verdict").inner_text() in seen
    assert "faithfulness" in seen, "the open alert"


#: The column of each list that a phone must show without scrolling sideways.
_LEADING = {
    "overview": "lost", "events": "outcome", "sessions": "failed", "alerts": "was", "quality": "coverage", "runs": "errors",
    "run": "mean", "compare": "change", "datasets": "cases", "failures": "lost", "arrivals": "to the store", "differs": "points",
    "audit": "outcome",
}  # fmt: skip


def test_a_phone_shows_the_number_that_matters_in_each_list(opened: Window, shop: Shop) -> None:
    opened.renew(width=390, height=844)
    hidden = []
    for name, column in _LEADING.items():
        page = opened.open("/events/differs?has=negative&t=7d" if name == "differs" else path_of(name, shop.rows))
        heads = page.locator("main table:not(.cards) th", has_text=re.compile(f"^{re.escape(column)}$"))
        heads = heads.or_(page.locator(f'main .cards [data-th="{column}"]'))
        assert heads.count(), f"{name} has no column {column}"
        box = heads.first.bounding_box()
        if box is None or box["x"] + box["width"] > 390:
            hidden.append((name, column, box))
    assert hidden == []


def test_twenty_alerts_are_on_the_first_screen(opened: Window, shop: Shop) -> None:
    rows = [alert_row(str(uuid5(UUID(int=1), str(number)))) | {"project": "crowd"} for number in range(30)]
    with connect(shop.store.settings().store) as owner:
        insert_json_rows(owner, "assay_base.alerts", lines(rows), len(rows))
    page = opened.open("/alerts?project=crowd")
    bottoms = page.locator("table tbody tr").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().bottom)")
    assert sum(bottom <= 800 for bottom in bottoms) >= 20
