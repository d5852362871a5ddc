"""A time-stamp server signs that a checkpoint existed at a time (RFC 3161).

`openssl ts -verify` reads its responses too.
"""

import base64
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from assay_auditor.anchors.anchor import TIMESTAMP, Anchor, Anchored, AnchorError, Prove
from assay_auditor.anchors.http import Post
from assay_auditor.notes import Signed

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_GRANTED = 0


class TokenError(ValueError):
    """A time stamp is malformed, of other content, or by a server that is not trusted."""


class TimestampServer(Anchor):
    """Asks one server for time stamps of signed checkpoints, signature included.

    Delivery: at least once. Each answer is a new time stamp.
    """

    kind = TIMESTAMP

    def __init__(self, post: Post, roots: Sequence["Certificate"], every_s: float) -> None:
        self.name = post.where
        self.every_s = every_s
        self._post, self._roots = post, roots

    def submit(self, signed: Signed, prove: Prove, known: int) -> Anchored:  # noqa: ARG002 - needs no proof
        """Have the checkpoint time-stamped."""
        from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

        request = TimestampRequestBuilder().data(signed.note.encode()).hash_algorithm(HashAlgorithm.SHA256).build()
        status, body = self._post(request.as_bytes(), "application/timestamp-query")
        if status != 200:
            raise AnchorError(
                f"the time-stamp server {self.name} answers with HTTP {status}; check auditor.timestamp_url"
            )
        try:
            at = stamped_at(body, signed.note, self._roots, nonce=request.nonce)
        except TokenError as error:
            raise AnchorError(
                f"the time-stamp server {self.name}: {error}; check auditor.timestamp_url and auditor.timestamp_ca_file"
            ) from None
        return Anchored(signed.checkpoint.size, signed.note, base64.b64encode(body).decode(), at)


def stamped_at(response: bytes, note: str, roots: Sequence["Certificate"], nonce: int | None = None) -> datetime:
    """Return the time in a response of a server that the roots confirm. Raises `TokenError`.

    Certificates have to be valid at that time, not now.
    """
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    try:
        decoded = decode_timestamp_response(response)
        status = decoded.status
        if status == _GRANTED:
            VerifierBuilder(roots=list(roots), nonce=nonce).build().verify_message(decoded, note.encode())
            return decoded.tst_info.gen_time
    except VerificationError as error:
        raise TokenError(f"the time stamp does not verify ({error})") from None
    except Exception as error:  # noqa: BLE001 - of a parser that reads bytes from elsewhere
        raise TokenError(f"not a time stamp ({type(error).__name__})") from None
    raise TokenError(f"it refused the request (status {status})")
