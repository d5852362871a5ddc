"""The page that accepts the alerts of an incident, in a browser: nothing is accepted by mistake."""

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from assay_schema.alerts import AlertState
from tests.integration.test_console_alerts import put
from tests.support.alert_samples import transition
from tests.support.browser import window
from tests.support.console import running_console
from tests.support.store import StoreServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_no_alert_is_chosen_beforehand_and_the_button_says_how_many_are(
    browser: "Browser", empty_store: StoreServer, tmp_path: Path
) -> None:
    for number, metric in enumerate(("faithfulness", "citation_recall", "answer_relevancy"), 1):
        put(empty_store, transition(1, AlertState.CRITICAL, alert_id=UUID(int=number), metric=metric))
    settings = {
        "ASSAY_CONSOLE_OPERATOR_CONFIG": str(tmp_path / "operator.toml"),
        "ASSAY_CONSOLE_ALERTMANAGER_URL": "http://alertmanager.example:9093",
    }
    with running_console(tmp_path, empty_store, **settings) as console, window(browser, console) as opened:
        page = opened.open(f"/alerts/{UUID(int=1)}/together")
        boxes, button = page.locator("input[name=episodes]"), page.locator("button.danger")
        assert [boxes.nth(each).is_checked() for each in range(boxes.count())] == [False] * 3
        assert (button.inner_text(), button.is_enabled()) == ("Accept 0 of 3 as normal", False)
        boxes.nth(1).check()
        assert (button.inner_text(), button.is_enabled()) == ("Accept 1 of 3 as normal", True)
        page.locator("[data-all]").check()
        assert button.inner_text() == "Accept 3 of 3 as normal"
        boxes.nth(0).uncheck()
        assert (button.inner_text(), page.locator("[data-all]").is_checked()) == ("Accept 2 of 3 as normal", False)
        silence = page.get_by_role("link", name="I am on it").get_attribute("href")
        assert silence is not None
        assert silence.startswith("http://alertmanager.example:9093/#/silences/new?filter=%7Balert_id%3D~")
