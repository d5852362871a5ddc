"""The drift service on a real Redis: one transition is published once, whatever is killed, redelivered or run twice."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from redis.asyncio import Redis as AsyncRedis

from assay_drift.app import READERS, handlers
from assay_drift.state import GROUP, ShardState
from assay_runtime.entries import Entry
from assay_runtime.same_redis import redis_here
from assay_schema.alerts import Alert, AlertKind, AlertState
from assay_schema.settings import DriftSettings
from assay_schema.streams import ALERTS, FIELD, SCORES, acknowledged_key, drift_key
from assay_schema.validation import parse_alert
from tests.support.drift_samples import HASHED, QUICK, START_MS, monitor, score, stream
from tests.support.redis import RedisServer

#: An episode with all of its states, in few samples.
SETTINGS = QUICK.model_copy(update={"clean_evaluations": 4, "critical_samples": 10, "silence_ratio": 0.01})
EPISODE = {"days": 8, "per_day": 60, "drop_from": 4, "drop": 0.3, "back_at": 5}
DEADLINE_S = 240


def documents() -> list[str]:
    return [score(at, value, number).model_dump_json() for number, (at, value) in enumerate(stream(**EPISODE))]


def good_days() -> Iterator[str]:
    """Scores after those of `documents`, as good as the first of them were, and as far apart."""
    points = list(stream(**EPISODE))
    (before, _), (last, _) = points[-2:]
    for number in itertools.count(len(points)):
        value = points[number % 100][1]
        yield score(last + (number - len(points) + 1) * (last - before), value, number).model_dump_json()


def undisturbed() -> list[Alert]:
    watched = monitor(SETTINGS)
    for number, (at_ms, value) in enumerate(stream(**EPISODE)):
        watched.observe_score(score(at_ms, value, number), at_ms)
    return watched.take_alerts()


def published(client: "redis.Redis[bytes]") -> list[Alert]:
    return [parse_alert(fields[FIELD.encode()]) for _, fields in client.xrange(ALERTS.key())]


class Replica:
    """A drift service without its process: it reads, and may die between any two steps."""

    def __init__(self, client: "AsyncRedis[bytes]", name: str) -> None:
        self.client, self.name = client, name
        self.start()

    def start(self) -> None:
        self.state = ShardState(self.client, SETTINGS, 0, 1, HASHED)

    async def take(self, count: int, *, again: bool = False) -> list[Entry]:
        reader = f"{self.name}" if not again else "*"
        if again:  # what somebody read and did not finish
            _, found, *_ = await self.client.xautoclaim(SCORES.key(), GROUP, reader, 0, "0", count=count)
        else:
            answer = await self.client.xreadgroup(GROUP, reader, {SCORES.key(): ">"}, count=count)
            found = answer[0][1] if answer else []
        return [Entry(entry_id.decode(), fields[FIELD.encode()]) for entry_id, fields in found]

    async def finish(self, entries: Sequence[Entry]) -> int:
        outcomes = [READERS[SCORES][1](entry) for entry in entries]
        return await self.state.finish(
            SCORES, outcomes, await redis_here(self.client), handlers(lambda: START_MS)[SCORES]
        )


@pytest.fixture
def scores(redis_server: RedisServer) -> Iterator["redis.Redis[bytes]"]:
    with redis_server.client() as client:
        client.xgroup_create(SCORES.key(), GROUP, id="0", mkstream=True)
        for document in documents():
            client.xadd(SCORES.key(), {FIELD: document})
        yield client


async def test_one_replica_publishes_exactly_the_transitions_of_the_samples(
    redis_server: RedisServer, scores: "redis.Redis[bytes]"
) -> None:
    async with AsyncRedis(port=redis_server.port) as client:
        replica = Replica(client, "one")
        while entries := await replica.take(37):
            assert await replica.finish(entries) == len(entries)
    assert published(scores) == undisturbed()
    assert scores.xpending(SCORES.key(), GROUP)["pending"] == 0


async def test_a_death_after_every_step_and_every_redelivery_change_nothing(
    redis_server: RedisServer, scores: "redis.Redis[bytes]"
) -> None:
    async with AsyncRedis(port=redis_server.port) as client:
        for document in documents()[::7]:  # a judge that was killed published these twice
            scores.xadd(SCORES.key(), {FIELD: document})
        replica = Replica(client, "one")
        for round_ in itertools.count():
            entries = await replica.take(20)
            if not entries:
                break
            if round_ % 2:
                replica.start()  # died after reading: memory is lost, the entries come again
                entries = await replica.take(20, again=True)
            await replica.finish(entries)
            assert await replica.finish(entries) == 0, "the answer was lost, so it tries again"
            replica.start()  # died after the script
    assert published(scores) == undisturbed()


async def test_two_replicas_that_work_on_the_same_entries_at_the_same_time_publish_once(
    redis_server: RedisServer, scores: "redis.Redis[bytes]"
) -> None:
    async with AsyncRedis(port=redis_server.port) as client:
        first, second = Replica(client, "one"), Replica(client, "two")
        while entries := await first.take(25):
            finished = await asyncio.gather(first.finish(entries), second.finish(entries))
            assert sum(finished) == len(entries)
    assert published(scores) == undisturbed()


async def test_an_acknowledgement_closes_the_episode_once_whoever_sees_it(
    redis_server: RedisServer, scores: "redis.Redis[bytes]"
) -> None:
    async with AsyncRedis(port=redis_server.port) as client:
        first, second = Replica(client, "one"), Replica(client, "two")
        while not any(alert.state is AlertState.CRITICAL for alert in published(scores)):
            await first.finish(await first.take(10))
        alert = published(scores)[-1]
        scores.hset(acknowledged_key(), str(alert.alert_id), "now")
        await asyncio.gather(*(each.state.tick(lambda _: None, START_MS) for each in (first, second)))
        assert [each.state for each in published(scores)][-1] is AlertState.RESOLVED
        assert len({each.transition_id for each in published(scores)}) == len(published(scores))
        assert scores.hgetall(acknowledged_key()) == {}


async def test_an_entry_that_is_no_score_is_recorded_and_blocks_nothing(redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        client.xgroup_create(SCORES.key(), GROUP, id="0", mkstream=True)
        client.xadd(SCORES.key(), {FIELD: b'{"secret text": 1}'})
        async with AsyncRedis(port=redis_server.port) as connection:
            replica = Replica(connection, "one")
            assert await replica.finish(await replica.take(5)) == 1
        [(_, failure)] = client.xrange("assay:{0}:failures")
        assert b"check_violation" in failure[b"data"]
        assert b"secret" not in failure[b"data"]


def unread(client: "redis.Redis[bytes]") -> int:
    """Entries that no replica has read."""
    groups = client.xinfo_groups(SCORES.key())
    last = groups[0]["last-delivered-id"] if groups else b"0"
    return len(client.xrange(SCORES.key(), b"(" + last))


@contextmanager
def services(server: RedisServer, directory: Path) -> Iterator[list["subprocess.Popen[bytes]"]]:
    running: list[subprocess.Popen[bytes]] = []
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()


def start(server: RedisServer, directory: Path, name: str) -> "subprocess.Popen[bytes]":
    changed = {name: value for name, value in SETTINGS.model_dump().items() if value != getattr(DriftSettings(), name)}
    environment = {f"ASSAY_DRIFT_{key}".upper(): str(value).lower() for key, value in changed.items()}
    environment |= {
        "ASSAY_REDIS_URL": f"redis://127.0.0.1:{server.port}/0",
        "ASSAY_DRIFT_PORT": "0",
        "ASSAY_DRIFT_BATCH_ENTRIES": "10",
        "ASSAY_DELIVERY_VISIBILITY_TIMEOUT_S": "1",
        "ASSAY_DELIVERY_CONSUMER": name,
        "PATH": os.environ["PATH"],
    }
    with (directory / f"{name}.log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-m", "assay_drift"], env=environment, stderr=log, cwd=directory)


def test_two_processes_killed_in_turn_at_every_step_of_an_episode_publish_each_transition_once(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    directory = tmp_path / "services"
    directory.mkdir()
    with redis_server.client() as client, services(redis_server, directory) as running:
        running += [start(redis_server, directory, "one"), start(redis_server, directory, "two")]
        names = itertools.cycle(["one", "two"])
        seen = kills = 0
        until = time.monotonic() + DEADLINE_S

        def interrupt_after_a_transition() -> None:
            nonlocal seen, kills
            if (count := client.xlen(ALERTS.key())) > seen:
                seen, kills = count, kills + 1
                victim = running.pop(0)
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                running.append(start(redis_server, directory, next(names)))

        def publish(document: str) -> None:
            client.xadd(SCORES.key(), {FIELD: document})
            interrupt_after_a_transition()
            while unread(client) > 20:  # a pace at which there is something to interrupt
                assert time.monotonic() < until
                interrupt_after_a_transition()
                time.sleep(0.01)

        for document in documents():
            publish(document)
        while unread(client) or client.xpending(SCORES.key(), GROUP)["pending"]:
            assert time.monotonic() < until, client.xinfo_groups(SCORES.key())
            interrupt_after_a_transition()
            time.sleep(0.05)
        # What the dead had in hand came after what was written later, and may have delayed the end of the episode: good days go on.
        further = good_days()
        while AlertState.RESOLVED not in {alert.state for alert in published(client)}:
            publish(next(further))
        interrupt_after_a_transition()
        alerts = [alert for alert in published(client) if alert.kind is AlertKind.SCORE_DRIFT]
        # How many there are depends on what the dead had in hand: it comes later than what was written after it.
        assert kills >= 2, "it was interrupted when the episode began, and again"
        for episode in {alert.alert_id for alert in alerts}:
            steps = [alert for alert in alerts if alert.alert_id == episode]
            assert [alert.sequence for alert in steps] == list(range(1, len(steps) + 1))
            assert [alert.previous for alert in steps[1:]] == [alert.state for alert in steps[:-1]]
        assert client.hget(drift_key(), "version") is not None
