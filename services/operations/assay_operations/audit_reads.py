"""Read the audit log for people: its state, pages of rows, one row, and the calls of a session.

Nothing here reads the values of personal fields: a reader of `audit_disclosures` with its columns `log`, `leaf_index` and `digest` is
enough. Names of agents and people, comments and sessions come from the events and records that rows are about, unless they were erased
from the log.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import orjson

from assay_auditor.bundle import ROTATIONS
from assay_auditor.chain import GENESIS, chain_hash
from assay_auditor.keys import CHECKPOINT_FILE, PUBLIC_FILE, ROTATION_FILE, ends_torn, last_notes, notes_in
from assay_auditor.last_verification import OPERATION as VERIFIED
from assay_auditor.merkle import leaf_hash
from assay_auditor.notes import Checkpoint, NoteError, Verifier, key_names
from assay_auditor.rotation import KeyChain
from assay_auditor.rows import leaf_data, record_id
from assay_operations.audit_log import AuditLog
from assay_operations.audit_verified import Verified, verified_of
from assay_operations.doctor.checks import age
from assay_operations.errors import OperationError
from assay_operations.events.filters import Range
from assay_schema.settings import AuditorSettings
from assay_ui.formats import counted

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Kinds of rows, and what a call, a loss or an operation ended with.
KINDS = ("tool_call", "server_event", "lost", "operation")
OUTCOMES = (
    "success", "empty", "partial", "degraded", "error", "refused", "lost", "started", "done", "failed", "interrupted",
)  # fmt: skip
#: Rows of the log that one page looks at, one part after another, until it is full.
PARTS = (2_000, 10_000, 50_000, 250_000)
#: Rows of a page of a list that is read whole.
PAGE_ROWS = 1_000
#: Events that are counted if the log lacks them, and events or records that a filter by session or person names.
BEHIND_MAX, NAMED_MAX = 10_000, 2_000
#: Rows after a verification that are looked at, to say if they are records of verifications alone.
CHECKS_MAX = 1_000
#: Checkpoints of anchors that are looked at, the newest.
ANCHORED_MAX = 1_000
#: Places that one sentence names.
_NAMED_PLACES = 3
#: Seconds without a checkpoint, or without a stored event, after which the auditor is taken for stopped.
LATE_S = 900.0

_COLUMNS = (
    "leaf_index, occurred_at, toString(kind), toString(source_id), project, service, toString(tool_name), toString(status), "
    "error_kind, refusal_reason, CAST(pii_attempted, 'Array(String)'), CAST(pii_blocked, 'Array(String)'), late, caller_id, place, sd"
)

_EVENT_TABLES = ("tool_calls", "server_events")
_TIMES = "{column} >= fromUnixTimestamp64Milli({{from:Int64}}, 'UTC') AND {column} < fromUnixTimestamp64Milli({{to:Int64}}, 'UTC')"

State = Literal["good", "warn", "bad", "off"]


# --- the state of the log


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
        newest_at=_utc(newest[0][1]) if newest else None,
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
    return Signed(int(size), str(root), _utc(at), round(max(0.0, float(age_s)), 1), keys, signature)


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
    both = " UNION ALL ".join(f"({of_table.format(table=table)})" for table in _EVENT_TABLES)
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
        found = verified_of(_utc(at), str(actor), str(outcome), str(target)), round(max(0.0, float(age_s)), 1)
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


# --- rows


@dataclass(frozen=True)
class RowFilter:
    """Conditions that a row must all meet; empty ones hold for every row."""

    project: str = ""
    kind: str = ""
    status: str = ""
    tool: str = ""
    service: str = ""
    #: The agent of a call, or the person of an operation.
    actor: str = ""
    #: The session whose calls are looked for.
    session: str = ""


@dataclass(frozen=True)
class LogRow:
    """A row of the log, without the values of its personal fields.

    `who`, `comment` and `target` (of an operation) and `session_id` are of the record that the row is about. `who_state`
    says why `who` is empty; the others are empty too if any field of the row was erased.
    """

    leaf_index: int
    occurred_at: datetime
    kind: str
    source_id: str
    project: str
    service: str
    tool_name: str
    status: str
    reason: str
    attempted: tuple[str, ...]
    blocked: tuple[str, ...]
    late: bool
    covered: bool
    who: str = ""
    who_state: Literal["known", "sealed", "erased", "none"] = "none"
    comment: str = ""
    #: What an operation was applied to: ids, counts and filters by name.
    target: dict[str, Any] = field(default_factory=dict)
    session_id: str = ""


@dataclass(frozen=True)
class Rows:
    """A page of rows, newest first.

    `next`: the leaf below which the next page begins; None at the end of the range. `complete`: True if no row of the range that meets the
    conditions is older than these, or missing between them. `left_out`: which rows a filter by session or person did not look for.
    """

    rows: tuple[LogRow, ...]
    next: int | None
    complete: bool
    left_out: str = ""


def log_rows(
    client: "Client", own: AuditorSettings, wanted: RowFilter, span: Range, *, below: int | None = None, limit: int = 50
) -> Rows:
    """Return a page of rows that happened in a range, newest first.

    `below`: the cursor of the page before it. Looks at `PARTS` rows at most. Raises `OperationError`.
    """
    return _page(AuditLog(client, own), wanted, span, below, limit)


def listed(log: AuditLog, wanted: RowFilter, span: Range, limit: int) -> Iterator[Rows]:
    """Yield pages of rows that happened in a range, newest first.

    `limit`: rows of all pages together. Raises `OperationError`.
    """
    below, rest = None, limit
    while rest > 0:
        page = _page(log, wanted, span, below, min(rest, PAGE_ROWS))
        yield page
        below, rest = page.next, rest - len(page.rows)
        if below is None:
            return


def _page(log: AuditLog, wanted: RowFilter, span: Range, below: int | None, limit: int) -> Rows:
    where, values = _conditions(wanted)
    named, left_out = _named(log, wanted, span)
    if wanted.session and not named:
        return Rows((), None, not left_out, left_out)
    times = _TIMES.format(column="occurred_at")
    values |= {"from": span.from_ms, "to": span.to_ms, "most": limit + 1}
    first, end = _ends(log, times, values)
    covered = _covered(log)
    found: list[LogRow] = []
    bottom = end if below is None else min(end, below)
    for part in PARTS:
        if bottom <= first:
            break
        upper, bottom = bottom, max(first, bottom - part)
        only, more = _only(log, named, wanted, bottom, upper)
        rows = log.query(
            f"SELECT DISTINCT {_COLUMNS} FROM audit_rows WHERE log = {{log:String}} AND leaf_index >= {{start:UInt64}} "  # noqa: S608
            f"AND leaf_index < {{end:UInt64}} AND {times}{where}{only} ORDER BY leaf_index DESC LIMIT {{most:UInt64}}",
            start=bottom,
            end=upper,
            **values,
            **more,
        )
        # A name that was erased from the log finds nothing there, although the record has it.
        found += [each for each in _with_people(log, rows, covered) if wanted.actor in ("", each.who)]
        if len(found) > limit:
            return Rows(tuple(found[:limit]), found[limit - 1].leaf_index, False, left_out)
        if len(rows) > limit:
            return Rows(tuple(found), int(rows[-1][0]), False, left_out)
    return Rows(tuple(found), bottom if bottom > first else None, bottom <= first and not left_out, left_out)


def _conditions(wanted: RowFilter) -> tuple[str, dict[str, Any]]:
    columns = {"project": wanted.project, "kind": wanted.kind, "status": wanted.status, "tool_name": wanted.tool}
    columns["service"] = wanted.service
    given = {name: value for name, value in columns.items() if value}
    return "".join(f" AND {name} = {{{name}:String}}" for name in given), dict(given)


def _named(log: AuditLog, wanted: RowFilter, span: Range) -> tuple[list[str], str]:
    """Return the ids of the newest events of a session, or records of a person, in a range, and which ones are left out."""
    values = {"session": wanted.session, "actor": wanted.actor, "from": span.from_ms, "to": span.to_ms}
    if wanted.session:
        of_table = (
            "SELECT event_id, occurred_at FROM {table} WHERE session_id = {{session:String}} AND {times} "
            "ORDER BY occurred_at DESC LIMIT {{most:UInt64}}"
        )
        times = _TIMES.format(column="occurred_at")
        both = " UNION ALL ".join(f"({of_table.format(table=table, times=times)})" for table in _EVENT_TABLES)
        query, what = f"SELECT toString(event_id) FROM ({both}) ORDER BY occurred_at DESC", "calls of this session"  # noqa: S608
    elif wanted.actor:
        query = (
            "SELECT toString(operation_id), toString(outcome) FROM operations_audit "  # noqa: S608
            f"WHERE actor = {{actor:String}} AND {_TIMES.format(column='at')} ORDER BY at DESC"
        )
        what = "operations of this person"
    else:
        return [], ""
    rows = log.query(query + " LIMIT {most:UInt64}", most=NAMED_MAX + 1, **values)
    left_out = f"Only the newest {NAMED_MAX:,} {what} in this range were looked for." if len(rows) > NAMED_MAX else ""
    return [str(row[0]) if wanted.session else record_id(*map(str, row)) for row in rows[:NAMED_MAX]], left_out


def _only(log: AuditLog, named: Sequence[str], wanted: RowFilter, start: int, end: int) -> tuple[str, dict[str, Any]]:
    """Return the condition of a part for a filter by session or person."""
    if wanted.session:
        return " AND source_id IN {named:Array(UUID)}", {"named": list(named)}
    if not wanted.actor:
        return "", {}
    low, high = log.query(
        "SELECT toUnixTimestamp64Micro(min(created_at)), toUnixTimestamp64Micro(max(created_at)) FROM audit_rows "
        "WHERE log = {log:String} AND leaf_index >= {start:UInt64} AND leaf_index < {end:UInt64}",
        start=start,
        end=end,
    )[0]
    calls = " UNION ALL ".join(
        f"SELECT event_id FROM {table} WHERE agent_name = {{actor:String}} "  # noqa: S608
        "AND created_at >= fromUnixTimestamp64Micro({low:Int64}, 'UTC') AND created_at <= fromUnixTimestamp64Micro({high:Int64}, 'UTC')"
        for table in _EVENT_TABLES
    )
    values = {"named": list(named), "actor": wanted.actor, "low": int(low), "high": int(high)}
    return f" AND (source_id IN {{named:Array(UUID)}} OR source_id IN ({calls}))", values


def _ends(log: AuditLog, times: str, values: Mapping[str, Any]) -> tuple[int, int]:
    """Return the first leaf of a range of time, and the place behind its last one."""
    found = []
    for order in ("log, leaf_index", "log DESC, leaf_index DESC"):
        rows = log.query(
            f"SELECT leaf_index FROM audit_rows WHERE log = {{log:String}} AND {times} ORDER BY {order} LIMIT 1",  # noqa: S608
            **{name: values[name] for name in ("from", "to")},
        )
        if not rows:
            return 0, 0
        found.append(int(rows[0][0]))
    return found[0], found[1] + 1


def _covered(log: AuditLog) -> int:
    query = "SELECT size FROM audit_checkpoints WHERE log = {log:String} ORDER BY log DESC, size DESC LIMIT 1"
    rows = log.query(query)
    return int(rows[0][0]) if rows else 0


def _with_people(log: AuditLog, rows: Sequence[Sequence[Any]], covered: int) -> list[LogRow]:
    """Return rows with what the records that they are about say of people."""
    events = [row[3] for row in rows if row[2] in ("tool_call", "server_event")]
    called = _callers(log, events)
    records = _records(log, [int(row[14]) for row in rows if row[2] == "operation"])
    kept = _kept(log, [int(row[0]) for row in rows if row[15]])
    return [_row(row, covered, called, records, kept) for row in rows]


def _row(
    row: Sequence[Any],
    covered: int,
    called: Mapping[str, tuple[str, str]],
    records: Mapping[str, tuple[str, str, str]],
    kept: set[tuple[int, str]],
) -> LogRow:
    index, at, kind, source, project, service, tool, status, error, refusal, attempted, blocked, late, caller = row[:14]
    digests = row[15]
    who, session = called.get(source, ("", ""))
    comment = target = ""
    if kind == "operation":
        who, comment, target = records.get(source, ("", "", ""))
    if any((int(index), each) not in kept for each in digests):  # a digest does not say of which field it is
        comment = target = session = ""
    is_erased = bool(caller) and (int(index), caller) not in kept
    state: Literal["known", "sealed", "erased", "none"] = (
        "none" if not caller else "erased" if is_erased else "known" if who else "sealed"
    )
    return LogRow(
        leaf_index=int(index),
        occurred_at=_utc(at),
        kind=kind,
        source_id=source,
        project=project,
        service=service,
        tool_name=tool,
        status=status,
        reason=refusal or error or "",
        attempted=tuple(attempted),
        blocked=tuple(blocked),
        late=bool(late),
        covered=int(index) < covered,
        who=who if state == "known" else "",
        who_state=state,
        comment=comment,
        target=_facts(target),
        session_id=session,
    )


def _facts(target: str) -> dict[str, Any]:
    """Return the target of a record; empty if it is malformed."""
    try:
        found = orjson.loads(target or "{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _callers(log: AuditLog, events: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return agent and session of captured events, as far as they are stored."""
    if not events:
        return {}
    times = [UUID(each).int >> 80 for each in events]
    found: dict[str, tuple[str, str]] = {}
    for table in _EVENT_TABLES:
        rows = log.query(
            f"SELECT toString(event_id), coalesce(toString(agent_name), ''), coalesce(session_id, '') FROM {table} "  # noqa: S608
            "WHERE event_id IN {ids:Array(UUID)} AND event_time >= fromUnixTimestamp64Milli({low:Int64}, 'UTC') "
            "AND event_time <= fromUnixTimestamp64Milli({high:Int64}, 'UTC')",
            ids=list(events),
            low=min(times),
            high=max(times),
        )
        found |= {str(event): (str(agent), str(session)) for event, agent, session in rows}
    return found


