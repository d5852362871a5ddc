"""A witness cosigns checkpoints of one growing log and refuses any other (c2sp.org/tlog-witness)."""

import base64
from collections.abc import Sequence

from assay_auditor.anchors.anchor import WITNESS, Anchor, Anchored, AnchorError, Prove
from assay_auditor.anchors.cosignature import WitnessKey
from assay_auditor.anchors.http import Post
from assay_auditor.notes import NoteError, Signed

#: Most hashes of a consistency proof that a witness takes.
_PROOF_HASHES = 63


class Witness(Anchor):
    """Submits to one witness.

    Delivery: at least once. A witness that has the checkpoint already cosigns it again.
    """

    kind = WITNESS

    def __init__(self, key: WitnessKey, post: Post) -> None:
        self.name = key.name
        self.key = key
        self._post = post

    def submit(self, signed: Signed, prove: Prove, known: int) -> Anchored:
        """Submit a checkpoint with the proof that it continues what the witness has."""
        size = signed.checkpoint.size
        old, has = min(known, size), None
        for _ in range(2):  # the first answer may tell what it has
            status, body = self._post(request_of(old, prove(old) if 0 < old < size else (), signed.note), "text/plain")
            if status != 409:
                break
            has = _size_of(body)
            if has is None or has == old:
                break
            if has > size:
                raise AnchorError(
                    f"the witness {self.name} has cosigned {has} leaves, and the newest checkpoint has {size}: an old backup was "
                    "restored, or another auditor writes this log. Run assay audit verify --full",
                    contradicts=True,
                )
            old = has
        if status == 422 or (status == 409 and has == old == size):
            raise AnchorError(
                f"the witness {self.name} has cosigned another log of this name: run assay audit verify --full, and compare with its copy "
                f"(HTTP {status})",
                contradicts=True,
            )
        if status != 200:
            raise self._refused(status)
        note = signed.note + self.key.own_lines(body.decode(errors="replace"))
        try:
            at = self.key.cosigned_at(note)
        except NoteError as error:
            raise AnchorError(f"{error}; check its key in auditor.witnesses") from None
        if at is None:
            raise AnchorError(f"another key than that of {self.name} cosigned; check its key in auditor.witnesses")
        return Anchored(size, note, "", at)

    def _refused(self, status: int) -> AnchorError:
        name = f"the witness {self.name}"
        reasons = {
            400: "does not understand the request",
            403: "does not trust the key of this log: give its operator the line of assay audit key",
            409: "does not answer as the protocol says",
            404: "does not know this log: give its operator auditor.origin and the line of assay audit key",
        }
        return AnchorError(f"{name} {reasons.get(status, 'has an internal problem')} (HTTP {status})")


def request_of(old: int, proof: Sequence[bytes], note: str) -> bytes:
    """Return the body of add-checkpoint: known size, consistency proof, signed checkpoint."""
    if len(proof) > _PROOF_HASHES:
        raise AnchorError(f"a consistency proof of more than {_PROOF_HASHES} hashes")
    lines = [f"old {old}", *(base64.b64encode(each).decode() for each in proof)]
    return ("\n".join(lines) + "\n\n" + note).encode()


def _size_of(body: bytes) -> int | None:
    """Return the size in the body of 409; None if it is malformed."""
    text = body.decode(errors="replace").removesuffix("\n")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None
