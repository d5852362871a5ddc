"""Verify a log page by page: rows, leaf hashes, chain, disclosures, signed checkpoints. Pure.

The memory does not grow with the log. A malformed row or checkpoint is a mismatch, never an error.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay_auditor.chain import GENESIS, chain_hash, is_hash
from assay_auditor.disclosures import digest_of, opened
from assay_auditor.expiry import Absences, Expiry
from assay_auditor.merkle import HASH_BYTES, Tree, leaf_hash
from assay_auditor.notes import Checkpoint, NoteError, Verifier
from assay_auditor.rows import leaf_data


@dataclass(frozen=True)
class Mismatch:
    """Something that is not as it was written. `leaf_index` is None if no single leaf is wrong."""

    kind: str
    leaf_index: int | None
    what: str
    source_id: str = ""
    expected: str = ""
    actual: str = ""


@dataclass(frozen=True)
class StoredLeaf:
    """A leaf hash in the store."""

    leaf_index: int
    leaf_hash: str
    chain_hash: str
    kind: str
    source_id: str
    place: int


@dataclass(frozen=True)
class Note:
    """A signed checkpoint and where it is; its other columns, if it is in the store."""

    where: str
    note: str
    size: int | None = None
    root: str | None = None


class Verification:
    """Verifies leaves from the first to the last. `verifiers`: the keys that are trusted. `expiries`: records of absent rows."""

    def __init__(
        self,
        origin: str,
        verifiers: Sequence[Verifier],
        notes: Sequence[Note],
        size: int,
        expiries: Sequence[Expiry] = (),
    ) -> None:
        self.tree = Tree()
        #: Absent rows that a signed record explains, known after the last page.
        self.expired = 0
        self._absences = Absences(expiries)
        #: Size of the largest checkpoint that a trusted key signed and that the leaves confirm.
        self.confirmed = 0
        self._origin, self._verifiers, self._size = origin, verifiers, size
        self._roots: dict[int, dict[bytes, str]] = defaultdict(dict)
        self._bad = list(self._sort(notes))
        self._previous: bytes | None = GENESIS

    def _sort(self, notes: Sequence[Note]) -> Iterator[Mismatch]:
        for each in notes:
            try:
                found = Checkpoint.verified(each.note, self._verifiers, self._origin)
            except NoteError as error:
                yield Mismatch("checkpoint", None, f"{each.where}: {error}")
                continue
            if (each.size, each.root) not in ((None, None), (found.size, found.root.hex())):
                yield Mismatch("checkpoint", None, f"{each.where}: size or root differ from its note")
            self._roots[found.size].setdefault(found.root, each.where)
        for size, roots in self._roots.items():
            if len(roots) > 1:
                places = " and ".join(sorted(set(roots.values())))
                yield Mismatch("fork", None, f"{places}: two signed roots of {size} leaves")

    def before(self) -> Iterator[Mismatch]:
        """Return what is wrong with the checkpoints themselves."""
        yield from self._bad
        for size in sorted(self._roots):
            if size > self._size:
                where = ", ".join(self._roots[size].values())
                what = f"{where}: {size} leaves were signed, and {self._size} are left: the tail was deleted, or an old backup restored"
                yield Mismatch("tail", self._size, what, expected=str(size), actual=str(self._size))
        yield from self._root()

    def page(
        self,
        start: int,
        end: int,
        leaves: Sequence[StoredLeaf],
        rows: Sequence[Mapping[str, Any]] | None,
        disclosures: Sequence[tuple[int, str, str]] = (),
    ) -> Iterator[Mismatch]:
        """Verify the leaves of a range, which continues the last one. `rows` is None to verify hashes alone.

        Copies of a leaf or row that are equal are to be given once.
        """
        leaves_at, rows_at, hidden_at = _by_index(leaves), _rows_by_index(rows or ()), defaultdict(list)
        for index, digest, text in disclosures:
            hidden_at[index].append((digest, text))
        for index in range(start, end):
            own = rows_at.get(index, [])
            leaf, problems = self._leaf(index, leaves_at.get(index, []), own)
            yield from problems
            if leaf is not None and rows is not None:
                yield from self._rows(leaf, own, self._previous)
                yield from _disclosures(index, own, hidden_at.get(index, []))
            self._append(leaf)
            yield from self._root()

    def gap(self, start: int, end: int) -> Iterator[Mismatch]:
        """Report a range without any leaf hash, as one mismatch, and continue after it."""
        yield Mismatch("missing_leaf", start, f"the leaf hashes from {start} to {end - 1} are missing")
        self.tree = Tree(end, [bytes(HASH_BYTES)] * end.bit_count())
        self._previous = None

    def _leaf(
        self, index: int, found: Sequence[StoredLeaf], rows: Sequence[Mapping[str, Any]]
    ) -> tuple[StoredLeaf | None, list[Mismatch]]:
        source = str(rows[0]["source_id"]) if rows else ""
        if not found:
            return None, [Mismatch("missing_leaf", index, "the leaf hash is missing", source)]
        problems = []
        if len(found) > 1:
            hashes = ", ".join(each.leaf_hash for each in found)
            problems.append(
                Mismatch("second_leaf", index, "two different leaves at one place", source, found[0].leaf_hash, hashes)
            )
        leaf = found[0]
        for each in found:  # the one that the rows say, so that one forged leaf is one mismatch
            if any((_hash_of(row), row["place"]) == (each.leaf_hash, each.place) for row in rows):
                leaf = each
                break
        if not is_hash(leaf.leaf_hash) or not is_hash(leaf.chain_hash):
            problems.append(Mismatch("leaf", index, "a hash of the leaf is malformed", source, "", leaf.leaf_hash))
        return leaf, problems

    def _rows(self, leaf: StoredLeaf, rows: Sequence[Mapping[str, Any]], previous: bytes | None) -> Iterator[Mismatch]:
        if not rows:
            if not self._absences.add(leaf.leaf_index):
                yield Mismatch("missing_row", leaf.leaf_index, "the row is missing", leaf.source_id, leaf.leaf_hash)
            return
        if len(rows) > 1:
            yield Mismatch("second_row", leaf.leaf_index, f"{len(rows)} different rows at one place", leaf.source_id)
        for row in rows:
            source = str(row["source_id"])
            try:
                computed = leaf_hash(leaf_data(row)).hex()
            except (ValueError, KeyError):
                yield Mismatch("malformed", leaf.leaf_index, "the row has no canonical form", source, leaf.leaf_hash)
                continue
            if computed != leaf.leaf_hash:
                yield Mismatch("row", leaf.leaf_index, "the row was changed", source, leaf.leaf_hash, computed)
            elif row["leaf_hash"] != computed:
                yield Mismatch("row", leaf.leaf_index, "its leaf_hash was changed", source, computed, row["leaf_hash"])
            if (leaf.kind, leaf.source_id) != (row["kind"], source):
                yield Mismatch("leaf", leaf.leaf_index, "leaf and row name different sources", source, leaf.source_id)
            if leaf.place != row["place"]:
                what = "leaf and row have different places of their source"
                yield Mismatch("leaf", leaf.leaf_index, what, source, str(row["place"]), str(leaf.place))
            if previous is not None:
                yield from _chain(leaf, row, previous)

    def _append(self, leaf: StoredLeaf | None) -> None:
        malformed = leaf is None or not is_hash(leaf.leaf_hash)
        self.tree.append(bytes(HASH_BYTES) if malformed or leaf is None else bytes.fromhex(leaf.leaf_hash))
        self._previous = bytes.fromhex(leaf.chain_hash) if leaf is not None and is_hash(leaf.chain_hash) else None
        if leaf is not None:
            self._absences.confirm(leaf.leaf_index, leaf.leaf_hash)

    def absences(self) -> Iterator[Mismatch]:
        """Return the absent rows that a record names which is not in the log or not signed. Call it after the last page."""
        self.expired, missing = self._absences.result(self.confirmed)
        for first, last, count in missing:
            rows = f"{count} rows from {first} to {last} are" if count > 1 else "the row is"
            yield Mismatch(
                "missing_row", first, f"{rows} missing, and the record that explains it is not a signed leaf"
            )

    def _root(self) -> Iterator[Mismatch]:
        """Compare the root with the checkpoints of this size."""
        size = self.tree.size
        if size not in self._roots:
            return
        root = self.tree.root()
        for signed, where in self._roots[size].items():
            if signed == root:
                self.confirmed = size
            else:
                what = f"{where}: the first {size} leaves are others than those that were signed"
                yield Mismatch("root", None, what, expected=signed.hex(), actual=root.hex())

    def after(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[Mismatch], int]:
        """Verify rows behind the last leaf, in their order.

        Returns what is wrong, and the number of rows that continue the log: those of a batch whose leaves are not written yet.
        """
        index, previous = self.tree.size, self._previous
        for number, row in enumerate(rows):
            try:
                linked = previous is not None and chain_hash(previous, row).hex() == row["chain_hash"]
                fits = linked and row["leaf_index"] == index and leaf_hash(leaf_data(row)).hex() == row["leaf_hash"]
            except (ValueError, KeyError):
                fits = False
            if not fits:
                wrong = rows[number:]
                what = "a row behind the end of the log that does not continue it"
                return [
                    Mismatch("row_without_leaf", each["leaf_index"], what, str(each["source_id"])) for each in wrong
                ], number
            index, previous = index + 1, bytes.fromhex(row["chain_hash"])
        return [], len(rows)


def _chain(leaf: StoredLeaf, row: Mapping[str, Any], previous: bytes) -> Iterator[Mismatch]:
    source = str(row["source_id"])
    try:
        computed = chain_hash(previous, row).hex()
    except ValueError:
        yield Mismatch("malformed", leaf.leaf_index, "the row has no canonical form in the chain", source)
        return
    if computed != row["chain_hash"] or computed != leaf.chain_hash:
        actual = row["chain_hash"] if computed != row["chain_hash"] else leaf.chain_hash
        yield Mismatch(
            "chain", leaf.leaf_index, "the chain_hash does not follow from the row before", source, computed, actual
        )


def _disclosures(index: int, rows: Sequence[Mapping[str, Any]], found: Sequence[tuple[str, str]]) -> Iterator[Mismatch]:
    named = {digest for row in rows for digest in row["sd"]}
    for digest, text in found:
        actual = digest_of(text)
        source = str(rows[0]["source_id"]) if rows else ""
        if actual != digest or opened(text) is None:
            yield Mismatch("disclosure", index, "a disclosure was changed", source, digest, actual)
        elif rows and digest not in named:
            yield Mismatch("disclosure", index, "a disclosure of another row", source, "", digest)


def _hash_of(row: Mapping[str, Any]) -> str:
    try:
        return leaf_hash(leaf_data(row)).hex()
    except (ValueError, KeyError):
        return ""


def _by_index(leaves: Sequence[StoredLeaf]) -> dict[int, list[StoredLeaf]]:
    found: dict[int, list[StoredLeaf]] = defaultdict(list)
    for each in leaves:
        found[each.leaf_index].append(each)
    return found


def _rows_by_index(rows: Sequence[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    found: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for each in rows:
        found[each["leaf_index"]].append(each)
    return found