def _records(log: AuditLog, places: Sequence[int]) -> dict[str, tuple[str, str, str]]:
    """Return actor, comment and target of recorded operations, by the id of their row."""
    if not places:
        return {}
    rows = log.query(
        "SELECT toString(operation_id), toString(outcome), actor, comment, target FROM operations_audit "
        "WHERE toUnixTimestamp64Micro(stored_at) IN {places:Array(Int64)}",
        places=list(places),
    )
    return {
        record_id(str(each), str(outcome)): (str(actor), str(comment), str(target))
        for each, outcome, actor, comment, target in rows
    }


def _kept(log: AuditLog, places: Sequence[int]) -> set[tuple[int, str]]:
    """Return leaf and digest of the personal fields that are not erased."""
    if not places:
        return set()
    rows = log.query(
        "SELECT DISTINCT leaf_index, digest FROM audit_disclosures WHERE log = {log:String} AND leaf_index IN {places:Array(UInt64)}",
        places=list(places),
    )
    return {(int(index), str(digest)) for index, digest in rows}


# --- one row


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
        f"SELECT DISTINCT {_COLUMNS} FROM audit_rows WHERE log = {{log:String}} AND leaf_index = {{place:UInt64}} "  # noqa: S608
        "AND leaf_hash = {hash:String} LIMIT 1",
        place=index,
        hash=columns["leaf_hash"],
    )
    covered = _covered(log)
    kept = _kept(log, [index])
    return OneRow(
        row=_with_people(log, short, covered)[0],
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


# --- a session


@dataclass(frozen=True)
class InLog:
    """Counts of given calls: all, those in the log, those that a checkpoint covers, and refused ones."""

    calls: int
    rows: int
    covered: int
    refused: int


def in_log(client: "Client", own: AuditorSettings, events: Sequence[str]) -> InLog:
    """Count the rows of tool calls and server events in the log."""
    log = AuditLog(client, own)
    if not events:
        return InLog(0, 0, 0, 0)
    rows, covered = log.query(
        "SELECT uniqExact(source_id), uniqExactIf(source_id, leaf_index < {covered:UInt64}) FROM audit_leaves "
        "WHERE log = {log:String} AND source_id IN {ids:Array(UUID)}",
        ids=list(events),
        covered=_covered(log),
    )[0]
    refused = log.query(
        "SELECT uniqExact(source_id) FROM audit_rows WHERE log = {log:String} AND source_id IN {ids:Array(UUID)} AND status = 'refused'",
        ids=list(events),
    )[0][0]
    return InLog(len(events), int(rows), int(covered), int(refused))


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
