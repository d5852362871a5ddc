"""Verify and read the audit log that the auditor writes: `verify`, `rows`, `proof`."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from assay_auditor.anchors.anchor import DIRECTORY
from assay_auditor.anchors.configured import roots_of, witnesses_of
from assay_auditor.anchors.cosignature import WitnessKey, is_witness_key
from assay_auditor.anchors.directory import files_in, has_file, read_note
from assay_auditor.anchors.evidence import Evidence, EvidenceError, Kept
from assay_auditor.bundle import ROTATIONS, bundle_of, problem_of
from assay_auditor.disclosures import digest_of, opened
from assay_auditor.erasure import MARK, Erasure, erasure_of
from assay_auditor.erasure import OPERATION as ERASURE
from assay_auditor.expiry import OPERATION, Expiry, expiry_of
from assay_auditor.keys import CHECKPOINT_FILE, PUBLIC_FILE, ROTATION_FILE, ends_torn, is_torn
from assay_auditor.keys import notes_in as notes_of_file
from assay_auditor.merkle import inclusion_ranges, range_roots
from assay_auditor.notes import Checkpoint, NoteError, Verifier
from assay_auditor.rotation import OPERATION as ROTATION
from assay_auditor.rotation import KeyChain, Record, record_of
from assay_auditor.rows import HASHED, columns_sql, leaf_data
from assay_auditor.verification import COLUMNS, Mismatch, Note, StoredLeaf, Verification
from assay_operations.audit_grants import wider_grants
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.progress import Counts, Unseen
from assay_schema.settings import AuditorSettings

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Leaves that one query reads.
PAGE = 20_000
#: Checkpoints that one query reads, and newest ones among which one that is signed is looked for.
NOTES, NEWEST = 50_000, 100
#: Newest records of deleted rows, and of rotations of the key, that are looked at.
_RECORDS = 1_000
#: Seconds by which the store's clock may be ahead of this one.
_AHEAD_S = 3_600.0
#: Rows behind the end of the log that are looked at, more than a batch, and a place behind each of them.
_BEHIND, _LAST = 200_000, 2**64 - 1
#: Mismatches of rows and values that may have been deleted while they were read.
_ABSENCES = ("missing_row", "missing_disclosure")


#: Columns of a row, in the form that is hashed.
_COLUMNS = (*HASHED, "leaf_hash")
_ROWS = f"SELECT DISTINCT {columns_sql(_COLUMNS)} FROM audit_rows WHERE log = {{log:String}}"  # noqa: S608 - constants
_VERIFIED = columns_sql(COLUMNS)
_IN_RANGE = "log = {log:String} AND leaf_index >= {start:UInt64} AND leaf_index < {end:UInt64}"


#: Columns of `audit_anchors` for `kept_of`.
KEPT = "size, anchor, kind, note, token, toUnixTimestamp64Micro(anchored_at) AS micros"


def kept_of(row: Sequence[Any]) -> Kept:
    """Return what an anchor signed from a row with the columns `KEPT`."""
    size, anchor, kind, note, token, micros = row
    at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
    return Kept(int(size), str(anchor), str(kind), str(note), str(token), at)


@dataclass
class Result:
    """The outcome of a verification, complete once its mismatches were read."""

    origin: str = ""
    leaves: int = 0
    #: Leaves that a signed checkpoint covers which the leaves confirm; 0 without one.
    anchored: int = 0
    #: Leaves that the newest valid checkpoint of an anchor covers; None if no anchor is set.
    at_anchors: int | None = None
    #: Seconds since the first leaf was written that no anchor has, or, without anchors, that has no checkpoint; 0 if there is none.
    unanchored_s: float = 0.0
    checkpoints: int = 0
    #: Rows that are absent because retention deleted them, among those that were read.
    expired: int = 0
    #: Values of personal fields that were erased, among the rows that were read.
    erased: int = 0
    #: Absent values that only a record of retention explains, although their rows are there, among those that were read.
    expired_values: int = 0
    #: Rows of a batch whose leaves are not written yet.
    unfinished: int = 0
    mismatches: int = 0
    #: Valid cosignatures of witnesses whose keys are known, the names of these, and the leaves that the newest of them covers.
    cosignatures: int = 0
    witnesses: list[str] = field(default_factory=list)
    witnessed: int = 0
    #: Leaves that the newest valid time stamp covers, and its time (ISO 8601).
    timestamped: int = 0
    timestamped_at: str = ""
    #: True if `unanchored_s` is more than `auditor.max_unanchored_s`.
    too_old: bool = False
    notes: list[str] = field(default_factory=list)


class AuditLog:
    """The log in the store, as its readers see it."""

    def __init__(
        self, client: "Client", own: AuditorSettings, databases: Sequence[str] = ("assay_base", "assay")
    ) -> None:
        """`databases`: of the tables, and of the views."""
        self._client, self.own = client, own
        self._databases = databases

    def wider_grants(self) -> tuple[list[tuple[str, str]], str]:
        """Return the identities that may change the log with their rights, and why these are not known."""
        return wider_grants(self._client, self._databases)

    def size(self) -> int:
        """Return the number of places: one more than the greatest leaf index."""
        return int(
            self.query("SELECT if(count() = 0, 0, max(leaf_index) + 1) FROM audit_leaves WHERE log = {log:String}")[0][
                0
            ]
        )

    def verifiers(self, vkeys: Sequence[str]) -> list[Verifier]:
        """Return the keys of the log to trust: those given, that of the settings, or that in its directory."""
        given = (
            [each for each in vkeys if not is_witness_key(each)]
            or [self.own.vkey] * bool(self.own.vkey)
            or [self._public()]
        )
        try:
            return [Verifier.parsed(each) for each in given]
        except NoteError as error:
            raise OperationError("invalid", f"--vkey: {error}", "see: assay audit key") from None

    def keys(self, vkeys: Sequence[str]) -> KeyChain:
        """Return the keys to trust, with those that rotations connect with them."""
        path = self.own.directory / ROTATION_FILE
        try:
            filed = list(islice(notes_of_file(path), ROTATIONS)) if path.exists() else []
        except OSError as error:
            raise _unreadable(path, error) from None
        return KeyChain(self.verifiers(vkeys), [*filed, *self.stored_rotations()])

    def stored_rotations(self) -> list[str]:
        """Return the statements of rotations in the store, without a check of their signatures."""
        query = "SELECT DISTINCT rotation FROM audit_checkpoints WHERE log = {log:String} AND rotation != '' LIMIT {most:UInt64}"
        return [str(note) for (note,) in self.query(query, most=ROTATIONS)]

    def evidence(self, vkeys: Sequence[str]) -> Evidence:
        """Return what checks the anchors, with the given keys of witnesses, or those of the settings."""
        try:
            given = [WitnessKey.parsed(each) for each in vkeys if is_witness_key(each)]
        except NoteError as error:
            raise OperationError("invalid", f"--vkey: {error}", "see: assay audit key") from None
        return Evidence(given or [key for key, _ in witnesses_of(self.own)], roots_of(self.own))

    def _public(self) -> str:
        path = self.own.directory / PUBLIC_FILE
        try:
            return path.read_text(errors="replace")
        except OSError as error:
            raise OperationError(
                "not_found",
                f"no public key: cannot read {path} ({error.strerror})",
                "pass --vkey, or set auditor.vkey or auditor.directory; the auditor writes the file at its first start",
            ) from None

    def leaves(self, start: int, end: int) -> list[StoredLeaf]:
        """Return the distinct leaves of a range."""
        columns = "leaf_index, leaf_hash, chain_hash, toString(kind), toString(source_id), place"
        query = f"SELECT DISTINCT {columns} FROM audit_leaves WHERE {_IN_RANGE} ORDER BY leaf_index"  # noqa: S608 - constants
        return list(map(StoredLeaf._make, self.query(query, start=start, end=end)))

    def verified_rows(self, start: int, end: int) -> list[Sequence[Any]]:
        """Return the distinct rows of a range as `Verification` takes them."""
        query = (
            f"SELECT DISTINCT {_VERIFIED} FROM audit_rows WHERE {_IN_RANGE} ORDER BY leaf_index LIMIT {{most:UInt64}}"  # noqa: S608
        )
        return self.query(query, start=start, end=end, most=_BEHIND)

    def rows(self, start: int, end: int) -> list[dict[str, Any]]:
        """Return the distinct rows of a range, with the columns that are hashed."""
        found = self.query(
            _ROWS
            + " AND leaf_index >= {start:UInt64} AND leaf_index < {end:UInt64} ORDER BY leaf_index LIMIT {most:UInt64}",
            start=start,
            end=end,
            most=_BEHIND,
        )
        return [dict(zip(_COLUMNS, row, strict=True)) for row in found]

    def disclosures(self, start: int, end: int) -> list[tuple[int, str, str]]:
        """Return the disclosures of a range: leaf, digest, text."""
        return [each for each in self.marked_disclosures(start, end) if MARK not in each[1]]

    def marked_disclosures(self, start: int, end: int) -> list[tuple[int, str, str]]:
        """Return the disclosures of a range, and the marks of erased ones: see `assay_auditor.erasure`."""
        query = f"SELECT DISTINCT leaf_index, digest, disclosure FROM audit_disclosures WHERE {_IN_RANGE}"  # noqa: S608
        return [(index, digest, text) for index, digest, text in self.query(query, start=start, end=end)]

    def marks(self, start: int, end: int) -> list[tuple[int, str, str]]:
        """Return the marks of erased disclosures in a range: leaf, mark, ''."""
        query = f"SELECT DISTINCT leaf_index, digest FROM audit_disclosures WHERE {_IN_RANGE} AND position(digest, '{MARK}') > 0"  # noqa: S608
        return [(index, mark, "") for index, mark in self.query(query, start=start, end=end)]

    def all_marks(self) -> Iterator[tuple[int, str, str]]:
        """Return leaf, digest and hash of the erasure of all marks, in this order."""
        query = (
            f"SELECT DISTINCT leaf_index, digest FROM audit_disclosures WHERE log = {{log:String}} AND position(digest, '{MARK}') > 0 "  # noqa: S608
            "AND leaf_index >= {start:UInt64} ORDER BY leaf_index LIMIT {most:UInt64} WITH TIES"
        )
        start = 0
        while start < _LAST and (rows := self.query(query, start=start, most=NOTES)):
            parts = ((int(index), mark.partition(MARK)) for index, mark in rows)
            yield from sorted((index, digest, erased) for index, (digest, _, erased) in parts)
            start = int(rows[-1][0]) + 1

    def expiries(self) -> list[Expiry]:
        """Return the newest records of deleted rows, the newest first."""
        records = (expiry_of(self.own.origin, row, texts) for row, texts in self._started(OPERATION))
        return [each for each in islice(records, _RECORDS) if each is not None]

    def rotations(self) -> list[Record]:
        """Return the newest records of rotations of the key, the newest first."""
        records = (record_of(row, texts) for row, texts in self._started(ROTATION))
        return [each for each in islice(records, _RECORDS) if each is not None]

    def erasures(self) -> list[Erasure]:
        """Return all records of erased disclosures, the newest first."""
        records = (erasure_of(self.own.origin, row, texts) for row, texts in self._started(ERASURE))
        return [each for each in records if each is not None]

    def _started(self, operation: str) -> Iterator[tuple[dict[str, Any], list[str]]]:
        """Return the records of the start of an operation with their disclosures, the newest first."""
        where = (
            " AND kind = 'operation' AND tool_name = {operation:String} AND status = 'started' AND leaf_index < {below:UInt64}"
            " ORDER BY leaf_index DESC LIMIT {most:UInt64} WITH TIES"
        )
        below = _LAST
        while rows := self.query(_ROWS + where, operation=operation, below=below, most=_RECORDS):
            found = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
            yield from self._with_texts(found)
            below = int(found[-1]["leaf_index"])

    def _with_texts(self, found: list[dict[str, Any]]) -> list[tuple[dict[str, Any], list[str]]]:
        places = sorted({int(row["leaf_index"]) for row in found})
        texts: dict[int, list[str]] = {}
        hidden = (
            "SELECT DISTINCT leaf_index, disclosure FROM audit_disclosures "
            "WHERE log = {log:String} AND leaf_index IN {places:Array(UInt64)}"
        )
        for index, text in self.query(hidden, places=places) if places else ():
            texts.setdefault(int(index), []).append(text)
        return [(row, texts.get(row["leaf_index"], [])) for row in found]

    def stored_notes(self, above: int, upto: int) -> Iterator[list[Note]]:
        """Return the checkpoints in the store, the smallest first, in parts.

        Those of more than `above` and at most `upto` leaves.
        """
        while above < _LAST and (
            page := self._notes("ORDER BY size LIMIT {most:UInt64} WITH TIES", above, upto, NOTES)
        ):
            yield page
            above = page[-1].size or 0

    def kept_anchors(self, above: int, upto: int) -> Iterator[list[Kept]]:
        """Return what anchors signed, the smallest checkpoint first, in parts, as `stored_notes` does."""
        query = (
            f"SELECT DISTINCT {KEPT} FROM audit_anchors WHERE log = {{log:String}} "  # noqa: S608 - constants
            "AND size >= {first:UInt64} AND size <= {upto:UInt64} ORDER BY size LIMIT {most:UInt64} WITH TIES"
        )
        while above < _LAST and (rows := self.query(query, first=above + 1, upto=upto, most=NOTES)):
            yield [kept_of(row) for row in rows]
            above = int(rows[-1][0])

    def newest_anchor(self) -> int:
        """Return the size of the largest checkpoint that an anchor has, by the store; -1 without one."""
        query = "SELECT if(count() = 0, -1, toInt64(max(size))) FROM audit_anchors WHERE log = {log:String}"
        return int(self.query(query)[0][0])

    def newest_notes(self, above: int = -1) -> list[Note]:
        """Return the newest checkpoints in the store that cover more than `above` leaves, the newest first."""
        return self._notes("ORDER BY size DESC LIMIT {most:UInt64}", above, _LAST, NEWEST)

    def _notes(self, order: str, above: int, upto: int, most: int) -> list[Note]:
        query = (
            "SELECT DISTINCT size, root, note, places FROM audit_checkpoints "  # noqa: S608 - constants
            f"WHERE log = {{log:String}} AND size >= {{first:UInt64}} AND size <= {{upto:UInt64}} {order}"
        )
        rows = self.query(query, first=above + 1, upto=upto, most=most)
        return [
            Note(f"store, checkpoint of {size}", note, int(size), root, places) for size, root, note, places in rows
        ]

    def next_leaf(self, start: int) -> int:
        """Return the first place from `start` that has a leaf."""
        query = "SELECT min(leaf_index) FROM audit_leaves WHERE log = {log:String} AND leaf_index >= {start:UInt64}"
        return int(self.query(query, start=start)[0][0])

    def first_since(self, since_ms: int) -> int:
        """Return the first leaf that was written since a Unix millisecond."""
        rows = self.query(
            "SELECT count(), min(leaf_index) FROM audit_leaves "
            "WHERE log = {log:String} AND stored_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')",
            since=since_ms,
        )
        return int(rows[0][1]) if rows[0][0] else self.size()

    def age_s(self, leaf_index: int) -> float:
        """Return the seconds since a leaf was written, by the later of the store's clock and this one.

        A clock of the store that was set back does not make it younger. Negative if it was written in the future of both.
        """
        rows = self.query(
            "SELECT toFloat64(min(stored_at)), toFloat64(now64(6, 'UTC')) FROM audit_leaves "
            "WHERE log = {log:String} AND leaf_index = {place:UInt64} HAVING count() > 0",
            place=leaf_index,
        )
        return max(float(rows[0][1]), time.time()) - float(rows[0][0]) if rows else 0.0

    def query(self, query: str, **parameters: Any) -> list[Sequence[Any]]:
        """Run a query on the views, with the log's name as the parameter `log`."""
        return list(self._client.query(query, parameters={"log": self.own.origin, **parameters}).result_rows)


