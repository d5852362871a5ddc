"""Anchors of the audit log on a real store, with witnesses, a time-stamp server and a directory over real sockets and files."""

import base64
import datetime as dt
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

from assay_auditor.anchors.anchoring import Anchoring
from assay_auditor.anchors.configured import anchors_of
from assay_auditor.anchors.directory import name_of
from assay_auditor.keys import CHECKPOINT_FILE
from assay_auditor.notes import Checkpoint, Signer
from assay_operations.audit_log import AuditLog
from assay_operations.doctor import probes
from assay_runtime import metrics
from assay_runtime.store import connect
from assay_schema.settings import FILE_VARIABLE
from tests.programs import needed
from tests.support.audited import ORIGIN, TABLES, Audited
from tests.support.cli import Cli
from tests.support.health import said
from tests.support.ports import free_port
from tests.support.store import StoreServer
from tests.support.timestamp_server import TimestampServer
from tests.support.wait import until
from tests.support.witness import AicsWitness, OwnWitness, aics_witness

#: See the fixture `migrated`.
MAY_TAMPER = True
AnyWitness = OwnWitness | AicsWitness
NOW = {"mutations_sync": 2}


@pytest.fixture
def audited(migrated: StoreServer, tmp_path: Path) -> Iterator[Audited]:
    with connect(migrated.settings().store) as owner:
        for table in (*TABLES, "tool_calls", "server_events", "capture_failures", "watermarks"):
            owner.command(f"TRUNCATE TABLE assay_base.{table}")
        audited = Audited(migrated, owner, tmp_path / "log")
        audited.calls(5)
        audited.watermark()
        yield audited


@pytest.fixture
def cli(audited: Audited, tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[bytes]"]:
    command = Cli(tmp_path, store_url=audited.server.url)

    def run(*arguments: str, role: str = "sre", **settings: Any) -> "subprocess.CompletedProcess[bytes]":
        own = {"origin": ORIGIN, "directory": str(audited.directory), **settings}
        extra = "[auditor]\n" + "".join(f"{name} = {orjson.dumps(value).decode()}\n" for name, value in own.items())
        return command.call("audit", *arguments, role=role, extra=extra)

    return run


def logs(audited: Audited) -> dict[str, str]:
    """What a witness has to know of the log."""
    return {ORIGIN: audited.auditor().signer.verifier.vkey}


@pytest.fixture
def own(audited: Audited) -> Iterator[OwnWitness]:
    witness = OwnWitness(logs(audited))
    yield witness
    witness.stop()


@pytest.fixture(params=["own", "aics-witness"])
def witness(request: pytest.FixtureRequest, audited: Audited, tmp_path: Path) -> Iterator[AnyWitness]:
    if request.param == "own":
        found: AnyWitness = OwnWitness(logs(audited))
    else:
        program = aics_witness()
        if program is None:
            pytest.skip("needs aics-witness")
        (tmp_path / "witness").mkdir()
        found = AicsWitness(program, tmp_path / "witness", logs(audited))
    yield found
    found.stop()


def kept(audited: Audited) -> list[tuple[int, str]]:
    """Size and kind of what the store keeps of the anchors."""
    rows = audited.query("SELECT DISTINCT size, kind FROM assay.audit_anchors ORDER BY ALL")
    return [(int(size), str(kind)) for size, kind in rows]


def delete_behind(audited: Audited, size: int) -> None:
    """Delete the end of the log, as an operator of the store can."""
    for table in ("audit_rows", "audit_leaves", "audit_disclosures"):
        audited.owner.command(f"ALTER TABLE assay_base.{table} DELETE WHERE leaf_index >= {size}", settings=NOW)


def grow(audited: Audited, count: int, start: int) -> None:
    audited.calls(count, start=start)
    audited.watermark()


# --- witnesses


def test_a_witness_cosigns_each_checkpoint_of_a_growing_log_and_verify_counts_it(
    audited: Audited, witness: AnyWitness, cli: Any
) -> None:
    sizes = []
    for number in (0, 1, 2, 7, 30):
        grow(audited, number, start=100 * (number + 1))
        assert audited.anchor(witnesses=witness.setting).problems == []
        sizes.append(audited.size())
        assert witness.size_of(ORIGIN) == sizes[-1]
    assert kept(audited) == [(size, "witness") for size in sorted(set(sizes))]
    done = cli("verify", "--json", witnesses=witness.setting)
    result = orjson.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, result["cosignatures"], result["witnessed"]) == (0, len(set(sizes)), sizes[-1])
    assert result["witnesses"] == [witness.vkey.split("+")[0]]
    assert b"1 witness(es) cosigned" in cli("verify", witnesses=witness.setting).stdout


