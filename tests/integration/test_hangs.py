"""What is said of a process that runs and does nothing: a service, Redis or the store that hangs, as under SIGSTOP."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest
import redis

from assay_access.identities import REDIS_IDENTITIES, STORE_IDENTITIES
from assay_access.secrets import Passwords
from assay_access.settings_files import Ports
from assay_local.processes import LocalStack
from assay_local.status_line import Status
from assay_local.supervisor import Spec, Supervisor
from assay_operations.doctor.probes import stream_facts
from assay_runtime import connection
from assay_runtime.delivery import Consumer
from assay_runtime.entries import Bounds, Entry, Outcome
from assay_runtime.faststream_adapter import leave_groups_alone, make_broker, subscribe
from assay_runtime.finishing import settle_finish
from assay_schema.ids import first_row_at
from assay_schema.settings import DeliverySettings, RedisSettings
from assay_schema.streams import CAPTURE, EVENTS, FAILURES, FIELD, SCORES, Stream, scrubbed_low_watermark_key
from tests.support.cli import Cli
from tests.support.health import said
from tests.support.ports import free_port
from tests.support.redis import EACH_SERVER, INSTALLED, RedisServer
from tests.support.replicated_redis import until
from tests.support.store import PASSWORD, StoreServer

#: Short enough to wait for half of it.
VISIBILITY_S = 8.0


@pytest.fixture
def store(migrated: StoreServer) -> Iterator[StoreServer]:
    yield migrated
    os.kill(migrated.pid, signal.SIGCONT)


@contextlib.contextmanager
def service(name: str, directory: Path, **settings: str) -> Iterator["tuple[subprocess.Popen[bytes], Path]"]:
    """A service's process and its log, gone afterwards."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ASSAY_")} | settings
    log = directory / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", f"assay_{name}"], env=environment, stdout=out, stderr=out)
    try:
        yield process, log
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait(60)


def doctor(cli: Cli, extra: str) -> dict[str, dict[str, str]]:
    done = cli.call("doctor", "--json", role="owner", extra=extra)
    assert done.stderr == b"", done.stderr.decode()
    return {finding["check"]: finding for finding in json.loads(done.stdout)}


@EACH_SERVER
def test_a_service_that_hangs_fails_while_entries_wait_for_it(redis_server: RedisServer, tmp_path: Path) -> None:
    port = free_port()
    extra = f"[delivery]\nvisibility_timeout_s = {VISIBILITY_S}\n[scrubber]\nport = {port}\n"
    settings = {
        "ASSAY_REDIS_URL": redis_server.url,
        "ASSAY_SCRUBBER_PORT": str(port),
        "ASSAY_DELIVERY_VISIBILITY_TIMEOUT_S": str(VISIBILITY_S),
    }
    cli = Cli(tmp_path, redis_url=redis_server.url)
    with service("scrubber", tmp_path, **settings) as (process, _), redis_server.client() as client:
        until(lambda: said(port, "/readyz")[0] == 200, "it is ready")
        found = doctor(cli, extra)
        assert (found["stream capture"]["status"], found["memory of the scrubber"]["status"]) == ("ok", "ok")
        assert ", peak " in found["memory of the scrubber"]["summary"]
        process.send_signal(signal.SIGSTOP)
        client.xadd(CAPTURE.key(), {FIELD: "{}"})
        until(lambda: doctor(cli, extra)["stream capture"]["status"] == "fail", "it is noticed")
        found = doctor(cli, extra)
        assert "no sign of life of the scrubber for " in found["stream capture"]["summary"]
        memory = found["memory of the scrubber"]
        assert memory["status"] == "warn"
        assert memory["summary"] == f"unknown: 127.0.0.1:{port} accepts connections but does not answer"
        process.kill()
        process.wait(60)
        assert doctor(cli, extra)["memory of the scrubber"]["summary"].endswith(f":{port} does not answer")


@EACH_SERVER
async def test_consumers_that_are_idle_held_back_or_long_at_work_are_heard(redis_server: RedisServer) -> None:
    redis = RedisSettings.model_validate({"url": redis_server.url})
    settings, client = DeliverySettings(visibility_timeout_s=20), connection.connect(redis)
    release = asyncio.Event()

    async def storing(entries: Sequence[Entry]) -> list[Outcome]:
        await release.wait()
        return [Outcome(entry.id) for entry in entries]

    def consumer(stream: Stream) -> Consumer:
        return Consumer(
            client, stream, group="writer", name="one", process=storing, finish=settle_finish(client, stream, "writer", 0),
            bounds=Bounds(entries=2, bytes=1_000_000, age_s=0), settings=settings,
        )  # fmt: skip

    _, held_back, _ = consumers = [consumer(stream) for stream in (EVENTS, FAILURES, SCORES)]
    broker = make_broker(redis)
    for each in consumers:
        await each.prepare()
        subscribe(broker, each, dict)
    await held_back.hold_back("a mark")
    await leave_groups_alone(broker)
    await broker.start()
    for each in consumers:
        each.start()
    for stream in (FAILURES, SCORES):
        for _ in range(9):
            await client.xadd(stream.key(), {FIELD: "1"})
    try:
        for _ in range(120):  # longer than silence may last
            await asyncio.sleep(0.1)
            found = await stream_facts(client, 1)
            assert not any(group.silent(settings.visibility_timeout_s) for facts in found for group in facts.groups)
        waiting = {facts.name: sum(group.waiting for group in facts.groups) for facts in found}
        assert (waiting["events"], waiting["failures"], waiting["scores"]) == (0, 9, 9)
    finally:
        release.set()
        await asyncio.gather(*(each.stop() for each in consumers))
        await broker.stop()
        await client.aclose()


