"""Deterministic ids: every retry, redelivery and reassembly of a span makes the same event."""

import hashlib

_VERSION_AND_VARIANT = 0x7 << 76 | 0x2 << 62
#: The last Unix millisecond that a UUIDv7 can hold.
MS_MAX = (1 << 48) - 1


def span_event_id(project: str, trace_id: str, span_id: str, kind: str, start_ns: int) -> str:
    """Return the `event_id` of a span's event: a UUIDv7 of the span's start and a hash of the rest."""
    milliseconds = min(max(0, start_ns // 1_000_000), MS_MAX)
    key = f"{project}\0{trace_id}\0{span_id}\0{kind}".encode("utf-8", "replace")
    bits = int.from_bytes(hashlib.blake2b(key, digest_size=10).digest())
    value = milliseconds << 80 | _VERSION_AND_VARIANT | (bits >> 62 & 0xFFF) << 64 | bits & (1 << 62) - 1
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def text_id(text: str) -> str:
    """Return the id of a passage that has none: it depends on the text only."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def chunk_number(source: str, known: str) -> int:
    """Return an id as an integer below 2^53: itself if it is one, else a hash of source and id."""
    if known.isascii() and known.isdecimal() and len(known) <= 16 and (known == "0" or known[0] != "0"):
        value = int(known)
        if value < 1 << 53:
            return value
    key = f"{source}\0{known}".encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest()) >> 11
