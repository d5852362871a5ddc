"""Pages of errors: they lead on, keep what a person wrote, and print commands that work."""

from pathlib import Path

import pytest

from assay_console.people import Role
from assay_schema.alerts import AlertState
from assay_schema.ids import new_event_id
from assay_schema.settings import RedisSettings, Settings
from tests.integration.test_console_alerts import OTHER, put
from tests.support.alert_samples import transition
from tests.support.console_pages import console, shown
from tests.support.redis import RedisServer
from tests.support.store import PASSWORD, StoreServer

NOTE = "a note that took <time> to write"


@pytest.fixture
def settings(empty_store: StoreServer, redis_server: RedisServer, tmp_path: Path) -> Settings:
    """The settings of a console that `assay up --data DIRECTORY` started."""
    file = tmp_path / "demo/secrets/operator.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        f'[redis]\nurl = "{redis_server.url}"\n'
        f'[store]\nurl = "{empty_store.url}"\nuser = "operator"\npassword = "{PASSWORD}"\n'
    )
    own = empty_store.settings("console")
    redis = RedisSettings.model_validate({"url": redis_server.url})
    return own.model_copy(update={"redis": redis, "console": own.console.model_copy(update={"operator_config": file})})


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/login?token=used", "assay console url"),
        ("/s/unknown", "assay sessions list"),
        ("/evals/runs/unknown", "assay eval list --store"),
        (f"/alerts/{OTHER}", "assay alerts list --all"),
    ],
)
async def test_commands_of_an_error_name_the_data_directory(
    settings: Settings, tmp_path: Path, path: str, command: str
) -> None:
    async with console(settings) as pages:
        if "token" in path:
            pages._client.cookies.clear()
        page = (await pages._client.get(path)).text
        assert f"{command} --data {tmp_path}/demo" in shown(page)


async def test_an_error_leads_to_the_pages_around_it_and_to_the_menu(settings: Settings) -> None:
    async with console(settings, Role.VIEWER) as pages:
        page = await pages.html(f"/alerts/{OTHER}/acknowledge", 403)
        assert "This needs the role operator. Yours is viewer." in shown(page)
        assert "console.operator_groups" in page
        for path in (f"/alerts/{OTHER}", "/alerts", "/", "/events", "/health"):
            assert f'href="{path}"' in page
        assert f'href="/alerts/{OTHER}/acknowledge"' not in page
        assert 'href="/sessions"' in await pages.html("/s/unknown", 404)


async def test_a_refused_form_leads_back_to_its_page_and_nowhere_else(settings: Settings) -> None:
    async with console(settings) as pages:
        path = f"/alerts/{OTHER}/together"
        for referer, back in (
            (f"http://localhost{path}?project=shop", f'href="{path}?project=shop"'),
            ("http://localhost/labels", ""),
            (f"http://evil.example{path}", ""),
            ("http://[", ""),
        ):
            headers = {"sec-fetch-site": "same-origin", "referer": referer}
            answer = await pages._client.post(path, data={"comment": NOTE}, headers=headers)
            assert answer.status_code == 422
            assert ("Back to the page before" in answer.text) == bool(back)
            assert back in answer.text
            assert "evil" not in answer.text
            assert NOTE.replace("<", "&lt;").replace(">", "&gt;") in answer.text
            assert "Send it again" not in answer.text


async def test_a_note_that_the_store_could_not_take_can_be_sent_again(
    settings: Settings, empty_store: StoreServer
) -> None:
    async with console(settings) as pages:
        empty_store.kill()
        sent = {"project": "shop", "event_id": new_event_id(), "label": "bad", "label_id": new_event_id(), "note": NOTE}
        page = (await pages.post("/labels", 503, **sent)).text
        assert '<form method="post" action="/labels"' in page
        assert "Send it again" in page
        for name, value in sent.items():
            if name != "note":
                assert f'<input type="hidden" name="{name}" value="{value}">' in page
        assert 'href="/label"' in page


async def test_who_accepted_an_alert_and_when_is_said_to_the_next_person(
    settings: Settings, empty_store: StoreServer
) -> None:
    summary = "faithfulness of shop acknowledged by ana (new model): the baseline is now 31.0%, learned later"
    put(empty_store, transition(4, AlertState.RESOLVED, alert_id=OTHER, project="shop", summary=summary))
    async with console(settings) as pages:
        page = (await pages.post(f"/alerts/{OTHER}/acknowledge", 409, comment=NOTE)).text
        assert "This alert was accepted as normal by ana (new model) already, at 20" in shown(page)
        assert f'href="/alerts/{OTHER}"' in page
        assert "took" in page


async def test_names_of_parameters_are_written_as_they_are(settings: Settings) -> None:
    async with console(settings) as pages:
        page = await pages.html("/events?t=banana", 422)
        assert "t: &#39;banana&#39; is not one of" in page
        assert "T: " not in page
