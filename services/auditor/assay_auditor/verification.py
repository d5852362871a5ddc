"""Verify a log page by page: rows, leaf hashes, chain, disclosures, signed checkpoints. Pure.

The memory does not grow with the log. A malformed row or checkpoint is a mismatch, never an error.
"""

import hashlib
from binascii import b2a_base64
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from assay_auditor.chain import CHAINED, GENESIS, chain_hash, is_hash
from assay_auditor.disclosures import digest_of, opened
from assay_auditor.erasure import MARK, Erasure, Erasures
from assay_auditor.expiry import Absences, Expiry
from assay_auditor.merkle import HASH_BYTES, Tree, leaf_hash
from assay_auditor.notes import Checkpoint, NoteError, Verifier
from assay_auditor.rotation import KeyChain, Record
from assay_auditor.rows import KEYS, leaf_data
from assay_auditor.sources import EVENT_KINDS

#: The columns of a row as it is verified: the keys of its document in their order, and its hash. Its places in that order.
COLUMNS = (*KEYS, "leaf_hash")
_LEAF_INDEX, _KIND, _SOURCE, _PLACE, _SD, _CHAIN_HASH = map(
    KEYS.index, ("leaf_index", "kind", "source_id", "place", "sd", "chain_hash")
)
_CHAIN_KEYS = tuple(sorted(CHAINED))
_chained = itemgetter(*map(KEYS.index, _CHAIN_KEYS))
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_MEND = "restore the rows of audit_disclosures from a backup, see docs/audit.md"

Row = Sequence[Any]


@dataclass(frozen=True)
class Mismatch:
    """Something that is not as it was written. `leaf_index` is None if no single leaf is wrong."""

    kind: str
    leaf_index: int | None
    what: str
    source_id: str = ""
    expected: str = ""
    actual: str = ""


class StoredLeaf(NamedTuple):
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
    places: Mapping[str, int] | None = None


