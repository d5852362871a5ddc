"""Anchors, as far as they are pure: cosignatures, consistency proofs from an edge, settings, what a directory has."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from assay_auditor.anchors.anchor import AnchorError
from assay_auditor.anchors.configured import anchors_of, witnesses_of
from assay_auditor.anchors.cosignature import WitnessKey, is_witness_key
from assay_auditor.anchors.directory import Directory, files_in, name_of
from assay_auditor.anchors.evidence import Evidence, EvidenceError, Kept
from assay_auditor.anchors.proofs import consistency_proof
from assay_auditor.anchors.timestamp import TokenError, stamped_at
from assay_auditor.anchors.witness import request_of
from assay_auditor.merkle import Tree, consistency_ranges, is_consistent, range_roots
from assay_auditor.notes import Checkpoint, NoteError, Signed, Signer, Verifier, verified_text
from assay_schema.settings import AuditorSettings, SettingsError

ORIGIN = "example.com/audit"
SIGNER = Signer(ORIGIN, b"a" * 32)
PRIVATE = Ed25519PrivateKey.from_private_bytes(b"w" * 32)
KEY = WitnessKey("witness.test/w1", PRIVATE.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def signed(size: int = 3, root: bytes = bytes(32), signer: Signer = SIGNER) -> Signed:
    checkpoint = Checkpoint(ORIGIN, size, root)
    return Signed(checkpoint, signer.signed(checkpoint.text))


def cosignature(text: str, seconds: int = 1_679_315_147) -> str:
    blob = KEY.id + seconds.to_bytes(8) + PRIVATE.sign(f"cosignature/v1\ntime {seconds}\n{text}".encode())
    return f"\N{EM DASH} {KEY.name} {base64.b64encode(blob).decode()}\n"


# --- cosignatures


def test_a_cosignature_verifies_with_its_time_and_the_note_stays_one_of_the_log() -> None:
    note = signed().note + cosignature(signed().checkpoint.text)
    at = KEY.cosigned_at(note)
    assert at is not None
    assert at.timestamp() == 1_679_315_147
    assert verified_text(note, [SIGNER.verifier]) == signed().checkpoint.text
    assert WitnessKey.parsed(KEY.vkey) == KEY
    assert is_witness_key(KEY.vkey)
    assert not is_witness_key(SIGNER.verifier.vkey)


def test_the_newest_of_several_cosignatures_counts() -> None:
    text = signed().checkpoint.text
    at = KEY.cosigned_at(signed().note + cosignature(text, 5) + cosignature(text, 9) + cosignature(text, 7))
    assert at is not None
    assert at.timestamp() == 9


def test_a_note_without_its_cosignature_has_none() -> None:
    assert KEY.cosigned_at(signed().note) is None


@pytest.mark.parametrize("change", ["text", "time", "short", "long", "late", "of the log"])
def test_a_cosignature_that_was_changed_is_refused(change: str) -> None:
    text = signed().checkpoint.text
    line = cosignature(signed(4).checkpoint.text if change == "text" else text)
    blob = bytearray(base64.b64decode(line.split()[2]))
    if change == "time":
        blob[11] ^= 1
    elif change == "short":
        del blob[-1]
    elif change == "long":
        blob.append(0)
    elif change == "late":
        blob[4:12] = b"\xff" * 8
    elif change == "of the log":  # signed without the head of a cosignature
        blob[12:] = PRIVATE.sign(text.encode())
    forged = f"\N{EM DASH} {KEY.name} {base64.b64encode(bytes(blob)).decode()}\n"
    with pytest.raises(NoteError, match="bad cosignature"):
        KEY.cosigned_at(signed().note + forged)


@pytest.mark.parametrize(
    "vkey",
    ["", "a+b", SIGNER.verifier.vkey, KEY.vkey[:-4], KEY.vkey.replace("w1", "w2"), "a b+00000000+BA=="],
)
def test_a_malformed_key_of_a_witness_is_refused(vkey: str) -> None:
    with pytest.raises(NoteError):
        WitnessKey.parsed(vkey)


def test_the_key_of_a_witness_does_not_verify_the_log() -> None:
    with pytest.raises(NoteError, match="another type"):
        Verifier.parsed(KEY.vkey)


def test_only_the_lines_of_the_witness_are_taken_from_its_answer() -> None:
    own = cosignature(signed().checkpoint.text)
    stranger = "\N{EM DASH} other AAAAAAAAAAAA\n"
    assert KEY.own_lines(f"{stranger}{own}\N{EM DASH} {KEY.name} !!\nnot a line\n\n") == own
    assert KEY.own_lines("") == KEY.own_lines("\x00\n\n") == ""


# --- proofs


@given(st.integers(1, 200), st.data())
def test_the_proof_from_an_edge_is_that_from_all_leaves(second: int, choice: st.DataObject) -> None:
    first = choice.draw(st.integers(1, second))
    leaves = [number.to_bytes(32) for number in range(second)]
    old, new = Tree(), Tree()
    old.extend(leaves[:first])
    new.extend(leaves)
    proof = consistency_proof(first, second, old.edge, iter(leaves[first:]))
    assert proof == range_roots(consistency_ranges(first, second), leaves)
    assert is_consistent(first, second, old.root(), new.root(), proof)


def test_a_proof_with_missing_leaves_is_not_made() -> None:
    leaves = [bytes(32)] * 5
    tree = Tree()
    tree.extend(leaves[:3])
    with pytest.raises(ValueError, match="missing"):
        consistency_proof(3, 8, tree.edge, iter(leaves[3:]))


def test_a_request_has_the_form_of_the_specification() -> None:
    note = signed().note
    expected = f"old 20\n{base64.b64encode(bytes(32)).decode()}\n\n{note}"
    assert request_of(20, [bytes(32)], note).decode() == expected
    assert request_of(0, [], note).decode() == f"old 0\n\n{note}"
    with pytest.raises(AnchorError):
        request_of(1, [bytes(32)] * 64, note)


# --- a directory


def test_a_checkpoint_is_a_new_file_and_the_same_one_is_written_once(tmp_path: Path) -> None:
    anchor = Directory(tmp_path)
    for size in (3, 5, 5):
        anchor.submit(signed(size), lambda _: (), 0)
    assert sorted(files_in(tmp_path)) == [(3, tmp_path / name_of(3)), (5, tmp_path / name_of(5))]
    assert (tmp_path / name_of(5)).read_text() == signed(5).note


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    Directory(tmp_path).submit(signed(3, b"x" * 32), lambda _: (), 0)
    before = (tmp_path / name_of(3)).read_bytes()
    with pytest.raises(AnchorError, match="another checkpoint of 3 leaves") as refused:
        Directory(tmp_path).submit(signed(3), lambda _: (), 0)
    assert refused.value.contradicts
    assert (tmp_path / name_of(3)).read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_whose_writing_was_interrupted_stays_and_the_checkpoint_gets_another_one(tmp_path: Path) -> None:
    for attempt, content in ((1, ""), (2, signed().note[:50])):
        (tmp_path / name_of(3, attempt)).write_text(content)
    Directory(tmp_path).submit(signed(), lambda _: (), 0)
    assert (tmp_path / name_of(3, 3)).read_text() == signed().note
    assert (tmp_path / name_of(3, 1)).read_text() == ""


def test_a_link_in_the_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / name_of(3)).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AnchorError):
        Directory(tmp_path / "kept").submit(signed(), lambda _: (), 0)
    assert not (tmp_path / "elsewhere").exists()


def test_a_shorter_log_than_that_of_the_directory_is_refused(tmp_path: Path) -> None:
    Directory(tmp_path).submit(signed(9), lambda _: (), 0)
    with pytest.raises(AnchorError, match="has a checkpoint of 9 leaves") as refused:
        Directory(tmp_path).submit(signed(3), lambda _: (), 0)
    assert refused.value.contradicts


def test_a_checkpoint_that_two_keys_signed_is_the_same(tmp_path: Path) -> None:
    Directory(tmp_path).submit(signed(signer=Signer(ORIGIN, b"b" * 32)), lambda _: (), 0)
    Directory(tmp_path).submit(signed(), lambda _: (), 0)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_directory_that_is_not_there_names_its_setting(tmp_path: Path) -> None:
    with pytest.raises(AnchorError, match=r"auditor\.anchor_directory") as refused:
        Directory(tmp_path / "none").submit(signed(), lambda _: (), 0)
    assert not refused.value.contradicts


# --- evidence


AT = datetime.fromtimestamp(1_679_315_147, UTC)


def kept(**fields: str | int | datetime) -> Kept:
    note = signed().note + cosignature(signed().checkpoint.text)
    return Kept(**{"size": 3, "anchor": KEY.name, "kind": "witness", "note": note, "token": "", "at": AT, **fields})  # type: ignore[arg-type]


def test_cosignatures_of_known_witnesses_are_counted_and_others_are_not() -> None:
    evidence = Evidence([KEY])
    assert evidence.check(kept()) == AT
    assert evidence.check(kept(anchor="stranger")) is None
    assert evidence.check(kept(kind="directory")) is None
    assert (evidence.cosignatures, evidence.names, evidence.witnessed, evidence.unchecked) == (1, {KEY.name}, 3, 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"note": signed().note},
        {"note": "no note"},
        {"size": 4},
        {"note": signed().note + cosignature("another text\n")},
        {"kind": "rumour"},
        {"at": AT + timedelta(seconds=1)},
    ],
)
def test_what_a_witness_did_not_sign_is_refused(fields: dict[str, str | int | datetime]) -> None:
    evidence = Evidence([KEY])
    with pytest.raises(EvidenceError):
        evidence.check(kept(**fields))
    assert evidence.witnessed == evidence.cosignatures == 0


@pytest.mark.parametrize(
    "response", [b"", b"\x30", b"\x30\x03\x02\x01\x00", b"<html>", bytes(5_000), b"\x30\x80" * 3_000]
)
def test_bytes_that_are_no_time_stamp_are_refused(response: bytes) -> None:
    with pytest.raises(TokenError):
        stamped_at(response, "note", ())


# --- settings


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"witnesses": "nonsense https://w.test"}, "witness 1: a verifier key"),
        ({"witnesses": SIGNER.verifier.vkey + " https://w.test"}, "not the key of a witness"),
        ({"witnesses": KEY.vkey}, "a blank, and its address"),
        ({"witnesses": f"{KEY.vkey} https://a.test https://b.test"}, "a blank, and its address"),
        ({"witnesses": f"{KEY.vkey} ftp://w.test"}, "auditor.witnesses: an address"),
        ({"witnesses": f"{KEY.vkey} https://[w"}, "auditor.witnesses: an address"),
        ({"witnesses": f"{KEY.vkey} https://a.test,{KEY.vkey} https://b.test"}, "two anchors have the same name"),
        ({"timestamp_url": "http://tsa.test"}, "auditor.timestamp_ca_file"),
        ({"timestamp_url": "tsa.test"}, "auditor.timestamp_url: an address"),
        ({"timestamp_url": "http://tsa.test", "timestamp_ca_file": "/none"}, "cannot read /none"),
        ({"timestamp_url": "http://tsa.test", "timestamp_ca_file": __file__}, "no certificate is in"),
        ({"witnesses": f"{KEY.vkey} https://w.test", "tls_ca_file": "/none"}, "auditor.tls_ca_file"),
    ],
)
def test_a_setting_that_cannot_work_is_named(settings: dict[str, str], expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        anchors_of(AuditorSettings.model_validate(settings))


def test_several_witnesses_are_separated_by_commas_or_lines(tmp_path: Path) -> None:
    other = WitnessKey("w2", KEY.public)
    text = f"\n{KEY.vkey} https://a.test/w,\n {other.vkey}  http://127.0.0.1:1\n"
    settings = AuditorSettings(witnesses=text, anchor_directory=tmp_path)
    assert witnesses_of(settings) == [(KEY, "https://a.test/w"), (other, "http://127.0.0.1:1")]
    assert [each.name for each in anchors_of(settings)] == [KEY.name, "w2", str(tmp_path)]
    assert anchors_of(AuditorSettings()) == []
