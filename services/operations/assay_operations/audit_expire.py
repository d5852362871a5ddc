"""Delete old rows of the audit log: `plan_expire`, then `apply`. The hashes of their leaves stay.

The record of the operation is a leaf that a checkpoint signs, before anything is deleted: `assay audit verify` takes an absent row for
expired only with such a record.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_auditor.disclosures import opened
from assay_auditor.erasure import MARK
from assay_auditor.expiry import OPERATION
from assay_auditor.rotation import KEYS_FIELD
from assay_auditor.rotation import OPERATION as ROTATION
from assay_auditor.rows import record_id
from assay_operations.actor import Actor
from assay_operations.audit import Trail
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.export.sql import literal
from assay_operations.progress import Counts, Unseen
from assay_operations.prune import delete_rows

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Seconds that the auditor has to write and sign the record, in addition to `auditor.checkpoint_s`, and the pause between looks.
GRACE_S = 120.0
_PAUSE_S = 0.2
#: Rows that are never deleted: `assay audit verify` accepts a new key only with the record of its rotation.
_KEPT = f"(kind = 'operation' AND tool_name = '{ROTATION}')"


@dataclass(frozen=True)
class Plan:
    """The rows below a leaf, and why they go."""

    data: Path
    log: str
    #: All rows below this leaf are deleted.
    before: int
    #: The hash of the last of these leaves.
    last_hash: str
    rows: int
    #: `retention.audit_days`; 0: rows are kept indefinitely.
    days: int
    #: Rows that arrived up to this Unix millisecond are old enough.
    upto_ms: int

    @property
    def target(self) -> dict[str, Any]:
        """The range for the audit record: what `assay_auditor.expiry` reads."""
        upto = datetime.fromtimestamp(self.upto_ms / 1000, UTC).isoformat(timespec="milliseconds")
        return {
            "log": self.log,
            "before": self.before,
            "last_hash": self.last_hash,
            "audit_days": self.days,
            "arrived_upto": upto,
        }


def plan_expire(data: Path) -> Plan:
    """Find the rows that are older than `retention.audit_days`, up to the first one that is not.

    The log is nearly in the order of arrival, so that rows are deleted from its start only: one number says which. Rows that no
    checkpoint covers stay. Raises `OperationError`.
    """
    settings = settings_for("owner", data)
    log, days = settings.auditor.origin, settings.retention.audit_days
    if not days:
        return Plan(data, log, 0, "", 0, 0, 0)
    with open_store(settings.store) as client:
        expect_one_server(client, settings.store.base_database)
        [[now_ms]] = client.query("SELECT toUnixTimestamp64Milli(now64(3))").result_rows
        upto_ms = int(now_ms) - days * 86_400_000
        before = min(_first_younger(client, log, upto_ms), _covered(client, log))
        [[rows]] = client.query(
            f"SELECT uniqExact(leaf_index) FROM audit_rows WHERE log = {{log:String}} AND leaf_index < {{before:UInt64}} AND NOT {_KEPT}",  # noqa: S608
            parameters={"log": log, "before": before},
        ).result_rows
        last_hash = _leaf_hash(client, log, before - 1) if rows else ""
    return Plan(data, log, before, last_hash, int(rows), days, upto_ms)


def expect_one_server(client: "Client", database: str) -> None:
    """Raise `OperationError` on a cluster.

    Its tables delete nothing, and a record without a deletion would explain a later loss.
    """
    query = "SELECT engine FROM system.tables WHERE database = {database:String} AND name = 'audit_rows'"
    if client.query(query, parameters={"database": database}).result_rows == [("Distributed",)]:
        raise OperationError(
            "invalid", "nothing of the audit log can be deleted on a cluster yet", "see docs/cluster.md"
        )


def _first_younger(client: "Client", log: str, upto_ms: int) -> int:
    young = "least(created_at, stored_at) > fromUnixTimestamp64Milli({upto:Int64}, 'UTC')"
    query = f"SELECT if(countIf({young}) > 0, minIf(leaf_index, {young}), max(leaf_index) + 1) FROM audit_rows WHERE log = {{log:String}}"  # noqa: S608
    return int(client.query(query, parameters={"log": log, "upto": upto_ms}).result_rows[0][0])


def _leaf_hash(client: "Client", log: str, leaf_index: int) -> str:
    found = client.query(
        "SELECT DISTINCT leaf_hash FROM audit_leaves WHERE log = {log:String} AND leaf_index = {place:UInt64}",
        parameters={"log": log, "place": leaf_index},
    ).result_rows
    if len(found) != 1:
        raise OperationError("conflict", f"leaf {leaf_index} is missing or double", "run assay audit verify")
    return str(found[0][0])


def _covered(client: "Client", log: str) -> int:
    query = "SELECT max(size) FROM audit_checkpoints WHERE log = {log:String}"
    return int(client.query(query, parameters={"log": log}).result_rows[0][0])


def apply(plan: Plan, actor: Actor, *, progress: Counts | None = None) -> int:
    """Record the range, wait until the record is signed, delete the rows, and return their number.

    Safe to repeat after an interruption. Raises `OperationError` without having deleted anything if the auditor does not sign the record.
    """
    if not plan.rows:
        return 0
    seen = progress or Unseen()
    seen.total = plan.rows
    settings = settings_for("owner", plan.data)
    store = settings.store
    attempt = Trail(plan.data, store).attempt(
        OPERATION, actor, identity=store.user, target=plan.target, planned=plan.rows
    )
    with open_store(store) as client, attempt:
        wait_until_signed(client, plan.log, attempt.operation_id, settings.auditor.checkpoint_s + GRACE_S)
        where = f"WHERE log = {literal(plan.log)} AND leaf_index < {plan.before}"
        kept = ", ".join(map(literal, _kept_digests(client, plan)))
        # Marks of erased values stay: the hash of an erasure is about all of them.
        but = f" AND position(digest, '{MARK}') = 0" + (f" AND digest NOT IN ({kept})" if kept else "")
        delete_rows(client, f"{store.base_database}.audit_disclosures", where + but, 0, attempt)
        delete_rows(client, f"{store.base_database}.audit_rows", f"{where} AND NOT {_KEPT}", plan.rows, attempt)
        seen.rows = plan.rows
    return attempt.changed


def _kept_digests(client: "Client", plan: Plan) -> list[str]:
    """Return the digests of the keys that records of rotations name. The person and the comment expire."""
    rows = client.query(
        "SELECT DISTINCT digest, disclosure FROM audit_disclosures WHERE log = {log:String} AND leaf_index IN "  # noqa: S608 - constants
        f"(SELECT leaf_index FROM audit_rows WHERE log = {{log:String}} AND leaf_index < {{before:UInt64}} AND {_KEPT})",
        parameters={"log": plan.log, "before": plan.before},
    ).result_rows
    return [str(digest) for digest, text in rows if (opened(text) or ("",))[0] == KEYS_FIELD]


def wait_until_signed(
    client: "Client", log: str, operation_id: str, most_s: float, so_far: str = "nothing was deleted"
) -> None:
    """Wait until a checkpoint covers the leaf of the record.

    Raises `OperationError`, which begins with `so_far`.
    """
    query = (
        "SELECT count() FROM audit_leaves WHERE log = {log:String} AND source_id = {source:UUID} "
        "AND leaf_index < (SELECT max(size) FROM audit_checkpoints WHERE log = {log:String})"
    )
    wanted = {"log": log, "source": record_id(operation_id, "started")}
    deadline = time.monotonic() + most_s
    while not client.query(query, parameters=wanted).result_rows[0][0]:
        if time.monotonic() >= deadline:
            raise OperationError(
                "unavailable",
                f"{so_far}: the auditor has not signed the record of this operation within {most_s:.0f} s",
                "start the auditor (see assay doctor), and run this again"
                + (
                    "; when it signs the record, absent rows count as expired"
                    if so_far == "nothing was deleted"
                    else ""
                ),
            )
        time.sleep(_PAUSE_S)