@contextlib.contextmanager
def endless_script(server: RedisServer) -> Iterator[None]:
    """Redis is busy: a script runs that does not end, and all but a few commands are refused."""

    def run() -> None:
        with server.client() as client, contextlib.suppress(redis.RedisError):
            client.eval("while true do end", 0)

    with server.client() as client:
        client.config_set("busy-reply-threshold", 1)
        thread = threading.Thread(target=run)
        thread.start()
        try:
            until(lambda: is_busy(client), "the script runs")
            yield
        finally:
            client.script_kill()
            thread.join(60)


def is_busy(client: redis.Redis) -> bool:
    try:
        client.dbsize()
    except redis.ResponseError as error:
        return str(error).startswith("BUSY")
    return False


async def test_a_reader_that_redis_refuses_waits_and_then_reads_on(redis_server: RedisServer) -> None:
    settings = RedisSettings(url=redis_server.url)
    client, taken = connection.connect(settings), asyncio.Event()

    async def seen(entries: Sequence[Entry]) -> list[Outcome]:
        taken.set()
        return [Outcome(entry.id) for entry in entries]

    consumer = Consumer(
        client, EVENTS, group="writer", name="one", process=seen, finish=settle_finish(client, EVENTS, "writer", 0),
        bounds=Bounds(entries=2, bytes=1_000_000, age_s=0), settings=DeliverySettings(),
    )  # fmt: skip
    broker = make_broker(settings)
    await consumer.prepare()
    subscribe(broker, consumer, dict)
    await leave_groups_alone(broker)
    await broker.start()
    consumer.start()
    try:
        with endless_script(redis_server):
            await asyncio.sleep(3)
        [subscriber] = broker.subscribers
        readers = len(subscriber.tasks)  # type: ignore[attr-defined]
        assert readers == 1, f"{readers} readers were begun, and all of them are kept"
        await client.xadd(EVENTS.key(), {FIELD: "1"})
        async with asyncio.timeout(60):
            await taken.wait()
    finally:
        await consumer.stop()
        await broker.stop()
        await client.aclose()


