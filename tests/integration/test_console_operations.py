"""Quality, failures, arrivals and health with a real store and a real Redis: full, empty, away, and another role."""

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import orjson
import pytest

from assay_console.people import Role
from assay_runtime.store import connect, insert_json_rows
from assay_schema.failures import GIVEN_UP
from assay_schema.settings import RedisSettings, Settings
from assay_schema.streams import DEAD, EVENTS, FIELD
from tests.support.console_pages import console, missing
from tests.support.redis import RedisServer
from tests.support.sample_rows import FINGERPRINT, answer, candidate, event_id_at, failure, iso, lines, score
from tests.support.store import StoreServer, refresh_rollups

SECRET = "the text that nobody may see"
#: The judge before that of `score`.
OLD = "00000000aaaaaaaa"
PATHS = ("/quality", "/failures", "/arrivals", "/health")


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    with server.client() as client:
        client.xgroup_create(EVENTS.key(), "writer", id="0", mkstream=True)
        client.xadd(EVENTS.key(), {FIELD: orjson.dumps(event("shop", "newcomer"))})
        client.xadd(EVENTS.key(), {FIELD: b"not an event"})
        client.xadd(DEAD.key(), {FIELD: SECRET, "stage": "writer"})
    yield server
    server.stop()


@pytest.fixture(scope="module")
def filled(migrated: StoreServer) -> StoreServer:
    """Three projects: `shop` is judged by two judges and lost events, `books` is only captured, `quiet` has nothing."""
    scores = [
        score(faithfulness=value, days_old=days, project="shop", fingerprint=judge)
        for days, value, judge in (
            (3, 0.9, OLD), (3, 0.8, OLD), (1, 0.7, FINGERPRINT), (1, 0.6, FINGERPRINT), (0, 0.5, FINGERPRINT),
            (0, 0.4, FINGERPRINT),
        )
    ]  # fmt: skip
    scores += [score(status="judge_error", project="shop"), score(status="skipped_budget", project="shop")]
    scores += [score(faithfulness=0.1, project="shop", base=False, boosts=["negative_feedback"])]
    scores += [score(status="not_sampled", project="books")]
    failures = [
        failure(1, project="shop"),
        failure(2, project="shop", stage="writer", reason="other", error_class=GIVEN_UP, detail="given up"),
        failure(3, project="shop", entry_id=None, reason="db_down", stage="writer", error_class="OSError", detail=""),
        failure(4, project="shop", detail='payload.contexts.17.text: <script>alert("x")</script>'),
    ]
    with connect(migrated.settings("writer").store) as writer:
        insert_json_rows(writer, "assay_base.scores", lines(scores), len(scores))
        insert_json_rows(writer, "assay_base.capture_failures", lines(failures), len(failures))
        insert_json_rows(writer, "assay_base.candidates", lines([candidate(1, project="books")]), 1)
        insert_json_rows(writer, "assay_base.answers", lines([answer(2, project="shop")]), 1)
    with connect(migrated.settings().store) as owner:
        refresh_rollups(owner)
    return migrated


def event(project: str, service: str) -> dict[str, str]:
    now_ms = int(time.time() * 1000)
    return {
        "kind": "answer", "event_id": event_id_at(now_ms), "project": project, "service": service,
        "occurred_at": iso(now_ms), "created_at": iso(now_ms), "query": SECRET,
    }  # fmt: skip


def of(store: StoreServer, redis: RedisServer | None = None) -> Settings:
    settings = store.settings("console")
    url = redis.url if redis else "redis://127.0.0.1:1/0"
    return settings.model_copy(update={"redis": RedisSettings.model_validate({"url": url})})


