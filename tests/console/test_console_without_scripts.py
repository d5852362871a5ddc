"""What a person does with pages of the console in a real browser that runs no script."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.console.conftest import Shop
from tests.support.browser import Window, window
from tests.support.console import Console

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def window_without_scripts(browser: "Browser", shop: Shop) -> Iterator[Window]:
    with window(browser, shop.console, scripts=False) as found:
        yield found


@pytest.fixture
def opened(window_without_scripts: Window) -> Window:
    """A window that runs no script, as good as new."""
    window_without_scripts.renew()
    return window_without_scripts


def asked(page: "Page") -> dict[str, str]:
    """Return the parameters of the address that have a value."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query).items()}


def test_a_link_signs_in_and_the_menu_signs_out(browser: "Browser", shop: Shop) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(shop.console.url + shop.console.link())
        assert page.url == f"{shop.console.url}/"
        assert page.locator("h1").count() == 1
        page.locator("#menu form button").click()
        assert page.locator("body", has_text="assay console url").count() == 1
        assert page.goto(f"{shop.console.url}/events").status == 401  # type: ignore[union-attr]
    finally:
        context.close()


def test_events_are_filtered_by_text_fields_facets_and_chips(opened: Window) -> None:
    page = opened.open("/events?project=shop&t=7d")
    rows = page.locator("table.events tbody tr")
    page.locator("input[name=q]").fill("NORWAY")
    page.locator("form.filters .primary").click()
    assert {"project": "shop", "t": "7d", "q": "NORWAY"}.items() <= asked(page).items()
    assert rows.count() > 1
    assert all("Norway" in text for text in page.locator("td.text").all_inner_texts())
    page.locator("form.filters summary").click()
    page.locator("form.filters input[name='latency>']").fill("30")
    page.locator("form.filters .sheet button").click()
    assert {"q": "NORWAY", "latency>": "30", "t": "7d"}.items() <= asked(page).items()
    page.locator("aside.facets a", has_text="retrieval").click()
    assert asked(page)["kind"] == "retrieval"
    assert rows.count() >= 1
    page.locator("ul.chips a, .chips a").first.click()
    assert len(asked(page)) < 5


def test_pages_of_events_follow_one_another_to_the_end(opened: Window, shop: Shop) -> None:
    page = opened.open("/events?project=shop&t=30d&kind=answer")
    seen = []
    while True:
        seen += page.locator("table.events tbody tr").evaluate_all("rows => rows.map(row => row.dataset.href)")
        following = page.locator("a[rel=next]")
        if not following.count():
            break
        following.click()
    assert len(seen) == len(set(seen)) == 168


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("path", ["/events", "/quality", "/alerts", "/sessions"])
def test_the_bar_keeps_a_fixed_range_until_another_one_is_chosen(
    opened: Window, shop_window: Window, path: str, scripts: bool
) -> None:
    if scripts:
        opened = shop_window
        opened.renew()
    fixed = {"from": "2026-01-02T03:00:00Z", "to": "2026-01-05T03:00:00Z"}
    page = opened.open(f"{path}?from={fixed['from']}&to={fixed['to']}")

    def apply() -> None:
        if not scripts:
            page.locator("form.scope button").click()

    with page.expect_navigation():
        page.locator("form.scope select").select_option("shop")
        apply()
    assert asked(page) == {"project": "shop", **fixed}
    assert page.locator(".fixed-range").inner_text().startswith("01-02 03:00 to 01-05 03:00")
    with page.expect_navigation():
        page.locator("form.scope label", has=page.locator("input[value='7d']")).click()
        apply()
    assert page.locator(".fixed-range").count() == 0
    assert page.locator("form.scope input:checked").get_attribute("value") == "7d"
    assert asked(page)["project"] == "shop"


def test_sql_runs_from_the_form_and_by_name(opened: Window) -> None:
    page = opened.open("/sql")
    page.locator("#q").fill("SELECT 40 + {more:UInt8} AS n")
    page.locator("#sql .primary").click()
    assert "more" in page.locator("main").inner_text()
    page.locator("input[name=param_more]").fill("2")
    page.locator("#sql .primary").click()
    assert page.locator(".result td").inner_text() == "42"
    page.locator("details:has(form.named) summary").first.click()
    page.locator("form.named button").first.click()
    assert asked(page)["name"]
    assert page.locator(".notice.bad").count() == 0


@dataclass(frozen=True)
class Ada:
    """The console for a person who was not shown any verdict yet."""

    console: Console

    @property
    def url(self) -> str:
        return self.console.url

    def session(self, role: str) -> dict[str, str]:
        return self.console.session(role, "ada")


def test_an_answer_is_labelled_and_the_label_taken_back(browser: "Browser", shop: Shop) -> None:
    with window(browser, Ada(shop.console), role="LABELLER", scripts=False) as found:
        page = found.open("/label?project=shop")
        answer = page.locator("form.labelling input[name=event_id]").input_value()
        page.locator("textarea[name=note]").fill("without scripts")
        page.locator("button[value=bad]").click()
        assert page.locator("form.labelling input[name=event_id]").input_value() != answer
        page.locator("form.lastly button").click()
        assert asked(page)["item"] == answer
        assert page.locator("form.labelling input[name=event_id]").input_value() == answer


def test_the_last_events_are_there_and_loaded_again_by_a_link(opened: Window) -> None:
    page = opened.open("/live?kind=retrieval")
    page.get_by_role("link", name="Reload").click()
    assert asked(page) == {"kind": "retrieval"}
    page.locator("#live-pause").wait_for(state="hidden")  # the stylesheet hides it, once it is there
