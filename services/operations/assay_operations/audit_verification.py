"""Verify the audit log, with its checkpoints and what anchors signed: `verify`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay_auditor.anchors.anchor import DIRECTORY
from assay_auditor.anchors.directory import files_in, has_file, read_note
from assay_auditor.anchors.evidence import Evidence, EvidenceError, Kept
from assay_auditor.erasure import Erasure
from assay_auditor.expiry import Expiry
from assay_auditor.keys import CHECKPOINT_FILE, PUBLIC_FILE, is_torn
from assay_auditor.notes import Checkpoint, NoteError
from assay_auditor.rotation import KeyChain
from assay_auditor.verification import Mismatch, Note, Verification
from assay_operations.audit_log import LAST, PAGE, AuditLog, NotesFile, size_of_note
from assay_operations.errors import OperationError
from assay_operations.progress import Counts, Unseen

#: Leaves that one query reads.

#: Seconds by which the store's clock may be ahead of this one.
_AHEAD_S = 3_600.0
#: Mismatches of rows and values that may have been deleted while they were read.
_ABSENCES = ("missing_row", "missing_disclosure")


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
            if size_of_note(note) != named:
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
            if each.note not in known and size_of_note(each.note) == each.size
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
        for each in self._log.newest_notes(above=min(self._signed, LAST - 1)):
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
    wrong, result.unfinished = check.after(log.rows(size, LAST))
    if wrong and (written := log.size()) > size:
        end = written + log.own.batch_rows
        wrong = [each for each in wrong if each.leaf_index is not None and each.leaf_index >= end]
    yield from wrong
