"""Roots and proofs agree with pymerkle, an implementation that is not ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymerkle import InmemoryTree, verify_consistency, verify_inclusion
from pymerkle.proof import MerkleProof

from assay_auditor.merkle import (
    consistency_ranges,
    inclusion_ranges,
    is_consistent,
    is_included,
    leaf_hash,
    range_roots,
    root_of,
)

DATA = st.lists(st.binary(max_size=12), min_size=1, max_size=40)


def their_tree(data: list[bytes]) -> InmemoryTree:
    tree = InmemoryTree(algorithm="sha256")
    for each in data:
        tree.append_entry(each)
    return tree


@given(DATA)
def test_roots_are_equal(data: list[bytes]) -> None:
    assert root_of(map(leaf_hash, data)) == their_tree(data).get_root()


@given(DATA, st.data())
def test_their_inclusion_proof_is_ours_behind_the_leaf_and_verifies_with_both(
    data: list[bytes], choice: st.DataObject
) -> None:
    index = choice.draw(st.integers(0, len(data) - 1))
    hashes = [leaf_hash(each) for each in data]
    theirs = their_tree(data).prove_inclusion(index + 1)
    ours = range_roots(inclusion_ranges(index, len(data)), hashes)
    assert theirs.path == [hashes[index], *ours]
    verify_inclusion(hashes[index], root_of(hashes), theirs)
    assert is_included(hashes[index], index, len(data), theirs.path[1:], root_of(hashes))


@given(DATA, st.data())
def test_their_consistency_verifier_accepts_the_roots_that_ours_accepts(
    data: list[bytes], choice: st.DataObject
) -> None:
    first = choice.draw(st.integers(1, len(data)))
    hashes = [leaf_hash(each) for each in data]
    old, new = root_of(hashes[:first]), root_of(hashes)
    theirs: MerkleProof = their_tree(data).prove_consistency(first, len(data))
    verify_consistency(old, new, theirs)
    assert is_consistent(first, len(data), old, new, range_roots(consistency_ranges(first, len(data)), hashes))


def test_the_proof_of_another_leaf_is_refused_by_both() -> None:
    data = [b"a", b"b", b"c"]
    hashes = [leaf_hash(each) for each in data]
    theirs = their_tree(data).prove_inclusion(1)
    with pytest.raises(Exception, match="match"):
        verify_inclusion(hashes[1], root_of(hashes), theirs)
    assert not is_included(hashes[1], 0, 3, range_roots(inclusion_ranges(0, 3), hashes), root_of(hashes))