class Verification:
    """Verifies leaves from the first to the last.

    `keys`: those that are trusted. `expiries`: records of absent rows. `records`: those of rotations of the key. `erasures`: those of
    absent disclosures.
    """

    def __init__(
        self,
        origin: str,
        keys: KeyChain | Sequence[Verifier],
        expiries: Sequence[Expiry] = (),
        records: Sequence[Record] = (),
        erasures: Iterable[Erasure] = (),
    ) -> None:
        self.tree = Tree()
        #: Absent rows that a signed record explains, known after the last page.
        self.expired = 0
        #: Values of personal fields that a signed record explains as erased, known after the last page.
        self.erased = 0
        #: Absent values that only a signed record of retention explains, although their rows are there. Known after the last page.
        self.expired_values = 0
        #: Size of the largest checkpoint that a trusted key signed and that the leaves confirm.
        self.confirmed = 0
        self._origin, self._keys = origin, keys if isinstance(keys, KeyChain) else KeyChain(keys)
        self._absences = Absences(expiries)
        self._erasures = Erasures(erasures)
        self._records = {each.leaf_index: each for each in records}
        self._in_log: list[Record] = []
        #: Leaves that records need.
        self._awaited = self._absences.places | self._erasures.places | self._records.keys()
        self._places: dict[str, int] = {}
        self._previous: bytes | None = GENESIS

    def _signed(self, notes: Sequence[Note]) -> tuple[dict[int, list[tuple[Note, Checkpoint]]], list[Mismatch]]:
        """Return the checkpoints that a trusted key signed, by their size, and what is wrong with notes."""
        signed: dict[int, list[tuple[Note, Checkpoint]]] = defaultdict(list)
        wrong: list[Mismatch] = []
        known: dict[str, Checkpoint | NoteError] = {}  # most are in two places
        for each in notes:
            if each.note not in known:
                try:
                    known[each.note] = self._keys.verified(each.note, self._origin)
                except NoteError as error:
                    known[each.note] = error
            found = known[each.note]
            if isinstance(found, NoteError):
                wrong.append(Mismatch("checkpoint", None, f"{each.where}: {found}"))
                continue
            if (each.size, each.root) not in ((None, None), (found.size, found.root.hex())):
                wrong.append(Mismatch("checkpoint", None, f"{each.where}: size or root differ from its note"))
            signed[found.size].append((each, found))
        for size, same in signed.items():
            if len({found.root for _, found in same}) > 1:
                where = " and ".join(sorted({each.where for each, _ in same}))
                wrong.append(Mismatch("fork", None, f"{where}: two signed roots of {size} leaves"))
        return signed, wrong

    def behind(self, notes: Sequence[Note], size: int) -> Iterator[Mismatch]:
        """Verify the checkpoints that no page had: those of more leaves than the log has, which is `size`."""
        signed, wrong = self._signed(notes)
        yield from wrong
        for number in sorted(signed):
            if number > size:
                where = ", ".join(each.where for each, _ in signed[number])
                what = f"{where}: {number} leaves were signed, and {size} are left: the tail was deleted, or an old backup restored"
                yield Mismatch("tail", size, what, expected=str(number), actual=str(size))
            elif number:
                yield from _behind_larger(signed[number], number)

    def page(
        self,
        start: int,
        end: int,
        leaves: Sequence[StoredLeaf],
        rows: Sequence[Row] | None,
        disclosures: Sequence[tuple[int, str, str]] = (),
        notes: Sequence[Note] = (),
    ) -> Iterator[Mismatch]:
        """Verify the leaves of a range, which continues the last one. `rows` is None to verify hashes alone.

        Copies of a leaf, row or disclosure that are equal are to be given once. A row has the values of `COLUMNS`. `disclosures`: leaf,
        digest and text, with the marks of erased ones; without rows, the marks alone. `notes`: the checkpoints of more than `start` and at
        most `end` leaves.
        """
        signed, wrong = self._signed(notes)
        yield from wrong
        yield from self._before(signed, start)
        leaves_at: dict[int, list[StoredLeaf]] = defaultdict(list)
        rows_at: dict[int, list[Row]] = defaultdict(list)
        for each in leaves:
            leaves_at[each.leaf_index].append(each)
        for row in rows or ():
            rows_at[row[_LEAF_INDEX]].append(row)
        hidden_at, marks_at = self._arranged(disclosures)
        hashes: list[bytes] = []
        places = self._places
        nothing: list[Any] = []
        for index in range(start, end):
            found, own = leaves_at.get(index, nothing), rows_at.get(index, nothing)
            following = None
            if len(found) == 1 and len(own) == 1 and self._previous is not None:
                following = _intact(found[0], own[0], self._previous, hidden_at.get(index, nothing))
            is_intact = following is not None
            if following is not None:  # as nearly all are
                leaf: StoredLeaf | None = found[0]
                self._previous = following
                hashes.append(bytes.fromhex(found[0].leaf_hash))
            else:
                leaf, problems = self._compared(index, found, own, hidden_at.get(index, nothing), rows is not None)
                yield from problems
                hashes.append(self._hash(leaf))
                is_intact = leaf is not None and len(own) == 1 and _fits(leaf, own[0])
            if is_intact and (following is None or len(hidden_at.get(index, nothing)) != len(own[0][_SD])):
                yield from self._hidden(index, own[0], hidden_at.get(index, nothing), marks_at.get(index, {}))
            if leaf is not None:
                kind = "event" if leaf.kind in EVENT_KINDS else leaf.kind
                if leaf.place > places.get(kind, 0):
                    places[kind] = leaf.place
                if index in self._awaited:
                    self._confirm(index, leaf.leaf_hash)
            if index + 1 in signed:
                self.tree.extend(hashes)
                hashes = []
                yield from self._root(signed[index + 1])
        self.tree.extend(hashes)

    def _arranged(
        self, disclosures: Sequence[tuple[int, str, str]]
    ) -> tuple[Mapping[int, list[tuple[str, str]]], Mapping[int, Mapping[str, list[str]]]]:
        """Return the disclosures of each leaf, and the hashes of the erasures of each of its digests."""
        hidden_at: dict[int, list[tuple[str, str]]] = defaultdict(list)
        marks: list[tuple[int, str, str]] = []
        for place, digest, text in disclosures:
            if MARK in digest:
                named, _, erased = digest.partition(MARK)
                marks.append((place, named, erased))
            else:
                hidden_at[place].append((digest, text))
        marks_at: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for place, named, erased in sorted(marks):
            self._erasures.mark(place, named, erased)
            marks_at[place][named].append(erased)
        return hidden_at, marks_at

    def _confirm(self, index: int, found: str) -> None:
        """Tell the records that need it the hash of a leaf."""
        self._absences.confirm(index, found)
        self._erasures.confirm(index, found)
        if index in self._records and self._records[index].leaf_hash == found:
            self._in_log.append(self._records[index])

    def _before(self, signed: Mapping[int, list[tuple[Note, Checkpoint]]], start: int) -> Iterator[Mismatch]:
        """Verify checkpoints of no leaves, and report those of earlier pages: their file is not in the order of the log."""
        for size in sorted(signed):
            if size == self.tree.size:
                yield from self._root(signed[size])
            elif size < start:
                yield from _behind_larger(signed[size], size)

    def _compared(
        self,
        index: int,
        found: Sequence[StoredLeaf],
        own: Sequence[Row],
        hidden: Sequence[tuple[str, str]],
        with_rows: bool,
    ) -> tuple[StoredLeaf | None, list[Mismatch]]:
        """Verify a place of the log step by step, to name what is wrong."""
        documents = [dict(zip(COLUMNS, row, strict=True)) for row in own]
        leaf, problems = self._leaf(index, found, documents)
        if leaf is not None and with_rows:
            problems += self._rows(leaf, documents, self._previous)
            problems += _disclosures(index, documents, hidden)
        self._previous = bytes.fromhex(leaf.chain_hash) if leaf is not None and is_hash(leaf.chain_hash) else None
        if leaf is not None:  # its place is not hashed, and that of its row is
            leaf = leaf._replace(
                place=next((row["place"] for row in documents if _hash_of(row) == leaf.leaf_hash), leaf.place)
            )
        return leaf, problems

    def _hidden(
        self, index: int, row: Row, hidden: Sequence[tuple[str, str]], marks: Mapping[str, Sequence[str]]
    ) -> Iterator[Mismatch]:
        """Count the absent disclosures of a row, and report those that no record names."""
        absent = set(row[_SD]) - {digest for digest, _ in hidden}
        bound = self._absences.bound(index)
        lost = [digest for digest in absent if not self._erasures.add(index, marks.get(digest, ()), bound)]
        if lost:
            what = f"personal fields were deleted, and no record of an erasure or of retention explains it: {_MEND}"
            yield Mismatch(
                "missing_disclosure", index, f"{len(lost)} {what}", str(row[_SOURCE]), ", ".join(sorted(lost))
            )

    @staticmethod
    def _hash(leaf: StoredLeaf | None) -> bytes:
        return bytes.fromhex(leaf.leaf_hash) if leaf is not None and is_hash(leaf.leaf_hash) else bytes(HASH_BYTES)

    def gap(self, start: int, end: int, notes: Sequence[Note] = ()) -> Iterator[Mismatch]:
        """Report a range without any leaf hash, as one mismatch, and continue after it.

        `notes`: its checkpoints.
        """
        yield Mismatch("missing_leaf", start, f"the leaf hashes from {start} to {end - 1} are missing")
        _, wrong = self._signed(notes)
        yield from wrong
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

    def is_completed_by(self, marks: Iterable[tuple[int, str, str]]) -> bool:
        """Return True if marks that are read again complete an erasure that those of the pages do not.

        `marks`: leaf, digest and hash of the erasure of all marks of the log, in this order.
        """
        again = self._erasures.unread()
        for mark in marks:
            again.mark(*mark)
        return not again.complete <= self._erasures.complete

    def rotations(self) -> Iterator[Mismatch]:
        """Return the rotations of the key that no leaf records.

        Call it after the last page.
        """
        for problem in self._keys.unrecorded(self._in_log):
            yield Mismatch("checkpoint", None, problem)

    def absences(self) -> Iterator[Mismatch]:
        """Return the absent rows and disclosures that no signed record in the log explains.

        Call it after the last page.
        """
        self.expired, missing = self._absences.result(self.confirmed)
        for first, last, count in missing:
            rows = f"{count} rows from {first} to {last} are" if count > 1 else "the row is"
            yield Mismatch(
                "missing_row", first, f"{rows} missing, and the record that explains it is not a signed leaf"
            )
        self.erased, self.expired_values, lost = self._erasures.result(self.confirmed, self._absences)
        for each in lost:
            named = [f"leaf {leaf} with {marks} mark(s)" for leaf, marks in each.records]
            why = f"the erasure of {' or '.join(named)} does not record" if named else "no signed leaf records"
            what = f"{each.count} personal fields of leaves {each.first} to {each.last} were deleted, and {why} exactly that: {_MEND}"
            yield Mismatch("missing_disclosure", each.first, what)

    def _root(self, signed: Sequence[tuple[Note, Checkpoint]]) -> Iterator[Mismatch]:
        """Compare the root, and the places, with the checkpoints of this size."""
        size, root = self.tree.size, self.tree.root()
        others: dict[bytes, list[str]] = defaultdict(list)
        for each, found in signed:
            if found.root == root:
                self.confirmed = size
            else:
                others[found.root].append(each.where)
            if each.places and dict(each.places) != self._places and each.size == size:
                yield Mismatch("checkpoint", None, f"{each.where}: its places are others than those of its leaves")
        for other, where in others.items():
            what = f"{', '.join(where)}: the first {size} leaves are others than those that were signed"
            yield Mismatch("root", None, what, expected=other.hex(), actual=root.hex())

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