class NotesFile:
    """The checkpoints in a file, which are read as far as the verification is.

    `is_log`: it is the auditor's own file, whose sizes rise. Another one may have any order: it is sorted in memory unless its sizes rise.
    Raises `OperationError` if it cannot be read.
    """

    def __init__(self, path: Path, origin: str, *, is_log: bool) -> None:
        self.path = path
        self.count = 0
        #: True if the auditor's own file ends with the start of a checkpoint.
        self.is_torn = False
        try:
            self.is_torn = is_log and ends_torn(path, origin)
            in_order = is_log or all(one <= other for one, other in pairwise(map(_size_of, notes_of_file(path))))
        except OSError as error:
            raise _unreadable(path, error) from None
        notes = self._notes()
        self._notes_left = notes if in_order else iter(sorted(notes, key=lambda each: _size_of(each.note)))
        self._next = next(self._notes_left, None)

    @property
    def is_empty(self) -> bool:
        """True if no checkpoint is left."""
        return self._next is None

    def _notes(self) -> Iterator[Note]:
        """Return all but a torn last one."""
        last: Note | None = None
        try:
            for number, note in enumerate(notes_of_file(self.path), 1):
                if last is not None:
                    yield last
                last = Note(f"{self.path}, note {number}", note)
        except OSError as error:
            raise _unreadable(self.path, error) from None
        if last is not None and not self.is_torn:
            yield last

    def upto(self, size: float) -> list[Note]:
        """Return the next checkpoints of at most this many leaves, malformed ones included."""
        found = []
        while self._next is not None and _size_of(self._next.note) <= size:
            found.append(self._next)
            self._next = next(self._notes_left, None)
        self.count += len(found)
        return found


