"""Dead letters, from the real consumer that buries them to the row of one that was requeued, with each identity's own rights."""

import asyncio
import contextlib
import json
import os
import pty
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis
from click.testing import Result
from typer.testing import CliRunner

from assay_access.acl_file import acl_file, password_hash
from assay_access.identities import REDIS_IDENTITIES
from assay_cli.main import app
from assay_operations.dead_letters.letters import DeadLetter
from assay_runtime import dead_letters, metrics
from assay_runtime.connection import Client, connect
from assay_runtime.delivery import Consumer
from assay_runtime.entries import Bounds, Entry, Outcome
from assay_runtime.finishing import forward_finish, settle_finish
from assay_runtime.queries import named_queries
from assay_runtime.store import connect as connect_store
from assay_schema.ids import new_event_id
from assay_schema.published import examples
from assay_schema.settings import DeliverySettings, RedisSettings, Settings
from assay_schema.span_entry import SpanEntry
from assay_schema.streams import CAPTURE, DEAD, EVENTS, FAILURES, FIELD, SPANS, Stream
from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import Policy
from assay_scrubber.process import Processor
from tests.support.cli import Cli
from tests.support.ports import free_port
from tests.support.redis import SERVERS, RedisServer
from tests.support.store import PASSWORD, StoreServer
from tests.support.wait import until

BOTH = pytest.mark.parametrize("system", SERVERS, indirect=True)
SECRET = "the account of jane.doe@example.com"
DAY_MS = 86_400_000
FAST = DeliverySettings(visibility_timeout_s=0.2, max_deliveries=2)


class System:
    """A Redis with the identities' access rules, and the command."""

    def __init__(self, directory: Path, server: RedisServer) -> None:
        self.directory, self.server = directory, server
        self.root = server.client()
        self.shards = 1

    def url(self, identity: str) -> str:
        return f"redis://{identity}:{identity}-password@127.0.0.1:{self.server.port}/0"

    def settings(self, identity: str) -> RedisSettings:
        return RedisSettings.model_validate({"url": self.url(identity), "shards": self.shards})

    @contextlib.asynccontextmanager
    async def client(self, identity: str) -> AsyncIterator[Client]:
        client = connect(self.settings(identity), attempts=0)
        yield client
        await client.aclose()

    def cli(self, **options: Any) -> Cli:
        return Cli(self.directory, redis_url=self.url("{role}"), shards=self.shards, **options)

    def assay(self, *arguments: str, code: int = 0) -> Result:
        """`assay dead ...` as the operator, in this process: quicker, and the same."""
        config = self.cli().settings_file("operator")
        with contextlib.chdir(self.directory):
            done = CliRunner().invoke(app, ["dead", *arguments], env={"ASSAY_CONFIG": str(config), "COLUMNS": "300"})
        assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
        return done

    def listed(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.assay("list", "--json", *arguments).stdout.splitlines()]

    def bury(
        self, stream: Stream = CAPTURE, data: bytes = b"{}", *, shard: int = 0, letter_id: str = "*", **fields: str
    ) -> str:
        """A dead letter such as the script makes it."""
        told = {"stream": stream.key(shard), "entry_id": "1-0", "stage": stream.groups[0], "reason": "other"}
        told |= {"error_class": "TooManyDeliveries", "deliveries": "5", **fields}
        return self.root.xadd(DEAD.key(shard), {FIELD: data, **told}, id=letter_id).decode()

    def data(self, stream: Stream, shard: int = 0) -> list[bytes]:
        return [fields[b"data"] for _, fields in self.root.xrange(stream.key(shard))]


@pytest.fixture
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[System]:
    program = SERVERS[getattr(request, "param", "installed")]
    directory = tmp_path / "redis"
    directory.mkdir()
    hashes = {identity.name: password_hash(f"{identity.name}-password") for identity in REDIS_IDENTITIES}
    identities = [
        line for line in acl_file(hashes, program.version).splitlines() if not line.startswith("user default")
    ]
    (directory / "users.acl").write_text("\n".join([*identities, "user default on nopass ~* &* +@all\n"]))
    server = RedisServer(directory, "--aclfile", str(directory / "users.acl"), binary=program.path).start()
    with contextlib.closing(System(tmp_path, server).root):
        yield System(tmp_path, server)
    server.stop()


