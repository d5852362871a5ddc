"""The hashes of the audit log: canonical rows, the reference's chain, RFC 6962 trees, notes, disclosures and proofs."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from clickhouse_connect.driver.binding import format_bind_value
from hypothesis import given
from hypothesis import strategies as st

from assay_auditor.app import PAUSE_S, PROBLEM_PAUSE_S, next_pause_s
from assay_auditor.bundle import bundle_of, problem_of
from assay_auditor.canonical import canonical
from assay_auditor.chain import GENESIS, chain_hash, fingerprint
from assay_auditor.disclosures import digest_of, disclosure_of, opened, salt_of
from assay_auditor.expiry import OPERATION, Absences, Expiry, expiry_of
from assay_auditor.keys import (
    CHECKPOINT_FILE,
    KEY_FILE,
    PUBLIC_FILE,
    KeyFileError,
    Lock,
    append_checkpoint,
    is_torn,
    last_notes,
    load_or_create,
    notes_in,
    notes_of,
)
from assay_auditor.merkle import (
    EMPTY_ROOT,
    Tree,
    consistency_ranges,
    inclusion_ranges,
    is_consistent,
    is_included,
    leaf_hash,
    node_hash,
    range_roots,
    root_of,
)
from assay_auditor.notes import NOTE_BYTES, Checkpoint, NoteError, Signer, Verifier, verified_text
from assay_auditor.rows import HASHED, Source, leaf_data, leaf_of, record_id, stored_row
from assay_auditor.sources import NAMED_AT_ONCE

SECRET = b"s" * 32

# --- canonical JSON

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), VALUES, max_size=6))
def test_canonical_json_is_what_pythons_json_writes_sorted_compact_and_unescaped(document: dict[str, object]) -> None:
    expected = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert canonical(document) == expected


@pytest.mark.parametrize("value", [0.5, float("nan"), [1.0], {"a": [{"b": 2.0}]}, "\ud800", 2**64, b"x"])
def test_canonical_json_refuses_what_has_no_single_text_form(value: object) -> None:
    with pytest.raises(ValueError, match="not canonical JSON"):
        canonical({"value": value})


# --- the reference's chain

ROW = {
    "id": 1,
    "occurred_at": "2026-05-17T18:00:00.000000Z",
    "source_connection_id": "src1",
    "caller_id": None,
    "tool_name": "find_relevant_tables",
    "status": "success",
    "refusal_reason": None,
    "cost_class": "small",
    "pii_categories": "",
    "ast_shape_hash": None,
    "rule_id": None,
    "fingerprint": "aa" * 32,
    "fingerprint_version": "fp-v1",
}


@pytest.mark.parametrize(
    ("pii", "cost", "reason", "expected"),
    [
        ((), "small", None, "501af286a571b5e12e8e5f8d6e0b9e376b9d4e526aa3683dc522e95c4a6d0a06"),
        (("contact",), "small", None, "3b375a2e6278675df95d182d7f6c5ff93aa45a9856b9b5d4678fc0ff4b730390"),
        (("credential",), "refused", "pii_blocked", "547c2e08a8161d419577677e188b1c90e20526d6864b4108e3d678328ffa4572"),
    ],
)
def test_the_fingerprint_is_that_of_the_reference(
    pii: tuple[str, ...], cost: str, reason: str | None, expected: str
) -> None:
    assert fingerprint(pii, cost, reason) == expected


def test_the_chain_hash_is_that_of_the_reference() -> None:
    assert chain_hash(GENESIS, ROW).hex() == "900674a72e03ca6dcfd11ea9d8b4f2f3e88f38f75dab58cfb5171ad9389400c9"


@pytest.mark.parametrize("column", ROW)
def test_the_chain_hash_depends_on_every_column(column: str) -> None:
    other = ROW | {column: {"id": 2, "fingerprint": "ab" * 32, "ast_shape_hash": "cd" * 32}.get(column, "other")}
    assert chain_hash(GENESIS, other) != chain_hash(GENESIS, ROW)


@pytest.mark.parametrize(
    ("previous", "row"),
    [
        (bytes(31), ROW),
        (GENESIS, {name: value for name, value in ROW.items() if name != "rule_id"}),
        (GENESIS, ROW | {"tool_name": None}),
        (GENESIS, ROW | {"fingerprint": "aa" * 16}),
        (GENESIS, ROW | {"fingerprint": "AA" * 32}),
        (GENESIS, ROW | {"fingerprint": 7}),
        (GENESIS, ROW | {"id": 1.0}),
    ],
)
def test_a_row_that_cannot_be_chained_is_a_value_error(previous: bytes, row: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        chain_hash(previous, row)


# --- the tree of RFC 6962

#: Certificate Transparency's own test data: leaves, and the root of the first n of them.
LEAVES = [
    bytes.fromhex(each)
    for each in (
        "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"
    )
]  # fmt: skip
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


@pytest.mark.parametrize("size", range(1, 9))
def test_roots_are_those_of_the_test_data_of_certificate_transparency(size: int) -> None:
    assert root_of(leaf_hash(each) for each in LEAVES[:size]).hex() == ROOTS[size - 1]


def test_the_root_of_no_leaves_is_the_hash_of_nothing() -> None:
    assert (
        Tree().root() == EMPTY_ROOT == bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    )


@pytest.mark.parametrize(
    ("index", "size", "proof"),
    [
        (0, 1, []),
        (0, 8, [
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ]),
        (5, 8, [
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ]),
        (2, 3, [
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        ]),
    ],
)  # fmt: skip
def test_inclusion_proofs_are_those_of_the_test_data(index: int, size: int, proof: list[str]) -> None:
    hashes = [leaf_hash(each) for each in LEAVES]
    assert [each.hex() for each in range_roots(inclusion_ranges(index, size), hashes)] == proof


@pytest.mark.parametrize(
    ("first", "second", "proof"),
    [
        (1, 1, []),
        (1, 8, [
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ]),
        (6, 8, [
            "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ]),
        (2, 5, [
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        ]),
    ],
)  # fmt: skip
def test_consistency_proofs_are_those_of_the_test_data(first: int, second: int, proof: list[str]) -> None:
    hashes = [leaf_hash(each) for each in LEAVES]
    assert [each.hex() for each in range_roots(consistency_ranges(first, second), hashes)] == proof


def recursive_root(hashes: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, word for word."""
    if not hashes:
        return EMPTY_ROOT
    if len(hashes) == 1:
        return hashes[0]
    k = 1
    while k * 2 < len(hashes):
        k *= 2
    return node_hash(recursive_root(hashes[:k]), recursive_root(hashes[k:]))


