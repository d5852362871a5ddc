"""The Merkle tree of RFC 6962 and RFC 9162: hashes, an incremental root, proofs. Pure.

A proof is a list of roots of ranges of leaves. `inclusion_ranges` and `consistency_ranges` name the ranges, and `range_roots` computes
their roots in one pass over the leaf hashes, in memory that grows with the logarithm of their number.
"""

import hashlib
from collections.abc import Iterable, Sequence

#: A range of leaves: from the first up to, but without, the second.
Range = tuple[int, int]

EMPTY_ROOT = hashlib.sha256(b"").digest()
HASH_BYTES = 32


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf: SHA-256 of a zero byte and its data."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node: SHA-256 of a one byte and both children."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """A tree that grows. It keeps its right edge only.

    The edge has the roots of the complete subtrees, from the largest to the smallest.
    """

    def __init__(self, size: int = 0, edge: Sequence[bytes] = ()) -> None:
        """Start with a known edge. Raises `ValueError` if it does not fit the size."""
        if size < 0 or len(edge) != size.bit_count() or any(len(each) != HASH_BYTES for each in edge):
            raise ValueError(f"a tree of {size} leaves has an edge of {max(0, size).bit_count()} hashes of 32 bytes")
        self.size = size
        self._edge = list(edge)

    @property
    def edge(self) -> tuple[bytes, ...]:
        """The roots of the complete subtrees, from left to right."""
        return tuple(self._edge)

    def append(self, leaf: bytes) -> None:
        """Add the hash of a leaf."""
        number = self.size
        while number & 1:
            leaf = node_hash(self._edge.pop(), leaf)
            number >>= 1
        self._edge.append(leaf)
        self.size += 1

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add the hashes of leaves."""
        edge, size, sha256 = self._edge, self.size, hashlib.sha256
        for leaf in leaves:
            node, number = leaf, size
            while number & 1:
                node = sha256(b"\x01" + edge.pop() + node).digest()
                number >>= 1
            edge.append(node)
            size += 1
        self.size = size

    def root(self) -> bytes:
        """Return the root of all leaves so far."""
        if not self._edge:
            return EMPTY_ROOT
        root = self._edge[-1]
        for left in reversed(self._edge[:-1]):
            root = node_hash(left, root)
        return root


def root_of(leaves: Iterable[bytes]) -> bytes:
    """Return the root of leaf hashes."""
    tree = Tree()
    tree.extend(leaves)
    return tree.root()


def _split(size: int) -> int:
    """Return the largest power of two below a size of at least 2."""
    return 1 << (size - 1).bit_length() - 1


def inclusion_ranges(index: int, size: int) -> list[Range]:
    """Return the ranges whose roots are the inclusion proof of a leaf. Raises `ValueError`."""
    if not 0 <= index < size:
        raise ValueError(f"no leaf {index} in a tree of {size}")
    found: list[Range] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            found.append((middle, end))
            end = middle
        else:
            found.append((start, middle))
            start = middle
    return found[::-1]


def consistency_ranges(first: int, second: int) -> list[Range]:
    """Return the ranges whose roots are the consistency proof of two sizes. Raises `ValueError`."""
    if not 0 < first <= second:
        raise ValueError(f"no consistency proof from {first} to {second}")
    found: list[Range] = []
    start, end, whole = 0, second, True
    while first != end:
        middle = start + _split(end - start)
        if first <= middle:
            found.append((middle, end))
            end = middle
        else:
            found.append((start, middle))
            start, whole = middle, False
    return [*([] if whole else [(start, end)]), *found[::-1]]


def range_roots(ranges: Sequence[Range], leaves: Iterable[bytes]) -> list[bytes]:
    """Return the roots of ranges that do not overlap, in one pass over all leaf hashes.

    Raises `ValueError` if leaves are missing.
    """
    order = sorted(range(len(ranges)), key=lambda each: ranges[each])
    roots: list[bytes] = [b""] * len(ranges)
    place, tree = 0, Tree()
    for index, leaf in enumerate(leaves):
        if place == len(order):
            break
        start, end = ranges[order[place]]
        if index < start:
            continue
        tree.append(leaf)
        if index + 1 == end:
            roots[order[place]], tree, place = tree.root(), Tree(), place + 1
    if place < len(order):
        raise ValueError("leaves of the proof are missing")
    return roots


def is_included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Verify an inclusion proof (RFC 9162, section 2.1.3.2). False for anything malformed; never raises."""
    if not 0 <= index < size or any(len(each) != HASH_BYTES for each in (leaf, root, *proof)):
        return False
    place, last, result = index, size - 1, leaf
    for each in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            result = node_hash(each, result)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            result = node_hash(result, each)
        place, last = place >> 1, last >> 1
    return last == 0 and result == root


def is_consistent(first: int, second: int, first_root: bytes, second_root: bytes, proof: Sequence[bytes]) -> bool:
    """Verify a consistency proof (RFC 9162, section 2.1.4.2). False for anything malformed; never raises."""
    if not 0 <= first <= second or any(len(each) != HASH_BYTES for each in (first_root, second_root, *proof)):
        return False
    if first == second:
        return not proof and first_root == second_root
    if first == 0:
        return not proof and first_root == EMPTY_ROOT
    path = list(proof) if first & (first - 1) else [first_root, *proof]
    if not path:
        return False
    place, last = first - 1, second - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = path[0]
    for each in path[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, new = node_hash(each, old), node_hash(each, new)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            new = node_hash(new, each)
        place, last = place >> 1, last >> 1
    return last == 0 and old == first_root and new == second_root
