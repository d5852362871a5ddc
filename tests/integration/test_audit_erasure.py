"""Erasing names from the audit log on a real store: only a signed record explains an absent value, and only what it names."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_auditor.disclosures import digest_of, disclosure_of
from assay_auditor.erasure import MARK, OPERATION, mark_of
from assay_operations import audit_erase, audit_expire, audit_verification
from assay_operations.audit_log import AuditLog
from assay_operations.audit_verification import Result, verify
from assay_operations.errors import OperationError
from assay_runtime.store import connect
from tests.support.audited import ORIGIN, TABLES, Audited, operation
from tests.support.cli import Cli
from tests.support.store import StoreServer

#: See the fixture `migrated`.
MAY_TAMPER = True
#: Calls of `jo` of two months ago, of `al` and of `jo` of today.
OLD, OTHER, NEW = 3, 2, 4


@dataclass
class Log:
    """A log with calls of two agents, and commands on it."""

    audited: Audited
    cli: Cli

    def audit(self, *arguments: str, role: str = "sre") -> Any:
        own = f'[auditor]\norigin = "{ORIGIN}"\ndirectory = "{self.audited.directory}"\ncheckpoint_s = 0.1\n'
        return self.cli.call("audit", *arguments, role=role, extra=own + "[retention]\naudit_days = 30\n")

    def change(self, *arguments: str) -> Any:
        """Run a command that waits for the auditor."""
        with self.audited.auditing():
            return self.audit(*arguments, "--yes", "--data", str(self.cli.directory), role="owner")

    def verified(self, *arguments: str) -> tuple[list[tuple[str, int | None]], dict[str, Any]]:
        """Run a full verification. Return kind and place of each mismatch, and the result."""
        done = self.audit("verify", "--full", "--json", *arguments)
        *found, result = map(orjson.loads, done.stdout.splitlines())
        assert done.returncode == (1 if found else 0), (done.stdout, done.stderr)
        return [(each["kind"], each["leaf_index"]) for each in found], result

    @contextmanager
    def opened(self) -> Iterator[tuple[AuditLog, Result]]:
        """Open the log for a verification in this process."""
        with connect(self.audited.settings("sre").store) as client:
            yield AuditLog(client, self.audited.settings().auditor), Result()

    def delete(self, where: str) -> None:
        command = f"ALTER TABLE assay_base.audit_disclosures DELETE WHERE {where}"
        self.audited.owner.command(command, settings={"mutations_sync": 2})

    def digest(self, place: int) -> str:
        """Return the digest of the caller of a row."""
        query = f"SELECT caller_id FROM assay.audit_rows WHERE leaf_index = {place}"
        return str(self.audited.query(query)[0][0])

    def mark(self, place: int, erased: str) -> None:
        """Forge the mark of an erased caller."""
        row = {"log": ORIGIN, "leaf_index": place, "digest": mark_of(self.digest(place), erased), "disclosure": ""}
        self.audited.insert("audit_disclosures", row | {"created_at": "2026-01-01T00:00:00Z"})

    def marks(self) -> list[tuple[int, str]]:
        found = self.audited.query(
            f"SELECT leaf_index, digest FROM assay.audit_disclosures WHERE position(digest, '{MARK}') > 0 ORDER BY ALL"
        )
        return [(int(place), str(digest)) for place, digest in found]


@pytest.fixture
def log(migrated: StoreServer, tmp_path: Path) -> Iterator[Log]:
    with connect(migrated.settings().store) as owner:
        for table in (*TABLES, "tool_calls", "watermarks"):
            owner.command(f"TRUNCATE TABLE assay_base.{table}")
        audited = Audited(migrated, owner, tmp_path / "log")
        audited.calls(OLD, days_old=60, agent_name="jo")
        audited.calls(OTHER, start=OLD, agent_name="al")
        audited.calls(NEW, start=OLD + OTHER, agent_name="jo")
        audited.watermark()
        audited.audit()
        yield Log(audited, Cli(tmp_path, store_url=migrated.url))


def test_the_record_is_a_signed_leaf_before_a_value_goes(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = audit_erase.delete_rows
    signed: list[Any] = []

    def looks(*arguments: Any) -> None:
        signed.append(
            log.audited.query(
                f"SELECT count() FROM assay.audit_rows WHERE tool_name = '{OPERATION}' AND status = 'started' "
                "AND leaf_index < (SELECT max(size) FROM assay.audit_checkpoints)"
            )
        )
        deleted(*arguments)

    monkeypatch.setattr(audit_erase, "delete_rows", looks)
    assert log.change("erase", "--subject", "jo").stdout == b"erased 7 value(s)\n"
    assert signed == [[(1,)]]
    found, result = log.verified()
    assert (found, result["erased"]) == ([], OLD + NEW)
    assert len(log.marks()) == OLD + NEW


def test_nothing_is_erased_if_no_auditor_signs_the_record(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_erase, "GRACE_S", 0.5)
    before = log.audited.query("SELECT count() FROM assay.audit_disclosures")
    done = log.audit("erase", "--subject", "jo", "--yes", "--data", str(log.cli.directory), role="owner")
    assert (done.returncode, b"nothing was erased" in done.stderr) == (2, True)
    assert log.audited.query("SELECT count() FROM assay.audit_disclosures") == before
    assert log.verified()[0] == []


def test_a_value_that_is_deleted_later_is_not_explained_by_an_earlier_erasure(log: Log) -> None:
    log.change("erase", "--subject", "jo")
    erased = log.marks()[0][1].partition(MARK)[2]
    log.delete(f"leaf_index = {OLD} AND digest = '{log.digest(OLD)}'")
    assert log.verified()[0] == [("missing_disclosure", OLD)]
    log.mark(OLD, erased)  # also not with a forged mark, which makes the erasure one that no leaf records
    assert ("missing_disclosure", 0) in log.verified()[0]
    log.delete(f"leaf_index = {OLD}")
    log.mark(OLD, "ab" * 32)
    assert log.verified()[0] == [("missing_disclosure", OLD)]


def test_an_erasure_whose_marks_were_deleted_is_reported(log: Log) -> None:
    log.change("erase", "--subject", "al")
    [[record]] = log.audited.query(
        f"SELECT max(leaf_index) FROM assay.audit_rows WHERE tool_name = '{OPERATION}' AND status = 'started'"
    )
    log.delete(f"position(digest, '{MARK}') > 0 AND leaf_index = {OLD}")
    assert log.verified()[0] == [("missing_disclosure", OLD), ("missing_disclosure", OLD + 1)]
    one, other = log.audit("verify", "--full", "--no-record").stdout.decode().splitlines()
    assert "restore the rows of audit_disclosures from a backup" in one
    assert f"the erasure of leaf {record} with 1 mark(s) does not record exactly that: restore the rows" in other
    log.mark(OLD, log.marks()[0][1].partition(MARK)[2])  # as docs/audit.md says
    assert log.verified()[0] == []


def test_a_value_that_was_deleted_by_hand_is_explained_when_it_is_inserted_again(log: Log) -> None:
    digest = log.digest(OLD)
    columns = "leaf_index, digest, disclosure"
    [row] = log.audited.query(f"SELECT DISTINCT {columns} FROM assay.audit_disclosures WHERE digest = '{digest}'")
    log.delete(f"digest = '{digest}'")
    assert log.verified()[0] == [("missing_disclosure", OLD)]
    values = dict(zip(columns.split(", "), row, strict=True))
    log.audited.insert("audit_disclosures", {"log": ORIGIN, **values, "created_at": "2026-01-01T00:00:00Z"})
    assert log.verified()[0] == []


@pytest.mark.parametrize("step", ["marks", "first deletion", "second deletion"])
def test_an_erasure_that_was_interrupted_is_intact_and_completed_by_the_next(
    log: Log, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    mark, delete = audit_erase._mark, audit_erase.delete_rows
    deletions = 0

    def half_marked(client: Any, table: str, plan: Any) -> None:
        mark(client, table, replace(plan, digests=plan.digests[:2]))
        raise KeyboardInterrupt

    def killed(*arguments: Any) -> None:
        nonlocal deletions
        deletions += 1
        if deletions == (1 if step == "first deletion" else 2):
            raise KeyboardInterrupt
        delete(*arguments)

    monkeypatch.setattr(audit_erase, "STATEMENT_BYTES", 100)
    with monkeypatch.context() as patched:
        monkeypatch = patched
        if step == "marks":
            patched.setattr(audit_erase, "_mark", half_marked)
        else:
            patched.setattr(audit_erase, "delete_rows", killed)
        log.change("erase", "--subject", "jo")
    assert log.marks()
    assert log.verified()[0] == []
    assert log.change("erase", "--subject", "jo").returncode == 0
    found, result = log.verified()
    assert (found, result["erased"]) == ([], OLD + NEW)
    log.audited.owner.command("OPTIMIZE TABLE assay_base.audit_disclosures FINAL")
    assert log.verified()[0] == []


def test_erased_and_expired_values_stay_explained_in_any_order(log: Log) -> None:
    assert log.change("erase", "--subject", "jo").returncode == 0
    assert log.change("expire").stdout == b"deleted 3 row(s) of the audit log\n"
    found, result = log.verified()
    assert (found, result["expired"], result["erased"]) == ([], OLD, NEW)
    assert log.change("erase", "--subject", "al").stdout == b"erased 2 value(s)\n"
    assert log.verified()[0] == []


def test_an_expiry_that_was_killed_before_the_rows_went_explains_their_values(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = audit_expire.delete_rows

    def killed(client: Any, table: str, *rest: Any) -> None:
        if table.endswith("audit_rows"):
            raise KeyboardInterrupt
        deleted(client, table, *rest)

    values = log.audited.query(
        f"SELECT uniqExact(leaf_index, digest) FROM assay.audit_disclosures WHERE leaf_index < {OLD}"
    )
    with monkeypatch.context() as patched:
        patched.setattr(audit_expire, "delete_rows", killed)
        log.change("expire")
    found, result = log.verified()
    assert (found, result["expired"], result["erased"], result["expired_values"]) == ([], 0, 0, values[0][0])
    assert f"; {values[0][0]} value(s) expired whose rows are still there".encode() in log.audit("verify").stdout
    log.change("expire")
    found, result = log.verified()
    assert (found, result["expired"], result["expired_values"]) == ([], OLD, 0)


def test_values_that_go_with_a_forged_record_of_retention_are_counted(log: Log) -> None:
    [[last_hash]] = log.audited.query(f"SELECT leaf_hash FROM assay.audit_leaves WHERE leaf_index = {OLD + OTHER - 1}")
    target = {"log": ORIGIN, "before": OLD + OTHER, "last_hash": last_hash}
    log.audited.insert("operations_audit", operation(operation="audit expire", target=orjson.dumps(target).decode()))
    log.audited.audit()
    log.delete(f"leaf_index = {OLD} AND digest = '{log.digest(OLD)}'")
    found, result = log.verified()
    assert (found, result["expired"], result["erased"], result["expired_values"]) == ([], 0, 0, 1)


def test_a_partial_verification_knows_erasures_of_rows_that_it_does_not_read(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_verification, "PAGE", 2)
    assert log.change("erase", "--subject", "jo").returncode == 0
    [[since]] = log.audited.query("SELECT toString(max(stored_at)) FROM assay.audit_leaves WHERE leaf_index <= 8")
    assert log.verified("--since", str(since).replace(" ", "T") + "Z")[0] == []


def test_two_auditors_and_a_write_that_broke_off_leave_every_value_in_place(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    from assay_auditor import log as written

    def broken(table: str) -> Any:
        insert = written.insert_json_rows

        def breaks(client: Any, name: str, *rest: Any) -> None:
            if name.endswith(table):
                raise OSError("broken off")
            insert(client, name, *rest)

        return breaks

    for number, table in enumerate(("audit_rows", "audit_leaves")):
        log.audited.calls(2, start=100 * (number + 1), agent_name="kim")
        with monkeypatch.context() as patched:
            patched.setattr(written, "insert_json_rows", broken(table))
            stopped = log.audited.auditor()
            stopped.step()
            assert stopped.problem
            stopped.close()
        assert log.verified()[0] == []
        one, other = log.audited.auditor(), log.audited.auditor()
        for _ in range(3):
            one.step()
            other.step()
        one.close()
        other.close()
        assert log.verified()[0] == []


def test_erasures_and_expiries_print_one_json_object(log: Log) -> None:
    done = log.change("erase", "--subject", "jo", "--json")
    found = orjson.loads(done.stdout)
    before = found["similar"]  # records of operations by other tests, which nothing removes
    assert (found, done.stderr if not before else b"") == (
        {"found": 7, "rows": 7, "similar": before, "behind": 0, "erased": 7},
        b"",
    )
    log.audited.calls(1, start=50, agent_name="joanna")
    log.audited.audit()
    done = log.change("erase", "--subject", "jo", "--json")
    assert orjson.loads(done.stdout) == {"found": 0, "rows": 0, "similar": before + 1, "behind": 0, "erased": 0}
    done = log.audit("expire", "--dry-run", "--json", role="owner")
    assert orjson.loads(done.stdout) == {"days": 30, "before": OLD, "found": OLD, "deleted": 0}
    assert orjson.loads(log.change("expire", "--json").stdout) == {
        "days": 30,
        "before": OLD,
        "found": OLD,
        "deleted": OLD,
    }


def test_a_proof_of_a_row_with_an_erased_value_has_the_others_only(log: Log, tmp_path: Path) -> None:
    assert log.change("erase", "--subject", "jo").returncode == 0
    bundle = orjson.loads(log.audit("prove", "0").stdout)
    assert all(bundle["disclosures"])
    file = tmp_path / "proof.json"
    file.write_bytes(orjson.dumps(bundle))
    assert log.audit("check", str(file), "--vkey", log.audit("key").stdout.decode().strip()).returncode == 0
    shown = orjson.loads(log.audit("show", "0", "--json").stdout)["disclosed"]
    assert shown[log.digest(0)] is None


def test_values_of_rows_without_leaves_stay_and_the_command_says_so(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay_auditor.log import Log as Written

    log.audited.calls(2, start=50, agent_name="jo")
    adds = Written._add_leaves
    with monkeypatch.context() as patched:
        patched.setattr(Written, "_add_leaves", broken_off)
        stopped = log.audited.auditor()
        stopped.step()
        assert stopped.problem
        stopped.close()
        waits = audit_erase.wait_until_signed

        def starts(*arguments: Any) -> None:
            with log.audited.auditing():  # it writes the leaves while the command waits for it
                waits(*arguments)

        patched.setattr(audit_erase, "wait_until_signed", starts)
        patched.setattr(Written, "_add_leaves", adds)
        done = log.audit("erase", "--subject", "jo", "--yes", "--data", str(log.cli.directory), role="owner")
    assert (done.returncode, done.stdout) == (0, b"erased 7 value(s)\n")
    assert b"2 value(s) are in rows that have no leaf yet, and stay: run this again" in done.stderr
    found, result = log.verified()
    assert (found, result["erased"]) == ([], OLD + NEW)
    assert log.change("erase", "--subject", "jo").stdout == b"erased 2 value(s)\n"
    found, result = log.verified()
    assert (found, result["erased"]) == ([], OLD + NEW + 2)


@pytest.mark.parametrize("command", [("erase", "--subject", "jo"), ("expire",)])
def test_a_verification_does_not_report_what_is_deleted_while_it_reads(
    log: Log, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    rotations = AuditLog.rotations

    def deletes(own: AuditLog) -> Any:
        """Delete after the records of erasures and retention were read, and before the rows are."""
        patched.setattr(AuditLog, "rotations", rotations)
        assert log.change(*command).returncode == 0
        return rotations(own)

    def recorded() -> int:
        return int(log.audited.query("SELECT count() FROM assay.operations WHERE operation = 'audit verify'")[0][0])

    before = recorded()
    with monkeypatch.context() as patched:
        patched.setattr(AuditLog, "rotations", deletes)
        done = log.audit("verify", role="owner")
    assert (done.returncode, done.stdout) == (2, b""), done.stderr
    assert b"deleted during this verification; run it again" in done.stderr
    assert recorded() == before
    assert log.audit("verify", role="owner").returncode == 0
    assert recorded() == before + 1


def test_a_verification_reports_other_mismatches_while_values_are_deleted(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    rotations = AuditLog.rotations

    def deletes(own: AuditLog) -> Any:
        assert log.change("erase", "--subject", "jo").returncode == 0
        return rotations(own)

    text = disclosure_of("salt", "caller_id", "kim")
    forged = {"log": ORIGIN, "leaf_index": OLD, "digest": digest_of(text), "disclosure": text}
    log.audited.insert("audit_disclosures", forged | {"created_at": "2026-01-01T00:00:00Z"})
    with monkeypatch.context() as patched, log.opened() as (own, result):
        patched.setattr(AuditLog, "rotations", deletes)
        assert [(each.kind, each.leaf_index) for each in verify(own, result)] == [("disclosure", OLD)]
    assert any("run it again" in note for note in result.notes)


def test_a_verification_does_not_report_values_whose_marks_are_written_while_it_reads(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, read = audit_erase._mark, AuditLog.marked_disclosures
    raised: list[OperationError] = []

    def marks(client: Any, table: str, plan: Any) -> None:
        """Begin a verification after the record is signed; mark and delete after its first page."""

        def deletes(own: AuditLog, start: int, end: int) -> Any:
            if start == 4:
                mark(client, table, plan)
                log.delete(f"leaf_index >= 5 AND digest IN {tuple(digest for _, digest in plan.digests)}")
            return read(own, start, end)

        with monkeypatch.context() as patched, log.opened() as (own, result):
            patched.setattr(audit_verification, "PAGE", 4)
            patched.setattr(AuditLog, "marked_disclosures", deletes)
            with pytest.raises(OperationError, match="absences are not judged") as error:
                list(verify(own, result))
        raised.append(error.value)

    with monkeypatch.context() as patched:
        patched.setattr(audit_erase, "_mark", marks)
        assert log.change("erase", "--subject", "jo").returncode == 0
    assert len(raised) == 1
    assert log.verified()[0] == []


def broken_off(*_: Any) -> None:
    """Fail as the store does when it goes away."""
    raise OSError("broken off")
