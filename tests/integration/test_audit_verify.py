"""`assay audit` on a real store whose log somebody changed behind Assay's back: what is seen, where, with which exit code."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_auditor.chain import GENESIS, chain_hash
from assay_auditor.disclosures import digest_of, disclosure_of
from assay_auditor.keys import CHECKPOINT_FILE, PUBLIC_FILE
from assay_auditor.merkle import leaf_hash, root_of
from assay_auditor.notes import Checkpoint, Signer
from assay_auditor.rows import HASHED, leaf_data
from assay_operations import audit_log, audit_verification
from assay_operations.audit_log import AuditLog
from assay_operations.doctor import probes
from assay_runtime.store import connect
from assay_schema.ids import EPOCH_MS, first_row_at
from tests.support.audited import ORIGIN, TABLES, Audited, failure
from tests.support.cli import Cli, called
from tests.support.store import StoreServer

#: See the fixture `migrated`.
MAY_TAMPER = True
LEAVES = 9
NOW = {"mutations_sync": 2}


@dataclass
class Log:
    """A log of nine leaves with two checkpoints, and commands on it."""

    audited: Audited
    cli: Cli
    kept: Path

    def audit(self, *arguments: str, extra: str = "") -> "subprocess.CompletedProcess[bytes]":
        """Run `assay audit` as an SRE."""
        return self.cli.call("audit", *arguments, role="sre", extra=self.own + extra)

    @property
    def own(self) -> str:
        """The settings of the log."""
        return f'[auditor]\norigin = "{ORIGIN}"\ndirectory = "{self.audited.directory}"\n'

    def command(self, sql: str) -> None:
        """Change the store as its owner."""
        self.audited.owner.command(sql, settings=NOW)

    def update(self, table: str, change: str, where: str) -> None:
        self.command(f"ALTER TABLE assay_base.{table} UPDATE {change} WHERE {where}")

    def delete(self, table: str, where: str) -> None:
        self.command(f"ALTER TABLE assay_base.{table} DELETE WHERE {where}")

    def rows(self) -> list[dict[str, Any]]:
        return AuditLog(self.audited.owner, self.audited.settings().auditor).rows(0, 100)

    def replace(self, rows: list[dict[str, Any]]) -> None:
        """Replace rows, as somebody does who may write everything."""
        places = ", ".join(str(row["leaf_index"]) for row in rows)
        self.delete("audit_rows", f"leaf_index IN ({places})")
        self.audited.insert("audit_rows", *({"log": ORIGIN, **row} for row in rows))

    def erase(self, name: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        """Run `assay audit erase` as the owner while an auditor works."""
        with self.audited.auditing():
            return self.cli.call(
                "audit",
                "erase",
                "--subject",
                name,
                "--yes",
                *arguments,
                role="owner",
                extra=self.own + "checkpoint_s = 0.2\n",
            )

    def problems(self, *arguments: str) -> list[tuple[str, int | None]]:
        """Run a full verification. Return the kind and place of each mismatch, and check the exit code."""
        done = self.audit("verify", "--full", "--json", *arguments)
        lines = [orjson.loads(line) for line in done.stdout.splitlines()]
        found = [(line["kind"], line["leaf_index"]) for line in lines if line["event"] == "mismatch"]
        assert done.returncode == (1 if found else 0), (done.stdout, done.stderr)
        assert lines[-1]["event"] == "result"
        assert (lines[-1]["intact"], lines[-1]["mismatches"]) == (not found, len(found))
        return found


@pytest.fixture(scope="module")
def written(migrated: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    directory = tmp_path_factory.mktemp("audit")
    with connect(migrated.settings().store) as owner:
        audited = Audited(migrated, owner, directory / "log")
        calls = audited.calls(6)
        audited.insert("capture_failures", failure())
        audited.watermark(calls[4]["id"])
        audited.audit()
        audited.calls(2, start=20)
        audited.watermark()
        audited.audit()
        assert audited.size() == LEAVES
        for table in TABLES:
            owner.command(f"CREATE TABLE assay_base.kept_{table} AS assay_base.{table}")
            owner.command(f"INSERT INTO assay_base.kept_{table} SELECT * FROM assay_base.{table}")
        shutil.copytree(audited.directory, directory / "kept")
        yield Log(audited, Cli(directory, store_url=migrated.url), directory / "kept")


@pytest.fixture
def log(written: Log) -> Iterator[Log]:
    """The log as it was written."""
    yield written
    for table in TABLES:
        written.command(f"TRUNCATE TABLE assay_base.{table}")
        written.command(f"INSERT INTO assay_base.{table} SELECT * FROM assay_base.kept_{table}")
    shutil.rmtree(written.audited.directory)
    shutil.copytree(written.kept, written.audited.directory)


@pytest.mark.parametrize("rows", [1, 2, 4, 5])
def test_pages_of_any_size_give_the_same_result(
    log: Log, monkeypatch: pytest.MonkeyPatch, rows: int, tmp_path: Path
) -> None:
    monkeypatch.setattr(audit_verification, "PAGE", rows)
    kept = tmp_path / "kept.txt"
    file = log.audited.directory / CHECKPOINT_FILE
    first, second = file.read_text().removesuffix("\n\n").split("\n\n" + ORIGIN)
    kept.write_text(f"{ORIGIN}{second}\n\n{first}\n\n")  # not in the order of their sizes
    assert log.problems("--checkpoint", str(kept)) == []
    file.write_text(file.read_text() + file.read_text())
    assert {kind for kind, _ in log.problems()} == ({"checkpoint"} if rows < 5 else set())


def test_an_intact_log_verifies_with_exit_0(log: Log) -> None:
    done = log.audit("verify", "--no-record")
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"{ORIGIN}: intact, 9 leaves; checkpoints cover 9".encode() in done.stdout
    assert log.problems() == []


def test_a_verification_that_may_not_be_recorded_has_the_same_result_and_says_it_is_not(log: Log) -> None:
    before = log.audited.query("SELECT count() FROM assay.operations_audit")
    done = log.audit("verify")
    assert done.returncode == 0
    assert done.stderr == (
        b"this verification is not recorded, so the console does not show it: "
        b"the store takes no record from 'sre', only from operator and owner\n"
    )
    assert log.audited.query("SELECT count() FROM assay.operations_audit") == before


#: A change of each column that is hashed.
CHANGES = {
    "leaf_index": None,  # part of the sorting key: it cannot be updated; see the swapped rows
    "kind": "'lost'",
    "source_id": "toUUID('01890a5d-ac96-774b-bcce-b302099a8057')",
    "created_at": "created_at + toIntervalMillisecond(1)",
    "project": "'other'",
    "service": "'other'",
    "server_session_id": "NULL",
    "duration_us": "1",
    "error_kind": "'timeout'",
    "pii_attempted": "[]",
    "pii_blocked": "['health']",
    "late": "true",
    "place": "place + 1",
    "id": "99",
    "occurred_at": "occurred_at - toIntervalMicrosecond(1)",
    "source_connection_id": "'other'",
    "caller_id": "NULL",
    "tool_name": "'other'",
    "status": "'error'",
    "refusal_reason": "'pii_blocked'",
    "cost_class": "'refused'",
    "pii_categories": "''",
    "ast_shape_hash": f"'{'ab' * 32}'",
    "rule_id": "'r'",
    "fingerprint": f"'{'ab' * 32}'",
    "fingerprint_version": "'fp-v2'",
    "chain_hash": f"'{'ab' * 32}'",
    "sd": "[]",
}


def test_an_edit_of_any_column_is_seen_at_its_row(log: Log) -> None:
    assert set(CHANGES) == set(HASHED)
    for column, value in CHANGES.items():
        if value is None:
            continue
        log.command("TRUNCATE TABLE assay_base.audit_rows")
        log.command(
            f"INSERT INTO assay_base.audit_rows SELECT * REPLACE (if(leaf_index = 4, {value}, {column}) AS {column}) "
            "FROM assay_base.kept_audit_rows"
        )
        found = log.problems()
        assert ("row", 4) in found, column
        assert {place for _, place in found} == {4}, column


def test_the_first_mismatch_ends_a_verification_that_is_not_full_and_names_its_place(log: Log) -> None:
    log.update("audit_rows", "tool_name = 'x'", "leaf_index IN (2, 5)")
    done = log.audit("verify")
    assert done.returncode == 1
    assert done.stdout.count(b"mismatch") == 1
    assert b"row 3 (leaf 2): mismatch, row: the row was changed" in done.stdout
    assert b"--full lists all" in done.stderr
    assert [place for kind, place in log.problems() if kind == "row"] == [2, 5]


def test_a_reader_that_leaves_early_does_not_hide_a_mismatch(log: Log) -> None:
    log.update("audit_rows", "tool_name = 'x'", "leaf_index < 6")
    out, own = os.pipe()
    os.close(out)
    arguments = ("audit", "verify", "--full", "--json")
    with os.fdopen(own, "wb") as pipe:
        process = log.cli.start(*arguments, role="sre", extra=log.own, stdout=pipe.fileno())
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (1, b"")


def test_a_coherent_rewrite_of_a_row_and_all_later_hashes_is_seen_by_the_checkpoints(log: Log) -> None:
    rows = log.rows()
    rows[3]["tool_name"] = "innocent"
    previous = bytes.fromhex(rows[2]["chain_hash"])
    for row in rows[3:]:
        row["chain_hash"] = (previous := chain_hash(previous, row)).hex()
        row["leaf_hash"] = leaf_hash(leaf_data(row)).hex()
    log.replace(rows[3:])
    stored = log.audited.query("SELECT leaf_index, toString(kind), toString(source_id), place FROM assay.audit_leaves")
    by_place = {place: rest for place, *rest in stored}
    log.delete("audit_leaves", "leaf_index >= 3")
    log.audited.insert(
        "audit_leaves",
        *(
            {"log": ORIGIN, **{name: row[name] for name in ("leaf_index", "leaf_hash", "chain_hash")}}
            | dict(zip(("kind", "source_id", "place"), by_place[row["leaf_index"]], strict=True))
            for row in rows[3:]
        ),
    )
    assert {kind for kind, _ in log.problems()} == {"root"}


@pytest.mark.parametrize(
    ("where", "missing"), [("leaf_index = 4", [4]), ("leaf_index < 2", [0, 1]), ("leaf_index >= 7", [7, 8])]
)
def test_deleted_rows_are_seen_one_by_one(log: Log, where: str, missing: list[int]) -> None:
    log.delete("audit_rows", where)
    assert log.problems() == [("missing_row", place) for place in missing]


@pytest.mark.parametrize("place", [4, 0])
def test_a_row_that_was_deleted_with_its_leaf_is_seen_in_the_middle_and_at_the_start(log: Log, place: int) -> None:
    for table in ("audit_rows", "audit_leaves", "audit_disclosures"):
        log.delete(table, f"leaf_index = {place}")
    found = log.problems()
    assert [each for each in found if each[1] is not None] == [("missing_leaf", place)]
    assert ("root", None) in found


def test_a_tail_that_was_deleted_with_its_leaves_and_checkpoints_is_seen_by_the_file(log: Log) -> None:
    for table in ("audit_rows", "audit_leaves", "audit_disclosures"):
        log.delete(table, "leaf_index >= 7")
    log.delete("audit_checkpoints", "size > 7")
    assert ("tail", 7) in log.problems()


def test_swapped_rows_are_seen_at_both_places(log: Log) -> None:
    rows = log.rows()
    for row, place in ((rows[2], 5), (rows[5], 2)):
        row |= {"leaf_index": place, "id": place + 1}
    log.replace([rows[2], rows[5]])
    assert {place for kind, place in log.problems() if kind == "row"} == {2, 5}


def test_a_row_that_was_written_twice_is_intact_and_a_copy_elsewhere_is_seen(log: Log) -> None:
    row = log.rows()[3]
    log.audited.insert("audit_rows", {"log": ORIGIN, **row})
    assert log.problems() == []
    log.audited.insert("audit_rows", {"log": ORIGIN, **row, "leaf_index": LEAVES, "id": LEAVES + 1})
    assert log.problems() == [("row_without_leaf", LEAVES)]


def test_an_inserted_back_dated_row_is_seen(log: Log) -> None:
    row = log.rows()[3]
    forged = row | {"tool_name": "forged", "occurred_at": "2020-01-01T00:00:00.000000Z"}
    forged["leaf_hash"] = leaf_hash(leaf_data(forged)).hex()
    log.audited.insert("audit_rows", {"log": ORIGIN, **forged})
    found = log.problems()
    assert ("second_row", 3) in found
    assert {place for _, place in found} == {3}


def test_a_forged_leaf_beside_a_real_one_is_one_place(log: Log) -> None:
    forged = {"log": ORIGIN, "leaf_index": 3, "leaf_hash": "00" * 32, "chain_hash": "00" * 32, "kind": "tool_call"}
    log.audited.insert("audit_leaves", forged | {"source_id": log.rows()[3]["source_id"], "place": 1})
    assert log.problems() == [("second_leaf", 3)]


@pytest.fixture
def present(written: Log) -> Iterator[int]:
    """The first id of the present millisecond, which is the watermark too."""
    place = first_row_at(time.time_ns() // 1_000_000)
    written.command("TRUNCATE TABLE assay_base.watermarks")
    written.audited.watermark(place)
    yield place
    written.audited.watermark()


@pytest.mark.parametrize("ahead", [first_row_at(EPOCH_MS + 3 * 86_400_000), 2**62])
def test_a_copy_of_a_leaf_with_another_place_is_seen_by_verify_and_doctor_and_misleads_no_auditor(
    log: Log, present: int, ahead: int
) -> None:
    log.command("SYSTEM STOP MERGES assay_base.audit_leaves")
    assert not probes.audit_log(log.audited.owner, "assay", ORIGIN)[-1]
    log.command(
        f"INSERT INTO assay_base.audit_leaves SELECT * REPLACE ({present + ahead} AS place) FROM assay_base.kept_audit_leaves "
        "WHERE leaf_index = 3"
    )
    assert log.problems() == [("second_leaf", 3)]
    log.command("SYSTEM START MERGES assay_base.audit_leaves")
    log.command("OPTIMIZE TABLE assay_base.audit_leaves FINAL")  # the copy is left
    assert log.problems() == [("leaf", 3)]
    assert probes.audit_log(log.audited.owner, "assay", ORIGIN)[-1]
    log.audited.audit()  # it starts with the places of a checkpoint
    log.delete("audit_checkpoints", "1")
    auditor = log.audited.auditor()
    auditor.step()
    auditor.close()
    assert "no event has reached" in auditor.problem


def test_a_leaf_and_a_row_far_behind_the_end_are_seen(log: Log) -> None:
    row, far = log.rows()[3], 10**12
    log.audited.insert("audit_rows", {"log": ORIGIN, **row, "leaf_index": far, "id": far + 1})
    assert log.problems() == [("row_without_leaf", far)]
    forged = {"log": ORIGIN, "leaf_index": far, "leaf_hash": "00" * 32, "chain_hash": "00" * 32, "kind": "tool_call"}
    log.audited.insert("audit_leaves", forged | {"source_id": row["source_id"], "place": 1})
    found = log.problems()
    assert [kind for kind, place in found if place != far][-1] == "missing_leaf"
    assert ("row", far) in found


def test_a_row_far_behind_the_end_is_seen_while_the_log_grows(log: Log) -> None:
    class Growing(AuditLog):
        """A log of which the last two leaves are written while it is verified."""

        calls = 0

        def size(self) -> int:
            self.calls += 1
            return LEAVES - 2 if self.calls == 1 else LEAVES

    row, own = log.rows()[3], log.audited.settings(batch_rows=10).auditor
    far = LEAVES + own.batch_rows
    for place in (far - 1, far):
        log.audited.insert("audit_rows", {"log": ORIGIN, **row, "leaf_index": place, "id": place + 1})
    (own.directory / CHECKPOINT_FILE).unlink()
    log.command("TRUNCATE TABLE assay_base.audit_checkpoints")
    found = list(audit_verification.verify(Growing(log.audited.owner, own), audit_verification.Result()))
    assert [(each.kind, each.leaf_index) for each in found] == [("row_without_leaf", far)]


def test_an_old_backup_that_was_restored_is_seen_with_a_checkpoint_kept_elsewhere(log: Log, tmp_path: Path) -> None:
    kept = tmp_path / "anchored.txt"
    kept.write_bytes(log.audit("checkpoint").stdout)
    for table in ("audit_rows", "audit_leaves", "audit_disclosures"):
        log.delete(table, "leaf_index >= 5")
    log.delete("audit_checkpoints", "size > 5")
    notes = (log.audited.directory / CHECKPOINT_FILE).read_text().split("\n\n")
    (log.audited.directory / CHECKPOINT_FILE).write_text("\n\n".join(notes[:2]) + "\n\n")
    log.delete("audit_checkpoints", "1")
    (log.audited.directory / CHECKPOINT_FILE).unlink()
    assert log.problems() == []
    assert log.problems("--checkpoint", str(kept)) == [("tail", 5)]


def signer(log: Log) -> Signer:
    return log.audited.auditor().signer


def test_two_signed_roots_of_one_size_are_a_fork(log: Log, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(signer(log).signed(Checkpoint(ORIGIN, LEAVES, root_of([bytes(32)])).text))
    found = log.problems("--checkpoint", str(other))
    assert ("fork", None) in found
    assert ("root", None) in found


def test_a_replaced_file_of_checkpoints_is_seen(log: Log) -> None:
    file = log.audited.directory / CHECKPOINT_FILE
    content = file.read_text()
    file.write_text(content.replace(f"{ORIGIN}\n{LEAVES}\n", f"{ORIGIN}\n8\n"))
    assert {kind for kind, _ in log.problems()} == {"checkpoint", "file"}
    stranger = Signer(ORIGIN, b"z" * 32)
    file.write_text(stranger.signed(Checkpoint(ORIGIN, LEAVES, bytes(32)).text) + "\n")
    assert ("checkpoint", None) in log.problems()
    file.write_text("")
    assert {kind for kind, _ in log.problems()} == {"file"}
    file.write_bytes(b"\xff\x00 no note")
    assert ("checkpoint", None) in log.problems()
    file.unlink()
    assert log.problems() == [("file", None)]
    vkey = log.audit("key").stdout.decode().strip()
    (log.audited.directory / PUBLIC_FILE).unlink()  # not the directory of the auditor
    assert log.problems("--vkey", vkey) == []


def test_a_checkpoint_whose_writing_was_interrupted_is_no_mismatch_and_a_shortened_one_is(log: Log) -> None:
    file = log.audited.directory / CHECKPOINT_FILE
    content = file.read_bytes()
    file.write_bytes(content + content[:40])
    assert log.problems() == []
    assert b"the start of a checkpoint" in log.audit("verify").stderr
    file.write_bytes(content[:-10])
    assert log.problems() == [("file", None)]


def test_another_key_confirms_nothing_and_several_keys_may_be_trusted(log: Log) -> None:
    other, own = Signer(ORIGIN, b"z" * 32).verifier.vkey, signer(log).verifier.vkey
    assert {kind for kind, _ in log.problems("--vkey", other)} == {"checkpoint"}
    assert log.problems("--vkey", other, "--vkey", own) == []
    assert log.audit("verify", "--vkey", "nonsense").returncode == 2


def test_a_checkpoint_in_the_store_that_was_changed_is_seen(log: Log) -> None:
    log.command("TRUNCATE TABLE assay_base.audit_checkpoints")
    log.command(
        "INSERT INTO assay_base.audit_checkpoints SELECT * REPLACE (size + 1 AS size) FROM assay_base.kept_audit_checkpoints"
    )
    assert {kind for kind, _ in log.problems()} == {"checkpoint"}


def test_places_of_a_checkpoint_that_were_changed_are_seen(log: Log) -> None:
    log.update("audit_checkpoints", "places = map('event', 9000000000000000)", f"size = {LEAVES}")
    assert log.problems() == [("checkpoint", None)]


def test_checkpoints_in_the_store_are_read_page_by_page(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = AuditLog(log.audited.owner, log.audited.settings().auditor)
    [whole] = reader.stored_notes(-1, 2**64 - 1)
    assert len(whole) == 2
    forged = {"log": ORIGIN, "size": whole[0].size, "root": "00" * 32, "note": "another of this size", "edge": []}
    log.audited.insert("audit_checkpoints", forged)
    monkeypatch.setattr(audit_log, "NOTES", 1)
    parts = [[each.size for each in part] for part in reader.stored_notes(-1, 2**64 - 1)]
    assert parts == [[whole[0].size, whole[0].size], [whole[1].size]]
    assert list(reader.stored_notes(whole[0].size or 0, 2**64 - 1)) == [[whole[1]]]
    assert reader.newest_notes()[0] == whole[1]


def test_a_disclosure_that_was_edited_moved_or_swapped_is_seen_at_its_row(log: Log) -> None:
    forged = disclosure_of("AAAAAAAAAAAAAAAAAAAAAA", "caller_id", "somebody else")
    log.update("audit_disclosures", f"disclosure = '{forged}'", "leaf_index = 2")
    assert {place for kind, place in log.problems() if kind == "disclosure"} == {2}
    log.command("TRUNCATE TABLE assay_base.audit_disclosures")
    log.command(
        "INSERT INTO assay_base.audit_disclosures SELECT * REPLACE (multiIf(leaf_index = 2, 5, leaf_index = 5, 2, leaf_index) "
        "AS leaf_index) "
        "FROM assay_base.kept_audit_disclosures"
    )
    assert {place for kind, place in log.problems() if kind == "disclosure"} == {2, 5}
    log.command("TRUNCATE TABLE assay_base.audit_disclosures")
    own = {"log": ORIGIN, "leaf_index": 2, "project": "", "created_at": "2026-01-01T00:00:00Z"}
    log.audited.insert("audit_disclosures", own | {"digest": digest_of(forged), "disclosure": forged})
    assert [each for each in log.problems() if each[0] == "disclosure"] == [("disclosure", 2)]


def test_a_disclosure_that_was_deleted_by_hand_is_seen_at_its_row(log: Log) -> None:
    log.delete("audit_disclosures", "leaf_index = 2")
    assert log.problems() == [("missing_disclosure", 2)]
    shown = json.loads(log.audit("show", "2", "--json").stdout)
    assert set(shown["disclosed"].values()) == {None}
    log.command("TRUNCATE TABLE assay_base.audit_disclosures")
    assert log.problems() == [("missing_disclosure", place) for place in range(LEAVES)]


def test_a_name_that_is_erased_is_gone_and_the_log_with_its_proofs_is_intact(log: Log, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    proof.write_bytes(log.audit("prove", "2").stdout)
    done = log.erase("helper", "--data", str(tmp_path))
    assert (done.returncode, b"erased 8 value(s)" in done.stdout) == (0, True), done.stderr
    assert log.problems() == []
    assert b"8 value(s) erased" in log.audit("verify").stdout
    shown = json.loads(log.audit("show", "2", "--json").stdout)
    assert "caller_id" not in shown["disclosed"]
    assert shown["disclosed"][shown["caller_id"]] is None
    assert "args_sha256" in shown["disclosed"]
    vkey = log.audit("key").stdout.decode().strip()
    assert called("audit", "check", str(proof), "--vkey", vkey).returncode == 0
    [record] = log.audited.query("SELECT * FROM assay.operations WHERE operation = 'audit erase'")
    assert "helper" not in str(record)
    again = log.erase("helper")
    assert b"erased 0 value(s)" in again.stdout


def test_a_name_with_thousands_of_values_is_erased_in_statements_that_the_store_takes(log: Log) -> None:
    texts = [disclosure_of(f"salt-{number}", "caller_id", "jo") for number in range(5_000)]
    common = {"log": ORIGIN, "project": "", "created_at": "2026-01-01T00:00:00Z"}
    log.audited.insert(
        "audit_disclosures",
        *(common | {"leaf_index": 3, "digest": digest_of(text), "disclosure": text} for text in texts),
    )
    done = log.erase("jo")
    assert (done.returncode, b"erased 5,000 value(s)" in done.stdout) == (0, True), done.stderr
    assert log.problems() == []
    [[left]] = log.audited.query("SELECT uniqExact(digest) FROM assay.audit_disclosures WHERE leaf_index = 3")
    assert left > 0


def test_a_part_of_a_table_that_was_lost_is_seen(log: Log) -> None:
    log.command("TRUNCATE TABLE assay_base.audit_leaves")
    assert ("tail", 0) in log.problems()
    log.command("SYSTEM STOP MERGES assay_base.audit_leaves")
    for where in ("leaf_index < 5", "leaf_index >= 5"):
        log.command(f"INSERT INTO assay_base.audit_leaves SELECT * FROM assay_base.kept_audit_leaves WHERE {where}")
    assert log.problems() == []
    [[part]] = log.audited.query("SELECT min(_part) FROM assay_base.audit_leaves WHERE leaf_index < 5")
    log.command(f"ALTER TABLE assay_base.audit_leaves DROP PART '{part}'")
    log.command("SYSTEM START MERGES assay_base.audit_leaves")
    assert [place for kind, place in log.problems() if kind == "missing_leaf"] == [0, 1, 2, 3, 4]


def test_a_malformed_row_is_a_mismatch_of_its_place_and_no_crash(log: Log) -> None:
    for column, value in (
        ("fingerprint", "'abcd'"),
        ("chain_hash", "''"),
        ("leaf_hash", "'zz'"),
        ("tool_name", r"'\xff\xfe'"),
    ):
        log.command("TRUNCATE TABLE assay_base.audit_rows")
        log.command(
            f"INSERT INTO assay_base.audit_rows SELECT * REPLACE (if(leaf_index = 4, {value}, {column}) AS {column}) "
            "FROM assay_base.kept_audit_rows"
        )
        assert {place for _, place in log.problems()} == {4}, column
    log.update("audit_leaves", "chain_hash = 'x'", "leaf_index = 6")
    assert ("leaf", 6) in log.problems()


def test_clocks_that_were_set_back_leave_the_log_intact(log: Log) -> None:
    count = "SELECT count() FROM assay.audit_rows WHERE kind = 'tool_call'"
    [[before]] = log.audited.query(count)
    log.audited.calls(2, start=40, occurred_at="2001-01-01T00:00:00.000000Z", timestamp="2001-01-01T00:00:00.000000Z")
    log.audited.audit()
    assert log.audited.query(count) == [(before + 2,)]
    assert log.problems() == []
    log.command("TRUNCATE TABLE assay_base.tool_calls")


def test_an_unfinished_batch_is_no_mismatch_and_is_told(log: Log) -> None:
    log.delete("audit_leaves", f"leaf_index = {LEAVES - 1}")
    log.delete("audit_checkpoints", f"size = {LEAVES}")
    file = log.audited.directory / CHECKPOINT_FILE
    file.write_text(file.read_text().split(f"{ORIGIN}\n{LEAVES}\n")[0])
    assert log.problems() == []
    assert b"1 row(s) of an unfinished batch" in log.audit("verify").stdout


def test_leaves_without_a_checkpoint_are_told_and_exit_3_only_if_asked(log: Log) -> None:
    log.command("TRUNCATE TABLE assay_base.audit_checkpoints")
    (log.audited.directory / CHECKPOINT_FILE).unlink()
    done = log.audit("verify")
    assert done.returncode == 0
    assert b"checkpoints cover 0; 9 not covered yet" in done.stdout
    assert log.audit("verify", extra="max_unanchored_s = 0.001").returncode == 3
    assert log.audit("verify", extra="max_unanchored_s = 1e6").returncode == 0


def test_a_clock_that_is_set_back_or_was_ahead_does_not_make_leaves_younger(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.command("TRUNCATE TABLE assay_base.audit_checkpoints")
    (log.audited.directory / CHECKPOINT_FILE).unlink()
    assert log.audit("verify", extra="max_unanchored_s = 7200").returncode == 0
    now = time.time()
    with monkeypatch.context() as ahead:  # as if the store's clock were a day back
        ahead.setattr(audit_log.time, "time", lambda: now + 86_400)
        assert log.audit("verify", extra="max_unanchored_s = 7200").returncode == 3
    log.command("TRUNCATE TABLE assay_base.audit_leaves")
    columns = "log, leaf_hash, place, leaf_index, chain_hash, kind, source_id, stored_at"
    log.audited.owner.command(
        f"INSERT INTO assay_base.audit_leaves ({columns}) SELECT {columns.replace('stored_at', 'stored_at + toIntervalDay(1)')} "
        "FROM assay_base.kept_audit_leaves",
        settings={"insert_allow_materialized_columns": 1},
    )
    done = log.audit("verify", extra="max_unanchored_s = 7200")
    assert (done.returncode, b"in the future of the clocks" in done.stderr) == (3, True)
    assert log.audit("verify").returncode == 0


def test_a_forged_newest_checkpoint_is_not_printed_for_others_to_keep(log: Log) -> None:
    before = log.audit("checkpoint").stdout
    stranger = Signer(ORIGIN, b"z" * 32)
    forged = stranger.signed(Checkpoint(ORIGIN, 99, bytes(32)).text)
    log.audited.insert(
        "audit_checkpoints", {"log": ORIGIN, "size": 99, "root": bytes(32).hex(), "note": forged, "edge": []}
    )
    assert log.audit("checkpoint").stdout == before
    log.delete("audit_checkpoints", "size < 99")
    assert log.audit("checkpoint").returncode == 2


def test_a_changed_row_is_not_proved_and_a_forged_value_is_not_shown(log: Log) -> None:
    forged = disclosure_of("AAAAAAAAAAAAAAAAAAAAAA", "caller_id", "somebody else")
    log.update("audit_disclosures", f"disclosure = '{forged}'", "leaf_index = 2")
    assert "somebody else" not in log.audit("show", "2", "--json").stdout.decode()
    done = log.audit("prove", "2")
    assert (done.returncode, b"row 2 cannot be proved: a disclosure" in done.stderr) == (2, True)
    log.update("audit_rows", "tool_name = 'x'", "leaf_index = 3")
    done = log.audit("prove", "3")
    assert (done.returncode, b"not in the tree" in done.stderr, done.stdout) == (2, True, b"")


def test_disclosures_that_were_swapped_between_rows_of_one_caller_are_seen_at_both(log: Log) -> None:
    callers = {
        place: f"(SELECT caller_id FROM assay_base.kept_audit_rows WHERE leaf_index = {place})" for place in (1, 2)
    }
    log.command("TRUNCATE TABLE assay_base.audit_disclosures")
    other = f"multiIf(digest = {callers[1]}, 2, digest = {callers[2]}, 1, leaf_index)"
    log.command(
        f"INSERT INTO assay_base.audit_disclosures SELECT * REPLACE (toUInt64({other}) AS leaf_index) "
        "FROM assay_base.kept_audit_disclosures"
    )
    assert log.problems() == [(kind, place) for place in (1, 2) for kind in ("disclosure", "missing_disclosure")]


def test_an_earlier_copy_of_the_file_of_checkpoints_is_seen(log: Log) -> None:
    file = log.audited.directory / CHECKPOINT_FILE
    first = file.read_text().split("\n\n" + ORIGIN)[0] + "\n\n"
    file.write_text(first)
    assert log.problems() == [("file", None)]


def test_since_reads_only_later_rows_but_all_leaf_hashes(log: Log) -> None:
    log.update("audit_rows", "tool_name = 'x'", "leaf_index = 2")
    assert log.problems("--since", "2030-01-01T00:00:00Z") == []
    log.delete("audit_leaves", "leaf_index = 3")
    assert ("missing_leaf", 3) in log.problems("--since", "2030-01-01T00:00:00Z")


@pytest.mark.parametrize(("more", "complete"), [((), True), (("--since", "2030-01-01T00:00:00Z"), False)])
def test_a_result_is_complete_only_if_every_row_was_read(log: Log, more: tuple[str, ...], complete: bool) -> None:
    result = orjson.loads(log.audit("verify", "--json", "--no-record", *more).stdout.splitlines()[-1])
    assert (result["intact"], result["complete"]) == (True, complete)
    log.delete("audit_leaves", "leaf_index = 3")
    for full in ((), ("--full",)):
        result = orjson.loads(log.audit("verify", "--json", "--no-record", *full, *more).stdout.splitlines()[-1])
        assert (result["intact"], result["complete"]) == (False, bool(full) and complete)


def test_a_value_that_only_contains_the_name_is_counted_and_not_erased(log: Log) -> None:
    before = log.audited.query("SELECT count() FROM assay.audit_disclosures")
    done = log.cli.call("audit", "erase", "--subject", "HELP", "--yes", role="owner", extra=log.own)
    assert (done.returncode, done.stdout) == (0, b"erased 0 value(s)\n")
    assert b"8 other value(s) contain this name, and are not erased" in done.stderr
    assert log.audited.query("SELECT count() FROM assay.audit_disclosures") == before


def test_a_key_file_with_bytes_that_are_no_text_exits_2_with_one_line(log: Log) -> None:
    (log.audited.directory / PUBLIC_FILE).write_bytes(b"\xff\xfe\n")
    done = log.audit("verify")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr


def test_what_cannot_be_read_exits_2(log: Log, tmp_path: Path) -> None:
    (log.audited.directory / PUBLIC_FILE).unlink()
    done = log.audit("verify")
    assert done.returncode == 2
    assert b"auditor.vkey" in done.stderr
    assert log.audit("verify", "--checkpoint", str(tmp_path / "none")).returncode == 2
    for content in ("", "\n\n"):
        (tmp_path / "empty").write_text(content)
        done = log.audit("verify", "--vkey", signer(log).verifier.vkey, "--checkpoint", str(tmp_path / "empty"))
        assert (done.returncode, b"no checkpoint is in" in done.stderr) == (2, True)
    assert log.audit("verify", "--since", "yesterday").returncode == 2
    assert log.audit("show", "nonsense").returncode == 2
    assert log.audit("show", "99").returncode == 2
    assert Cli(tmp_path).call("audit", "verify", role="sre").returncode == 2


def test_an_empty_log_is_intact(log: Log) -> None:
    for table in TABLES:
        log.command(f"TRUNCATE TABLE assay_base.{table}")
    (log.audited.directory / CHECKPOINT_FILE).unlink()
    assert log.problems() == []
    assert log.audit("list").returncode == 0
    assert log.audit("checkpoint").returncode == 2


def test_rows_are_listed_by_tool_status_project_and_number(log: Log) -> None:
    def listed(*options: str) -> list[int]:
        return [orjson.loads(line)["leaf_index"] for line in log.audit("list", "--json", *options).stdout.splitlines()]

    assert listed() == list(range(LEAVES))[::-1]
    assert listed("--limit", "2") == [8, 7]
    assert listed("--limit", "0") == []
    [lost] = listed("--status", "lost")
    assert listed("--tool", "scrubber") == [lost]
    assert listed("--project", "nobody") == []
    assert listed("--since", "2030-01-01T00:00:00Z") == []
    assert log.audit("list", "--limit", "-1").returncode == 2
    assert b"search_docs" in log.audit("list").stdout


def test_a_proof_holds_without_the_store_and_not_when_it_was_changed(log: Log, tmp_path: Path) -> None:
    vkey = log.audit("key").stdout.decode().strip()
    for place in (0, 4, LEAVES - 1):
        done = log.audit("prove", str(place))
        assert done.returncode == 0
        file = tmp_path / "proof.json"
        file.write_bytes(done.stdout)
        assert called("audit", "check", str(file), "--vkey", vkey).returncode == 0
        bundle = json.loads(done.stdout)
        bundle["leaf"] = bundle["leaf"].replace("search_docs", "innocent").replace("scrubber", "innocent")
        file.write_text(json.dumps(bundle))
        refused = called("audit", "check", str(file), "--vkey", vkey)
        assert (refused.returncode, b"not in the tree" in refused.stderr) == (1, True)
    source = log.rows()[4]["source_id"]
    assert json.loads(log.audit("prove", source).stdout)["leaf_index"] == 4
    for content in (b"", b"[]", b"{}", b"\xff"):
        file.write_bytes(content)
        assert called("audit", "check", str(file), "--vkey", vkey).returncode == 1


def test_the_program_on_the_page_checks_a_proof_without_assay(log: Log, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/audit.md").read_text()
    program, proof = tmp_path / "check.py", tmp_path / "proof.json"
    program.write_text(page.partition("```python\n")[2].partition("```")[0])
    vkey = log.audit("key").stdout.decode().strip()
    for place in range(LEAVES):
        bundle = json.loads(log.audit("prove", str(place)).stdout)
        changes: list[tuple[dict[str, object], int]] = [({}, 0)]
        if place in (0, LEAVES - 1):
            changes += [
                ({"disclosures": []}, 0),
                ({"disclosures": ["WyJzYWx0IiwiY2FsbGVyX2lkIiwiZXZlIl0"]}, 1),
                ({"leaf": bundle["leaf"] + " "}, 1),
                ({"leaf_index": (place + 1) % LEAVES}, 1),
            ]
        for change, code in changes:
            proof.write_text(json.dumps(bundle | change))
            done = subprocess.run([sys.executable, str(program), str(proof), vkey], capture_output=True)
            assert done.returncode == code, (place, change, done.stderr)


def test_anchors_name_each_place_and_its_size(log: Log) -> None:
    found = [orjson.loads(line) for line in log.audit("anchors", "--json").stdout.splitlines()]
    assert [(each["size"], each["problem"]) for each in found] == [(LEAVES, ""), (LEAVES, "")]
    assert found[0]["where"] == "store"
    (log.audited.directory / CHECKPOINT_FILE).unlink()
    assert b"no checkpoint" in log.audit("anchors").stdout


def test_the_chain_alone_verifies_as_the_reference_does(log: Log) -> None:
    previous = GENESIS
    for row in log.rows():
        previous = chain_hash(previous, row)
        assert previous.hex() == row["chain_hash"]
