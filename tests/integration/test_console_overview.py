"""The overview with a real store and a real Redis: full, empty, one of them away."""

import asyncio

from assay_runtime.store import connect, insert_json_rows
from assay_schema.settings import RedisSettings, Settings
from assay_ui.formats import sentence
from assay_writer.rows import alert_row
from tests.support.alert_samples import episode
from tests.support.console_pages import console, missing
from tests.support.redis import RedisServer
from tests.support.sample_rows import by_column, candidate, failure, lines
from tests.support.store import StoreServer, refresh_rollups


def of(store: StoreServer, redis: RedisServer) -> Settings:
    """The console's settings. It waits for nobody: a server that is away is noticed at once."""
    settings = store.settings("console")
    return settings.model_copy(update={"redis": RedisSettings.model_validate({"url": redis.url})})


def fill(store: StoreServer) -> None:
    rows = [candidate(number) for number in range(40)]
    rows += [candidate(100, project="shop", retrieved_chunk_ids=[], retrieved_slugs=[], retrieved_scores=[])]
    with connect(store.settings("writer").store) as writer:
        insert_json_rows(writer, "assay_base.candidates", lines(rows), len(rows))
        insert_json_rows(writer, "assay_base.capture_failures", lines([failure(project="shop")]), 1)
        open_ones = [by_column(*alert_row(alert.model_dump_json().encode())[:2]) for alert in episode()[:1]]
        insert_json_rows(writer, "assay_base.alerts", lines(open_ones), 1)
    with connect(store.settings().store) as owner:
        refresh_rollups(owner)