def test_a_service_that_starts_while_a_script_does_not_end_waits_for_it(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    port = free_port()
    settings = {"ASSAY_REDIS_URL": redis_server.url, "ASSAY_NOTIFIER_PORT": str(port)}
    with contextlib.ExitStack() as stack:
        busy = stack.enter_context(contextlib.ExitStack())
        busy.enter_context(endless_script(redis_server))
        process, log = stack.enter_context(service("notifier", tmp_path, **settings))
        until(lambda: "a script does not end" in log.read_text(), "it says what it waits for")
        busy.close()
        until(lambda: said(port, "/readyz")[0] == 200, "it is ready")
        assert process.poll() is None


def test_of_a_redis_that_hangs_nothing_is_claimed(
    redis_server: RedisServer, store: StoreServer, tmp_path: Path
) -> None:
    redis_server.kill(signal.SIGSTOP)
    found = doctor(Cli(tmp_path, redis_url=redis_server.url, store_url=store.url), "")
    assert (found["redis"]["status"], found["watermark"]["status"]) == ("fail", "warn")
    assert "accepts connections but does not answer" in found["redis"]["hint"]
    assert found["watermark"]["summary"].endswith("; unknown whether entries wait")


def test_a_live_tail_of_a_redis_that_hangs_says_so_at_once_instead_of_trying_on(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    redis_server.kill(signal.SIGSTOP)
    done = Cli(tmp_path, redis_url=f"{redis_server.url}").run("tail", "--no-follow", role="sre")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Redis accepts connections but does not answer" in done.stderr
    assert b"is it running?" not in done.stderr
    assert b"waiting for it" not in done.stderr


def test_the_doctor_says_how_a_script_that_does_not_end_is_ended(redis_server: RedisServer, tmp_path: Path) -> None:
    with endless_script(redis_server):
        found = doctor(Cli(tmp_path, redis_url=redis_server.url), "")["redis"]
    assert found["status"] == "fail"
    assert "SCRIPT KILL" in found["hint"]
    assert "docs/security.md" in found["hint"]


def test_commands_say_of_a_store_that_hangs_that_it_does(
    store: StoreServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    cli = Cli(tmp_path, redis_url=redis_server.url, store_url=store.url)
    os.kill(store.pid, signal.SIGSTOP)
    found = doctor(cli, "")["store"]
    assert found["status"] == "fail"
    assert "gave no answer within 5 s" in found["summary"]
    assert "restart it" in found["hint"]
    done = cli.call("query", "SELECT 1", role="sre", extra="timeout_s = 1\n")
    assert done.returncode == 2
    assert b"gave no answer within 1 s" in done.stderr
    assert b"assay up" not in done.stderr
    # However long an answer to a question may take: the first answer of a store takes milliseconds.
    done = cli.run("query", "SELECT 1", role="sre", extra="timeout_s = 3600\n")
    assert done.returncode == 2
    assert b"gave no answer within 10 s" in done.stderr
    assert b"assay doctor" in done.stderr


@pytest.mark.slow
def test_an_answer_may_take_longer_than_the_first_one(
    store: StoreServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    cli = Cli(tmp_path, redis_url=redis_server.url, store_url=store.url)
    sql = "SELECT count() FROM (SELECT sleepEachRow(1) FROM numbers(12) SETTINGS max_block_size = 1)"
    done = cli.call("query", sql, role="owner", extra="timeout_s = 60\n")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_a_writer_whose_store_hangs_is_not_ready(
    busy: bool, store: StoreServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    port = free_port()
    settings = {
        "ASSAY_REDIS_URL": redis_server.url,
        "ASSAY_STORE_URL": store.url,
        "ASSAY_STORE_USER": "writer",
        "ASSAY_STORE_PASSWORD": PASSWORD,
        "ASSAY_STORE_TIMEOUT_S": "600",
        "ASSAY_WRITER_PORT": str(port),
    }

    def sink_up() -> set[str]:
        lines = [line for line in said(port, "/metrics")[1].splitlines() if line.startswith("assay_sink_up{")]
        return {line.rpartition(" ")[2] for line in lines}

    with service("writer", tmp_path, **settings), redis_server.client() as client:
        until(lambda: said(port, "/readyz")[0] == 200 and sink_up() == {"1.0"}, "it is ready")
        os.kill(store.pid, signal.SIGSTOP)
        if busy:
            client.xadd(SCORES.key(), {FIELD: "{}"})
            client.xadd(EVENTS.key(), {FIELD: "{}"})

        def says_so() -> bool:
            client.set(
                scrubbed_low_watermark_key(), first_row_at(int(time.time() * 1000))
            )  # as the scrubber lets it follow the clock
            return "the store is away" in said(port, "/readyz")[1]

        until(says_so, "it says so")
        until(lambda: sink_up() == {"0.0"}, "its metric says so")
        os.kill(store.pid, signal.SIGCONT)
        until(lambda: said(port, "/readyz")[0] == 200 and sink_up() == {"1.0"}, "it is back")


def test_the_drivers_of_the_store_say_nothing_beside_our_own_lines(redis_server: RedisServer, tmp_path: Path) -> None:
    settings = {
        "ASSAY_REDIS_URL": redis_server.url,
        "ASSAY_STORE_URL": f"http://127.0.0.1:{free_port()}",
        "ASSAY_STORE_USER": "writer",
        "ASSAY_STORE_PASSWORD": PASSWORD,
        "ASSAY_WRITER_PORT": str(free_port()),
    }
    with service("writer", tmp_path, **settings) as (_, log):
        until(lambda: "the store does not report" in log.read_text(), "it tried")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["logger"].partition(".")[0] for line in lines} <= {"assay", "assay_runtime", "assay_writer"}


async def test_the_status_line_counts_again_soon_after_the_store_is_back(store: StoreServer, tmp_path: Path) -> None:
    passwords = Passwords(
        {identity.name: "x" for identity in REDIS_IDENTITIES},
        {identity.name: PASSWORD for identity in STORE_IDENTITIES},
    )
    ports = replace(Ports(*[free_port()] * len(fields(Ports))), store=store.port)
    system = LocalStack(tmp_path, ports, INSTALLED, passwords)
    supervisor = Supervisor([[Spec("writer", ("true",), os.environ)]], on_line=print, announce=print, on_change=print)
    admin = system.redis_client("admin")
    status = Status(system, supervisor, admin)

    async def says(words: str) -> None:
        deadline = time.monotonic() + 60
        while words not in (line := await status.line()):
            assert time.monotonic() < deadline, line
            await asyncio.sleep(0.1)

    try:
        await says("| stored ")
        os.kill(store.pid, signal.SIGSTOP)
        await says("store does not answer")
        os.kill(store.pid, signal.SIGCONT)
        await says("| stored ")
    finally:
        await admin.aclose()
