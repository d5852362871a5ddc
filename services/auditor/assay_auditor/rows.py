"""Rows of the audit log: the documents that are hashed, and what they are made from. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from assay_auditor.canonical import canonical
from assay_auditor.chain import FINGERPRINT_VERSION, REFUSAL_REASONS, chain_hash, fingerprint
from assay_auditor.disclosures import digest_of, disclosure_of, salt_of
from assay_auditor.merkle import leaf_hash
from assay_schema.ids import EPOCH_MS, PLACES

#: Separates the domain of these hashes from any other, and names the form of the row.
VERSION = "assay-audit-1"
#: Columns of a row that are hashed, in the order of the table. The leaf's document also has the key `v`.
HASHED = (
    "leaf_index", "kind", "source_id", "created_at", "project", "service", "server_session_id", "duration_us", "error_kind",
    "pii_attempted", "pii_blocked", "late", "place",
    "id", "occurred_at", "source_connection_id", "caller_id", "tool_name", "status", "refusal_reason", "cost_class",
    "pii_categories", "ast_shape_hash", "rule_id", "fingerprint", "fingerprint_version", "chain_hash", "sd",
)  # fmt: skip

#: The keys of a leaf's document, in their order.
KEYS = tuple(sorted(("v", *HASHED)))
#: The place of the present, by the store's clock; 0 before the epoch of the ids.
PRESENT_SQL = f"toUInt64(greatest(0, toUnixTimestamp64Milli(now64(3)) - {EPOCH_MS})) * {PLACES}"

Row = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """The facts of which a row is made.

    `place` orders the rows of a kind. `personal` has the fields whose values must be erasable: they enter the row as salted digests.
    """

    kind: str
    source_id: str
    place: int
    occurred_at: str
    created_at: str
    project: str
    service: str
    tool_name: str
    status: str
    server_session_id: str | None = None
    duration_us: int | None = None
    error_kind: str | None = None
    pii_attempted: Sequence[str] = ()
    pii_blocked: Sequence[str] = ()
    caller_id: str | None = None
    personal: Mapping[str, str | None] | None = None
    late: bool = False


@dataclass(frozen=True)
class Leaf:
    """A row with its canonical document, the hash of this and the disclosures of its personal fields."""

    row: Row
    data: bytes
    hash: bytes
    chain_hash: bytes
    disclosures: tuple[tuple[str, str], ...]
    place: int


def time_sql(column: str) -> str:
    """Return the SQL of a time as it is hashed: six digits, UTC.

    Rows are written and verified with the same form.
    """
    return f"formatDateTime(toDateTime64({column}, 6, 'UTC'), '%Y-%m-%dT%H:%i:%S.%fZ', 'UTC')"


#: How a column is read in the form that is hashed; the others are read as they are.
_AS_HASHED = {
    "v": f"'{VERSION}'",
    "kind": "toString(kind)",
    "source_id": "toString(source_id)",
    "created_at": time_sql("created_at"),
    "occurred_at": time_sql("occurred_at"),
    "pii_attempted": "CAST(pii_attempted, 'Array(String)')",
    "pii_blocked": "CAST(pii_blocked, 'Array(String)')",
}


def columns_sql(names: Sequence[str]) -> str:
    """Return the SQL of columns of `audit_rows` in the form that is hashed.

    Each is named like its column, with `_` at the end.
    """
    return ", ".join(f"{_AS_HASHED.get(name, name)} AS {name}_" for name in names)


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text in hex: what a leaf knows about arguments, results and messages."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def record_id(operation_id: str, outcome: str) -> str:
    """Return the id of an operation's record as a UUID of version 8: the same for the same record."""
    bits = int.from_bytes(hashlib.sha256(f"{operation_id} {outcome}".encode()).digest()[:16])
    return str(UUID(int=bits & ~(0xF << 76 | 0x3 << 62) | 0x8 << 76 | 0x2 << 62))


def leaf_of(source: Source, index: int, previous: bytes, secret: bytes) -> Leaf:
    """Return the leaf of a source at a place of the log. Raises `ValueError`.

    `previous`: the `chain_hash` of the row before.
    """
    disclosures = []
    caller = None
    for name, value in (("caller_id", source.caller_id), *(source.personal or {}).items()):
        if value is None:
            continue
        text = value.encode(errors="replace").decode()
        disclosure = disclosure_of(salt_of(secret, f"{source.kind} {source.source_id}", name), name, text)
        disclosures.append((digest_of(disclosure), disclosure))
        if name == "caller_id":
            caller = disclosures[-1][0]
    refused = source.status == "refused"
    reason = source.error_kind if refused and source.error_kind in REFUSAL_REASONS else None
    cost = "refused" if refused else "small"
    attempted = sorted(set(source.pii_attempted))
    row: Row = {
        "leaf_index": index,
        "kind": source.kind,
        "source_id": source.source_id,
        "created_at": source.created_at,
        "project": source.project,
        "service": source.service,
        "server_session_id": source.server_session_id,
        "duration_us": source.duration_us,
        "error_kind": source.error_kind,
        "pii_attempted": attempted,
        "pii_blocked": sorted(set(source.pii_blocked)),
        "late": source.late,
        "place": source.place,
        "id": index + 1,
        "occurred_at": source.occurred_at,
        "source_connection_id": source.service,
        "caller_id": caller,
        "tool_name": source.tool_name,
        "status": source.status,
        "refusal_reason": reason,
        "cost_class": cost,
        "pii_categories": ",".join(attempted),
        "ast_shape_hash": None,
        "rule_id": None,
        "fingerprint": fingerprint(attempted, cost, reason),
        "fingerprint_version": FINGERPRINT_VERSION,
        "sd": sorted(digest for digest, _ in disclosures),
    }
    chained = chain_hash(previous, row)
    row["chain_hash"] = chained.hex()
    data = leaf_data(row)
    return Leaf(row, data, leaf_hash(data), chained, tuple(disclosures), source.place)


def leaf_of_row(row: Mapping[str, Any], index: int, previous: bytes) -> Leaf | None:
    """Return the leaf of a stored row, without disclosures.

    None if it is not the row of this place that continues the chain.

    `row`: the columns `HASHED` in the form that is hashed, and `leaf_hash`.
    """
    try:
        chained, data = chain_hash(previous, row), leaf_data(row)
    except (ValueError, KeyError):
        return None
    hashed = leaf_hash(data)
    if (row["leaf_index"], row["chain_hash"], row["leaf_hash"]) != (index, chained.hex(), hashed.hex()):
        return None
    return Leaf({name: row[name] for name in HASHED}, data, hashed, chained, (), int(row["place"]))


#: The end of every document: `v` is the last of its keys.
_END = canonical({"v": VERSION})[1:]


def stored_row(leaf: Leaf, log: str) -> bytes:
    """Return the row of a leaf in the table, as JSON.

    It has the columns of the document, the log and the hash of the leaf.
    """
    return leaf.data.removesuffix(_END) + orjson.dumps({"log": log, "leaf_hash": leaf.hash.hex()})[1:]


def leaf_data(row: Mapping[str, Any]) -> bytes:
    """Return the bytes of a leaf: the canonical document of its row.

    Raises `ValueError`, and `KeyError` for a missing column.
    """
    return canonical({"v": VERSION} | {name: row[name] for name in HASHED})
