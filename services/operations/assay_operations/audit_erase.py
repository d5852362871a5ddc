"""Erase a name from the audit log: `plan_erase`, then `apply`. Every proof stays as it is."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_auditor.disclosures import opened
from assay_operations.actor import Actor
from assay_operations.audit import Trail
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.export.sql import literal
from assay_operations.progress import Counts, Unseen
from assay_operations.prune import delete_rows

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Leaves whose disclosures one query reads, and digests that one statement names.
_PAGE, _NAMED_AT_ONCE = 50_000, 1_000


@dataclass(frozen=True)
class Plan:
    """The disclosures of one person: the log, and the digests."""

    data: Path
    log: str
    digests: tuple[str, ...]
    #: Rows that lose a value.
    rows: int

    @property
    def target(self) -> dict[str, Any]:
        """The range for the audit record. Not the subject: records are never deleted."""
        return {"log": self.log, "rows": self.rows}


def plan_erase(data: Path, *, subject: str, progress: Counts | None = None) -> Plan:
    """Find the disclosures whose value is exactly `subject`, in every field. Raises `OperationError`."""
    if not subject:
        raise OperationError("invalid", "--subject: empty")
    seen = progress or Unseen()
    settings = settings_for("owner", data)
    log = settings.auditor.origin
    digests: list[str] = []
    rows: set[int] = set()
    with open_store(settings.store) as client:
        size = _size(client, log)
        seen.total = size
        for start in range(0, size, _PAGE):
            found = client.query(
                "SELECT DISTINCT leaf_index, digest, disclosure FROM audit_disclosures "
                "WHERE log = {log:String} AND leaf_index >= {start:UInt64} AND leaf_index < {end:UInt64}",
                parameters={"log": log, "start": start, "end": start + _PAGE},
            ).result_rows
            for index, digest, text in found:
                field = opened(text)
                if field is not None and field[1] == subject:
                    digests.append(str(digest))
                    rows.add(int(index))
            seen.rows = min(size, start + _PAGE)
    return Plan(data, log, tuple(dict.fromkeys(digests)), len(rows))


def _size(client: "Client", log: str) -> int:
    query = "SELECT if(count() = 0, 0, max(leaf_index) + 1) FROM audit_disclosures WHERE log = {log:String}"
    return int(client.query(query, parameters={"log": log}).result_rows[0][0])


def apply(plan: Plan, actor: Actor, *, progress: Counts | None = None) -> int:
    """Delete the values and salts that the plan found, and return their number.

    Safe to repeat after an interruption.
    """
    if not plan.digests:
        return 0
    seen = progress or Unseen()
    seen.total = len(plan.digests)
    settings = settings_for("owner", plan.data).store
    attempt = Trail(plan.data, settings).attempt(
        "audit erase", actor, identity=settings.user, target=plan.target, planned=len(plan.digests)
    )
    with open_store(settings) as client, attempt:
        for start in range(0, len(plan.digests), _NAMED_AT_ONCE):
            part = plan.digests[start : start + _NAMED_AT_ONCE]
            named = ", ".join(map(literal, part))
            table = f"{settings.base_database}.audit_disclosures"
            where = f"WHERE log = {literal(plan.log)} AND digest IN ({named})"
            delete_rows(client, table, where, len(part), attempt)
            seen.rows += len(part)
    return attempt.changed