async def test_quality_shows_the_base_stream_by_day_and_judge(filled: StoreServer, redis: RedisServer) -> None:
    async with console(of(filled, redis)) as pages:
        document, page = await pages.json("/quality"), await pages.html("/quality")
        [row] = document["metrics"]["value"]
        days = row["of"]["days"]
        assert [round(each["mean"], 2) for each in days] == [0.85, 0.65, 0.45]
        assert [each["fingerprint"] for each in days] == [OLD, FINGERPRINT, FINGERPRINT]
        assert missing(days, page, "low", "high") == []
        assert page.count('class="break"') == 1
        assert "not calibrated" in page
        counts = {each["counts"]["project"]: each for each in document["judged"]["value"]}
        assert (counts["shop"]["counts"]["judge_error"], counts["shop"]["counts"]["skipped_budget"]) == (1, 1)
        assert missing(document["judged"], page) == []
        other = await pages.json("/quality?project=books")
        assert other["metrics"]["value"] == []
        assert "sampled none" in other["why"]
        assert "sampled none" in await pages.html("/quality?project=books")


async def test_quality_shows_how_far_the_judge_is_calibrated(empty_store: StoreServer, redis: RedisServer) -> None:
    rows = [score(faithfulness=value, project="shop", days_old=0) for value in (0.9, 0.2, 0.95, 0.8)]
    calibration = {
        "calibration_id": str(uuid4()), "calibrated_at": iso(int(time.time() * 1000)), "project": "shop",
        "metric": "faithfulness", "fingerprint": FINGERPRINT, "threshold": 0.5, "labels": 200, "true_positives": 100,
        "false_negatives": 10, "false_positives": 20, "true_negatives": 70, "kappa": 0.71, "tpr": 0.91, "tpr_low": 0.8,
        "tpr_high": 0.95, "tnr": 0.78, "tnr_low": 0.7, "tnr_high": 0.85, "rectifier": -0.05, "rectifier_variance": 0.14,
        "pages": True,
    }  # fmt: skip
    with connect(empty_store.settings("writer").store) as writer:
        insert_json_rows(writer, "assay_base.scores", lines(rows), len(rows))
    with connect(empty_store.settings().store) as owner:
        insert_json_rows(owner, "assay_base.calibrations", lines([calibration]), 1)
    async with console(of(empty_store, redis)) as pages:
        document, page = await pages.json("/quality"), await pages.html("/quality")
        assert "calibrated: kappa 0.71, n 200" in page
        [day] = document["metrics"]["value"][0]["of"]["days"]
        assert (round(day["raw_rate"], 3), round(day["ppi_rate"], 3)) == (0.75, 0.7)
        assert "70.0" in page


async def test_failures_are_grouped_and_their_totals_are_those_of_the_rows(
    filled: StoreServer, redis: RedisServer
) -> None:
    async with console(of(filled, redis)) as pages:
        document, page = await pages.json("/failures"), await pages.html("/failures")
        found = document["found"]["value"]
        assert (found["lost"], found["recovered"], found["incidents"]) == (3, 0, 1)
        assert {each["rule"] for each in found["groups"]} >= {"payload.query: too long", "given up"}
        assert [each["dead"] for each in found["groups"] if each["rule"] == "given up"] == [True]
        assert missing(found["groups"], page) == []
        assert '<script>alert("x")' not in page
        assert document["letters"] == 1
        assert "assay dead requeue --all --dry-run" in page
        assert SECRET not in page
        only = await pages.json("/failures?reason=other&stage=writer")
        assert [each["rule"] for each in only["found"]["value"]["groups"]] == ["given up"]
        assert only["requeue"] == "assay dead requeue --reason other --stage writer --dry-run"
        assert "No event was lost in 24 h" in await pages.html("/failures?project=books")
        await pages.json("/failures?reason=nonsense", 422)


async def test_arrivals_show_each_step_and_what_waits_in_the_log(filled: StoreServer, redis: RedisServer) -> None:
    async with console(of(filled, redis)) as pages:
        document, page = await pages.json("/arrivals?project=shop"), await pages.html("/arrivals?project=shop")
        rows = {each["arrival"]["service"]: each for each in document["events"]["value"]}
        assert rows["newcomer"]["to_store_ms"] is None
        assert rows["search"]["to_store_ms"] is not None
        assert "in the log, not stored yet" in page
        assert SECRET not in page
        assert document["state"] == "warn"
        assert {each["rule"] for each in document["refused"]["value"]["groups"]} >= {"payload.query: too long"}
        assert not document["quiet"]
        assert "Is capture on?" not in page
        stored = await pages.json("/arrivals?project=books")
        assert stored["state"] == "good"
        assert "Events arrive" in stored["sentence"]