HASHES = st.lists(st.binary(max_size=8).map(leaf_hash), min_size=1, max_size=70)


@given(HASHES, st.data())
def test_a_tree_that_grows_has_the_recursive_root_and_continues_from_its_edge(
    hashes: list[bytes], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(hashes)))
    tree = Tree()
    for each in hashes[:cut]:
        tree.append(each)
    resumed = Tree(tree.size, tree.edge)
    for each in hashes[cut:]:
        resumed.append(each)
    assert resumed.root() == recursive_root(hashes)
    at_once = Tree(tree.size, tree.edge)
    at_once.extend(hashes[cut:])
    assert (at_once.size, at_once.edge) == (resumed.size, resumed.edge)


@given(HASHES, st.data())
def test_an_inclusion_proof_holds_for_its_leaf_and_for_no_other_and_no_altered_one(
    hashes: list[bytes], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(hashes) - 1))
    size, root = len(hashes), recursive_root(hashes)
    proof = range_roots(inclusion_ranges(index, size), hashes)
    assert is_included(hashes[index], index, size, proof, root)
    assert not is_included(bytes(31) + b"\x07", index, size, proof, root)
    assert not is_included(hashes[index], index, size, [*proof, bytes(32)], root)
    for place in range(len(proof)):
        assert not is_included(hashes[index], index, size, [*proof[:place], bytes(32), *proof[place + 1 :]], root)
        assert not is_included(hashes[index], index, size, proof[:place], root)


@given(HASHES, st.data())
def test_a_consistency_proof_holds_between_a_tree_and_its_continuation_only(
    hashes: list[bytes], data: st.DataObject
) -> None:
    first = data.draw(st.integers(1, len(hashes)))
    old, new = recursive_root(hashes[:first]), recursive_root(hashes)
    proof = range_roots(consistency_ranges(first, len(hashes)), hashes)
    assert is_consistent(first, len(hashes), old, new, proof)
    assert not is_consistent(first, len(hashes), bytes(32), new, proof)
    assert not is_consistent(first, len(hashes), old, bytes(32), proof)
    assert not is_consistent(first, len(hashes), old, new, [*proof, bytes(32)])