def test_a_log_that_was_rolled_back_is_refused_by_the_witness(
    audited: Audited, witness: AnyWitness, cli: Any, tmp_path: Path
) -> None:
    audited.anchor()
    shutil.copytree(audited.directory, tmp_path / "backup")
    size = audited.size()
    grow(audited, 3, start=50)
    assert audited.anchor(witnesses=witness.setting).problems == []
    # The operator restores all of it: the store, and the directory with its file.
    delete_behind(audited, size)
    audited.owner.command(f"ALTER TABLE assay_base.audit_checkpoints DELETE WHERE size > {size}", settings=NOW)
    audited.owner.command("TRUNCATE TABLE assay_base.audit_anchors")
    shutil.rmtree(audited.directory)
    shutil.copytree(tmp_path / "backup", audited.directory)
    assert cli("verify").returncode == 0  # nothing in the store tells
    done = cli("checkpoint", "--submit", role="auditor", witnesses=witness.setting)
    assert (done.returncode, b"an old backup was restored" in done.stderr) == (1, True)
    assert witness.size_of(ORIGIN) == size + 3


def test_another_log_of_the_same_name_and_key_is_refused_by_the_witness(
    audited: Audited, witness: AnyWitness, cli: Any
) -> None:
    assert audited.anchor(witnesses=witness.setting).problems == []
    size = audited.size()
    for table in (*TABLES, "tool_calls"):
        audited.owner.command(f"TRUNCATE TABLE assay_base.{table}")
    (audited.directory / CHECKPOINT_FILE).unlink()
    grow(audited, 5, start=500)
    same = audited.anchor(witnesses=witness.setting)
    assert audited.size() == size
    assert "cosigned another log of this name" in same.problems[0]
    grow(audited, 4, start=700)
    longer = audited.anchor(witnesses=witness.setting)
    assert "cosigned another log of this name" in longer.problems[0]
    assert cli("checkpoint", "--submit", role="auditor", witnesses=witness.setting).returncode == 1
    assert kept(audited) == []
    assert witness.size_of(ORIGIN) == size


def test_a_witness_that_is_away_holds_nothing_back_and_gets_the_newest_checkpoint_later(
    audited: Audited, witness: AnyWitness
) -> None:
    witness.stop()
    anchoring = audited.anchor(witnesses=witness.setting)
    assert "cannot be reached" in anchoring.problems[0]
    grow(audited, 2, start=40)
    audited.audit()
    assert audited.query("SELECT max(size) FROM assay.audit_checkpoints") == [(audited.size(),)]
    witness.start()
    assert audited.anchor(witnesses=witness.setting).problems == []
    assert witness.size_of(ORIGIN) == audited.size()
    assert kept(audited) == [(audited.size(), "witness")]


def test_a_witness_that_does_not_know_the_log_or_its_key_says_what_to_do(audited: Audited) -> None:
    stranger = Signer(ORIGIN, b"z" * 32).verifier.vkey
    for known, expected in (({}, "does not know this log"), ({ORIGIN: stranger}, "does not trust the key of this log")):
        witness = OwnWitness(known)
        try:
            assert expected in audited.anchor(witnesses=witness.setting).problems[0]
        finally:
            witness.stop()
    assert kept(audited) == []


def test_a_witness_that_saw_the_log_before_this_store_knew_it_tells_its_size(audited: Audited, own: OwnWitness) -> None:
    audited.anchor(witnesses=own.setting)
    audited.owner.command("TRUNCATE TABLE assay_base.audit_anchors")
    audited.owner.command("TRUNCATE TABLE assay_base.audit_checkpoints")  # its edges too
    grow(audited, 3, start=60)
    assert audited.anchor(witnesses=own.setting).problems == []
    assert [body.split(b"\n")[0] for body in own.requests] == [b"old 0", b"old 0", f"old {audited.size() - 3}".encode()]


