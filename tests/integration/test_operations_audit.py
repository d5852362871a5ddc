"""Audit records of operations, with a real Redis and a real store: who did what, also if the process is killed or the store is away."""

import asyncio
import json
import os
import pickle
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis

from assay_drift.monitor import LagSnapshot, Monitor
from assay_evals.replay.baseline import Thresholds
from assay_operations.actor import Actor, local_actor
from assay_operations.audit import COLUMNS, Trail, redis_user
from assay_operations.dead_letters import drop, requeue
from assay_operations.dead_letters.choose import Choice
from assay_operations.dead_letters.letters import Filter
from assay_operations.doctor.audit_checks import OPERATION_S
from assay_operations.errors import OperationError
from assay_operations.evaluations import baselines
from assay_operations.prune import apply as apply_prune
from assay_operations.prune import plan_prune
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.ids import new_event_id
from assay_schema.settings import RedisSettings
from assay_schema.streams import CAPTURE, DEAD, FIELD, acknowledged_key, drift_key
from tests.support.cli import Cli
from tests.support.drift_samples import START_MS, monitor
from tests.support.redis import RedisServer
from tests.support.sample_rows import candidate, lines
from tests.support.store import StoreServer

NOWHERE = "http://127.0.0.1:1"
ANA = Actor("ana", "laptop", "command line")
EVERYTHING = Filter()


class Rig:
    """A Redis, a store, a data directory, and the command."""

    def __init__(self, directory: Path, server: RedisServer, store: StoreServer) -> None:
        self.directory, self.server, self.store = directory, server, store
        self.data = directory / "data"
        self.root = server.client()
        self.trail = Trail(self.data, store.settings("operator").store)

    @property
    def away(self) -> Trail:
        """The trail while the store is unreachable."""
        return Trail(self.data, self.store.settings("operator", url=NOWHERE).store)

    @property
    def waiting(self) -> list[dict[str, Any]]:
        path = self.trail.file
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def cli(self, *, reachable: bool = True) -> Cli:
        return Cli(self.directory, store_url=self.store.url if reachable else NOWHERE, redis_url=self.server.url)

    def assay(self, *arguments: str, role: str = "operator", code: int = 0, reachable: bool = True) -> str:
        done = self.cli(reachable=reachable).call(*arguments, role=role)
        assert done.returncode == code, (done.stdout, done.stderr)
        return (done.stdout + done.stderr).decode()

    def listed(self, *arguments: str) -> list[dict[str, Any]]:
        done = self.cli().call("operations", "list", "--json", *arguments, role="operator")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def latest(self) -> dict[str, Any]:
        return self.listed("--limit", "1")[0]

    def bury(self, count: int = 1) -> list[str]:
        told = {"stream": CAPTURE.key(), "entry_id": "1-0", "stage": "scrubber", "reason": "other", "deliveries": "5"}
        return [self.root.xadd(DEAD.key(), {FIELD: b"{}", **told}).decode() for _ in range(count)]

    def letters(self) -> int:
        return int(self.root.xlen(DEAD.key()))

    def taken(self) -> dict[str, Any]:
        """The latest operation. Its records went to the store at once."""
        assert self.waiting == []
        return self.latest()


@pytest.fixture
def rig(tmp_path: Path, redis_server: RedisServer, migrated: StoreServer) -> Iterator[Rig]:
    rig = Rig(tmp_path, redis_server, migrated)
    yield rig
    rig.root.close()


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        yield client


