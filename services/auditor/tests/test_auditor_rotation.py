"""Rotation of the signer's key: what both keys state, and which checkpoints count for a reader of either."""

from collections.abc import Sequence

import pytest

from assay_auditor.notes import Checkpoint, NoteError, Signer, Verifier
from assay_auditor.rotation import KeyChain, Rotation, signed_by_both

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
