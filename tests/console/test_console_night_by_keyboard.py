"""A night on call with keys alone, to its end: the alert, a wrong answer, a label, and the level that is accepted as normal."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from redis.asyncio import Redis as AsyncRedis

from assay_console.pages import PAGES
from assay_drift.state import ShardState
from assay_runtime.store import connect, insert_json_rows
from assay_schema.alerts import Alert
from assay_schema.streams import drift_key
from assay_writer.rows import alert_row
from tests.console.conftest import FilledTables
from tests.support.browser import window
from tests.support.console import Console
from tests.support.console_rows import Filled, path_of
from tests.support.drift_samples import HASHED, QUICK, START_MS, monitor, score, stream
from tests.support.gateway import redis_with_identities
from tests.support.redis import RedisServer
from tests.support.sample_rows import by_column, lines
from tests.support.store import PASSWORD, StoreServer
from tests.support.wait import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: What the element with the focus shows of its focus: nothing, or an outline with a contrast to what is behind it.
_FOCUS = """(() => {
  const focused = document.activeElement, e = focused.matches(".ranges input") ? focused.nextElementSibling : focused;
  const style = getComputedStyle(e);
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) return [e.outerHTML.slice(0, 120), "no outline"];
  const canvas = window.canvas ??= new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => {
    const [r, g, b] = colour.map(each => each / 255).map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let behind = parseFloat(style.outlineOffset) < 0 ? e : e.parentElement, ground = [255, 255, 255, 255];
  for (; behind; behind = behind.parentElement) {
    const colour = rgba(getComputedStyle(behind).backgroundColor);
    if (colour[3] === 255) { ground = colour; break; }
  }
  const both = [light(rgba(style.outlineColor)), light(ground)].sort((a, b) => b - a);
  const contrast = (both[0] + 0.05) / (both[1] + 0.05);
  return contrast < 3 ? [e.outerHTML.slice(0, 120), `contrast ${contrast.toFixed(2)}`] : null;
})()
"""
#: Notes each control that gets the focus, and what is wrong with how it shows it, until the focus left the page and is back at the first.
_NOTE = f"""
Object.assign(window, {{reached: [], wrong: [], left: false, over: false}});
addEventListener("focusin", ({{target}}) => {{
  if (window.over ||= window.left && target === window.reached[0]) return;
  window.reached.push(target);
  const found = {_FOCUS};
  if (found) window.wrong.push(found);
}});
addEventListener("focusout", ({{relatedTarget}}) => {{ window.left ||= !relatedTarget; }});
"""
#: What is wrong with how the noted controls show the focus now.
_AGAIN = f"window.reached.map(each => {{ each.focus(); return {_FOCUS}; }}).filter(Boolean)"


@dataclass(frozen=True)
class Night:
    """A console, its Redis, the shop, and an episode of it that can be accepted."""

    console: Console
    redis: RedisServer
    rows: Filled
    alert: Alert


@pytest.fixture(scope="module")
def night(filled: FilledTables, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    """A console with an operator's credentials, and an open episode that the drift service has."""
    directory = tmp_path_factory.mktemp("night")
    redis = redis_with_identities(directory)
    watched = monitor(QUICK)
    for number, (at_ms, value) in enumerate(stream(days=6, per_day=80, drop_from=4, drop=0.3)):
        watched.observe_score(score(at_ms, value, number, project="shop"), at_ms)
    with redis.client() as client:
        for name, data in watched.changes().items():
            client.hset(drift_key(), name, data or b"")
    found = watched.take_alerts()
    with StoreServer(directory / "store", tables=filled.data) as store:
        file = directory / "secrets" / "operator.toml"
        file.parent.mkdir()
        file.write_text(
            f'[redis]\nurl = "redis://operator:operator-password@127.0.0.1:{redis.port}/0"\n'
            f'[store]\nurl = "{store.url}"\nuser = "operator"\npassword = "{PASSWORD}"\n'
            "[drift]\nday_minutes = 1.0\nlearning_samples = 100\nlearning_days = 2\nrun_length_days = 30\n"
        )
        file.chmod(0o600)
        with connect(store.settings().store) as owner:
            rows = [by_column(*alert_row(each.model_dump_json().encode())[:2]) for each in found]
            insert_json_rows(owner, "assay_base.alerts", lines(rows), len(rows))
        console = Console(directory, redis, store.url, ASSAY_CONSOLE_OPERATOR_CONFIG=str(file))
        try:
            yield Night(console.start(), redis, filled.rows, found[-1])
        finally:
            console.kill()
            redis.stop()


