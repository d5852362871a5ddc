"""deploy/redis in a real Redis: durable, never evicting, and each identity may do its own work and nothing else."""

import runpy
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError
from redis.retry import Retry

from assay_cli.identities import REDIS_IDENTITIES, acl_template
from assay_cli.secrets import Passwords
from assay_schema.streams import CAPTURE, DEAD, EVENTS, FAILURES, FIELD, low_key, overflow_key, watermark_key
from tests.redis_server import free_port, redis_binary

ROOT = Path(__file__).parents[2]
CONF = ROOT / "deploy/redis/redis.conf"
STREAM_KEYS = {stream.name: stream.key() for stream in (CAPTURE, EVENTS, FAILURES, DEAD)}


@dataclass(frozen=True)
class Deployed:
    """A Redis started from deploy/redis/redis.conf and the secrets that deploy/make_secrets.py wrote."""

    port: int
    passwords: Passwords

    def client(self, name: str) -> "redis.Redis":
        return redis.Redis(port=self.port, username=name, password=self.passwords.redis[name], socket_timeout=5)


def version() -> tuple[int, ...]:
    answer = subprocess.run([redis_binary(), "--version"], capture_output=True, text=True, timeout=10).stdout
    return tuple(map(int, answer.partition("v=")[2].split()[0].split(".")[:2]))


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    if version() < (7, 0):
        pytest.skip("deploy/redis is for Redis 7.0 and newer; install redis-server")
    directory = tmp_path_factory.mktemp("redis")
    passwords = runpy.run_path(str(ROOT / "deploy/make_secrets.py"))["write_secrets"](directory / "secrets")
    port = free_port()
    # What differs from the container: where the files are, and that only this host may connect.
    text = CONF.read_text()
    for line, here in {
        "dir /data": f"dir {directory}",
        "aclfile /run/secrets/redis-users.acl": f"aclfile {directory}/secrets/redis-users.acl",
        "port 6379": f"port {port}",
        "bind * -::*": "bind 127.0.0.1",
    }.items():
        assert text.count(f"\n{line}\n") == 1, line
        text = text.replace(f"\n{line}\n", f"\n{here}\n")
    (directory / "redis.conf").write_text(text)
    with (directory / "redis.log").open("wb") as log:
        process = subprocess.Popen([redis_binary(), str(directory / "redis.conf")], stdout=log, stderr=log)
    server = Deployed(port, passwords)
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                server.client("admin").ping()
                break
            except redis.RedisError:
                assert process.poll() is None, (directory / "redis.log").read_text()
                assert time.monotonic() < deadline, (directory / "redis.log").read_text()
                time.sleep(0.02)
        yield server
    finally:
        process.terminate()
        process.wait(20)


def test_the_committed_template_is_what_the_table_of_identities_says() -> None:
    assert (ROOT / "deploy/redis/users.acl.template").read_text() == acl_template()


def test_nothing_is_evicted_or_kept_in_memory_alone(deployed: Deployed) -> None:
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


def test_nobody_comes_in_without_a_name_and_password(deployed: Deployed) -> None:
    once = Retry(NoBackoff(), 0)
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=deployed.port, retry=once).ping()
    for identity in REDIS_IDENTITIES:
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=deployed.port, username=identity.name, password="wrong", retry=once).ping()


@pytest.mark.parametrize("name", [identity.name for identity in REDIS_IDENTITIES])
def test_everybody_can_say_hello(deployed: Deployed, name: str) -> None:
    assert deployed.client(name).ping()


#: Who may add entries to a stream, and who may see what is in one.
APPENDERS = {
    "capture": {"producer"},
    "events": {"scrubber"},
    "failures": {"scrubber", "writer"},
    "dead": {"scrubber", "writer"},
}
READERS = {"capture": {"scrubber"}, "events": {"writer", "sre"}, "failures": {"writer"}, "dead": set[str]()}
#: Who may set a key, and who may see it.
SETTERS = {low_key(): {"scrubber"}, overflow_key(): {"scrubber"}, watermark_key(): {"writer"}}
GETTERS = {
    low_key(): {"scrubber", "writer", "owner", "admin"},
    overflow_key(): {"scrubber"},
    watermark_key(): {"writer", "owner", "admin"},
}


def allowed(deployed: Deployed, act: Callable[["redis.Redis"], Any]) -> set[str]:
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
def test_a_stream_is_written_by_those_whose_work_it_is(deployed: Deployed, stream: str) -> None:
    key = STREAM_KEYS[stream]
    assert allowed(deployed, lambda client: client.xadd(key, {FIELD: b"{}"})) == APPENDERS[stream]


@pytest.mark.parametrize("stream", STREAM_KEYS)
def test_a_stream_is_read_by_those_whose_work_it_is(deployed: Deployed, stream: str) -> None:
    key = STREAM_KEYS[stream]
    assert allowed(deployed, lambda client: client.xrange(key)) == READERS[stream]


@pytest.mark.parametrize("key", SETTERS)
def test_the_services_keys_are_theirs(deployed: Deployed, key: str) -> None:
    assert allowed(deployed, lambda client: client.set(key, "0")) == SETTERS[key]
    assert allowed(deployed, lambda client: client.get(key)) == GETTERS[key]


@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.flushall(),
        lambda client: client.keys("*"),
        lambda client: client.delete(CAPTURE.key()),
        lambda client: client.config_set("appendonly", "no"),
        lambda client: client.acl_list(),
        lambda client: client.set("assay:{0}:mine", "1"),
        lambda client: client.xadd("assay:{0}:mine", {FIELD: "1"}),
        lambda client: client.execute_command("SHUTDOWN"),
        lambda client: client.execute_command("REPLICAOF", "127.0.0.1", "1"),
    ],
    ids=["flush", "keys", "delete", "config", "acl", "own key", "own stream", "shutdown", "replica"],
)
def test_nobody_may_do_what_no_service_needs(deployed: Deployed, act: Callable[["redis.Redis"], Any]) -> None:
    assert allowed(deployed, act) == set()


def test_a_producer_can_append_and_count_and_nothing_else(deployed: Deployed) -> None:
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


def test_every_shard_has_its_keys_and_there_are_no_more_shards(deployed: Deployed) -> None:
    producer = deployed.client("producer")
    for shard in range(16):
        assert producer.xadd(CAPTURE.key(shard), {FIELD: b"{}"})
    with pytest.raises(NoPermissionError):
        producer.xadd(CAPTURE.key(16), {FIELD: b"{}"})