def test_a_hostile_answer_of_a_witness_is_not_kept(audited: Audited, own: OwnWitness) -> None:
    for status, body, expected in (
        (200, b"", "another key"),
        (200, b"\xff\x00<html>", "another key"),
        (200, "\N{EM DASH} stranger AAAAAAAAAAAA\n".encode(), "another key"),
        (200, b"x" * 200_000, "more than 100,000 bytes"),
        (200, None, "bad cosignature"),
        (204, b"", "HTTP 204"),
        (302, b"", "HTTP 302"),
        (400, b"", "does not understand"),
        (409, b"nonsense", "does not answer as the protocol says"),
        (409, b"9" * 30, "does not answer as the protocol says"),
        (409, b"1\n", "does not answer as the protocol says"),
        (422, b"", "cosigned another log of this name"),
        (409, b"999999\n", "an old backup was restored"),
        (500, b"", "HTTP 500"),
    ):
        content = own.cosigned("another text\n").encode() if body is None else body
        own.instead = lambda _, status=status, content=content: (status, content, "text/plain")
        own.requests.clear()
        assert expected in audited.anchor(witnesses=own.setting).problems[0]
        assert len(own.requests) <= 2
        assert kept(audited) == []


def test_a_witness_that_never_ends_its_answer_is_left_after_the_time_out(audited: Audited, own: OwnWitness) -> None:
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while not ended.wait(0.02):
                    try:
                        connection.sendall(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        anchoring = audited.anchor(witnesses=f"{own.vkey} {url}", anchor_timeout_s=0.3)
        ended.set()
        thread.join(60)
    assert "did not answer within 0.3 s" in anchoring.problems[0]


def test_what_the_store_does_not_take_is_submitted_again(audited: Audited, own: OwnWitness) -> None:
    audited.audit()
    settings = audited.settings(witnesses=own.setting)
    refused = settings.store.model_copy(update={"base_database": "none"})
    anchoring = Anchoring(ORIGIN, refused, anchors_of(settings.auditor))
    auditor = audited.auditor()
    auditor.step()
    anchoring.step(auditor.newest)
    auditor.close()
    anchoring.close()
    assert "the store does not take" in anchoring.problems[0]
    assert (own.size_of(ORIGIN), kept(audited)) == (audited.size(), [])
    assert audited.anchor(witnesses=own.setting).problems == []
    assert kept(audited) == [(audited.size(), "witness")]


def test_a_cosignature_in_the_store_that_was_changed_moved_or_invented_is_a_mismatch(
    audited: Audited, own: OwnWitness, cli: Any
) -> None:
    audited.anchor(witnesses=own.setting)
    [[size, anchor, note]] = audited.query("SELECT size, anchor, note FROM assay.audit_anchors")
    signer = audited.auditor().signer
    body, _, _ = note.rpartition("\n\N{EM DASH}")
    forged = [
        {"note": body + "\n"},
        {"note": note.replace("AAAA", "AAAB", 1)} if "AAAA" in note else {"note": body + "\n" + own.cosigned("x\n")},
        {"size": size + 1},
        {"note": "nonsense"},
        {"kind": "rumour"},
        {"kind": "timestamp", "token": "!!"},
        {"note": signer.signed(Checkpoint(ORIGIN, size, bytes(32)).text)},
    ]
    for change in forged:
        audited.owner.command("TRUNCATE TABLE assay_base.audit_anchors")
        row = {"log": ORIGIN, "size": size, "anchor": anchor, "kind": "witness", "note": note, "token": "", **change}
        audited.insert("audit_anchors", {**row, "anchored_at": "2026-01-01 00:00:00"})
        extra = {"timestamp_ca_file": str(own_ca(audited))} if change.get("kind") == "timestamp" else {}
        done = cli("verify", "--full", "--json", witnesses=own.setting, **extra)
        kinds = {orjson.loads(line).get("kind") for line in done.stdout.splitlines()} - {None}
        assert (done.returncode, "anchor" in kinds or "fork" in kinds) == (1, True), (change, done.stdout, done.stderr)


def test_a_time_in_the_store_that_the_witness_did_not_sign_is_a_mismatch_and_is_not_listed(
    audited: Audited, own: OwnWitness, cli: Any
) -> None:
    audited.anchor(witnesses=own.setting)
    audited.owner.command(
        "INSERT INTO assay_base.audit_anchors SELECT * REPLACE (anchored_at + INTERVAL 1 DAY AS anchored_at, now64(6) AS stored_at) "
        "FROM assay_base.audit_anchors"
    )
    done = cli("verify", "--full", "--json", witnesses=own.setting)
    [mismatch] = [each for each in map(orjson.loads, done.stdout.splitlines()) if each["event"] == "mismatch"]
    assert (done.returncode, mismatch["kind"], "it was signed on" in mismatch["what"]) == (1, "anchor", True)
    [place] = [each for each in listed(cli, witnesses=own.setting) if each["kind"] == "witness"]
    assert (place["at"], "it was signed on" in place["problem"]) == ("", True)


def test_a_forged_row_of_a_larger_checkpoint_is_shown_and_stops_no_submission(
    audited: Audited, own: OwnWitness, tmp_path: Path
) -> None:
    settings = {"witnesses": own.setting, "anchor_directory": tmp_path / "copies"}
    (tmp_path / "copies").mkdir()
    assert audited.anchor(**settings).problems == []
    [[note]] = audited.query("SELECT DISTINCT note FROM assay.audit_anchors WHERE kind = 'witness'")
    forged = {"log": ORIGIN, "size": 2**60, "note": note, "token": "", "anchored_at": "2099-01-01 00:00:00"}
    audited.insert("audit_anchors", {**forged, "anchor": own.key.name, "kind": "witness"})
    audited.insert("audit_anchors", {**forged, "anchor": str(tmp_path / "copies"), "kind": "directory"})
    grow(audited, 2, start=30)
    anchoring = audited.anchor(**settings)
    assert own.size_of(ORIGIN) == audited.size()
    assert (tmp_path / "copies" / name_of(audited.size())).exists()
    assert len(anchoring.problems) == 2
    assert all(f"a checkpoint of {2**60} leaves" in each for each in anchoring.problems)
    assert metrics.AUDIT_ANCHOR_CONTRADICTS.labels(own.key.name)._value.get() == 1
    assert metrics.AUDIT_ANCHOR_LEAVES.labels(own.key.name)._value.get() == audited.size()


def own_ca(audited: Audited) -> Path:
    import trustme

    path = audited.directory.parent / "ca.pem"
    trustme.CA().cert_pem.write_to_path(path)
    return path


def test_an_anchor_of_more_leaves_than_the_log_shows_that_its_tail_was_deleted(
    audited: Audited, own: OwnWitness, cli: Any
) -> None:
    audited.anchor(witnesses=own.setting)
    size = audited.size()
    delete_behind(audited, size - 2)
    audited.owner.command("TRUNCATE TABLE assay_base.audit_checkpoints")
    (audited.directory / CHECKPOINT_FILE).write_text("")
    done = cli("verify", "--full", "--json", witnesses=own.setting)
    found = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert ("tail", size - 2) in [(each.get("kind"), each.get("leaf_index")) for each in found]


def test_keys_of_witnesses_are_given_with_vkey_and_without_one_their_cosignatures_are_not_checked(
    audited: Audited, own: OwnWitness, cli: Any
) -> None:
    audited.anchor(witnesses=own.setting)
    done = cli("verify", "--vkey", own.vkey)
    assert (done.returncode, b"1 witness(es) cosigned" in done.stdout) == (0, True)
    without = cli("verify")
    assert (without.returncode, b"are not checked" in without.stderr) == (0, True)
    assert b"witness(es)" not in without.stdout
    other = OwnWitness({}, seed=b"v" * 32)
    other.stop()
    done = cli("verify", "--json", "--vkey", other.vkey)  # another key under the same name
    assert (done.returncode, b"no cosignature of the key" in done.stdout) == (1, True)
    assert cli("verify", "--vkey", own.vkey[:-4]).returncode == 2


def test_a_witness_of_the_settings_does_not_count_for_a_reader_who_names_another(
    audited: Audited, own: OwnWitness, cli: Any
) -> None:
    audited.anchor(witnesses=own.setting)
    trusted = OwnWitness({}, name="witness.test/w2", seed=b"v" * 32)
    trusted.stop()
    assert cli("verify", witnesses=own.setting, max_unanchored_s=0.001).returncode == 0
    done = cli("verify", "--vkey", trusted.vkey, witnesses=own.setting, max_unanchored_s=0.001)
    assert (done.returncode, b"witness(es)" in done.stdout) == (3, False), done.stdout
    assert b"witness.test/w2 has cosigned no checkpoint" in done.stderr


def test_anchors_lists_every_place_with_its_newest_checkpoint_and_age(
    audited: Audited, own: OwnWitness, cli: Any, tmp_path: Path
) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    settings = {"witnesses": own.setting, "anchor_directory": str(copies)}
    assert [each["problem"] for each in listed(cli, **settings)] == ["no checkpoint"] * 4
    audited.anchor(**settings)
    found = listed(cli, **settings)
    assert [each["kind"] for each in found] == ["store", "file", "directory", "witness"]
    assert {each["size"] for each in found} == {audited.size()}
    assert {each["problem"] for each in found} == {""}
    assert len({each["root"] for each in found}) == 1
    assert all(each["age_s"] >= 0 and each["at"] for each in found)
    # One that is no longer set is still listed, and not checked.
    assert [(each["kind"], each["problem"][:11]) for each in listed(cli)] == [
        ("store", ""),
        ("file", ""),
        ("directory", ""),
        ("witness", "not checked"),
    ]
    assert b"witness.test/w1" in cli("anchors", **settings).stdout


def test_doctor_reads_how_far_each_anchor_is(audited: Audited, own: OwnWitness) -> None:
    audited.anchor(witnesses=own.setting)
    size = audited.size()
    grow(audited, 1, start=20)
    audited.audit()
    both = {"witnesses": own.setting, "anchor_directory": str(audited.directory)}
    assert late(audited, **both) == [(own.key.name, size), (str(audited.directory), 0)]


def late(audited: Audited, **settings: Any) -> list[tuple[str, int]]:
    """Return the anchors that doctor names, and the leaves that it counts for each."""
    log = AuditLog(audited.owner, audited.settings("sre", **settings).auditor)
    found = probes.late_anchors(log, anchors_of(log.own))
    assert all(seconds >= 0 for _, _, seconds in found)
    return [(name, size) for name, size, _ in found]


def test_doctor_counts_only_checkpoints_of_the_log_that_an_anchor_has(
    audited: Audited, own: OwnWitness, tmp_path: Path
) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    settings = {"witnesses": own.setting, "anchor_directory": str(copies)}
    audited.anchor(**settings)
    size = audited.size()
    grow(audited, 3, start=20)
    audited.audit()
    newest = audited.size()
    assert newest > size
    expected = [(own.key.name, size), (str(copies), size)]
    assert late(audited, **settings) == expected
    [[note]] = audited.query(f"SELECT note FROM assay.audit_checkpoints WHERE size = {newest}")
    text, _, lines = str(note).partition("\n\n")
    forged = [(newest, note), (newest + 5, note), (10**12, note)]
    forged += [(10**12, f"{ORIGIN}\n{10**12}\n{text.split(chr(10))[2]}\n\n{lines}")]  # no such checkpoint is signed
    for number, (many, each) in enumerate(forged):
        for name, kind in ((own.key.name, "witness"), (own.key.name, "directory"), (str(copies), "directory")):
            row = {"log": ORIGIN, "size": many, "anchor": name, "kind": kind, "note": each, "token": str(number)}
            audited.insert("audit_anchors", {**row, "anchored_at": "2026-05-17 18:00:00.000000"})
    assert late(audited, **settings) == expected
    audited.insert("audit_checkpoints", {"log": ORIGIN, "size": 10**12, "root": "00" * 32, "note": forged[-1][1]})
    assert late(audited, **settings) == expected
    *_, covered, _, _, _ = probes.audit_log(audited.owner, "assay", ORIGIN)
    assert covered == newest
    audited.anchor(**settings)
    assert late(audited, **settings) == [(own.key.name, newest), (str(copies), newest)]


def listed(cli: Any, **settings: Any) -> list[dict[str, Any]]:
    done = cli("anchors", "--json", **settings)
    assert done.returncode == 0, done.stderr
    return [orjson.loads(line) for line in done.stdout.splitlines()]


def test_submit_sends_the_newest_checkpoint_now_and_prints_each_answer(
    audited: Audited, own: OwnWitness, cli: Any, tmp_path: Path
) -> None:
    audited.audit()
    settings = {"witnesses": own.setting, "anchor_directory": str(tmp_path / "none")}
    done = cli("checkpoint", "--submit", role="auditor", **settings)
    assert done.returncode == 2
    assert done.stdout.decode().startswith(f"{ORIGIN}\n{audited.size()}\n")
    assert f"witness witness.test/w1: has {audited.size()} leaves since" in done.stdout.decode()
    assert b"auditor.anchor_directory" in done.stderr
    assert kept(audited) == [(audited.size(), "witness")]
    (tmp_path / "none").mkdir()
    done = cli("checkpoint", "--submit", "--json", role="auditor", **settings)
    assert (done.returncode, [orjson.loads(line)["size"] for line in done.stdout.splitlines()]) == (
        0,
        [audited.size()] * 2,
    )
    assert cli("checkpoint", "--submit", role="auditor").returncode == 2  # no anchor is set
    assert cli("checkpoint", "--submit", **settings).returncode == 2  # an SRE may not insert


def test_a_log_that_no_anchor_signed_is_intact_with_a_note_and_exits_3_once_its_leaves_are_too_old(
    audited: Audited, own: OwnWitness, cli: Any, tmp_path: Path
) -> None:
    audited.audit()
    done = cli("verify", witnesses=own.setting)
    assert (done.returncode, b"anchors have 0" in done.stdout) == (0, True)
    assert b"the witness witness.test/w1 has cosigned no checkpoint" in done.stderr
    late = cli("verify", witnesses=own.setting, max_unanchored_s=0.001)
    assert (late.returncode, b"at no anchor for" in late.stderr) == (3, True)
    assert cli("verify", max_unanchored_s=0.001).returncode == 0  # every leaf has a checkpoint
    audited.anchor(witnesses=own.setting)
    done = cli("verify", witnesses=own.setting, max_unanchored_s=0.001)
    assert (done.returncode, b"anchors have" in done.stdout, b"cosigned no" in done.stderr) == (0, False, False)
    (tmp_path / "copies").mkdir()
    copies = {"anchor_directory": str(tmp_path / "copies"), "max_unanchored_s": 0.001}
    assert cli("verify", **copies).returncode == 3
    audited.anchor(anchor_directory=tmp_path / "copies")
    assert cli("verify", **copies).returncode == 0
    grow(audited, 1, start=20)
    audited.audit()
    assert cli("verify", **copies).returncode == 3


# --- a directory


def test_each_checkpoint_is_a_file_of_the_directory_and_verify_compares_them(
    audited: Audited, cli: Any, tmp_path: Path
) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    audited.anchor(anchor_directory=copies)
    first = audited.size()
    grow(audited, 2, start=30)
    audited.anchor(anchor_directory=copies)
    assert sorted(each.name for each in copies.iterdir()) == [name_of(first), name_of(audited.size())]
    assert cli("verify", anchor_directory=str(copies)).returncode == 0
    for attempt, content in ((2, ""), (3, (copies / name_of(first)).read_text()[:-20])):  # the start of one
        (copies / name_of(first, attempt)).write_text(content)
    assert cli("verify", anchor_directory=str(copies)).returncode == 0
    signer = audited.auditor().signer
    for size in (first, audited.size() + 5):
        (copies / name_of(size, 4)).write_text(signer.signed(Checkpoint(ORIGIN, size, bytes(32)).text))
        done = cli("verify", "--full", "--json", anchor_directory=str(copies))
        kinds = {orjson.loads(line).get("kind") for line in done.stdout.splitlines()}
        assert (done.returncode, bool(kinds & {"fork", "tail"})) == (1, True), done.stdout
        (copies / name_of(size, 4)).unlink()
    done = cli("verify", anchor_directory=str(tmp_path / "away"))
    assert (done.returncode, b"is not compared" in done.stderr) == (0, True)


def test_a_file_of_the_directory_that_was_deleted_cut_or_replaced_is_a_mismatch(
    audited: Audited, cli: Any, tmp_path: Path
) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    audited.anchor(anchor_directory=copies)
    first = copies / name_of(audited.size())
    grow(audited, 2, start=30)
    audited.anchor(anchor_directory=copies)
    second = copies / name_of(audited.size())
    assert cli("verify", anchor_directory=str(copies)).returncode == 0
    one, two = first.read_text(), second.read_text()
    for change in ((None, two), ("", two), (one[:-20], two), (two, two), (two, one)):
        for path, text in zip((first, second), change, strict=True):
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_text(text)
        done = cli("verify", "--full", "--json", anchor_directory=str(copies))
        kinds = {orjson.loads(line).get("kind") for line in done.stdout.splitlines()} - {None}
        assert (done.returncode, kinds) == (1, {"anchor"}), (change, done.stdout)
    assert cli("verify").returncode == 0  # elsewhere, without the directory


def test_a_file_that_another_key_signed_stands_for_its_checkpoint(audited: Audited, cli: Any, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    audited.anchor(anchor_directory=copies)
    path = copies / name_of(audited.size())
    root = Checkpoint.parsed(path.read_text()).root
    path.unlink()
    (copies / name_of(audited.size(), 3)).write_text(
        audited.auditor().signer.signed(Checkpoint(ORIGIN, audited.size(), root).text)
    )
    assert cli("verify", anchor_directory=str(copies)).returncode == 0


# --- the service


@pytest.mark.slow
def test_the_service_anchors_while_it_writes_and_a_kill_at_any_time_loses_nothing(
    audited: Audited, own: OwnWitness, tmp_path: Path
) -> None:
    port = free_port()
    own_settings = audited.settings()
    file = tmp_path / "auditor.toml"
    file.write_text(
        f'[store]\nurl = "{own_settings.store.url}"\nuser = "auditor"\n'
        f'password = "{own_settings.store.password.get_secret_value()}"\n'
        f'[auditor]\norigin = "{ORIGIN}"\ndirectory = "{audited.directory}"\nport = {port}\ncheckpoint_s = 0.5\n'
        f'witnesses = "{own.setting}"\n[telemetry]\nhost = "127.0.0.1"\n'
    )
    file.chmod(0o600)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}

    def metric(name: str) -> float | None:
        return next(
            (float(line.split()[-1]) for line in said(port, "/metrics")[1].split("\n") if line.startswith(name)), None
        )

    def start() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "assay_auditor"],
            env={**inherited, FILE_VARIABLE: str(file)},
            stderr=subprocess.DEVNULL,
        )

    process = start()
    try:
        until(lambda: own.size_of(ORIGIN) == audited.size() > 0, "the witness has the log")
        own.stop()
        grow(audited, 3, start=70)
        size = audited.size()
        until(lambda: audited.size() == size + 3, "the log grows while the witness is away")
        until(lambda: metric("assay_audit_anchor_up") == 0, "the metric says that the witness is away")
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        own.start()
        process = start()
        until(lambda: own.size_of(ORIGIN) == audited.size(), "the witness has the newest checkpoint")
        until(lambda: metric("assay_audit_anchor_leaves") == audited.size(), "the metric says so")
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait(60)


