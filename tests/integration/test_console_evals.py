"""The pages of evaluations with a real store: runs by dataset, two compared as the command does, one case side by side."""

import asyncio
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_console.views.evals import grouped
from assay_evals.nightly import Attempt, Outcome, store_attempt
from assay_evals.run.model import CaseResult, Run, RunConfig
from assay_evals.run.run_store import identity, store_run
from assay_operations.evaluations.stored import runs_in
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.settings import RedisSettings, Settings
from assay_ui.forest import ForestRow, forest
from assay_ui.formats import sentence
from tests.support.cli import Cli
from tests.support.console_pages import console, missing
from tests.support.sample_rows import dataset_case, lines
from tests.support.store import StoreServer

CASES = 40
ODD = "a/b ?#&<i>é"


def run_of(
    name: str, worse: int = 0, *, dataset: str = "f" * 64, started: str = "2026-11-20T01:02:03.456+00:00"
) -> Run:
    """Return a run whose first `worse` cases return the expected document at rank 2."""
    config = RunConfig("golden", "3", dataset, "app:search", project="shop", branch="main", code_version="abc")
    results = [
        CaseResult(
            ODD if number == 0 else f"case-{number}", "technical" if number % 2 else "status",
            ["doc/other", "doc/right"] if number < worse else ["doc/right", "doc/last"], 10.0 + number,
            {"mrr": 0.5 if number < worse else 1.0, "recall@10": 1.0},
        )
        for number in range(CASES)
    ]  # fmt: skip
    return Run(name, config, started, "2026-11-20T01:03:03.456+00:00", results)


@pytest.fixture
def owner(empty_store: StoreServer) -> Iterator[Client]:
    with connect(empty_store.settings().store) as client:
        yield client


@pytest.fixture
def settings(empty_store: StoreServer) -> Settings:
    redis = RedisSettings.model_validate({"url": "redis://127.0.0.1:1/0"})
    return empty_store.settings("console").model_copy(update={"redis": redis})


def put(store: StoreServer, owner: Client, *runs: Run) -> list[str]:
    return [str(store_run(owner, store.settings().store, run)) for run in runs]


async def test_a_comparison_is_what_the_command_says(
    settings: Settings, empty_store: StoreServer, owner: Client, tmp_path: Path
) -> None:
    base, change = put(empty_store, owner, run_of("main"), run_of("pr", 20, started="2026-11-21T00:00:00.000+00:00"))
    done = await asyncio.to_thread(
        Cli(tmp_path, store_url=empty_store.url).call,
        "eval",
        "compare",
        base,
        change,
        "--store",
        "--json",
        role="evaluator",
    )
    printed = json.loads(done.stdout)
    async with console(settings) as pages:
        query = f"?base={base}&change={change}"
        document, page = await pages.json(f"/compare{query}"), await pages.html(f"/evals/compare{query}")
        found = document["found"]
        assert (found["verdict"], found["reason"]) == (printed["verdict"], printed["verdict_in_words"])
        assert found["verdict"] == "fail"
        assert found["comparable"]
        for shown, told in zip(found["metrics"], printed["metrics"], strict=True):
            assert (shown["metric"], shown["n"], shown["delta"], shown["p"]) == (
                told["metric"],
                told["n"],
                told["delta"],
                told["p"],
            )
            assert [shown["low"], shown["high"]] == [told["interval"]["low"], told["interval"]["high"]]
        assert found["reason"][1:] in page
        # The forest plot states its figures; thresholds of search paths and metrics of a run's row are on other pages.
        assert missing(found["metrics"], page) == []
        assert missing([found["by_query_type"], found["cases"], found["worse"], found["paired"]], page) == []
        assert '<g class="v-fail">' in page
        by_name = await pages.json("/compare?base=main&change=pr&project=shop")
        assert by_name["found"] == found
        metric = (await pages.json(f"/compare{query}&metric=mrr"))["found"]
        assert (metric["changed"], metric["worse"], len(metric["cases"])) == (20, 20, 20)
        assert (await pages.json(f"/compare?base={change}&change={base}&metric=mrr&only=1"))["found"]["cases"] == []
        await pages.json(f"/compare{query}&metric=nonsense", 422)
        await pages.json(f"/compare?base={base}&change=nobody", 404)
        await pages.json(f"/compare{query}&project=books", 404)


async def test_runs_over_other_cases_are_told_to_be_not_comparable(
    settings: Settings, empty_store: StoreServer, owner: Client
) -> None:
    base, change = put(empty_store, owner, run_of("main"), run_of("other", dataset="e" * 64))
    async with console(settings) as pages:
        query = f"?base={base}&change={change}"
        found = (await pages.json(f"/compare{query}"))["found"]
        assert not found["comparable"]
        assert found["verdict"] == "fail"
        page = await pages.html(f"/evals/compare{query}")
        assert "These runs are not comparable." in page
        for each in found["problems"]:
            assert each in page


