"""A night on call with keys alone, to its end: the alert, a wrong answer, a label, and the level that is accepted as normal."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from redis.asyncio import Redis as AsyncRedis

from assay_console.pages import PAGES
from assay_drift.state import ShardState
from assay_runtime.store import connect, insert_json_rows
from assay_schema.alerts import Alert
from assay_schema.streams import drift_key
from assay_writer.rows import alert_row
from tests.support.browser import window
from tests.support.console import Console
from tests.support.console_rows import Filled, fill
from tests.support.drift_samples import HASHED, QUICK, START_MS, monitor, score, stream
from tests.support.gateway import redis_with_identities
from tests.support.redis import RedisServer
from tests.support.sample_rows import by_column, lines
from tests.support.store import PASSWORD, StoreServer
from tests.support.wait import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: What the element with the focus shows of its focus: nothing, or an outline with a contrast to what is behind it.
_FOCUS = """
() => {
  const focused = document.activeElement, e = focused.matches(".ranges input") ? focused.nextElementSibling : focused;
  const style = getComputedStyle(e);
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) return [e.outerHTML.slice(0, 120), "no outline"];
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
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
}
"""


@dataclass(frozen=True)
class Night:
    """A console, its Redis, the shop, and an episode of it that can be accepted."""

    console: Console
    redis: RedisServer
    rows: Filled
    alert: Alert


@pytest.fixture
def night(own_store: StoreServer, tmp_path: Path) -> Iterator[Night]:
    """A console with an operator's credentials, and an open episode that the drift service has."""
    redis = redis_with_identities(tmp_path)
    file = tmp_path / "secrets" / "operator.toml"
    file.parent.mkdir()
    file.write_text(
        f'[redis]\nurl = "redis://operator:operator-password@127.0.0.1:{redis.port}/0"\n'
        f'[store]\nurl = "{own_store.url}"\nuser = "operator"\npassword = "{PASSWORD}"\n'
        "[drift]\nday_minutes = 1.0\nlearning_samples = 100\nlearning_days = 2\nrun_length_days = 30\n"
    )
    file.chmod(0o600)
    watched = monitor(QUICK)
    for number, (at_ms, value) in enumerate(stream(days=6, per_day=80, drop_from=4, drop=0.3)):
        watched.observe_score(score(at_ms, value, number, project="shop"), at_ms)
    with redis.client() as client:
        for name, data in watched.changes().items():
            client.hset(drift_key(), name, data or b"")
    found = watched.take_alerts()
    with connect(own_store.settings().store) as owner:
        filled = fill(owner)
        rows = [by_column(*alert_row(each.model_dump_json().encode())[:2]) for each in found]
        insert_json_rows(owner, "assay_base.alerts", lines(rows), len(rows))
    console = Console(tmp_path, redis, own_store.url, ASSAY_CONSOLE_OPERATOR_CONFIG=str(file))
    try:
        yield Night(console.start(), redis, filled, found[-1])
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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_from_the_overview_to_an_accepted_level_with_keys_alone(browser: "Browser", night: Night, dark: bool) -> None:
    with window(browser, night.console, dark=dark) as opened, drift_service(night.redis):
        page = opened.open("/")
        go(page, "alerts")
        open_row(page, f"/alerts/{night.rows.alert}")
        follow(page, "Answers with faithfulness below")
        open_row(page, "/e/")
        assert page.locator(".question").count() == 1

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
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_page_traps_the_focus_and_each_control_shows_it(browser: "Browser", night: Night, dark: bool) -> None:
    with window(browser, night.console, dark=dark) as opened:
        opened.page.add_init_script(
            "sessionStorage.setItem('assay.refresh.paused', '1')"
        )  # a page would load itself again meanwhile
        hidden = {}
        for path in (each.path for each in PAGES if "{" not in each.path and each.name != "patterns"):
            page = opened.open(path)
            seen = 0
            for _ in range(400):
                page.keyboard.press("Tab")
                left, wrong = page.evaluate(
                    f"() => document.activeElement === document.body ? [true, null] : [false, ({_FOCUS})()]"
                )
                if left:
                    break
                seen += 1
                if wrong:
                    hidden[path, wrong[0]] = wrong[1]
            assert seen < 400, f"{path}: Tab does not come to an end"
        assert hidden == {}