def feedback(text: str) -> tuple[str, bytes]:
    """An event as producers send it, and its `event_id`."""
    event = json.loads(next(e for e in examples("capture") if b'"feedback"' in e.document_bytes).document_bytes)
    event |= {"event_id": new_event_id(), "project": "shop", "service": "search-api"}
    event["payload"]["text"] = text
    return event["event_id"], orjson.dumps(event)


async def give_up(system: System, stream: Stream) -> None:
    """Run the real consumer, as the identity whose work it is, over work that fails for its own reasons, until all is given up."""
    group = stream.groups[0]

    async def failing(_: Sequence[Entry]) -> list[Outcome]:
        raise ZeroDivisionError

    async with system.client(group) as client:
        finish = forward_finish(client, group, 0, 1) if stream is CAPTURE else settle_finish(client, stream, group, 0)
        consumer = Consumer(
            client, stream, group=group, name="one", process=failing, finish=finish,
            bounds=Bounds(entries=100, bytes=1_000_000, age_s=0), settings=FAST,
        )  # fmt: skip
        with contextlib.suppress(redis.ResponseError):  # the group may be there
            await client.xgroup_create(stream.key(), group, id="0")
        await client.xreadgroup(group, "one", {stream.key(): ">"})  # what an earlier run of this consumer read
        await consumer.prepare()
        consumer.start()
        try:
            async with asyncio.timeout(60):
                while True:
                    state = await client.xpending(stream.key(), group)
                    if not state["pending"]:
                        break
                    await asyncio.sleep(0.02)
        finally:
            await consumer.stop()


@contextlib.contextmanager
def services(system: System, store: StoreServer) -> Iterator[dict[str, int]]:
    """The scrubber's and the writer's processes, each as itself; yields their ports."""
    ports, processes = {name: free_port() for name in ("scrubber", "writer")}, []
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    for name, port in ports.items():
        settings = {
            "ASSAY_REDIS_URL": system.url(name),
            f"ASSAY_{name}_PORT".upper(): str(port),
            "ASSAY_STORE_URL": store.url,
            "ASSAY_STORE_USER": "writer",
            "ASSAY_STORE_PASSWORD": PASSWORD,
            "ASSAY_WRITER_BATCH_AGE_MS": "20",
        }
        with (system.directory / f"{name}.log").open("wb") as log:
            processes.append(
                subprocess.Popen([sys.executable, "-m", f"assay_{name}"], env=clean | settings, stderr=log)
            )
    try:
        yield ports
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            assert process.wait(60) == 0


def expired_by(ports: dict[str, int]) -> float:
    """How many letters the services say have expired."""
    total = 0.0
    for port in ports.values():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:  # loopback
            for line in answer.read().decode().splitlines():
                if line.startswith('assay_entries_total{outcome="expired",stream="dead"}'):
                    total += float(line.rsplit(" ", 1)[1])
    return total


