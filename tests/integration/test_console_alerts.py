"""The pages of alerts with a real store and a real Redis: the list, one episode, and its acknowledgement."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from redis.asyncio import Redis as AsyncRedis

from assay_console.people import Role
from assay_drift.state import ShardState
from assay_runtime.store import connect, insert_json_rows
from assay_schema.alerts import Alert, AlertState
from assay_schema.settings import RedisSettings, Settings
from assay_schema.streams import acknowledged_key, drift_key
from assay_ui.formats import measured, sentence
from assay_writer.rows import alert_row
from tests.support.alert_samples import EPISODE, episode, transition
from tests.support.console_pages import console, missing, shown
from tests.support.drift_samples import HASHED, QUICK, START_MS, monitor, score, stream
from tests.support.redis import RedisServer
from tests.support.sample_rows import answer, by_column, lines
from tests.support.sample_rows import score as score_row
from tests.support.store import PASSWORD, StoreServer
from tests.support.wait import until_async

OTHER = uuid.UUID("00000000-0000-4000-8000-000000000002")


def of(store: StoreServer, redis: RedisServer | None = None) -> Settings:
    settings = store.settings("console")
    url = redis.url if redis else "redis://127.0.0.1:1/0"
    return settings.model_copy(update={"redis": RedisSettings.model_validate({"url": url})})


def put(store: StoreServer, *alerts: Alert) -> None:
    rows = [by_column(*alert_row(alert.model_dump_json().encode())[:2]) for alert in alerts]
    with connect(store.settings("writer").store) as writer:
        insert_json_rows(writer, "assay_base.alerts", lines(rows), len(rows))


async def test_the_list_has_one_line_for_each_episode_and_its_filters(empty_store: StoreServer) -> None:
    put(
        empty_store,
        *episode(),
        transition(1, AlertState.WARN, alert_id=OTHER, project="books", metric="answer_relevancy"),
    )
    async with console(of(empty_store)) as pages:
        every = (await pages.json("/alerts?state=all"))["rows"]["value"]["rows"]
        assert [(each["alert_id"], each["state"]) for each in every] == [
            (str(OTHER), "warn"),
            (str(EPISODE), "resolved"),
        ]
        found = (await pages.json("/alerts"))["rows"]["value"]["rows"]
        assert [each["alert_id"] for each in found] == [str(OTHER)]
        page = await pages.html("/alerts?state=all")
        assert missing(every, page, "effect", "at") == []
        for query, expected in (
            ("state=resolved", [str(EPISODE)]),
            ("state=all&project=books", [str(OTHER)]),
            ("kind=score_drift", [str(OTHER)]),
            ("kind=silence", []),
        ):
            rows = (await pages.json(f"/alerts?{query}"))["rows"]["value"]["rows"]
            assert [each["alert_id"] for each in rows] == expected, query
        assert "No episode matches" in await pages.html("/alerts?kind=silence")
        await pages.json("/alerts?kind=nonsense", 422)


async def test_a_level_that_an_operator_accepted_is_told_from_one_that_recovered(empty_store: StoreServer) -> None:
    now = datetime.now(UTC)
    said = "faithfulness of shop acknowledged by ana (new model): the baseline is now 0.310, learned from the samples since the change"
    put(
        empty_store,
        *episode(at=now),
        transition(4, AlertState.RESOLVED, alert_id=OTHER, project="shop", at=now, summary=said),
    )
    async with console(of(empty_store)) as pages:
        page = shown(await pages.html("/alerts?state=resolved&t=30d"))
        assert page.count("accepted by") == 1
        assert "accepted by ana (new model)" in page
        alone = shown(await pages.html(f"/alerts/{OTHER}"))
        assert "faithfulness of shop accepted as normal: the baseline is now 0.310, learned from the samples" in alone
        assert alone.index("the baseline is now 0.310") < alone.index("By ana (new model)"), "the comment may be long"
        assert "1 alert accepted as normal in 24 h" in shown(await pages.html("/"))
        assert "accepted as normal" not in shown(await pages.html("/?project=books"))


async def test_silence_is_told_from_health(empty_store: StoreServer, redis_server: RedisServer) -> None:
    async with console(of(empty_store, redis_server)) as pages:
        page = await pages.html("/alerts")
        assert "No alert is open" in page
        assert "The detector has not read a sample yet" in page
    async with console(of(empty_store)) as pages:
        assert "it is not known whether the detector runs" in await pages.html("/alerts")


async def test_one_episode_shows_its_samples_transitions_and_the_events_to_compare(empty_store: StoreServer) -> None:
    now = datetime.now(UTC)
    answers = [answer(number, project="shop", days_old=days) for number, days in enumerate((0.05, 0.06, 0.2, 0.21))]
    with connect(empty_store.settings("writer").store) as writer:
        insert_json_rows(writer, "assay_base.answers", lines(answers), len(answers))
        scores = [
            score_row(faithfulness=value, days_old=days, project="shop", fingerprint="1f2e3d4c")
            for value, days in ((0.5, 0.01), (0.6, 0.02), (0.9, 0.06), (0.95, 0.08))
        ]
        insert_json_rows(writer, "assay_base.scores", lines(scores), len(scores))
    put(empty_store, *episode(since=now - timedelta(hours=1), at=now)[:2])
    async with console(of(empty_store)) as pages:
        document, page = await pages.json(f"/alerts/{EPISODE}"), await pages.html(f"/alerts/{EPISODE}")
        assert [step["state"] for step in document["transitions"]] == ["warn", "critical"]
        assert {round(each["mean"], 2) for each in document["history"]["value"]["samples"]} >= {0.5, 0.6, 0.9}
        assert missing(document["transitions"], page) == []
        assert missing(document["history"]["value"]["samples"], page, "at_ms", "low", "high", "mean") == []
        assert "kind=answer" in document["events_during"]
        assert "/events?project=shop&amp;kind=answer&amp;from=" in page
        assert "against=before" in document["differs"]
        assert "/events/differs?project=shop&amp;kind=answer&amp;" in page
        assert document["acknowledge"] == f"assay drift acknowledge {EPISODE}"
        assert document["acknowledge"] in page  # without the operator's credentials there is no button
        assert "/acknowledge" not in page
        await pages.json(f"/alerts/{OTHER}", 404)
        await pages.json("/alerts/nonsense", 422)
        await pages.json(f"/alerts/{EPISODE}?project=books", 404)


async def test_a_store_that_is_away_is_said_on_the_page(empty_store: StoreServer) -> None:
    empty_store.kill()
    async with console(of(empty_store)) as pages:
        document, page = await pages.json("/alerts"), await pages.html("/alerts")
        assert document["rows"]["state"] == "unavailable"
        assert sentence(document["rows"]["message"].partition("; ")[0]) in page
        assert "No alert is open" not in page
        await pages.html(f"/alerts/{EPISODE}", 503)


def operator_of(store: StoreServer, redis: RedisServer, directory: Path) -> Settings:
    """The console's settings with the operator's file beside them."""
    file = directory / "secrets" / "operator.toml"
    file.parent.mkdir()
    file.write_text(
        f'[redis]\nurl = "{redis.url}"\n[store]\nurl = "{store.url}"\nuser = "operator"\npassword = "{PASSWORD}"\n'
        "[drift]\nday_minutes = 1.0\nlearning_samples = 100\nlearning_days = 2\nrun_length_days = 30\n"
    )
    settings = of(store, redis)
    return settings.model_copy(update={"console": settings.console.model_copy(update={"operator_config": file})})


@pytest.fixture
def alert(empty_store: StoreServer, redis_server: RedisServer) -> Alert:
    """An open episode, in the state of the detector and in the store."""
    watched = monitor(QUICK)
    for number, (at_ms, value) in enumerate(stream(days=6, per_day=80, drop_from=4, drop=0.3)):
        watched.observe_score(score(at_ms, value, number), at_ms)
    with redis_server.client() as client:
        for name, data in watched.changes().items():
            client.hset(drift_key(), name, data or b"")
    found = watched.take_alerts()
    put(empty_store, *found)
    return found[-1]


async def test_an_operator_acknowledges_an_episode_after_a_second_page(
    empty_store: StoreServer, redis_server: RedisServer, alert: Alert, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The console's own identity, which may not acknowledge, must not win over the operator's file.
    monkeypatch.setenv("ASSAY_REDIS_URL", "redis://console:wrong@127.0.0.1:1/0")
    settings = operator_of(empty_store, redis_server, tmp_path)
    async with console(settings) as pages:
        path = f"/alerts/{alert.alert_id}"
        assert f'href="{path}/acknowledge"' in await pages.html(path)
        asked = await pages.html(f"{path}/acknowledge")
        assert "This will accept the current level as the new baseline." in asked
        now = (await pages.json(path))["now"]
        assert now["n"] != alert.n, "samples came after the last transition"
        assert f"The level is {measured(now['value'], 'score')} now (n = {now['n']}) and was " in asked
        assert f'<form method="post" action="{path}/acknowledge"' in asked
        submitted = asyncio.create_task(pages.post(f"{path}/acknowledge", comment="new model"))
        async with AsyncRedis(port=redis_server.port) as client:
            service = ShardState(client, QUICK, 0, 1, HASHED)

            async def taken() -> bool:
                await service.tick(lambda _: None, START_MS)
                return submitted.done()

            await until_async(taken, "the console does not see that the drift service closed the episode")
        answered = await submitted
        assert answered.headers["location"] == path
        page = await pages.html(path)
        assert "Accepted:" in page
        assert f'href="{path}/acknowledge"' not in page, "it is closed, although the store does not have that yet"
        assert "critical</span>" not in page.partition('<dl class="stats">')[0]
        assert "Accepted:" not in await pages.html(path), "it is said once"
        await pages.html(f"{path}?done=taken", 422)
        again = await pages.post(f"{path}/acknowledge", 409, comment="")
        assert "closed already" in again.text
    with connect(empty_store.settings("operator").store) as store:
        [row] = list(store.query("SELECT * FROM operations").named_results())
    assert (row["operation"], row["actor"], row["through"], row["comment"]) == (
        "drift acknowledge", "ada", "console", "new model",
    )  # fmt: skip
    assert orjson.loads(row["target"])["alert_id"] == str(alert.alert_id)


@pytest.fixture
def incident(empty_store: StoreServer, redis_server: RedisServer) -> list[Alert]:
    """Two open episodes that began together, in the state of the detector and in the store."""
    watched = monitor(QUICK)
    for number, (at_ms, value) in enumerate(stream(days=6, per_day=80, drop_from=4, drop=0.3)):
        metrics = {"faithfulness": value, "citation_recall": value}
        watched.observe_score(score(at_ms, value, number, metrics=metrics), at_ms)
    with redis_server.client() as client:
        for name, data in watched.changes().items():
            client.hset(drift_key(), name, data or b"")
    found = watched.take_alerts()
    put(empty_store, *found)
    return list({each.alert_id: each for each in found}.values())


async def test_alerts_that_began_together_are_accepted_with_one_press(
    empty_store: StoreServer, redis_server: RedisServer, incident: list[Alert], tmp_path: Path
) -> None:
    ids = sorted(str(each.alert_id) for each in incident)
    assert len(ids) == 2
    async with console(operator_of(empty_store, redis_server, tmp_path)) as pages:
        listed = await pages.html("/alerts")
        (of,) = (await pages.json("/alerts"))["incidents"]
        first = of["episodes"][0]["alert_id"]
        assert sorted(each["alert_id"] for each in of["episodes"]) == ids
        assert f'href="/alerts/{first}/together"' in listed
        document, page = await pages.json(f"/alerts/{first}/together"), await pages.html(f"/alerts/{first}/together")
        assert missing(document["incident"]["episodes"], page, "effect", "low", "high", "n", "evidence", "at") == []
        assert all(f'name="episodes" value="{each}" aria-label' in page for each in ids), "none is chosen before"
        path = f"/alerts/{first}/together"
        await pages.post(path, 422, comment="none")
        await pages.post(path, 422, episodes="nonsense")
        closed = "00000000-0000-4000-8000-00000000000f"
        submitted = asyncio.create_task(pages.post(path, episodes=",".join([*ids, closed]), comment="new model"))
        async with AsyncRedis(port=redis_server.port) as client:
            service = ShardState(client, QUICK, 0, 1, HASHED)
            while not submitted.done():
                await service.tick(lambda _: None, START_MS)
                await asyncio.sleep(0.05)
        answered = await submitted
        assert answered.headers["location"] == "/alerts"
        assert "Accepted: the drift service has closed 2 alerts." in (told := await pages.html("/alerts"))
        assert "1 of the chosen were closed already." in told
        await pages.post(path, 409, episodes=",".join(ids))
    with connect(empty_store.settings("operator").store) as store:
        rows = list(store.query("SELECT * FROM operations").named_results())
    assert sorted(orjson.loads(row["target"])["alert_id"] for row in rows) == ids
    assert {(row["operation"], row["actor"], row["comment"]) for row in rows} == {
        ("drift acknowledge", "ada", "new model")
    }


async def test_others_than_operators_see_an_incident_and_the_commands(
    empty_store: StoreServer, redis_server: RedisServer, incident: list[Alert], tmp_path: Path
) -> None:
    async with console(operator_of(empty_store, redis_server, tmp_path), Role.LABELLER) as pages:
        first = incident[0].alert_id
        page = await pages.html(f"/alerts/{first}/together")
        assert " now, n = " in shown(page)
        assert all(f"assay drift acknowledge {each.alert_id}" in page for each in incident)
        assert "checkbox" not in page
        await pages.post(f"/alerts/{first}/together", 403, episodes=str(first))
        assert "No other open alert began together" in await pages.html(f"/alerts/{OTHER}/together")
    with redis_server.client() as client:
        assert client.hgetall(acknowledged_key()) == {}


async def test_a_resolved_episode_shows_the_level_it_was_raised_against(empty_store: StoreServer) -> None:
    opened, *_ = episode()
    over = transition(9, AlertState.RESOLVED, alert_id=EPISODE, baseline=0.123)
    put(empty_store, opened, over)
    async with console(of(empty_store)) as pages:
        document, page = await pages.json(f"/alerts/{EPISODE}"), await pages.html(f"/alerts/{EPISODE}")
        assert document["episode"]["baseline"] == 0.123
        assert document["baseline"] == opened.baseline
        assert f">{opened.baseline:.3f}<" in page
        assert ">0.123<" not in page


@pytest.mark.parametrize("role", [Role.VIEWER, Role.LABELLER])
async def test_others_than_operators_are_refused_and_see_the_command(
    empty_store: StoreServer, redis_server: RedisServer, alert: Alert, tmp_path: Path, role: Role
) -> None:
    async with console(operator_of(empty_store, redis_server, tmp_path), role) as pages:
        path = f"/alerts/{alert.alert_id}"
        assert f"assay drift acknowledge {alert.alert_id}" in await pages.html(path)
        await pages.html(f"{path}/acknowledge", 403)
        await pages.post(f"{path}/acknowledge", 403, comment="")
    with redis_server.client() as client:
        assert client.hgetall(acknowledged_key()) == {}


async def test_without_the_operators_file_nothing_is_acknowledged(
    empty_store: StoreServer, redis_server: RedisServer, alert: Alert
) -> None:
    async with console(of(empty_store, redis_server)) as pages:
        answered = await pages.post(f"/alerts/{alert.alert_id}/acknowledge", 403, comment="")
        assert f"assay drift acknowledge {alert.alert_id}" in answered.text
    with redis_server.client() as client:
        assert client.hgetall(acknowledged_key()) == {}


async def test_an_operators_file_that_cannot_be_read_is_named_without_its_content(
    empty_store: StoreServer, redis_server: RedisServer, alert: Alert, tmp_path: Path
) -> None:
    settings = operator_of(empty_store, redis_server, tmp_path)
    file = settings.console.operator_config
    assert file is not None
    file.unlink()
    async with console(settings) as pages:
        answered = await pages.post(f"/alerts/{alert.alert_id}/acknowledge", 503, comment="")
        assert "See console.operator_config." in answered.text
        assert PASSWORD not in answered.text
