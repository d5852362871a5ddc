"""Consistency proofs of the log in the store, without reading it from the start.

The subtrees of a proof that end within the older log are in the edge of its checkpoint, which is stored. Only the leaves behind it are
read.
"""

from collections.abc import Iterator, Sequence

from assay_auditor.anchors.anchor import AnchorError
from assay_auditor.merkle import Tree, consistency_ranges, is_consistent, range_roots
from assay_auditor.notes import Checkpoint
from assay_runtime.store import Client

#: Leaves that one query reads.
PAGE = 100_000


def consistency_proof(first: int, second: int, edge: Sequence[bytes], behind: Iterator[bytes]) -> list[bytes]:
    """Return the proof from a tree with this edge to a larger one. Pure.

    `behind`: the hashes of the leaves from `first` on. Raises `ValueError` if leaves are missing.
    """
    ranges = consistency_ranges(first, second)
    known: dict[tuple[int, int], bytes] = {}
    start = 0
    for node in edge:
        end = start + (1 << (first - start).bit_length() - 1)
        known[start, end] = node
        start = end
    later = [(start - first, end - first) for start, end in ranges if (start, end) not in known]
    computed = iter(range_roots(later, behind))
    return [known[each] if each in known else next(computed) for each in ranges]


def stored_proof(client: Client, log: str, first: int, signed: Checkpoint) -> list[bytes]:
    """Return the proof that a signed checkpoint continues the first leaves.

    Raises `AnchorError`, or the driver's errors.
    """
    try:
        tree = _tree(client, log, first)
        proof = consistency_proof(first, signed.size, tree.edge, _leaves(client, log, first, signed.size))
    except ValueError:
        raise AnchorError("leaves in the store are missing or malformed: run assay audit verify --full") from None
    if not is_consistent(first, signed.size, tree.root(), signed.root, proof):
        raise AnchorError(
            "the leaves in the store are others than those that were signed: run assay audit verify --full"
        )
    return proof


def _tree(client: Client, log: str, size: int) -> Tree:
    """Return the tree of the first leaves: from a stored checkpoint of this size, otherwise from the leaves."""
    rows = client.query(
        "SELECT edge FROM audit_checkpoints WHERE log = {log:String} AND size = {size:UInt64} ORDER BY note LIMIT 1",
        parameters={"log": log, "size": size},
    ).result_rows
    if rows:
        return Tree(size, [bytes.fromhex(each) for each in rows[0][0]])
    tree = Tree()
    tree.extend(_leaves(client, log, 0, size))
    return Tree(size, tree.edge)


def _leaves(client: Client, log: str, start: int, end: int) -> Iterator[bytes]:
    """Return the leaf hashes of a range. Raises `ValueError` if one is missing or double."""
    for first in range(start, end, PAGE):
        last = min(end, first + PAGE)
        rows = client.query(
            "SELECT DISTINCT leaf_index, leaf_hash FROM audit_leaves "
            "WHERE log = {log:String} AND leaf_index >= {start:UInt64} AND leaf_index < {end:UInt64} ORDER BY leaf_index",
            parameters={"log": log, "start": first, "end": last},
        ).result_rows
        if [row[0] for row in rows] != list(range(first, last)):
            raise ValueError("leaves are missing or double")
        yield from (bytes.fromhex(row[1]) for row in rows)