def test_a_poison_entry_is_buried_shown_without_its_text_requeued_once_mended_and_stored_once(
    system: System, tables: Path, tmp_path: Path
) -> None:
    forgotten = system.bury(letter_id=f"{int(time.time() * 1000) - 8 * DAY_MS}-0")
    event_id, poison = feedback(SECRET)
    system.root.xadd(CAPTURE.key(), {FIELD: poison})
    asyncio.run(give_up(system, CAPTURE))

    [facts] = system.listed("--since", "1h")
    assert (facts["event_id"], facts["project"], facts["service"]) == (event_id, "shop", "search-api")
    assert (facts["stream"], facts["stage"], facts["error_class"]) == ("capture", "scrubber", "TooManyDeliveries")
    assert facts["bytes"] == len(poison)
    for hidden in (["list"], ["list", "--json"], ["show", facts["id"]], ["show", facts["id"], "--json"]):
        assert "jane.doe" not in system.assay(*hidden).output
    assert "jane.doe" in system.assay("show", facts["id"], "--unsafe-raw").stdout

    with contextlib.ExitStack() as running:
        store = running.enter_context(StoreServer(tmp_path / "store", tables=tables))
        sre = running.enter_context(connect_store(store.settings("sre").store))
        failures = named_queries()["failures"]

        def failed() -> list[tuple[str, int, int]]:
            rows = sre.query(failures.sql, parameters=failures.defaults).named_results()
            return [(row["error_class"], row["lost"], row["recovered"]) for row in rows]

        def stored() -> list[tuple[Any, ...]]:
            return [
                tuple(row) for row in sre.query("SELECT toString(event_id), text FROM feedback ORDER BY id").result_rows
            ]

        ports = running.enter_context(services(system, store))
        other_id, other = feedback("fine")
        system.root.xadd(CAPTURE.key(), {FIELD: other})
        until(lambda: stored() == [(other_id, "fine")])
        until(lambda: failed() == [("TooManyDeliveries", 1, 0)])
        until(lambda: not system.root.xrange(DEAD.key(), forgotten, forgotten))
        until(lambda: expired_by(ports) == 1)

        assert system.assay("requeue", facts["id"]).stdout == "requeued 1 dead letter: 1 to capture\n"
        until(lambda: len(stored()) == 2)
        assert stored()[1][0] == event_id, (
            "its id is the greater: an export that has passed the other event still meets it"
        )
        assert "jane.doe" not in stored()[1][1]
        assert failed() == [("TooManyDeliveries", 0, 1)]
        doctor = system.cli(store_url=store.url).run("doctor", "--json", role="owner")
        [finding] = [each for each in json.loads(doctor.stdout) if each["check"].startswith("failures")]
        assert (finding["status"], finding["summary"]) == ("ok", "other 1 (1 dead letters, 1 stored since)")
    assert system.root.xlen(DEAD.key()) == 0
    said = (tmp_path / "scrubber.log").read_text() + (tmp_path / "writer.log").read_text()
    assert "dead letters expired" in said
    assert "jane.doe" not in said


def test_spans_that_were_given_up_are_shown_without_their_text_and_requeued_as_they_were(system: System) -> None:
    entry = SpanEntry("shop", "web", "ab" * 16, "traces", "protobuf", SECRET.encode() + b"\xff").encoded()
    system.root.xadd(SPANS.key(), {FIELD: entry})
    asyncio.run(give_up(system, SPANS))
    [failure] = map(json.loads, system.data(FAILURES))
    assert (failure["project"], failure["stage"]) == ("shop", "assembler")
    [facts] = system.listed()
    assert facts["stream"] == "spans"
    for hidden in (["list"], ["show", facts["id"]], ["show", facts["id"], "--json"]):
        assert "jane.doe" not in system.assay(*hidden).output
    assert system.assay("requeue", "--all").stdout == "requeued 1 dead letter: 1 to spans\n"
    assert system.data(SPANS) == [entry]


@BOTH
def test_a_burial_says_whose_event_it_was_in_its_failure_and_a_scrubbed_letter_comes_back_as_an_event(
    system: System,
) -> None:
    event_id, raw = feedback("mail " + SECRET)
    processor = Processor(Scrubber(Policy()))
    now = time.time_ns() // 1_000_000
    [outcome] = processor.process(iter([Entry(f"{now}-7", raw)]))
    assert outcome.event
    system.root.xadd(EVENTS.key(), {FIELD: b'{"id":14,' + outcome.event[1:], "low": "13"})
    asyncio.run(give_up(system, EVENTS))
    [failure] = map(json.loads, system.data(FAILURES))
    assert (failure["event_id"], failure["project"], failure["stage"]) == (event_id, "shop", "writer")

    [facts] = system.listed()
    assert (facts["stream"], facts["scrubbed"]) == ("events", True)
    shown = system.assay("show", facts["id"]).stdout
    assert '"verdict"' in shown
    assert "jane.doe" not in shown
    assert system.assay("requeue", "--all").stdout == "requeued 1 dead letter: 1 to capture\n"
    [again] = system.data(CAPTURE)
    [second] = processor.process(iter([Entry(f"{now + 1}-0", again)]))
    assert second.event
    first_event, second_event = json.loads(outcome.event), json.loads(second.event)
    added = {"created_at", "pii_families", "pii_attempted", "pii_blocked"}
    assert {k: v for k, v in second_event.items() if k not in added} == {
        k: v for k, v in first_event.items() if k not in added
    }


