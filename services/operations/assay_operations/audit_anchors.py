"""List where signed checkpoints of the audit log are, and submit the newest one to each anchor."""

import base64
import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay_auditor.anchors.anchor import DIRECTORY, AnchorError
from assay_auditor.anchors.anchoring import Anchoring
from assay_auditor.anchors.configured import anchors_of
from assay_auditor.anchors.directory import has_file
from assay_auditor.anchors.evidence import Evidence, EvidenceError, Kept
from assay_auditor.keys import CHECKPOINT_FILE, last_notes
from assay_auditor.notes import Checkpoint, NoteError, Signed, parts_of
from assay_auditor.rotation import KeyChain
from assay_operations.audit_log import KEPT, NEWEST, AuditLog, kept_of
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_auditor.anchors.anchor import Anchor

STORE, FILE = "store", "file"


@dataclass(frozen=True)
class Place:
    """A place that has checkpoints, and the newest one that it has.

    `kind`: `store`, `file`, `witness`, `timestamp` or `directory`. The last three are anchors, outside of the store.
    """

    where: str
    kind: str
    size: int = 0
    #: The root, in hex.
    root: str = ""
    #: When it got the checkpoint (ISO 8601, UTC), by its own clock if it signed a time, and the seconds since then.
    at: str = ""
    age_s: float | None = None
    #: Why it does not count; empty if it does.
    problem: str = ""


def anchors(log: AuditLog, vkeys: Sequence[str] = ()) -> list[Place]:
    """Return the newest checkpoint of each place.

    Places are the store, the auditor's file, and every anchor that is set or was used before. Does not ask the anchors.
    Raises `OperationError`.
    """
    keys = log.keys(vkeys)
    return [_in_store(log, keys), _in_file(log, keys), *_anchored(log, keys, vkeys)]


def _in_store(log: AuditLog, keys: KeyChain) -> Place:
    rows = log.query(
        "SELECT note, toUnixTimestamp64Micro(stored_at) FROM audit_checkpoints WHERE log = {log:String} ORDER BY size DESC LIMIT 1"
    )
    if not rows:
        return Place(STORE, STORE, problem="no checkpoint")
    note, micros = rows[0]
    return _place(log, keys, STORE, STORE, note, datetime.fromtimestamp(micros / 1e6, UTC))


def _in_file(log: AuditLog, keys: KeyChain) -> Place:
    path = log.own.directory / CHECKPOINT_FILE
    try:
        notes = last_notes(log.own.directory)
        at = path.stat().st_mtime if notes else 0.0
    except OSError as error:
        return Place(str(path), FILE, problem=f"cannot be read ({error.strerror})")
    if not notes:
        return Place(str(path), FILE, problem="no checkpoint")
    return _place(log, keys, str(path), FILE, notes[-1], datetime.fromtimestamp(at, UTC))


def _anchored(log: AuditLog, keys: KeyChain, vkeys: Sequence[str]) -> Iterator[Place]:
    evidence = log.evidence(vkeys)
    found = _newest_of_each(log)
    for anchor in anchors_of(log.own):
        if anchor.name not in found:
            yield Place(anchor.name, anchor.kind, problem="no checkpoint")
    for kept in sorted(found.values(), key=lambda each: each.anchor):
        unchecked = evidence.unchecked
        try:
            at = evidence.check(kept) or kept.at
        except EvidenceError as error:
            yield Place(kept.anchor, kept.kind, problem=str(error))
            continue
        problem = "not checked: its key or root certificate is not known" if evidence.unchecked > unchecked else ""
        yield _place(log, keys, kept.anchor, kept.kind, kept.note, at, problem)


def _newest_of_each(log: AuditLog) -> dict[str, Kept]:
    """Return the newest checkpoint of each anchor in the store."""
    rows = log.query(
        f"SELECT {KEPT} FROM audit_anchors WHERE log = {{log:String}} "  # noqa: S608 - constants
        "ORDER BY size DESC, anchored_at DESC LIMIT 1 BY anchor"
    )
    return {each.anchor: each for each in map(kept_of, rows)}


def newest_sizes(log: AuditLog, configured: Sequence["Anchor"]) -> dict[str, int]:
    """Return the size of the newest checkpoint of each anchor; 0 without one. Raises the driver's errors.

    A row counts only if the anchor signed it, and the store has the same checkpoint, signed by a key of the log: the row alone may be
    forged. Without a public key at hand, no signature of the log is checked.
    """
    try:
        keys = log.keys(())
    except OperationError:
        keys = None
    evidence = log.evidence(())
    found = {}
    for anchor in configured:
        below, size = log.size() + 1, 0
        while not size and (page := _kept_below(log, anchor, below)):
            below = page[-1].size
            size = next((each.size for each in page if _counts(log, keys, evidence, each)), 0)
        found[anchor.name] = size
    return found


