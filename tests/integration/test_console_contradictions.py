"""The page of contradictions with a real store: rates by series, findings by state, what to do next."""

import re
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from assay_console.views.contradictions import FINDINGS_SHOWN, found_of, next_of, series_of
from assay_operations.evaluations.contradiction_reads import findings_in, trends_in
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.settings import RedisSettings, Settings
from assay_ui.formats import sentence
from tests.support.console_pages import console, missing, shown
from tests.support.console_rows import HOSTILE, contradictions
from tests.support.sample_rows import contradiction_pair, contradiction_run, lines
from tests.support.store import StoreServer

PATH = "/contradictions?project=shop"


@pytest.fixture
def owner(empty_store: StoreServer) -> Iterator[Client]:
    with connect(empty_store.settings().store) as client:
        yield client


@pytest.fixture
def settings(empty_store: StoreServer) -> Settings:
    redis = RedisSettings.model_validate({"url": "redis://127.0.0.1:1/0"})
    return empty_store.settings("console").model_copy(update={"redis": redis})


def put(owner: Client, rows: dict[str, list[dict[str, Any]]]) -> None:
    for table, made in rows.items():
        insert_json_rows(owner, f"assay_base.{table}", lines(made), len(made))


def filled(owner: Client, *texts: str) -> None:
    put(owner, contradictions("shop", texts, int(time.time() * 1000)))


async def test_a_page_shows_every_rate_and_finding_of_its_document(settings: Settings, owner: Client) -> None:
    filled(owner, "The limit is 5 requests per second.", "Returns are free.")
    async with console(settings) as pages:
        document, page = await pages.json(PATH), await pages.html(PATH)
        (series,) = document["series"]["value"]
        assert [run["status"] for run in series["runs"]] == [
            "completed", "completed", "judge_failed", "completed", "completed"
        ]  # fmt: skip
        assert series["runs"][2]["rate"] is None
        assert series["latest"]["run_id"] == series["runs"][-1]["run_id"]
        assert series["latest"]["bounds"] == [0.03, 0.3]
        assert missing([document["series"]["value"], document["findings"]["value"]], page) == []
        assert "With the 4 pairs that have a judge error" in shown(page)
        assert '<polygon class="band"' in page
        assert document["findings"]["value"]["counts"] == {"open": 2, "gone": 1, "resolved": 1, "refuted": 1, "all": 5}
        for finding in document["findings"]["value"]["rows"]:
            assert finding["state"] == "open"
            assert len(finding["claims"]) == 2
            assert all(
                text in shown(page) for text in (*finding["claims"], *finding["documents"], finding["next_step"])
            )
            assert f"assay eval contradictions review --refute {finding['pair_id']} --project shop" in shown(page)
        assert document["command"] == "assay eval contradictions review --queue 100 --project shop"
        assert document["command"] in shown(page)


async def test_a_finding_says_in_how_many_pairs_and_documents_it_is(settings: Settings, owner: Client) -> None:
    rows = contradictions("shop", ["The limit is 5 requests per second."], int(time.time() * 1000))
    ((open_row,)) = [row for row in rows["contradiction_pairs"] if row["pair_key"] == "shop-open-0"]
    for n in range(12):
        more = {
            "result_id": str(uuid.uuid4()),
            "pair_id": f"shop-{n}",
            "pair_key": f"shop-{n}",
            "documents": [f"page {n:02}", "guides/limits"],
        }
        rows["contradiction_pairs"].append({**open_row, **more, "place": 100 + n})
    put(owner, rows)
    async with console(settings) as pages:
        (finding,) = (await pages.json(PATH))["findings"]["value"]["rows"]
        assert (finding["pairs"], finding["document_count"], len(finding["all_documents"])) == (13, 14, 10)
        page = shown(await pages.html(PATH))
        (extent,) = re.findall(r"In 13 pairs of 14 documents: .*? …", page)
        assert extent.count("page ") == 8, extent
        assert all(name in extent for name in (*finding["all_documents"], ", …"))


@pytest.mark.parametrize("state", ["gone", "resolved", "refuted", "all"])
async def test_findings_are_listed_by_state(settings: Settings, owner: Client, state: str) -> None:
    filled(owner, "The limit is 5 requests per second.")
    async with console(settings) as pages:
        rows = (await pages.json(f"{PATH}&state={state}"))["findings"]["value"]["rows"]
        assert {each["state"] for each in rows} == (
            {"open", "gone", "resolved", "refuted"} if state == "all" else {state}
        )
        assert "--refute" not in (await pages.html(f"{PATH}&state=gone"))
        await pages.json(f"{PATH}&state=nonsense", 422)