def _size_of(note: str) -> int:
    """Return the size that a note says, without a check of its signature; 0 if it is malformed."""
    try:
        return Checkpoint.parsed(note).size
    except ValueError:  # a number of thousands of digits too
        return 0


def _unreadable(path: Path, error: OSError) -> OperationError:
    return OperationError("not_found", f"cannot read the checkpoints in {path} ({error.strerror or error})")


@contextmanager
def opened_log(data: Path) -> Iterator[AuditLog]:
    """Open the log with the rights of an SRE. Raises `OperationError`."""
    settings = settings_for("sre", data)
    with open_store(settings.store) as client:
        yield AuditLog(client, settings.auditor, (settings.store.base_database, settings.store.database))


def verify(
    log: AuditLog,
    result: Result,
    *,
    since_ms: int | None = None,
    checkpoint: Path | None = None,
    vkeys: Sequence[str] = (),
    progress: Counts | None = None,
) -> Iterator[Mismatch]:
    """Verify the log, and return each mismatch as it is found. `result` is complete after the last one.

    `since_ms`: rows whose leaves were written before are not read; the hashes of all leaves are. Raises `OperationError`, also if rows or
    values are absent that an operation may have deleted meanwhile, and nothing else is wrong.
    """
    seen = progress or Unseen()
    keys = log.keys(vkeys)
    # Each is in the file before it is in the store, and its leaves are before both: what is read later may have more.
    stored = max((each.size or 0 for each in log.newest_notes()[:1]), default=-1)
    own_file = log.own.directory / CHECKPOINT_FILE
    filed = NotesFile(own_file, log.own.origin, is_log=True) if own_file.exists() else None
    given = NotesFile(checkpoint, log.own.origin, is_log=False) if checkpoint else None
    if filed and filed.is_torn:
        result.notes.append(
            f"the end of {own_file} is the start of a checkpoint: the auditor was interrupted and will remove it"
        )
    if not filed:
        result.notes.append(f"no file {own_file}: only the store's own checkpoints are compared")
    if given and given.is_empty:
        raise OperationError("invalid", f"no checkpoint is in {checkpoint}", "see: assay audit checkpoint")
    evidence = log.evidence(vkeys)
    notes = _Notes(log, stored, filed, given, evidence)
    size = log.size()
    first = 0 if since_ms is None else log.first_since(since_ms)
    result.origin, result.leaves, seen.total = log.own.origin, size, size
    wider, unknown = log.wider_grants()
    if unknown:
        result.notes.append(unknown)
    erasures = log.erasures()
    check = Verification(log.own.origin, keys, log.expiries(), log.rotations(), erasures)
    for problem in keys.problems:
        result.mismatches += 1
        yield Mismatch("checkpoint", None, problem)
    for identity, rights in wider:
        result.mismatches += 1
        yield Mismatch("grant", None, f"{identity} may change the log: {rights}")
    meanwhile = _Meanwhile(log, keys, stored)
    for mismatch in _found(log, check, notes, result, first, seen, meanwhile, has_erasures=bool(erasures)):
        result.mismatches += 1
        yield mismatch
    meanwhile.add_to(result)
    if not filed and notes.stored and (log.own.directory / PUBLIC_FILE).exists():
        result.mismatches += 1
        yield Mismatch("file", None, f"{own_file} is missing, and the store has {notes.stored} checkpoints")
    if notes.unreadable:
        result.notes.append(notes.unreadable)
    _add_anchors(log, result, evidence, notes.copied)
    covered = result.anchored if result.at_anchors is None else result.at_anchors
    age_s = log.age_s(covered) if covered < size else 0.0
    is_ahead = age_s < -_AHEAD_S
    if is_ahead:
        result.notes.append(
            f"leaf {covered} was written {-age_s:,.0f} s in the future of the clocks of the store and of this host: its age is not known"
        )
    result.unanchored_s = max(0.0, age_s)
    most = log.own.max_unanchored_s
    result.too_old = bool(most) and (is_ahead or result.unanchored_s > most)


