"""Retention of the log: the records that explain why rows are absent. Pure.

A record is an operation like any other: the auditor writes its leaf, and a checkpoint signs it, before the rows are deleted. So no
operator can delete rows and claim retention afterwards without leaving a leaf that says who did it, and which rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from assay_auditor.chain import is_hash
from assay_auditor.disclosures import opened_of
from assay_auditor.merkle import leaf_hash
from assay_auditor.rows import leaf_data

#: The operation whose record explains absent rows.
OPERATION = "audit expire"
#: The field of the record that names the rows.
RANGE_FIELD = "target"


@dataclass(frozen=True)
class Expiry:
    """A record that the rows below a leaf were deleted.

    It counts only if the log has this leaf and a checkpoint signs it.
    """

    leaf_index: int
    leaf_hash: str
    #: Rows below this leaf may be absent, and the hash of the last of them: a record of another log of the same name explains nothing.
    before: int
    last_hash: str
    occurred_at: str
    #: Who; empty if the name was erased.
    actor: str = ""


def started(
    operation: str, log: str, row: Mapping[str, Any], disclosures: Iterable[str]
) -> tuple[str, dict[str, Any], dict[str, str]] | None:
    """Return the leaf hash, target and personal fields of a record that an operation on a log began.

    None if the row is no such record, or its digests do not confirm the target.
    """
    if (row["kind"], row["tool_name"], row["status"]) != ("operation", operation, "started"):
        return None
    fields = opened_of(row["sd"], disclosures)
    try:
        target = orjson.loads(fields[RANGE_FIELD])
        computed = leaf_hash(leaf_data(row)).hex()
    except (ValueError, KeyError, TypeError):
        return None
    return (computed, target, fields) if isinstance(target, dict) and target.get("log") == log else None


def expiry_of(log: str, row: Mapping[str, Any], disclosures: Iterable[str]) -> Expiry | None:
    """Return the record of deleted rows in a row.

    None without one, or if its digests do not confirm its range.
    """
    record = started(OPERATION, log, row, disclosures)
    if record is None:
        return None
    computed, target, fields = record
    before, last_hash = target.get("before"), target.get("last_hash")
    # A record explains nothing about itself or later rows.
    if type(before) is not int or not 0 < before <= row["leaf_index"] or not is_hash(last_hash):
        return None
    return Expiry(row["leaf_index"], computed, before, last_hash, row["occurred_at"], fields.get("caller_id", ""))


@dataclass
class _Absent:
    """Absent rows between two ranges that records name."""

    first: int
    last: int
    count: int = 0


class Absences:
    """Counts absent rows, and returns at the end those that a signed record explains.

    Needs memory for the records only.
    """

    def __init__(self, expiries: Sequence[Expiry]) -> None:
        #: Leaves that must have a hash for a record to count: its own, and the last one that it names.
        self._expected: dict[int, list[tuple[str, Expiry]]] = {}
        for each in expiries:
            self._expected.setdefault(each.before - 1, []).append((each.last_hash, each))
            self._expected.setdefault(each.leaf_index, []).append((each.leaf_hash, each))
        #: Places that `confirm` needs.
        self.places = self._expected.keys()
        self._bounds = sorted({each.before for each in expiries})
        self._place = 0
        self._absent: dict[int, _Absent] = {}
        self._fitting: list[Expiry] = []
        self._in_log: list[Expiry] = []

    def add(self, leaf_index: int) -> bool:
        """Count an absent row. Return False if no record names it. Call it with rising places."""
        bound = self.bound(leaf_index)
        if bound is None:
            return False
        found = self._absent.setdefault(bound, _Absent(leaf_index, leaf_index))
        found.last = leaf_index
        found.count += 1
        return True

    def bound(self, leaf_index: int) -> int | None:
        """Return the end of the narrowest range of a record that has a leaf; None without one.

        Call it with rising places.
        """
        while self._place < len(self._bounds) and self._bounds[self._place] <= leaf_index:
            self._place += 1
        return self._bounds[self._place] if self._place < len(self._bounds) else None

    def confirm(self, leaf_index: int, found: str) -> None:
        """Tell the hash of a leaf of the log."""
        for expected, each in self._expected.get(leaf_index, ()):
            if expected != found:
                continue
            if leaf_index == each.before - 1:
                self._fitting.append(each)
            elif each in self._fitting:
                self._in_log.append(each)

    def before(self, signed: int) -> int:
        """Return the leaf below which signed records explain absences. `signed`: as in `result`."""
        return max((each.before for each in self._in_log if each.leaf_index < signed), default=0)

    def result(self, signed: int) -> tuple[int, list[tuple[int, int, int]]]:
        """Return the number of expired rows, and ranges of missing ones: first, last, number.

        `signed`: the size of the largest checkpoint that the leaves confirm.
        """
        before = self.before(signed)
        expired = sum(each.count for bound, each in self._absent.items() if bound <= before)
        missing = [(each.first, each.last, each.count) for bound, each in self._absent.items() if bound > before]
        return expired, missing
