"""Replace the key that signs the audit log: `plan_rotate`, then `apply`.

The auditor replaces it; this prepares and records it.
"""

import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from assay_auditor.keys import KEY_FILE, PUBLIC_FILE, KeyFileError, next_signer, prepare_signer
from assay_auditor.notes import NoteError, Signer, Verifier
from assay_auditor.rotation import OPERATION, target_of
from assay_operations import audit_expire
from assay_operations.actor import Actor
from assay_operations.audit import Trail
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError

_PAUSE_S = 0.2


@dataclass(frozen=True)
class Plan:
    """The key that is replaced, and its log."""

    data: Path
    log: str
    directory: Path
    old_vkey: str


def plan_rotate(data: Path) -> Plan:
    """Find the key in the directory of the auditor. Raises `OperationError`."""
    own = settings_for("owner", data).auditor
    path = own.directory / PUBLIC_FILE
    try:
        vkey = path.read_text().strip()
        Verifier.parsed(vkey)
        if not (own.directory / KEY_FILE).exists():
            raise OperationError("not_found", f"no key is in {own.directory}", "run this where the auditor runs")
    except OSError as error:
        hint = "run this where the auditor runs, or set auditor.directory"
        raise OperationError("not_found", f"cannot read {path} ({error.strerror})", hint) from None
    except NoteError as error:
        raise OperationError("conflict", f"{path}: {error}", "restart the auditor: it writes the file") from None
    return Plan(data, own.origin, own.directory, vkey)


def apply(plan: Plan, actor: Actor) -> str:
    """Record the change, have the auditor replace the key, and return the new public key.

    The old key signs the record before. Safe to repeat after an interruption: a change that the auditor has begun is completed.
    Raises `OperationError`.
    """
    settings = settings_for("owner", plan.data)
    most_s = settings.auditor.checkpoint_s + audit_expire.GRACE_S
    try:
        new = next_signer(plan.directory, plan.log) or Signer(plan.log, secrets.token_bytes(32))
    except KeyFileError as error:
        raise OperationError("conflict", str(error)) from None
    target = target_of(Verifier.parsed(plan.old_vkey), new.verifier)
    attempt = Trail(plan.data, settings.store).attempt(
        OPERATION, actor, identity=settings.store.user, target=target, planned=1
    )
    with open_store(settings.store) as client, attempt:
        audit_expire.wait_until_signed(client, plan.log, attempt.operation_id, most_s, "the key is the same as before")
        if plan_rotate(plan.data).old_vkey != plan.old_vkey:
            raise OperationError(
                "conflict", "the key was replaced meanwhile", "see assay audit key, and run this again if need be"
            )
        try:
            prepare_signer(plan.directory, new)
        except KeyFileError as error:
            raise OperationError("refused", str(error)) from None
        _wait_until_replaced(plan.directory, new.verifier.vkey, most_s)
        attempt.changed = 1
    return new.verifier.vkey


def _wait_until_replaced(directory: Path, vkey: str, most_s: float) -> None:
    deadline = time.monotonic() + most_s
    while (directory / PUBLIC_FILE).read_text().strip() != vkey:
        if time.monotonic() >= deadline:
            raise OperationError(
                "unavailable",
                f"the auditor has not replaced the key within {most_s:.0f} s",
                "it does so when it runs; see assay doctor, and assay audit key for the key in use",
            )
        time.sleep(_PAUSE_S)
