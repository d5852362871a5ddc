"""The sentence of the audit page: the worst that is known comes first, with the command to run next."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay_auditor.notes import Checkpoint, Signer
from assay_operations.actor import Actor
from assay_operations.audit_reads.standing import Place, Signed, Standing, place_of_file, with_key, with_sentence
from assay_operations.audit_verification import Result
from assay_operations.audit_verified import Verified, record_verification, verified_of
from assay_schema.settings import AuditorSettings

AT = datetime(2026, 11, 28, 10, 2, tzinfo=UTC)
ROOT, OTHER = "aa" * 32, "bb" * 32
SIGNED = Signed(10, ROOT, AT, 30.0, "assay/audit+00000000", "valid")
VERIFIED = Verified(AT, "ana", True, 10, 10, 0, True)
PARTIAL = replace(VERIFIED, complete=False)
GOOD = Standing(
    log="assay/audit", leaves=10, newest_at=AT, checkpoint=SIGNED, waiting=0, waiting_s=0.0, behind=0, behind_s=0.0,
    verified=VERIFIED, verified_s=300.0, since_verified=0, places=(Place("the store", 10, ROOT), Place("file", 10, ROOT)),
)  # fmt: skip
VERIFY, FULL = "assay audit verify", "assay audit verify --full"


@pytest.mark.parametrize(
    ("changes", "state", "sentence", "command"),
    [
        ({}, "good", "The log is whole up to 2026-11-28 10:02, checked 5 min ago by ana.", ""),
        ({"leaves": 11, "waiting": 1, "since_verified": 1}, "good", "1 row was written since.", ""),
        ({"since_verified": 7}, "good", "7 rows were written since.", ""),
        ({"verified": None, "partial": PARTIAL, "partial_s": 60.0}, "warn", "Only a part of the rows was verified, 60 s ago.", VERIFY),
        ({"partial": PARTIAL, "partial_s": 60.0}, "good", "checked 5 min ago by ana. A part was checked again 60 s ago.", ""),
        ({"verified": None}, "warn", "No one has verified this log yet.", VERIFY),
        ({"waiting": 1, "waiting_s": 901.0}, "warn", "no signed checkpoint for 15 min", "assay doctor"),
        ({"behind": 3, "behind_s": 1000.0}, "warn", "Stored events have waited for the log for 17 min", "assay doctor"),
        ({"behind": 3, "behind_s": 30.0}, "good", "whole", ""),
        ({"leaves": 9}, "bad", "Rows are missing at the end: 10 were signed, and 9 are there.", FULL),
        ({"checkpoint": replace(SIGNED, signature="bad")}, "bad", "does not have a valid signature", FULL),
        ({"places": (Place("the store", 10, ROOT), Place("file", 10, OTHER))}, "bad", "Two different logs", FULL),
        ({"places": (Place("the store", 10, ROOT), Place("file", 12, OTHER))}, "bad", "more rows than the store has", FULL),
        ({"places": (Place("the store", 10, ROOT), Place("file", None, problem="not here"))}, "good", "whole", ""),
        (
            {"verified": replace(VERIFIED, intact=False, mismatches=1, first="missing_row", first_leaf=1234)},
            "bad", "A verification 5 min ago found that the log was changed (missing row at leaf 1,234).", FULL,
        ),
        (
            {"verified": replace(VERIFIED, intact=False, complete=False), "partial": PARTIAL, "partial_s": 60.0},
            "bad", "A verification 5 min ago found that the log was changed.", FULL,
        ),
        (
            {"places": (Place("the store", 10, ROOT), Place("file", None, problem="does not count", is_wrong=True))},
            "warn", "The checkpoint of file does not verify.", FULL,
        ),
        (
            {"leaves": 0, "checkpoint": None, "verified": None, "places": (Place("file", None, problem="", is_wrong=True),)},
            "warn", "The checkpoint of file does not verify.", FULL,
        ),
        (
            {"leaves": 0, "checkpoint": None, "verified": None, "places": ()},
            "off", "The log is empty: no tool call, loss or operation was recorded yet.", "",
        ),
        (
            {"leaves": 0, "checkpoint": None, "verified": None, "places": (), "behind": 3, "behind_s": 1.0},
            "warn", "the auditor is not running", "assay doctor",
        ),
    ],
)  # fmt: skip
def test_the_sentence_says_whether_the_log_can_be_trusted(
    changes: dict[str, object], state: str, sentence: str, command: str
) -> None:
    found = with_sentence(replace(GOOD, **changes), AuditorSettings())  # type: ignore[arg-type]
    assert (found.state, found.command) == (state, command)
    assert sentence in found.sentence


def test_the_limit_of_the_settings_decides_when_rows_have_waited_too_long() -> None:
    waiting = replace(GOOD, waiting=1, waiting_s=100.0)
    assert with_sentence(waiting, AuditorSettings(max_unanchored_s=99)).state == "warn"
    assert with_sentence(waiting, AuditorSettings(max_unanchored_s=101)).state == "good"


@pytest.mark.parametrize(
    "target",
    ["", "{", "[]", "null", '{"leaves": "many", "first": 7, "complete": 1}', '{"leaves": true, "first_leaf": [1]}'],
)
def test_a_record_that_was_changed_by_hand_claims_nothing(target: str) -> None:
    found = verified_of(AT, "eve", "done", target)
    assert (found.leaves, found.covered, found.complete, found.first, found.first_leaf) == (0, 0, False, "", None)


def test_the_auditors_file_is_a_place_of_checkpoints_if_it_can_be_read(tmp_path: Path) -> None:
    signer, other = (Signer("assay/audit", bytes([number]) * 32) for number in (1, 2))
    own = AuditorSettings(directory=tmp_path, vkey=signer.verifier.vkey)
    file = tmp_path / "checkpoints.txt"

    def place() -> Place:
        return place_of_file(own)

    def signed(by: Signer, origin: str = "assay/audit") -> str:
        return by.signed(Checkpoint(origin, 10, bytes.fromhex(ROOT)).text) + "\n"

    def answer() -> tuple[int | None, bool]:
        return place().size, place().is_wrong

    assert (place(), answer()) == (Place(str(file), None, problem="not on this host, or empty"), (None, False))
    file.write_text(signed(signer))
    assert place() == Place(str(file), 10, ROOT)
    file.write_text(signed(other))
    assert answer() == (None, True)
    assert "no signature of a known key" in place().problem
    file.write_text(signed(signer, "assay/other"))
    assert answer() == (None, True)
    file.write_text("\0" * 4096)
    assert answer() == (None, True)
    file.write_text("assay/au")
    assert answer() == (None, False), "the auditor is writing its first checkpoint"
    file.unlink()
    file.mkdir()
    assert answer() == (None, False)
    assert "cannot read" in place().problem


def test_the_key_of_the_settings_comes_before_that_of_the_directory(tmp_path: Path) -> None:
    assert with_key(AuditorSettings(directory=tmp_path)).vkey == ""
    (tmp_path / "signer.vkey").write_text("from the file\n")
    assert with_key(AuditorSettings(directory=tmp_path)).vkey == "from the file"
    assert with_key(AuditorSettings(directory=tmp_path, vkey="given")).vkey == "given"


def test_a_verification_that_the_store_cannot_record_names_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_STORE_URL", "http://127.0.0.1:1")
    problem = record_verification(
        tmp_path, Result("assay/audit"), Actor("ana", "host-1", "command line"), is_partial=False, first=None
    )
    assert problem.startswith("this verification is not recorded, so the console does not show it: store: no answer at")
    assert "takes no record" not in problem