def test_the_overview_shows_every_project_with_the_worst_first(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    fill(empty_store)

    async def look() -> None:
        async with console(of(empty_store, redis_server)) as pages:
            document, page = await pages.json("/overview"), await pages.html("/")
            rows = document["projects"]["value"]
            assert [(each["name"], each["state"]) for each in rows] == [("shop", "bad"), ("default", "good")]
            assert (rows[0]["lost"], rows[0]["without_result"], rows[0]["warnings"]) == (1, 1.0, 1)
            assert rows[1]["events"] == 40
            assert document["verdict"]["state"] == "bad"
            assert "1 event lost in 24 h" in document["verdict"]["sentence"]
            assert document["verdict"]["sentence"] in page
            assert missing(document["projects"], page, "hours", "usual", "critical", "warnings") == []
            assert '<tr data-href="/alerts?project=shop">' in page, "Enter on a row with alerts opens them"
            assert '<tr data-href="/events?project=default">' in page
            one = await pages.json("/overview?project=default")
            assert [each["name"] for each in one["projects"]["value"]] == ["default"]
            assert "lost in 24 h" in one["verdict"]["sentence"]
            assert "none lost in 24 h" in one["verdict"]["sentence"]

    asyncio.run(look())


def test_an_empty_system_shows_the_settings_of_a_producer(empty_store: StoreServer, redis_server: RedisServer) -> None:
    async def look() -> None:
        async with console(of(empty_store, redis_server)) as pages:
            document, page = await pages.json("/overview"), await pages.html("/")
            assert document["empty"]
            assert document["verdict"]["sentence"].startswith("Waiting for the first event")
            assert "ASSAY_REDIS_URL=redis://producer:PASSWORD@127.0.0.1" in page

    asyncio.run(look())


def test_a_store_that_is_away_is_named_and_its_last_answer_stays(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    fill(empty_store)

    async def look() -> None:
        async with console(of(empty_store, redis_server)) as pages:
            assert (await pages.json("/overview"))["projects"]["state"] == "ready"
            empty_store.kill()
            document = await pages.json("/overview")
            # The answer of the last seconds is still current; after them the panel is stale.
            assert document["projects"]["state"] in ("ready", "stale")
        async with console(of(empty_store, redis_server)) as pages:  # a console that has never had an answer
            document, page = await pages.json("/overview"), await pages.html("/")
            assert document["verdict"]["state"] == "bad"
            assert "the store does not answer" in document["verdict"]["sentence"]
            assert document["projects"] == {
                "state": "unavailable", "value": None, "message": document["projects"]["message"],
                "fix": document["projects"]["fix"], "age_s": None,
            }  # fmt: skip
            assert sentence(document["projects"]["message"].partition("; ")[0]) in page

    asyncio.run(look())


def test_a_redis_that_is_away_is_named_while_the_projects_stay(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    fill(empty_store)
    redis_server.kill()

    async def look() -> None:
        async with console(of(empty_store, redis_server)) as pages:
            document, page = await pages.json("/overview"), await pages.html("/")
            assert "Redis does not answer" in document["verdict"]["sentence"]
            assert document["steps"]["state"] == "unavailable"
            assert len(document["projects"]["value"]) == 2
            assert "producers spool their events" in page

    asyncio.run(look())


def test_a_project_that_is_not_known_gets_no_green_answer(empty_store: StoreServer, redis_server: RedisServer) -> None:
    fill(empty_store)

    async def look() -> None:
        async with console(of(empty_store, redis_server)) as pages:
            for path in ("/overview", "/alerts", "/live", "/quality"):
                refused = await pages.json(f"{path}?project=..", 422)
                assert "is not the name of a project" in str(refused), path
            await pages.html("/?project=..", 422)
            document, page = await pages.json("/overview?project=nosuch"), await pages.html("/?project=nosuch")
            assert document["verdict"] == {"state": "warn", "sentence": "No event of project nosuch is known."}
            assert document["verdict"]["sentence"] in page
            assert "No event of project nosuch was counted in the last 90 days" in page
            for state in ("open", "resolved"):
                page = await pages.html(f"/alerts?project=nosuch&state={state}")
                assert "No event of project nosuch is known, and no alert." in page
                assert ("●</span> No alert" in page, "None was ever resolved" in page) == (False, False)
            assert (await pages.json("/alerts?project=nosuch"))["is_known"] is False
            assert (await pages.json("/alerts?project=shop"))["is_known"] is True
            assert "No event of project" not in await pages.html("/alerts?project=shop")

    asyncio.run(look())


def test_losses_of_no_readable_project_have_a_row_and_are_no_project_to_choose(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    fill(empty_store)
    with connect(empty_store.settings("writer").store) as writer:
        lost = [failure(number, project="unknown") for number in range(10, 13)]
        insert_json_rows(writer, "assay_base.capture_failures", lines(lost), len(lost))
    with connect(empty_store.settings().store) as owner:
        refresh_rollups(owner)

    async def look() -> None:
        async with console(of(empty_store, redis_server)) as pages:
            document, page = await pages.json("/overview"), await pages.html("/")
            rows = {each["name"]: each for each in document["projects"]["value"]}
            assert {name: (each["lost"], each["readable"]) for name, each in rows.items()} == {
                "shop": (1, True), "default": (0, True), "unknown": (3, False),
            }  # fmt: skip
            assert "4 events lost in 24 h" in document["verdict"]["sentence"]
            assert '<a href="/failures?project=unknown">(project not readable)</a>' in page
            for path in ("/label", "/review", "/"):
                assert ">unknown<" not in await pages.html(path), path

    asyncio.run(look())


def test_events_that_are_not_counted_by_hour_yet_are_not_shown_as_none(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    fill(empty_store)
    rows = [candidate(number, project="new") for number in range(200, 207)]
    with connect(empty_store.settings("writer").store) as writer:
        insert_json_rows(writer, "assay_base.candidates", lines(rows), len(rows))
    with connect(empty_store.settings().store) as owner:
        refresh_rollups(owner, ("rollup_minute_refresh",))

    async def look() -> None:
        async with console(of(empty_store, redis_server)) as pages:
            document, page = await pages.json("/overview"), await pages.html("/")
            (new,) = [each for each in document["projects"]["value"] if each["name"] == "new"]
            assert (new["events"], new["counting"]) == (0, True)
            cell = page.partition('href="/events?project=new">new</a>')[2].partition("24 hours")[0]
            assert "counting …" in cell
            assert '<a href="/events?project=new">0</a>' not in cell

    asyncio.run(look())