def _add_anchors(log: AuditLog, result: Result, evidence: Evidence, copied: int) -> None:
    """Add to a result what anchors signed.

    `copied`: leaves of the largest checkpoint in their directory.
    """
    result.cosignatures, result.witnesses = evidence.cosignatures, sorted(evidence.names)
    result.witnessed, result.timestamped = evidence.witnessed, evidence.timestamped
    result.timestamped_at = evidence.timestamped_at.isoformat() if evidence.timestamped_at else ""
    if evidence.unchecked:
        result.notes.append(
            f"{evidence.unchecked:,} cosignatures and time stamps are not checked: pass the keys of their witnesses with --vkey, or set "
            "auditor.witnesses and auditor.timestamp_ca_file"
        )
    if result.leaves:
        result.notes += evidence.lacking
    if evidence.witnesses or evidence.roots or log.own.anchor_directory:
        result.at_anchors = min(result.anchored, max(evidence.witnessed, evidence.timestamped, copied))


class _Notes:
    """The checkpoints of all places, read part by part with the leaves that they sign."""

    def __init__(
        self, log: AuditLog, newest: int, filed: NotesFile | None, given: NotesFile | None, evidence: Evidence
    ) -> None:
        self.stored = 0
        #: Why the directory of the anchors cannot be read; empty if it can, or if there is none.
        self.unreadable = ""
        self._log, self._newest, self._filed, self._given = log, newest, filed, given
        self._evidence = evidence
        self._above = self._above_anchors = -1
        self._newest_anchor = log.newest_anchor()
        #: The largest checkpoint that was read from the directory of the anchors.
        self.copied = 0
        #: The directory of the anchors; None without one that can be read.
        self._directory = log.own.anchor_directory
        self._copies = self._listed()

    @property
    def count(self) -> int:
        """Number of checkpoints that were read."""
        return self.stored + sum(each.count for each in (self._filed, self._given) if each)

    def upto(self, size: float) -> Iterator[tuple[list[Note], list[Mismatch]]]:
        """Return the next checkpoints of at most this many leaves, and those of them that the auditor's file lacks."""
        last = self._newest if size >= self._newest else int(size)
        if self._above < last:
            for page in self._log.stored_notes(self._above, last):
                self.stored += len(page)
                yield self._with_files(page, page[-1].size or 0)
            self._above = last
        yield self._with_files([], size)
        yield from self._anchored(size)

    def _anchored(self, size: float) -> Iterator[tuple[list[Note], list[Mismatch]]]:
        """Return the checkpoints that anchors have, and what they did not sign."""
        last = int(min(size, self._newest_anchor))
        for page in self._log.kept_anchors(self._above_anchors, last) if self._above_anchors < last else ():
            wrong = []
            for each in page:
                try:
                    self._evidence.check(each)
                    self._check_copy(each)
                except EvidenceError as error:
                    wrong.append(Mismatch("anchor", None, f"{each.where}: {error}"))
            yield [Note(each.where, each.note) for each in page], wrong
        self._above_anchors = max(self._above_anchors, last)
        copies: list[Note] = []
        wrong = []
        while self._copies and self._copies[-1][0] <= size:
            named, path = self._copies.pop()
            try:
                note = read_note(path)
            except OSError as error:
                self.unreadable = f"{path} is not compared ({error.strerror or error})"
                continue
            if not note or is_torn(f"{note}\n".encode(errors="replace"), self._log.own.origin):
                continue
            if _size_of(note) != named:
                wrong.append(Mismatch("anchor", None, f"{path} has no checkpoint of {named}: it was replaced"))
                continue
            copies.append(Note(str(path), note))
            self.copied = max(self.copied, named)
        yield copies, wrong

    def _check_copy(self, kept: Kept) -> None:
        """Raise `EvidenceError` if the directory that is set had a checkpoint and lacks it now."""
        if self._directory is None or (kept.kind, kept.anchor) != (DIRECTORY, str(self._directory)):
            return
        try:
            if has_file(self._directory, Checkpoint.parsed(kept.note)):
                return
        except OSError as error:
            self.unreadable = (
                f"the checkpoint of {kept.size} in {self._directory} is not compared ({error.strerror or error})"
            )
            return
        raise EvidenceError("its file was deleted, cut or replaced")

    def _listed(self) -> list[tuple[int, Path]]:
        """Return the files in the directory of the anchors, the largest size first."""
        if self._directory is None:
            return []
        try:
            return sorted(files_in(self._directory), reverse=True)
        except OSError as error:
            self.unreadable = f"{self._directory} is not compared ({error.strerror or error})"
            self._directory = None
            return []

    def _with_files(self, page: list[Note], size: float) -> tuple[list[Note], list[Mismatch]]:
        given = self._given.upto(size) if self._given else []
        if not self._filed:
            return [*page, *given], []
        own = self._filed.upto(size)
        known = {each.note for each in own}
        lacking = [
            Mismatch(
                "file", None, f"{self._filed.path} lacks the {each.where.removeprefix('store, ')} that the store has"
            )
            for each in page
            if each.note not in known and _size_of(each.note) == each.size
        ]
        return [*page, *own, *given], lacking