async def test_runs_are_grouped_by_the_fingerprint_of_their_dataset_and_nights_are_a_strip(
    settings: Settings, empty_store: StoreServer, owner: Client
) -> None:
    runs = [run_of("one"), run_of("other", dataset="e" * 64, started="2026-11-21T00:00:00.000+00:00"), run_of("two", 3)]
    put(empty_store, owner, *runs)
    told = Attempt(
        uuid.uuid4(), "golden", "shop", _now(), _now(), Outcome.FAIL, identity(runs[0]), "one",
        "two", CASES, 1, ["mrr"], 0.25, "mrr failed", [],
    )  # fmt: skip
    store_attempt(owner, empty_store.settings().store, told)
    groups = grouped(runs_in(owner, "shop"))
    assert [[each.name for each in group.runs] for group in groups] == [["other"], ["one", "two"]]
    async with console(settings) as pages:
        document, page = await pages.json("/runs?project=shop"), await pages.html("/evals?project=shop")
        listed = document["runs"]["value"]["groups"]
        assert [group["dataset_fingerprint"][:1] for group in listed] == ["e", "f"]
        assert (
            missing([[run["means"], run["cases"], run["errored"]] for group in listed for run in group["runs"]], page)
            == []
        )
        (night,) = document["nights"]["value"]
        assert (night["outcome"], night["failed_metrics"]) == ("fail", ["mrr"])
        assert missing(night, page) == []
        assert (await pages.json("/runs?project=books"))["runs"]["value"]["groups"] == []
        run = listed[1]["runs"][0]["run_id"]
        one, page = await pages.json(f"/runs/{run}"), await pages.html(f"/evals/runs/{run}")
        assert missing([one["found"]["metrics"], one["found"]["by_query_type"], one["found"]["results"]], page) == []
        assert [each["name"] for each in one["comparable"]] == ["two"]
        await pages.json("/runs/nobody", 404)


def _now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC).replace(microsecond=0)


async def test_a_case_shows_both_lists_their_moves_and_what_was_expected(
    settings: Settings, empty_store: StoreServer, owner: Client
) -> None:
    base, change = put(empty_store, owner, run_of("main"), run_of("pr", 3))
    case = dataset_case(
        project="shop", dataset="golden", case_id="case-1", query="which document is right?", expected_slugs=["doc/right", "doc/never"],
        expected_chunk_ids=[], null_case=False, retired=False,
    )  # fmt: skip
    insert_json_rows(owner, "assay_base.dataset_cases", lines([case]), 1)
    async with console(settings) as pages:
        query = f"?base={base}&change={change}&metric=mrr"
        document, page = await pages.json(f"/evals/case/case-1{query}"), await pages.html(f"/evals/case/case-1{query}")
        moves = [(each["rank"], each["name"], each["was"], each["expected"]) for each in document["candidate"]["items"]]
        assert moves == [(1, "doc/other", None, False), (2, "doc/right", 1, True)]
        assert document["absent"] == ["doc/never"]
        assert document["question"] == "which document is right?"
        assert document["question"] in page
        assert "rank 1 there" in page
        compared, listed = await pages.json(f"/compare{query}"), await pages.html(f"/evals/compare{query}")
        assert compared["questions"] == {"case-1": "which document is right?"}
        assert re.search(r'<a href="/evals/case/case-1\?[^"]*">[^/]*which document is right\?', listed)
        assert ">case-1<" in re.sub(r"</?bdi[^>]*>", "", listed), "the id is there as well"
        assert "case-2" in listed
        assert missing([document["baseline"]["items"], document["candidate"]["items"]], page) == []
        # The list has the three cases that got worse, and the keys walk it.
        assert {ODD, "case-1", "case-2"} == {document["previous"], document["next"], "case-1"} | {ODD}
        first = await pages.json(
            f"/evals/case/{document['previous'] or 'case-1'}".replace(ODD, "a%2Fb%20%3F%23%26%3Ci%3E%C3%A9") + query
        )
        assert first["listed"] == 3
        odd = await pages.html(f"/evals/case/a%2Fb%20%3F%23%26%3Ci%3E%C3%A9{query}")
        assert "<i>é" not in odd
        assert "which documents are expected is not known" in odd
        await pages.json(f"/evals/case/none{query}", 404)
        await pages.json("/evals/case/case-1", 404)


async def test_empty_pages_say_what_to_run_and_a_store_that_is_away_is_said(
    settings: Settings, empty_store: StoreServer
) -> None:
    async with console(settings) as pages:
        for path in ("/evals", "/evals/compare"):
            assert "assay eval run" in await pages.html(path)
        empty_store.kill()
        document, page = await pages.json("/runs?project=books"), await pages.html("/evals?project=books")
        assert document["runs"]["state"] == "unavailable"
        assert sentence(document["runs"]["message"].partition("; ")[0]) in page
        await pages.html("/evals/compare?base=a&change=b", 503)


def test_a_forest_plot_has_a_mark_for_each_verdict_and_no_markup_of_names() -> None:
    rows = [
        ForestRow("<b>", -0.2, -0.1, 0.0, -0.05, "fail", "<b>: fell"),
        ForestRow("mrr", -0.01, 0.02, 0.05, -0.05, "pass", "mrr"),
        ForestRow("ndcg@10", -0.3, 0.0, 0.3, None, "inconclusive", "ndcg@10"),
    ]
    drawn = str(forest("Changes", rows))
    assert [drawn.count(f'class="v-{verdict}"') for verdict in ("fail", "pass", "inconclusive")] == [1, 1, 1]
    assert (drawn.count("<polygon"), drawn.count("<circle"), drawn.count('class="limit"')) == (2, 1, 2)
    assert "<b>" not in drawn
    assert "style=" not in drawn
    assert str(forest("Changes", [])) == ""