@contextmanager
def drift_service(redis: RedisServer) -> Iterator[None]:
    """Do what the drift service does with acknowledgements."""
    over = threading.Event()

    async def run() -> None:
        async with AsyncRedis(port=redis.port) as client:
            service = ShardState(client, QUICK, 0, 1, HASHED)
            while not over.is_set():
                await service.tick(lambda _: None, START_MS)
                await asyncio.sleep(0.05)

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)


def go(page: "Page", name: str) -> None:
    """Press the keys of a page of the menu."""
    page.keyboard.press("g")
    with page.expect_navigation():
        page.keyboard.press(next(each.key for each in PAGES if each.name == name))


def follow(page: "Page", text: str) -> None:
    """Press Tab until a link or button with a text has the focus, then Enter."""
    enter(page, "Tab", 150, text, "document.activeElement.matches('a, button') ? document.activeElement.innerText : ''")


def open_row(page: "Page", href: str) -> None:
    """Press `j` until the row that leads to an address is selected, then Enter."""
    enter(page, "j", 20, href, "document.activeElement.closest('tr[data-href]')?.dataset.href ?? ''")


def enter(page: "Page", key: str, most: int, wanted: str, focused: str) -> None:
    """Press a key until what has the focus is wanted, then Enter. Whatever has the focus on the way shows it."""
    for _ in range(most):
        page.keyboard.press(key)
        assert page.evaluate(_FOCUS) is None
        if wanted in page.evaluate(focused):
            with page.expect_navigation():
                page.keyboard.press("Enter")
            return
    pytest.fail(f"{wanted!r} is not reached by {key}")


@pytest.mark.slow
def test_from_the_overview_to_an_accepted_level_with_keys_alone(browser: "Browser", night: Night) -> None:
    with window(browser, night.console) as opened, drift_service(night.redis):
        page = opened.open("/")
        go(page, "alerts")
        open_row(page, f"/alerts/{night.rows.alert}")
        enter(page, "j", 5, "Answers with faithfulness below", "document.activeElement.innerText")
        open_row(page, "/e/")
        assert "Delivery is free." in page.locator("main").inner_text()

        go(page, "label")
        answer = page.locator("form.labelling input[name=event_id]").input_value()
        with page.expect_navigation():
            page.keyboard.press("2")
        until(lambda: page.locator("form.lastly").count() == 1)
        assert page.locator("form.labelling input[name=event_id]").input_value() != answer

        go(page, "alerts")
        open_row(page, f"/alerts/{night.alert.alert_id}")
        follow(page, "Accept as normal")
        assert page.evaluate("document.activeElement.name") == "comment"
        assert page.evaluate(_FOCUS) is None
        page.keyboard.type("a new model")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert "Accepted:" in page.locator("main").inner_text()
        assert [each for each in opened.complaints if "Transition was" not in each] == []


@pytest.mark.slow
def test_no_page_traps_the_focus_and_each_control_shows_it(browser: "Browser", night: Night) -> None:
    with window(browser, night.console, still=True) as opened:
        opened.page.add_init_script(_NOTE)
        hidden = {}
        for name in (each.name for each in PAGES if each.name != "patterns"):
            page = opened.open(path_of(name, night.rows))
            presses = 0
            while not page.evaluate("window.over"):
                assert presses < 400, f"{name}: Tab does not come to an end"
                for _ in range(10):
                    page.keyboard.press("Tab")
                presses += 10
            wrong = {"light": page.evaluate("window.wrong")}
            opened.look(dark=True)
            wrong["dark"] = page.evaluate(_AGAIN)
            opened.look()
            assert page.evaluate("window.reached.length") > len(PAGES) // 2, "the menu alone has more"
            hidden |= {(name, scheme): each for scheme, each in wrong.items() if each}
        assert hidden == {}
