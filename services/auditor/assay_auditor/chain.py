"""The hash chain of schemabrain's audit table, byte for byte. Pure.

Its fourteen columns, its fingerprint `fp-v1` and its `chain_hash` are kept, so that tools which verify that table verify this log. The
Merkle tree (`merkle`) adds what the chain lacks: a deleted tail and a rewrite of all later rows are seen.
"""

import hashlib
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, TypeGuard

from assay_auditor.canonical import canonical

#: Bytes before the first row.
GENESIS = bytes(32)
FINGERPRINT_VERSION = "fp-v1"
#: The columns that the chain hashes; `chain_hash` itself is the fourteenth.
CHAINED = (
    "id", "occurred_at", "source_connection_id", "caller_id", "tool_name", "status", "refusal_reason", "cost_class",
    "pii_categories", "ast_shape_hash", "rule_id", "fingerprint", "fingerprint_version",
)  # fmt: skip
_REQUIRED = tuple(name for name in CHAINED if name not in ("caller_id", "refusal_reason", "ast_shape_hash", "rule_id"))
#: The closed set of reasons of a refusal.
REFUSAL_REASONS = frozenset(
    ("pii_blocked", "allowlist_violation", "fragment_unsafe", "cost_cap_exceeded", "ambiguous_resolution", "schema_drift")
)  # fmt: skip


def fingerprint(pii: Collection[str], cost: str, reason: str | None = None) -> str:
    """Return the fingerprint `fp-v1` of categories, cost class and reason of refusal, in hex."""
    return _fingerprint(tuple(sorted(pii)), cost, reason)


@lru_cache(maxsize=1_000)
def _fingerprint(pii: tuple[str, ...], cost: str, reason: str | None) -> str:
    document = {"v": FINGERPRINT_VERSION, "ast": None, "pii": list(pii), "reason": reason, "cost": cost, "rule": None}
    return hashlib.sha256(canonical(document)).hexdigest()


def chain_hash(previous: bytes, row: Mapping[str, Any]) -> bytes:
    """Return the hash of a row: SHA-256 of the previous row's hash (32 bytes) and the canonical row.

    `row` has the columns `CHAINED` and may have others. Raises `ValueError` if one is missing, a column that is not nullable is None, a
    hash has another length, or `previous` is not 32 bytes.
    """
    if len(previous) != len(GENESIS):
        raise ValueError(f"the previous chain_hash must be 32 bytes, not {len(previous)}")
    try:
        chained = {name: row[name] for name in CHAINED}
    except KeyError as error:
        raise ValueError(f"the row lacks {error.args[0]}") from None
    for name in _REQUIRED:
        if chained[name] is None:
            raise ValueError(f"{name} must not be null")
    for name in ("fingerprint", "ast_shape_hash"):
        if chained[name] is not None and not is_hash(chained[name]):
            raise ValueError(f"{name} must be 64 lower-case hex digits")
    return hashlib.sha256(previous + canonical(chained)).digest()


def is_hash(text: Any) -> TypeGuard[str]:
    """True for 64 lower-case hex digits."""
    return isinstance(text, str) and len(text) == 64 and not text.strip("0123456789abcdef")
