"""deploy/redis in a real Redis: durable, never evicting, and each identity may do its own work and nothing else."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError
from redis.retry import Retry

from assay_access.acl_file import acl_template
from assay_access.identities import REDIS_IDENTITIES
from assay_schema.settings import Settings
from assay_schema.streams import (
    CAPTURE,
    EVENTS,
    FIELD,
    STREAMS,
    acknowledged_key,
    answer_of_trace_key,
    numbered_key,
    overflow_key,
    scrubbed_low_watermark_key,
    trace_key,
    watermark_key,
)
from tests.support.deployed_redis import DeployedRedis

ROOT = Path(__file__).parents[2]
STREAM_KEYS = {stream.name: stream.key() for stream in STREAMS}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedRedis]:
    server = DeployedRedis(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


def test_the_committed_template_is_what_the_table_of_identities_says() -> None:
    assert (ROOT / "deploy/redis/users.acl.template").read_text() == acl_template()


def test_nothing_is_evicted_or_kept_in_memory_alone(deployed: DeployedRedis) -> None:
    client = deployed.client("admin")
    expected = {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
        "maxmemory": str(1 << 30),
        "stream-node-max-bytes": "65536",
        "save": "",
    }
    assert {name: client.config_get(name)[name] for name in expected} == expected


def test_streams_at_all_their_marks_leave_an_eighth_of_its_memory_free(deployed: DeployedRedis) -> None:
    """Whatever stands still: producers and services wait before Redis refuses. The eighth is for the history and for what is no stream."""
    maxmemory = int(deployed.client("admin").config_get("maxmemory")["maxmemory"])
    defaults = Settings()
    waiting = defaults.capture.high_water_bytes + defaults.delivery.high_water_bytes
    held = defaults.delivery.held_bytes * sum(bool(stream.optional) for stream in STREAMS)
    assert waiting + held <= maxmemory * 7 // 8


def test_nobody_comes_in_without_a_name_and_password(deployed: DeployedRedis) -> None:
    once = Retry(NoBackoff(), 0)
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=deployed.port, retry=once).ping()
    for identity in REDIS_IDENTITIES:
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=deployed.port, username=identity.name, password="wrong", retry=once).ping()


@pytest.mark.parametrize("name", [identity.name for identity in REDIS_IDENTITIES])
def test_everybody_can_say_hello(deployed: DeployedRedis, name: str) -> None:
    assert deployed.client(name).ping()


#: Who may add entries to a stream, and who may see what is in one.
APPENDERS = {
    "capture": {"producer", "gateway", "assembler", "operator"},
    "spans": {"gateway", "operator"},
    "events": {"scrubber"},
    "failures": {"assembler", "scrubber", "writer", "judge", "drift", "notifier", "otlp_exporter", "operator"},
    "dead": {"assembler", "scrubber", "writer", "judge", "drift", "notifier", "otlp_exporter"},
    "alerts": {"writer", "judge", "drift", "operator"},
    "scores": {"judge"},
}
READERS = {
    "capture": {"scrubber"},
    "spans": {"assembler"},
    "events": {"writer", "judge", "drift", "otlp_exporter", "sre", "console"},
    "failures": {"writer", "drift"},
    "dead": {"operator"},
    "alerts": {"writer", "notifier"},
    "scores": {"writer", "drift", "otlp_exporter"},
}
ANSWER = answer_of_trace_key(0, "shop", "0af7651916cd43dd8448eb211c80319c")
#: Who may set a key, and who may see it.
SETTERS = {
    scrubbed_low_watermark_key(): {"scrubber", "writer"},
    overflow_key(): {"scrubber"},
    numbered_key(): {"scrubber"},
    watermark_key(): {"writer"},
    ANSWER: {"assembler"},
}
GETTERS = {
    scrubbed_low_watermark_key(): {"scrubber", "writer", "drift", "owner", "admin", "console"},
    overflow_key(): {"scrubber"},
    numbered_key(): {"scrubber"},
    watermark_key(): {"scrubber", "writer", "drift", "owner", "admin", "console"},
    ANSWER: {"gateway", "assembler"},
}


def allowed(deployed: DeployedRedis, act: Callable[["redis.Redis"], Any]) -> set[str]:
    """The identities that the server lets do this."""
    found = set()
    for identity in REDIS_IDENTITIES:
        try:
            act(deployed.client(identity.name))
        except NoPermissionError:
            continue
        found.add(identity.name)
    return found


@pytest.mark.parametrize("stream", STREAM_KEYS)
def test_a_stream_is_written_by_those_whose_work_it_is(deployed: DeployedRedis, stream: str) -> None:
    key = STREAM_KEYS[stream]
    assert allowed(deployed, lambda client: client.xadd(key, {FIELD: b"{}"})) == APPENDERS[stream]


@pytest.mark.parametrize("stream", STREAM_KEYS)
def test_a_stream_is_read_by_those_whose_work_it_is(deployed: DeployedRedis, stream: str) -> None:
    key = STREAM_KEYS[stream]
    assert allowed(deployed, lambda client: client.xrange(key)) == READERS[stream]


@pytest.mark.parametrize("key", SETTERS)
def test_the_services_keys_are_theirs(deployed: DeployedRedis, key: str) -> None:
    assert allowed(deployed, lambda client: client.set(key, "0")) == SETTERS[key]
    assert allowed(deployed, lambda client: client.get(key)) == GETTERS[key]


def test_only_the_assembler_reads_the_raw_spans_of_open_traces(deployed: DeployedRedis) -> None:
    assert allowed(deployed, lambda client: client.hgetall(trace_key(0, "shop", "0" * 32))) == {"assembler"}


@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.flushall(),
        lambda client: client.keys("*"),
        lambda client: client.delete(EVENTS.key(7)),
        lambda client: client.config_set("appendonly", "no"),
        lambda client: client.acl_list(),
        lambda client: client.set("assay:{0}:mine", "1"),
        lambda client: client.xadd("assay:{0}:mine", {FIELD: "1"}),
        lambda client: client.execute_command("SHUTDOWN"),
        lambda client: client.execute_command("REPLICAOF", "127.0.0.1", "1"),
    ],
    ids=["flush", "keys", "delete", "config", "acl", "own key", "own stream", "shutdown", "replica"],
)
def test_nobody_may_do_what_no_service_needs(deployed: DeployedRedis, act: Callable[["redis.Redis"], Any]) -> None:
    assert allowed(deployed, act) == set()


def test_only_the_scrubber_may_delete_the_stream_that_it_alone_reads(deployed: DeployedRedis) -> None:
    assert allowed(deployed, lambda client: client.delete(CAPTURE.key(7))) == {"scrubber"}


def test_a_producer_can_append_and_count_and_nothing_else(deployed: DeployedRedis) -> None:
    producer, key = deployed.client("producer"), CAPTURE.key()
    assert producer.xadd(key, {FIELD: b"{}"})
    assert producer.xlen(key) >= 1
    for act in (
        lambda: producer.xread({key: "0"}),
        lambda: producer.xreadgroup("scrubber", "me", {key: ">"}),
        lambda: producer.xtrim(key, maxlen=0),
        lambda: producer.xinfo_groups(key),
        lambda: producer.xgroup_create(key, "mine"),
        lambda: producer.eval("return 1", 0),
    ):
        with pytest.raises(NoPermissionError):
            act()


def test_the_console_counts_every_stream_and_sees_entries_of_scrubbed_events_alone(deployed: DeployedRedis) -> None:
    console = deployed.client("console")
    deployed.client("scrubber").xadd(EVENTS.key(), {FIELD: b"{}"})
    for name, key in STREAM_KEYS.items():
        console.xlen(key)
        acts: tuple[Callable[[], Any], ...] = (
            lambda key=key: console.xrange(key),
            lambda key=key: console.xrevrange(key),
            lambda key=key: console.xread({key: "0"}),
            lambda key=key: console.xinfo_stream(key, full=True),
        )
        for act in acts:
            if name == "events":
                act()
            else:
                with pytest.raises(NoPermissionError):
                    act()
    for changed in (
        lambda: console.xreadgroup("writer", "me", {EVENTS.key(): ">"}),
        lambda: console.xack(EVENTS.key(), "writer", "1-0"),
        lambda: console.hset(acknowledged_key(), "a", "1"),
        lambda: console.eval("return 1", 0),
    ):
        with pytest.raises(NoPermissionError):
            changed()


def test_every_shard_has_its_keys_and_there_are_no_more_shards(deployed: DeployedRedis) -> None:
    producer = deployed.client("producer")
    for shard in range(16):
        assert producer.xadd(CAPTURE.key(shard), {FIELD: b"{}"})
    with pytest.raises(NoPermissionError):
        producer.xadd(CAPTURE.key(16), {FIELD: b"{}"})
