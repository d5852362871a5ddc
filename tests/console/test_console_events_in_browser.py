"""Pages of events in a real browser: the live tail, keys, and hostile texts that are read back from the document."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay_runtime.store import connect, insert_json_rows
from tests.console.test_console_live import event, send
from tests.integration.test_console_events import HOSTILE
from tests.support.browser import Window, window
from tests.support.console import Console, running_console
from tests.support.sample_rows import answer, candidate, lines
from tests.support.store import StoreServer, refresh_rollups
from tests.support.wait import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def stored(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    with StoreServer(tmp_path_factory.mktemp("store"), tables=tables) as store:
        yield store


@pytest.fixture(scope="module")
def console(stored: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with running_console(tmp_path_factory.mktemp("console"), stored) as running:
        yield running


@pytest.fixture(scope="module")
def console_window(browser: "Browser", console: Console) -> Iterator[Window]:
    with window(browser, console) as found:
        yield found


@pytest.fixture
def opened(console_window: Window) -> Window:
    """A window of this console that is as good as new."""
    console_window.renew()
    return console_window


def questions(page: "Page") -> list[str]:
    return page.locator("#live tbody td.text bdi").all_text_contents()


def live(page: "Page") -> None:
    until(lambda: page.locator("#live-state").text_content() == "Live.", "not connected")


def test_rows_arrive_live_with_hostile_texts_as_text(opened: Window, console: Console) -> None:
    page = opened.open("/live?service=hostile")
    live(page)
    send(console.redis, *(event(0, service="hostile", payload={"query": text}) for text in HOSTILE.values()))
    until(lambda: len(questions(page)) == len(HOSTILE))
    assert questions(page) == list(HOSTILE.values())[::-1]
    assert page.title() == "Live · Assay"
    assert (opened.complaints, opened.foreign) == ([], [])
    page.reload()  # the same rows, as the server draws them
    assert questions(page) == list(HOSTILE.values())[::-1]


def test_pause_keeps_the_place_and_counts_what_waits(opened: Window, console: Console) -> None:
    page = opened.open("/live?service=paused")
    live(page)
    page.keyboard.press(".")
    send(console.redis, *(event(number, service="paused") for number in range(7)))
    until(lambda: page.locator("#live-state").text_content() == "Paused, 7 waiting.")
    assert questions(page) == []
    page.keyboard.press(".")
    assert questions(page) == [f"question {number}" for number in reversed(range(7))]
    until(lambda: page.locator("#live-log").text_content() == "7 new events")


def test_the_tail_goes_on_after_the_console_was_killed(opened: Window, console: Console) -> None:
    page = opened.open("/live?service=killed")
    live(page)
    send(console.redis, event(1, service="killed"))
    until(lambda: len(questions(page)) == 1)
    console.kill()
    send(console.redis, event(2, service="killed"))
    console.start()
    send(console.redis, event(3, service="killed"))
    until(lambda: len(questions(page)) == 3)
    assert questions(page) == ["question 3", "question 2", "question 1"]


def test_hostile_texts_are_read_back_unchanged_from_stored_events(opened: Window, stored: StoreServer) -> None:
    texts = list(HOSTILE.values())
    rows = [answer(number, project="hostile", query=text, answer=text) for number, text in enumerate(texts)]
    with connect(stored.settings().store) as owner:
        insert_json_rows(owner, "assay_base.answers", lines(rows), len(rows))
        refresh_rollups(owner)
    page = opened.open("/events?project=hostile")
    assert page.locator("table.events td.text bdi").all_text_contents() == texts[::-1]
    for row, text in zip(rows, texts, strict=True):
        opened.open(f"/e/{row['event_id']}")
        assert page.locator(".question bdi.captured").all_text_contents() == [text]
        assert page.locator(".answer bdi.captured").all_text_contents() == [text]
    assert (opened.complaints, opened.foreign) == ([], [])


def test_keys_move_through_a_list_and_its_events(opened: Window, console: Console, stored: StoreServer) -> None:
    rows = [candidate(number, project="keys", query=f"number {number}") for number in range(4)]
    with connect(stored.settings().store) as owner:
        insert_json_rows(owner, "assay_base.candidates", lines(rows), len(rows))
    page = opened.open("/events?project=keys")
    for key in ("j", "j", "k", "j"):
        page.keyboard.press(key)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    shown = [page.locator(".question").inner_text()]
    assert len(page.url) < len(console.url) + 100, "a link to an event is short"
    for key in ("n", "n", "p"):
        with page.expect_navigation():
            page.keyboard.press(key)
        shown.append(page.locator(".question").inner_text())
    assert shown == ["number 2", "number 1", "number 0", "number 1"]
    opened.open("/events?project=keys")
    page.keyboard.press("/")
    page.keyboard.type("number 3")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.locator("table.events tbody tr").count() == 1
    with page.expect_navigation():
        page.keyboard.press("[")
    assert "from=" in page.url
    assert "q=number+3" in page.url


def test_twenty_five_events_are_on_the_first_screen(opened: Window, stored: StoreServer) -> None:
    rows = [candidate(number, project="dense") for number in range(60)]
    with connect(stored.settings().store) as owner:
        insert_json_rows(owner, "assay_base.candidates", lines(rows), len(rows))
        refresh_rollups(owner)
    page = opened.open("/events?project=dense")
    heights = page.locator("table.events tbody tr").evaluate_all(
        "rows => rows.map(r => r.getBoundingClientRect().bottom)"
    )
    assert sum(bottom <= 800 for bottom in heights) >= 25