def _behind_larger(signed: Sequence[tuple[Note, Checkpoint]], size: int) -> Iterator[Mismatch]:
    for each, _ in signed:
        yield Mismatch("checkpoint", None, f"{each.where}: a checkpoint of {size} leaves behind a larger one")


def _intact(leaf: StoredLeaf, row: Row, previous: bytes, hidden: Sequence[tuple[str, str]]) -> bytes | None:
    """Return the hash of a row in the chain if leaf, row and disclosures are as they were written; else None, to look closer."""
    try:
        data = orjson.dumps(dict(zip(KEYS, row, strict=False)))
        chained = orjson.dumps(dict(zip(_CHAIN_KEYS, _chained(row), strict=True)))
        texts = [(digest, text.encode()) for digest, text in hidden]
    except (TypeError, AttributeError, ValueError):  # text that is no Unicode
        return None
    computed = hashlib.sha256(b"\x00" + data).hexdigest()
    following = hashlib.sha256(previous + chained)
    if not (computed == leaf.leaf_hash == row[-1] and following.hexdigest() == leaf.chain_hash == row[_CHAIN_HASH]):
        return None
    if (leaf.kind, leaf.source_id, leaf.place) != (row[_KIND], row[_SOURCE], row[_PLACE]):
        return None
    named = row[_SD]
    for digest, text in texts:
        made = b2a_base64(hashlib.sha256(text).digest(), newline=False)[:43].translate(_URL_SAFE)  # without the padding
        if digest not in named or made.decode() != digest:
            return None
    return following.digest()


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
        actual = digest_of(text) if isinstance(text, str) else ""
        source = str(rows[0]["source_id"]) if rows else ""
        if not actual or actual != digest or opened(text) is None:
            yield Mismatch("disclosure", index, "a disclosure was changed", source, digest, actual)
        elif rows and digest not in named:
            yield Mismatch("disclosure", index, "a disclosure of another row", source, "", digest)


def _fits(leaf: StoredLeaf, row: Row) -> bool:
    """True if the hash of a leaf is that of its row."""
    return _hash_of(dict(zip(COLUMNS, row, strict=True))) == leaf.leaf_hash


def _hash_of(row: Mapping[str, Any]) -> str:
    try:
        return leaf_hash(leaf_data(row)).hex()
    except (ValueError, KeyError):
        return ""
