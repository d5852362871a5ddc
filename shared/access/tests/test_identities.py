"""The table of identities, checked against real servers: the one on PATH and the bundled one."""

import json
import subprocess
import time
import tomllib
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError
from redis.retry import Retry

from assay_access.acl_file import acl_file, acl_template, password_hash
from assay_access.identities import IDENTITIES, REDIS_IDENTITIES, SETTINGS_IDENTITIES
from assay_access.settings_files import Ports, settings_text
from assay_local.preflight import RedisBinary
from assay_local.processes import without_secrets
from assay_notifier.delivery_log import DeliveryLog
from assay_runtime import dead_letters, scripts
from assay_runtime.entries import Outcome
from assay_runtime.finishing import DEAD_BYTES, dead_letter_finish, forward_finish
from assay_runtime.same_redis import redis_here
from assay_runtime.watermark import IdleShardTicker
from assay_schema.alerts import handed_in, transition_id
from assay_schema.failures import Failure, Reason
from assay_schema.settings import RedisSettings, settings_from
from assay_schema.streams import (
    ALERTS,
    CAPTURE,
    DEAD,
    EVENTS,
    FAILURES,
    SCORES,
    STREAMS,
    Stream,
    acknowledged_key,
    alert_inbox_key,
    api_keys_key,
    drift_key,
    overflow_key,
    scrubbed_low_watermark_key,
    watermark_key,
)
from tests.support.alert_samples import episode
from tests.support.ports import free_port
from tests.support.redis import SERVERS

TEMPLATE = Path(__file__).parents[3] / "deploy/redis/users.acl.template"
PORTS = Ports.from_base(9100)
#: A refused password counts as a lost connection, which clients try again.
NO_RETRY = Retry(NoBackoff(), 0)
SECRET = b"the content nobody else may see"

As = Callable[[str], redis.Redis]


class Server:
    """A real server with the identities' ACL file and one entry in every stream."""

    def __init__(self, program: RedisBinary, directory: Path) -> None:
        hashes = {identity.name: password_hash(f"{identity.name}-password") for identity in REDIS_IDENTITIES}
        acl = acl_file(hashes, program.version) + f"user root on #{password_hash('root-password')} ~* &* +@all\n"
        (directory / "users.acl").write_text(acl)
        self.port = free_port()
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": directory,
            "aclfile": directory / "users.acl",
            "appendonly": "yes",
            "appendfsync": "always",  # with everysec, what is written during a slow fsync waits, and a kill loses it
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        self.command = [program.path, *arguments, "--save", ""]
        self.clients: dict[str, redis.Redis] = {}
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.as_("root").ping()
                break
            except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                assert time.monotonic() < deadline
                assert self.process.poll() is None

    def as_(self, name: str) -> redis.Redis:
        if name not in self.clients:
            self.clients[name] = redis.Redis(port=self.port, username=name, password=f"{name}-password")
        return self.clients[name]

    def close(self) -> None:
        for client in self.clients.values():
            client.close()
        self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module", params=SERVERS.values(), ids=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(request.param, tmp_path_factory.mktemp("redis"))
    yield running
    running.close()


@pytest.fixture
def root(server: Server) -> redis.Redis:
    """All-powerful, with fresh streams: one entry in each, the groups made, the scrubber's entry pending."""
    client = server.as_("root")
    client.flushall()
    for stream in STREAMS:
        client.xadd(stream.key(), {"data": SECRET})
        for group in stream.groups:
            client.xgroup_create(stream.key(), group, "0")
    return client


def here(root: redis.Redis) -> str:
    """Which Redis this is; its entries are finished under that name."""
    return str(root.info("replication")["master_replid"])


def denied(client: redis.Redis, *command: str | bytes | int) -> bool:
    """Whether Redis refuses this for want of permission. Any answer at all, errors included, counts as allowed."""
    try:
        client.execute_command(*command)
    except NoPermissionError:
        return True
    except redis.ResponseError as error:  # how 7.0 and later ones report what a script was denied
        return "The user executing the script can't" in str(error) or "ACL failure in script" in str(error)
    return False