class _Meanwhile:
    """Holds back absent rows and values while `assay audit erase` or `expire` deletes.

    Such absences cannot be judged yet. The record of a deletion is signed before it begins. So an absence is held back only if
    a record is signed by now that was not signed when the verification began, or if the marks of an erasure were completed since they were
    read.
    """

    def __init__(self, log: AuditLog, keys: KeyChain, signed: int) -> None:
        """`signed`: size of the newest checkpoint when the verification began; -1 without one."""
        self.held = 0
        self._log, self._keys, self._signed = log, keys, signed

    def judged(self, found: Iterator[Mismatch], check: Verification | None = None) -> Iterator[Mismatch]:
        """Return mismatches that were read together, without absences if something was deleted meanwhile.

        `check`: for those after the last page.
        """
        is_deleting: bool | None = None
        for each in found:
            if each.kind not in _ABSENCES:
                yield each
                continue
            if is_deleting is None:
                is_deleting = self._has_new_record() or (
                    check is not None and check.is_completed_by(self._log.all_marks())
                )
            if is_deleting:
                self.held += 1
            else:
                yield each

    def add_to(self, result: Result) -> None:
        """Add a note if absences were held back.

        Raises `OperationError` if nothing else is wrong: the outcome is not known then.
        """
        if not self.held:
            return
        what = f"{self.held:,} absences are not judged: assay audit erase or expire deleted during this verification"
        if not result.mismatches:
            raise OperationError("conflict", what, "run it again")
        result.notes.append(f"{what}; run it again")

    def _has_new_record(self) -> bool:
        signed = max(self._sizes(), default=-1)
        if signed <= self._signed:
            return False
        records: list[Expiry | Erasure] = [*self._log.expiries(), *self._log.erasures()]
        return any(
            leaf.leaf_hash == each.leaf_hash
            for each in records
            if self._signed <= each.leaf_index < signed
            for leaf in self._log.leaves(each.leaf_index, each.leaf_index + 1)
        )

    def _sizes(self) -> Iterator[int]:
        """Return the sizes of the checkpoints that the log's key signed since the verification began."""
        for each in self._log.newest_notes(above=min(self._signed, _LAST - 1)):
            try:
                yield self._keys.verified(each.note, self._log.own.origin).size
            except NoteError:
                continue