@given(st.integers(-5, 100), st.integers(-5, 100), st.lists(st.binary(max_size=33), max_size=9), st.binary(max_size=33))
def test_verifiers_never_raise(index: int, size: int, proof: list[bytes], other: bytes) -> None:
    assert is_included(other, index, size, proof, bytes(32)) is False
    assert is_consistent(index, size, other, bytes(32), proof) in (True, False)


def test_an_edge_that_does_not_fit_its_size_is_refused() -> None:
    for size, edge in ((3, [bytes(32)]), (2, [bytes(31)]), (-1, [])):
        with pytest.raises(ValueError, match="edge"):
            Tree(size, edge)


# --- notes: the example of Go's golang.org/x/mod/sumdb/note

NOTE = (
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
VKEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
SKEY = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
ORIGIN = "example.com/audit"


def test_the_note_of_gos_documentation_verifies_and_is_made_byte_for_byte() -> None:
    text = verified_text(NOTE, [Verifier.parsed(VKEY)])
    signer = Signer.parsed(SKEY)
    assert signer.verifier.vkey == VKEY
    assert signer.skey == SKEY
    assert signer.signed(text) == NOTE
    assert SKEY.rsplit("+", 1)[1] not in repr(signer)


@pytest.mark.parametrize(
    "note",
    [
        NOTE.replace("problem is", "problem was"),
        NOTE.replace("x08go/ZJ", "x08go/ZK"),
        NOTE.replace("x08go", "x08gp"),
        NOTE.replace("PeterNeumann", "PeterNeuman"),
        NOTE.rstrip("\n"),
        NOTE.replace("\n\n", "\n"),
        NOTE.replace("— ", "- "),
        NOTE + "x\n",
        NOTE.replace("you", "y\x00u"),
        "",
        "\n\n",
    ],
)
def test_an_altered_or_malformed_note_is_refused(note: str) -> None:
    with pytest.raises(NoteError):
        verified_text(note, [Verifier.parsed(VKEY)])


def test_unknown_signatures_are_ignored_and_a_bad_one_of_a_known_key_is_not() -> None:
    own, witness = Signer(ORIGIN, b"a" * 32), Signer("witness", b"b" * 32)
    text = Checkpoint(ORIGIN, 1, bytes(32)).text
    both = own.signed(text) + witness.signed(text).rpartition("\n\n")[2]
    assert verified_text(both, [own.verifier]) == text
    forged = own.signed(text) + witness.signed("x\n").rpartition("\n\n")[2]
    assert verified_text(forged, [own.verifier]) == text
    with pytest.raises(NoteError, match="bad signature"):
        verified_text(forged, [own.verifier, witness.verifier])


@pytest.mark.parametrize(
    "vkey",
    ["", "a+b", VKEY[:-4], VKEY.replace("c74f20a3", "c74f20a4"), VKEY.replace("+AR", "+BR"), "a b+00000000+AA=="],
)
def test_a_malformed_verifier_key_is_refused(vkey: str) -> None:
    with pytest.raises(NoteError):
        Verifier.parsed(vkey)


@pytest.mark.parametrize("size", ["-1", "01", "1.5", "", "٣", "9" * 5_000])
def test_a_checkpoint_with_a_malformed_size_is_refused(size: str) -> None:
    with pytest.raises(NoteError):
        Checkpoint.parsed(f"{ORIGIN}\n{size}\n{base64.b64encode(bytes(32)).decode()}\n")


def test_a_checkpoint_of_another_log_is_refused() -> None:
    signer = Signer(ORIGIN, b"a" * 32)
    note = signer.signed(Checkpoint("other", 3, bytes(32)).text)
    with pytest.raises(NoteError, match="other"):
        Checkpoint.verified(note, [signer.verifier], ORIGIN)


# --- disclosures


def test_the_digest_of_a_disclosure_is_that_of_the_example_in_rfc_9901() -> None:
    disclosure = "WyJfMjZiYzRMVC1hYzZxMktJNmNCVzVlcyIsICJmYW1pbHlfbmFtZSIsICJNw7ZiaXVzIl0"
    assert digest_of(disclosure) == "X9yH0Ajrdm1Oij4tWso9UzzKJvPoDxwmuEcO3XAdRC0"
    assert opened(disclosure) == ("family_name", "Möbius")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_a_disclosure_opens_to_what_it_was_made_of(name: str, value: str) -> None:
    assert opened(disclosure_of(salt_of(SECRET, "source", name), name, value)) == (name, value)


@pytest.mark.parametrize("text", ["", "x", "W10", "WyJhIl0", "ä", "WzEsMiwzXQ", "\ud800"])
def test_a_malformed_disclosure_opens_to_nothing(text: str) -> None:
    assert opened(text) is None
    assert digest_of(text)


def test_a_salt_depends_on_the_secret_the_source_and_the_name() -> None:
    salts = {
        salt_of(secret, source, name) for secret in (SECRET, b"t" * 32) for source in ("a", "b") for name in ("c", "d")
    }
    assert len(salts) == 8
    assert all(len(base64.urlsafe_b64decode(each + "==")) == 16 for each in salts)


# --- rows and proofs

SOURCE = Source(
    kind="tool_call",
    source_id="01890000-0000-7000-8000-000000000001",
    place=7,
    occurred_at="2026-05-17T18:00:00.000000Z",
    created_at="2026-05-17T18:00:01.000000Z",
    project="shop",
    service="search",
    tool_name="get_metric",
    status="refused",
    error_kind="pii_blocked",
    duration_us=1_500,
    pii_attempted=("health", "contact"),
    pii_blocked=("contact",),
    caller_id="jo",
    personal={"args_digest": "ab" * 32, "result_digest": None},
)


def test_a_refused_call_has_what_was_attempted_and_what_was_blocked() -> None:
    row = leaf_of(SOURCE, 0, GENESIS, SECRET).row
    assert (row["pii_attempted"], row["pii_blocked"], row["pii_categories"]) == (
        ["contact", "health"],
        ["contact"],
        "contact,health",
    )
    assert (row["refusal_reason"], row["cost_class"], row["id"]) == ("pii_blocked", "refused", 1)
    assert row["fingerprint"] == fingerprint(("contact", "health"), "refused", "pii_blocked")


def test_personal_fields_are_in_the_leaf_as_digests_only() -> None:
    leaf = leaf_of(SOURCE, 0, GENESIS, SECRET)
    assert b'"jo"' not in leaf_data(leaf.row)
    assert dict(filter(None, (opened(disclosure) for _, disclosure in leaf.disclosures))) == {
        "caller_id": "jo",
        "args_digest": "ab" * 32,
    }
    assert leaf.row["sd"] == sorted(digest_of(disclosure) for _, disclosure in leaf.disclosures)
    assert leaf.row["caller_id"] in leaf.row["sd"]


def test_the_row_in_the_table_is_the_document_that_is_hashed() -> None:
    leaf = leaf_of(SOURCE, 3, GENESIS, SECRET)
    assert leaf.data == leaf_data(leaf.row)
    assert orjson.loads(stored_row(leaf, "a log")) == {"log": "a log", "leaf_hash": leaf.hash.hex()} | leaf.row


def test_the_same_source_at_the_same_place_is_the_same_leaf() -> None:
    assert leaf_of(SOURCE, 3, GENESIS, SECRET) == leaf_of(SOURCE, 3, GENESIS, SECRET)


@pytest.mark.parametrize("column", HASHED)
def test_the_leaf_depends_on_every_column(column: str) -> None:
    row = leaf_of(SOURCE, 0, GENESIS, SECRET).row
    value = row[column]
    other = (
        not value
        if isinstance(value, bool)
        else value + 1
        if isinstance(value, int)
        else ["x"]
        if isinstance(value, list)
        else "x"
    )
    assert leaf_data(row | {column: other}) != leaf_data(row)


def test_a_field_of_256_kib_and_text_that_is_no_unicode_make_a_small_leaf() -> None:
    hostile = Source(**(SOURCE.__dict__ | {"caller_id": "\ud800" + "x" * 262_144}))
    assert len(leaf_data(leaf_of(hostile, 0, GENESIS, SECRET).row)) < 2_000


def test_the_id_of_a_record_is_a_uuid_that_depends_on_operation_and_outcome() -> None:
    ids = {record_id(operation, outcome) for operation in ("a", "b") for outcome in ("started", "done")}
    assert len(ids) == 4
    assert all(each[14] == "8" for each in ids)


def bundle() -> tuple[dict[str, object], Verifier]:
    signer = Signer(ORIGIN, b"a" * 32)
    leaves, previous = [], GENESIS
    for index in range(7):
        leaves.append(leaf_of(SOURCE, index, previous, SECRET))
        previous = leaves[-1].chain_hash
    hashes = [each.hash for each in leaves]
    note = signer.signed(Checkpoint(ORIGIN, 7, root_of(hashes)).text)
    proof = range_roots(inclusion_ranges(4, 7), hashes)
    disclosures = [disclosure for _, disclosure in leaves[4].disclosures]
    return bundle_of(leaf_data(leaves[4].row), 4, proof, note, signer.verifier.vkey, disclosures), signer.verifier


def test_a_bundle_proves_its_leaf_also_after_disclosures_were_erased() -> None:
    whole, verifier = bundle()
    assert problem_of(json.loads(json.dumps(whole)), verifier) == ""
    assert problem_of(whole | {"disclosures": []}, verifier) == ""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"leaf_index": 3}, "not in the tree"),
        ({"leaf": '{"sd":[]}'}, "not in the tree"),
        ({"leaf": "[]"}, "malformed"),
        ({"leaf": None}, "malformed"),
        ({"inclusion": []}, "not in the tree"),
        ({"inclusion": ["!"]}, "malformed"),
        ({"disclosures": [disclosure_of("salt", "caller_id", "al")]}, "not one of this leaf"),
        ({"checkpoint": "x"}, "checkpoint"),
        ({"checkpoint": None}, "not a proof"),
        ({"form": "other"}, "not a proof"),
    ],
)
def test_an_altered_bundle_proves_nothing(change: dict[str, object], problem: str) -> None:
    whole, verifier = bundle()
    assert problem in problem_of(whole | change, verifier)


