"""Read the state of the audit log: size, checkpoints, waiting rows and the last verification."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from assay_auditor.bundle import ROTATIONS
from assay_auditor.keys import CHECKPOINT_FILE, PUBLIC_FILE, ROTATION_FILE, ends_torn, last_notes, notes_in
from assay_auditor.last_verification import OPERATION as VERIFIED
from assay_auditor.notes import Checkpoint, NoteError, Verifier, key_names
from assay_auditor.rotation import KeyChain
from assay_operations.audit_log import AuditLog
from assay_operations.audit_reads.rows import EVENT_TABLES
from assay_operations.audit_verified import Verified, verified_of
from assay_operations.doctor.finding import age
from assay_operations.time_bounds import utc
from assay_schema.settings import AuditorSettings
from assay_ui.formats import counted

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Events that are counted if the log lacks them.
BEHIND_MAX = 10_000
#: Rows after a verification that are looked at, to say if they are records of verifications alone.
CHECKS_MAX = 1_000
#: Checkpoints of anchors that are looked at, the newest.
ANCHORED_MAX = 1_000
#: Places that one sentence names.
_NAMED_PLACES = 3
#: Seconds without a checkpoint, or without a stored event, after which the auditor is taken for stopped.
LATE_S = 900.0

State = Literal["good", "warn", "bad", "off"]


@dataclass(frozen=True)
class Signed:
    """The newest checkpoint in the store. `root` is in hex.

    `signature` is `unchecked` if the reader knows no public key; `key` names the keys that signed, as NAME+ID.
    """

    size: int
    root: str
    at: datetime
    age_s: float
    key: str
    signature: Literal["valid", "bad", "unchecked"]


@dataclass(frozen=True)
class Place:
    """A place that keeps checkpoints, and the newest one there. `problem`: why it does not count.

    `is_wrong`: something is there that does not verify; False if there is none, or if it cannot be read here.
    """

    where: str
    size: int | None
    root: str = ""
    problem: str = ""
    is_wrong: bool = False


@dataclass(frozen=True)
class Standing:
    """The state of the log: its size, newest checkpoint, waiting rows and last recorded verification."""

    log: str
    leaves: int
    #: When the newest leaf was written; None without one.
    newest_at: datetime | None
    checkpoint: Signed | None
    #: Leaves behind the newest checkpoint, and the seconds that the first of them has waited.
    waiting: int
    waiting_s: float
    #: Stored events that the log lacks, at most `BEHIND_MAX`, and the seconds that the oldest of them has waited.
    behind: int
    behind_s: float
    #: The newest recorded verification that read every row, or that found a mismatch.
    verified: Verified | None
    verified_s: float
    #: Leaves that were written after the last verification.
    since_verified: int
    #: True if these are records of verifications alone, such as that of the last one.
    only_verifications: bool = False
    #: A newer recorded verification of some rows, which found no mismatch, and its age.
    partial: Verified | None = None
    partial_s: float = 0.0
    places: tuple[Place, ...] = ()
    state: State = "off"
    sentence: str = ""
    #: The next command; empty if nothing is to be done.
    command: str = ""


def standing(client: "Client", own: AuditorSettings) -> Standing:
    """Read the state of the log, and compare the checkpoints of the store, its anchors and the file."""
    log = AuditLog(client, own)
    # A checkpoint is in the file before it is in the store, and its leaves are before both: what is read later may have more.
    in_file = place_of_file(own)
    notes = log.query(
        "SELECT size, root, note, places, stored_at, toFloat64(dateDiff('millisecond', stored_at, now64(6, 'UTC'))) / 1000 "
        "FROM audit_checkpoints WHERE log = {log:String} ORDER BY log DESC, size DESC LIMIT 1"
    )
    signed = _signed(notes[0], log) if notes else None
    anchored = _anchored(log)
    newest = log.query(
        "SELECT leaf_index, stored_at FROM audit_leaves WHERE log = {log:String} ORDER BY log DESC, leaf_index DESC LIMIT 1"
    )
    leaves = int(newest[0][0]) + 1 if newest else 0
    size = signed.size if signed else 0
    behind, behind_s = _behind(log, size, notes[0][3] if notes else {})
    (verified, verified_s), (partial, partial_s) = _verifications(log)
    since_verified = max(0, leaves - verified.leaves) if verified else 0
    found = Standing(
        log=own.origin,
        leaves=leaves,
        newest_at=utc(newest[0][1]) if newest else None,
        checkpoint=signed,
        waiting=max(0, leaves - size),
        waiting_s=round(max(0.0, log.age_s(size)), 1) if leaves > size else 0.0,
        behind=behind,
        behind_s=behind_s,
        verified=verified,
        verified_s=verified_s,
        since_verified=since_verified,
        only_verifications=0 < since_verified <= CHECKS_MAX and _are_verifications(log, leaves - since_verified),
        partial=partial,
        partial_s=partial_s,
        places=(_in_store(signed), *anchored, in_file),
    )
    return with_sentence(found, own)


def _in_store(signed: Signed | None) -> Place:
    if signed is None:
        return Place("the store", None, problem="no checkpoint")
    is_bad = signed.signature == "bad"
    return Place("the store", signed.size, signed.root, "its signature is not valid" if is_bad else "", is_bad)


def _anchored(log: AuditLog) -> list[Place]:
    """Return the newest checkpoint of each anchor that answered lately. Only a verification checks what they signed."""
    rows = log.query(
        "SELECT kind, anchor, size, note FROM (SELECT kind, anchor, size, note FROM audit_anchors WHERE log = {log:String} "
        "ORDER BY log DESC, size DESC LIMIT {most:UInt64}) ORDER BY size DESC LIMIT 1 BY anchor",
        most=ANCHORED_MAX,
    )
    return [_anchor(f"{kind} {anchor}", int(size), str(note), log.own) for kind, anchor, size, note in rows]


def _anchor(where: str, size: int, note: str, own: AuditorSettings) -> Place:
    try:
        found = Checkpoint.parsed(note)
    except NoteError as error:
        return Place(where, None, problem=f"its checkpoint cannot be read: {error}", is_wrong=True)
    if (found.origin, found.size) != (own.origin, size):
        return Place(where, None, problem="its checkpoint is of another log or size", is_wrong=True)
    return Place(where, found.size, found.root.hex())


def _signed(row: Sequence[Any], log: AuditLog) -> Signed:
    own = log.own
    size, root, note, _, at, age_s = row
    try:
        found = Checkpoint.parsed(note)
        is_same = (found.origin, found.size, found.root.hex()) == (own.origin, int(size), root)
        keys = ", ".join(key_names(note))
    except ValueError:
        is_same, keys = False, ""
    signature: Literal["valid", "bad", "unchecked"] = "unchecked"
    if not is_same:
        signature = "bad"
    elif own.vkey:
        signature = "valid" if _is_by_a_trusted_key(note, log) else "bad"
    return Signed(int(size), str(root), utc(at), round(max(0.0, float(age_s)), 1), keys, signature)


def _is_by_a_trusted_key(note: str, log: AuditLog) -> bool:
    """True if the key of the settings, or one that replaced it, signed a checkpoint."""
    try:
        given = [Verifier.parsed(log.own.vkey)]
        try:
            Checkpoint.verified(note, given, log.own.origin)
        except NoteError:  # rotations are read only if they matter
            KeyChain(given, log.stored_rotations()).verified(note, log.own.origin)
    except NoteError:
        return False
    return True


def _behind(log: AuditLog, size: int, places: Mapping[str, int]) -> tuple[int, float]:
    """Return stored events below the watermark that the log has not reached, and the age of the oldest one."""
    rows = log.query(
        "SELECT max(place) FROM audit_leaves WHERE log = {log:String} AND leaf_index >= {size:UInt64} "
        "AND kind IN ('tool_call', 'server_event')",
        size=size,
    )
    place = max(int(rows[0][0]), int(places.get("event", 0)))
    of_table = (
        "SELECT created_at FROM {table} WHERE id > {{place:UInt64}} AND id <= (SELECT watermark FROM watermark) "
        "LIMIT {{most:UInt64}}"
    )
    both = " UNION ALL ".join(f"({of_table.format(table=table)})" for table in EVENT_TABLES)
    count, age_s = log.query(
        f"SELECT least(count(), {{most:UInt64}}), toFloat64(if(count() = 0, 0, max(dateDiff('second', created_at, now64(3, 'UTC'))))) "  # noqa: S608
        f"FROM ({both})",
        place=place,
        most=BEHIND_MAX,
    )[0]
    return int(count), max(0.0, float(age_s))


def _verifications(log: AuditLog) -> tuple[tuple[Verified | None, float], tuple[Verified | None, float]]:
    """Return the newest verification that decides, and a newer one that does not, each with its age in seconds.

    One of some rows that found no mismatch does not decide: the mismatch that an earlier one found may be elsewhere.
    """
    rows = log.query(
        "SELECT at, actor, toString(outcome), target, toFloat64(dateDiff('millisecond', stored_at, now64(3, 'UTC'))) / 1000, "
        "outcome != 'done' OR JSONExtractRaw(target, 'complete') = 'true' AS decides FROM operations_audit "
        "WHERE operation = {operation:String} AND JSONExtractString(target, 'log') = {log:String} "
        "ORDER BY stored_at DESC LIMIT 1 BY decides",
        operation=VERIFIED,
    )
    decided: tuple[Verified | None, float] = None, 0.0
    partial: tuple[Verified | None, float] = None, 0.0
    for at, actor, outcome, target, age_s, decides in rows:
        found = verified_of(utc(at), str(actor), str(outcome), str(target)), round(max(0.0, float(age_s)), 1)
        if decides:
            decided = found
        elif decided[0] is None:  # the newest comes first
            partial = found
    return decided, partial


def _are_verifications(log: AuditLog, start: int) -> bool:
    """Return True if every row from a leaf on is the record of a verification."""
    others = log.query(
        "SELECT count() FROM audit_rows WHERE log = {log:String} AND leaf_index >= {start:UInt64} "
        "AND NOT (kind = 'operation' AND tool_name = {operation:String})",
        start=start,
        operation=VERIFIED,
    )
    return not others[0][0]


def with_key(own: AuditorSettings) -> AuditorSettings:
    """Add the public key in the log's directory to settings that name none, if it can be read."""
    if own.vkey:
        return own
    try:
        return own.model_copy(update={"vkey": (own.directory / PUBLIC_FILE).read_text(errors="replace").strip()})
    except OSError:
        return own