async def test_arrivals_of_nobody_show_the_checklist_and_the_settings(filled: StoreServer, redis: RedisServer) -> None:
    async with console(of(filled, redis)) as pages:
        document = await pages.json("/arrivals?project=quiet&service=ghost")
        page = await pages.html("/arrivals?project=quiet&service=ghost")
        assert document["sentence"] == "Waiting for the first event."
        for question in ("Is capture on?", "Is the address right?", "Is the password right?", "Does it spool?"):
            assert question in page
        assert "redis://producer:PASSWORD@127.0.0.1" in page
        assert "assay doctor" in page


async def test_health_checks_redis_and_the_store_with_the_consoles_rights(
    filled: StoreServer, redis: RedisServer
) -> None:
    async with console(of(filled, redis)) as pages:
        document, page = await pages.json("/health"), await pages.html("/health")
        store = {each["check"]: each for each in document["store"]["value"]}
        assert store["schema"]["status"] == "ok"
        assert store["failures in 24 h"]["status"] == "warn"
        refused = [each for each in store.values() if "ot enough privileges" in each["summary"]]
        assert refused == []
        streams = {each["check"]: each for each in document["redis"]["value"]}
        assert streams["stream dead"]["status"] == "warn"
        for each in (*store.values(), *streams.values()):
            assert each["check"] in page
        assert "assay doctor" in page


async def test_an_empty_system_says_why_on_every_page(empty_store: StoreServer, redis_server: RedisServer) -> None:
    words = {
        "/quality": "No answer of this time was seen by the judge",
        "/failures": "No event was lost",
        "/arrivals": "Is capture on?",
        "/health": "checks",
    }
    async with console(of(empty_store, redis_server)) as pages:
        for path in PATHS:
            assert words[path] in await pages.html(path), path


async def test_a_redis_that_is_away_leaves_what_the_store_knows(filled: StoreServer) -> None:
    async with console(of(filled)) as pages:
        for path in PATHS:
            assert "Redis does not answer" in await pages.html(path), path
        assert len((await pages.json("/quality"))["metrics"]["value"]) == 1
        assert (await pages.json("/failures"))["found"]["value"]["lost"] == 3


async def test_a_store_that_is_away_is_said_and_nothing_is_called_fine(tmp_path: Path, redis: RedisServer) -> None:
    nowhere = StoreServer(tmp_path / "nowhere")
    async with console(of(nowhere, redis)) as pages:
        for path in PATHS:
            page = await pages.html(path)
            assert "no answer at" in page, path
            assert "No event was lost" not in page, path
        assert (await pages.json("/health"))["state"] == "bad"


async def test_a_viewer_reads_every_page(filled: StoreServer, redis: RedisServer) -> None:
    async with console(of(filled, redis), Role.VIEWER) as pages:
        for path in PATHS:
            await pages.html(path)


async def test_pages_link_to_grafana_where_it_is_configured(filled: StoreServer, redis: RedisServer) -> None:
    plain = of(filled, redis)
    told = plain.console.model_copy(update={"grafana_url": "https://grafana.example/sub/"})
    async with console(plain.model_copy(update={"console": told})) as pages:
        at = "from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"
        for path, dashboard in (("/quality", "assay-quality"), ("/alerts", "assay-quality"), ("/failures", "assay")):
            link = f'href="https://grafana.example/sub/d/{dashboard}?from=1767225600000&amp;to=1767312000000"'
            assert link in await pages.html(f"{path}?{at}"), path
    async with console(plain) as pages:
        assert ">Grafana<" not in await pages.html("/quality")