def _found(
    log: AuditLog,
    check: Verification,
    checkpoints: _Notes,
    result: Result,
    first: int,
    seen: Counts,
    meanwhile: "_Meanwhile",
    *,
    has_erasures: bool,
) -> Iterator[Mismatch]:
    size = result.leaves
    end = 0
    while end < size:
        start, end = end, min(size, end + PAGE)
        leaves = log.leaves(start, end)
        is_gap = not leaves
        if is_gap:  # a forged leaf may be far behind the end
            end = log.next_leaf(end)
        notes: list[Note] = []
        for part, missing in checkpoints.upto(end):
            notes += part
            yield from missing
        if is_gap:
            yield from check.gap(start, end, notes)
        elif end <= first:
            yield from check.page(start, end, leaves, None, log.marks(start, end) if has_erasures else (), notes)
        else:
            # Without names for them: what one page read is freed before the next one is read.
            yield from meanwhile.judged(
                check.page(start, end, leaves, log.verified_rows(start, end), log.marked_disclosures(start, end), notes)
            )
        seen.rows = end
        result.anchored, result.checkpoints = check.confirmed, checkpoints.count
    for part, missing in checkpoints.upto(math.inf):
        yield from missing
        yield from check.behind(part, size)
    result.checkpoints = checkpoints.count
    yield from check.rotations()
    yield from meanwhile.judged(check.absences(), check)
    result.expired, result.erased, result.expired_values = check.expired, check.erased, check.expired_values
    # Leaves that were written meanwhile are another run's; rows behind them may be those of a batch that is being written.
    wrong, result.unfinished = check.after(log.rows(size, _LAST))
    if wrong and (written := log.size()) > size:
        end = written + log.own.batch_rows
        wrong = [each for each in wrong if each.leaf_index is not None and each.leaf_index >= end]
    yield from wrong