def test_a_bundle_proves_nothing_under_another_key_of_the_same_name() -> None:
    whole, _ = bundle()
    assert "checkpoint" in problem_of(whole, Signer(ORIGIN, b"z" * 32).verifier)


# --- retention


def expiry(leaf_index: int, before: int) -> Expiry:
    return Expiry(leaf_index, f"hash of {leaf_index}", before, f"hash of {before - 1}", "")


@pytest.mark.parametrize(
    ("records", "signed", "expected"),
    [
        ([(8, 4)], 10, (4, [])),
        ([(8, 4)], 8, (0, [(0, 3, 4)])),  # its leaf is not signed
        ([(8, 2), (9, 4)], 10, (4, [])),  # the wider one explains what the narrower one does
        ([(8, 2), (9, 4)], 9, (2, [(2, 3, 2)])),
        ([(9, 5), (8, 5)], 9, (4, [])),
    ],
)
def test_absent_rows_have_expired_if_a_signed_record_names_them(
    records: list[tuple[int, int]], signed: int, expected: tuple[int, list[tuple[int, int, int]]]
) -> None:
    absences = Absences([expiry(*each) for each in records])
    for index in range(10):
        if index < 4:
            assert absences.add(index)
        absences.confirm(index, f"hash of {index}")
    assert not absences.add(6)
    assert absences.result(signed) == expected