def reads(key: str) -> list[tuple[str | bytes | int, ...]]:
    """Every way to see what a key holds."""
    return [
        ("XREAD", "STREAMS", key, "0"),
        ("XREADGROUP", "GROUP", "scrubber", "me", "STREAMS", key, ">"),
        ("XREADGROUP", "GROUP", "writer", "me", "STREAMS", key, ">"),
        ("XRANGE", key, "-", "+"),
        ("XREVRANGE", key, "+", "-"),
        ("XINFO", "STREAM", key),
        ("XINFO", "STREAM", key, "FULL"),
        ("XCLAIM", key, "scrubber", "me", "0", "0-1"),
        ("XAUTOCLAIM", key, "scrubber", "me", "0", "0"),
        ("DUMP", key),
        ("GET", key),
        ("OBJECT", "ENCODING", key),
        ("COPY", key, "elsewhere"),
        ("RENAME", key, "elsewhere"),
        ("SORT", key),
        ("MIGRATE", "127.0.0.1", "1", key, "0", "10"),
        ("EVAL", "return redis.call('XRANGE', KEYS[1], '-', '+')", "1", key),
        ("EVAL", f"return redis.call('XRANGE', '{key}', '-', '+')", "0"),
    ]


def changes(key: str) -> list[tuple[str | bytes | int, ...]]:
    return [
        ("XADD", key, "*", "data", "x"),
        ("XDEL", key, "0-1"),
        ("XTRIM", key, "MAXLEN", "0"),
        ("XACK", key, "scrubber", "0-1"),
        ("XGROUP", "CREATE", key, "mine", "0"),
        ("XGROUP", "DESTROY", key, "scrubber"),
        ("XGROUP", "SETID", key, "scrubber", "0"),
        ("XSETID", key, "99999999999999-0"),
        ("SET", key, "x"),
        ("DEL", key),
        ("UNLINK", key),
        ("EXPIRE", key, "1"),
        ("EVAL", "return redis.call('XADD', KEYS[1], '*', 'data', 'x')", "1", key),
    ]


EVERYWHERE: list[tuple[str | bytes | int, ...]] = [
    ("KEYS", "*"),
    ("SCAN", "0"),
    ("MONITOR",),
    ("CONFIG", "SET", "appendonly", "no"),
    ("ACL", "LIST"),
    ("ACL", "SETUSER", "me", "on"),
    ("FLUSHALL",),
    ("SHUTDOWN",),
    ("REPLICAOF", "127.0.0.1", "1"),
    ("SYNC",),
    ("PSYNC", "?", "-1"),
    ("SAVE",),
    ("CLIENT", "KILL", "ID", "1"),
    ("CLIENT", "LIST"),
    ("SLOWLOG", "GET"),
    ("SUBSCRIBE", "x"),
    ("PUBLISH", "x", "y"),
    ("SWAPDB", "0", "1"),
    ("RANDOMKEY",),
]


def refusals(client: redis.Redis, commands: list[tuple[str | bytes | int, ...]]) -> list[tuple[str | bytes | int, ...]]:
    """The commands that were let through: empty is what the tests want to see."""
    return [command for command in commands if not denied(client, *command)]


def test_nobody_gets_in_without_a_password(server: Server, root: redis.Redis) -> None:
    with redis.Redis(port=server.port, retry=NO_RETRY) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()


