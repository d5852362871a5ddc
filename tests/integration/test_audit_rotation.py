"""`assay audit rotate-key` on a real store: recorded, signed by both keys, and whole again after an interruption at any point."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_auditor import keys, log
from assay_auditor.auditor import Auditor
from assay_auditor.keys import KEY_FILE, NEXT_FILE, PUBLIC_FILE, ROTATION_FILE, prepare_signer
from assay_auditor.notes import Checkpoint, Signer, Verifier
from assay_auditor.rotation import OPERATION, target_of
from assay_operations import audit_expire
from assay_operations.audit_reads.standing import standing
from assay_runtime.store import connect
from assay_schema.settings import Settings
from tests.support.audited import ORIGIN, TABLES, Audited, operation
from tests.support.cli import Cli, called
from tests.support.sample_rows import iso
from tests.support.store import StoreServer
from tests.support.witness import OwnWitness

#: See the fixture `migrated`.
MAY_TAMPER = True
NEW = Signer(ORIGIN, b"n" * 32)


@pytest.fixture
def audited(migrated: StoreServer, tmp_path: Path) -> Iterator[Audited]:
    with connect(migrated.settings().store) as owner:
        for table in (*TABLES, "tool_calls", "server_events", "capture_failures", "watermarks"):
            owner.command(f"TRUNCATE TABLE assay_base.{table}")
        audited = Audited(migrated, owner, tmp_path / "log")
        audited.calls(5)
        audited.watermark()
        audited.audit()
        yield audited


@pytest.fixture
def cli(audited: Audited, tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[bytes]"]:
    command = Cli(tmp_path, store_url=audited.server.url)
    extra = f'[auditor]\norigin = "{ORIGIN}"\ndirectory = "{audited.directory}"\ncheckpoint_s = 0.2\n'
    return lambda *arguments, role="sre": command.call("audit", *arguments, role=role, extra=extra)


def vkey(audited: Audited) -> str:
    return (audited.directory / PUBLIC_FILE).read_text().strip()


def record(audited: Audited, old: Verifier, **fields: Any) -> None:
    """Insert the record of a rotation to `NEW`, as the command does."""
    target = orjson.dumps(target_of(old, NEW.verifier)).decode()
    audited.insert("operations_audit", operation(operation=OPERATION, target=target, **fields))


def prepare(audited: Audited, **fields: Any) -> None:
    """Record a rotation, and give the auditor its key."""
    record(audited, Verifier.parsed(vkey(audited)), **fields)
    prepare_signer(audited.directory, NEW)


def grow(audited: Audited, start: int) -> None:
    audited.calls(3, start=start)
    audited.watermark()
    audited.audit()


def kinds(cli: Any, *arguments: str) -> list[str]:
    done = cli("verify", "--full", "--json", *arguments)
    lines = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == (1 if len(lines) > 1 else 0), (done.stdout, done.stderr)
    return [line["kind"] for line in lines if line["event"] == "mismatch"]


def test_a_rotation_is_a_leaf_and_a_checkpoint_of_both_keys_and_every_key_verifies_the_log(
    audited: Audited, cli: Any, tmp_path: Path
) -> None:
    vkeys = [vkey(audited)]
    early = cli("prove", "0").stdout
    for number in range(2):
        with audited.auditing():
            done = cli("rotate-key", "--yes", "--comment", "yearly", role="owner")
        assert done.returncode == 0, done.stderr
        vkeys.append(done.stdout.decode().strip())
        grow(audited, 100 * (number + 1))
    assert len(set(vkeys)) == 3
    assert vkey(audited) == vkeys[-1] == cli("key").stdout.decode().strip()
    assert not (audited.directory / NEXT_FILE).exists()
    assert Signer.parsed((audited.directory / KEY_FILE).read_text().strip()).verifier.vkey == vkeys[-1]
    rows = [orjson.loads(line) for line in cli("list", "--tool", "audit rotate-key", "--json").stdout.splitlines()]
    assert [row["status"] for row in rows] == ["done", "started"] * 2
    # The record is below the checkpoint that both keys signed.
    sizes = audited.query("SELECT size FROM assay.audit_checkpoints WHERE rotation != '' ORDER BY size")
    assert [size > row["leaf_index"] for (size,), row in zip(sizes, [rows[3], rows[1]], strict=True)] == [True, True]
    late = cli("prove", str(audited.size() - 1)).stdout
    assert orjson.loads(late)["vkey"] == vkeys[-1]
    for key in vkeys:
        assert kinds(cli, "--vkey", key) == []
        assert [
            each["problem"] for each in map(orjson.loads, cli("anchors", "--json", "--vkey", key).stdout.splitlines())
        ] == ["", ""]
        (tmp_path / "late.json").write_bytes(late)
        assert called("audit", "check", str(tmp_path / "late.json"), "--vkey", key).returncode == 0
    (tmp_path / "early.json").write_bytes(early)
    (tmp_path / "rotations.txt").write_bytes(cli("key", "--rotations").stdout)
    assert (tmp_path / "rotations.txt").read_text().count("assay/key-rotation\n") == 2
    assert orjson.loads(cli("key", "--json").stdout)["vkey"] == vkeys[-1]
    assert len(orjson.loads(cli("key", "--json").stdout)["rotations"]) == 2
    for key in vkeys:
        early_check = ("audit", "check", str(tmp_path / "early.json"), "--vkey", key)
        alone = called(*early_check, "--json")
        assert (alone.returncode, orjson.loads(alone.stdout)["proves"]) == (
            (0, True) if key == vkeys[0] else (1, False)
        )
        assert key == vkeys[0] or "--rotations" in orjson.loads(alone.stdout)["problem"]
        assert called(*early_check, "--rotations", str(tmp_path / "rotations.txt")).returncode == 0
    assert called(*early_check, "--rotations", str(tmp_path / "none")).returncode == 2
    assert called(*early_check, "--rotations", str(tmp_path / "early.json")).returncode == 1
    (tmp_path / "none").write_text("")
    assert called(*early_check, "--rotations", str(tmp_path / "none")).returncode == 2
    assert kinds(cli, "--since", "1s") == []
    stranger = Signer(ORIGIN, b"z" * 32).verifier.vkey
    assert set(kinds(cli, "--vkey", stranger)) == {"checkpoint"}
    assert called("audit", "check", str(tmp_path / "late.json"), "--vkey", stranger).returncode == 1


def test_the_chain_is_in_the_store_and_in_the_file_and_either_is_enough(audited: Audited, cli: Any) -> None:
    old = vkey(audited)
    prepare(audited)
    grow(audited, 50)
    grow(audited, 60)
    file = audited.directory / ROTATION_FILE
    content = file.read_text()
    file.unlink()
    assert kinds(cli, "--vkey", old) == []
    file.write_text(content)
    audited.owner.command(
        "ALTER TABLE assay_base.audit_checkpoints UPDATE rotation = '' WHERE 1", settings={"mutations_sync": 2}
    )
    assert kinds(cli, "--vkey", old) == []
    file.write_text("")
    assert set(kinds(cli, "--vkey", old)) == {"checkpoint"}


def test_a_new_key_without_the_leaf_that_records_it_is_a_mismatch_for_readers_of_either_key(
    audited: Audited, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Verifier.parsed(vkey(audited))
    prepare_signer(audited.directory, NEW)
    with monkeypatch.context() as forged:  # as somebody who has the old key and the store
        forged.setattr(log.Log, "_expect_record", lambda *_: None)
        grow(audited, 50)
    assert vkey(audited) == NEW.verifier.vkey
    for key in (old.vkey, NEW.verifier.vkey):
        assert kinds(cli, "--vkey", key) == ["checkpoint"]
    done = cli("verify")
    assert f"the key {old.id.hex()} was replaced by {NEW.verifier.id.hex()} at" in done.stdout.decode()
    record(audited, old)
    grow(audited, 60)  # a record that was made afterwards explains nothing
    assert kinds(cli) == ["checkpoint"]


def test_a_record_whose_keys_or_whose_row_were_deleted_explains_no_new_key(audited: Audited, cli: Any) -> None:
    prepare(audited)
    grow(audited, 50)
    assert kinds(cli) == []
    [[place]] = audited.query(f"SELECT max(leaf_index) FROM assay.audit_rows WHERE tool_name = '{OPERATION}'")
    for table, expected in (
        ("audit_disclosures", ["missing_disclosure", "checkpoint"]),
        ("audit_rows", ["missing_row", "checkpoint"]),
    ):
        audited.owner.command(
            f"ALTER TABLE assay_base.{table} DELETE WHERE leaf_index = {place}", settings={"mutations_sync": 2}
        )
        assert kinds(cli) == expected


def test_the_auditor_takes_no_key_whose_change_is_not_recorded(audited: Audited, cli: Any) -> None:
    old = vkey(audited)
    prepare_signer(audited.directory, NEW)
    audited.calls(3, start=50)
    stopped = audited.auditor()
    stopped.step()
    stopped.close()
    assert (NEXT_FILE in stopped.problem, "run assay audit rotate-key" in stopped.problem) == (True, True)
    assert vkey(audited) == old
    (audited.directory / NEXT_FILE).unlink()
    grow(audited, 60)
    assert kinds(cli) == []


def test_the_record_of_a_rotation_outlives_the_retention_of_rows_without_its_person(
    empty_store: StoreServer, tmp_path: Path
) -> None:
    with connect(empty_store.settings().store) as owner:
        audited = Audited(empty_store, owner, tmp_path / "log")
        audited.calls(5, days_old=60)
        audited.watermark()
        audited.audit()
        prepare(audited, at=iso(time.time_ns() // 1_000_000 - 60 * 86_400_000))
        audited.audit()
        grow(audited, 5)
        command = Cli(tmp_path, store_url=empty_store.url)
        own = f'[auditor]\norigin = "{ORIGIN}"\ndirectory = "{audited.directory}"\ncheckpoint_s = 0.1\n[retention]\naudit_days = 30\n'
        with audited.auditing():
            done = command.call("audit", "expire", "--yes", "--data", str(tmp_path), role="owner", extra=own)
        assert done.stdout == b"deleted 5 row(s) of the audit log\n", done.stderr
        done = command.call("audit", "expire", "--dry-run", role="owner", extra=own)
        assert b"would delete 0 row(s)" in done.stderr
        done = command.call("audit", "verify", "--full", role="sre", extra=own)
        assert (done.returncode, b"; 5 row(s) expired" in done.stdout) == (0, True), done.stdout
        shown = orjson.loads(command.call("audit", "show", "5", "--json", role="sre", extra=own).stdout)
        opened = {name for name, value in shown["disclosed"].items() if value is not None}
        assert (shown["tool_name"], opened) == (OPERATION, {"target"})
        erase = ("audit", "erase", "--subject", shown["disclosed"]["target"], "--yes", "--data", str(tmp_path))
        assert command.call(*erase, role="owner", extra=own).stdout == b"erased 0 value(s)\n"


def test_a_reader_whose_settings_name_the_old_key_sees_a_valid_signature_in_the_console(audited: Audited) -> None:
    old = vkey(audited)
    prepare(audited)
    grow(audited, 50)
    grow(audited, 60)
    for key, expected in ((old, "valid"), (Signer(ORIGIN, b"z" * 32).verifier.vkey, "bad")):
        own = audited.settings(vkey=key).auditor
        found = standing(audited.owner, own)
        assert found.checkpoint is not None
        assert found.checkpoint.signature == expected
        assert [bool(each.problem) for each in found.places] == [expected == "bad"] * 2


def test_the_old_key_signs_nothing_any_more(audited: Audited, cli: Any) -> None:
    old = audited.auditor().signer
    prepare(audited)
    grow(audited, 50)
    grow(audited, 60)
    [[size, root]] = audited.query("SELECT size, root FROM assay.audit_checkpoints ORDER BY size DESC LIMIT 1")
    note = old.signed(Checkpoint(ORIGIN, size, bytes.fromhex(root)).text)
    audited.insert("audit_checkpoints", {"log": ORIGIN, "size": size, "root": root, "note": note, "edge": []})
    assert "checkpoint" in kinds(cli)


#: What a rotation does, in its order: the process is killed before or after the call of this number.
STEPS: list[tuple[Any, str, int]] = [
    (log, "append_checkpoint", 1),
    (log, "append_checkpoint", 2),
    (log.Log, "_record", 1),
    (log, "replace_signer", 1),
    (keys, "_publish", 3),  # the others are at the start
]


def killed_at(settings: Settings, where: int, after: bool) -> None:
    """Run a pass of an auditor in this process, which the kernel kills (`SIGKILL`) before or after one of `STEPS`."""
    owner, name, number = STEPS[where]
    step, calls = getattr(owner, name), []

    def killed(*arguments: Any, **options: Any) -> Any:
        calls.append(name)
        if len(calls) == number and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = step(*arguments, **options)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, killed)
    Auditor(settings).step()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("where", range(len(STEPS)), ids=[f"{name}-{number}" for _, name, number in STEPS])
def test_a_rotation_that_was_killed_between_two_steps_is_completed_by_the_next_start(
    audited: Audited, cli: Any, where: int, after: bool
) -> None:
    old, name = vkey(audited), STEPS[where][1]
    prepare(audited)
    process = multiprocessing.get_context("spawn").Process(target=killed_at, args=(audited.settings(), where, after))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    has_key = Signer.parsed((audited.directory / KEY_FILE).read_text().strip())
    is_replaced = name == "_publish" or (name == "replace_signer" and after)
    assert (has_key.verifier == NEW.verifier) == is_replaced  # not before the new one has signed
    grow(audited, 50)
    assert vkey(audited) == NEW.verifier.vkey
    assert not (audited.directory / NEXT_FILE).exists()
    for key in (old, NEW.verifier.vkey):
        assert kinds(cli, "--vkey", key) == []


def test_a_public_key_that_an_interrupted_rotation_left_is_replaced_at_the_next_start(audited: Audited) -> None:
    old = vkey(audited)
    prepare(audited)
    audited.audit()
    (audited.directory / PUBLIC_FILE).write_text(old + "\n")
    audited.auditor()
    assert vkey(audited) == NEW.verifier.vkey


def test_an_auditor_that_stood_by_takes_the_new_key(audited: Audited, cli: Any) -> None:
    standing = audited.auditor()
    prepare(audited)
    audited.audit()
    audited.calls(2, start=70)
    audited.watermark()
    while standing.step():
        pass
    standing.close()
    assert standing.problem == ""
    assert standing.signer.verifier == NEW.verifier
    assert kinds(cli) == []


def test_a_witness_takes_what_both_keys_signed_and_the_new_one_alone_once_it_knows_it(audited: Audited) -> None:
    witness = OwnWitness({ORIGIN: vkey(audited)})
    try:
        assert audited.anchor(witnesses=witness.setting).problems == []
        prepare(audited)
        grow(audited, 50)
        assert audited.anchor(witnesses=witness.setting).problems == []
        grow(audited, 60)
        assert "does not trust the key of this log" in audited.anchor(witnesses=witness.setting).problems[0]
        witness.logs[ORIGIN] = NEW.verifier.vkey
        assert audited.anchor(witnesses=witness.setting).problems == []
        assert witness.size_of(ORIGIN) == audited.size()
    finally:
        witness.stop()


def test_a_rotation_prints_one_json_object_with_both_keys(audited: Audited, cli: Any) -> None:
    old = vkey(audited)
    assert cli("key", "--rotations").stderr == b"the key was never replaced\n"
    with audited.auditing():
        done = cli("rotate-key", "--yes", "--json", role="owner")
    assert orjson.loads(done.stdout) == {"rotated": True, "old_vkey": old, "vkey": vkey(audited)}


def test_without_an_auditor_the_key_stays(audited: Audited, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_expire, "GRACE_S", 0.2)
    old = vkey(audited)
    done = cli("rotate-key", "--yes", role="owner")
    assert (done.returncode, b"the key is the same as before" in done.stderr) == (2, True)
    assert (vkey(audited), (audited.directory / NEXT_FILE).exists()) == (old, False)
    shutil.move(audited.directory, audited.directory.with_name("elsewhere"))
    done = cli("rotate-key", "--yes", role="owner")
    assert (done.returncode, b"where the auditor runs" in done.stderr) == (2, True)


def test_a_next_key_that_is_damaged_or_of_another_log_stops_the_auditor_with_its_name(audited: Audited) -> None:
    for content in ("nonsense\n", Signer("other", b"o" * 32).skey + "\n"):
        path = audited.directory / NEXT_FILE
        path.write_text(content)
        path.chmod(0o600)
        stopped = audited.auditor()
        stopped.step()
        stopped.close()
        assert NEXT_FILE in stopped.problem
    assert Verifier.parsed(vkey(audited)) == audited.auditor().signer.verifier


def test_an_auditor_whose_directory_has_the_replaced_key_signs_nothing(audited: Audited, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(audited.directory, other)
    late = Audited(audited.server, audited.owner, other).auditor(checkpoint_leaves=1)
    late.step()
    before = (other / keys.CHECKPOINT_FILE).read_text()
    prepare(audited)
    grow(audited, 50)
    audited.calls(2, start=80)
    audited.watermark()
    for _ in range(3):
        late.step()
    assert f"was replaced by {NEW.verifier.id.hex()}" in late.problem
    late.close()
    assert (other / keys.CHECKPOINT_FILE).read_text() == before
    grow(audited, 90)
