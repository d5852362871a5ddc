"""`assay drift` as people run it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.asyncio import Redis as AsyncRedis

from assay_drift.app import READERS, handlers
from assay_drift.state import GROUP, ShardState
from assay_operations.actor import local_actor
from assay_runtime.entries import Entry
from assay_schema.streams import ALERTS, FIELD, SCORES, acknowledged_key, drift_key
from assay_schema.validation import parse_alert
from tests.support.cli import Cli
from tests.support.drift_samples import HASHED, QUICK, START_MS, monitor, score, stream
from tests.support.redis import RedisServer

UNKNOWN = "328109b8-aa49-5cf2-a749-61f386a42261"
DROP = {"days": 6, "per_day": 80, "drop_from": 4, "drop": 0.3}
EXTRA = "[drift]\nday_minutes = 1.0\nlearning_samples = 100\nlearning_days = 2\nrun_length_days = 30\n"


@pytest.fixture
def state(redis_server: RedisServer) -> Iterator["redis.Redis[bytes]"]:
    watched = monitor(QUICK)
    for number, (at_ms, value) in enumerate(stream(**DROP)):
        watched.observe_score(score(at_ms, value, number), at_ms)
    with redis_server.client() as client:
        for name, data in watched.changes().items():
            client.hset(drift_key(), name, data or b"")
        for alert in watched.take_alerts():
            client.xadd(ALERTS.key(), {FIELD: alert.model_dump_json()})
        yield client


def test_status_shows_what_is_watched_and_exits_1_while_an_episode_is_open(
    redis_server: RedisServer, state: "redis.Redis[bytes]", tmp_path: Path
) -> None:
    cli = Cli(tmp_path, redis_url=redis_server.url)
    found = cli.run("drift", "status", "--json", role="sre", extra=EXTRA)
    assert found.returncode == 1, found.stderr
    [row] = [row for line in found.stdout.splitlines() if (row := json.loads(line))["metric"] == "faithfulness"]
    assert (row["project"], row["metric"], row["state"]) == ("acme", "faithfulness", "critical")
    assert row["evidence"] > 1
    assert "CRITICAL" in cli.call("drift", "status", role="sre", extra=EXTRA).stdout.decode()
    state.delete(drift_key())
    empty = cli.call("drift", "status", role="sre", extra=EXTRA)
    assert (empty.returncode, empty.stdout) == (0, b"")


async def test_acknowledge_closes_the_episode_when_the_service_takes_note(
    redis_server: RedisServer, state: "redis.Redis[bytes]", tmp_path: Path
) -> None:
    alert = parse_alert(state.xrevrange(ALERTS.key(), count=1)[0][1][FIELD.encode()])
    cli = Cli(tmp_path, redis_url=redis_server.url)
    asked = asyncio.create_task(
        asyncio.to_thread(
            cli.run,
            "drift",
            "acknowledge",
            str(alert.alert_id),
            "--yes",
            "--comment",
            "new model",
            role="operator",
            extra=EXTRA,
        )
    )
    async with AsyncRedis(port=redis_server.port) as client:
        service = ShardState(client, QUICK, 0, 1, HASHED)
        while not asked.done():
            await service.tick(lambda _: None, START_MS)
            await asyncio.sleep(0.05)
    found = await asked
    assert found.stdout.decode().strip() == f"acknowledged {alert.alert_id}", found.stderr
    last = parse_alert(state.xrevrange(ALERTS.key(), count=1)[0][1][FIELD.encode()])
    assert (last.alert_id, last.state.value, last.sequence) == (alert.alert_id, "resolved", alert.sequence + 1)
    assert f"acknowledged by {local_actor().name} (new model): the baseline is now" in last.summary
    again = cli.run("drift", "acknowledge", str(alert.alert_id), "--yes", role="operator", extra=EXTRA)
    assert (again.returncode, again.stdout) == (2, b"")
    assert b"is closed already" in again.stderr


def test_acknowledging_an_unknown_episode_fails_and_records_nothing(
    redis_server: RedisServer, state: "redis.Redis[bytes]", tmp_path: Path
) -> None:
    cli = Cli(tmp_path, redis_url=redis_server.url)
    found = cli.call("drift", "acknowledge", UNKNOWN, "--yes", role="operator", extra=EXTRA)
    assert found.returncode == 2
    assert f"no open episode {UNKNOWN} can be acknowledged".encode() in found.stderr
    assert state.hgetall(acknowledged_key()) == {}
    assert not (tmp_path / "data" / "audit").exists()


def test_acknowledging_without_a_terminal_needs_yes(
    redis_server: RedisServer, state: "redis.Redis[bytes]", tmp_path: Path
) -> None:
    alert = parse_alert(state.xrevrange(ALERTS.key(), count=1)[0][1][FIELD.encode()])
    cli = Cli(tmp_path, redis_url=redis_server.url)
    found = cli.call("drift", "acknowledge", str(alert.alert_id), role="operator", extra=EXTRA)
    assert found.returncode == 2
    assert b"nothing was acknowledged; pass --yes to confirm" in found.stderr
    assert state.hgetall(acknowledged_key()) == {}


def test_what_is_no_alert_id_is_refused(tmp_path: Path) -> None:
    found = Cli(tmp_path).call("drift", "acknowledge", "faithfulness", role="operator")
    assert found.returncode == 2
    assert b"is not an alert id" in found.stderr


def test_a_simulated_drop_is_drawn_and_dated(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    found = cli.call(
        "drift", "simulate", "--days", "40", "--at-day", "33", "--drop", "0.2", "--svg", "drop.svg", role="sre"
    )
    assert found.returncode == 0, found.stderr
    assert "critical on day 33" in found.stdout.decode()
    assert (tmp_path / "drop.svg").read_text().startswith("<svg ")
    assert cli.call("drift", "simulate", "--mean", "2", role="sre").returncode == 2


def test_entries_of_every_stream_are_read_by_the_service() -> None:
    assert set(READERS) == set(handlers(lambda: 0.0))
    assert READERS[SCORES][1](Entry("1-1", b"{}")).failure is not None
    assert GROUP in SCORES.groups