def test_a_record_whose_own_leaf_or_whose_last_leaf_is_another_explains_nothing() -> None:
    for wrong in (3, 8):
        absences = Absences([expiry(8, 4)])
        absences.add(0)
        for index in range(10):
            absences.confirm(index, "another" if index == wrong else f"hash of {index}")
        assert absences.result(10) == (0, [(0, 0, 1)])


def record_of(target: object, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    source = Source(
        **{
            "kind": "operation", "source_id": "0" * 8, "place": 1, "occurred_at": "2026-05-17T18:00:00.000000Z",
            "created_at": "2026-05-17T18:00:00.000000Z", "project": "", "service": "assay", "tool_name": OPERATION,
            "status": "started", "caller_id": "ana", "personal": {"target": orjson.dumps(target).decode()}, **fields,
        }
    )  # fmt: skip
    leaf = leaf_of(source, 7, GENESIS, b"s" * 32)
    return leaf.row, [text for _, text in leaf.disclosures]


def test_a_record_names_its_range_who_made_it_and_when() -> None:
    row, texts = record_of({"log": "l", "before": 7, "last_hash": "ab" * 32})
    found = expiry_of("l", row, texts)
    assert found == Expiry(7, leaf_hash(leaf_data(row)).hex(), 7, "ab" * 32, "2026-05-17T18:00:00.000000Z", "ana")
    nameless = expiry_of("l", row, [text for text in texts if (opened(text) or ("",))[0] == "target"])
    assert nameless is not None
    assert nameless.actor == ""


@pytest.mark.parametrize(
    "target",
    [
        {"log": "another", "before": 7, "last_hash": "ab" * 32},
        {"log": "l", "before": 8, "last_hash": "ab" * 32},  # itself
        {"log": "l", "before": 0, "last_hash": "ab" * 32},
        {"log": "l", "before": True, "last_hash": "ab" * 32},
        {"log": "l", "before": "7", "last_hash": "ab" * 32},
        {"log": "l", "before": 7, "last_hash": "nonsense"},
        {"log": "l", "before": 7, "last_hash": 5},
        {"log": "l", "before": 7},
        [],
        "text",
    ],
)
def test_a_record_with_a_malformed_or_foreign_range_explains_nothing(target: object) -> None:
    assert expiry_of("l", *record_of(target)) is None


def test_a_record_of_another_operation_or_with_another_disclosure_explains_nothing() -> None:
    target = {"log": "l", "before": 7, "last_hash": "ab" * 32}
    row, _ = record_of(target)
    forged = disclosure_of("AAAAAAAAAAAAAAAAAAAAAA", "target", orjson.dumps(target).decode())
    assert expiry_of("l", row, [forged]) is None
    assert expiry_of("l", row, []) is None
    for fields in ({"tool_name": "prune"}, {"status": "done"}, {"kind": "tool_call"}):
        assert expiry_of("l", *record_of(target, **fields)) is None


def test_the_identifiers_of_one_query_fit_into_a_parameter_of_the_server() -> None:
    named = [SOURCE.source_id] * NAMED_AT_ONCE
    assert len(format_bind_value(named)) < 128 * 1024


def test_pauses_grow_to_a_minute_while_a_problem_lasts_and_are_short_again_after_it() -> None:
    pauses = [PAUSE_S]
    for _ in range(10):
        pauses.append(next_pause_s(pauses[-1], "the store is away"))
    assert pauses[1] == 2 * PAUSE_S
    assert pauses == sorted(pauses)
    assert pauses[-1] == PROBLEM_PAUSE_S
    assert next_pause_s(pauses[-1], "") == PAUSE_S


# --- files


def test_keys_are_made_once_and_are_private(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    signer, salts = load_or_create(directory, ORIGIN)
    again, salts_again = load_or_create(directory, ORIGIN)
    assert (signer.skey, salts) == (again.skey, salts_again)
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert Verifier.parsed((directory / PUBLIC_FILE).read_text()) == signer.verifier
    assert len(list(directory.iterdir())) == 3


def test_a_key_that_others_can_read_that_is_damaged_or_of_another_log_is_refused(tmp_path: Path) -> None:
    load_or_create(tmp_path, ORIGIN)
    with pytest.raises(KeyFileError, match=r"auditor\.origin"):
        load_or_create(tmp_path, "other")
    (tmp_path / KEY_FILE).chmod(0o644)
    with pytest.raises(KeyFileError, match="chmod 600"):
        load_or_create(tmp_path, ORIGIN)
    (tmp_path / KEY_FILE).chmod(0o600)
    (tmp_path / KEY_FILE).write_text("PRIVATE+KEY+secret-in-here")
    with pytest.raises(KeyFileError) as refused:
        load_or_create(tmp_path, ORIGIN)
    assert "secret-in-here" not in str(refused.value)


def test_one_holder_of_the_lock_at_a_time(tmp_path: Path) -> None:
    first, second = Lock(tmp_path), Lock(tmp_path)
    assert first.held()
    assert first.held()
    assert not second.held()
    first.release()
    assert second.held()
    second.release()


def test_a_file_of_checkpoints_has_its_notes_and_loses_only_a_torn_one(tmp_path: Path) -> None:
    signer = Signer(ORIGIN, b"a" * 32)
    notes = [signer.signed(Checkpoint(ORIGIN, size, bytes(32)).text) for size in (1, 2, 3)]
    path = tmp_path / CHECKPOINT_FILE
    append_checkpoint(tmp_path, notes[0])
    append_checkpoint(tmp_path, notes[1])
    assert notes_of(path.read_text()) == notes[:2]
    assert path.stat().st_mode & 0o777 == 0o600
    whole = path.read_bytes()
    torn = notes[2].encode() + b"\n"
    for length in range(len(torn)):
        path.write_bytes(whole + torn[:length])
        append_checkpoint(tmp_path, notes[2])
        assert notes_of(path.read_text()) == notes, length


def test_a_file_of_checkpoints_is_read_note_by_note_and_a_hostile_one_in_small_pieces(tmp_path: Path) -> None:
    signer = Signer(ORIGIN, b"a" * 32)
    notes = [signer.signed(Checkpoint(ORIGIN, size, bytes(32)).text) for size in range(1, 1_000)]
    path = tmp_path / CHECKPOINT_FILE
    for content in ("\n".join([*notes, ""]), "\n".join(notes)[:-30], "", "\n\n", "no note", "\n\nx\n\ny\n"):
        path.write_text(content)
        assert list(notes_in(path)) == notes_of(content)
    reading = notes_in(path := tmp_path / "grows")
    path.write_text(notes[0] + "\n")
    assert next(reading) == notes[0]
    with path.open("a") as file:
        file.write(notes[1] + "\n")
    assert list(reading) == []  # what is appended later is not read
    for line in (b"x" * 5_000_000, b"x\n" * 2_500_000):
        path.write_bytes(line)
        assert all(len(each) < 3 * NOTE_BYTES for each in notes_in(path))


@pytest.mark.parametrize("count", [1, 2, 1_000])
def test_the_end_of_a_file_of_checkpoints_has_its_last_notes_however_long_it_is(tmp_path: Path, count: int) -> None:
    signer = Signer(ORIGIN, b"a" * 32)
    assert last_notes(tmp_path) == []
    notes = [signer.signed(Checkpoint(ORIGIN, size, bytes(32)).text) for size in range(count)]
    content = "\n".join(notes) + "\n"
    path = tmp_path / CHECKPOINT_FILE
    path.write_text(content)
    assert last_notes(tmp_path)[-1] == notes[-1]
    assert len(last_notes(tmp_path)) <= 500
    for torn in (notes[0][:40], notes[0], "x" * 100_000):
        path.write_text(content + torn)
        assert last_notes(tmp_path)[-1] == notes[-1]
    path.write_text("x" * 100_000)
    assert last_notes(tmp_path) == []


def test_a_checkpoint_for_which_the_disk_has_no_room_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    signer = Signer(ORIGIN, b"a" * 32)
    notes = [signer.signed(Checkpoint(ORIGIN, size, bytes(32)).text) for size in (1, 2)]
    append_checkpoint(tmp_path, notes[0])
    content = (tmp_path / CHECKPOINT_FILE).read_bytes()
    # A limit of the size of files is what a full disk is: the kernel writes a part.
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from assay_auditor.keys import append_checkpoint\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(content) + 30}, {len(content) + 30}))\n"
        "append_checkpoint(Path(sys.argv[1]), sys.argv[2])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path), notes[1]], capture_output=True, check=False)
    assert b"No space left on device" in done.stderr
    assert (tmp_path / CHECKPOINT_FILE).read_bytes() == content


def test_the_last_note_of_a_file_is_torn_if_it_is_the_start_of_one_of_its_log() -> None:
    signer = Signer(ORIGIN, b"a" * 32)
    note = signer.signed(Checkpoint(ORIGIN, 1, bytes(32)).text).encode() + b"\n"
    for whole in (b"", note):
        assert not is_torn(whole, ORIGIN)
        assert not is_torn(whole + note, ORIGIN)
        assert all(is_torn(whole + note[:length], ORIGIN) for length in range(1, len(note)))
        assert not is_torn(whole + b"other text", ORIGIN)


def test_a_file_of_checkpoints_that_was_torn_at_its_first_note_starts_again(tmp_path: Path) -> None:
    note = Signer(ORIGIN, b"a" * 32).signed(Checkpoint(ORIGIN, 1, bytes(32)).text)
    (tmp_path / CHECKPOINT_FILE).write_text(note[:30])
    append_checkpoint(tmp_path, note)
    assert notes_of((tmp_path / CHECKPOINT_FILE).read_text()) == [note]
