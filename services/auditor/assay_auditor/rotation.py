"""Rotation of the signer's key: its record, the statement of both keys, the chain of keys. Pure.

The old key names its successor, and the new one vouches for its predecessor. So a reader who trusts either verifies the whole log. The
record is an operation like any other: a leaf below the checkpoint that both keys sign, which says who replaced the key and why.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from assay_auditor.disclosures import opened_of
from assay_auditor.merkle import leaf_hash
from assay_auditor.notes import Checkpoint, NoteError, Signer, Verifier, parts_of, verified_text
from assay_auditor.rows import leaf_data

_HEAD = "assay/key-rotation"
#: The operation whose record is a leaf before a rotation, and the field of the record that names the keys.
OPERATION = "audit rotate-key"
KEYS_FIELD = "target"
#: Above every size.
_NEVER = 2**64


def target_of(old: Verifier, new: Verifier) -> dict[str, str]:
    """Return what the record of a rotation names: the log, and both public keys without its name."""
    return {"log": old.name, "old": old.vkey.partition("+")[2], "new": new.vkey.partition("+")[2]}


@dataclass(frozen=True)
class Record:
    """The record of a rotation. It counts only if the log has this leaf."""

    leaf_index: int
    leaf_hash: str
    target: Mapping[str, Any]


def record_of(row: Mapping[str, Any], disclosures: Iterable[str]) -> Record | None:
    """Return the record of a rotation in a row.

    None without one, or if its digests do not confirm its keys.
    """
    if (row["kind"], row["tool_name"], row["status"]) != ("operation", OPERATION, "started"):
        return None
    try:
        target = orjson.loads(opened_of(row["sd"], disclosures)[KEYS_FIELD])
        return Record(row["leaf_index"], leaf_hash(leaf_data(row)).hex(), target)
    except (ValueError, KeyError):
        return None


def signed_by_both(text: str, old: Signer, new: Signer) -> str:
    """Return the note of a text with the signatures of two keys, the new one first."""
    return new.signed(text) + old.signed(text).rpartition("\n\n")[2]


@dataclass(frozen=True)
class Rotation:
    """A change of the key at a checkpoint."""

    checkpoint: Checkpoint
    old: Verifier
    new: Verifier

    @property
    def text(self) -> str:
        """The text that both keys sign. It is not a checkpoint, so witnesses never see it."""
        return f"{_HEAD}\n{self.checkpoint.text}{self.old.vkey}\n{self.new.vkey}\n"

    @classmethod
    def parsed(cls, note: str) -> "Rotation":
        """Read a statement, and check that both of its keys signed it. Raises `NoteError`."""
        text, _ = parts_of(note)
        head, _, rest = text.partition("\n")
        lines = rest.split("\n")
        if head != _HEAD or len(lines) != 6:
            raise NoteError("not a statement of a key rotation")
        found = cls(Checkpoint.parsed(rest), Verifier.parsed(lines[3]), Verifier.parsed(lines[4]))
        if (
            found.text != text
            or {found.old.name, found.new.name} != {found.checkpoint.origin}
            or found.old == found.new
        ):
            raise NoteError("not a statement of a key rotation")
        for key in (found.old, found.new):
            verified_text(note, [key])
        return found


class KeyChain:
    """The keys that a reader trusts: those given, and those that rotations connect with them.

    An old key counts up to the size at which it was replaced, a new one from there on.
    """

    def __init__(self, given: Sequence[Verifier], notes: Iterable[str] = ()) -> None:
        """`notes`: statements of rotations. Those that no trusted key signed are ignored."""
        self.verifiers = list(given)
        #: The statements that connect keys, in their order.
        self.rotations: list[str] = []
        #: What contradicts itself: a key that was replaced by two others.
        self.problems: list[str] = []
        #: The smallest size at which a key was replaced by another. An interrupted rotation is stated again, at the same size or a larger.
        self.replaced: dict[tuple[Verifier, Verifier], int] = {}
        self._last: dict[Verifier, int] = {}
        self._first: dict[Verifier, int] = {}
        left = [each for each in map(_parsed, dict.fromkeys(notes)) if each is not None]
        while fitting := [each for each in left if each[1].old in self.verifiers or each[1].new in self.verifiers]:
            for note, found in fitting:
                self._add(note, found)
            left = [each for each in left if each not in fitting]

    def _add(self, note: str, found: Rotation) -> None:
        self.rotations.append(note)
        size = found.checkpoint.size
        for key in (found.old, found.new):
            if key not in self.verifiers:
                self.verifiers.append(key)
        pair = (found.old, found.new)
        self.replaced[pair] = min(self.replaced.get(pair, size), size)
        self._last[found.old] = max(self._last.get(found.old, 0), size)
        self._first[found.new] = min(self._first.get(found.new, _NEVER), size)
        others = {new for old, new in self.replaced if old == found.old}
        if len(others) > 1:
            self.problems.append(f"the key {found.old.id.hex()} was replaced by {len(others)} different keys")

    def unrecorded(self, records: Iterable[Record]) -> list[str]:
        """Return the rotations that none of the records explains, as sentences.

        `records`: those whose leaves are in the log.
        """
        known = list(records)
        return [
            f"the key {old.id.hex()} was replaced by {new.id.hex()} at {size} leaves, and none of these records it"
            for (old, new), size in self.replaced.items()
            if not any(each.leaf_index < size and each.target == target_of(old, new) for each in known)
        ]

    def verified(self, note: str, origin: str) -> Checkpoint:
        """Read the checkpoint of a log that a trusted key signed while it counted. Raises `NoteError`."""
        found = Checkpoint.verified(note, self.verifiers, origin)
        if self.signer_of(note) is None:
            raise NoteError(f"a checkpoint of {found.size} leaves by a key that was replaced before, or not in use yet")
        return found

    def signer_of(self, note: str) -> Verifier | None:
        """Return the key that signed a checkpoint while it counted. None without one."""
        text, signatures = parts_of(note)
        size = Checkpoint.parsed(text).size
        for name, blob in signatures:
            for key in self.verifiers:
                counts = self._first.get(key, 0) <= size <= self._last.get(key, _NEVER)
                if counts and (name, blob[:4]) == (key.name, key.id) and key.accepts(text, blob[4:]):
                    return key
        return None


def _parsed(note: str) -> tuple[str, Rotation] | None:
    try:
        return note, Rotation.parsed(note)
    except NoteError:
        return None
