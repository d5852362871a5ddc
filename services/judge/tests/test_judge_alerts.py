"""The judge's own alerts: each begins once and ends once, whatever is restarted and however many judges say so."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from assay_judge.alerts import AlertPublisher
from assay_runtime.connection import Client, connect
from assay_schema.alerts import Alert
from assay_schema.settings import JudgeSettings, RedisSettings
from assay_schema.streams import ALERTS
from tests.support.redis import RedisServer

pytestmark = pytest.mark.one_day


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[Client]:
    client = connect(RedisSettings.model_validate({"url": redis_server.url}))
    yield client
    await client.aclose()


def publisher(client: Client) -> AlertPublisher:
    """The publisher of one life of one judge."""
    return AlertPublisher(client, 1, "f" * 16, JudgeSettings(budget_usd_per_day=5.0))


async def alerts(client: Client) -> list[Alert]:
    return [Alert.model_validate_json(fields[b"data"]) for _, fields in await client.xrange(ALERTS.key())]


async def test_a_used_up_budget_is_over_with_the_first_money_of_another_day(client: Client) -> None:
    for _ in range(2):
        await publisher(client).budget("acme", used_up=True)
        await publisher(client).budget("acme", used_up=False)  # what was given back today ends nothing
    (opened,) = await alerts(client)
    yesterday = datetime.now(UTC) - timedelta(days=1)
    (episode,) = [key async for key in client.scan_iter("*:judge:episode:*")]
    await client.set(episode, yesterday.isoformat())
    for _ in range(2):
        await publisher(client).budget("acme", used_up=False)
    _, over = await alerts(client)
    assert (opened.kind.value, opened.state.value, opened.value) == ("budget", "warn", 5.0)
    assert (over.kind.value, over.state.value, over.sequence, over.since) == ("budget", "resolved", 2, yesterday)


async def test_each_stop_of_judging_is_an_episode_of_its_own(client: Client) -> None:
    for _ in range(2):
        for why in ("AuthenticationError: the key is refused", ""):
            for judge in (publisher(client), publisher(client)):
                await judge.stopped(why)
    found = await alerts(client)
    assert [alert.state.value for alert in found] == ["critical", "resolved", "critical", "resolved"]
    assert len({alert.alert_id for alert in found}) == 2
    assert len({alert.transition_id for alert in found}) == 4
