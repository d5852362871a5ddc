"""An auditor that is killed, that comes second, or whose store had a wrong clock: the log stays whole, and each source has one leaf."""

import json
import logging
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from assay_auditor import log as log_module
from assay_auditor.chain import GENESIS
from assay_auditor.keys import BATCH_FILE, CHECKPOINT_FILE, load_or_create, notes_of
from assay_auditor.log import Log, LogMovedError
from assay_auditor.merkle import root_of
from assay_auditor.notes import Checkpoint
from assay_auditor.rows import Leaf, Source, leaf_of, record_id, stored_row
from assay_auditor.sources import Sources
from assay_operations.audit_log import AuditLog
from assay_operations.audit_verification import Result, verify
from assay_runtime.store import connect, insert_json_rows
from assay_schema.ids import PLACES, new_event_id
from assay_schema.settings import FILE_VARIABLE
from tests.support.audited import ORIGIN, TABLES, Audited, failure, operation
from tests.support.ports import free_port
from tests.support.sample_rows import Json, iso, tool_call
from tests.support.store import PASSWORD, StoreServer
from tests.support.wait import until

#: See the fixture `migrated`.
MAY_TAMPER = True
SOURCES = ("tool_calls", "server_events", "capture_failures", "watermarks", "dataset_cases")
#: An auditor that kills itself before its insert of a number. The inserts of a batch: rows, disclosures, leaves.
KILLED = """
import os, runpy, signal, sys
from assay_auditor.log import Log
insert, left = Log._insert, [int(sys.argv[1])]

def killed(self, *arguments):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    insert(self, *arguments)

Log._insert = killed
runpy.run_module("assay_auditor", run_name="__main__")
"""
HOUR_S = 3_600


@pytest.fixture
def audited(migrated: StoreServer, tmp_path: Path) -> Iterator[Audited]:
    with connect(migrated.settings().store) as owner:
        for table in (*TABLES, *SOURCES):
            owner.command(f"TRUNCATE TABLE assay_base.{table}")
        yield Audited(migrated, owner, tmp_path / "log")


def started(audited: Audited, directory: Path, *program: str, **own: Any) -> "subprocess.Popen[bytes]":
    """Start an auditor with a directory. `own`: settings of its section."""
    file = directory.parent / f"{directory.name}.toml"
    values = {"origin": ORIGIN, "directory": str(directory), "port": free_port(), **own}
    file.write_text(
        f'[store]\nurl = "{audited.server.url}"\nuser = "auditor"\npassword = "{PASSWORD}"\n'
        '[telemetry]\nhost = "127.0.0.1"\n[auditor]\n' + "".join(f"{k} = {json.dumps(v)}\n" for k, v in values.items())
    )
    return subprocess.Popen(
        [sys.executable, *(program or ("-m", "assay_auditor"))], env=os.environ | {FILE_VARIABLE: str(file)}
    )


def killed_at(audited: Audited, number: int, **own: Any) -> None:
    """Run an auditor that is killed before its insert of this number."""
    process = started(audited, audited.directory, "-c", KILLED, str(number), **own)
    assert process.wait(120) == -signal.SIGKILL


def deleted(audited: Audited, table: str, where: str = "1") -> None:
    audited.owner.command(f"ALTER TABLE assay_base.{table} DELETE WHERE {where}", settings={"mutations_sync": 2})


def mismatches(audited: Audited, directory: Path | None = None) -> list[tuple[str, int | None, str]]:
    """Verify the log. `directory`: another one than that of the log."""
    own = audited.settings().auditor.model_copy(update={"directory": directory or audited.directory})
    signer, _ = load_or_create(audited.directory, ORIGIN)
    found = verify(AuditLog(audited.owner, own), Result(), vkeys=[signer.verifier.vkey])
    return [(each.kind, each.leaf_index, each.what) for each in found]


def logged(audited: Audited) -> "Counter[str]":
    """Count the leaves of each source."""
    query = "SELECT toString(source_id), uniqExact(leaf_index) FROM assay.audit_leaves GROUP BY source_id"
    return Counter({str(source): int(count) for source, count in audited.query(query)})


def has_leaves(audited: Audited, least: int) -> bool:
    return len(logged(audited)) >= least


