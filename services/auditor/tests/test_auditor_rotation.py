"""Rotation of the signer's key: what both keys state, and which checkpoints count for a reader of either."""

from collections.abc import Sequence

import orjson
import pytest

from assay_auditor.bundle import bundle_of, problem_of
from assay_auditor.merkle import inclusion_ranges, range_roots, root_of
from assay_auditor.notes import Checkpoint, NoteError, Signer, Verifier
from assay_auditor.rotation import KeyChain, Record, Rotation, record_of, signed_by_both, target_of
from assay_auditor.rows import Leaf, Source, leaf_data, leaf_of

ORIGIN = "example.com/audit"
FIRST, SECOND, THIRD, STRANGER = (Signer(ORIGIN, letter * 32) for letter in (b"a", b"b", b"c", b"z"))


def checkpoint(size: int) -> Checkpoint:
    return Checkpoint(ORIGIN, size, bytes(32))


def note(size: int, *signers: Signer) -> str:
    text = checkpoint(size).text
    return signers[0].signed(text) + "".join(each.signed(text).rpartition("\n\n")[2] for each in signers[1:])


def statement(size: int, old: Signer, new: Signer, signers: Sequence[Signer] = ()) -> str:
    text = Rotation(checkpoint(size), old.verifier, new.verifier).text
    return signed_by_both(text, *(signers or (old, new)))  # type: ignore[arg-type]


ROTATIONS = [statement(10, FIRST, SECOND), statement(20, SECOND, THIRD)]


@pytest.mark.parametrize("given", [FIRST, SECOND, THIRD])
@pytest.mark.parametrize("rotations", [ROTATIONS, ROTATIONS[::-1]])
def test_a_reader_of_any_key_of_the_chain_verifies_the_whole_log(given: Signer, rotations: list[str]) -> None:
    keys = KeyChain([given.verifier], rotations)
    for size, signers in (
        (1, [FIRST]),
        (10, [FIRST, SECOND]),
        (10, [FIRST]),
        (15, [SECOND]),
        (20, [THIRD]),
        (99, [THIRD]),
    ):
        assert keys.verified(note(size, *signers), ORIGIN).size == size
    assert keys.problems == []
    assert keys.signer_of(note(99, THIRD)) == THIRD.verifier


@pytest.mark.parametrize(("size", "signer"), [(11, FIRST), (9, SECOND), (21, SECOND), (19, THIRD), (5, STRANGER)])
def test_a_key_counts_neither_after_it_was_replaced_nor_before_its_time(size: int, signer: Signer) -> None:
    with pytest.raises(NoteError):
        KeyChain([FIRST.verifier], ROTATIONS).verified(note(size, signer), ORIGIN)


@pytest.mark.parametrize(
    "forged",
    [
        statement(10, FIRST, STRANGER, [STRANGER, STRANGER]),
        statement(10, FIRST, STRANGER, [STRANGER, SECOND]),
        ROTATIONS[0].replace("\n10\n", "\n11\n"),
        ROTATIONS[0].replace(SECOND.verifier.vkey, STRANGER.verifier.vkey),
        FIRST.signed(Rotation(checkpoint(10), FIRST.verifier, STRANGER.verifier).text),
        statement(10, FIRST, FIRST),
        statement(10, FIRST, Signer("other", b"o" * 32)),
        statement(10, STRANGER, THIRD),
        note(10, FIRST, STRANGER),
        "",
        "assay/key-rotation\n\n\N{EM DASH} a AAAAAAAA\n",
    ],
)
def test_a_statement_that_both_keys_did_not_sign_connects_nothing(forged: str) -> None:
    keys = KeyChain([FIRST.verifier], [forged])
    assert keys.verifiers == [FIRST.verifier]
    with pytest.raises(NoteError):
        keys.verified(note(30, STRANGER), ORIGIN)
    assert keys.verified(note(30, FIRST), ORIGIN).size == 30


def test_a_statement_is_no_checkpoint() -> None:
    with pytest.raises(NoteError):
        Checkpoint.verified(ROTATIONS[0], [FIRST.verifier], ORIGIN)


def test_a_rotation_that_was_interrupted_and_repeated_at_a_larger_size_is_one() -> None:
    keys = KeyChain([FIRST.verifier], [statement(10, FIRST, SECOND), statement(12, FIRST, SECOND)])
    for size, signer in ((12, FIRST), (10, SECOND), (13, SECOND)):
        assert keys.verified(note(size, signer), ORIGIN).size == size
    assert keys.problems == []
    with pytest.raises(NoteError):
        keys.verified(note(13, FIRST), ORIGIN)


def test_a_key_that_two_others_replaced_is_a_problem() -> None:
    keys = KeyChain([FIRST.verifier], [ROTATIONS[0], statement(5, FIRST, STRANGER)])
    assert "was replaced by 2 different keys" in keys.problems[0]


def test_without_rotations_every_given_key_counts() -> None:
    keys = KeyChain([FIRST.verifier, Verifier.parsed(SECOND.verifier.vkey)])
    assert keys.verified(note(3, SECOND), ORIGIN).size == 3


@pytest.mark.parametrize(
    ("index", "old", "new", "explains"),
    [(9, FIRST, SECOND, True), (10, FIRST, SECOND, False), (9, SECOND, FIRST, False), (9, FIRST, STRANGER, False)],
)
def test_a_new_key_needs_a_record_below_its_checkpoint_that_names_both_keys(
    index: int, old: Signer, new: Signer, explains: bool
) -> None:
    keys = KeyChain([FIRST.verifier], [statement(12, FIRST, SECOND), statement(10, FIRST, SECOND)])
    record = Record(index, "", target_of(old.verifier, new.verifier))
    assert (keys.unrecorded([record]) == []) is explains
    assert "at 10 leaves" in keys.unrecorded([])[0]


