"""Tables of a console whose projects have long names, much personal data and many metrics, in a real browser."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from assay_evals.run.model import CaseResult, Run, RunConfig
from assay_evals.run.run_store import store_run
from assay_runtime.store import connect, insert_json_rows
from assay_schema.settings import StoreSettings
from tests.support.browser import Window, window
from tests.support.console import running_console
from tests.support.console_rows import alert_row
from tests.support.sample_rows import answer, candidate, event_id_at, iso, lines, score
from tests.support.store import StoreServer, refresh_rollups

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_WIDER = """[...document.querySelectorAll('main .wide')]
    .filter(e => !e.closest('details:not([open])') && e.scrollWidth > e.clientWidth + 1).length"""
_WIDTHS = """[...document.querySelectorAll('table.events thead th')]
    .map(e => [e.textContent.split(' ')[0], e.getBoundingClientRect().width])"""


@pytest.fixture(scope="module")
def opened(browser: "Browser", tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    now_ms = int(time.time() * 1000)
    found = {"connection_url": 1, "payment_card": 2, "email": 1}
    rows: dict[str, list[dict[str, object]]] = {"candidates": [], "answers": [], "scores": [], "alerts": []}
    for number in range(20):
        of = {"project": f"support-{number % 2}", "service": "search-production", "pii_families": found}
        rows["candidates"].append(candidate(number, **of))
        replied = event_id_at(now_ms - 60_000 + number)
        rows["answers"].append(answer(event_id=replied, **of))
        rows["scores"].append(score(event_id=replied, project=of["project"], faithfulness=0.5))
    for metric, series, kind in (("latency_p95", "answer", "score_drift"), ("mean_of_k", "query", "retrieval_drift")):
        changed = {"metric": metric, "series": series, "kind": kind, "n": 1234, "project": "support-production"}
        rows["alerts"].append(alert_row(str(uuid4()), now_ms) | changed)
    with StoreServer(tmp_path_factory.mktemp("store"), tables=tables) as store:
        with connect(store.settings().store) as owner:
            for table, each in rows.items():
                insert_json_rows(owner, f"assay_base.{table}", lines(each), len(each))
            means = {"ndcg@10": 0.5, "recall@10": 0.5, "mrr": 0.5, "null_accuracy": 0.5}
            results = [CaseResult(f"case-{number}", "technical", ["a"], 20.0, means, None) for number in range(4)]
            began = iso(now_ms - 7_200_000)
            for name in ("a-branch-with-a-long-name", "main"):
                config = RunConfig(
                    "golden",
                    "2",
                    "f" * 64,
                    "package.module:function",
                    branch="a-branch-with-a-long-name",
                    code_version="01" * 8,
                )
                store_run(owner, StoreSettings(), Run(name, config, began, began, results))
            refresh_rollups(owner)
        with (
            running_console(tmp_path_factory.mktemp("console"), store) as console,
            window(browser, console) as running,
        ):
            yield running


@pytest.mark.parametrize("path", ["/events", "/alerts?t=7d", "/evals"])
def test_a_table_of_long_names_fits_its_page(opened: Window, path: str) -> None:
    opened.renew()
    page = opened.open(path)
    assert page.locator("main .wide tbody tr:visible").count() >= 2
    for width in (1280, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(_WIDER) == 0, width
    assert any("UTC" in head for head in page.locator("main .wide th:visible").all_text_contents())


@pytest.mark.parametrize(("width", "least"), [(1280, 190), (1440, 320)])
def test_questions_of_all_projects_have_the_room_that_signals_do_not_need(
    opened: Window, width: int, least: int
) -> None:
    opened.renew(width)
    widths = dict(opened.open("/events").evaluate(_WIDTHS))
    assert "project" in widths
    assert widths["question"] >= least, widths
    assert widths["signals"] <= 200, widths
