"""Cosignatures of witnesses (c2sp.org/tlog-cosignature), with Ed25519. Pure.

A cosignature states that the checkpoint has the largest consistent log that the witness has seen under this name, at this time.
"""

import base64
from dataclasses import dataclass
from datetime import UTC, datetime

from assay_auditor.notes import MARK, NoteError, is_signed, key_id, parts_of, parts_of_vkey

_KIND = b"\x04"
#: Bytes behind the key id: a time and an Ed25519 signature.
_TIME_BYTES, _SIGNATURE_BYTES = 8, 64
#: The last second that a date has.
_LAST_SECOND = 253_402_300_799


@dataclass(frozen=True)
class WitnessKey:
    """The name and the public key of a witness."""

    name: str
    public: bytes

    @classmethod
    def parsed(cls, vkey: str) -> "WitnessKey":
        """Read a verifier key of a witness, `NAME+ID+KEY`. Raises `NoteError`."""
        name, kind, public = parts_of_vkey(vkey)
        if kind != _KIND or len(public) != 32:
            raise NoteError("not the key of a witness: another type than an Ed25519 cosignature")
        return cls(name, public)

    @property
    def id(self) -> bytes:
        """Its four bytes on a signature line."""
        return key_id(self.name, self.public, _KIND)

    @property
    def vkey(self) -> str:
        """Its text."""
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(_KIND + self.public).decode()}"

    def cosigned_at(self, note: str) -> datetime | None:
        """Return when the witness cosigned a note; None if it did not.

        Raises `NoteError` for a bad cosignature.
        """
        text, signatures = parts_of(note)
        found = [blob[4:] for name, blob in signatures if (name, blob[:4]) == (self.name, self.id)]
        if not found:
            return None
        return max(self._time_of(text, blob) for blob in found)

    def _time_of(self, text: str, blob: bytes) -> datetime:
        seconds = int.from_bytes(blob[:_TIME_BYTES])
        message = f"cosignature/v1\ntime {seconds}\n{text}".encode()
        good = len(blob) == _TIME_BYTES + _SIGNATURE_BYTES and seconds <= _LAST_SECOND
        if not good or not is_signed(self.public, message, blob[_TIME_BYTES:]):
            raise NoteError(f"a bad cosignature of the witness {self.name}")
        return datetime.fromtimestamp(seconds, UTC)

    def own_lines(self, text: str) -> str:
        """Return the signature lines of this witness in a text; lines of others are left out."""
        return "".join(f"{line}\n" for line in text.split("\n") if self._is_own(line))

    def _is_own(self, line: str) -> bool:
        name, _, encoded = line.removeprefix(MARK).partition(" ")
        try:
            return (
                line.startswith(MARK) and name == self.name and base64.b64decode(encoded, validate=True)[:4] == self.id
            )
        except ValueError:
            return False


def is_witness_key(vkey: str) -> bool:
    """True if a verifier key is one of a witness, well formed or not."""
    try:
        return base64.b64decode(vkey.strip().split("+", 2)[2], validate=True)[:1] == _KIND
    except (IndexError, ValueError):
        return False