def newest_note(log: AuditLog) -> str:
    """Return the newest signed checkpoint in the store. Raises `OperationError`.

    If a public key of the log is at hand, the newest one that it confirms: a user who can write the store can add others.
    """
    notes = log.newest_notes()
    if not notes:
        raise OperationError(
            "not_found", f"no checkpoint of {log.own.origin!r} is stored", "start the auditor; see assay doctor"
        )
    try:
        keys = log.keys([])
    except OperationError:  # no public key on this host
        return notes[0].note
    for each in notes:
        try:
            keys.verified(each.note, log.own.origin)
        except NoteError:
            continue
        return each.note
    raise OperationError(
        "conflict", "the key of the log signed none of the newest checkpoints", "run assay audit verify --full"
    )


def whole_rows(log: AuditLog, places: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return rows with every column, by the index of their leaf."""
    if not places:
        return {}
    rows = log.query(_ROWS + " AND leaf_index IN {places:Array(UInt64)}", places=list(places))
    found = (dict(zip(_COLUMNS, row, strict=True)) for row in rows)
    return {each["leaf_index"]: each for each in found}


def found_row(log: AuditLog, name: str) -> dict[str, Any]:
    """Return the row of a leaf index, or of a source id. Raises `OperationError`."""
    if name.isascii() and name.isdigit():
        where = " AND leaf_index = {place:UInt64}"
        wanted: dict[str, Any] = {"place": min(int(name), 2**63)}
    else:
        try:
            where, wanted = " AND source_id = {source:UUID}", {"source": str(UUID(name))}
        except ValueError:
            raise OperationError("invalid", f"{name!r} is neither the index of a leaf nor an event_id") from None
    rows = log.query(_ROWS + where + " ORDER BY leaf_index LIMIT 1", **wanted)
    if not rows:
        raise _absent(log, name, where, wanted)
    return dict(zip(_COLUMNS, rows[0], strict=True))


def _absent(log: AuditLog, name: str, where: str, wanted: dict[str, Any]) -> OperationError:
    """Return the error for a row that is not there: not written yet, expired, or deleted by hand."""
    query = "SELECT leaf_index FROM audit_leaves WHERE log = {log:String}"
    leaves = log.query(query + where + " ORDER BY leaf_index LIMIT 1", **wanted)
    if not leaves:
        what = f"no row {name} in the log {log.own.origin!r}, which has {log.size():,} rows"
        known = "leaf 0 is the first row" if name.isdigit() else "is its event stored, and is the auditor running?"
        return OperationError("not_found", what, f"{known}; see assay audit list and assay doctor")
    index = int(leaves[0][0])
    for each in log.expiries():
        if each.before <= index:
            continue
        expected = {(each.leaf_index, each.leaf_hash), (each.before - 1, each.last_hash)}
        found = {(leaf.leaf_index, leaf.leaf_hash) for place, _ in expected for leaf in log.leaves(place, place + 1)}
        if expected <= found:
            what = (
                f"row {name} has expired: {each.actor or 'somebody'} deleted the rows below leaf {each.before} on {each.occurred_at}, "
                f"recorded as leaf {each.leaf_index}"
            )
            return OperationError(
                "not_found", what, f"the hash of leaf {index} stays, and proofs that were made before stay valid"
            )
    return OperationError(
        "not_found",
        f"row {name} (leaf {index}) was deleted, and no record explains it",
        "run assay audit verify --full",
    )


def disclosed(log: AuditLog, row: dict[str, Any]) -> dict[str, str | None]:
    """Return the personal fields of a row by name.

    Digests whose disclosure is absent, or is not the one that was written, have None.
    """
    place = row["leaf_index"]
    by_digest = {digest_of(text): opened(text) for _, _, text in log.disclosures(place, place + 1)}
    found: dict[str, str | None] = {}
    for digest in row["sd"]:
        name, value = by_digest.get(digest) or (digest, None)
        found[name] = value
    return dict(sorted(found.items()))


def proof(log: AuditLog, name: str, *, vkeys: Sequence[str] = (), progress: Counts | None = None) -> dict[str, Any]:
    """Return a bundle that proves a row: see `assay_auditor.bundle`.

    Raises `OperationError`, also if the bundle would prove nothing, because the row, its leaf or a disclosure was changed.
    """
    seen = progress or Unseen()
    keys = log.keys(vkeys)
    row = found_row(log, name)
    index = row["leaf_index"]
    covering = None
    for each in log.newest_notes(above=index):
        try:
            found = keys.verified(each.note, log.own.origin)
        except NoteError:
            continue
        if found.size > index:
            covering = each.note, found
            break
    if covering is None:
        raise OperationError(
            "not_found", f"no checkpoint covers leaf {index} yet", "try again after auditor.checkpoint_s"
        )
    note, signed = covering
    seen.total = signed.size

    def hashes() -> Iterator[bytes]:
        for start in range(0, signed.size, PAGE):
            end = min(signed.size, start + PAGE)
            page = {each.leaf_index: each.leaf_hash for each in log.leaves(start, end)}
            seen.rows = end
            for place in range(start, end):
                try:
                    yield bytes.fromhex(page[place])
                except (KeyError, ValueError):
                    raise OperationError(
                        "conflict", f"leaf {place} is missing or malformed", "run assay audit verify"
                    ) from None

    path = range_roots(inclusion_ranges(index, signed.size), hashes())
    texts = [text for _, _, text in log.disclosures(index, index + 1)]
    try:
        signer = keys.signer_of(note) or keys.verifiers[0]
        bundle = bundle_of(leaf_data(row), index, path, note, signer.vkey, texts, keys.rotations)
    except ValueError:
        raise OperationError("conflict", f"row {index} has no canonical form", "run assay audit verify") from None
    if problem := problem_of(bundle, signer):
        raise OperationError("conflict", f"row {index} cannot be proved: {problem}", "run assay audit verify --full")
    return bundle


def problem_of_proof(path: Path, vkey: str, rotations: Path | None = None) -> str:
    """Return why the bundle in a file proves nothing; '' if it proves its row.

    `rotations`: a file of statements of key rotations, in addition to those in the bundle. Needs no store. Raises `OperationError`.
    """
    try:
        known = list(notes_of_file(rotations)) if rotations else []
    except OSError as error:
        raise OperationError("not_found", f"cannot read {rotations} ({error.strerror})") from None
    if rotations and not known:
        raise OperationError(
            "invalid", f"no statement of a key rotation is in {rotations}", "see: assay audit key --rotations"
        )
    try:
        bundle = orjson.loads(path.read_bytes())
        verifier = Verifier.parsed(vkey)
    except OSError as error:
        raise OperationError("not_found", f"cannot read {path} ({error.strerror})") from None
    except orjson.JSONDecodeError:
        return "the bundle is malformed"
    except NoteError as error:
        raise OperationError("invalid", f"--vkey: {error}", "see: assay audit key") from None
    return problem_of(bundle, verifier, known) if isinstance(bundle, dict) else "the bundle is malformed"