@pytest.mark.parametrize("example", examples("events"), ids=lambda example: example.name)
def test_every_scrubbed_example_comes_back_as_an_event_that_the_scrubber_passes_on_unchanged(example: Any) -> None:
    fields = {b"data": example.document_bytes, b"stream": EVENTS.key().encode()}
    _, data = DeadLetter.of(0, b"1-0", fields).requeued()
    [outcome] = Processor(None).process(iter([Entry("1899999999999-0", data)]))
    assert outcome.event, outcome.failure
    before, after = orjson.loads(example.document_bytes), orjson.loads(outcome.event)
    assert after["payload"] == before["payload"] | after["payload"]
    assert after["event_id"] == before["event_id"]


@BOTH
def test_raw_text_is_shown_only_when_asked_for_and_control_characters_never_reach_a_terminal(system: System) -> None:
    raw = system.bury(CAPTURE, SECRET.encode() + b"\x1b[2J")
    unscrubbed = system.bury(EVENTS, b'{"policy": "off", "payload": "%s"}' % SECRET.encode())
    for letter_id in (raw, unscrubbed):
        for arguments in (["show", letter_id], ["show", letter_id, "--json"], ["list"], ["list", "--json"]):
            done = system.assay(*arguments)
            assert "jane.doe" not in done.stdout + done.stderr
        assert "--unsafe-raw" in system.assay("show", letter_id).stdout
        assert SECRET in system.assay("show", letter_id, "--unsafe-raw").stdout
        assert SECRET in json.loads(system.assay("show", letter_id, "--unsafe-raw", "--json").stdout)["content"]
    assert "\x1b" not in system.assay("show", raw, "--unsafe-raw").stdout


@BOTH
async def test_two_who_requeue_at_once_send_each_letter_once(system: System) -> None:
    total = 3 * dead_letters.PAGE + 7
    for n in range(total):
        system.bury(CAPTURE, b"%d" % n)

    async def everything() -> list[bool]:
        moved: list[bool] = []
        async with system.client("operator") as client:
            async for page in dead_letters.letters(client, 0):
                moves = [dead_letters.Move(i.decode(), CAPTURE, fields[b"data"]) for i, fields in page]
                moved += await dead_letters.requeue(client, 0, moves)
        return moved

    results = await asyncio.gather(*(everything() for _ in range(3)))
    assert sum(map(sum, results)) == total
    assert sorted(system.data(CAPTURE), key=int) == [b"%d" % n for n in range(total)]
    assert system.root.xlen(DEAD.key()) == 0


def test_all_are_requeued_in_the_order_of_their_burial_and_each_to_where_it_belongs(system: System) -> None:
    numbers = count()
    for _ in range(dead_letters.PAGE):
        system.bury(CAPTURE, b"%d" % next(numbers))
        system.bury(FAILURES, b"%d" % next(numbers))
    done = system.assay("requeue", "--all", "--dry-run")
    assert (
        done.stdout
        == f"would requeue {2 * dead_letters.PAGE} dead letters: {dead_letters.PAGE} to capture, {dead_letters.PAGE} to failures\n"
    )
    assert system.root.xlen(DEAD.key()) == 2 * dead_letters.PAGE
    assert system.assay("requeue", "--all").stdout == done.stdout.replace("would requeue", "requeued")
    assert system.data(CAPTURE) == [b"%d" % n for n in range(0, 2 * dead_letters.PAGE, 2)]
    assert system.data(FAILURES) == [b"%d" % n for n in range(1, 2 * dead_letters.PAGE, 2)]
    assert system.root.xlen(DEAD.key()) == 0
    assert system.assay("requeue", "--all").stdout == "requeued 0 dead letters\n"


