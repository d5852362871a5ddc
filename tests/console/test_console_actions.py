"""Actions of people: each role that may take one takes it, which its effect shows, and each role below changes nothing."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import pytest

from assay_console.pages import ACTIONS
from assay_console.people import Role
from assay_runtime.store import Client, connect
from assay_schema.streams import CAPTURE, DEAD, FIELD
from tests.console.conftest import FilledTables
from tests.support.console import Console
from tests.support.console_rows import Filled
from tests.support.gateway import redis_with_identities
from tests.support.redis import RedisServer
from tests.support.store import PASSWORD, StoreServer


@dataclass(frozen=True)
class Place:
    """A console with an operator's credentials, on a filled store."""

    console: Console
    redis: RedisServer
    owner: Client
    rows: Filled

    def found(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.owner.query(sql).result_rows]

    def state(self) -> dict[str, Any]:
        """Return all that actions can change."""
        with self.redis.client() as client:
            streams = {key: client.xlen(key) for key in (CAPTURE.key(), DEAD.key())}
            hashes = sorted(key for key in client.keys("*") if client.type(key) == b"hash")
        tables = ("assay_base.labels", "assay_base.dataset_cases", "assay.operations")
        return {**streams, "hashes": hashes} | {each: self.found(f"SELECT count() FROM {each}") for each in tables}


@pytest.fixture(scope="module")
def place(filled: FilledTables, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("console")
    redis = redis_with_identities(directory)
    with StoreServer(tmp_path_factory.mktemp("store"), tables=filled.data) as store:
        file = directory / "secrets" / "operator.toml"
        file.parent.mkdir()
        file.write_text(
            f'[redis]\nurl = "redis://operator:operator-password@127.0.0.1:{redis.port}/0"\n'
            f'[store]\nurl = "{store.url}"\nuser = "operator"\npassword = "{PASSWORD}"\n'
        )
        file.chmod(0o600)
        with connect(store.settings().store) as owner:
            console = Console(directory, redis, store.url, ASSAY_CONSOLE_OPERATOR_CONFIG=str(file)).start()
            try:
                yield Place(console, redis, owner, filled.rows)
            finally:
                console.kill()
                redis.stop()


def post(place: Place, role: Role | None, path: str, **form: str) -> int:
    return place.console.post(path, form, role=role and role.name).status


def label(place: Place, role: Role | None) -> int:
    given = "bad" if role is Role.OPERATOR else "good"
    status = post(place, role, "/labels", project="shop", event_id=place.rows.answer, label=given)
    mine = f"labeller = 'jo' AND event_id = '{place.rows.answer}'"
    assert (status == 303) == (place.found(f"SELECT label FROM labels WHERE {mine}") == [(given,)])
    return status


def undo(place: Place, role: Role | None) -> int:
    assert label(place, Role.LABELLER) == 303
    status = post(place, role, "/labels/undo", project="shop", event_id=place.rows.answer)
    left = place.found("SELECT count() FROM labels WHERE labeller = 'jo'")
    assert left == [(0 if status == 303 else 1,)]
    return status


def save(place: Place, role: Role | None) -> int:
    dataset = f"by-{role}".lower().replace(".", "-")
    status = post(place, role, f"/datasets/{dataset}/cases", project="shop", event_id=place.rows.retrieval, ranks="1")
    saved = place.found(f"SELECT version, reviewer FROM dataset_cases WHERE dataset = '{dataset}'")
    assert saved == ([(1, "jo")] if status == 303 else [])
    return status


def retire(place: Place, role: Role | None) -> int:
    dataset, case = f"retired-by-{role}".lower().replace(".", "-"), f"event-{place.rows.retrieval}"
    form = {"project": "shop", "event_id": place.rows.retrieval, "ranks": "1"}
    assert post(place, Role.LABELLER, f"/datasets/{dataset}/cases", **form) == 303
    status = post(place, role, f"/datasets/{dataset}/cases/{case}/retire", project="shop", base_version="1")
    left = place.found(f"SELECT count() FROM dataset_cases WHERE dataset = '{dataset}'")
    assert left == [(0 if status == 303 else 1,)]
    return status


def bury(place: Place) -> None:
    """Leave one dead letter, and no captured entry."""
    dead = {"stream": CAPTURE.key(), "entry_id": "1-0", "stage": "scrubber", "reason": "other", "error_class": "X"}
    with place.redis.client() as client:
        client.delete(DEAD.key(), CAPTURE.key())
        client.xadd(DEAD.key(), {FIELD: b"{}", **dead})


def left(place: Place) -> tuple[int, int]:
    with place.redis.client() as client:
        return client.xlen(DEAD.key()), client.xlen(CAPTURE.key())


def requeue(place: Place, role: Role | None) -> int:
    bury(place)
    seen = place.console.get("/api/v1/failures/requeue", role="OPERATOR").json
    status = post(place, role, "/failures/requeue", reason="", stage="", expected=seen["digest"], comment="")
    assert left(place) == ((0, 1) if status == 303 else (1, 0))
    return status


def drop(place: Place, role: Role | None) -> int:
    bury(place)
    seen = place.console.get("/api/v1/failures/drop", role="OPERATOR").json
    form = {"reason": "", "stage": "", "expected": seen["digest"], "typed": "1", "comment": ""}
    status = post(place, role, "/failures/drop", **form)
    assert left(place) == ((0, 0) if status == 303 else (1, 0))
    return status


def acknowledge(place: Place, role: Role | None) -> int:
    """The drift service knows no such episode: an operator gets as far as that.

    tests/integration/test_console_alerts.py acknowledges one that it knows.
    """
    path = f"/alerts/{place.rows.alert}/acknowledge"
    answer = place.console.post(path, {}, role=role and role.name)
    assert ("can be acknowledged" in answer.text) == (answer.status == 404)
    return answer.status


def acknowledge_together(place: Place, role: Role | None) -> int:
    """As `acknowledge`; tests/integration/test_console_alerts.py acknowledges episodes that the drift service knows."""
    path = f"/alerts/{place.rows.alert}/together"
    answer = place.console.post(path, {"episodes": place.rows.alert}, role=role and role.name)
    assert ("closed already" in answer.text) == (answer.status == 409)
    return answer.status


TAKEN: dict[str, Callable[[Place, Role | None], int]] = {
    "/labels": label,
    "/labels/undo": undo,
    "/datasets/{name}/cases": save,
    "/datasets/{name}/cases/{case_id}/retire": retire,
    "/failures/requeue": requeue,
    "/failures/drop": drop,
    "/alerts/{alert_id}/acknowledge": acknowledge,
    "/alerts/{alert_id}/together": acknowledge_together,
}
#: Statuses of actions that need an episode of a running drift service.
WITHOUT_DRIFT = {"/alerts/{alert_id}/acknowledge": 404, "/alerts/{alert_id}/together": 409}


@pytest.mark.parametrize("role", [None, *Role], ids=lambda role: role.name.lower() if role else "nobody")
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.path)
def test_an_action_has_its_effect_for_its_role_and_those_above_only(
    place: Place, action: Any, role: Role | None
) -> None:
    expected = 401 if role is None else 403 if role < action.role else 303
    if expected == 303:
        expected = WITHOUT_DRIFT.get(action.path, 303)
    assert TAKEN[action.path](place, role) == expected