def place_of_file(own: AuditorSettings) -> Place:
    """Return the newest checkpoint in the auditor's file, if this process can read it."""
    path = own.directory / CHECKPOINT_FILE
    where = str(path)
    try:
        notes = last_notes(path.parent)
        if not notes and path.exists() and not ends_torn(path, own.origin) and path.stat().st_size:
            return Place(where, None, problem="no checkpoint in it can be read", is_wrong=True)
        if not notes:
            return Place(where, None, problem="not on this host, or empty")
        found = Checkpoint.parsed(notes[-1])
        if own.vkey:
            rotations = path.with_name(ROTATION_FILE)
            stated = islice(notes_in(rotations), ROTATIONS) if rotations.exists() else ()
            KeyChain([Verifier.parsed(own.vkey)], stated).verified(notes[-1], own.origin)
    except OSError as error:
        return Place(where, None, problem=f"this process cannot read it ({error.strerror or type(error).__name__})")
    except ValueError as error:
        return Place(where, None, problem=f"its last checkpoint does not count: {error}", is_wrong=True)
    if found.origin != own.origin:
        return Place(where, None, problem=f"it is of the log {found.origin!r}", is_wrong=True)
    return Place(where, found.size, found.root.hex())


def with_sentence(found: Standing, own: AuditorSettings) -> Standing:
    """Add the sentence that says whether the log can be trusted, and the next command. Pure."""
    state, sentence, command = _sentence(found, own)
    return replace(found, state=state, sentence=sentence, command=command)


