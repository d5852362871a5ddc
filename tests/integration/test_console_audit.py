"""The console's pages of the audit log on a real log: its state, its rows, one row, and what they never show."""

import html
import json
import re
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from assay_auditor.keys import append_checkpoint, load_or_create
from assay_auditor.notes import Checkpoint
from assay_auditor.rows import record_id
from assay_console.people import Role
from assay_operations.audit_log import AuditLog
from assay_operations.audit_reads.standing import standing
from assay_operations.doctor import probes
from assay_runtime.store import connect
from assay_schema.ids import new_event_id
from assay_schema.settings import RedisSettings, Settings
from tests.support.audited import ORIGIN, TABLES, Audited, failure, operation
from tests.support.cli import Cli
from tests.support.console_pages import Pages, console, missing, shown
from tests.support.sample_rows import iso, session_part, tool_call
from tests.support.store import StoreServer

#: See the fixture `migrated`.
MAY_TAMPER = True
NOW = {"mutations_sync": 2}
AGENT, PERSON, HOST, COMMENT = "support-bot", "ana", "host-1", "asked by jo"
#: A session with three calls.
LONG = "ses_long"


@dataclass
class Log:
    """A log with rows of every kind, and what they are about."""

    audited: Audited
    cli: Cli
    refused: dict[str, Any]
    lost: dict[str, Any]
    record: dict[str, Any]
    session: str

    def settings(self) -> Settings:
        settings = self.audited.settings("console")
        return settings.model_copy(update={"redis": RedisSettings(url="redis://127.0.0.1:1/0")})

    def audit(self, *arguments: str, role: str) -> int:
        own = f'[auditor]\norigin = "{ORIGIN}"\ndirectory = "{self.audited.directory}"\n'
        return self.cli.call("audit", *arguments, role=role, extra=own).returncode

    def erase(self, name: str) -> int:
        """Erase a name while an auditor works."""
        with self.audited.auditing():
            return self.audit("erase", "--subject", name, "--yes", role="owner")

    def command(self, sql: str) -> None:
        self.audited.owner.command(sql, settings=NOW)

    def last_verification(self) -> tuple[str, int] | None:
        """Return outcome and mismatches of the newest verification that `assay doctor` finds."""
        first_s, last = probes.audit_verification(self.audited.owner, "assay", ORIGIN)
        assert first_s is not None
        return last and last[:2]