@pytest.mark.parametrize("role", [None, Role.VIEWER])
def test_those_who_may_do_nothing_leave_everything_as_it_is(place: Place, role: Role | None) -> None:
    before = place.state()
    for action in ACTIONS:
        path = re.sub(r"\{[^}]+\}", "x", action.path)
        for prefix in ("", "/api/v1"):
            assert post(place, role, prefix + path) == (403 if role else 401), path
    assert place.state() == before


def followed(place: Place, path: str, **form: str) -> Any:
    """Send a form, and return the document of the page that it leads to, with what that says once."""
    answer = place.console.post(path, form, role="LABELLER")
    assert answer.status == 303
    notice = answer.headers["set-cookie"].partition(";")[0]
    to = urlsplit(answer.headers["location"])
    cookie = f"{place.console.session('LABELLER')['Cookie']}; {notice}"
    return place.console.get(f"{to.path}?{to.query}", role=None, Cookie=cookie)


def test_the_page_says_what_a_label_is_and_what_it_replaced(place: Place) -> None:
    queue = {"project": "shop", "queue": "said", "event_id": place.rows.answer}
    first = followed(place, "/labels", **queue, label="good").text
    assert re.search(r"Labelled <span[^>]*>● good</span>; 1 so far", first)
    again = followed(place, "/labels", **queue, label="bad").text
    assert re.search(r"Labelled <span[^>]*>▲ bad</span> instead of good; 1 so far", again)
    twice = followed(place, "/labels", **queue, label="bad").text
    assert "instead of" not in twice
    taken = followed(place, "/labels/undo", **queue).text
    assert "Your label on this answer is taken back." in taken
    assert "Labelled" not in taken


def test_labels_can_be_taken_back_after_the_page_was_loaded_again(place: Place) -> None:
    queue = {"project": "shop", "queue": "later", "event_id": place.rows.answer}
    assert place.console.post("/labels", queue | {"label": "unsure"}, role="LABELLER").status == 303
    page = place.console.get("/label?project=shop&queue=later", role="LABELLER").text
    assert "Undo" not in page, "the notice is shown once"
    link = re.search(
        r'<h2>Your last labels, of any time</h2>\s*<ul[^>]*><li><a href="([^"]+)">[^<]*</a> cannot tell', page
    )
    assert link
    assert "Take the label back" in place.console.get(unescape(link[1]), role="LABELLER").text


@pytest.mark.parametrize("event", ["", "x", "'"])
def test_a_label_of_no_answer_is_refused(place: Place, event: str) -> None:
    assert post(place, Role.LABELLER, "/labels", project="shop", event_id=event, label="good") == 422