def _sentence(found: Standing, own: AuditorSettings) -> tuple[State, str, str]:
    full, signed = "assay audit verify --full", found.checkpoint
    places = [each for each in found.places if each.size is not None]
    verified = found.verified
    if signed and signed.size > found.leaves:
        what = f"Rows are missing at the end: {signed.size:,} were signed, and {found.leaves:,} are there."
        return "bad", what, full
    if signed and signed.signature == "bad":
        return "bad", "The newest checkpoint does not have a valid signature of this log.", full
    if len({(each.size, each.root) for each in places}) > len({each.size for each in places}):
        return "bad", "Two different logs of the same size were signed.", full
    if any(each.size is not None and each.size > found.leaves for each in places):
        where = next(each.where for each in found.places if each.size is not None and each.size > found.leaves)
        return "bad", f"{where} has a checkpoint of more rows than the store has.", full
    if verified and not verified.intact:
        what = f"A verification {age(found.verified_s)} ago found that the log was changed{verified.found}."
        return "bad", what, full
    wrong = [each.where for each in found.places if each.is_wrong]
    if wrong:
        return "warn", f"The checkpoint of {' and of '.join(wrong[:_NAMED_PLACES])} does not verify.", full
    if not found.leaves:
        if found.behind:
            return "warn", "The log is empty, and events wait for it: the auditor is not running.", "assay doctor"
        return "off", "The log is empty: no tool call, loss or operation was recorded yet.", ""
    late = own.max_unanchored_s or LATE_S
    if found.behind and found.behind_s > LATE_S:
        what = f"Stored events have waited for the log for {age(found.behind_s)}: the auditor is not running."
        return "warn", what, "assay doctor"
    if found.waiting_s > late:
        what = (
            f"Rows have had no signed checkpoint for {age(found.waiting_s)}: the auditor is not running or cannot sign."
        )
        return "warn", what, "assay doctor"
    if not (verified and verified.complete):
        some = f"Only a part of the rows was verified, {age(found.partial_s)} ago." if found.partial else ""
        return "warn", some or "No one has verified this log yet.", "assay audit verify"
    since = _since(found)
    part = f" A part was checked again {age(found.partial_s)} ago." if found.partial else ""
    what = f"The log is whole up to {verified.at:%Y-%m-%d %H:%M}, checked {age(found.verified_s)} ago by {verified.by}.{since}{part}"
    return "good", what, ""


def _since(found: Standing) -> str:
    if not found.since_verified:
        return ""
    if found.only_verifications:
        return f" Since then only {'that check was' if found.since_verified == 1 else 'checks were'} recorded."
    return f" {counted(found.since_verified, 'row was', 'rows were')} written since."
