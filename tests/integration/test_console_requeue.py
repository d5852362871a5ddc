"""Requeue from the console, with a real store and a real Redis: counted first, then done once, and recorded."""

from pathlib import Path

import pytest

from assay_console.people import Role
from assay_runtime.store import connect
from assay_schema.settings import RedisSettings, Settings
from assay_schema.streams import CAPTURE, DEAD, FIELD, SCORES
from tests.support.console_pages import console, missing
from tests.support.redis import RedisServer
from tests.support.store import PASSWORD, StoreServer

RAW = b'{"query": "the account of jane.doe@example.com"}'


def bury(redis: RedisServer, data: bytes, stream: str = CAPTURE.key(), **told: str) -> None:
    given = {
        "stream": stream,
        "entry_id": "1-0",
        "stage": "scrubber",
        "reason": "other",
        "error_class": "TooManyDeliveries",
    }
    with redis.client() as client:
        client.xadd(DEAD.key(), {FIELD: data, **(given | told)})


def count(redis: RedisServer, key: str) -> int:
    with redis.client() as client:
        return int(client.xlen(key))


@pytest.fixture
def settings(migrated: StoreServer, redis_server: RedisServer, tmp_path: Path) -> Settings:
    """The console's settings, with the operator's file."""
    file = tmp_path / "secrets" / "operator.toml"
    file.parent.mkdir()
    file.write_text(
        f'[redis]\nurl = "{redis_server.url}"\n[store]\nurl = "{migrated.url}"\nuser = "operator"\npassword = "{PASSWORD}"\n'
    )
    own = migrated.settings("console")
    return own.model_copy(
        update={
            "redis": RedisSettings.model_validate({"url": redis_server.url}),
            "console": own.console.model_copy(update={"operator_config": file}),
        }
    )


async def test_letters_are_counted_first_and_requeued_as_many_as_were_shown(
    migrated: StoreServer, redis_server: RedisServer, settings: Settings
) -> None:
    for _ in range(3):
        bury(redis_server, RAW)
    bury(redis_server, RAW, SCORES.key())
    bury(redis_server, RAW, reason="db_down", stage="writer")
    async with console(settings) as pages:
        path = "/failures/requeue?reason=other"
        assert "/failures/requeue" in await pages.html("/failures")
        document, page = await pages.json(path), await pages.html(path)
        assert (document["letters"], document["streams"], document["unfit_count"]) == (3, {"capture": 3}, 1)
        assert missing({name: document[name] for name in ("letters", "streams", "unfit_count")}, page) == []
        assert "jane.doe" not in page
        assert count(redis_server, CAPTURE.key()) == 0
        bury(redis_server, RAW)
        seen = document["digest"]
        assert f'value="{seen}"' in page
        changed = await pages.post("/failures/requeue", 409, reason="other", stage="", expected=seen, comment="")
        assert "there are 4 now" in changed.text
        assert count(redis_server, CAPTURE.key()) == 0
        seen = (await pages.json(path))["digest"]
        done = await pages.post("/failures/requeue", reason="other", stage="", expected=seen, comment="disk mended")
        assert done.headers["location"] == path
        assert "4 dead letters were requeued" in await pages.html(path)
        assert "were requeued" not in await pages.html(path), "it is said once"
        await pages.html(f"{path}&done=9000", 422)
    assert (count(redis_server, CAPTURE.key()), count(redis_server, DEAD.key())) == (4, 2)
    with connect(migrated.settings("operator").store) as store:
        [row] = [
            row for row in store.query("SELECT * FROM operations").named_results() if row["operation"] == "dead requeue"
        ]
    assert (row["actor"], row["through"], row["comment"], row["changed"]) == ("ada", "console", "disk mended", 4)


async def test_other_letters_than_those_shown_are_not_requeued_though_they_are_as_many(
    redis_server: RedisServer, settings: Settings
) -> None:
    for _ in range(2):
        bury(redis_server, RAW)
    async with console(settings) as pages:
        seen = (await pages.json("/failures/requeue"))["digest"]
        with redis_server.client() as client:
            [(first, _)] = client.xrange(DEAD.key(), count=1)
            client.xdel(DEAD.key(), first)
        bury(redis_server, RAW)
        assert (await pages.json("/failures/requeue"))["letters"] == 2
        for forged in (seen, "2", ""):
            await pages.post("/failures/requeue", 409, reason="", stage="", expected=forged, comment="")
    assert (count(redis_server, CAPTURE.key()), count(redis_server, DEAD.key())) == (0, 2)