# --- a time-stamp server


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TimestampServer]:
    found = TimestampServer(needed("openssl"), tmp_path_factory.mktemp("tsa"))
    yield found
    found.close()


@pytest.fixture
def server(shared_server: TimestampServer) -> TimestampServer:
    shared_server.requests.clear()
    shared_server.instead = None
    return shared_server


def settings_for(server: TimestampServer, **settings: Any) -> dict[str, Any]:
    return {"timestamp_url": server.url, "timestamp_ca_file": str(server.ca), **settings}


def stamp(audited: Audited) -> tuple[bytes, bytes]:
    """The newest time stamp in the store, and what it is about."""
    [[token, note]] = audited.query("SELECT token, note FROM assay.audit_anchors ORDER BY size DESC LIMIT 1")
    return base64.b64decode(token), note.encode()


def test_a_time_stamp_of_each_checkpoint_is_kept_and_openssl_verifies_it(
    audited: Audited, server: TimestampServer, cli: Any, tmp_path: Path
) -> None:
    assert audited.anchor(**settings_for(server)).problems == []
    response, note = stamp(audited)
    assert server.verifies(response, note)
    assert not server.verifies(response, note + b" ")
    done = cli("anchors", "--save", str(tmp_path))
    files = [Path(line) for line in done.stdout.decode().split("\n") if line]
    assert [path.read_bytes() for path in files] == [response, note]
    assert cli("anchors", "--save", str(tmp_path)).returncode == 2  # nothing is overwritten
    done = cli("verify", "--json", **settings_for(server))
    result = orjson.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, result["timestamped"]) == (0, audited.size())
    assert abs(dt.datetime.fromisoformat(result["timestamped_at"]).timestamp() - time.time()) < 3_600
    assert [(each["kind"], each["problem"]) for each in listed(cli, **settings_for(server))][-1] == ("timestamp", "")


