"""ClickHouse's formats, as far as the HTTP response needs them."""

from __future__ import annotations

# The engine writes a stream as one document per block. In these formats, a sequence of documents is one document.
STREAMABLE = frozenset(
    name.lower()
    for name in (
        "Native", "RowBinary", "TabSeparated", "TSV", "TabSeparatedRaw", "TSVRaw", "Raw", "LineAsString", "CSV",
        "JSONEachRow", "JSONLines", "NDJSON", "JSONL", "JSONStringsEachRow", "JSONCompactEachRow", "JSONCompactStringsEachRow",
        "TSKV", "RawBLOB", "MsgPack", "Null",
    )
)  # fmt: skip

_TYPES = {
    "json": "application/json; charset=UTF-8",
    "jsoneachrow": "application/x-ndjson; charset=UTF-8",
    "tabseparated": "text/tab-separated-values; charset=UTF-8",
    "tsv": "text/tab-separated-values; charset=UTF-8",
    "csv": "text/csv; charset=UTF-8; header=absent",
    "csvwithnames": "text/csv; charset=UTF-8; header=present",
    "csvwithnamesandtypes": "text/csv; charset=UTF-8; header=present",
    "xml": "application/xml; charset=UTF-8",
    "native": "application/octet-stream",
    "rowbinary": "application/octet-stream",
    "parquet": "application/octet-stream",
    "arrow": "application/octet-stream",
    "arrowstream": "application/octet-stream",
    "markdown": "text/markdown; charset=UTF-8",
}


def streamable(name: str) -> bool:
    """True if a result in this format can be sent while it is produced."""
    return name.lower() in STREAMABLE


def content_type(name: str) -> str:
    """Return the Content-Type a ClickHouse server gives a result in this format."""
    lowered = name.lower()
    if lowered in _TYPES:
        return _TYPES[lowered]
    if "eachrow" in lowered or lowered in ("ndjson", "jsonlines", "jsonl"):
        return "application/x-ndjson; charset=UTF-8"
    if lowered.startswith("json"):
        return "application/json; charset=UTF-8"
    if lowered.startswith(("tabseparated", "tsv")):
        return "text/tab-separated-values; charset=UTF-8"
    return "text/plain; charset=UTF-8"
