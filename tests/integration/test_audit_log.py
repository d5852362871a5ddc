"""The auditor and a real store: every call, loss and operation becomes one leaf, whatever happens in between."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_auditor import log as log_module
from assay_auditor.disclosures import opened
from assay_auditor.log import Log
from assay_auditor.notes import Checkpoint, Verifier
from assay_auditor.rows import Source
from assay_auditor.sources import Sources
from assay_operations.audit_log import AuditLog
from assay_operations.audit_proofs import disclosed, found_row
from assay_operations.golden.save import Review, retire_case, save_case
from assay_runtime.store import connect
from assay_schema.settings import FILE_VARIABLE
from tests.support.audited import ORIGIN, TABLES, Audited, failure, operation
from tests.support.ports import free_port
from tests.support.sample_rows import candidate, server_event, tool_call
from tests.support.store import PASSWORD, StoreServer
from tests.support.wait import until

#: See the fixture `migrated`.
MAY_TAMPER = True


@pytest.fixture
def audited(migrated: StoreServer, tmp_path: Path) -> Iterator[Audited]:
    with connect(migrated.settings().store) as owner:
        for table in (
            *TABLES,
            "tool_calls",
            "server_events",
            "capture_failures",
            "watermarks",
            "candidates",
            "dataset_cases",
        ):
            owner.command(f"TRUNCATE TABLE assay_base.{table}")
        yield Audited(migrated, owner, tmp_path / "log")


def rows(audited: Audited, columns: str) -> list[Any]:
    return [tuple(row) for row in audited.query(f"SELECT DISTINCT {columns} FROM assay.audit_rows ORDER BY leaf_index")]


def state(audited: Audited) -> dict[str, list[Any]]:
    """Everything that the log says, without the times at which it was written."""
    return {
        "rows": audited.query("SELECT DISTINCT * EXCEPT stored_at FROM assay.audit_rows ORDER BY ALL"),
        "leaves": audited.query("SELECT DISTINCT * EXCEPT stored_at FROM assay.audit_leaves ORDER BY ALL"),
        "disclosures": audited.query("SELECT DISTINCT * EXCEPT stored_at FROM assay.audit_disclosures ORDER BY ALL"),
    }


def recorded_operations(audited: Audited) -> int:
    """Count the records of earlier tests of this module: nobody can delete them."""
    return int(audited.query("SELECT count() FROM assay.operations_audit")[0][0])


def test_each_call_event_loss_and_operation_is_one_leaf(audited: Audited) -> None:
    calls = audited.calls(3)
    audited.insert("server_events", server_event(10))
    audited.insert("capture_failures", failure(), failure(entry_id=None), failure(stage="judge"))
    audited.insert("operations_audit", operation())
    audited.watermark()
    audited.audit()
    kinds = [row[0] for row in rows(audited, "kind, leaf_index")]
    assert kinds == ["tool_call"] * 3 + ["server_event", "lost"] + ["operation"] * recorded_operations(audited)
    assert [row[0] for row in rows(audited, "toString(source_id), leaf_index")[:3]] == [
        call["event_id"] for call in calls
    ]
    [lost] = audited.query(
        "SELECT status, tool_name, error_kind, pii_attempted, pii_blocked FROM assay.audit_rows WHERE kind = 'lost'"
    )
    assert tuple(lost) == ("lost", "scrubber", "scrubber_exception", ["contact", "health"], ["health"])


def test_a_refused_call_shows_what_was_attempted_and_what_was_blocked(audited: Audited) -> None:
    audited.calls(
        1,
        status="refused",
        error_kind="pii_blocked",
        pii_attempted=["health", "contact"],
        pii_blocked=["health"],
        result_summary=None,
    )
    audited.watermark()
    audited.audit()
    row, *_ = rows(
        audited,
        "status, refusal_reason, cost_class, pii_categories, pii_attempted, pii_blocked, duration_us, leaf_index",
    )
    assert row == ("refused", "pii_blocked", "refused", "contact,health", ["contact", "health"], ["health"], 47_500, 0)


def test_each_version_of_a_saved_case_is_one_leaf_with_its_reviewer_and_without_its_question(audited: Audited) -> None:
    question = candidate(query="rotate signing keys", pii_families={})
    audited.insert("candidates", question)
    settings = audited.settings("console").store
    with connect(settings) as console:
        saved = save_case(
            console, settings, "default", "golden", Review(["doc/a"]), "ana", event_id=question["event_id"]
        )
        retire_case(console, settings, "default", "golden", saved.case_id, "bob", base_version=saved.version)
    for _ in range(2):
        audited.audit()
        found = [row for row in rows(audited, "tool_name, status, leaf_index") if row[0].startswith("dataset ")]
        assert [row[:2] for row in found] == [("dataset save", "done"), ("dataset retire", "done")]
    log = AuditLog(audited.owner, audited.settings().auditor)
    for (_, _, index), person, version in zip(found, ("ana", "bob"), (1, 2), strict=True):
        opened = disclosed(log, found_row(log, str(index)))
        target = {"project": "default", "dataset": "golden", "case_id": saved.case_id, "version": version}
        assert (opened["caller_id"], orjson.loads(opened["target"] or "")) == (person, target)
        assert not any("signing" in (value or "") or "doc/a" in (value or "") for value in opened.values())
    with connect(audited.settings().store) as client:
        for column in ("query", "expected_slugs", "expected_answer", "*"):
            with pytest.raises(Exception, match=r"ACCESS_DENIED|Not enough privileges"):
                client.query(f"SELECT {column} FROM assay.dataset_case_versions")


def test_the_log_never_passes_the_watermark_and_continues_when_it_moves(audited: Audited) -> None:
    calls = audited.calls(5)
    audited.watermark(calls[2]["id"])
    audited.audit()
    assert audited.size() == 3 + recorded_operations(audited)
    audited.watermark()
    audited.audit()
    assert audited.size() == 5 + recorded_operations(audited)


def test_small_batches_and_large_ones_give_the_same_leaves_of_events(audited: Audited, tmp_path: Path) -> None:
    audited.calls(7)
    audited.watermark()
    audited.audit(batch_rows=1)
    # Records of earlier tests are between them, so their places in the log differ.
    events = "DISTINCT * EXCEPT (leaf_index, id, chain_hash, leaf_hash, stored_at) FROM assay.audit_rows WHERE kind = 'tool_call'"
    small = audited.query(f"SELECT {events} ORDER BY place")
    for table in TABLES:
        audited.owner.command(f"TRUNCATE TABLE assay_base.{table}")
    (audited.directory / "checkpoints.txt").unlink()
    audited.audit(batch_rows=1_000)
    assert audited.query(f"SELECT {events} ORDER BY place") == small != []


def test_events_that_are_deleted_between_two_batches_hold_up_no_later_ones(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_auditor.auditor.PASS_S", 0.0)  # one batch a pass
    calls = audited.calls(30)
    audited.watermark()
    auditor = audited.auditor(batch_rows=2)
    assert [auditor.step() for _ in range(3)] == [True] * 3  # the ends of the next batches are known by now
    gone = ", ".join(str(call["id"]) for call in calls[6:17])
    audited.owner.command(
        f"ALTER TABLE assay_base.tool_calls DELETE WHERE id IN ({gone})", settings={"mutations_sync": 2}
    )
    for _ in range(20):
        auditor.step()
    auditor.close()
    assert auditor.problem == ""
    logged = [
        row[0]
        for row in rows(audited, "toString(source_id), leaf_index")
        if row[0] in {each["event_id"] for each in calls}
    ]
    assert logged == [call["event_id"] for call in (*calls[:6], *calls[17:])]


def test_an_event_that_is_delivered_twice_is_one_leaf(audited: Audited) -> None:
    [call] = audited.calls(1)
    audited.watermark()
    audited.audit()
    before = audited.size()
    audited.insert("tool_calls", {**call, "id": call["id"] + 2}, {**call, "id": call["id"] - 2})
    audited.watermark()
    audited.audit()
    assert audited.size() == before


def test_a_row_that_appears_below_the_log_is_added_at_its_end_and_marked(audited: Audited) -> None:
    audited.calls(3)
    audited.watermark()
    audited.audit()
    before = state(audited)["leaves"]
    [late] = audited.calls(1, days_old=0.01)
    audited.audit()
    assert state(audited)["leaves"][: len(before)] == before
    assert rows(audited, "toString(source_id), late, leaf_index")[-1][:2] == (late["event_id"], True)
    audited.audit()
    assert audited.size() == len(before) + 1


def test_a_loss_that_is_reported_again_and_a_record_that_is_sent_again_are_one_leaf(audited: Audited) -> None:
    lost, record = failure(), operation()
    audited.insert("capture_failures", lost)
    audited.insert("operations_audit", record)
    audited.audit()
    before = audited.size()
    audited.insert("capture_failures", lost)
    audited.insert("operations_audit", record, {**record, "outcome": "done"})
    audited.audit()
    assert audited.size() == before + 1


def test_losses_of_the_last_hour_that_have_a_leaf_are_read_again_only_after_a_change(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited.insert("capture_failures", failure(), failure())
    audited.audit()
    asked: list[int] = []
    unknown = Sources.unknown

    def counted(self: Sources, ids: Sequence[str]) -> list[str]:
        asked.append(len(ids))
        return unknown(self, ids)

    monkeypatch.setattr(Sources, "unknown", counted)
    with connect(audited.settings().store) as client:
        sources = Sources(client, ORIGIN)
        reads: list[str] = []
        read = client.query_row_block_stream

        def watched(query: str, **rest: Any) -> Any:
            reads.append(query)
            return read(query, **rest)

        monkeypatch.setattr(client, "query_row_block_stream", watched)
        assert sources.lost(0, 10) == sources.lost(0, 10) == sources.lost(0, 10) == []
        assert (asked, len(reads)) == ([2], 1)  # nothing has changed
        later = failure()
        audited.insert("capture_failures", later)
        assert [each.source_id for each in sources.lost(0, 10)] == [later["failure_id"]]
        assert len(sources.lost(0, 10)) == 1  # it has no leaf yet


def test_values_of_256_kib_are_hashed_by_the_store_and_leave_the_log_small(audited: Audited) -> None:
    audited.calls(2, args_summary='{"a":"' + "ä" * 131_000 + '"}', agent_name="ä" * 1_000)
    audited.watermark()
    audited.audit()
    assert len(rows(audited, "leaf_index")) == 2 + recorded_operations(audited)
    [found] = audited.query("SELECT max(length(disclosure)) FROM assay.audit_disclosures WHERE leaf_index < 2")
    assert found[0] < 4_000


def test_disclosures_open_the_digests_of_the_rows(audited: Audited) -> None:
    audited.calls(1)
    audited.watermark()
    audited.audit()
    [[digests, caller]] = audited.query("SELECT sd, caller_id FROM assay.audit_rows WHERE leaf_index = 0")
    stored = dict(
        audited.query("SELECT digest, disclosure FROM assay.audit_disclosures WHERE leaf_index = 0")  # type: ignore[arg-type]
    )
    assert sorted(stored) == digests
    assert opened(stored[caller]) == ("caller_id", "helper")
    assert {name for name, _ in filter(None, map(opened, stored.values()))} == {
        "caller_id",
        "args_sha256",
        "result_sha256",
        "policy",
    }


def test_checkpoints_are_in_the_file_and_in_the_store_and_cover_the_log(audited: Audited) -> None:
    audited.calls(5)
    audited.watermark()
    audited.audit(batch_rows=2, checkpoint_leaves=2)
    notes = [str(row[0]) for row in audited.query("SELECT note FROM assay.audit_checkpoints ORDER BY size")]
    auditor = audited.auditor()
    verifier: Verifier = auditor.signer.verifier
    auditor.close()
    sizes = [Checkpoint.verified(note, [verifier], ORIGIN).size for note in notes]
    assert len(sizes) > 1
    assert sizes[-1] == audited.size()
    content = (audited.directory / "checkpoints.txt").read_text()
    assert all(note in content for note in notes)


def test_the_next_batch_is_read_while_one_is_written_and_checkpoints_are_signed_in_between(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = audited.calls(6)
    audited.watermark(calls[-1]["id"])
    read: list[int] = []
    signed: list[int] = []
    events, insert, sign = Sources.events, Log._insert, Log.sign

    def reading(self: Sources, *rest: Any) -> list[Source]:
        found = events(self, *rest)
        read.append(len(found))
        return found

    def writing(self: Log, table: str, *rest: Any) -> None:
        if table == "audit_rows" and self.tree.size == 0:
            until(lambda: len(read) >= 2)
        insert(self, table, *rest)

    def signing(self: Log) -> bool:
        signed.append(self.tree.size)
        return sign(self)

    monkeypatch.setattr(Sources, "events", reading)
    monkeypatch.setattr(Log, "_insert", writing)
    monkeypatch.setattr(Log, "sign", signing)
    monkeypatch.setattr("assay_auditor.auditor.PASS_S", 60.0)
    audited.audit(batch_rows=2, checkpoint_leaves=2)
    assert read[:3] == [2, 2, 2]
    assert signed[:3] == [2, 4, 6]


def test_an_auditor_without_new_rows_signs_nothing(audited: Audited) -> None:
    audited.calls(1)
    audited.watermark()
    audited.audit()
    content = (audited.directory / "checkpoints.txt").read_text()
    audited.audit()
    assert (audited.directory / "checkpoints.txt").read_text() == content


@pytest.mark.parametrize("failing", [1, 2, 3, 4])
def test_a_write_that_breaks_off_between_any_two_steps_changes_nothing_in_the_end(
    audited: Audited, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps: disclosures, rows, leaves, checkpoint. The step fails before or after the store has it."""
    for after in (False, True):
        calls = audited.calls(2, start=100 * failing + 10 * after)
        audited.insert("capture_failures", failure())
        audited.watermark()
        inserted = 0
        insert = Log._insert

        def broken(self: Log, *arguments: Any, after: bool = after, insert: Any = insert) -> None:
            nonlocal inserted
            inserted += 1
            if inserted == failing and not after:
                raise OSError("killed")
            insert(self, *arguments)
            if inserted == failing:
                raise OSError("killed")

        with monkeypatch.context() as patch:
            patch.setattr(Log, "_insert", broken)
            auditor = audited.auditor()
            auditor.step()
            assert auditor.problem == "OSError"
            auditor._lock.release()
        later = audited.calls(1, start=100 * failing + 10 * after + 5)
        audited.audit()
        stored = [row[0] for row in rows(audited, "toString(source_id), leaf_index")]
        assert len(stored) == len(set(stored)) == audited.size()
        assert {row["event_id"] for row in (*calls, *later)} <= set(stored)


