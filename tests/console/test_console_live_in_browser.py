"""The live tail in a real browser while Redis or the console hangs, as under SIGSTOP: it never says "Live" then."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import window
from tests.support.console import Console, running_console
from tests.support.store import StoreServer
from tests.support.wait import PATIENCE_S

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def hanging(migrated: StoreServer, tmp_path: Path) -> Iterator[Console]:
    with running_console(tmp_path, migrated) as running:
        try:
            yield running
        finally:
            running.redis.kill(signal.SIGCONT)
            assert running.process
            running.process.send_signal(signal.SIGCONT)


def shows(page: "Page", text: str) -> None:
    page.locator("#live-state", has_text=text).wait_for(timeout=PATIENCE_S * 1_000)


def test_the_live_page_names_a_redis_that_hangs_until_it_answers(browser: "Browser", hanging: Console) -> None:
    with window(browser, hanging) as opened:
        page = opened.open("/live")
        shows(page, "Live.")
        hanging.redis.kill(signal.SIGSTOP)
        shows(page, "Redis is away, waiting for it")
        hanging.redis.kill(signal.SIGCONT)
        shows(page, "Live.")
        hanging.redis.kill(signal.SIGSTOP)
        page.reload()
        shows(page, "Redis does not answer.")
        hanging.redis.kill(signal.SIGCONT)
        page.reload()
        shows(page, "Live.")
        hanging.kill()
        shows(page, "Redis or the console is away, connecting again")


def test_the_live_page_misses_the_heartbeats_of_a_console_that_hangs(browser: "Browser", hanging: Console) -> None:
    assert hanging.process
    with window(browser, hanging) as opened:
        opened.page.clock.install()
        page = opened.open("/live")
        shows(page, "Live.")
        hanging.process.send_signal(signal.SIGSTOP)
        page.clock.fast_forward(60_000)
        shows(page, "The console does not answer, connecting again")
        hanging.process.send_signal(signal.SIGCONT)
        page.clock.run_for(20_000)
        shows(page, "Live.")