async def test_without_dead_letters_the_page_says_so(settings: Settings) -> None:
    async with console(settings) as pages:
        assert "No dead letter can be requeued." in await pages.html("/failures/requeue")


@pytest.mark.parametrize("role", [Role.VIEWER, Role.LABELLER])
async def test_only_operators_may_requeue(redis_server: RedisServer, settings: Settings, role: Role) -> None:
    bury(redis_server, RAW)
    async with console(settings, role) as pages:
        await pages.html("/failures/requeue", 403)
        await pages.post("/failures/requeue", 403, reason="", stage="", expected="1", comment="")
        assert "/failures/requeue" not in await pages.html("/failures")
    assert count(redis_server, DEAD.key()) == 1


async def test_without_the_operators_file_the_command_is_shown(redis_server: RedisServer, settings: Settings) -> None:
    bury(redis_server, RAW)
    without = settings.model_copy(update={"console": settings.console.model_copy(update={"operator_config": None})})
    async with console(without) as pages:
        assert "assay dead requeue --all --dry-run" in await pages.html("/failures/requeue")
        await pages.post("/failures/requeue", 403, reason="", stage="", expected="1", comment="")
    assert count(redis_server, DEAD.key()) == 1


async def test_letters_are_dropped_after_their_number_is_typed(
    migrated: StoreServer, redis_server: RedisServer, settings: Settings
) -> None:
    for _ in range(3):
        bury(redis_server, RAW)
    bury(redis_server, RAW, reason="db_down", stage="writer")
    async with console(settings) as pages:
        path = "/failures/drop?reason=other"
        assert 'href="/failures/drop"' in await pages.html("/failures")
        document, page = await pages.json(path), await pages.html(path)
        assert document["letters"] == 3
        assert document["tally"] in page
        assert missing(document, page) == []
        assert "jane.doe" not in page
        form = {"reason": "other", "stage": "", "expected": document["digest"], "comment": "too old"}
        refused = await pages.post("/failures/drop", 422, **form, typed="2")
        assert "Not saved: type 3 to delete the dead letters" in refused.text
        assert 'value="too old"' in refused.text
        bury(redis_server, RAW)
        changed = await pages.post("/failures/drop", 409, **form, typed="3")
        assert "the dead letters have changed: there are 4 now" in changed.text
        assert count(redis_server, DEAD.key()) == 5
        form["expected"] = (await pages.json(path))["digest"]
        done = await pages.post("/failures/drop", **form, typed="4")
        assert done.headers["location"] == "/failures?reason=other"
        assert "Deleted: 4 dead letters." in await pages.html(done.headers["location"])
        assert "There is no dead letter with this filter." in await pages.html(path)
    assert (count(redis_server, CAPTURE.key()), count(redis_server, DEAD.key())) == (0, 1)
    with connect(migrated.settings("operator").store) as store:
        rows = [
            row for row in store.query("SELECT * FROM operations").named_results() if row["operation"] == "dead drop"
        ]
    assert [(row["actor"], row["through"], row["comment"], row["changed"]) for row in rows] == [
        ("ada", "console", "too old", 4)
    ]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.LABELLER])
async def test_only_operators_may_drop(redis_server: RedisServer, settings: Settings, role: Role) -> None:
    bury(redis_server, RAW)
    async with console(settings, role) as pages:
        await pages.html("/failures/drop", 403)
        await pages.post("/failures/drop", 403, reason="", stage="", typed="1", comment="")
        assert "/failures/drop" not in await pages.html("/failures")
    without = settings.model_copy(update={"console": settings.console.model_copy(update={"operator_config": None})})
    async with console(without) as pages:
        assert "assay dead drop --all --dry-run" in await pages.html("/failures/drop")
        await pages.post("/failures/drop", 403, reason="", stage="", typed="1", comment="")
    assert count(redis_server, DEAD.key()) == 1
