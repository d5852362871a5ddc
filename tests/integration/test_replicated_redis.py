"""The SDK and the services' consumers on a real Redis Cluster and behind real Sentinels: masters die, slots move, no event is lost."""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import orjson
import pytest
from redis.exceptions import RedisError

from assay_capture import Capture
from assay_capture.redis_transport import RedisTransport
from assay_runtime.connection import Client, connect
from assay_runtime.delivery import Consumer
from assay_runtime.entries import Bounds, Entry, Outcome
from assay_runtime.faststream_adapter import leave_groups_alone, make_broker, subscribe
from assay_runtime.finishing import forward_finish, settle_finish
from assay_runtime.watermark import IdleShardTicker
from assay_schema.settings import CaptureSettings, DeliverySettings, RedisSettings, Settings
from assay_schema.streams import CAPTURE, EVENTS, scrubbed_low_watermark_key
from tests.support.replicated_redis import Cluster, Watched, until

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

SHARDS = 3
DELIVERY = DeliverySettings(visibility_timeout_s=1.0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path / "cluster")
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path / "watched")
    try:
        yield watched.start()
    finally:
        watched.stop()


def redis_settings(url: str, mode: str) -> RedisSettings:
    values = {"url": url, "mode": mode, "shards": SHARDS, "replicas": 1}
    return RedisSettings.model_validate(values | {"connect_timeout_s": 1, "command_timeout_s": 3})


class Producer(threading.Thread):
    """Captures events of many projects, so of every shard, until it is stopped; then all are safe."""

    def __init__(self, settings: RedisSettings, spool: Path) -> None:
        super().__init__(daemon=True)
        self.sent: list[str] = []
        self.capture = Capture(
            Settings(redis=settings, capture=CaptureSettings(enabled=True, spool_dir=spool)), service="tests"
        )
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.01):
            self.sent += [
                self.capture.feedback(
                    target_event_id="018f0000-0000-7000-8000-000000000000", verdict="positive", project=f"p{n}"
                )
                for n in range(9)
            ]

    def stop(self) -> None:
        self._over.set()
        self.join()
        until(lambda: self.capture.flush(1) and not self.capture.stats().spool_bytes, "the spool is empty")
        self.capture.close()


