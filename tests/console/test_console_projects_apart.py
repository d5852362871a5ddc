"""A key of one project learns nothing of another one that is filled too: no name, id, text or count."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from assay_console.page import Page
from assay_console.pages import PAGES
from assay_runtime.store import connect
from tests.support.console import Console, running_console
from tests.support.console_rows import NEIGHBOUR, SECRET, Filled, fill, fill_neighbour
from tests.support.store import StoreServer, refresh_rollups

MINE = [page for page in PAGES if page.by_project]
#: More questions than the plain page.
ASKED: dict[str, tuple[dict[str, str], ...]] = {
    "events": ({"has": "feedback"}, {"q": "boots"}, {"status": "error"}, {"q": "nothing of this kind"}),
    "review": ({"negative": "1"},),
    "compare": ({"base": "main", "change": "pull-request"},),
    "case": ({"base": "main", "change": "pull-request"},),
}


@dataclass(frozen=True)
class Both:
    """Documents for a key of the shop, before and after the neighbour came, and the neighbour's ids."""

    console: Console
    rows: Filled
    theirs: list[str]
    before: dict[str, Any]
    after: dict[str, Any]
    #: Values that differ from one reading to the next without any new row, such as when the rollups were counted.
    moving: set[str]


def places(rows: Filled) -> dict[str, str]:
    return {
        "event_id": rows.answer, "alert_id": rows.alert, "session_id": rows.session, "name": rows.dataset,
        "run_id": rows.runs[0], "case_id": rows.case,
    }  # fmt: skip


def path_of(page: Page, filled: dict[str, str], **asked: str) -> str:
    path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda place: filled[place[1]], page.api_path)
    return f"{path}?{urlencode(asked)}" if asked else path


def documents(console: Console, rows: Filled) -> dict[str, Any]:
    """Read every document with a key of the shop, by a console that has kept no answer."""
    console.kill()
    console.start()
    key = console.key(project="shop")
    found = {}
    for page in MINE:
        for asked in ({}, *ASKED.get(page.name, ())):
            path = path_of(page, places(rows), **asked, **({"t": "7d"} if page.span else {}))
            answer = console.get(path, role=None, Authorization=f"Bearer {key}")
            found[path] = answer.json if answer.status == 200 else answer.status
            assert answer.status == 200 or page.name in ("compare", "case"), (path, answer.text)
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
def both(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with (
        StoreServer(tmp_path_factory.mktemp("store"), tables=tables) as store,
        connect(store.settings().store) as owner,
    ):
        rows = fill(owner)
        with running_console(tmp_path_factory.mktemp("console"), store) as console:
            before = documents(console, rows)
            refresh_rollups(owner)
            again = dict(leaves(documents(console, rows)))
            moving = {where for where, value in leaves(before) if again.get(where) != value}
            theirs = fill_neighbour(owner, rows)
            yield Both(console, rows, theirs, before, documents(console, rows), moving)


def test_few_values_move_by_themselves(both: Both) -> None:
    names = {where.rpartition(".")[2] for where in both.moving}
    assert not {each for each in names if re.search(r"count$|events|length|n$|id$|text|name", each)} - {"label_id"}


def test_documents_of_a_project_are_the_same_without_and_with_another_one(both: Both) -> None:
    before, after = (
        {where: value for where, value in leaves(each) if where not in both.moving}
        for each in (both.before, both.after)
    )
    moved = {where for where in before.keys() | after.keys() if before.get(where) != after.get(where)} - both.moving
    assert {where: (before.get(where), after.get(where)) for where in sorted(moved)} == {}
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
            asked = read(path_of(page, places(both.rows), **{name: both.theirs[1] if name != "base" else SECRET}))
            assert NEIGHBOUR not in asked[1]
            assert "Ask" not in asked[1], "the text of the neighbour's answer"


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