def test_of_two_auditors_of_a_directory_one_writes_and_the_other_takes_over(
    audited: Audited, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    audited.calls(2)
    audited.watermark()
    first, second = audited.auditor(), audited.auditor()
    first.step()
    for _ in range(3):
        second.step()
    assert caplog.text.count("standing by") == 1
    size = audited.size()
    assert size == 2 + recorded_operations(audited)
    first.close()
    audited.calls(1, start=50)
    second.step()
    second.close()
    assert not second.problem
    assert audited.size() == size + 1


def test_two_auditors_without_a_common_lock_write_the_same_rows_of_events(audited: Audited) -> None:
    audited.calls(4)
    audited.watermark()
    first, second = audited.auditor(), audited.auditor()
    second._lock = first._lock
    for auditor in (first, second):
        auditor._resumed()  # both know an empty log
    first.step()
    before = state(audited)
    second.step()
    assert state(audited) == before


def test_the_auditor_does_not_continue_a_store_that_is_older_than_its_file(audited: Audited) -> None:
    audited.calls(4)
    audited.watermark()
    audited.audit()
    audited.owner.command(
        "ALTER TABLE assay_base.audit_leaves DELETE WHERE leaf_index >= 3", settings={"mutations_sync": 2}
    )
    audited.owner.command("TRUNCATE TABLE assay_base.audit_checkpoints")
    content = (audited.directory / "checkpoints.txt").read_text()
    auditor = audited.auditor()
    auditor.step()
    auditor.close()
    assert "backup was restored" in auditor.problem
    assert audited.size() == 3
    assert (audited.directory / "checkpoints.txt").read_text() == content


def test_the_auditor_does_not_continue_other_leaves_than_it_signed(audited: Audited) -> None:
    audited.calls(3)
    audited.watermark()
    audited.audit()
    audited.owner.command(
        f"ALTER TABLE assay_base.audit_leaves UPDATE chain_hash = '{'ab' * 32}' WHERE leaf_index = 0",
        settings={"mutations_sync": 2},
    )
    audited.owner.command("TRUNCATE TABLE assay_base.audit_checkpoints")
    audited.insert(
        "audit_leaves",
        {
            "log": ORIGIN,
            "leaf_index": 1,
            "leaf_hash": "cd" * 32,
            "chain_hash": "cd" * 32,
            "kind": "tool_call",
            "source_id": tool_call()["event_id"],
            "place": 1,
        },
    )
    auditor = audited.auditor()
    auditor.step()
    auditor.close()
    assert "double" in auditor.problem


def leaf_is_lost(audited: Audited, place: int) -> None:
    audited.owner.command(
        f"ALTER TABLE assay_base.audit_leaves DELETE WHERE leaf_index = {place}", settings={"mutations_sync": 2}
    )


def test_the_auditor_counts_leaves_behind_its_newest_checkpoint_and_leaves_earlier_ones_to_verify(
    audited: Audited,
) -> None:
    audited.calls(4)
    audited.watermark()
    audited.audit()
    size = audited.size()
    leaf_is_lost(audited, 1)
    audited.calls(2, start=20)
    audited.audit()
    assert audited.size() == size - 1 + 3  # the event without a leaf is added again, as a late one
    audited.calls(3, start=40)
    killed = audited.auditor(batch_rows=3)
    assert killed.step()  # more may follow, so it has not signed
    killed._lock.release()
    [[signed]] = audited.query("SELECT max(size) FROM assay.audit_checkpoints")
    leaf_is_lost(audited, signed + 1)
    auditor = audited.auditor()
    auditor.step()
    auditor.close()
    assert auditor.problem.startswith("1 leaf hashes are missing")


def test_a_log_that_another_key_signed_is_not_continued(audited: Audited, tmp_path: Path) -> None:
    audited.calls(2)
    audited.watermark()
    audited.audit()
    before = state(audited)
    audited.calls(1, start=30)
    auditor = Audited(audited.server, audited.owner, tmp_path / "another").auditor()
    auditor.step()
    auditor.close()
    assert "another key signed" in auditor.problem
    assert state(audited) == before


def test_a_row_behind_the_end_that_no_source_has_is_not_taken_over(audited: Audited) -> None:
    audited.calls(2)
    audited.watermark()
    audited.audit()
    size = audited.size()
    audited.owner.command(
        f"INSERT INTO assay_base.audit_rows SELECT * REPLACE ({size} AS leaf_index, generateUUIDv4() AS source_id, "
        "'ff' AS leaf_hash) FROM (SELECT * FROM assay_base.audit_rows WHERE leaf_index = 0 LIMIT 1)"
    )
    audited.audit()
    assert audited.size() == size


def add_rows_behind_the_end(audited: Audited, count: int) -> None:
    size = audited.size()
    audited.owner.command(
        f"INSERT INTO assay_base.audit_rows SELECT r.* REPLACE ({size} + number AS leaf_index, generateUUIDv4() AS source_id, "
        f"'{'ff' * 32}' AS leaf_hash) FROM numbers({count}) AS n "
        "CROSS JOIN (SELECT * FROM assay_base.audit_rows WHERE leaf_index = 0 LIMIT 1) AS r"
    )


def test_too_many_rows_behind_the_end_are_named_with_the_statement_that_removes_them(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "_BEHIND", 20)
    audited.calls(3)
    audited.watermark()
    audited.audit()
    size = audited.size()
    add_rows_behind_the_end(audited, 21)
    [call] = audited.calls(1, start=50)
    auditor = audited.auditor()
    for _ in range(2):
        auditor.step()
        assert auditor.problem.startswith(f"21 rows are behind the end of the log, at leaves {size} to {size + 20}:")
    audited.owner.command(auditor.problem.partition("as owner: ")[2], settings={"mutations_sync": 2})
    auditor.step()
    auditor.close()
    assert (auditor.problem, audited.size()) == ("", size + 1)
    assert (call["event_id"], size) in rows(audited, "toString(source_id), leaf_index")


def add_junk_checkpoints(audited: Audited, count: int, size: int) -> None:
    audited.owner.command(
        "INSERT INTO assay_base.audit_checkpoints (log, size, root, note, edge, places, rotation) SELECT "
        f"'{ORIGIN}', {size}, 'ff', concat('junk', toString(number)), [], map('event', 1), '' FROM numbers({count})"
    )


@pytest.mark.parametrize("count", [10, 130])
def test_forged_checkpoints_in_the_store_do_not_stop_the_auditor(
    audited: Audited, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited.calls(3)
    audited.watermark()
    audited.audit()
    size = audited.size()
    add_junk_checkpoints(audited, count, 9 * 10**18)
    add_junk_checkpoints(audited, count, size)
    audited.calls(1, start=50)
    started_at: list[int] = []
    start = Log._start

    def watched(self: Log, *rest: Any) -> Any:
        found = start(self, *rest)
        started_at.append(found[0].size)
        return found

    monkeypatch.setattr(Log, "_start", watched)
    audited.audit()
    assert (audited.size(), started_at) == (size + 1, [size])


def test_a_store_that_has_only_forged_checkpoints_names_both_causes(audited: Audited) -> None:
    audited.calls(3)
    audited.watermark()
    audited.audit()
    audited.owner.command("TRUNCATE TABLE assay_base.audit_checkpoints")
    add_junk_checkpoints(audited, 30, 3)
    auditor = audited.auditor()
    auditor.step()
    auditor.close()
    assert "or they are forged: run assay audit verify --full" in auditor.problem


def test_the_log_outlives_its_checkpoints_in_the_store(audited: Audited) -> None:
    audited.calls(3)
    audited.watermark()
    audited.audit()
    audited.owner.command("TRUNCATE TABLE assay_base.audit_checkpoints")
    audited.calls(2, start=20)
    audited.audit()
    assert audited.size() == 5 + recorded_operations(audited)


def test_a_checkpoint_that_is_in_the_file_only_is_added_to_the_store_at_the_next_start(audited: Audited) -> None:
    audited.calls(3)
    audited.watermark()
    audited.audit()
    stored = "SELECT size, root, note, edge FROM assay.audit_checkpoints"
    before = audited.query(stored)
    content = (audited.directory / "checkpoints.txt").read_text()
    audited.owner.command("TRUNCATE TABLE assay_base.audit_checkpoints")
    audited.audit()
    assert audited.query(stored) == before != []
    audited.audit()
    assert audited.query(stored) == before
    assert (audited.directory / "checkpoints.txt").read_text() == content


def test_the_auditor_may_only_read_its_sources_and_add_to_the_log(audited: Audited) -> None:
    audited.calls(1)
    audited.watermark()
    audited.audit()
    before = state(audited)
    with connect(audited.settings().store) as client:
        for table in TABLES:
            for statement in (
                f"ALTER TABLE assay_base.{table} DELETE WHERE 1",
                f"ALTER TABLE assay_base.{table} UPDATE log = 'x' WHERE 1",
                f"TRUNCATE TABLE assay_base.{table}",
                f"DROP TABLE assay_base.{table}",
                f"OPTIMIZE TABLE assay_base.{table} FINAL",
                f"SELECT * FROM assay_base.{table}",
            ):
                with pytest.raises(Exception, match=r"ACCESS_DENIED|Not enough privileges|cannot"):
                    client.command(statement)
        for view in ("answers", "candidates", "feedback", "session_parts", "scores"):
            with pytest.raises(Exception, match=r"ACCESS_DENIED|Not enough privileges"):
                client.query(f"SELECT * FROM assay.{view}")
        with pytest.raises(Exception, match=r"ACCESS_DENIED|Not enough privileges"):
            client.command("INSERT INTO assay_base.operations_audit (operation) VALUES ('x')")
    assert state(audited) == before


@pytest.mark.parametrize("role", ["writer", "sre", "exporter", "evaluator", "operator", "console"])
def test_no_other_role_adds_to_the_log(audited: Audited, role: str) -> None:
    with connect(audited.settings(role).store) as client:
        for table in TABLES:
            with pytest.raises(Exception, match=r"ACCESS_DENIED|READONLY|Not enough privileges|readonly|cannot"):
                client.command(f"INSERT INTO assay_base.{table} (log) VALUES ('x')")


def started(audited: Audited, port: int) -> "subprocess.Popen[bytes]":
    file = audited.directory.parent / "auditor.toml"
    file.write_text(
        f'[store]\nurl = "{audited.server.url}"\nuser = "auditor"\npassword = "{PASSWORD}"\n'
        f'[auditor]\norigin = "{ORIGIN}"\ndirectory = "{audited.directory}"\nport = {port}\n'
        '[telemetry]\nhost = "127.0.0.1"\n'
    )
    return subprocess.Popen([sys.executable, "-m", "assay_auditor"], env=os.environ | {FILE_VARIABLE: str(file)})


def test_the_service_writes_is_killed_writes_on_and_signs_at_its_end(audited: Audited) -> None:
    audited.calls(20)
    audited.watermark()
    process = started(audited, free_port())
    try:
        until(lambda: audited.size() >= 20)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    audited.calls(5, start=100)
    audited.watermark()
    process = started(audited, free_port())
    try:
        until(lambda: audited.size() >= 25)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    [[newest]] = audited.query("SELECT max(size) FROM assay.audit_checkpoints")
    assert newest == audited.size() == 25 + recorded_operations(audited)


def test_a_start_reads_the_places_of_the_leaves_behind_the_newest_checkpoint_only(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = audited.calls(4)
    audited.insert("capture_failures", failure())
    audited.watermark()
    audited.audit()
    covered = audited.size()
    audited.calls(2, start=10)
    auditor = audited.auditor(checkpoint_s=80_000.0)
    auditor._signed_at = float("inf")  # no checkpoint is due
    while auditor.step():
        pass
    assert auditor._log is not None
    expected = dict(auditor._log.places)
    auditor._disconnect()
    auditor._lock.release()
    starts: list[int] = []
    read = Log._read_places

    def watched(self: Log, start: int) -> None:
        starts.append(start)
        assert self.places["event"] == calls[-1]["id"]  # those of the checkpoint
        read(self, start)

    monkeypatch.setattr(Log, "_read_places", watched)
    again = audited.auditor()
    again.step()
    assert (again._log is not None and again._log.places, starts) == (expected, [covered])
    again.close()
