"""Record the outcome of a verification of the audit log, and read the record."""

import contextlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from assay_auditor.last_verification import OPERATION as VERIFIED
from assay_auditor.verification import Mismatch
from assay_operations.actor import Actor
from assay_operations.audit import Trail
from assay_operations.audit_verification import Result
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_runtime.store_errors import REFUSED
from assay_schema.settings import SettingsError

#: The engine's errors for a user who cannot insert records.
_NO_RIGHT = {REFUSED[name] for name in ("READONLY", "DATABASE_ACCESS_DENIED", "ACCESS_DENIED")}
_NOT_RECORDED = "this verification is not recorded, so the console does not show it"


@dataclass(frozen=True)
class Verified:
    """The outcome of a recorded verification.

    `complete`: every row was read. `first`: kind of the first mismatch, and its leaf; empty for an intact log.
    """

    at: datetime
    by: str
    intact: bool
    leaves: int
    covered: int
    mismatches: int
    complete: bool
    first: str = ""
    first_leaf: int | None = None

    @property
    def found(self) -> str:
        """The first mismatch in brackets, for a sentence; empty without one."""
        place = "" if self.first_leaf is None else f" at leaf {self.first_leaf:,}"
        return f" ({self.first.replace('_', ' ')}{place})" if self.first else ""


def record_verification(data: Path, result: Result, actor: Actor, *, is_partial: bool, first: Mismatch | None) -> str:
    """Record the outcome of a verification. Return why it is not recorded; '' if it is.

    `is_partial`: some rows were not read. Needs the operator's right to insert records, and raises nothing without it, or if the
    store is away: a verification needs no more than a reader's rights.
    """
    target: dict[str, Any] = {
        "log": result.origin,
        "leaves": result.leaves,
        "covered": result.anchored,
        "mismatches": result.mismatches,
        "complete": not is_partial,
    }
    if first is not None:
        target |= {"first": first.kind, "first_leaf": first.leaf_index}
    try:
        store = settings_for("operator", data).store
    except (OperationError, SettingsError) as error:
        return f"{_NOT_RECORDED}: {error}"
    try:
        with open_store(store) as client:
            Trail(data, store).note(
                client, VERIFIED, actor, identity=store.user, target=target, outcome="failed" if first else "done",
                planned=result.leaves, error_kind="mismatch" if first else "",
            )  # fmt: skip
    except OperationError as error:
        if _is_for_a_right(error.__cause__):
            return f"{_NOT_RECORDED}: the store takes no record from {store.user!r}, only from operator and owner"
        return f"{_NOT_RECORDED}: {error}"
    return ""


def _is_for_a_right(error: BaseException | None) -> bool:
    """True if the user may only read: the engine refused the record, or the driver did not send it."""
    return getattr(error, "code", None) in _NO_RIGHT or str(error).endswith(" is readonly")


def verified_of(at: datetime, actor: str, outcome: str, target: str) -> Verified:
    """Return the outcome that a record tells. Pure; what a malformed record does not say is 0."""
    found: Any = None
    with contextlib.suppress(orjson.JSONDecodeError):
        found = orjson.loads(target)
    facts = found if isinstance(found, dict) else {}

    def number(name: str) -> int:
        value = facts.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    first = facts.get("first")
    return Verified(
        at=at,
        by=actor,
        intact=outcome == "done",
        leaves=number("leaves"),
        covered=number("covered"),
        mismatches=number("mismatches"),
        complete=facts.get("complete") is True,
        first=first if isinstance(first, str) else "",
        first_leaf=number("first_leaf") if isinstance(facts.get("first_leaf"), int) else None,
    )