def test_what_cannot_be_requeued_stays_and_is_named_and_so_is_what_is_not_there(system: System) -> None:
    good = system.bury(CAPTURE, b"{}")
    broken = system.bury(EVENTS, b'{"text": "' + SECRET.encode())
    done = system.assay("requeue", good, broken, "1-0", code=1)
    assert done.stdout == "requeued 1 dead letter: 1 to capture\n"
    assert done.stderr.splitlines() == [
        f"{broken} cannot be requeued: it is not an event: its JSON is invalid; drop it",
        "not found: 1-0",
    ]
    assert [facts["id"] for facts in system.listed()] == [broken]


@BOTH
def test_a_letter_stays_when_redis_has_no_memory_for_its_new_entry(system: System) -> None:
    letter_id = system.bury(CAPTURE, b"kept")
    system.root.config_set("maxmemory", 1)
    done = system.assay("requeue", letter_id, code=2)
    assert "maxmemory" in done.stderr
    assert done.stdout == "requeued 0 dead letters\n"
    assert (system.data(DEAD), system.root.xlen(CAPTURE.key())) == ([b"kept"], 0)


def test_filters_narrow_what_is_listed_requeued_and_dropped(system: System) -> None:
    now_ms = int(time.time() * 1000)
    old = system.bury(CAPTURE, letter_id=f"{now_ms - 3 * DAY_MS}-0")
    scrubbers = system.bury(CAPTURE, letter_id=f"{now_ms - 60_000}-0")
    writers = system.bury(FAILURES, letter_id=f"{now_ms - 60_000}-1")
    down = system.bury(EVENTS, b'{"kind": 1}', letter_id=f"{now_ms - 60_000}-2", reason="db_down")

    def ids(*arguments: str) -> list[str]:
        return [facts["id"] for facts in system.listed(*arguments)]

    assert ids() == [old, scrubbers, writers, down]
    assert ids("--since", "2h") == [scrubbers, writers, down]
    assert ids("--stage", "writer") == [writers, down]
    assert ids("--reason", "db_down") == [down]
    assert ids("--stage", "writer", "--reason", "other", "--since", "2h") == [writers]
    done = system.assay("list")
    assert done.stdout.splitlines()[-1] == "4 dead letters: scrubber/other 2, writer/db_down 1, writer/other 1"
    assert "check_violation" in system.assay("list", "--reason", "poison", code=2).stderr
    assert system.assay("requeue", "--reason", "db_down").stdout == "requeued 1 dead letter: 1 to capture\n"
    assert system.assay("drop", "--stage", "scrubber", "--since", "2h", "--yes").stdout == "dropped 1 dead letter\n"
    assert (
        system.assay("requeue", old, writers, "--stage", "writer").stdout == "requeued 1 dead letter: 1 to failures\n"
    )
    assert ids() == [old]


def test_to_say_nothing_is_not_to_say_all(system: System) -> None:
    system.bury()
    for command in ("requeue", "drop"):
        assert "--all" in system.assay(command, code=2).stderr
        assert "not both" in system.assay(command, "1-0", "--all", code=2).stderr
    assert system.root.xlen(DEAD.key()) == 1