def behind_the_end(audited: Audited) -> list[tuple[str, str]]:
    """Return the rows that have no leaf yet: source and hash."""
    query = (
        "SELECT DISTINCT toString(source_id), leaf_hash, leaf_index FROM assay.audit_rows "
        "WHERE leaf_index NOT IN (SELECT leaf_index FROM assay.audit_leaves) ORDER BY leaf_index"
    )
    return [(row[0], row[1]) for row in audited.query(query)]


@pytest.mark.parametrize("number", [2, 3, 5, 6])
def test_rows_of_a_killed_auditor_get_their_leaves_after_their_sources_are_gone(audited: Audited, number: int) -> None:
    """Numbers: before the disclosures and before the leaves, of a batch of calls, and of one of losses."""
    calls, lost = audited.calls(3), failure()
    audited.insert("capture_failures", lost)
    audited.watermark(calls[-1]["id"])
    killed_at(audited, number)
    left = behind_the_end(audited)
    assert left
    deleted(audited, "tool_calls")
    deleted(audited, "capture_failures")
    later = audited.calls(2, start=100)
    audited.watermark()
    audited.audit()
    assert mismatches(audited) == []
    hashes = {str(text) for (text,) in audited.query("SELECT leaf_hash FROM assay.audit_leaves")}
    assert {each for _, each in left} <= hashes
    wanted = {each["event_id"] for each in (*calls, *later)} | ({lost["failure_id"]} if number > 3 else set())
    assert {each for each in logged(audited) if each in {*wanted, lost["failure_id"]}} == wanted
    assert set(logged(audited).values()) == {1}
    assert (audited.directory / BATCH_FILE).read_bytes() == b""


