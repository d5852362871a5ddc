"""Erasure of personal fields: the records that explain why disclosures are absent. Pure.

An erased disclosure leaves a mark in its place: the digest and the hash of all that was erased with it. The record of the erasure has this
hash, and its leaf is signed before anything is deleted. So no operator can delete a disclosure, then or later, that no leaf accounts for.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from assay_auditor.chain import is_hash
from assay_auditor.expiry import Absences, started

if TYPE_CHECKING:
    from hashlib import _Hash

#: The operation whose record explains absent disclosures.
OPERATION = "audit erase"
#: Between the digest and the hash of its erasure in a mark. No digest has it.
MARK = "!"
_HEAD = b"assay-audit-erasure-1\n"


def mark_of(digest: str, erased: str) -> str:
    """Return what the store has as the digest of an erased disclosure. `erased`: the hash of its erasure."""
    return f"{digest}{MARK}{erased}"


class Erased:
    """The hash of what one erasure deletes: leaf and digest of each disclosure, in their order."""

    def __init__(self) -> None:
        self._hash: _Hash = hashlib.sha256(_HEAD)
        #: Number of disclosures that were added.
        self.count = 0

    def add(self, leaf_index: int, digest: str) -> None:
        """Add a disclosure. Call it in the order of leaf and digest, once for each."""
        self._hash.update(orjson.dumps([leaf_index, digest.encode(errors="replace").decode()]) + b"\n")
        self.count += 1

    @property
    def hex(self) -> str:
        """The hash of what was added so far."""
        return self._hash.hexdigest()


def erased_hash(digests: Iterable[tuple[int, str]]) -> str:
    """Return the hash of disclosures, each given as leaf and digest in their order."""
    found = Erased()
    for leaf_index, digest in digests:
        found.add(leaf_index, digest)
    return found.hex


@dataclass(frozen=True)
class Erasure:
    """A record that disclosures were deleted.

    It counts only if the log has this leaf and a checkpoint signs it.
    """

    leaf_index: int
    leaf_hash: str
    #: The hash of what was erased.
    erased: str


def erasure_of(log: str, row: Mapping[str, Any], disclosures: Iterable[str]) -> Erasure | None:
    """Return the record of an erasure in a row.

    None without one, or if its digests do not confirm what was erased.
    """
    record = started(OPERATION, log, row, disclosures)
    if record is None:
        return None
    computed, target, _ = record
    erased = target.get("erased")
    return Erasure(row["leaf_index"], computed, erased) if is_hash(erased) else None


@dataclass(frozen=True)
class Lost:
    """Absent disclosures between two leaves that no signed record explains."""

    first: int
    last: int
    count: int
    #: The records of erasures that their marks name: the leaf of each, and the number of all marks that name it.
    records: tuple[tuple[int, int], ...] = ()


@dataclass
class _Missing:
    """Absent disclosures that the same records may explain."""

    first: int
    last: int
    count: int = 0


class Erasures:
    """Counts absent disclosures, and returns at the end those that no signed record explains.

    Needs memory for the records only. A record of deleted rows explains the disclosures below its leaf too: see `Absences`.
    """

    def __init__(self, records: Iterable[Erasure] = ()) -> None:
        self._records: dict[int, list[Erasure]] = {}
        self._found: dict[str, Erased] = {}
        for each in records:
            self._records.setdefault(each.leaf_index, []).append(each)
            self._found.setdefault(each.erased, Erased())
        #: Places that `confirm` needs.
        self.places = self._records.keys()
        self._in_log: dict[str, list[Erasure]] = {}
        self._missing: dict[tuple[frozenset[str], int | None], _Missing] = {}

    def unread(self) -> "Erasures":
        """Return the same records without any marks and absences."""
        return Erasures(each for found in self._records.values() for each in found)

    def mark(self, leaf_index: int, digest: str, erased: str) -> None:
        """Tell a mark of the store. Call it in the order of leaf and digest, once for each."""
        if erased in self._found:
            self._found[erased].add(leaf_index, digest)

    def add(self, leaf_index: int, marks: Iterable[str], bound: int | None) -> bool:
        """Count an absent disclosure. Return False if no record names it.

        `marks`: the hashes of the erasures that its marks name. `bound`: see `Absences.bound`.
        """
        known = frozenset(each for each in marks if each in self._found)
        if not known and bound is None:
            return False
        found = self._missing.setdefault((known, bound), _Missing(leaf_index, leaf_index))
        found.last = leaf_index
        found.count += 1
        return True

    def confirm(self, leaf_index: int, found: str) -> None:
        """Tell the hash of a leaf of the log."""
        for each in self._records.get(leaf_index, ()):
            if each.leaf_hash == found:
                self._in_log.setdefault(each.erased, []).append(each)

    @property
    def complete(self) -> frozenset[str]:
        """The hashes of the erasures whose marks, so far, are exactly what their records name."""
        return frozenset(erased for erased, each in self._found.items() if each.hex == erased)

    def result(self, signed: int, absences: Absences) -> tuple[int, int, list[Lost]]:
        """Return the number of erased values, that of expired values, and missing values.

        Expired values are those that only a record of retention explains.
        `signed`: the size of the largest checkpoint that the leaves confirm.
        """
        complete = self.complete
        last = {
            erased: max((each.leaf_index for each in records if each.leaf_index < signed), default=-1)
            for erased, records in self._in_log.items()
            if erased in complete
        }
        before = absences.before(signed)
        count = expired = 0
        missing = []
        for (marks, bound), each in self._missing.items():
            if any(each.last < last.get(erased, -1) for erased in marks):
                count += each.count
            elif bound is not None and bound <= before:
                expired += each.count
            else:
                missing.append(Lost(each.first, each.last, each.count, self._named(marks)))
        return count, expired, missing

    def _named(self, marks: Iterable[str]) -> tuple[tuple[int, int], ...]:
        """Return the leaves of the records of erasures, each with its number of marks."""
        records = (each for found in self._records.values() for each in found if each.erased in marks)
        return tuple(sorted((each.leaf_index, self._found[each.erased].count) for each in records))
