"""Signatures of webhooks, by the Standard Webhooks specification 1.0 (standardwebhooks.com): HMAC-SHA256 over id, time and body. Pure.

A receiver checks the signature with the shared secret and the bytes as they came, refuses a time that is too far from its own clock (a
recorded request played again), and keeps the ids it has seen for as long: a notice that is sent twice has the same id.
"""

import base64
import binascii
import hmac

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
#: A secret in the specification's own form: this, then base64.
PREFIX = "whsec_"
#: Shortest key, in bytes, that the specification allows.
KEY_BYTES = 24


def key_of(secret: str) -> bytes:
    """The key of a secret: decoded if it begins with `whsec_`, else its own bytes. Raises `ValueError` when it does not fit."""
    if secret.startswith(PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            raise ValueError(f"is not base64 behind {PREFIX}") from None
    else:
        key = secret.encode()
    if len(key) < KEY_BYTES:
        raise ValueError(f"must be a key of {KEY_BYTES} bytes or more; make one with: openssl rand -base64 32")
    return key


def headers(key: bytes, message_id: str, at: int, content: bytes) -> dict[str, str]:
    """The three headers of a request. `at` is Unix seconds at the moment of sending, anew at every try."""
    return {ID: message_id, TIMESTAMP: str(at), SIGNATURE: f"v1,{_digest(key, message_id, str(at), content)}"}


def verified(
    key: bytes, message_id: str, timestamp: str, signature: str, content: bytes, *, now: float, tolerance_s: float = 300
) -> bool:
    """Whether a request is ours and recent: what a receiver does."""
    if not timestamp.isdecimal() or abs(now - int(timestamp)) > tolerance_s:
        return False
    wanted = _digest(key, message_id, timestamp, content)
    return any(
        hmac.compare_digest(wanted, given)
        for version, _, given in (part.partition(",") for part in signature.split())
        if version == "v1"
    )


def _digest(key: bytes, message_id: str, timestamp: str, content: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode() + content
    return base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