def test_nothing_of_the_next_batch_is_written_after_a_batch_failed(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = audited.calls(6)
    audited.watermark(calls[-1]["id"])
    insert = Log._insert

    def failing(self: Log, table: str, *rest: Any) -> None:
        if table == "audit_leaves" and self.tree.size == 2:
            raise OSError("full")
        insert(self, table, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Log, "_insert", failing)
        patch.setattr("assay_auditor.auditor.PASS_S", 60.0)
        auditor = audited.auditor(batch_rows=2)
        auditor.step()
        auditor.close()
    assert "OSError" in auditor.problem
    assert audited.size() == 2
    assert audited.query("SELECT max(leaf_index) FROM assay.audit_rows") == [(3,)]
    audited.audit()
    assert mismatches(audited) == []
    assert {each["event_id"] for each in calls} <= set(logged(audited))


def test_values_that_a_crash_lost_without_the_file_of_the_batch_are_reported_and_the_log_goes_on(
    audited: Audited, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a file nor a source has them: no record may explain it, because that would hide a deletion as well."""
    audited.calls(2)
    audited.watermark()
    killed_at(audited, 2)
    kept = audited.directory / BATCH_FILE
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.write_bytes(b'["cut\n[]\n7\n[1,2,3,4]\n["log",0,"digest","text","",""]\n' + kept.read_bytes()[:20])
    deleted(audited, "tool_calls")
    audited.calls(1, start=100)
    audited.watermark()
    audited.audit()
    assert {each[:2] for each in mismatches(audited)} == {("missing_disclosure", 0), ("missing_disclosure", 1)}
    assert audited.size() == 3
    assert any("values of personal fields of 2 rows are lost" in each.message for each in caplog.records)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6])
def test_a_kill_at_any_insert_leaves_an_intact_log_whose_rows_have_all_their_values(
    audited: Audited, number: int
) -> None:
    calls, lost = audited.calls(3), failure()
    audited.insert("capture_failures", lost)
    audited.watermark(calls[-1]["id"])
    killed_at(audited, number)
    later = audited.calls(2, start=100)  # the next batch begins with these
    audited.watermark()
    audited.audit()
    assert mismatches(audited) == []
    assert {each["event_id"] for each in (*calls, *later)} | {lost["failure_id"]} <= set(logged(audited))
    [[named]] = audited.query("SELECT uniqExact(leaf_index, d) FROM assay.audit_rows ARRAY JOIN sd AS d")
    [[kept]] = audited.query("SELECT uniqExact(leaf_index, digest) FROM assay.audit_disclosures")
    assert named == kept > 0


def test_a_start_after_a_kill_reads_no_records_of_operations_again(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited.insert("operations_audit", operation())
    killed_at(audited, 3)
    assert behind_the_end(audited)
    with connect(audited.settings().store) as client:
        asked: list[str] = []
        query = client.query

        def watched(text: str, *rest: Any, **named: Any) -> Any:
            asked.append(text)
            return query(text, *rest, **named)

        monkeypatch.setattr(client, "query", watched)
        signer, secret = load_or_create(audited.directory, ORIGIN)
        Log(client, "assay_base", signer, secret, audited.directory).resume(Sources(client, ORIGIN))
    assert behind_the_end(audited) == []
    assert [text for text in asked if "operations_audit" in text] == []


def test_a_call_that_was_stored_again_before_its_leaf_keeps_the_row_that_is_written(audited: Audited) -> None:
    [call] = audited.calls(1)
    audited.watermark()
    killed_at(audited, 3)
    deleted(audited, "tool_calls")
    audited.insert("tool_calls", {**call, "id": call["id"] - 7, "created_at": iso(time.time_ns() // 1_000_000 + 9)})
    audited.audit()
    assert mismatches(audited) == []
    assert logged(audited)[call["event_id"]] == 1


def test_a_copy_with_a_smaller_id_after_the_leaf_changes_nothing(audited: Audited) -> None:
    [call] = audited.calls(1)
    audited.watermark()
    audited.audit()
    before = logged(audited)
    deleted(audited, "tool_calls")
    audited.insert("tool_calls", {**call, "id": call["id"] - 2 * HOUR_S * 1_000 * PLACES, "tool_name": "other"})
    audited.audit()
    assert (logged(audited), mismatches(audited)) == (before, [])


def test_a_name_that_was_deleted_before_the_leaf_stays_deleted_and_is_reported(audited: Audited) -> None:
    audited.calls(1)
    audited.watermark()
    killed_at(audited, 3)
    [[caller]] = audited.query("SELECT caller_id FROM assay.audit_rows WHERE leaf_index = 0")
    deleted(audited, "audit_disclosures", f"digest = '{caller}'")
    audited.audit()
    assert [each[:2] for each in mismatches(audited)] == [("missing_disclosure", 0)]
    assert audited.query(f"SELECT count() FROM assay.audit_disclosures WHERE digest = '{caller}'") == [(0,)]


def test_a_forged_row_behind_the_end_is_named_with_the_statement_that_removes_it(
    audited: Audited, caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("ff" * 32, "it's no hash"):
        caplog.clear()
        audited.calls(2)
        audited.watermark()
        audited.audit()
        size = audited.size()
        quoted = text.replace("'", "''")
        audited.owner.command(
            f"INSERT INTO assay_base.audit_rows SELECT * REPLACE ({size} AS leaf_index, generateUUIDv4() AS source_id, "
            f"'{quoted}' AS leaf_hash) FROM (SELECT * FROM assay_base.audit_rows WHERE leaf_index = 0 LIMIT 1)"
        )
        later = audited.calls(1, start=50)
        audited.audit()
        assert logged(audited)[later[0]["event_id"]] == 1  # the log goes on
        assert {(kind, index) for kind, index, _ in mismatches(audited)} >= {("second_row", size)}
        [said] = [each.message for each in caplog.records if "do not continue it" in each.message]
        assert f"at leaf {size}:" in said
        audited.owner.command(said.partition("as owner: ")[2], settings={"mutations_sync": 2})
        assert mismatches(audited) == []


def inserted(audited: Audited, *leaves: Leaf) -> None:
    """Insert rows as somebody who has only the password of the auditor."""
    with connect(audited.settings().store) as client:
        rows = b"".join(stored_row(leaf, ORIGIN) + b"\n" for leaf in leaves)
        insert_json_rows(client, "assay_base.audit_rows", rows, len(leaves))


def end_of(audited: Audited) -> bytes:
    """Return the last hash of the chain, for a row that continues it."""
    found = audited.query("SELECT chain_hash FROM assay.audit_leaves ORDER BY leaf_index DESC LIMIT 1")
    return bytes.fromhex(str(found[0][0])) if found else GENESIS


def source_of(audited: Audited, call: Json) -> Source:
    with connect(audited.settings().store) as client:
        [source] = Sources(client, ORIGIN).by_ids([("tool_call", call["event_id"])])
    return source


def harmless(source: Source, **fields: Any) -> Source:
    """Return a refused call as a successful one of another tool."""
    return replace(
        source, status="success", error_kind=None, tool_name="list_docs", caller_id=None, personal={}, **fields
    )


def signed_tools(audited: Audited, call: Json) -> list[str]:
    """Return the tools of the rows of a call that have leaves."""
    query = (
        "SELECT DISTINCT toString(tool_name) FROM assay.audit_rows WHERE (leaf_index, leaf_hash) IN "
        f"(SELECT leaf_index, leaf_hash FROM assay.audit_leaves) AND source_id = '{call['event_id']}'"
    )
    return [str(tool) for (tool,) in audited.query(query)]


def unconfirmed() -> float:
    return REGISTRY.get_sample_value("assay_audit_unconfirmed_rows_total") or 0.0


REFUSED = {"status": "refused", "error_kind": "pii_blocked", "tool_name": "get_secret"}


@pytest.mark.parametrize("as_kind", ["tool_call", "server_event"])
def test_a_row_that_contradicts_its_source_is_never_signed_and_the_source_gets_its_leaf(
    audited: Audited, as_kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The row continues the chain: its hashes are right."""
    audited.calls(3)
    audited.watermark()
    audited.audit()
    size = audited.size()
    [call] = audited.calls(1, start=50, **REFUSED)
    forged = harmless(source_of(audited, call), kind=as_kind)
    inserted(audited, leaf_of(forged, size, end_of(audited), b"attacker" * 4))
    audited.audit()
    assert signed_tools(audited, call) == ["get_secret"]
    [said] = [each.message for each in caplog.records if "contradict their sources" in each.message]
    assert f"at leaf {size}:" in said
    assert {(kind, index) for kind, index, _ in mismatches(audited)} >= {("second_row", size)}
    audited.owner.command(said.partition("as owner: ")[2], settings={"mutations_sync": 2})
    assert mismatches(audited) == []


def test_a_row_whose_source_is_gone_is_signed_with_an_error_and_counted(
    audited: Audited, caplog: pytest.LogCaptureFixture
) -> None:
    [call] = audited.calls(1)
    audited.watermark()
    audited.audit()
    size = audited.size()
    source = replace(source_of(audited, call), source_id=new_event_id(), caller_id=None, personal={})
    inserted(audited, leaf_of(source, size, end_of(audited), b"attacker" * 4))
    counted = unconfirmed()
    audited.audit()
    assert logged(audited)[source.source_id] == 1
    [said] = [each.message for each in caplog.records if "nothing confirms" in each.message]
    assert f"the first is leaf {size}:" in said
    assert unconfirmed() == counted + 1


@pytest.mark.parametrize("number", [2, 3])
def test_rows_that_the_file_of_the_batch_names_need_no_source(
    audited: Audited, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    calls = audited.calls(2)
    audited.watermark()
    killed_at(audited, number)
    deleted(audited, "tool_calls")
    audited.audit()
    assert {each["event_id"] for each in calls} <= set(logged(audited))
    assert [each.message for each in caplog.records if each.levelno >= logging.WARNING] == []
    assert mismatches(audited) == []


@pytest.mark.parametrize("keeps_file", [True, False])
def test_another_version_of_an_interrupted_row_is_not_taken_whatever_its_hash(
    audited: Audited, keeps_file: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the file of the batch, the source and the secret of the salts tell which one is true."""
    [call] = audited.calls(1, **REFUSED)
    audited.watermark()
    killed_at(audited, 3)
    [(_, genuine)] = behind_the_end(audited)
    source = source_of(audited, call)
    made = (leaf_of(harmless(source, duration_us=each), 0, GENESIS, b"attacker" * 4) for each in range(100_000))
    forged = next(each for each in made if each.hash.hex() < genuine)
    inserted(audited, forged)
    if not keeps_file:
        (audited.directory / BATCH_FILE).unlink()
    audited.audit()
    assert signed_tools(audited, call) == ["get_secret"]
    [said] = [each.message for each in caplog.records if "as owner: " in each.message]
    audited.owner.command(said.partition("as owner: ")[2], settings={"mutations_sync": 2})
    assert mismatches(audited) == []


def test_the_version_with_the_time_of_its_source_is_taken_before_one_with_another_time(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row with another place and time may be of a source that was stored again since."""
    [call] = audited.calls(1)
    audited.watermark()
    killed_at(audited, 3)
    [(_, genuine)] = behind_the_end(audited)
    source = source_of(audited, call)
    _, secret = load_or_create(audited.directory, ORIGIN)
    made = (leaf_of(replace(source, place=source.place - each), 0, GENESIS, secret) for each in range(1, 100_000))
    inserted(audited, next(each for each in made if each.hash.hex() < genuine))
    (audited.directory / BATCH_FILE).unlink()
    monkeypatch.setattr(log_module, "_CONTESTED_S", 0.0)
    audited.audit()
    assert audited.query("SELECT DISTINCT leaf_hash FROM assay.audit_leaves WHERE leaf_index = 0") == [(genuine,)]


def stored_at(seconds: float) -> str:
    """Return the time of the store when its clock was off by seconds."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + seconds))


def case(number: int) -> Json:
    return {
        "schema_version": 1,
        "project": "default",
        "dataset": "golden",
        "case_id": f"case-{number}",
        "version": 1,
        "event_id": None,
        "query": "how?",
        "expected_slugs": ["a"],
        "expected_chunk_ids": [],
        "null_case": False,
        "expected_answer": None,
        "inclusion_probability": 1.0,
        "reviewer": "ana",
        "at": "2026-05-17T18:00:00.000000Z",
        "retired": False,
    }


def add_case(audited: Audited, number: int, offset_s: float) -> str:
    """Insert a case when the store's clock was off by seconds, and return the id of its record."""
    modified = "ALTER TABLE assay_base.dataset_cases MODIFY COLUMN stored_at DateTime64(6, 'UTC')"
    audited.owner.command(f"{modified} DEFAULT now64(6, 'UTC')")
    audited.insert("dataset_cases", {**case(number), "stored_at": stored_at(offset_s)})
    audited.owner.command(f"{modified} MATERIALIZED now64(6, 'UTC')")
    return record_id(f"default/golden/1/case-{number}", "done")


@pytest.mark.parametrize("away_h", [0.5, 2, 20])
def test_records_that_were_stored_after_the_clock_was_set_back_are_one_leaf_each(
    audited: Audited, away_h: float
) -> None:
    """The clock was ahead by four hours, was set back, and the auditor was away since."""
    away_s = away_h * HOUR_S
    ahead = failure(stored_at=stored_at(4 * HOUR_S - away_s))
    audited.insert("capture_failures", ahead)
    first = add_case(audited, 1, 4 * HOUR_S - away_s)
    audited.audit()
    before = logged(audited)
    assert before[ahead["failure_id"]] == before[first] == 1
    late = [failure(stored_at=stored_at(seconds - away_s)) for seconds in (0, 60, 600)]
    audited.insert("capture_failures", *late)
    second = add_case(audited, 2, -away_s)
    for _ in range(2):
        audited.audit()
        assert {logged(audited)[each["failure_id"]] for each in (ahead, *late)} == {1}
        assert logged(audited)[first] == logged(audited)[second] == 1
    places = audited.query(
        "SELECT toString(source_id), min(leaf_index) AS i FROM assay.audit_leaves WHERE kind = 'lost' GROUP BY 1 ORDER BY i"
    )
    assert [each for each, _ in places] == [each["failure_id"] for each in (ahead, *late)]
    assert mismatches(audited) == []


def test_records_have_the_same_ids_in_the_store_as_in_rows(audited: Audited) -> None:
    audited.insert("operations_audit", *(operation() for _ in range(20)), *(operation("done") for _ in range(20)))
    with connect(audited.settings().store) as client:
        sources = Sources(client, ORIGIN)
        known = sources.operations(0, 1_000)
        assert len(known) >= 40
        assert sources.by_ids([(each.kind, each.source_id) for each in known]) == known


def test_a_late_look_reads_no_rows_of_hours_that_agree(audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    audited.insert("capture_failures", *(failure(stored_at=stored_at(-2 * HOUR_S)) for _ in range(3)))
    audited.insert("capture_failures", failure())
    audited.audit()
    asked: list[str] = []
    ids = Sources._ids

    def watched(self: Sources, *rest: Any) -> list[str]:
        asked.append(rest[0])
        return ids(self, *rest)

    monkeypatch.setattr(Sources, "_ids", watched)
    with connect(audited.settings().store) as client:
        sources = Sources(client, ORIGIN)
        reached = time.time_ns() // 1_000
        assert (sources.late("lost", reached, 10), asked) == ([], [])
        missed = failure(stored_at=stored_at(-3 * HOUR_S))
        audited.insert("capture_failures", missed)
        [found] = sources.late("lost", reached, 10)
        assert (found.source_id, found.late, len(asked)) == (missed["failure_id"], True, 2)


def test_a_record_of_a_clock_that_was_set_back_is_found_although_newer_ones_were_stored_first(audited: Audited) -> None:
    """The auditor was away for 52 hours, the clock was 19 hours ahead, and both a late loss and one of now wait."""
    away_s = 52 * HOUR_S
    audited.insert("capture_failures", failure(stored_at=stored_at(-away_s)))
    audited.audit()
    late, new = failure(stored_at=stored_at(-away_s - 19 * HOUR_S)), failure()
    audited.insert("capture_failures", late, new)
    for _ in range(2):
        audited.audit()
        assert (logged(audited)[late["failure_id"]], logged(audited)[new["failure_id"]]) == (1, 1)
    assert mismatches(audited) == []


def test_a_look_for_late_records_that_failed_is_repeated_from_the_place_of_the_last_one(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    away_s = 52 * HOUR_S
    audited.insert("capture_failures", failure(stored_at=stored_at(-away_s)))
    audited.audit()
    late, new = failure(stored_at=stored_at(-away_s - 19 * HOUR_S)), failure()
    audited.insert("capture_failures", late, new)
    auditor = audited.auditor()

    def failing(*_: Any) -> None:
        raise OSError("away")

    with monkeypatch.context() as patch:
        patch.setattr(Sources, "late", failing)
        auditor.step()
    auditor.step()
    assert (logged(audited)[late["failure_id"]], logged(audited)[new["failure_id"]]) == (0, 1)
    auditor._late_at = 0.0
    auditor.step()
    auditor.close()
    assert logged(audited)[late["failure_id"]] == 1


def copied(audited: Audited, name: str) -> Path:
    """Return a second directory with the keys of the log: that of an auditor on another host."""
    load_or_create(audited.directory, ORIGIN)
    other = audited.directory.parent / name
    shutil.copytree(audited.directory, other)
    return other


def signed(audited: Audited, *directories: Path) -> dict[int, set[bytes]]:
    """Return the roots of each size that are signed anywhere."""
    notes = [str(note) for (note,) in audited.query("SELECT note FROM assay.audit_checkpoints")]
    for directory in directories:
        file = directory / CHECKPOINT_FILE
        notes += notes_of(file.read_text()) if file.exists() else []
    signer, _ = load_or_create(audited.directory, ORIGIN)
    found: dict[int, set[bytes]] = {}
    for note in notes:
        checkpoint = Checkpoint.verified(note, [signer.verifier], ORIGIN)
        found.setdefault(checkpoint.size, set()).add(checkpoint.root)
    return found


def test_an_auditor_that_knows_an_old_end_neither_writes_nor_signs(audited: Audited) -> None:
    other = copied(audited, "other")
    audited.calls(3)
    audited.watermark()
    first, second = audited.auditor(), Audited(audited.server, audited.owner, other).auditor()
    second._resumed()
    first.step()
    before = logged(audited)
    audited.insert("capture_failures", failure())
    second.step()
    assert "another auditor, with another directory" in second.problem
    assert (logged(audited), not (other / CHECKPOINT_FILE).exists()) == (before, True)
    second.step()
    assert not second.problem
    audited.insert("capture_failures", failure())
    first.step()
    assert "another auditor, with another directory" in first.problem
    first.close()
    second.close()
    assert {len(roots) for roots in signed(audited, audited.directory, other).values()} == {1}
    assert set(logged(audited).values()) == {1}


def test_of_two_auditors_that_wrote_different_leaves_at_one_place_at_most_one_signs(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their checks before a batch are left out, as if both had made them at the same time."""
    other = copied(audited, "other")
    monkeypatch.setattr(Log, "_expect_rows", lambda *_: None)
    first, second = audited.auditor(), Audited(audited.server, audited.owner, other).auditor()
    logs = []
    for auditor in (first, second):
        log, sources = auditor._resumed()
        call, lost = tool_call(), failure()
        audited.insert("tool_calls", call)
        audited.insert("capture_failures", lost)
        found = sources.by_ids([("tool_call", call["event_id"]), ("lost", lost["failure_id"])])
        logs.append((log, found))
    with monkeypatch.context() as patch:
        patch.setattr(Log, "_expect_end", lambda *_: None)
        for log, found in logs:
            log.append(found)
        for log, _ in logs:
            with pytest.raises(RuntimeError, match="incomplete or double"):
                log.sign()
    for log, _ in logs:
        with pytest.raises(LogMovedError):
            log.sign()
    assert signed(audited, audited.directory, other) == {}
    first._disconnect()
    second._disconnect()


@pytest.mark.parametrize("keeps_file", [True, False])
def test_of_different_rows_at_one_place_one_is_taken_when_nobody_can_be_writing_its_leaf_any_more(
    audited: Audited, keeps_file: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Both auditors were killed when they had written their rows. Without the file of the batch, both rows are as good."""
    other = copied(audited, "other")
    first, second = audited.auditor(), Audited(audited.server, audited.owner, other).auditor()
    started_logs = [auditor._resumed() for auditor in (first, second)]
    lost = [failure(), failure()]
    audited.insert("capture_failures", *lost)

    insert = Log._insert

    def killed(self: Log, table: str, *rest: Any) -> None:
        if table == "audit_disclosures":
            raise OSError("killed")
        insert(self, table, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Log, "_expect_rows", lambda *_: None)
        patch.setattr(Log, "_insert", killed)
        for (log, sources), each in zip(started_logs, lost, strict=True):
            with pytest.raises(OSError, match="killed"):
                log.append(sources.by_ids([("lost", each["failure_id"])]))
    second._disconnect()
    first._disconnect()
    if not keeps_file:
        (audited.directory / BATCH_FILE).unlink()
    first.step()
    assert "another auditor" in first.problem
    assert logged(audited) == {}
    monkeypatch.setattr(log_module, "_CONTESTED_S", 0.0)
    first.step()
    first.close()
    assert not first.problem
    assert [logged(audited)[each["failure_id"]] for each in lost] == [1, 1]
    assert any("Either may be forged" in each.message for each in caplog.records) is not keeps_file
    assert (
        {("second_row", 0)}
        <= {each[:2] for each in mismatches(audited)}
        <= {(kind, 0) for kind in ("second_row", "row", "leaf")}
    )
    [said] = [each.message for each in caplog.records if "do not continue it" in each.message]
    audited.owner.command(said.partition("as owner: ")[2], settings={"mutations_sync": 2})
    assert mismatches(audited) == []


def test_an_auditor_does_not_sign_fewer_leaves_than_are_signed_in_the_store(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = copied(audited, "other")
    calls = audited.calls(2)
    audited.watermark(calls[0]["id"])
    late = Audited(audited.server, audited.owner, other).auditor(checkpoint_s=1e4)
    late._signed_at = float("inf")
    late.step()
    audited.watermark()
    audited.audit()
    assert late._log is not None
    with pytest.raises(LogMovedError):
        late._log.sign()
    monkeypatch.setattr(Log, "_expect_end", lambda *_: None)
    with pytest.raises(LogMovedError):
        late._log.sign()
    assert not (other / CHECKPOINT_FILE).exists()
    late._disconnect()


def test_two_auditors_with_two_directories_that_are_killed_sign_one_log(audited: Audited) -> None:
    """The store restarts once in between."""
    directories = (audited.directory, copied(audited, "other"))
    quick = {"batch_rows": 5, "checkpoint_leaves": 5, "checkpoint_s": 0.3}
    audited.watermark()
    running = [started(audited, each, **quick) for each in directories]
    wanted: set[str] = set()
    try:
        for number in range(12):
            calls, lost = audited.calls(7, start=1_000 * number), [failure() for _ in range(3)]
            audited.insert("capture_failures", *lost)
            wanted |= {each["event_id"] for each in calls} | {each["failure_id"] for each in lost}
            until(partial(has_leaves, audited, len(wanted) // 3))
            place = number % 2
            running[place].send_signal(signal.SIGKILL)
            running[place].wait(60)
            if number == 6:
                audited.owner.close()
                audited.server.kill()
                audited.server.start()
                audited.owner = connect(audited.server.settings().store)
            running[place] = started(audited, directories[place], **quick)
        until(lambda: wanted <= set(logged(audited)))
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(60)
    leaves = [
        bytes.fromhex(str(text))
        for (text, _) in audited.query(
            "SELECT DISTINCT leaf_hash, leaf_index FROM assay.audit_leaves ORDER BY leaf_index"
        )
    ]
    roots = signed(audited, *directories)
    assert roots
    assert {size: {root_of(leaves[:size])} for size in roots} == roots
    assert set(logged(audited).values()) == {1}
    empty = audited.directory.parent / "empty"
    empty.mkdir()
    assert mismatches(audited, empty) == []
