"""Documents read by a program, through the API of a real console."""

import pytest

from assay_console.client import Client, ClientError
from assay_console.pages import PAGES
from tests.console.conftest import Shop


@pytest.fixture(scope="module")
def client(shop: Shop) -> Client:
    return Client(shop.console.url, shop.console.key(project="shop"))


def test_events_come_once_over_all_pages(client: Client) -> None:
    ids = [event.event_id for event in client.events(kind="answer", t="30d")]
    assert len(ids) == len(set(ids)) == 168
    assert ids == sorted(ids, reverse=True)


def test_an_event_is_read_by_its_id(client: Client, shop: Shop) -> None:
    assert client.document("event", event_id=shop.rows.answer).model_dump_json().count(shop.rows.answer)


def test_each_thing_is_read_by_what_its_path_names(client: Client, shop: Shop) -> None:
    base, change = shop.rows.runs
    named = {
        "alert": {"alert_id": shop.rows.alert},
        "session": {"session_id": shop.rows.session},
        "dataset": {"name": shop.rows.dataset},
        "run": {"run_id": base},
        "case": {"case_id": shop.rows.case, "base": base, "change": change},
    }
    for name, parameters in named.items():
        assert type(client.document(name, **parameters)) is next(each for each in PAGES if each.name == name).document


@pytest.mark.parametrize("parameters", [{"t": "30d"}, {"t": "30d", "q": "no event has this text"}])
def test_a_key_of_one_project_learns_nothing_of_other_projects(client: Client, parameters: dict[str, str]) -> None:
    document = client.document("events", **parameters).model_dump()
    assert "project" not in [each["name"] for each in (*document["facets"]["value"], *document["removed"])]


@pytest.mark.parametrize("name", [page.name for page in PAGES if page.by_project and "{" not in page.path])
def test_every_document_of_a_project_has_its_own_form(client: Client, name: str) -> None:
    page = next(each for each in PAGES if each.name == name)
    assert type(client.document(name)) is page.document


def test_errors_name_what_happened_and_what_helps(client: Client, shop: Shop) -> None:
    with pytest.raises(ClientError, match="there are:"):
        client.document("nothing")
    with pytest.raises(ClientError, match="event needs event_id"):
        client.document("event")
    with pytest.raises(ClientError, match="no parameter 'colour'"):
        client.document("events", colour="red")
    with pytest.raises(ClientError, match="this key reads project shop only") as refused:
        client.document("events", project="other")
    assert refused.value.status == 403
    with pytest.raises(ClientError) as refused:
        Client(shop.console.url, "nonsense").document("overview")
    assert refused.value.status == 401
    with pytest.raises(ClientError, match="is the console running"):
        Client("http://127.0.0.1:1", "key").document("overview")