class Consumers:
    """What the scrubber and the writer do in Redis, for every shard. What is stored is kept here."""

    def __init__(self, settings: RedisSettings) -> None:
        self.settings, self.client, self.stored = settings, connect(settings, attempts=5), Counter[str]()
        self.numbers: dict[str, set[int]] = {}

    def consumer(self, stream: object, shard: int) -> Consumer:
        async def pass_on(entries: Sequence[Entry]) -> list[Outcome]:
            return [Outcome(entry.id, event=entry.data) for entry in entries]

        async def store(entries: Sequence[Entry]) -> list[Outcome]:
            for event in (orjson.loads(entry.data) for entry in entries):
                self.stored[event["event_id"]] += 1
                self.numbers.setdefault(event["event_id"], set()).add(event["id"])
            return [Outcome(entry.id) for entry in entries]

        raw = stream is CAPTURE
        return Consumer(
            self.client,
            CAPTURE if raw else EVENTS,
            group="scrubber" if raw else "writer",
            name="one",
            process=pass_on if raw else store,
            finish=forward_finish(self.client, "scrubber", shard, SHARDS)
            if raw
            else settle_finish(self.client, EVENTS, "writer", shard),
            bounds=Bounds(200, 1 << 22, 0),
            settings=DELIVERY,
            shard=shard,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        broker = make_broker(self.settings)
        consumers = [self.consumer(stream, shard) for stream in (CAPTURE, EVENTS) for shard in range(SHARDS)]
        for consumer in consumers:
            await consumer.prepare()
            subscribe(broker, consumer, dict)
        await leave_groups_alone(broker)
        await broker.start()
        for consumer in consumers:
            consumer.start()
        quiet = asyncio.create_task(self._look())
        try:
            yield
            assert all(subscriber.running for subscriber in broker.subscribers)
            assert not any(consumer.ended_by for consumer in consumers)
        finally:
            quiet.cancel()
            await asyncio.gather(*(consumer.stop() for consumer in consumers))
            await broker.stop()
            await self.client.aclose()

    async def _look(self) -> None:
        ticker = IdleShardTicker(self.client, SHARDS)
        while True:
            with contextlib.suppress(Exception):
                await ticker.run()
            await asyncio.sleep(0.2)


async def play(
    settings: RedisSettings, tmp_path: Path, fault: Callable[["Progress"], None]
) -> tuple[Producer, Consumers]:
    """Load, a fault from a thread of its own, and the wait until everything sent is stored."""
    consumers, producer = Consumers(settings), Producer(settings, tmp_path / "spool")
    async with consumers.running():
        producer.start()
        await asyncio.to_thread(fault, Progress(consumers))
        await asyncio.to_thread(producer.stop)
        with contextlib.suppress(TimeoutError):
            await asyncio.to_thread(until, lambda: consumers.stored.keys() >= set(producer.sent), "all is stored")
    return producer, consumers


class Progress:
    """What a fault waits for: that events flow."""

    def __init__(self, consumers: Consumers) -> None:
        self._consumers = consumers

    def flows(self, events: int = 200) -> None:
        """Wait until so many more are stored."""
        enough = len(self._consumers.stored) + events
        until(lambda: len(self._consumers.stored) >= enough, "events flow")


def well(producer: Producer, consumers: Consumers) -> None:
    assert len(producer.sent) > 500
    assert sum(producer.capture.stats().dropped.values()) == 0
    assert not set(producer.sent) - consumers.stored.keys(), "lost"
    assert not consumers.stored.keys() - set(producer.sent), "never sent"
    shared = Counter(number for numbers in consumers.numbers.values() for number in numbers)
    assert all(count == 1 for count in shared.values()), "two events share a number"


async def test_a_cluster_whose_slot_moves_and_whose_master_dies_loses_no_event_that_a_replica_had(
    cluster: Cluster, tmp_path: Path
) -> None:
    def fault(progress: Progress) -> None:
        progress.flows()
        source, target = cluster.master_of(0), cluster.master_of(1)
        cluster.begin_move(0, target)
        progress.flows(30)  # the other shards go on
        cluster.finish_move(0, source, target)
        progress.flows()
        target.kill()
        until(lambda: cluster.master_of(0) is not target, "a replica was promoted")
        target.start()  # comes back as a replica, so that there is one to wait for
        progress.flows()

    well(*await play(redis_settings(cluster.url, "cluster"), tmp_path, fault))


async def test_behind_sentinels_a_master_that_dies_takes_no_event_with_it_that_the_replica_had(
    watched: Watched, tmp_path: Path
) -> None:
    settings = redis_settings(watched.url, "sentinel").model_copy(update={"replicas": 0})

    def fault(progress: Progress) -> None:
        progress.flows()
        old = watched.master()
        with old.client() as client:
            client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")  # what was taken is on the replica by then
            until(lambda: _in_step(client), "the replica is in step")
        old.kill()
        until(lambda: watched.master() is not old, "the replica was promoted")
        progress.flows()
        old.start()  # comes back as a replica
        progress.flows()

    well(*await play(settings, tmp_path, fault))


def _in_step(client: "Client") -> bool:
    state = client.info("replication")
    return bool(state["connected_slaves"] == 1 and state["slave0"]["offset"] == state["master_repl_offset"])


async def test_a_command_goes_to_the_master_of_its_keys_shard_and_one_server_is_asked_for_each(
    cluster: Cluster,
) -> None:
    client = connect(redis_settings(cluster.url, "cluster"))
    try:
        for shard in range(SHARDS):
            await client.xadd(EVENTS.key(shard), {"data": "1"})
            with cluster.client(shard) as direct:
                assert direct.xlen(EVENTS.key(shard)) == await client.xlen(EVENTS.key(shard)) == 1
    finally:
        await client.aclose()


@pytest.mark.parametrize(("least", "awaited"), [("1", 0), ("0", 1)], ids=["it refuses", "what it takes has no replica"])
async def test_producers_and_services_leave_a_master_that_was_cut_off_and_replaced(
    tmp_path: Path, least: str, awaited: int
) -> None:
    watched = Watched(tmp_path, ("--min-replicas-to-write", least, "--min-replicas-max-lag", "2"), replicas=2)
    try:
        old = watched.start().master()
        settings = redis_settings(watched.url, "sentinel").model_copy(update={"replicas": awaited})
        link, client = RedisTransport(settings), connect(settings)
        assert not link.send([(0, b"before")]).failed
        await client.set("before", 1)
        watched.cut_off(old)
        until(lambda: watched.master() is not old, "a replica was promoted")
        new = watched.master()
        with new.client() as direct:

            def arrived() -> bool:
                link.send([(0, b"after")])
                return bool(direct.xrevrange(CAPTURE.key(), count=1)[0][1] == {b"data": b"after"})

            await asyncio.to_thread(until, arrived, "the producer has found the new master")
            if least == "1":  # else nothing tells a service
                async with asyncio.timeout(60):
                    while not direct.exists("after"):
                        with contextlib.suppress(RedisError):
                            await client.set("after", 1)
        await client.aclose()
        link.close()
    finally:
        watched.stop()


async def test_a_shard_whose_redis_is_away_keeps_no_other_from_following_the_clock(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "cluster", masters=2, replicas=0)
    try:
        settings = redis_settings(cluster.start().url, "cluster")
        client = connect(settings, attempts=1)
        for shard in range(SHARDS):
            await client.xgroup_create(CAPTURE.key(shard), "scrubber", id="0", mkstream=True)
        away = cluster.master_of(0)
        assert cluster.master_of(2) is not away
        away.kill()
        with pytest.raises(RedisError):
            await IdleShardTicker(client, SHARDS).run()
        assert await client.get(scrubbed_low_watermark_key(2)) is not None
        await client.aclose()
    finally:
        cluster.stop()