def test_the_time_stamp_server_is_asked_again_only_after_its_pause(audited: Audited, server: TimestampServer) -> None:
    audited.anchor(**settings_for(server))
    grow(audited, 1, start=30)
    audited.anchor(**settings_for(server))
    assert len(server.requests) == 1
    audited.anchor(**settings_for(server, timestamp_s=0))
    assert len(server.requests) == 2
    assert kept(audited)[-1] == (audited.size(), "timestamp")


def test_a_time_stamp_that_does_not_verify_is_not_kept(
    audited: Audited, server: TimestampServer, tmp_path: Path
) -> None:
    other = TimestampServer(needed("openssl"), tmp_path / "other")
    try:
        earlier = server.reply(request_for(b"another text"))[1]
        answers: dict[str, Callable[[bytes], tuple[int, bytes]]] = {
            "html": lambda _: (200, b"<html>"),
            "status": lambda _: (503, b""),
            "empty": lambda _: (200, b""),
            "refused": lambda _: (200, bytes.fromhex("30053003020102")),
            "replayed": lambda _: (200, earlier),
            "other root": other.reply,
        }
        for hostile, answer in answers.items():
            server.instead = answer
            [problem] = audited.anchor(**settings_for(server)).problems
            assert "the time-stamp server 127.0.0.1:" in problem, hostile
            assert kept(audited) == [], hostile
    finally:
        other.close()


