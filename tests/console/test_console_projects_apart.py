"""A key of one project learns nothing of another one that is filled too: no name, id, text or count."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest

from assay_console.page import Page
from assay_console.pages import PAGES
from assay_console.views.events import LIMIT
from assay_runtime.store import connect
from tests.console.conftest import FilledTables
from tests.support.console import Console, running_console
from tests.support.console import Page as Answer
from tests.support.console_rows import NEIGHBOUR, SECRET, Filled, fill_neighbour
from tests.support.sample_rows import iso
from tests.support.store import StoreServer
from tests.support.wait import until

MINE = [page for page in PAGES if page.by_project]
#: What is asked of a page that is not asked plainly, or not only.
ASKED: dict[str, tuple[dict[str, str], ...]] = {
    # Not a search, which may end when its time is used up.
    "events": ({}, {"kind": "feedback"}, {"kind": "tool_call"}, {"status": "error"}),
    "review": (
        {},
        {"negative": "1"},
    ),
    "compare": (
        {},
        {"base": "main", "change": "pull-request"},
    ),
    "case": ({"base": "main", "change": "pull-request"},),
}


#: Times of reading and counting, links with them, and new ids.
MOVING = {
    "counted_to",
    "label_id",
    "events_before",
    "events_during",
    "differs",
    "worst",
    "to_ms",
    "checked_at",
    "watermark_at",
}


@dataclass(frozen=True)
class Both:
    """Documents for a key of the shop, before and after the neighbour came, and the neighbour's ids."""

    console: Console
    rows: Filled
    theirs: list[str]
    before: dict[str, Any]
    after: dict[str, Any]


def places(rows: Filled) -> dict[str, str]:
    return {
        "event_id": rows.answer, "alert_id": rows.alert, "session_id": rows.session, "name": rows.dataset,
        "run_id": rows.runs[0], "case_id": rows.case,
    }  # fmt: skip


def path_of(page: Page, filled: dict[str, str], **asked: str) -> str:
    path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda place: filled[place[1]], page.api_path)
    return f"{path}?{urlencode(asked)}" if asked else path


def whole(answer: Answer) -> Any:
    """Return a document; None for a list that ended because its time was used up."""
    assert answer.status == 200, answer.text
    listed = answer.json.get("listed")
    if not isinstance(listed, dict):
        return answer.json
    rows = listed.get("value") or {}
    ended_early = not rows.get("complete") and len(rows.get("rows", ())) < LIMIT
    return None if ended_early else answer.json


def documents(console: Console, rows: Filled, until_ms: int) -> dict[str, Any]:
    """Read every document of a fixed week with a key of the shop, by a console that has kept no answer."""
    week = {"from": iso(until_ms - 7 * 86_400_000), "to": iso(until_ms)}
    console.kill()
    console.start()
    key = console.key(project="shop")
    found = {}
    for page in MINE:
        for asked in ASKED.get(page.name, ({},)):
            path = path_of(page, places(rows), **asked, **(week if page.span else {}))
            found[path] = until(
                lambda path=path: whole(console.get(path, role=None, Authorization=f"Bearer {key}")),
                f"{path} has no whole answer",
                pause_s=1.0,
            )
    return found


def leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from leaves(each, f"{where}.{name}")
    elif isinstance(value, list):
        yield f"{where}.length", len(value)
        for place, each in enumerate(value):
            yield from leaves(each, f"{where}.{place}")
    else:
        yield where, value


@pytest.fixture(scope="module")
def both(filled: FilledTables, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with (
        StoreServer(tmp_path_factory.mktemp("store"), tables=filled.data) as store,
        connect(store.settings().store) as owner,
    ):
        rows, until_ms = filled.rows, int(time.time() * 1000)
        with running_console(tmp_path_factory.mktemp("console"), store) as console:
            before = documents(console, rows, until_ms)
            theirs = fill_neighbour(owner, rows)
            yield Both(console, rows, theirs, before, documents(console, rows, until_ms))


def test_documents_of_a_project_are_the_same_without_and_with_another_one(both: Both) -> None:
    before, after = (
        {where: value for where, value in leaves(each) if where.rpartition(".")[2] not in MOVING}
        for each in (both.before, both.after)
    )
    differing = sorted(where for where in before.keys() | after.keys() if before.get(where) != after.get(where))
    assert {where: (before.get(where), after.get(where)) for where in differing} == {}
    assert len(before) > 1000


def test_no_name_id_or_text_of_another_project_is_in_a_document(both: Both) -> None:
    text = json.dumps(both.after)
    assert SECRET not in text
    assert NEIGHBOUR not in text
    assert [each for each in both.theirs if each in text] == []


@pytest.mark.parametrize("page", MINE, ids=lambda page: page.name)
def test_what_belongs_to_another_project_is_not_found_by_its_id_and_refused_by_its_name(both: Both, page: Page) -> None:
    key = both.console.key(project="shop")

    def read(path: str) -> tuple[int, str]:
        answer = both.console.get(path, role=None, Authorization=f"Bearer {key}")
        return answer.status, answer.text

    named = {
        "event_id": both.theirs[1],
        "alert_id": both.theirs[-1],
        "session_id": "x",
        "name": SECRET,
        "run_id": SECRET,
        "case_id": SECRET,
    }
    assert read(path_of(page, named, project=NEIGHBOUR))[0] == 403
    status, text = read(path_of(page, named))
    found = json.loads(text)
    # What was asked for is named in the answer, and nothing else.
    for each in named.values():
        text = text.replace(each, "")
    assert NEIGHBOUR not in text
    assert SECRET not in text
    if "{" in page.path:
        assert status == 404, found
    for name in ("item", "event", "session", "base"):
        if name in {each.name for each in page.parameters}:
            asked = both.theirs[1] if name != "base" else SECRET
            told = read(path_of(page, places(both.rows), **{name: asked}))[1].replace(asked, "")
            assert NEIGHBOUR not in told
            assert "Ask" not in told, "the text of the neighbour's answer"


@pytest.mark.parametrize("page", [page for page in PAGES if page.export is not None], ids=lambda page: page.name)
def test_a_file_has_rows_of_the_project_of_the_key_only(both: Both, page: Page) -> None:
    """Both projects have a dataset of one name, and the neighbour has another one."""
    key = both.console.key(project="shop")
    same_origin = {"Authorization": f"Bearer {key}", "Sec_Fetch_Site": "same-origin"}
    for prefix in ("", "/api/v1"):
        path = f"{prefix}{path_of(page, places(both.rows)).removeprefix('/api/v1')}/export"
        answer = both.console.get(
            f"{path}?q=SELECT+query+FROM+answers" if page.name == "sql" else path, None, **same_origin
        )
        assert answer.status == (200 if page in MINE else 403), path
        assert SECRET not in answer.text
        assert NEIGHBOUR not in answer.text
        named = path.replace(both.rows.dataset, SECRET)
        assert page not in MINE or both.console.get(named, None, **same_origin).status == 404
        assert both.console.get(f"{path}?project={NEIGHBOUR}", None, **same_origin).status == 403


def test_a_key_of_the_neighbour_learns_nothing_of_the_shop(both: Both) -> None:
    key = both.console.key(project=NEIGHBOUR)
    seen = ""
    for page in MINE:
        answer = both.console.get(
            path_of(page, places(both.rows), **({"t": "7d"} if page.span else {})),
            role=None,
            Authorization=f"Bearer {key}",
        )
        text = answer.text
        for each in places(both.rows).values():
            text = text.replace(each, "")
        assert '"shop"' not in text, page.name
        assert "handbook" not in text, page.name
        seen += text
    assert SECRET in seen
