"""Erase a name from the audit log: `plan_erase`, then `apply`. Every proof stays as it is.

The record of the operation is a leaf that a checkpoint signs, before anything is deleted, and names what is deleted by its hash:
`assay audit verify` takes an absent value for erased only with such a record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from assay_auditor.disclosures import opened
from assay_auditor.erasure import OPERATION as ERASURE
from assay_auditor.erasure import erased_hash, mark_of
from assay_auditor.expiry import OPERATION, RANGE_FIELD
from assay_auditor.rotation import OPERATION as ROTATION
from assay_operations.actor import Actor
from assay_operations.audit import Trail
from assay_operations.audit_expire import GRACE_S, expect_one_server, wait_until_signed
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.export.sql import literal
from assay_operations.progress import Counts, Unseen
from assay_operations.prune import delete_rows

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Leaves whose disclosures one query reads, and bytes of the digests that one statement names: each rewrites whole parts of the table, and
#: the store takes no statement of more than 256 KiB.
_PAGE, STATEMENT_BYTES = 50_000, 200_000


@dataclass(frozen=True)
class Plan:
    """The disclosures of one person in rows of the log: leaf and digest of each, in their order."""

    data: Path
    log: str
    digests: tuple[tuple[int, str], ...]
    #: Rows that lose a value.
    rows: int
    #: Values that contain the name in any case, and more: a comment or a path, for example. They stay.
    similar: int = 0
    #: Values of the name behind the last leaf, whose rows the auditor is about to write. They stay until they have leaves.
    behind: int = 0

    @property
    def target(self) -> dict[str, Any]:
        """The range for the audit record: what `assay_auditor.erasure` reads.

        Not the subject: records are never deleted.
        """
        return {"log": self.log, "rows": self.rows, "erased": erased_hash(self.digests)}


def plan_erase(data: Path, *, subject: str, progress: Counts | None = None) -> Plan:
    """Find the disclosures whose value is exactly `subject`, in every field. Raises `OperationError`.

    Only those of rows that have leaves: the hash in the record must name what `assay audit verify` finds absent.
    """
    if not subject:
        raise OperationError("invalid", "--subject: empty")
    seen = progress or Unseen()
    settings = settings_for("owner", data)
    log = settings.auditor.origin
    digests: set[tuple[int, str]] = set()
    similar: set[tuple[int, str]] = set()
    behind: set[tuple[int, str]] = set()
    part = subject.casefold()
    with open_store(settings.store) as client:
        expect_one_server(client, settings.store.base_database)
        leaves = _size(client, log, "audit_leaves")  # before the values, which the auditor writes before their leaves
        size = _size(client, log, "audit_disclosures")
        seen.total = size
        records = _records(client, log)
        for start in range(0, size, _PAGE):
            found = client.query(
                "SELECT DISTINCT leaf_index, digest, disclosure FROM audit_disclosures "
                "WHERE log = {log:String} AND leaf_index >= {start:UInt64} AND leaf_index < {end:UInt64}",
                parameters={"log": log, "start": start, "end": start + _PAGE},
            ).result_rows
            for index, digest, text in found:
                field = opened(text)
                if field is None or (field[0] == RANGE_FIELD and index in records):
                    continue
                if field[1] == subject:
                    (digests if index < leaves else behind).add((int(index), str(digest)))
                elif part in field[1].casefold():
                    similar.add((int(index), str(digest)))
            seen.rows = min(size, start + _PAGE)
    return Plan(data, log, tuple(sorted(digests)), len({index for index, _ in digests}), len(similar), len(behind))


def groups_of(digests: Sequence[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Return the digests in groups, each for one statement."""
    group: list[tuple[int, str]] = []
    size = 0
    for index, digest in digests:
        length = len(literal(digest).encode()) + 2
        if group and size + length > STATEMENT_BYTES:
            yield group
            group, size = [], 0
        group.append((index, digest))
        size += length
    if group:
        yield group


def _size(client: "Client", log: str, table: str) -> int:
    query = f"SELECT if(count() = 0, 0, max(leaf_index) + 1) FROM {table} WHERE log = {{log:String}}"  # noqa: S608 - constants
    return int(client.query(query, parameters={"log": log}).result_rows[0][0])


def _records(client: "Client", log: str) -> set[int]:
    """Return the records that explain absences or a new key: a range or a key is not a name, and `verify` needs it."""
    query = (
        "SELECT leaf_index FROM audit_rows "
        "WHERE log = {log:String} AND kind = 'operation' AND tool_name IN {operations:Array(String)}"
    )
    rows = client.query(query, parameters={"log": log, "operations": [OPERATION, ERASURE, ROTATION]}).result_rows
    return {int(index) for (index,) in rows}


def apply(plan: Plan, actor: Actor, *, progress: Counts | None = None) -> int:
    """Delete the values and salts that the plan found, and return their number.

    Records them first, and waits until the auditor has signed the record. Safe to repeat after an interruption. Raises `OperationError`
    without having deleted anything if the auditor does not sign the record.
    """
    if not plan.digests:
        return 0
    seen = progress or Unseen()
    seen.total = len(plan.digests)
    settings = settings_for("owner", plan.data)
    store = settings.store
    table = f"{store.base_database}.audit_disclosures"
    attempt = Trail(plan.data, store).attempt(
        ERASURE, actor, identity=store.user, target=plan.target, planned=len(plan.digests)
    )
    with open_store(store) as client, attempt:
        most_s = settings.auditor.checkpoint_s + GRACE_S
        wait_until_signed(client, plan.log, attempt.operation_id, most_s, "nothing was erased")
        _mark(client, table, plan)
        for group in groups_of(plan.digests):
            named = ", ".join(literal(digest) for _, digest in group)
            leaves = f"leaf_index >= {group[0][0]} AND leaf_index <= {group[-1][0]}"
            where = f"WHERE log = {literal(plan.log)} AND {leaves} AND digest IN ({named})"
            delete_rows(client, table, where, len(group), attempt)
            seen.rows += len(group)
    return attempt.changed


def _mark(client: "Client", table: str, plan: Plan) -> None:
    """Insert the marks of all values that are about to be deleted."""
    from assay_runtime.store import insert_json_rows

    now, erased = datetime.now(UTC).isoformat(), erased_hash(plan.digests)
    for start in range(0, len(plan.digests), _PAGE):
        part = plan.digests[start : start + _PAGE]
        rows = ([plan.log, index, mark_of(digest, erased), "", now] for index, digest in part)
        payload = b"\n".join(map(orjson.dumps, rows))
        insert_json_rows(client, table, payload, len(part), ("log", "leaf_index", "digest", "disclosure", "created_at"))
