"""Match JSON Web Tokens: signed, unsigned, encrypted (five segments), or cut off after the payload."""

import re

from assay_scrubber.family import Family, LiteralRule, Literals, View
from assay_scrubber.taxonomy import Category

_SEGMENT = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_APART = bytes(b if b in _SEGMENT else 0x20 for b in range(256))
_LONGEST_HEADER = 8192
_SHORTEST_SEGMENT = 8
_OPEN_BRACE = b"eyJ"  # base64url of '{"'

# Anchored at the first dot and consuming only it: every segment is read at most four times, for any number of dots.
_AFTER_HEADER = re.compile(
    rb"\.(?<=[A-Za-z0-9_\-]{8}\.)(?=([A-Za-z0-9_\-]{8,}+|(?=\.[A-Za-z0-9_\-]{8}))(?:\.([A-Za-z0-9_\-]*+)(?:\.([A-Za-z0-9_\-]++)\.([A-Za-z0-9_\-]++))?)?)"
)


def _token(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    dot = match.start()
    earliest = max(0, dot - _LONGEST_HEADER)
    left = view.raw[max(earliest, view.raw.rfind(b".", earliest, dot) + 1) : dot]
    segment = left[left.translate(_APART).rfind(b" ") + 1 :]
    opening = segment.find(_OPEN_BRACE)
    if opening < 0 or len(segment) - opening < len(_OPEN_BRACE) + _SHORTEST_SEGMENT:
        return None
    start = dot - len(segment) + opening
    payload = match.group(1)
    if match.group(4) is not None:
        return start, match.end(4)
    if payload.startswith(_OPEN_BRACE) and len(payload) >= _SHORTEST_SEGMENT:
        return start, match.end(1) if match.group(2) is None else match.end(2)
    if len(payload) >= _SHORTEST_SEGMENT and match.group(2) and len(match.group(2)) >= _SHORTEST_SEGMENT:
        return start, match.end(2)
    return None


FAMILY = Family(
    name="jwt",
    category=Category.CREDENTIAL,
    rank=20,
    gate=Literals((b"eyj",)),
    rules=(LiteralRule(_AFTER_HEADER, _token),),
    description="JSON Web Tokens: signed, unsigned, encrypted, or cut off after the payload.",
    examples=("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl",),
    counterexamples=("module.submodule.function_name",),
)
