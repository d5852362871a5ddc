"""Decode base64 that contains text.

Only readable text is searched, so hashes and IDs cost next to nothing.
"""

import binascii
import re
from collections.abc import Iterator

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_BASE64 = re.compile(rb"[A-Za-z0-9+/_\-]++={0,2}")
_BETWEEN_SLASHES = re.compile(rb"[A-Za-z0-9+_\-]{16,}+={0,2}")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_READABLE = bytes(range(0x20, 0x7F)) + b"\t\r\n"
_HEAD = 16  # digits that are decoded first: twelve bytes, which are hardly ever all readable if random


def base64_at(raw: bytes, before: int, start: int) -> tuple[int, int, str] | None:
    """Return the base64 around `start`, not reaching back over `before`: (start, end, text).

    The text is empty when it is not readable. None if there is no base64.
    """
    left = raw[before:start]
    first = start - (len(left) - len(left.rstrip(_ALPHABET)))
    match = _BASE64.match(raw, first)
    if match is None:
        return None
    return first, match.end(), _text_of(match.group())


def base64_between_slashes(raw: bytes, first: int, last: int) -> Iterator[tuple[int, int, str]]:
    """Yield base64 of text between two slashes, as in a path: (start, end, text).

    `raw[first:last]` is not base64 as a whole.
    """
    for match in _BETWEEN_SLASHES.finditer(raw, first, last):
        text = _text_of(match.group())
        if text:
            yield *match.span(), text


def _wide(beginning: bytes) -> str:
    """Return the UTF-16 encoding that the bytes begin as, or an empty string."""
    for encoding, zeros, letters in (
        ("utf-16-le", beginning[3::2], beginning[2::2]),
        ("utf-16-be", beginning[2::2], beginning[3::2]),
    ):
        if zeros and not zeros.strip(b"\0") and not letters.translate(None, _READABLE):
            return encoding
    return ""


def _text_of(base64: bytes) -> str:
    """Return the decoded text, or an empty one if it is not readable."""
    written = base64.rstrip(b"=").translate(_STANDARD)
    head = written[: min(_HEAD, len(written) // 4 * 4)]  # whole groups of four: the rest would need its padding
    beginning, encoding = binascii.a2b_base64(head), "utf-8"
    if beginning.translate(None, _READABLE):
        encoding = _wide(beginning)
        if not encoding:
            return ""
    usable = len(written) - (len(written) % 4 == 1)
    decoded = binascii.a2b_base64(written[:usable] + b"=" * (-usable % 4))
    try:
        return decoded.decode(encoding)
    except UnicodeDecodeError:
        return ""