def request_for(content: bytes) -> bytes:
    return TimestampRequestBuilder().data(content).hash_algorithm(HashAlgorithm.SHA256).build().as_bytes()


def test_a_time_stamp_in_the_store_that_was_changed_is_a_mismatch(
    audited: Audited, server: TimestampServer, cli: Any
) -> None:
    audited.anchor(**settings_for(server))
    response, note = stamp(audited)
    of_another = server.reply(request_for(b"another text"))[1]
    for changed in (response[:-40] + bytes(40), of_another, b"", response[:100]):
        assert not server.verifies(changed, note)
        audited.owner.command("TRUNCATE TABLE assay_base.audit_anchors")
        row = {"log": ORIGIN, "size": audited.size(), "anchor": "tsa", "kind": "timestamp", "note": note.decode()}
        token = base64.b64encode(changed).decode()
        audited.insert("audit_anchors", {**row, "token": token, "anchored_at": "2026-01-01 00:00:00"})
        done = cli("verify", "--full", "--json", **settings_for(server))
        kinds = [orjson.loads(line).get("kind") for line in done.stdout.splitlines()]
        assert (done.returncode, kinds) == (1, ["anchor", None])


def test_without_its_root_certificate_a_time_stamp_is_not_checked(
    audited: Audited, server: TimestampServer, cli: Any
) -> None:
    audited.anchor(**settings_for(server))
    done = cli("verify")
    assert (done.returncode, b"are not checked" in done.stderr) == (0, True)
    done = cli("verify", timestamp_ca_file=str(audited.directory / "none"))
    assert (done.returncode, b"auditor.timestamp_ca_file" in done.stderr) == (2, True)