@contextmanager
def log_in(server: StoreServer, directory: Path) -> Iterator[Log]:
    """Write a log into a store, and copies of its tables."""
    with connect(server.settings().store) as owner:
        audited = Audited(server, owner, directory / "log")
        session = "ses_audited"
        audited.calls(57, project="shop", agent_name="other-bot")
        audited.calls(3, 57, project="shop", agent_name="other-bot", session_id=LONG)
        audited.insert("session_parts", session_part(project="shop", session_id=LONG))
        refused = tool_call(
            100, project="shop", agent_name=AGENT, session_id=session, tool_name="refund", status="refused",
            error_kind="pii_blocked", pii_attempted=["contact", "health"], pii_blocked=["health"],
        )  # fmt: skip
        lost = failure(project="shop", reason="scrubber_exception")
        record = operation(at=iso(time.time_ns() // 1_000_000), actor=PERSON, comment=COMMENT)
        audited.insert("tool_calls", refused)
        audited.insert("capture_failures", lost)
        audited.insert("operations_audit", record)
        audited.watermark()
        audited.audit()
        for table in TABLES:
            owner.command(f"CREATE TABLE assay_base.kept_{table} AS assay_base.{table}")
            owner.command(f"INSERT INTO assay_base.kept_{table} SELECT * FROM assay_base.{table}")
        shutil.copytree(audited.directory, directory / "kept")
        yield Log(audited, Cli(directory, store_url=server.url), refused, lost, record, session)


@pytest.fixture(scope="module")
def written(migrated: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with log_in(migrated, tmp_path_factory.mktemp("audit")) as log:
        yield log


@pytest.fixture
def own_log(own_store: StoreServer, tmp_path: Path) -> Iterator[Log]:
    """A log for one test alone."""
    with log_in(own_store, tmp_path) as log:
        yield log


@pytest.fixture
def log(written: Log) -> Iterator[Log]:
    """The log as it was written. Nothing removes a record of an operation: a test that needs none, or some, has `own_log`."""
    yield written
    for table in TABLES:
        written.command(f"TRUNCATE TABLE assay_base.{table}")
        written.command(f"INSERT INTO assay_base.{table} SELECT * FROM assay_base.kept_{table}")
    shutil.rmtree(written.audited.directory)
    shutil.copytree(written.audited.directory.parent / "kept", written.audited.directory)


async def both(pages: Pages, path: str) -> tuple[Any, str]:
    """Return the document and the page of an address, after a check that the page has every number of the document."""
    document, page = await pages.json(path), await pages.html(path)
    moving = ("age_s", "waiting_s", "verified_s", "partial_s", "behind_s")
    assert missing(document, page, *moving) == []
    return document, shown(page)


async def test_before_a_verification_the_page_says_that_nobody_verified_and_how(log: Log) -> None:
    async with console(log.settings(), Role.VIEWER) as pages:
        document, page = await both(pages, "/audit")
        state = document["standing"]["value"]
        assert state["state"] == "warn"
        assert "No one has verified this log yet. Next: assay audit verify" in page
        assert (state["leaves"], state["waiting"], state["behind"]) == (log.audited.size(), 0, 0)
        checkpoint = state["checkpoint"]
        assert (checkpoint["size"], checkpoint["signature"]) == (log.audited.size(), "valid")
        assert checkpoint["root"] in page
        assert checkpoint["key"].startswith(f"{ORIGIN}+")
        assert [each["root"] for each in state["places"]] == [checkpoint["root"]] * 2, "the store, and the file"
        assert page.count("same root") == 2


async def test_checkpoints_that_are_signed_meanwhile_are_no_tampering(
    own_store: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two requests, between the reads of one, and while the store is away."""
    numbers = count()
    with connect(own_store.settings().store) as owner:
        audited = Audited(own_store, owner, tmp_path / "log")
        audited.watermark()

        def sign_more() -> None:
            audited.calls(1, next(numbers))
            audited.audit()

        sign_more()
        settings = audited.settings("console").model_copy(update={"redis": RedisSettings(url="redis://127.0.0.1:1/0")})
        async with console(settings) as pages:

            async def state() -> Any:
                return (await pages.json("/audit"))["standing"]

            assert [each["size"] for each in (await state())["value"]["places"]] == [1, 1]
            sign_more()
            assert (await state())["value"]["state"] == "warn", "nobody verified it"
            monkeypatch.setattr("assay_console.page.ROLLUP_S", 0.0)
            read = AuditLog.query

            def read_later(log: AuditLog, query: str, **values: Any) -> Any:
                sign_more()
                return read(log, query, **values)

            with monkeypatch.context() as growing:
                growing.setattr(AuditLog, "query", read_later)
                grown = standing(owner, settings.auditor)
            assert next(numbers) > 4, "the log has grown between the reads"
            assert grown.state == "warn", grown.sentence
            assert (await state())["value"]["leaves"] == audited.size()
            signer, _ = load_or_create(audited.directory, ORIGIN)
            later = Checkpoint(ORIGIN, audited.size() + 1, bytes(32))
            own_store.stop()
            append_checkpoint(audited.directory, signer.signed(later.text))
            found = await state()
            assert (found["state"], found["value"]["state"]) == ("stale", "warn")


async def test_each_anchor_is_listed_with_its_newest_checkpoint(log: Log) -> None:
    of_anchor = (
        "INSERT INTO assay_base.audit_anchors (log, size, anchor, kind, note, anchored_at) "
        "SELECT log, size, '{anchor}', '{kind}', {note}, stored_at FROM assay_base.audit_checkpoints ORDER BY size DESC LIMIT 1"
    )
    log.command(of_anchor.format(anchor="witness.example/w1", kind="witness", note="note"))
    log.command(of_anchor.format(anchor="<b>tsa</b>", kind="timestamp", note="'no checkpoint'"))
    try:
        async with console(log.settings(), Role.VIEWER) as pages:
            document, page = await both(pages, "/audit")
    finally:
        log.command("TRUNCATE TABLE assay_base.audit_anchors")
    state = document["standing"]["value"]
    witness, server = sorted((each for each in state["places"][1:-1]), key=lambda each: -(each["size"] or 0))
    assert (witness["where"], witness["size"]) == ("witness witness.example/w1", log.audited.size())
    assert witness["root"] == state["checkpoint"]["root"]
    assert (server["where"], server["size"]) == ("timestamp <b>tsa</b>", None)
    assert "its checkpoint cannot be read" in server["problem"]
    assert page.count("same root") == 3
    assert "timestamp <b>tsa</b>" in page


async def test_rows_that_wait_for_a_checkpoint_and_events_that_wait_for_a_row_are_counted(log: Log) -> None:
    log.command("ALTER TABLE assay_base.audit_checkpoints DELETE WHERE 1")
    log.command(f"ALTER TABLE assay_base.audit_leaves DELETE WHERE leaf_index >= {log.audited.size() - 63}")
    async with console(log.settings()) as pages:
        state = (await pages.json("/audit"))["standing"]["value"]
        assert state["checkpoint"] is None
        assert state["waiting"] == state["leaves"]
        assert state["behind"] == 61
        assert state["state"] == "bad", "the file has more than the store"


async def test_a_row_shows_what_was_asked_by_whom_and_what_refused_it(log: Log) -> None:
    async with console(log.settings(), Role.VIEWER) as pages:
        document, page = await both(pages, "/audit?status=refused")
        [row] = document["listed"]["value"]["rows"]
        assert (row["tool_name"], row["who"], row["reason"]) == ("refund", AGENT, "pii_blocked")
        assert (row["attempted"], row["blocked"], row["session_id"]) == (["contact", "health"], ["health"], log.session)
        assert "found contact, health ; blocked health" in page
        assert "pii blocked" in page
        document, page = await both(pages, "/audit?kind=lost")
        assert document["listed"]["value"]["rows"][0]["reason"] == "scrubber_exception"
        assert "scrubber exception" in page
        document, page = await both(pages, "/audit?kind=operation&actor=ana")
        [row] = document["listed"]["value"]["rows"]
        assert (row["who"], row["tool_name"], row["comment"]) == (PERSON, "prune", "asked by jo")
        assert row["target"] == json.loads(log.record["target"])


async def test_the_command_of_the_page_has_its_filter_and_prints_the_same_rows(log: Log) -> None:
    asked = f"project=shop&kind=tool_call&status=refused&tool=refund&actor={AGENT}&session={log.session}"
    async with console(log.settings()) as pages:
        document, _ = await both(pages, f"/audit?{asked}&t=30d")
        [command] = re.findall(
            r"assay (audit list [^<]*--since 30d)", html.unescape(await pages.html(f"/audit?{asked}&t=30d"))
        )
        assert "audit list --since" in await pages.html("/audit")
    arguments = shlex.split(command)
    assert arguments == shlex.split(
        f"audit list --project shop --kind tool_call --status refused --tool refund --actor {AGENT} "
        f"--session {log.session} --since 30d"
    )
    own = f'[auditor]\norigin = "{ORIGIN}"\ndirectory = "{log.audited.directory}"\n'
    done = log.cli.run(*arguments, "--json", role="sre", extra=own)
    [printed] = [json.loads(line) for line in done.stdout.splitlines()]
    [shown_row] = document["listed"]["value"]["rows"]
    assert (printed["leaf_index"], printed["by"]) == (shown_row["leaf_index"], AGENT)
    everything = log.cli.run("audit", "list", "--json", "--limit", "500", role="sre", extra=own).stdout.splitlines()
    assert len(everything) == log.audited.size()
    assert b"lost event" in log.cli.run("audit", "list", "--help", role="sre").stdout


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ("tool=refund", 1), ("service=nobody", 0), (f"actor={AGENT}", 1), ("actor=nobody", 0), ("session=ses_audited", 1),
        ("session=none", 0),
        (f"session={LONG}", 3), (f"session={LONG}&from=2020-01-01&to=2020-01-02", 0),
        ("project=shop&kind=operation", 0), ("project=shop&kind=lost", 1), ("actor=other-bot&status=refused", 0),
        ("session=ses_audited&actor=other-bot", 0), ("from=2020-01-01&to=2020-01-02", 0),
    ],
)  # fmt: skip
async def test_filters_must_all_hold(log: Log, asked: str, rows: int) -> None:
    async with console(log.settings()) as pages:
        listed = (await pages.json(f"/audit?{asked}"))["listed"]["value"]
        assert (len(listed["rows"]), listed["complete"]) == (rows, True)
        assert rows or "No row happened in this range" in await pages.html(f"/audit?{asked}")


@pytest.mark.parametrize(
    ("asked", "most", "rows", "left_out"),
    [
        (f"session={LONG}", 2, 2, "Only the newest 2 calls of this session in this range were looked for."),
        (f"session={LONG}", 3, 3, ""),
        (f"actor={PERSON}", 0, 0, "Only the newest 0 operations of this person in this range were looked for."),
        (f"actor={PERSON}", 1, 1, ""),
    ],
)
async def test_a_filter_that_did_not_look_for_every_row_says_it_is_not_complete(
    log: Log, monkeypatch: pytest.MonkeyPatch, asked: str, most: int, rows: int, left_out: str
) -> None:
    monkeypatch.setattr("assay_operations.audit_reads.row_pages.NAMED_MAX", most)
    async with console(log.settings()) as pages:
        document, page = await both(pages, f"/audit?{asked}")
        listed = document["listed"]["value"]
        assert (len(listed["rows"]), listed["complete"], listed["left_out"]) == (rows, not left_out, left_out)
        assert (f"{left_out} Choose a shorter range" in page) == bool(left_out)


@pytest.mark.parametrize("asked", ["", "kind=tool_call&", "actor=other-bot&"])
async def test_pages_have_every_row_once_from_the_newest(log: Log, monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setattr("assay_operations.audit_reads.row_pages.PARTS", (3, 5, 9))
    monkeypatch.setattr("assay_console.views.audit.LIMIT", 7)
    wanted = {"": log.audited.size(), "kind=tool_call&": 61, "actor=other-bot&": 60}[asked]
    async with console(log.settings()) as pages:
        found, below = [], ""
        for _ in range(40):
            listed = (await pages.json(f"/audit?{asked}below={below}"))["listed"]["value"]
            found += [each["leaf_index"] for each in listed["rows"]]
            if listed["next"] is None:
                assert listed["complete"]
                break
            below = listed["next"]
        assert found == sorted(set(found), reverse=True)
        assert len(found) == wanted


async def test_one_row_is_compared_with_its_hash_its_leaf_and_the_row_before(log: Log) -> None:
    async with console(log.settings(), Role.VIEWER) as pages:
        document, page = await both(pages, f"/audit/{log.refused['event_id']}")
        found = document["found"]["value"]
        index = found["row"]["leaf_index"]
        assert [each["holds"] for each in found["checks"]] == [True] * 3
        assert (found["checkpoint"], found["copies"]) == (log.audited.size(), 1)
        assert f"assay audit prove {index} > proof.json" in page
        assert document == await pages.json(f"/audit/{index}") | {"name": log.refused["event_id"]}
        first = (await pages.json("/audit/0"))["found"]["value"]
        assert [each["holds"] for each in first["checks"]] == [True] * 3, "the first row, which has none before it"
        assert f"/e/{log.refused['event_id']}" in await pages.html(f"/audit/{index}")
        assert f"/s/{log.session}" in await pages.html(f"/audit/{index}")


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ("ALTER TABLE assay_base.audit_rows UPDATE tool_name = 'read' WHERE leaf_index = 5", {0, 2}),
        ("ALTER TABLE assay_base.audit_rows UPDATE project = 'other' WHERE leaf_index = 5", {0}),
        ("ALTER TABLE assay_base.audit_leaves UPDATE chain_hash = '00' WHERE leaf_index = 4", {2}),
    ],
)
async def test_a_row_that_was_changed_is_seen_on_its_page(log: Log, change: str, wrong: set[int]) -> None:
    log.command(change)
    async with console(log.settings()) as pages:
        document, page = await both(pages, "/audit/5")
        checks = document["found"]["value"]["checks"]
        assert {place for place, each in enumerate(checks) if not each["holds"]} == wrong
        assert "This row is not as it was written" in page
        assert "assay audit verify --full" in page


async def test_a_second_row_at_the_same_place_is_seen(log: Log) -> None:
    [row] = AuditLog(log.audited.owner, log.audited.settings().auditor).rows(5, 6)
    log.audited.insert("audit_rows", {"log": ORIGIN, **row, "tool_name": "forged", "leaf_hash": "0" * 64})
    async with console(log.settings()) as pages:
        document, page = await both(pages, "/audit/5")
        assert document["found"]["value"]["copies"] == 2
        assert "2 rows are at its place" in page


async def test_a_row_that_is_not_there_says_whether_its_leaf_is(log: Log) -> None:
    log.command("ALTER TABLE assay_base.audit_rows DELETE WHERE leaf_index = 5")
    async with console(log.settings()) as pages:
        assert "assay audit show 5" in (await pages.json("/audit/5", 404))["error"]["fix"]
        error = (await pages.json("/audit/999999", 404))["error"]
        assert f"it has {log.audited.size():,} rows" in json.dumps(error)
        for name in ("999999", "9" * 400, new_event_id()):
            assert (await pages.json(f"/audit/{name}", 404))["error"]["fix"]
        await pages.json("/audit/nothing", 422)
        await pages.json("/audit?below=-1", 422)
        await pages.json("/audit?below=x", 422)


async def test_no_value_of_a_personal_field_is_on_a_page(log: Log) -> None:
    """Names are of the records that rows are about: without these, rows know digests only."""
    log.command("ALTER TABLE assay_base.tool_calls UPDATE agent_name = NULL WHERE 1")
    try:
        async with console(log.settings()) as pages:
            place = (await pages.json(f"/audit/{log.refused['event_id']}"))["found"]["value"]["row"]["leaf_index"]
            text = json.dumps([await pages.json("/audit"), await pages.json(f"/audit/{place}")])
            text += await pages.html("/audit") + await pages.html(f"/audit/{place}")
            for secret in (AGENT, HOST, "args: refused"):
                assert secret not in text
            assert "(sealed)" in text
    finally:
        named = f"if(session_id = '{log.session}', '{AGENT}', 'other-bot')"
        log.command(f"ALTER TABLE assay_base.tool_calls UPDATE agent_name = {named} WHERE 1")


async def test_a_name_that_was_erased_is_shown_as_erased_and_finds_nothing(log: Log) -> None:
    assert log.erase(AGENT) == 0
    async with console(log.settings()) as pages:
        document, page = await both(pages, f"/audit/{log.refused['event_id']}")
        found = document["found"]["value"]
        assert (found["row"]["who"], found["row"]["who_state"]) == ("", "erased")
        assert found["row"]["session_id"] == "", "it would name the person again"
        assert found["erased"] == 1 < found["personal"]
        assert "partly erased" in page
        assert all(each["holds"] for each in found["checks"]), "the proof stays intact"
        assert AGENT not in json.dumps(document)
        assert (await pages.json(f"/audit?actor={AGENT}"))["listed"]["value"]["rows"] == []


async def test_a_comment_that_was_erased_is_not_shown(log: Log) -> None:
    path = "/audit?kind=operation&tool=prune"
    async with console(log.settings()) as pages:
        assert COMMENT in await pages.html(f"/audit/{record_id(log.record['operation_id'], 'started')}")
        assert log.erase(COMMENT) == 0
        [row] = (await pages.json(path))["listed"]["value"]["rows"]
        assert (row["who"], row["who_state"], row["comment"]) == (PERSON, "known", "")
        place = f"/audit/{row['leaf_index']}"
        for text in (await pages.html(path), await pages.html(place), json.dumps(await pages.json(place))):
            assert COMMENT not in text


async def test_a_recorded_verification_is_the_first_line_and_a_row_of_the_log(own_log: Log) -> None:
    log = own_log
    assert log.audit("verify", role="operator") == 2, "an operator may not read the log"
    assert log.audit("verify", "--no-record", role="owner") == 0
    assert log.last_verification() is None, "nothing is recorded"
    async with console(log.settings()) as pages:
        assert (await pages.json("/audit"))["standing"]["value"]["verified"] is None
    assert log.audit("verify", role="owner") == 0
    assert log.last_verification() == ("done", 0)
    async with console(log.settings()) as pages:
        document, page = await both(pages, "/audit")
        state = document["standing"]["value"]
        assert state["state"] == "good", state
        verified = state["verified"]
        assert re.search(rf"The log is whole up to 20.* ago by {re.escape(verified['by'])}\.", page), "who checked it"
        assert (verified["intact"], verified["complete"], verified["leaves"]) == (True, True, log.audited.size())
    log.audited.audit()
    async with console(log.settings()) as pages:
        document, page = await both(pages, "/audit")
        row = document["listed"]["value"]["rows"][0]
        assert (row["kind"], row["tool_name"], row["status"]) == ("operation", "audit verify", "done")
        assert "Since then only that check was recorded." in page
    log.audited.calls(1, 500)
    log.audited.watermark()
    log.audited.audit()
    async with console(log.settings()) as pages:
        assert "2 rows were written since." in (await both(pages, "/audit"))[1]
    log.command("ALTER TABLE assay_base.audit_rows UPDATE tool_name = 'read' WHERE leaf_index = 5")
    assert log.audit("verify", role="owner") == 1
    async with console(log.settings()) as pages:
        document, page = await both(pages, "/audit")
        state = document["standing"]["value"]
        assert (state["state"], state["verified"]["first_leaf"]) == ("bad", 5)
        assert "found that the log was changed (row at leaf 5)" in page
    assert log.audit("verify", "--since", "1s", role="owner") == 0, "it reads no row"
    assert log.last_verification() == ("failed", 1), "the mismatch may be in a row that was not read"
    async with console(log.settings()) as pages:
        document, page = await both(pages, "/audit")
        state = document["standing"]["value"]
        assert (state["state"], state["verified"]["first_leaf"], state["partial"]["intact"]) == ("bad", 5, True)
        assert "found that the log was changed (row at leaf 5)" in page
        assert "not all of" in page


async def test_a_session_says_how_many_of_its_calls_are_in_the_log_and_leads_there(log: Log) -> None:
    async with console(log.settings()) as pages:
        path = f"/audit?session={log.session}"
        assert len((await pages.json(path))["listed"]["value"]["rows"]) == 1
        assert log.session in await pages.html(path)
        audit = (await pages.json(f"/sessions/{LONG}"))["audit"]["value"]
        assert audit == {"calls": 3, "rows": 3, "covered": 3, "refused": 0}
        assert "signed 3 of 3 captured calls are rows of it, 3 of them signed" in shown(await pages.html(f"/s/{LONG}"))


async def test_a_session_with_more_events_than_its_page_counts_the_calls_of_the_page(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_console.views.sessions.EVENTS", 2)
    async with console(log.settings()) as pages:
        document = await pages.json(f"/sessions/{LONG}")
        calls = document["audit"]["value"]["calls"]
        assert (document["events_pages"] > 1, 1 <= calls <= 2) == (True, True)
        page = shown(await pages.html(f"/s/{LONG}"))
        assert f"signed {calls} of {calls} captured calls on this page are rows of it" in page


async def test_an_empty_log_says_how_it_is_switched_on(
    own_store: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_console.page.ROLLUP_S", 0.0)
    with connect(own_store.settings().store) as owner:
        settings = Audited(own_store, owner, tmp_path / "none").settings("console")
    settings = settings.model_copy(update={"redis": RedisSettings(url="redis://127.0.0.1:1/0")})
    async with console(settings, Role.VIEWER) as pages:
        document, page = (
            await pages.json("/audit"),
            shown(await pages.html("/audit")),
        )  # without the numbers, which are 0
        assert (document["standing"]["value"]["leaves"], document["standing"]["value"]["state"]) == (0, "off")
        assert document["standing"]["value"]["behind"] == 0
        assert "The log is empty" in page
        assert "assay up" in page
        own_store.stop()
        page = shown(await pages.html("/audit"))
        assert "This is the last answer" in page


async def test_without_the_store_the_page_says_so(log: Log) -> None:
    away = log.settings().model_copy(
        update={"store": log.settings().store.model_copy(update={"url": "http://127.0.0.1:1"})}
    )
    async with console(away) as pages:
        document, page = await pages.json("/audit"), shown(await pages.html("/audit"))
        assert document["standing"]["state"] == document["listed"]["state"] == "unavailable"
        assert "Store: no answer" in page
        assert "Store: no answer" in shown(await pages.html("/audit/0"))


def test_the_record_of_an_operation_is_found_by_its_place(log: Log) -> None:
    rows = log.audited.query("SELECT toString(source_id) FROM assay.audit_rows WHERE kind = 'operation'")
    assert (record_id(log.record["operation_id"], "started"),) in {tuple(each) for each in rows}