async def test_hostile_texts_are_shown_as_text(settings: Settings, owner: Client) -> None:
    filled(owner, *HOSTILE)
    async with console(settings) as pages:
        page = await pages.html(f"{PATH}&state=all")
        assert "&lt;script&gt;" in page
        for broken in ("<script>document", "<img src", "<base href"):
            assert broken not in page
        rows = (await pages.json(f"{PATH}&state=all"))["findings"]["value"]["rows"]
        assert {each["claims"][0] for each in rows} == set(HOSTILE)


async def test_a_range_holds_the_runs_and_findings_of_its_time(settings: Settings, owner: Client) -> None:
    filled(owner, "The limit is 5 requests per second.")
    async with console(settings) as pages:
        document = await pages.json(f"{PATH}&t=24h")
        (series,) = document["series"]["value"]
        assert len(series["runs"]) == 1
        assert document["findings"]["value"]["counts"]["gone"] == 0
        day = 86_400_000
        now = int(time.time() * 1000)
        assert sum(len(each.points) for each in trends_in(owner, "shop", now - 30 * day, now - 5 * day)) == 4
        assert findings_in(owner, "shop", now - 30 * day, now - 20 * day, every=True) == []


async def test_an_empty_page_says_how_to_begin_and_one_of_several_projects_is_chosen(
    settings: Settings, owner: Client
) -> None:
    async with console(settings) as pages:
        page = shown(await pages.html(PATH))
        assert "assay eval contradictions run --from-capture --project shop" in page
        assert "No finding was seen in this range." in page
        assert "No project has sent an event yet." in shown(await pages.html("/contradictions"))
        assert (await pages.json("/contradictions"))["series"]["value"] == []


async def test_a_project_with_judged_pairs_and_no_event_is_shown(settings: Settings, owner: Client) -> None:
    filled(owner, "The limit is 5 requests per second.")
    async with console(settings) as pages:
        assert (await pages.json("/contradictions"))["project"] == "shop"
        assert "No project has sent an event yet." not in shown(await pages.html("/contradictions"))
    put(owner, {"contradiction_runs": [contradiction_run(project="docs", days_old=0.1)]})
    async with console(settings) as pages:
        document, page = await pages.json("/contradictions"), await pages.html("/contradictions")
        assert (document["project"], document["projects"]) == ("", ["docs", "shop"])
        assert "/contradictions?project=docs" in page


async def test_a_store_that_is_away_is_said_in_each_panel(settings: Settings, owner: Client) -> None:
    away = settings.model_copy(update={"store": settings.store.model_copy(update={"url": "http://127.0.0.1:1"})})
    async with console(away) as pages:
        document, page = await pages.json(PATH), await pages.html(PATH)
        for name in ("series", "findings"):
            assert (document[name]["state"], document[name]["value"]) == ("unavailable", None)
        assert shown(page).count("▲ " + sentence(document["series"]["message"].partition("; ")[0])) == 2


async def test_more_findings_than_are_shown_are_counted_and_the_command_has_all(
    settings: Settings, owner: Client
) -> None:
    run = contradiction_run(project="shop", days_old=0.1)
    pairs = [
        contradiction_pair(number, project="shop", days_old=0.1, run_id=run["run_id"])
        for number in range(FINDINGS_SHOWN + 3)
    ]
    put(owner, {"contradiction_runs": [run], "contradiction_pairs": pairs})
    async with console(settings) as pages:
        found = (await pages.json(PATH))["findings"]["value"]
        assert (len(found["rows"]), found["counts"]["open"]) == (FINDINGS_SHOWN, FINDINGS_SHOWN + 3)
        assert f"The {FINDINGS_SHOWN} most severe of {FINDINGS_SHOWN + 3}." in shown(await pages.html(PATH))


def test_the_next_step_follows_from_the_newest_run(owner: Client) -> None:
    now = int(time.time() * 1000)
    filled(owner, "The limit is 5 requests per second.")
    (series,) = series_of(trends_in(owner, "shop", 0, now + 1_000))

    def command(**latest: Any) -> str:
        run = series.runs[-1].model_copy(update=latest)
        return next_of("shop", (series.model_copy(update={"runs": (*series.runs[:-1], run)}),))[1]

    assert next_of("shop", ()) == next_of("shop", None) == ("", "")
    assert command(status="judge_failed") == "assay doctor"
    assert "review --queue" in command()
    assert "review --queue" in command(corrected=series.runs[-1].rate, errors_unlabelled=True)
    assert "run --from-capture" in command(corrected=series.runs[-1].rate)
    assert found_of((), "open").rows == ()