@pytest.fixture
def operators(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of this process, which has the operator's settings."""
    monkeypatch.setenv("ASSAY_CONFIG", str(rig.cli().settings_file("operator")))
    return rig.data


def lost_event() -> Monitor:
    """Drift's state after an event was lost: an episode of `failures` is open."""
    watched = monitor()
    watched.observe_lost("acme", START_MS, START_MS)
    watched.tick(START_MS, LagSnapshot())
    return watched


def everything() -> Choice:
    return Choice("drop", None, True, EVERYTHING)


# One test for each operation: what its record says. `judge calibrate` and `judge rejudge` are in test_judge_commands.py.


def test_a_drop_is_recorded_with_its_actor_range_reason_and_counts(rig: Rig) -> None:
    first, second, third = rig.bury(3)
    rig.assay("dead", "drop", first, second, "--yes", "--comment", "ticket 4711")
    row = rig.taken()
    assert {name: row[name] for name in ("operation", "outcome", "planned", "changed", "comment", "error_kind")} == {
        "operation": "dead drop", "outcome": "done", "planned": 2, "changed": 2, "comment": "ticket 4711", "error_kind": "",
    }  # fmt: skip
    assert row["target"] == {"ids": [first, second]}
    assert (row["actor"], row["host"], row["through"]) == (local_actor().name, os.uname().nodename, "command line")
    assert row["identity"] == "default"
    assert row["started_at"] <= row["ended_at"]
    assert [entry.decode() for entry, _ in rig.root.xrange(DEAD.key())] == [third]


def test_a_requeue_is_recorded(rig: Rig) -> None:
    rig.bury(20)
    rig.assay("dead", "requeue", "--stage", "scrubber")
    row = rig.taken()
    assert (row["operation"], row["outcome"], row["planned"], row["changed"]) == ("dead requeue", "done", 20, 20)
    assert row["target"] == {"stage": "scrubber"}


def test_an_acknowledgement_is_recorded_before_the_service_has_processed_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_operations.drift.acknowledge._WAIT_S", 0.1)
    watched = lost_event()
    for name, content in watched.changes().items():
        rig.root.hset(drift_key(), name, content or b"")
    [alert] = watched.take_alerts()
    alert_id = str(alert.alert_id)
    assert "noted" in rig.assay("drift", "acknowledge", alert_id, "--yes", "--comment", "known change")
    row = rig.taken()
    assert (row["operation"], row["outcome"]) == ("drift acknowledge", "done")
    assert row["target"] == {"alert_id": alert_id, "project": "acme", "kind": "failures", "metric": ""}
    assert rig.root.hexists(acknowledged_key(), alert_id)


def test_a_deletion_of_rows_is_recorded_with_its_range(rig: Rig, owner: Client) -> None:
    insert_json_rows(owner, "assay_base.candidates", lines([candidate(n, project="gone") for n in range(5)]), 5)
    rig.assay("prune", "--older-than", "0d", "--project", "gone", "--yes", role="owner")
    row = rig.taken()
    assert (row["operation"], row["identity"], row["planned"], row["changed"]) == ("prune", "owner", 5, 5)
    assert row["target"]["project"] == "gone"
    assert row["target"].keys() == {"project", "stored_upto_ms"}


@pytest.mark.parametrize(
    "arguments",
    [("dead", "drop", "--all", "--dry-run"), ("dead", "requeue", "--all", "--dry-run"), ("dead", "drop", "--stage", "judge", "--yes")],
    ids=" ".join,
)  # fmt: skip
def test_what_changes_nothing_leaves_no_record(rig: Rig, arguments: tuple[str, ...]) -> None:
    before = rig.listed()
    rig.bury()
    rig.assay(*arguments)
    assert rig.listed() == before
    assert rig.waiting == []


# Kills and failures between the steps.

STEPS = """
import os, signal, sys
from assay_runtime import dead_letters as dead
from assay_operations import audit
die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
real = dead.drop
async def after(*arguments):
    await real(*arguments)
    die()
async def before(*_):
    die()
step = sys.argv.pop(1)
if step == "before the change":
    dead.drop = before
elif step == "after the change":
    dead.drop = after
elif step == "before the record":
    audit.Trail.insert = die
elif step == "before the file is emptied":
    audit.os.ftruncate = die
from assay_cli.main import app
app()
"""


def killed(rig: Rig, step: str, *arguments: str) -> None:
    """Run a command that is killed at a step."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    environment["ASSAY_CONFIG"] = str(rig.cli().settings_file("operator"))
    done = subprocess.run(
        [sys.executable, "-c", STEPS, step, *arguments], cwd=rig.directory, env=environment, check=False, timeout=120
    )
    assert done.returncode == -9


def test_a_kill_before_the_record_changes_nothing(rig: Rig) -> None:
    rig.bury(3)
    before = rig.listed()
    killed(rig, "before the record", "dead", "drop", "--all", "--yes")
    assert (rig.letters(), rig.listed()) == (3, before)


@pytest.mark.parametrize(("step", "left"), [("before the change", 3), ("after the change", 0)])
def test_a_kill_after_the_start_leaves_a_start_without_an_end(rig: Rig, step: str, left: int) -> None:
    rig.bury(3)
    killed(rig, step, "dead", "drop", "--all", "--yes")
    row = rig.taken()
    assert (row["operation"], row["outcome"], row["ended_at"], row["planned"]) == ("dead drop", "started", None, 3)
    assert rig.letters() == left


def test_a_record_that_is_sent_twice_counts_once(rig: Rig, owner: Client) -> None:
    rig.bury(2)
    rig.assay("dead", "drop", "--all", "--yes", reachable=False)
    [operation] = {row["operation_id"] for row in rig.waiting}
    killed(rig, "before the file is emptied", "operations", "list")
    assert len(rig.waiting) == 2
    copies = "SELECT count() FROM assay_base.operations_audit WHERE operation_id = {id:UUID}"
    assert owner.query(copies, parameters={"id": operation}).result_rows[0][0] == 2
    assert [row["outcome"] for row in rig.listed() if row["operation_id"] == operation] == ["done"]
    assert owner.query(copies, parameters={"id": operation}).result_rows[0][0] == 4
    shown = "SELECT count() FROM operations_audit WHERE operation_id = {id:UUID}"
    assert owner.query(shown, parameters={"id": operation}).result_rows[0][0] == 2
    assert rig.waiting == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError, SystemExit])
def test_an_interruption_is_recorded_with_what_was_changed_so_far(rig: Rig, error: type[BaseException]) -> None:
    attempt = rig.trail.attempt("prune", ANA, identity="owner", target={}, planned=9)

    def work() -> None:
        with attempt:
            attempt.changed = 4
            raise error

    with pytest.raises(error):
        work()
    row = rig.taken()
    assert (row["outcome"], row["planned"], row["changed"], row["error_kind"]) == ("interrupted", 9, 4, "")


@pytest.mark.parametrize(
    ("error", "kind"),
    [(OperationError("conflict", "a secret text"), "conflict"), (redis.ConnectionError("a secret text"), "ConnectionError")],
)  # fmt: skip
def test_a_failure_is_recorded_by_its_kind_and_never_by_its_text(rig: Rig, error: Exception, kind: str) -> None:
    with pytest.raises(type(error)), rig.trail.attempt("prune", ANA, identity="owner", target={}, planned=9):
        raise error
    row = rig.taken()
    assert (row["outcome"], row["error_kind"]) == ("failed", kind)
    assert "secret text" not in json.dumps(row)


def test_a_drop_that_redis_refuses_is_recorded_as_failed(rig: Rig) -> None:
    rig.bury(2)
    rig.root.acl_setuser("half", enabled=True, passwords=["+p"], categories=["+@all"], commands=["-xdel"], keys=["*"])
    rig.server.url = rig.server.url.replace("redis://", "redis://half:p@")
    rig.assay("dead", "drop", "--all", "--yes", code=2)
    row = rig.taken()
    assert (row["outcome"], row["error_kind"], row["changed"]) == ("failed", "NoPermissionError", 0)
    assert row["identity"] == "half"
    assert rig.letters() == 2


# The store is away, full or refuses.


def test_while_the_store_is_away_records_wait_in_a_private_file_and_the_next_operation_sends_them(rig: Rig) -> None:
    rig.bury(2)
    assert rig.assay("dead", "drop", "--all", "--yes", reachable=False) == "dropped 2 dead letters\n"
    started, ended = rig.waiting
    assert (started["outcome"], ended["outcome"], ended["changed"]) == ("started", "done", 2)
    assert started.keys() == ended.keys() == COLUMNS
    assert (rig.trail.file.stat().st_mode & 0o777, rig.trail.file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    rig.bury()
    rig.assay("dead", "requeue", "--all")
    assert rig.waiting == []
    second, first = rig.listed("--limit", "2")
    assert (second["operation"], first["operation"]) == ("dead requeue", "dead drop")
    assert (first["started_at"], first["ended_at"]) == (started["at"], ended["at"])


def test_a_list_sends_records_that_wait(rig: Rig) -> None:
    rig.bury()
    rig.assay("dead", "drop", "--all", "--yes", reachable=False)
    [operation] = {row["operation_id"] for row in rig.waiting}
    assert rig.latest()["operation_id"] == operation
    assert rig.waiting == []


def test_an_identity_that_may_not_insert_records_leaves_them_waiting_and_is_told(rig: Rig) -> None:
    rig.bury()
    rig.assay("dead", "drop", "--all", "--yes", role="sre")
    assert [row["outcome"] for row in rig.waiting] == ["started", "done"]
    done = rig.cli().call("operations", "list", role="sre")
    assert done.returncode == 0
    assert b"2 record(s) that the store has not taken are in data/audit" in done.stderr


def test_what_can_be_recorded_nowhere_is_not_done(rig: Rig) -> None:
    rig.bury(2)
    rig.data.mkdir()
    (rig.data / "audit").write_text("occupied")
    for command in (("dead", "drop", "--all", "--yes"), ("dead", "requeue", "--all")):
        said = rig.assay(*command, reachable=False, code=2)
        assert "nothing was changed, because there is no place for an audit record" in said
    assert rig.letters() == 2


def test_a_store_without_space_does_not_hold_an_operation_back(rig: Rig, tables: Path, tmp_path: Path) -> None:
    with StoreServer(tmp_path / "full", "--keep-free-bytes", str(1 << 60), tables=tables) as store:
        trail = Trail(rig.data, store.settings("operator").store)
        with trail.attempt("prune", ANA, identity="owner", target={}, planned=1):
            pass
    assert [row["outcome"] for row in rig.waiting] == ["started", "done"]


def test_a_store_that_hangs_holds_an_operation_back_for_seconds_and_not_for_ever(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_operations.audit._STORE_S", 1.0)
    rig.bury()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cli = Cli(rig.directory, store_url=f"http://127.0.0.1:{silent.getsockname()[1]}", redis_url=rig.server.url)
        assert cli.call("dead", "drop", "--all", "--yes", role="operator").returncode == 0
    assert [row["outcome"] for row in rig.waiting] == ["started", "done"]


def test_an_interruption_while_the_start_is_recorded_is_recorded_too(
    rig: Rig, operators: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.bury()
    plan, real = drop.plan_drop(operators, everything()), Trail.insert

    def interrupted(*arguments: Any) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Trail, "insert", interrupted)
        with pytest.raises(KeyboardInterrupt):
            drop.apply(plan, ANA)
    assert [row["outcome"] for row in rig.waiting] == ["interrupted"]
    row = rig.latest()
    assert (row["outcome"], row["changed"], rig.letters()) == ("interrupted", 0, 1)


def test_waiting_records_that_cannot_be_read_do_not_hold_an_operation_back(rig: Rig) -> None:
    rig.trail.file.mkdir(parents=True)
    rig.bury()
    rig.assay("dead", "drop", "--all", "--yes")
    with connect(rig.store.settings("sre").store) as sre:
        newest = sre.query("SELECT operation, outcome FROM operations ORDER BY started_at DESC LIMIT 1").result_rows
    assert newest == [("dead drop", "done")]


def test_a_store_that_ends_in_between_leaves_the_end_in_the_file(rig: Rig, tables: Path, tmp_path: Path) -> None:
    with StoreServer(tmp_path / "mortal", tables=tables) as store:
        trail = Trail(rig.data, store.settings("operator").store)
        with trail.attempt("prune", ANA, identity="owner", target={}, planned=1) as attempt:
            store.kill()
            attempt.changed = 1
    [end] = rig.waiting
    assert (end["outcome"], end["operation_id"]) == ("done", attempt.operation_id)


def test_an_end_that_cannot_be_recorded_does_not_undo_what_was_done(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    with rig.away.attempt("prune", ANA, identity="owner", target={}, planned=1) as attempt:
        rig.trail.file.unlink()
        rig.trail.file.parent.rmdir()
        (rig.data / "audit").write_text("occupied")
    assert f"the end of operation {attempt.operation_id} could not be recorded" in caplog.text


def test_a_full_disk_leaves_no_half_record(rig: Rig) -> None:
    with rig.away.attempt("prune", ANA, identity="owner", target={}, planned=1):
        pass
    before = rig.trail.file.read_bytes()
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from assay_operations.actor import Actor; from assay_operations.audit import Trail\n"
        "from assay_operations.errors import OperationError; from assay_schema.settings import StoreSettings\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 10}, {len(before) + 10}))\n"
        f"trail = Trail(Path({str(rig.data)!r}), StoreSettings(url={NOWHERE!r}))\n"
        "try:\n"
        "    with trail.attempt('prune', Actor('a', 'b', 'c'), identity='', target={}, planned=1): sys.exit(3)\n"
        "except OperationError as error: sys.exit(0 if error.kind == 'unavailable' else 4)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=120).returncode == 0
    assert rig.trail.file.read_bytes() == before


def test_half_a_line_and_changed_lines_do_not_hold_other_records_back(rig: Rig) -> None:
    with rig.away.attempt("prune", ANA, identity="owner", target={}, planned=1) as attempt:
        pass
    tampered = [*rig.waiting[:1], rig.waiting[0] | {"actor": ""}, rig.waiting[0] | {"planned": "x"}]
    junk = [b"[]", b"{}", b'{"operation_id": "1"}', b"\xff\xfe", *map(orjson.dumps, tampered[1:]), b'{"half a li']
    with rig.trail.file.open("ab") as file:
        file.write(b"\n".join(junk))
    with rig.away.attempt("dead drop", ANA, identity="", target={}, planned=2) as later:
        pass
    assert {row["operation_id"] for row in rig.listed("--limit", "2")} == {attempt.operation_id, later.operation_id}
    assert rig.trail.file.read_bytes() == b""
    refused = (rig.trail.file.parent / "operations-refused.jsonl").read_bytes().splitlines()
    assert refused == junk
    assert rig.trail.waiting() == len(junk)


def test_records_of_several_processes_do_not_mix(rig: Rig) -> None:
    def one(number: int) -> None:
        actor = Actor(f"actor-{number}", "host", "command line", "x" * 400)
        with rig.away.attempt("prune", actor, identity="owner", target={}, planned=number):
            pass

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(one, range(24)))
    assert sorted(row["planned"] for row in rig.waiting) == sorted([*range(24), *range(24)])
    senders = [connect(rig.store.settings("operator").store) for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(rig.trail.send_waiting, senders))
    for sender in senders:
        sender.close()
    assert rig.waiting == []
    assert {f"actor-{number}" for number in range(24)} <= {row["actor"] for row in rig.listed("--limit", "30")}


# Hostile text.


@pytest.mark.parametrize(
    "text",
    [
        "line\nbreak \r\x1b[2J \x00 \u202e'\"`\\; DROP TABLE x -- ${x} {y}", "\ud800 lone", "é" * 500, "\u200b", "' OR 1 = 1",
        '{"a": 1}', "\t", "-", "=cmd()",
    ],
    ids=lambda text: ascii(text[:12]),
)  # fmt: skip
def test_hostile_names_and_comments_are_stored_as_one_harmless_line(rig: Rig, text: str) -> None:
    actor = Actor(text, text, text, text)
    with rig.trail.attempt("prune", actor, identity=text, target={"project": text, "ids": [text] * 99}, planned=0):
        pass
    assert rig.waiting == []
    row = rig.latest()
    assert row["actor"] == actor.name
    for value in (row["actor"], row["host"], row["through"], row["comment"], row["identity"], row["target"]["project"]):
        assert value.isprintable()
    assert len(row["actor"]) <= 128
    assert len(row["target"]["ids"]) == 31
    assert rig.assay("operations", "list", "--limit", "1").count("\x1b") == 0


def test_names_of_a_megabyte_are_cut_and_such_a_comment_is_refused(rig: Rig) -> None:
    huge = "x" * 1_000_000
    with rig.trail.attempt("prune", Actor(huge, huge, huge), identity=huge, target={"project": huge}, planned=0):
        pass
    assert rig.waiting == []
    assert (len(rig.latest()["actor"]), len(rig.latest()["target"]["project"])) == (128, 200)
    rig.bury()
    with pytest.raises(OperationError, match="1,000,000 characters are too long; the maximum is 500"):
        local_actor(huge)
    assert "the maximum is 500" in rig.assay("dead", "drop", "--all", "--yes", "--comment", "x" * 501, code=2)
    assert rig.letters() == 1


def test_secrets_and_personal_data_in_a_comment_are_scrubbed(rig: Rig) -> None:
    rig.bury()
    text = "asked by jane.doe@example.com, password: hunter2-Tr0ub4dor, key AKIAIOSFODNN7EXAMPLE"
    rig.assay("dead", "drop", "--all", "--yes", "--comment", text)
    shown = rig.latest()["comment"]
    assert shown.startswith("asked by ")
    for hidden in ("jane.doe", "hunter2", "AKIAIOSFODNN7"):
        assert hidden not in shown


def test_the_login_name_is_not_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    real = local_actor()
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME", "SUDO_USER"):
        monkeypatch.setenv(name, "somebody else")
    assert local_actor() == real


# Two operators at once: the second is told what it really did.


def test_a_second_drop_of_the_same_letters_reports_that_it_dropped_none(rig: Rig, operators: Path) -> None:
    rig.bury(5)
    plans = [drop.plan_drop(operators, everything()) for _ in range(2)]
    assert [drop.apply(plan, ANA) for plan in plans] == [5, 0]
    assert [(row["planned"], row["changed"]) for row in rig.listed("--limit", "2")] == [(5, 0), (5, 5)]


def test_two_requeues_at_once_send_each_letter_once_and_name_those_that_were_gone(rig: Rig, operators: Path) -> None:
    rig.bury(30)
    plans = [requeue.plan_requeue(operators, everything()) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(requeue.apply, plans, [ANA, ANA]))
    assert sum(done.streams.total() for done in results) == 30
    assert sum(len(done.gone) for done in results) == 30
    assert rig.root.xlen(CAPTURE.key()) == 30
    assert sum(row["changed"] for row in rig.listed("--limit", "2")) == 30


def test_a_letter_that_arrives_after_the_plan_is_left_alone(rig: Rig, operators: Path) -> None:
    rig.bury(2)
    plan = drop.plan_drop(operators, everything())
    rig.bury()
    assert drop.apply(pickle.loads(pickle.dumps(plan)), ANA) == 2  # noqa: S301
    assert rig.letters() == 1


def test_a_second_deletion_of_the_same_rows_reports_that_it_deleted_none(
    rig: Rig, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_json_rows(owner, "assay_base.candidates", lines([candidate(n, project="twice") for n in range(4)]), 4)
    monkeypatch.setenv("ASSAY_CONFIG", str(rig.cli().settings_file("owner")))
    plans = [plan_prune(rig.data, upto_ms=None, project="twice") for _ in range(2)]
    done = [sum(table.stored for table in apply_prune(plan, ANA)) for plan in plans]
    assert done == [4, 0]
    assert [(row["planned"], row["changed"]) for row in rig.listed("--limit", "2")] == [(4, 0), (4, 4)]


def test_a_baseline_that_another_one_overwrote_meanwhile_is_refused(tmp_path: Path) -> None:
    source, to = tmp_path / "rows.ndjson", tmp_path / "main.baseline.ndjson"
    source.write_text("")
    to.write_text("one")
    plan = baselines.plan_publish(tmp_path, source, to, limits=Thresholds(), force=True)
    to.write_text("another")
    with pytest.raises(OperationError, match="was changed meanwhile") as refused:
        baselines.apply(plan, ANA)
    assert refused.value.kind == "conflict"
    assert to.read_text() == "another"
    [file] = (tmp_path / "audit").iterdir()
    started, line = map(json.loads, file.read_text().splitlines())
    assert (started["outcome"], started["attempt_id"]) == ("started", line["attempt_id"])
    assert (line["actor"], line["host"], line["through"], line["success"]) == ("ana", "laptop", "command line", False)


@pytest.mark.parametrize(("step", "there"), [("before", False), ("after", True)])
def test_a_kill_while_a_baseline_is_published_leaves_a_start_without_an_end(
    tmp_path: Path, step: str, there: bool
) -> None:
    (tmp_path / "rows.ndjson").write_text(lines([candidate(1)]).decode())
    program = (
        "import os, signal\n"
        "from assay_runtime import private\n"
        "real = private.write_whole\n"
        "def write(*arguments):\n"
        f"    {step == 'after'} and real(*arguments)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "private.write_whole = write\n"
        "from assay_cli.main import app; app()\n"
    )
    command = ("bench", "publish", "--from", "rows.ndjson", "--to", "main.baseline.ndjson")
    done = subprocess.run([sys.executable, "-c", program, *command], cwd=tmp_path, check=False, timeout=120)
    assert done.returncode == -9
    [file] = (tmp_path / "data/audit").iterdir()
    [started] = map(json.loads, file.read_text().splitlines())
    assert (started["outcome"], started["label"], started["actor"]) == ("started", "main", local_actor().name)
    assert (tmp_path / "main.baseline.ndjson").exists() == there


# The list, and the health check.


def test_a_list_is_filtered_and_newest_first(rig: Rig, owner: Client) -> None:
    for number, (operation, actor) in enumerate([("prune", "bo"), ("dead drop", "bo"), ("prune", "cy")]):
        with rig.trail.attempt(operation, Actor(actor, "h", "command line"), identity="", target={}, planned=number):
            pass
        time.sleep(0.002)
    assert [row["planned"] for row in rig.listed("--actor", "bo")] == [1, 0]
    assert [row["planned"] for row in rig.listed("--operation", "prune", "--limit", "2")] == [2, 0]
    assert rig.listed("--actor", "bo' OR 1 = 1 --") == []
    assert rig.listed("--since", "2099-01-01T00:00:00Z") == []
    told = rig.assay("operations", "list", "--actor", "nobody")
    assert re.search(r"none of [\d,]+ matches; operations are: .*prune.*; actors are: ", told)
    assert "cy" in rig.assay("operations", "list")
    named = rig.assay("query", "operations", "--param", "actor=cy", "--format", "json", role="sre")
    assert json.loads(named)["planned"] == 2


def test_the_health_check_names_operations_that_never_ended_and_records_that_wait(rig: Rig, owner: Client) -> None:
    def finding() -> dict[str, str]:
        done = rig.cli().call("doctor", "--json", role="owner")
        [found] = [each for each in json.loads(done.stdout) if each["check"] == "operations"]
        return dict(found)

    ago = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - OPERATION_S - 3_600))
    started = {
        "schema_version": 1, "operation_id": new_event_id(), "outcome": "started", "at": ago, "operation": "prune", "actor": "dee",
        "identity": "owner", "host": "h", "through": "command line", "target": "{}", "planned": 1, "changed": 0, "comment": "",
        "error_kind": "", "version": "0",
    }  # fmt: skip
    rig.trail.insert(owner, started)
    found = finding()
    assert found["status"] == "warn"
    assert "started and never ended, the latest: prune by dee, 2 h ago" in found["summary"]
    rig.trail.insert(owner, started | {"outcome": "failed"})
    assert "dee" not in finding()["summary"]
    with rig.away.attempt("prune", ANA, identity="owner", target={}, planned=1):
        pass
    assert f"2 audit records are not in the store, but in {Path('data/audit')}" in finding()["summary"]


def test_the_health_check_names_records_that_wait_while_the_store_is_away(rig: Rig) -> None:
    def finding() -> dict[str, str]:
        done = rig.cli(reachable=False).call("doctor", "--json", role="owner")
        [found] = [each for each in json.loads(done.stdout) if each["check"] == "operations"]
        return dict(found)

    assert (finding()["status"], finding()["summary"]) == ("ok", "no audit record waits in data/audit")
    rig.bury()
    rig.assay("dead", "drop", "--all", "--yes", reachable=False)
    assert (finding()["status"], finding()["summary"]) == (
        "warn",
        "2 audit records are not in the store, but in data/audit",
    )


def test_the_user_of_redis_is_read_from_its_address() -> None:
    for url, user in (("redis://operator:x@h:1/0", "operator"), ("redis://h:1/0", "default"), ("rediss://a@h", "a")):
        assert redis_user(RedisSettings.model_validate({"url": url})) == user