def _kept_below(log: AuditLog, anchor: "Anchor", below: int) -> list[Kept]:
    """Return the rows of the next smaller checkpoints of an anchor, the largest first."""
    query = (
        f"SELECT {KEPT} FROM audit_anchors WHERE log = {{log:String}} AND anchor = {{anchor:String}} AND kind = {{kind:String}} "  # noqa: S608
        "AND size < {below:UInt64} ORDER BY size DESC LIMIT {most:UInt64} WITH TIES"
    )
    rows = log.query(query, anchor=anchor.name, kind=anchor.kind, below=below, most=NEWEST)
    return list(map(kept_of, rows))


def _counts(log: AuditLog, keys: KeyChain | None, evidence: Evidence, kept: Kept) -> bool:
    """True if an anchor has a checkpoint which is one of the log."""
    try:
        evidence.check(kept)
        checkpoint = Checkpoint.parsed(parts_of(kept.note)[0])
    except (EvidenceError, NoteError):
        return False
    directory = log.own.anchor_directory
    with contextlib.suppress(OSError):  # another host may have it
        if kept.kind == DIRECTORY and directory and directory.is_dir() and not has_file(directory, checkpoint):
            return False
    stored = log.query(
        "SELECT DISTINCT note FROM audit_checkpoints WHERE log = {log:String} AND size = {size:UInt64}", size=kept.size
    )
    for (note,) in stored:
        try:
            same = keys.verified(note, log.own.origin) if keys else Checkpoint.parsed(parts_of(note)[0])
        except NoteError:
            continue
        if same == checkpoint:
            return True
    return False


def save(log: AuditLog, directory: Path) -> list[Path]:
    """Write the newest checkpoint of each anchor, and its time stamp, into new files, and return them.

    So that other programs can verify them. Raises `OperationError`; overwrites nothing.
    """
    files: dict[Path, bytes] = {}
    for kept in _newest_of_each(log).values():
        path = directory / re.sub(r"[^\w.-]+", "_", f"{kept.kind}-{kept.anchor}-{kept.size}")
        files[path.with_name(f"{path.name}.txt")] = kept.note.encode()
        if kept.token:
            files[path.with_name(f"{path.name}.tsr")] = base64.b64decode(kept.token)
    for path, content in files.items():
        try:
            with path.open("xb") as file:
                file.write(content)
        except OSError as error:
            raise OperationError("invalid", f"cannot write {path} ({error.strerror})") from None
    return sorted(files)


def _place(log: AuditLog, keys: KeyChain, where: str, kind: str, note: str, at: datetime, problem: str = "") -> Place:
    try:
        found = keys.verified(note, log.own.origin)
    except NoteError as error:
        return Place(where, kind, problem=str(error))
    age_s = round(max(0.0, time.time() - at.timestamp()), 1)
    return Place(where, kind, found.size, found.root.hex(), at.isoformat(timespec="seconds"), age_s, problem)


@dataclass(frozen=True)
class Answer:
    """The answer of an anchor.

    `problem`: why it does not have the checkpoint; empty if it has. `contradicts`: it has another or a longer log of this name.
    """

    where: str
    kind: str
    size: int = 0
    at: str = ""
    problem: str = ""
    contradicts: bool = False


def submit(data: Path, vkeys: Sequence[str] = ()) -> tuple[str, list[Answer]]:
    """Submit the newest checkpoint in the store to every anchor. Return its note and each answer.

    What they sign is kept in the store, so this needs the rights of the auditor. Raises `OperationError`.
    """
    settings = settings_for("auditor", data)
    configured = anchors_of(settings.auditor)
    if not configured:
        raise OperationError(
            "invalid",
            "no anchor is set",
            "see auditor.witnesses, auditor.timestamp_url and auditor.anchor_directory in docs/settings.md",
        )
    with open_store(settings.store) as client:
        log = AuditLog(client, settings.auditor, (settings.store.base_database, settings.store.database))
        keys = log.keys(vkeys)
        anchoring = Anchoring(settings.auditor.origin, settings.store, configured)
        try:
            signed = _newest(log, keys)
            answers = [_answer(anchoring, each, log, keys, signed) for each in configured]
        finally:
            anchoring.close()
    return signed.note, answers


def _newest(log: AuditLog, keys: KeyChain) -> Signed:
    notes = log.newest_notes()
    for each in notes:
        try:
            return Signed(keys.verified(each.note, log.own.origin), each.note)
        except NoteError:
            continue
    what = f"no checkpoint of {log.own.origin!r} by a known key is stored"
    raise OperationError("not_found", what, "start the auditor; see assay doctor")


def _answer(anchoring: Anchoring, anchor: "Anchor", log: AuditLog, keys: KeyChain, signed: Signed) -> Answer:
    while True:
        try:
            anchored = anchoring.submit(anchor, signed, anchoring.known(anchor))
        except AnchorError as error:
            newer = _newest(log, keys) if error.contradicts else signed
            if newer.checkpoint.size > signed.checkpoint.size:  # the auditor was faster
                signed = newer
                continue
            return Answer(anchor.name, anchor.kind, problem=str(error), contradicts=error.contradicts)
        return Answer(anchor.name, anchor.kind, anchored.size, anchored.at.isoformat(timespec="seconds"))
