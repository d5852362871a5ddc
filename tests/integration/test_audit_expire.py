"""Retention of the audit log on a real store: old rows go, their hashes stay, and only a signed record explains an absent row."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_auditor.disclosures import digest_of, disclosure_of, opened
from assay_auditor.expiry import OPERATION
from assay_auditor.keys import CHECKPOINT_FILE
from assay_auditor.merkle import leaf_hash
from assay_auditor.rows import leaf_data
from assay_operations import audit_expire
from assay_operations.audit_log import AuditLog
from assay_runtime.store import connect
from tests.support.audited import ORIGIN, TABLES, Audited, operation
from tests.support.cli import Cli, called
from tests.support.store import StoreServer

#: See the fixture `migrated`.
MAY_TAMPER = True
#: Tool calls of two months ago, and of today.
OLD, NEW = 6, 4
KEPT_DAYS = "[retention]\naudit_days = 30\n"


@dataclass
class Log:
    """A log with old and new rows, and commands on it."""

    audited: Audited
    cli: Cli

    def audit(self, *arguments: str, role: str = "sre", days: str = KEPT_DAYS) -> Any:
        own = f'[auditor]\norigin = "{ORIGIN}"\ndirectory = "{self.audited.directory}"\ncheckpoint_s = 0.1\n'
        return self.cli.call("audit", *arguments, role=role, extra=own + days)

    def expire(self, *arguments: str, days: str = KEPT_DAYS) -> Any:
        """Run `assay audit expire` while an auditor works."""
        with self.audited.auditing():
            return self.audit("expire", *arguments, "--data", str(self.cli.directory), role="owner", days=days)

    def verified(self) -> tuple[list[tuple[str, int | None]], dict[str, Any]]:
        """Run a full verification. Return kind and place of each mismatch, and the result."""
        done = self.audit("verify", "--full", "--json")
        *found, result = map(orjson.loads, done.stdout.splitlines())
        assert done.returncode == (1 if found else 0), (done.stdout, done.stderr)
        return [(each["kind"], each["leaf_index"]) for each in found], result

    def delete(self, table: str, where: str) -> None:
        self.audited.owner.command(
            f"ALTER TABLE assay_base.{table} DELETE WHERE {where}", settings={"mutations_sync": 2}
        )

    def places(self, table: str = "audit_rows") -> list[int]:
        found = self.audited.query(f"SELECT DISTINCT leaf_index FROM assay.{table} ORDER BY leaf_index")
        return [int(row[0]) for row in found]

    def target(self, before: int) -> str:
        """Return the range of a record that somebody forges."""
        query = f"SELECT leaf_hash FROM assay.audit_leaves WHERE leaf_index = {before - 1}"
        return orjson.dumps({"log": ORIGIN, "before": before, "last_hash": self.audited.query(query)[0][0]}).decode()

    def record(self) -> int:
        """Return the leaf of the newest record."""
        where = f"tool_name = '{OPERATION}' AND status = 'started'"
        return int(self.audited.query(f"SELECT max(leaf_index) FROM assay.audit_rows WHERE {where}")[0][0])


@pytest.fixture
def log(migrated: StoreServer, tmp_path: Path) -> Iterator[Log]:
    with connect(migrated.settings().store) as owner:
        for table in (*TABLES, "tool_calls", "watermarks"):
            owner.command(f"TRUNCATE TABLE assay_base.{table}")
        audited = Audited(migrated, owner, tmp_path / "log")
        audited.calls(OLD, days_old=60)
        audited.calls(NEW, start=OLD)
        audited.watermark()
        audited.audit()
        yield Log(audited, Cli(tmp_path, store_url=migrated.url))


def test_rows_older_than_the_retention_go_their_hashes_stay_and_the_log_is_intact(log: Log) -> None:
    size = log.audited.size()
    done = log.expire("--yes", "--comment", "yearly")
    assert (done.returncode, done.stdout) == (0, b"deleted 6 row(s) of the audit log\n"), done.stderr
    assert log.places()[:NEW] == list(range(OLD, OLD + NEW))
    assert min(log.places("audit_disclosures")) == OLD
    assert log.places("audit_leaves")[: OLD + 1] == list(range(OLD + 1))
    found, result = log.verified()
    assert (found, result["expired"], result["leaves"]) == ([], OLD, size + 2)
    done = log.audit("verify")
    assert (done.returncode, b"; 6 row(s) expired" in done.stdout) == (0, True)
    again = log.expire("--yes")
    assert again.stdout == b"deleted 0 row(s) of the audit log\n"


def test_the_record_is_a_signed_leaf_with_who_what_range_and_why_before_a_row_goes(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed: list[int] = []
    deleted = audit_expire.delete_rows

    def watched(*arguments: Any) -> None:
        signed.append(int(log.audited.query("SELECT max(size) FROM assay.audit_checkpoints")[0][0]))
        assert log.places()[:OLD] == list(range(OLD)) or len(signed) > 1
        deleted(*arguments)

    monkeypatch.setattr(audit_expire, "delete_rows", watched)
    assert log.expire("--yes", "--comment", "agreed with legal").returncode == 0
    assert log.record() < signed[0]
    shown = json.loads(log.audit("show", str(log.record()), "--json").stdout)
    target = json.loads(shown["disclosed"]["target"])
    assert (target["log"], target["before"], target["audit_days"]) == (ORIGIN, OLD, 30)
    assert shown["disclosed"]["comment"] == "agreed with legal"
    assert shown["disclosed"]["caller_id"]


def test_show_and_prove_of_an_expired_row_say_who_deleted_it_and_of_a_missing_one_that_nobody_did(log: Log) -> None:
    [[source]] = log.audited.query("SELECT toString(source_id) FROM assay.audit_leaves WHERE leaf_index = 2 LIMIT 1")
    assert log.expire("--yes").returncode == 0
    for command in ("show", "prove"):
        for name in ("2", source):
            done = log.audit(command, name)
            assert done.returncode == 2
            assert b"has expired: " in done.stderr
            assert f"deleted the rows below leaf {OLD}".encode() in done.stderr
    log.delete("audit_rows", f"leaf_index = {OLD}")
    assert b"no record explains it" in log.audit("show", str(OLD)).stderr
    assert b"which has " in log.audit("show", "4711").stderr


def test_a_proof_that_was_made_before_its_row_expired_stays_valid(log: Log, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    proof.write_bytes(log.audit("prove", "2").stdout)
    vkey = log.audit("key").stdout.decode().strip()
    assert log.expire("--yes").returncode == 0
    assert called("audit", "check", str(proof), "--vkey", vkey).returncode == 0
    younger = log.audit("prove", str(OLD))
    proof.write_bytes(younger.stdout)
    assert called("audit", "check", str(proof), "--vkey", vkey).returncode == 0


def test_a_row_that_is_absent_without_a_record_is_a_mismatch_also_next_to_expired_ones(log: Log) -> None:
    log.delete("audit_rows", "leaf_index = 1")
    assert log.verified()[0] == [("missing_row", 1)]
    assert log.expire("--yes").returncode == 0
    log.delete("audit_rows", f"leaf_index = {OLD + 1}")
    found, result = log.verified()
    assert (found, result["expired"]) == ([("missing_row", OLD + 1)], OLD)


def test_a_record_that_no_checkpoint_signs_explains_nothing(log: Log) -> None:
    covered = log.audited.size()
    log.audited.insert("operations_audit", operation(operation=OPERATION, target=log.target(OLD)))
    auditor = log.audited.auditor(checkpoint_s=80_000.0)
    auditor._signed_at = float("inf")  # no checkpoint is due
    while auditor.step():
        pass
    auditor._disconnect()
    auditor._lock.release()
    assert log.record() >= covered
    log.delete("audit_rows", f"leaf_index < {OLD}")
    assert log.verified()[0] == [("missing_row", 0)]
    log.audited.audit()
    found, result = log.verified()
    assert (found, result["expired"]) == ([], OLD)


def test_a_record_that_was_forged_or_changed_in_the_store_explains_nothing(log: Log) -> None:
    log.delete("audit_rows", f"leaf_index < {OLD}")
    reader = AuditLog(log.audited.owner, log.audited.settings().auditor)
    place = log.audited.size() - 1
    text = disclosure_of("AAAAAAAAAAAAAAAAAAAAAA", "target", log.target(OLD))
    [row] = reader.rows(place, place + 1)
    row |= {"kind": "operation", "tool_name": OPERATION, "status": "started", "sd": [digest_of(text)]}
    row["leaf_hash"] = leaf_hash(leaf_data(row)).hex()
    log.audited.insert("audit_rows", {"log": ORIGIN, **row})
    common = {"log": ORIGIN, "leaf_index": place, "project": "", "created_at": "2026-01-01T00:00:00Z"}
    log.audited.insert("audit_disclosures", common | {"digest": digest_of(text), "disclosure": text})
    assert reader.expiries()
    found = log.verified()[0]
    assert ("missing_row", 0) in found
    assert ("second_row", place) in found


def test_a_range_that_was_widened_afterwards_explains_nothing(log: Log) -> None:
    assert log.expire("--yes").returncode == 0
    log.delete("audit_rows", f"leaf_index = {OLD}")
    wider = disclosure_of("AAAAAAAAAAAAAAAAAAAAAA", "target", log.target(OLD + 1))
    where = f"leaf_index = {log.record()}"
    texts = [str(row[0]) for row in log.audited.query(f"SELECT disclosure FROM assay.audit_disclosures WHERE {where}")]
    [narrow] = [text for text in texts if (opened(text) or ("",))[0] == "target"]
    log.audited.owner.command(
        f"ALTER TABLE assay_base.audit_disclosures UPDATE disclosure = '{wider}' WHERE {where} AND disclosure = '{narrow}'",
        settings={"mutations_sync": 2},
    )
    found = log.verified()[0]
    assert ("disclosure", log.record()) in found
    assert {("missing_row", 0), ("missing_row", OLD)} <= set(found)


def test_nothing_is_deleted_if_no_auditor_signs_the_record(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_expire, "GRACE_S", 0.2)
    before = log.places()
    done = log.audit("expire", "--yes", "--data", str(log.cli.directory), role="owner")
    assert (done.returncode, b"nothing was deleted" in done.stderr) == (2, True)
    assert log.places() == before
    assert log.verified()[0] == []


def test_an_expiry_that_was_killed_between_its_two_deletions_is_intact_and_completed_by_the_next(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = audit_expire.delete_rows

    def killed(client: Any, table: str, *rest: Any) -> None:
        if table.endswith("audit_rows"):
            raise KeyboardInterrupt
        deleted(client, table, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(audit_expire, "delete_rows", killed)
        log.expire("--yes")
    assert log.places()[:OLD] == list(range(OLD))
    assert log.verified()[0] == []
    assert log.expire("--yes").stdout == b"deleted 6 row(s) of the audit log\n"
    found, result = log.verified()
    assert (found, result["expired"]) == ([], OLD)


def test_rows_are_kept_indefinitely_by_default_and_counted_by_a_dry_run(log: Log) -> None:
    before = log.places()
    kept = log.expire("--yes", days="")
    assert (kept.returncode, b"kept indefinitely" in kept.stdout) == (0, True)
    counted = log.expire("--dry-run")
    assert (counted.returncode, b"would delete 6 row(s)" in counted.stderr) == (0, True)
    assert log.expire().returncode == 2  # no terminal, and no --yes
    assert log.places()[: len(before)] == before


def test_rows_that_no_checkpoint_covers_stay(log: Log) -> None:
    log.delete("audit_checkpoints", "1")
    assert b"would delete 0 row(s)" in log.audit("expire", "--dry-run", role="owner").stderr


def test_the_range_of_a_record_cannot_be_erased_as_if_it_were_a_name(log: Log) -> None:
    assert log.expire("--yes").returncode == 0
    disclosed = json.loads(log.audit("show", str(log.record()), "--json").stdout)["disclosed"]
    data = ("--data", str(log.cli.directory))
    done = log.audit("erase", "--subject", disclosed["target"], "--yes", *data, role="owner")
    assert (done.returncode, done.stdout) == (0, b"erased 0 value(s)\n")
    with log.audited.auditing():
        done = log.audit("erase", "--subject", disclosed["caller_id"], "--yes", *data, role="owner")
    assert done.returncode == 0
    found, result = log.verified()
    assert (found, result["expired"]) == ([], OLD)
    assert b"somebody deleted the rows below leaf" in log.audit("show", "0").stderr


def test_the_auditor_continues_a_log_whose_rows_expired(log: Log) -> None:
    assert log.expire("--yes").returncode == 0
    log.audited.calls(2, start=100)
    log.audited.audit()
    assert log.verified()[0] == []
    (log.audited.directory / CHECKPOINT_FILE).unlink()
    log.delete("audit_checkpoints", "1")
    log.audited.calls(2, start=200)
    log.audited.audit()
    found, result = log.verified()
    assert (found, result["expired"]) == ([], OLD)


def test_a_record_of_an_earlier_log_of_the_same_name_explains_nothing_in_a_new_one(log: Log) -> None:
    assert log.expire("--yes").returncode == 0
    for table in (*TABLES, "tool_calls"):
        log.audited.owner.command(f"TRUNCATE TABLE assay_base.{table}")
    (log.audited.directory / CHECKPOINT_FILE).unlink()
    log.audited.calls(OLD)
    log.audited.audit()
    assert log.record() >= OLD
    log.delete("audit_rows", "leaf_index = 0")
    assert log.verified()[0] == [("missing_row", 0)]
