"""The recorded outcome of the last verification, read from the store and exported as metrics.

`assay audit verify` records its outcome as an operator, who does not reach the metrics of a service. So the auditor reads the record.
"""

import logging
import threading
from dataclasses import dataclass

from assay_runtime import metrics
from assay_runtime.store import Client, connect, describe
from assay_schema.settings import StoreSettings

logger = logging.getLogger(__name__)

#: The operation whose records have the outcome.
OPERATION = "audit verify"
#: Seconds between two reads.
EVERY_S = 60.0


@dataclass(frozen=True)
class LastVerification:
    """The newest recorded verification that read every row or found a mismatch.

    Times are Unix seconds by the store's clock. One of some rows counts only if it found a mismatch: the mismatch that an earlier one found
    may be elsewhere.
    """

    now_s: float
    #: When the first leaf of the log was written; None without one.
    began_s: float | None = None
    #: When the outcome was stored; None if none is recorded. The time in the record itself is by the clock of the host that verified.
    at_s: float | None = None
    found_mismatch: bool = False
    mismatches: int = 0


def last_verification(client: Client, database: str, log: str) -> LastVerification:
    """Read the outcome of the last verification of a log from the views of a database.

    Raises the driver's errors.
    """
    began = client.query(
        f"SELECT toFloat64(min(stored_at)) FROM {database}.audit_leaves "  # noqa: S608 - our own name
        "WHERE log = {log:String} AND leaf_index = 0 HAVING count() > 0",
        parameters={"log": log},
    ).result_rows
    last = client.query(
        "SELECT toFloat64(stored_at), outcome != 'done', JSONExtractUInt(target, 'mismatches') "  # noqa: S608 - our own name
        f"FROM {database}.operations_audit WHERE operation = {{operation:String}} AND JSONExtractString(target, 'log') = {{log:String}} "
        "AND (outcome != 'done' OR JSONExtractRaw(target, 'complete') = 'true') ORDER BY stored_at DESC LIMIT 1",
        parameters={"log": log, "operation": OPERATION},
    ).result_rows
    [[now_s]] = client.query("SELECT toFloat64(now64(6))").result_rows
    began_s = float(began[0][0]) if began else None
    if not last:
        return LastVerification(float(now_s), began_s)
    return LastVerification(float(now_s), began_s, float(last[0][0]), bool(last[0][1]), int(last[0][2]))


def export(found: LastVerification) -> None:
    """Set the metrics of a verification."""
    metrics.AUDIT_VERIFICATION_MISMATCH.set(found.found_mismatch)
    metrics.AUDIT_VERIFIED_SECONDS.set(found.at_s or found.began_s or 0)


def watch(store: StoreSettings, log: str, ended: threading.Event) -> None:
    """Read and export the last verification every minute until `ended`.

    A store that is away leaves the metrics as they are.
    """
    problem = ""
    while not ended.is_set():
        try:
            with connect(store) as client:
                export(last_verification(client, store.database, log))
            problem = ""
        except Exception as error:  # noqa: BLE001 - the store, the driver; the next read tries again
            name, _ = describe(error)
            if name != problem:
                logger.warning("the last verification cannot be read", extra={"error_class": name})
            problem = name
        ended.wait(EVERY_S)