def test_nobody_can_be_the_default_user_although_it_has_rights(server: Server, root: redis.Redis) -> None:
    for password in ("", "default", "nopass", "root-password"):
        with (
            redis.Redis(port=server.port, username="default", password=password, retry=NO_RETRY) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.execute_command("AUTH", "default", password)


@pytest.mark.parametrize("name", [identity.name for identity in REDIS_IDENTITIES])
def test_no_identity_can_list_keys_configure_watch_or_stop_the_server(
    server: Server, root: redis.Redis, name: str
) -> None:
    assert refusals(server.as_(name), EVERYWHERE) == []


@pytest.mark.parametrize("name", [identity.name for identity in REDIS_IDENTITIES])
def test_every_identity_can_connect_and_ping(server: Server, root: redis.Redis, name: str) -> None:
    for protocol in (2, 3):
        with redis.Redis(port=server.port, username=name, password=f"{name}-password", protocol=protocol) as client:
            assert client.ping()
            assert client.client_id() > 0


def test_a_producer_can_add_to_capture_and_see_its_length(server: Server, root: redis.Redis) -> None:
    producer = server.as_("producer")
    producer.xadd(CAPTURE.key(), {"data": b"{}"})
    producer.xadd(CAPTURE.key(15), {"data": b"{}"})
    assert producer.xlen(CAPTURE.key()) == 2
    with producer.pipeline(transaction=False) as pipe:
        pipe.xadd(CAPTURE.key(), {"data": b"{}"}).xadd(CAPTURE.key(), {"data": b"{}"}).xlen(CAPTURE.key())
        assert pipe.execute()[-1] == 4


def test_a_producer_can_read_no_stream_not_even_its_own(server: Server, root: redis.Redis) -> None:
    for stream in STREAMS:
        assert refusals(server.as_("producer"), reads(stream.key())) == []


def test_a_producer_can_write_nothing_but_new_capture_entries(server: Server, root: redis.Redis) -> None:
    producer = server.as_("producer")
    assert refusals(producer, changes(CAPTURE.key())) == [("XADD", CAPTURE.key(), "*", "data", "x")]
    for key in (
        EVENTS.key(),
        FAILURES.key(),
        DEAD.key(),
        scrubbed_low_watermark_key(),
        watermark_key(),
        overflow_key(),
        "mine",
        "assay:{x}:capture",
    ):
        assert refusals(producer, changes(key)) == []


def test_a_scrubber_reads_capture_as_a_group(server: Server, root: redis.Redis) -> None:
    scrubber, key = server.as_("scrubber"), CAPTURE.key()
    assert scrubber.execute_command("XREADGROUP", "GROUP", "scrubber", "one", "STREAMS", key, ">")
    entry_id = root.xinfo_stream(key)["last-generated-id"]
    assert scrubber.xpending_range(key, "scrubber", "-", "+", 10)
    assert scrubber.execute_command("XCLAIM", key, "scrubber", "two", "0", entry_id)
    assert scrubber.execute_command("XINFO", "GROUPS", key)
    assert scrubber.execute_command("XINFO", "CONSUMERS", key, "scrubber")
    assert scrubber.execute_command("XINFO", "STREAM", key)
    assert scrubber.xlen(key) == 1
    assert scrubber.time()
    assert scrubber.info("server")
    root.xgroup_destroy(key, "scrubber")
    assert scrubber.xgroup_create(key, "scrubber", "0")


async def test_a_scrubber_forwards_and_buries_with_the_services_scripts(server: Server, root: redis.Redis) -> None:
    key = CAPTURE.key()
    root.xadd(key, {"data": b"{}"})
    root.xadd(key, {"data": b"{}"})
    first, second, third = (entry_id.decode() for entry_id, _ in root.xrange(key))
    server.as_("scrubber").execute_command("XREADGROUP", "GROUP", "scrubber", "one", "STREAMS", key, ">")
    failure = Failure(
        failure_id=uuid4(), stage="scrubber", reason=Reason.OTHER, error_class="X", created_at=datetime.now(UTC)
    )
    outcomes = [Outcome(first, event=b'{"x":1}'), Outcome(second, failure=failure)]
    async with redis.asyncio.Redis(port=server.port, username="scrubber", password="scrubber-password") as scrubber:
        assert await forward_finish(scrubber, "scrubber", 0, 1)(outcomes, await redis_here(scrubber)) == 2
    dead_letter = server.as_("scrubber").register_script(scripts.DEAD_LETTER)
    assert (
        dead_letter(
            [key, DEAD.key(), FAILURES.key()],
            [here(root), "scrubber", third, "scrubber", "other", "Error", 5, "{}", DEAD_BYTES],
        )
        == 1
    )
    assert [root.xlen(stream.key()) for stream in (CAPTURE, EVENTS, FAILURES, DEAD)] == [0, 2, 3, 2]
    assert root.get(scrubbed_low_watermark_key())


async def test_what_scripts_moved_is_still_moved_after_redis_was_killed_and_restarted(
    server: Server, root: redis.Redis
) -> None:
    key = CAPTURE.key()
    (entry_id,) = (entry_id.decode() for entry_id, _ in root.xrange(key))
    server.as_("scrubber").execute_command("XREADGROUP", "GROUP", "scrubber", "one", "STREAMS", key, ">")
    async with redis.asyncio.Redis(port=server.port, username="scrubber", password="scrubber-password") as scrubber:
        assert (
            await forward_finish(scrubber, "scrubber", 0, 1)(
                [Outcome(entry_id, event=b'{"x":1}')], await redis_here(scrubber)
            )
            == 1
        )

    def state() -> list[object]:
        streams = [CAPTURE.key(), EVENTS.key(), FAILURES.key()]
        return [root.execute_command("XRANGE", stream, "-", "+") for stream in streams] + [
            root.xpending(key, "scrubber")["pending"],
            root.get(scrubbed_low_watermark_key()),
        ]

    before = state()
    server.kill()
    server.start()
    assert state() == before
    assert [len(entries) for entries in before[:2]] == [0, 2]  # type: ignore[arg-type]


async def test_a_scrubber_sets_the_empty_stream_back_after_an_id_ahead_of_the_clock(
    server: Server, root: redis.Redis
) -> None:
    key, ahead = CAPTURE.key(), "9999999999999-0"
    root.xadd(key, {"data": b"{}"}, id=ahead)
    server.as_("scrubber").execute_command("XREADGROUP", "GROUP", "scrubber", "one", "STREAMS", key, ">")
    for entry_id, _ in root.xrange(key):
        root.xack(key, "scrubber", entry_id)
        root.xdel(key, entry_id)
    async with redis.asyncio.Redis(port=server.port, username="scrubber", password="scrubber-password") as scrubber:
        await IdleShardTicker(scrubber, 1).run()
    later = root.xadd(key, {"data": b"{}"})
    assert int(later.partition(b"-")[0]) < int(ahead.partition("-")[0])
    assert server.as_("scrubber").execute_command("XREADGROUP", "GROUP", "scrubber", "one", "STREAMS", key, ">")


def test_a_scrubber_cannot_read_events(server: Server, root: redis.Redis) -> None:
    scrubber = server.as_("scrubber")
    for key in (EVENTS.key(), FAILURES.key(), DEAD.key()):
        assert refusals(scrubber, reads(key)) == []
        spy = ("EVAL", "return redis.call('XREVRANGE', KEYS[1], '+', '-')", "2", EVENTS.key(), CAPTURE.key())
        assert denied(scrubber, *spy)


def test_a_scrubber_can_only_add_to_the_streams_after_it(server: Server, root: redis.Redis) -> None:
    scrubber = server.as_("scrubber")
    for key in (EVENTS.key(), FAILURES.key()):
        let_through = {command[0] for command in refusals(scrubber, changes(key))}
        assert let_through == {"XADD", "EVAL"}


def test_a_scrubber_touches_no_key_it_was_not_given(server: Server, root: redis.Redis) -> None:
    scrubber = server.as_("scrubber")
    for key in ("mine", "assay:{x}:events", "assay:{0}:events:more"):
        assert refusals(scrubber, reads(key) + changes(key)) == []


def test_a_scrubber_sees_how_far_the_writer_is_and_cannot_set_that(server: Server, root: redis.Redis) -> None:
    scrubber, key = server.as_("scrubber"), watermark_key()
    assert {command[0] for command in refusals(scrubber, reads(key) + changes(key))} == {"GET"}


def test_a_writer_reads_events_and_failures_and_settles_them(server: Server, root: redis.Redis) -> None:
    writer = server.as_("writer")
    keys = [EVENTS.key(), FAILURES.key()]
    assert len(writer.execute_command("XREADGROUP", "GROUP", "writer", "one", "STREAMS", *keys, ">", ">")) == 2
    root.set(scrubbed_low_watermark_key(), 41)
    watermark = writer.register_script(scripts.WATERMARK)
    assert watermark([EVENTS.key(), scrubbed_low_watermark_key(), watermark_key()], ["writer"])[0] == b"0"
    entry_id = root.xinfo_stream(EVENTS.key())["last-generated-id"]
    settle = writer.register_script(scripts.SETTLE)
    assert settle([EVENTS.key(), FAILURES.key()], [here(root), "writer", entry_id, "{}"]) == 1
    assert watermark([EVENTS.key(), scrubbed_low_watermark_key(), watermark_key()], ["writer"])[0] == b"41"
    assert writer.get(watermark_key()) == b"41"
    assert writer.xtrim(EVENTS.key(), minid=entry_id) == 0
    root.xadd(EVENTS.key(), {"data": b"{}"})
    writer.execute_command("XREADGROUP", "GROUP", "writer", "one", "STREAMS", EVENTS.key(), ">")
    poison = root.xinfo_stream(EVENTS.key())["last-generated-id"]
    dead_letter = writer.register_script(scripts.DEAD_LETTER)
    arguments = [here(root), "writer", poison, "writer", "other", "Error", 5, "{}", DEAD_BYTES]
    assert dead_letter([EVENTS.key(), DEAD.key(), FAILURES.key()], arguments) == 1


def test_a_writer_cannot_read_or_change_capture(server: Server, root: redis.Redis) -> None:
    writer = server.as_("writer")
    for key in (CAPTURE.key(), overflow_key()):
        assert refusals(writer, reads(key) + changes(key)) == []


def test_a_writer_cannot_read_dead_letters(server: Server, root: redis.Redis) -> None:
    assert refusals(server.as_("writer"), reads(DEAD.key())) == []


async def test_a_notifier_reads_alerts_keeps_its_records_and_buries(server: Server, root: redis.Redis) -> None:
    key, alert = ALERTS.key(), episode()[0]
    await_id = root.xadd(key, {"data": alert.model_dump_json()})
    server.as_("notifier").execute_command("XREADGROUP", "GROUP", "notifier", "one", "STREAMS", key, ">")
    async with redis.asyncio.Redis(port=server.port, username="notifier", password="notifier-password") as client:
        delivery_log = DeliveryLog(client, 0)
        assert (await delivery_log.store(alert)).severity == "warning"
        notice = (str(alert.transition_id), "log")
        await delivery_log.mark_accepted([notice])
        assert await delivery_log.accepted([notice]) == {notice}
        assert len(await delivery_log.latest()) == 1
        await delivery_log.forget()
        failure = Failure(
            failure_id=uuid4(), stage="notifier", reason=Reason.OTHER, error_class="X", created_at=datetime.now(UTC)
        )
        (first, _) = root.xrange(key)
        outcomes = [Outcome(first[0].decode()), Outcome(await_id.decode(), failure=failure)]
        assert await dead_letter_finish(client, ALERTS, "notifier", 0)(outcomes, await redis_here(client)) == 2
    assert root.xlen(DEAD.key()) == 2
    assert root.xlen(key) == 2, "the writer has not read them yet"


@pytest.mark.parametrize(("name", "streams"), [("judge", [EVENTS]), ("drift", [EVENTS, SCORES, FAILURES])])
def test_judge_and_drift_read_their_streams_and_never_capture_or_dead_letters(
    server: Server, root: redis.Redis, name: str, streams: list[Stream]
) -> None:
    client = server.as_(name)
    for stream in streams:
        assert name not in stream.groups or client.execute_command(
            "XREADGROUP", "GROUP", name, "one", "STREAMS", stream.key(), ">"
        )
    assert refusals(client, reads(overflow_key()) + changes(overflow_key())) == []
    others = {stream.key() for stream in STREAMS} - {stream.key() for stream in streams}
    for key in others:
        seen = [each for each in refusals(client, reads(key)) if each[:2] != ("XINFO", "GROUPS")]
        assert seen == [], key
    assert refusals(client, changes(CAPTURE.key())) == []


def test_a_judge_keeps_its_own_keys_and_no_others(server: Server, root: redis.Redis) -> None:
    client = server.as_("judge")
    assert client.set("assay:{0}:judge:spend:shop:2026-01-01", 1)
    assert client.incrby("assay:{15}:judge:spend:shop:2026-01-01", 2) == 2
    for key in ("assay:{0}:judged", "assay:{x}:judge:a", "judge:a"):
        assert refusals(client, reads(key) + changes(key)) == []


def test_an_operator_acknowledges_and_an_sre_sees_where_drift_stands(server: Server, root: redis.Redis) -> None:
    assert server.as_("operator").hset(acknowledged_key(), "a", "1") == 1
    assert server.as_("sre").hgetall(acknowledged_key()) == {b"a": b"1"}
    assert server.as_("sre").hgetall(drift_key()) == {}
    assert denied(server.as_("sre"), "HSET", acknowledged_key(), "a", "1")


def test_a_notifier_reads_no_event_and_no_capture(server: Server, root: redis.Redis) -> None:
    notifier = server.as_("notifier")
    for key in (
        CAPTURE.key(),
        EVENTS.key(),
        SCORES.key(),
        scrubbed_low_watermark_key(),
        watermark_key(),
        overflow_key(),
        "mine",
    ):
        assert refusals(notifier, reads(key) + changes(key)) == []


def test_a_gateway_appends_to_capture_reads_keys_and_nothing_else(server: Server, root: redis.Redis) -> None:
    root.hset(api_keys_key(), mapping={"a": "1", "version": "2"})
    gateway = server.as_("gateway")
    assert gateway.xadd(CAPTURE.key(), {"data": "x"})
    assert gateway.hgetall(api_keys_key()) == {b"a": b"1", b"version": b"2"}
    assert gateway.hget(api_keys_key(), "version") == b"2"
    appends = ("XADD", CAPTURE.key(), "*", "data", "x")
    assert refusals(gateway, [each for each in reads(CAPTURE.key()) + changes(CAPTURE.key()) if each != appends]) == []
    assert refusals(gateway, reads(api_keys_key()) + changes(api_keys_key())) == []
    for change in (
        ("HSET", api_keys_key(), "a", "x"),
        ("HDEL", api_keys_key(), "a"),
        ("HINCRBY", api_keys_key(), "a", 1),
    ):
        assert denied(gateway, *change)
    for key in (EVENTS.key(), FAILURES.key(), DEAD.key(), SCORES.key(), ALERTS.key(), watermark_key(), "mine"):
        assert refusals(gateway, reads(key) + changes(key)) == []


@pytest.mark.parametrize("name", [each.name for each in REDIS_IDENTITIES if each.name not in ("gateway", "operator")])
def test_no_other_identity_reads_or_makes_keys(server: Server, root: redis.Redis, name: str) -> None:
    root.hset(api_keys_key(), "a", "1")
    for command in (("HGETALL", api_keys_key()), ("HGET", api_keys_key(), "a"), ("HSET", api_keys_key(), "b", "2")):
        assert denied(server.as_(name), *command)


def test_an_sre_reads_events(server: Server, root: redis.Redis) -> None:
    sre, key = server.as_("sre"), EVENTS.key()
    assert sre.execute_command("XREAD", "STREAMS", key, "0")
    assert sre.execute_command("XRANGE", key, "-", "+")
    assert sre.execute_command("XREVRANGE", key, "+", "-", "COUNT", "1")
    assert sre.execute_command("XINFO", "STREAM", key)


def test_an_sre_reads_nothing_but_events_and_changes_nothing(server: Server, root: redis.Redis) -> None:
    sre = server.as_("sre")
    for key in (
        CAPTURE.key(),
        FAILURES.key(),
        DEAD.key(),
        scrubbed_low_watermark_key(),
        watermark_key(),
        overflow_key(),
    ):
        assert refusals(sre, reads(key) + changes(key)) == []
    assert refusals(sre, changes(EVENTS.key())) == []


async def test_an_operator_reads_requeues_and_drops_dead_letters(server: Server, root: redis.Redis) -> None:
    for _ in range(3):
        root.xadd(DEAD.key(), {"data": b"{}"})
    async with redis.asyncio.Redis(port=server.port, username="operator", password="operator-password") as operator:
        [found] = [page async for page in dead_letters.letters(operator, 0)]
        first, second, third, fourth = (letter_id.decode() for letter_id, _ in found)
        assert await dead_letters.letter(operator, 0, first)
        moves = [
            dead_letters.Move(first, CAPTURE, b"{}"),
            dead_letters.Move(second, FAILURES, b"{}"),
            dead_letters.Move(third, ALERTS, b"{}"),
        ]
        assert await dead_letters.requeue(operator, 0, moves) == [True, True, True]
        assert await dead_letters.drop(operator, 0, [fourth]) == 1
    assert [root.xlen(stream.key()) for stream in (CAPTURE, FAILURES, ALERTS, DEAD)] == [2, 2, 2, 0]


def test_an_operator_may_only_add_to_the_streams_letters_go_back_to_and_see_none_but_dead(
    server: Server, root: redis.Redis
) -> None:
    operator = server.as_("operator")
    for key in (EVENTS.key(), scrubbed_low_watermark_key(), watermark_key(), overflow_key(), "mine"):
        assert refusals(operator, reads(key) + changes(key)) == []
    for key in (CAPTURE.key(), FAILURES.key(), ALERTS.key()):
        assert refusals(operator, reads(key)) == []
        assert {command[0] for command in refusals(operator, changes(key))} == {"XADD", "EVAL"}
        spy = ("EVAL", "return redis.call('XREVRANGE', KEYS[1], '+', '-')", "2", key, DEAD.key())
        assert denied(operator, *spy)
    assert {command[0] for command in refusals(operator, changes(DEAD.key()))} == {"XDEL"}


@pytest.mark.parametrize("name", ["owner", "admin"])
def test_an_owner_watches_every_stream_and_sees_no_entry(server: Server, root: redis.Redis, name: str) -> None:
    owner = server.as_(name)
    for stream in STREAMS:
        assert owner.xlen(stream.key()) == 1
        groups = owner.execute_command("XINFO", "GROUPS", stream.key())
        assert len(groups) == len(stream.groups)
        for group in stream.groups:
            assert owner.execute_command("XPENDING", stream.key(), group)
        assert refusals(owner, reads(stream.key()) + changes(stream.key())) == []
    assert owner.get(scrubbed_low_watermark_key()) is None
    assert owner.info("persistence")["aof_enabled"] == 1


def test_only_the_admin_stops_a_script_that_does_not_end(server: Server, root: redis.Redis) -> None:
    allowed = [each.name for each in REDIS_IDENTITIES if not denied(server.as_(each.name), "SCRIPT", "KILL")]
    assert allowed == ["admin"]


def test_only_the_admin_reads_the_servers_configuration(server: Server, root: redis.Redis) -> None:
    may = [
        identity.name
        for identity in REDIS_IDENTITIES
        if not denied(server.as_(identity.name), "CONFIG", "GET", "appendonly")
    ]
    assert may == ["admin"]


def test_the_production_template_is_current() -> None:
    assert TEMPLATE.read_text() == acl_template(), "write it anew with: python -m assay_access.acl_file > " + str(
        TEMPLATE
    )


def test_the_production_template_holds_a_placeholder_for_each_password_and_no_other_secret() -> None:
    lines = [line for line in acl_template().splitlines() if not line.startswith("user default off")]
    assert [line.split()[1] for line in lines] == [identity.name for identity in REDIS_IDENTITIES]
    for line in lines:
        name = line.split()[1]
        assert [word for word in line.split() if word.startswith(("#", ">"))] == [f"#${{{name.upper()}_SHA256}}"]


def test_the_key_patterns_reach_as_many_shards_as_the_settings_allow() -> None:
    (bound,) = [limit.le for limit in RedisSettings.model_fields["shards"].metadata if hasattr(limit, "le")]
    assert bound == 16


@pytest.mark.parametrize("identity", SETTINGS_IDENTITIES, ids=lambda identity: identity.name)
def test_each_identitys_settings_hold_its_own_credentials_only(identity: object) -> None:
    assert isinstance(identity, type(IDENTITIES[0]))
    text = settings_text(
        identity,
        ports=PORTS,
        redis_password="redis-pw" if identity.grants else None,
        store_password="store-pw" if identity.store_role else None,
        spool=Path("/data/spool"),
    )
    settings = settings_from({}, text)
    url = settings.redis.url.get_secret_value()
    assert url == (
        f"redis://{identity.name}:redis-pw@127.0.0.1:9100/0" if identity.grants else "redis://127.0.0.1:6379/0"
    )
    assert settings.store.password.get_secret_value() == ("store-pw" if identity.store_role else "")
    assert ("store-pw" in text) == bool(identity.store_role)
    assert (settings.scrubber.port, settings.writer.port) == (9102, 9103)


def test_a_persons_own_settings_are_carried_over_but_not_their_addresses() -> None:
    base = {
        "redis": {"url": "redis://elsewhere", "shards": 2},
        "store": {"password": "other", "tls_ca_file": "/x"},
        "scrubber": {"port": 1, "batch_entries": 9},
        "retention": {"days": 3, "projects": {"a.b": 7}},
        "capture": {"scrub_pii": False, "service": 'quoted " and \N{SNOWMAN} \\'},
    }
    writer = next(identity for identity in IDENTITIES if identity.name == "writer")
    text = settings_text(
        writer, ports=PORTS, redis_password="r", store_password="s", spool=Path("/data/spool"), base=base
    )
    settings = settings_from({}, text)
    assert settings.redis.shards == 2
    assert "elsewhere" not in text
    assert "tls_ca_file" not in tomllib.loads(text)["store"]
    assert (settings.scrubber.port, settings.scrubber.batch_entries) == (9102, 9)
    assert settings.retention.projects == {"a.b": 7}
    assert settings.capture.scrub_pii is False
    assert settings.capture.service == 'quoted " and \N{SNOWMAN} \\'


def test_what_waits_in_the_installations_own_spool_is_sent_whatever_its_ports_were_before() -> None:
    producer = next(identity for identity in IDENTITIES if identity.name == "producer")
    named = {"ports": PORTS, "redis_password": "r", "store_password": None, "spool": Path("/data/spool")}
    own = settings_from({}, settings_text(producer, **named)).capture  # type: ignore[arg-type]
    assert (own.spool_dir, own.spool_adopt) == (Path("/data/spool"), "all")
    base = {"capture": {"spool_dir": "/shared/spool"}}
    shared = settings_from({}, settings_text(producer, **named, base=base)).capture  # type: ignore[arg-type]
    assert (shared.spool_dir, shared.spool_adopt) == (Path("/shared/spool"), "")


def test_a_secret_is_in_the_file_of_the_service_that_needs_it_and_in_no_other() -> None:
    base = {"notifier": {"webhook_secret": "planted", "apprise_urls": "slack://planted", "group_wait_s": 9}}
    for identity in SETTINGS_IDENTITIES:
        text = settings_text(
            identity, ports=PORTS, redis_password="r", store_password="s", spool=Path("/data/spool"), base=base
        )
        assert ("planted" in text) == (identity.name == "notifier")
        assert settings_from({}, text).notifier.group_wait_s == 9


def test_a_secret_in_the_environment_reaches_only_the_service_that_needs_it() -> None:
    environment = {"ASSAY_NOTIFIER_WEBHOOK_SECRET": "planted", "ASSAY_NOTIFIER_GROUP_WAIT_S": "9", "PATH": "/bin"}
    assert without_secrets(environment, of_others_than="notifier") == environment
    assert set(without_secrets(environment, of_others_than="writer")) == {"ASSAY_NOTIFIER_GROUP_WAIT_S", "PATH"}
    assert set(without_secrets(environment)) == {"ASSAY_NOTIFIER_GROUP_WAIT_S", "PATH"}


@pytest.mark.parametrize(
    ("name", "streams"), [("judge", [EVENTS]), ("drift", [EVENTS, SCORES, FAILURES]), ("notifier", [ALERTS])]
)
def test_who_only_reads_a_stream_cannot_delete_from_it_or_trim_it(
    server: Server, root: redis.Redis, name: str, streams: list[Stream]
) -> None:
    client = server.as_(name)
    for stream in streams:
        key = stream.key()
        (entry_id, _), *_ = root.xrange(key)
        assert denied(client, "XDEL", key, entry_id)
        assert denied(client, "XTRIM", key, "MAXLEN", 0)
        assert denied(client, "EVAL", "return redis.call('XTRIM', KEYS[1], 'MAXLEN', 0)", 1, key)
        assert root.xlen(key) == 1


def test_an_entry_that_only_its_reader_reads_is_buried_by_who_may_not_delete(server: Server, root: redis.Redis) -> None:
    key, judge = EVENTS.key(), server.as_("judge")
    for group in ("writer", "drift"):
        root.xgroup_destroy(key, group)
    ((_, [(entry_id, _)]),) = judge.execute_command("XREADGROUP", "GROUP", "judge", "one", "STREAMS", key, ">")
    dead_letter = judge.register_script(scripts.DEAD_LETTER)
    assert (
        dead_letter(
            [key, DEAD.key(), FAILURES.key()],
            [here(root), "judge", entry_id, "judge", "other", "Error", 5, "{}", DEAD_BYTES],
        )
        == 1
    )
    assert (root.xlen(DEAD.key()), root.xpending(key, "judge")["pending"]) == (2, 0)


def alert_of(alert_id: object, of_transition: object = None) -> bytes:
    return json.dumps(
        {"alert_id": alert_id and str(alert_id), "transition_id": str(of_transition or alert_id)}
    ).encode()


def test_an_evaluator_hands_alerts_in_and_cannot_remove_those_of_others(server: Server, root: redis.Redis) -> None:
    evaluator, key = server.as_("evaluator"), ALERTS.key()
    for command in (
        ("XADD", key, "MAXLEN", 0, "*", "data", "x"),
        ("XTRIM", key, "MAXLEN", 0),
        ("DEL", key),
        ("XLEN", key),
    ):
        assert denied(evaluator, *command)
    inbox = alert_inbox_key()
    own, others = (alert_of(handed_in(uuid.uuid5(uuid.NAMESPACE_OID, name))) for name in ("one", "two"))
    drift = uuid.uuid5(uuid.NAMESPACE_OID, "drift")
    theirs = [
        alert_of(drift), alert_of(handed_in(drift), transition_id(drift, 2)), alert_of(drift.hex), alert_of(None),
        b"no JSON", b"[" * 5_000, b"7", b"{}",
    ]  # fmt: skip
    assert evaluator.rpush(inbox, own, *theirs, others) == 2 + len(theirs)
    for command in (
        ("LTRIM", inbox, 1, 0),
        ("LPOP", inbox),
        ("DEL", inbox),
        ("LSET", inbox, 0, "x"),
        ("LRANGE", inbox, 0, -1),
    ):
        assert denied(evaluator, *command)
    admit = server.as_("writer").register_script(scripts.ADMIT)
    assert admit([inbox, key], [100]) == [2, len(theirs)], "nobody's episode but its own is ended or hidden"
    assert admit([inbox, key], [100]) == [0, 0]
    assert [fields[b"data"] for _, fields in root.xrange(key)] == [SECRET, own, others]
