"""Check what anchors signed: cosignatures of witnesses whose keys are known, and time stamps. Pure."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from assay_auditor.anchors.anchor import DIRECTORY, TIMESTAMP, WITNESS
from assay_auditor.anchors.cosignature import WitnessKey
from assay_auditor.anchors.timestamp import TokenError, stamped_at
from assay_auditor.notes import Checkpoint, NoteError, parts_of

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


class EvidenceError(ValueError):
    """An anchor did not sign this. The message says which."""


@dataclass(frozen=True)
class Kept:
    """A row of the table `audit_anchors`: a checkpoint that one anchor has."""

    size: int
    anchor: str
    kind: str
    note: str
    token: str
    #: When it was signed, as the row says.
    at: datetime

    @property
    def where(self) -> str:
        """Its name in messages."""
        return f"{self.kind} {self.anchor}, checkpoint of {self.size}"


@dataclass
class Evidence:
    """Checks and counts what anchors signed.

    `witnesses`: the keys that are trusted. `roots`: the root certificates of time-stamp servers; () if they are not known.
    """

    witnesses: Sequence[WitnessKey] = ()
    roots: Sequence["Certificate"] = ()
    #: Valid cosignatures, the witnesses that gave one, and the largest size of them.
    cosignatures: int = 0
    names: set[str] = field(default_factory=set)
    witnessed: int = 0
    #: The largest size with a valid time stamp, and its time.
    timestamped: int = 0
    timestamped_at: datetime | None = None
    #: What could not be checked, because no key or root certificate is known.
    unchecked: int = 0

    @property
    def lacking(self) -> list[str]:
        """Sentences that name each known witness or time-stamp server that has signed nothing."""
        absent = sorted({each.name for each in self.witnesses} - self.names)
        found = [
            f"the witness {name} has cosigned no checkpoint in the store: see assay audit anchors" for name in absent
        ]
        if self.roots and not self.timestamped:
            found.append("no checkpoint in the store has a valid time stamp: see assay audit anchors")
        return found

    def check(self, kept: Kept) -> datetime | None:
        """Count one, and return its time; None if it cannot be checked. Raises `EvidenceError`."""
        try:
            size = Checkpoint.parsed(parts_of(kept.note)[0]).size
        except NoteError as error:
            raise EvidenceError(str(error)) from None
        if size != kept.size:
            raise EvidenceError(f"its note is a checkpoint of {size}")
        if kept.kind == WITNESS:
            return self._cosigned(kept)
        if kept.kind == TIMESTAMP:
            return self._stamped(kept)
        if kept.kind != DIRECTORY:
            raise EvidenceError(f"an unknown kind of anchor: {kept.kind}")
        return None

    def _cosigned(self, kept: Kept) -> datetime | None:
        keys = [each for each in self.witnesses if each.name == kept.anchor]
        if not keys:
            self.unchecked += 1
            return None
        try:
            times = [at for at in (each.cosigned_at(kept.note) for each in keys) if at is not None]
        except NoteError as error:
            raise EvidenceError(str(error)) from None
        if not times:
            raise EvidenceError(f"no cosignature of the key of {kept.anchor} that is known")
        if kept.at not in times:
            raise EvidenceError(_moved(max(times), kept.at))
        self.cosignatures += 1
        self.names.add(kept.anchor)
        self.witnessed = max(self.witnessed, kept.size)
        return max(times)

    def _stamped(self, kept: Kept) -> datetime | None:
        if not self.roots:
            self.unchecked += 1
            return None
        try:
            at = stamped_at(base64.b64decode(kept.token, validate=True), kept.note, self.roots)
        except ValueError as error:
            raise EvidenceError(str(error) if isinstance(error, TokenError) else "not a time stamp in base64") from None
        if kept.at != at:
            raise EvidenceError(_moved(at, kept.at))
        if kept.size >= self.timestamped:
            self.timestamped, self.timestamped_at = kept.size, at
        return at


def _moved(signed: datetime, stored: datetime) -> str:
    return f"it was signed on {signed.isoformat()}, and the store has {stored.isoformat()}"
