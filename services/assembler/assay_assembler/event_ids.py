"""Deterministic ids: every retry, redelivery and reassembly of a span makes the same event."""

import hashlib

from assay_schema.ids import derived_event_id


def span_event_id(project: str, trace_id: str, span_id: str, kind: str, start_ns: int) -> str:
    """Return the `event_id` of a span's event: a UUIDv7 of the span's start and a hash of the rest."""
    key = f"{project}\0{trace_id}\0{span_id}\0{kind}".encode("utf-8", "replace")
    return derived_event_id(start_ns // 1_000_000, key)


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
