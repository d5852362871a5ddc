"""Compare one row of the audit log with its own hash, its leaf and the row before it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from assay_auditor.chain import GENESIS, chain_hash
from assay_auditor.merkle import leaf_hash
from assay_auditor.rows import leaf_data
from assay_operations.audit_log import AuditLog
from assay_operations.audit_reads.rows import COLUMNS, LogRow, covered_leaves, kept_fields, with_people
from assay_operations.errors import OperationError
from assay_schema.settings import AuditorSettings

if TYPE_CHECKING:
    from assay_runtime.store import Client


@dataclass(frozen=True)
class Check:
    """Something that this read compared: the hash of the row, its leaf, its link to the row before."""

    name: str
    holds: bool


@dataclass(frozen=True)
class OneRow:
    """A row with its columns, the checks that were made while it was read, and its erased fields."""

    row: LogRow
    columns: dict[str, Any]
    leaf_hash: str
    personal: int
    erased: int
    checks: tuple[Check, ...]
    #: The size of the checkpoint that covers it; None if none does yet.
    checkpoint: int | None
    #: Rows at this place; more than one is a mismatch.
    copies: int


def one_row(client: "Client", own: AuditorSettings, name: str) -> OneRow:
    """Return the row of a leaf index or a source id. Raises `OperationError` if it is not there."""
    log = AuditLog(client, own)
    index = _index_of(log, name)
    rows = log.rows(index, index + 1)
    if not rows:
        what = f"the row of leaf {index} is not there: it has expired, or was deleted by hand"
        raise OperationError("not_found", what, f"assay audit show {index}")
    columns = rows[0]
    short = log.query(
        f"SELECT DISTINCT {COLUMNS} FROM audit_rows WHERE log = {{log:String}} AND leaf_index = {{place:UInt64}} "  # noqa: S608
        "AND leaf_hash = {hash:String} LIMIT 1",
        place=index,
        hash=columns["leaf_hash"],
    )
    covered = covered_leaves(log)
    kept = kept_fields(log, [index])
    return OneRow(
        row=with_people(log, short, covered)[0],
        columns={each: columns[each] for each in columns if each != "sd"},
        leaf_hash=columns["leaf_hash"],
        personal=len(columns["sd"]),
        erased=sum((index, digest) not in kept for digest in columns["sd"]),
        checks=tuple(_checks(log, index, columns)),
        checkpoint=covered if index < covered else None,
        copies=len(rows),
    )


def _index_of(log: AuditLog, name: str) -> int:
    if name.isascii() and name.isdigit():
        index = min(int(name), 2**63) if len(name) < 20 else 2**63
        if not log.query(
            "SELECT 1 FROM audit_leaves WHERE log = {log:String} AND leaf_index = {place:UInt64} LIMIT 1", place=index
        ):
            what = f"the log has no leaf {name[:20]}: it has {log.size():,} rows, and the first is leaf 0"
            raise OperationError("not_found", what, "see /audit")
        return index
    try:
        source = str(UUID(name))
    except ValueError:
        raise OperationError("invalid", f"{name[:40]!r} is neither the index of a leaf nor an event_id") from None
    rows = log.query(
        "SELECT leaf_index FROM audit_leaves WHERE log = {log:String} AND source_id = {source:UUID} ORDER BY leaf_index LIMIT 1",
        source=source,
    )
    if not rows:
        raise OperationError(
            "not_found", f"the log has no row of {source}", "it is not written yet, or is no tool call: see /audit"
        )
    return int(rows[0][0])


def _checks(log: AuditLog, index: int, columns: Mapping[str, Any]) -> Iterable[Check]:
    """Compare a row with its own hash, its leaf, and the row before it."""
    try:
        hashed = leaf_hash(leaf_data(columns)).hex()
    except ValueError:
        hashed = ""
    yield Check("the row has the hash of its leaf", hashed == columns["leaf_hash"])
    leaves = log.leaves(max(0, index - 1), index + 1)
    own = [each for each in leaves if each.leaf_index == index]
    yield Check("the leaf is in the tree, once", [each.leaf_hash for each in own] == [columns["leaf_hash"]])
    before = [
        bytes.fromhex(each.chain_hash) for each in leaves if each.leaf_index == index - 1 and _is_hex(each.chain_hash)
    ]
    previous = [GENESIS] if index == 0 else before
    try:
        chained = [chain_hash(each, columns).hex() for each in previous]
    except (ValueError, TypeError):
        chained = []
    yield Check("the chain from the row before leads to it", chained == [columns["chain_hash"]])


def _is_hex(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) == 32
    except ValueError:
        return False
