"""Salted digests of fields that may be personal, and the disclosures that open them. Pure.

Their form is that of RFC 9901, section 4.2. A leaf has the digests only.
Deleting a disclosure erases the value and leaves every proof intact.
"""

import base64
import hashlib
import hmac
from binascii import b2a_base64
from collections.abc import Collection, Iterable
from typing import Any

import orjson

_SALT_BYTES = 16
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def salt_of(secret: bytes, source: str, name: str) -> str:
    """Return the salt of a field: 128 bits that only the holder of the secret can compute.

    It is derived, not random, so that a batch that is written again has the same digests.
    """
    message = b"assay-audit-salt-1\x00" + source.encode() + b"\x00" + name.encode()
    return _encoded(hmac.digest(secret, message, "sha256")[:_SALT_BYTES])


def disclosure_of(salt: str, name: str, value: str) -> str:
    """Return the disclosure of a field: base64url of the JSON array of salt, name and value."""
    return _encoded(orjson.dumps([salt, name, value]))


def digest_of(disclosure: str) -> str:
    """Return the digest of a disclosure: base64url of its SHA-256."""
    return _encoded(hashlib.sha256(disclosure.encode(errors="replace")).digest())


def opened(disclosure: str) -> tuple[str, str] | None:
    """Return name and value of a disclosure; None if it is malformed."""
    try:
        found: Any = orjson.loads(
            base64.b64decode(disclosure + "=" * (-len(disclosure) % 4), altchars=b"-_", validate=True)
        )
    except ValueError:
        return None
    if isinstance(found, list) and len(found) == 3 and all(isinstance(each, str) for each in found):
        return found[1], found[2]
    return None


def opened_of(digests: Collection[str], disclosures: Iterable[str]) -> dict[str, str]:
    """Return the fields of a row by name: those of its disclosures that its digests confirm."""
    found = (opened(text) for text in disclosures if digest_of(text) in digests)
    return dict(field for field in found if field is not None)


def _encoded(data: bytes) -> str:
    return b2a_base64(data, newline=False).translate(_URL_SAFE, b"=").decode()