def test_dropping_counts_exactly_and_asks_first(system: System) -> None:
    for n in range(dead_letters.DROP_AT_ONCE + 3):
        system.bury(CAPTURE, b"%d" % n)
    assert system.assay("drop", "--all", "--dry-run").stdout == "would drop 503 dead letters: scrubber/other 503\n"
    refused = system.assay("drop", "--all", code=2)
    assert "--yes" in refused.stderr
    assert system.root.xlen(DEAD.key()) == 503
    ids = [facts["id"] for facts in system.listed()]
    assert system.assay("drop", ids[0], ids[1], ids[0], "--yes").stdout == "dropped 2 dead letters\n"
    done = system.assay("drop", ids[0], "--yes", code=1)
    assert (done.stdout, done.stderr) == ("dropped 0 dead letters\n", f"not found: {ids[0]}\n")

    def answered(answer: bytes) -> tuple[bytes, bytes]:
        terminal, stdin = pty.openpty()
        process = system.cli().start("dead", "drop", "--all", role="operator", stdin=stdin)
        os.close(stdin)
        os.write(terminal, answer)
        out, err = process.communicate(timeout=60)
        os.close(terminal)
        assert process.returncode == 0
        return out, err

    out, err = answered(b"n\n")
    assert out.strip() == b""
    assert b"about to drop 501 dead letters: scrubber/other 501" in err
    assert b"nothing was dropped" in err
    assert answered(b"y\n")[0].strip() == b"dropped 501 dead letters"
    assert system.root.xlen(DEAD.key()) == 0


def test_with_several_shards_a_letter_is_named_with_its_shard_and_goes_back_to_it(system: System) -> None:
    system.shards = 2
    for shard in range(2):
        system.bury(CAPTURE, b"%d" % shard, shard=shard, letter_id="1790000000000-0")
    assert "1/1790000000000-0" in system.assay("list").stdout
    assert "0/1790000000000-0 or 1/1790000000000-0" in system.assay("show", "1790000000000-0", code=2).stderr
    assert "shard        1" in system.assay("show", "1/1790000000000-0").stdout
    assert system.assay("requeue", "1/1790000000000-0").stdout == "requeued 1 dead letter: 1 to capture\n"
    assert (system.data(CAPTURE, 0), system.data(CAPTURE, 1)) == ([], [b"1"])
    assert [facts["shard"] for facts in system.listed()] == [0]


def test_a_table_shows_some_and_says_so_and_an_empty_one_is_one_line(system: System) -> None:
    assert system.assay("list").stdout == "0 dead letters\n"
    for _ in range(101):
        system.bury()
    done = system.assay("list")
    assert "only the first 100 of 101 are shown" in done.stderr
    assert len(system.listed()) == 101
    assert "no dead letter 1-0" in system.assay("show", "1-0", code=2).stderr


@BOTH
@pytest.mark.parametrize("identity", ["scrubber", "writer"])
async def test_letters_older_than_the_days_they_are_kept_expire_exactly_in_every_shard(
    system: System, identity: str
) -> None:
    now_ms = int(time.time() * 1000)
    for shard in range(2):
        for age_days in (9, 7.01):
            system.bury(shard=shard, letter_id=f"{now_ms - int(age_days * DAY_MS)}-0")
        system.bury(shard=shard, letter_id=f"{now_ms - int(6.99 * DAY_MS)}-0")
        system.bury(shard=shard)
    counter = metrics.ENTRIES.labels(DEAD.name, "expired")
    before = counter._value.get()
    system.shards = 2
    async with system.client(identity) as client:
        expiry = dead_letters.Expiry(client, Settings(redis=system.settings(identity)))
        await expiry.run()
        assert [system.root.xlen(DEAD.key(shard)) for shard in range(2)] == [2, 2]
        assert counter._value.get() - before == 4
        await expiry.run()  # not due yet
    assert [system.root.xlen(DEAD.key(shard)) for shard in range(2)] == [2, 2]


def test_without_the_operators_rights_nothing_is_shown_and_one_line_says_why(system: System) -> None:
    system.bury()
    for role in ("sre", "owner", "producer"):
        done = system.cli().run("dead", "list", role=role)
        assert (done.returncode, done.stdout) == (2, b"")
        assert len(done.stderr.splitlines()) == 1, done.stderr
    with pytest.raises(redis.exceptions.NoPermissionError), redis.Redis.from_url(system.url("producer")) as producer:
        producer.xrange(DEAD.key())
