"""Signatures of webhooks by the Standard Webhooks specification 1.0 (standardwebhooks.com). Pure.

The signature is an HMAC-SHA256 of id, time and body. A receiver checks it with the shared secret and the raw bytes,
rejects a time too far from its own clock (a replayed request), and stores the ids it has seen for that long: a notice
that is sent twice has the same id.
"""

import base64
import binascii
import hmac

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
#: Prefix of a secret in the specification's own format; base64 follows.
PREFIX = "whsec_"
#: Shortest key that the specification allows, in bytes.
KEY_BYTES = 24
#: Command that creates a secret. With the prefix, libraries of the specification use the same key as Assay.
CREATE = 'echo "whsec_$(openssl rand -base64 32)"'


def key_of(secret: str) -> bytes:
    """Return the key of a secret: decoded if it begins with `whsec_`, else its own bytes.

    Raises `ValueError` if it is too short or malformed.
    """
    if secret.startswith(PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            raise ValueError(f"is not base64 after {PREFIX}") from None
    else:
        key = secret.encode()
    if len(key) < KEY_BYTES:
        raise ValueError(f"must be a key of {KEY_BYTES} bytes or more; create one with: {CREATE}")
    return key


def headers(key: bytes, message_id: str, at: int, content: bytes) -> dict[str, str]:
    """Return the three headers of a request. `at` is the time of this attempt, in Unix seconds."""
    return {ID: message_id, TIMESTAMP: str(at), SIGNATURE: f"v1,{_digest(key, message_id, str(at), content)}"}


def verified(
    key: bytes, message_id: str, timestamp: str, signature: str, content: bytes, *, now: float, tolerance_s: float = 300
) -> bool:
    """True if a request is authentic and recent, as a receiver checks it."""
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
