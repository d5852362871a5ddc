"""The page of arrivals on what never reaches the log: a real gateway, a real Redis with users, and a real store."""

import time
from collections.abc import Iterator

import pytest
import redis

from assay_runtime.store import connect, insert_json_rows
from assay_schema.settings import RedisSettings, Settings
from tests.support.console_pages import console, shown
from tests.support.gateway import Gateway, event, running_gateway
from tests.support.ports import free_port
from tests.support.sample_rows import answer, failure, iso, lines
from tests.support.store import StoreServer

SECRET = "jane.doe@example.com"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


def of(store: StoreServer, gateway: Gateway, *, port: int | None = None, host: str = "127.0.0.1") -> Settings:
    """Return the console's settings: it has only the rights of its own Redis user."""
    settings = store.settings("console")
    url = f"redis://console:console-password@127.0.0.1:{gateway.redis.port}/0"
    at = settings.gateway.model_copy(update={"port": port or gateway.health_port})
    telemetry = settings.telemetry.model_copy(update={"host": host})
    return settings.model_copy(
        update={"redis": RedisSettings.model_validate({"url": url}), "gateway": at, "telemetry": telemetry}
    )


async def test_what_the_gateway_and_redis_refused_is_shown_and_nothing_is_green(
    empty_store: StoreServer, gateway: Gateway
) -> None:
    key = gateway.key()
    refused = [
        gateway.post([event()], "assay_ingest_nosuchkey_0000"),
        gateway.post([event(project="books")], key),
        gateway.post([event(kind=SECRET)], key),
        gateway.post(b"{", key),
    ]
    assert [each.status for each in refused] == [401, 400, 400, 400]
    with redis.Redis(port=gateway.redis.port, username="producer", password=SECRET) as producer:
        for _ in range(2):
            with pytest.raises(redis.AuthenticationError):
                producer.ping()
    async with console(of(empty_store, gateway)) as pages:
        document = await pages.json("/arrivals?project=shop&service=search")
        page = await pages.html("/arrivals?project=shop&service=search")
        assert {each["rose_s"] for each in document["outside"]["found"]} == {None}, "it was looked at once"
        gateway.post([event()], "assay_ingest_nosuchkey_0000")

        refusals = (await pages.json("/arrivals"))["outside"]["found"]
        assert [each["of"]["reason"] for each in refusals if each["rose_s"] == 0] == ["401"]
        assert "more are being refused now" in await pages.html("/arrivals")
    counted = [(each["of"], each["of"]["count"]) for each in document["outside"]["found"]]
    found = {(each["what"], each["path"], each["reason"]): count for each, count in counted}
    assert found["request", "/v1/events", "401"] == 1
    assert found["request", "/v1/events", "400"] == 3
    assert found["event", "", "project_forbidden"] == 1
    assert sum(count for (what, _, _), count in found.items() if what == "event") >= 2
    assert found["login", "", "WRONGPASS"] >= 2
    assert document["sentence"].startswith(
        "Waiting for the first event. Since they started, the gateway and Redis refused "
    )
    assert 'class="badge good"' not in page
    text = shown(page)
    assert "Refused by the gateway or by Redis" in text
    assert "project_forbidden" in text
    assert "request to /v1/events 401 1 – no key, or a key that is wrong" in text
    assert "login to Redis WRONGPASS" in text
    assert SECRET not in page
    assert SECRET not in str(document)


async def test_a_gateway_that_is_away_or_elsewhere_is_said_and_nothing_is_called_fine(
    empty_store: StoreServer, gateway: Gateway
) -> None:
    away = free_port()
    async with console(of(empty_store, gateway, port=away)) as pages:
        assert f"No gateway runs on this host (port {away})" in await pages.html("/arrivals")
    async with console(of(empty_store, gateway, port=gateway.port)) as pages:
        assert "Another program answers" in await pages.html("/arrivals")
    async with console(of(empty_store, gateway, host="0.0.0.0")) as pages:  # noqa: S104 - the address of a container
        page = await pages.html("/arrivals")
        assert "The gateway runs elsewhere" in page
        assert 'class="badge good"' not in page


async def test_refusals_and_a_clock_that_is_ahead_are_named_without_naming_a_service(
    empty_store: StoreServer, gateway: Gateway
) -> None:
    now_ms = int(time.time() * 1000)
    fine = [answer(number, project="shop", service="fine") for number in range(20)]
    for number, row in enumerate(fine):
        row |= {"created_at": iso(now_ms - number), "occurred_at": iso(now_ms - number - 20), "stored_at": iso(now_ms)}
    ahead = answer(30, project="shop", service="shop-clock") | {
        "created_at": iso(now_ms), "occurred_at": iso(now_ms + 3_599_984), "stored_at": iso(now_ms),
    }  # fmt: skip
    lost = [failure(number, project="shop", service="shop-schema") for number in range(8)]
    with connect(empty_store.settings("writer").store) as writer:
        insert_json_rows(writer, "assay_base.answers", lines([*fine, ahead]), 21)
        insert_json_rows(writer, "assay_base.capture_failures", lines(lost), 8)
    async with console(of(empty_store, gateway)) as pages:
        document, page = await pages.json("/arrivals"), await pages.html("/arrivals")
    assert document["state"] == "warn"
    assert document["sentence"].startswith("Events arrive; 8 were refused or lost in 24 h (shop-schema): ")
    assert document["clock"] == "The clock of shop-clock is 1 h ahead of Redis's: set it by NTP."
    text = shown(page)
    assert "1 h 00 min ahead" in text
    assert "3,599,98" not in text
    assert page.index("Refused or lost in 24 hours") < page.index("Newest events, step by step")