def operation(target: str, **fields: str) -> Source:
    time = "2026-05-17T18:00:00.000000Z"
    facts = {"kind": "operation", "source_id": "a", "tool_name": "audit rotate-key", "status": "started", **fields}
    return Source(
        **facts, place=1, occurred_at=time, created_at=time, project="", service="assay", personal={"target": target}
    )


def test_a_record_has_the_keys_that_its_digests_confirm_and_the_hash_of_its_leaf() -> None:
    target = target_of(FIRST.verifier, SECOND.verifier)
    leaf = leaf_of(operation(orjson.dumps(target).decode()), 7, bytes(32), b"s" * 32)
    texts = [text for _, text in leaf.disclosures]
    assert record_of(leaf.row, texts) == Record(7, leaf.hash.hex(), target)
    assert record_of(leaf.row, []) is None
    other = leaf_of(operation("{}"), 7, bytes(32), b"s" * 32)
    assert record_of(leaf.row, [text for _, text in other.disclosures]) is None


@pytest.mark.parametrize("changed", [{"kind": "tool_call"}, {"tool_name": "prune"}, {"status": "done"}])
def test_a_row_of_another_operation_or_outcome_is_no_record(changed: dict[str, str]) -> None:
    leaf = leaf_of(operation("{}", **changed), 7, bytes(32), b"s" * 32)
    assert record_of(leaf.row, [text for _, text in leaf.disclosures]) is None
    malformed = leaf_of(operation("{"), 7, bytes(32), b"s" * 32)
    assert record_of(malformed.row, [text for _, text in malformed.disclosures]) is None


def bundle(signer: Signer, rotations: Sequence[str] = ()) -> dict[str, object]:
    """Return the proof of the only row of a log of one leaf, and of others of the same log at these sizes."""
    source = Source(
        kind="tool_call", source_id="0" * 8, place=1, occurred_at="2026-05-17T18:00:00.000000Z", tool_name="t", status="success",
        created_at="2026-05-17T18:00:00.000000Z", project="p", service="s",
    )  # fmt: skip
    leaves: list[Leaf] = []
    for index in range(12):
        leaves.append(leaf_of(source, index, leaves[-1].chain_hash if leaves else bytes(32), b"s" * 32))
    hashes = [each.hash for each in leaves]
    size = 10 if signer is FIRST else 12
    path = range_roots(inclusion_ranges(3, size), hashes)
    signed = signer.signed(Checkpoint(ORIGIN, size, root_of(hashes[:size])).text)
    return bundle_of(leaf_data(leaves[3].row), 3, path, signed, signer.verifier.vkey, (), rotations)


def test_a_proof_of_before_a_rotation_holds_with_the_new_key_and_the_statement() -> None:
    early = bundle(FIRST)
    assert problem_of(early, FIRST.verifier) == ""
    assert problem_of(early, SECOND.verifier, ROTATIONS[:1]) == ""
    assert problem_of(early, THIRD.verifier, ROTATIONS) == ""
    problem = problem_of(early, SECOND.verifier)
    assert f"signed by {ORIGIN}+{FIRST.verifier.id.hex()}" in problem
    assert "--vkey" in problem
    assert "--rotations" in problem
    assert "--rotations" in problem_of(early, THIRD.verifier, ROTATIONS[:1])


def test_a_proof_of_after_a_rotation_holds_with_the_old_key_and_the_statement_from_either_side() -> None:
    assert problem_of(bundle(SECOND, ROTATIONS[:1]), FIRST.verifier) == ""
    assert problem_of(bundle(SECOND), FIRST.verifier, ROTATIONS[:1]) == ""
    assert "--rotations" in problem_of(bundle(SECOND), FIRST.verifier)


def test_a_proof_with_a_forged_statement_or_one_that_contradicts_another_is_refused() -> None:
    stolen = statement(12, FIRST, STRANGER)
    for forged in (statement(10, FIRST, STRANGER, [STRANGER, STRANGER]), ROTATIONS[0].replace("\n10\n", "\n11\n"), ""):
        assert problem_of(bundle(FIRST, [forged]), FIRST.verifier).startswith("key rotation: ")
        assert problem_of(bundle(FIRST), FIRST.verifier, [forged]).startswith("key rotation: ")
    # Who stole the old key connects another one with the new key that the reader trusts.
    for given, known in (([ROTATIONS[0], stolen], []), ([stolen], ROTATIONS[:1])):
        problem = problem_of(bundle(STRANGER, given), SECOND.verifier, known)
        assert "was replaced by 2 different keys" in problem
    assert problem_of(bundle(STRANGER, [stolen]), SECOND.verifier)
    assert "more than" in problem_of(bundle(FIRST, [ROTATIONS[0]] * 1_001), FIRST.verifier)


def test_a_proof_by_the_old_key_of_a_size_after_its_rotation_is_refused() -> None:
    late = bundle(SECOND) | {"checkpoint": FIRST.signed(str(bundle(SECOND)["checkpoint"]).partition("\n\n")[0] + "\n")}
    assert problem_of(late, FIRST.verifier) == ""
    assert "was replaced before" in problem_of(late, FIRST.verifier, ROTATIONS[:1])
    assert "was replaced before" in problem_of(late, SECOND.verifier, ROTATIONS[:1])
