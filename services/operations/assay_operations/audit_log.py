"""Read the audit log that the auditor writes, and the file of its checkpoints."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_auditor.anchors.configured import roots_of, witnesses_of
from assay_auditor.anchors.cosignature import WitnessKey, is_witness_key
from assay_auditor.anchors.evidence import Evidence, Kept
from assay_auditor.bundle import ROTATIONS
from assay_auditor.erasure import MARK, Erasure, erasure_of
from assay_auditor.erasure import OPERATION as ERASURE
from assay_auditor.expiry import OPERATION, Expiry, expiry_of
from assay_auditor.keys import PUBLIC_FILE, ROTATION_FILE, ends_torn
from assay_auditor.keys import notes_in as notes_of_file
from assay_auditor.notes import Checkpoint, NoteError, Verifier
from assay_auditor.rotation import OPERATION as ROTATION
from assay_auditor.rotation import KeyChain, Record, record_of
from assay_auditor.rows import HASHED, columns_sql
from assay_auditor.verification import COLUMNS, Note, StoredLeaf
from assay_operations.audit_grants import wider_grants
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_schema.settings import AuditorSettings

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Leaves that one query reads.

PAGE = 20_000
#: Checkpoints that one query reads, and newest ones among which one that is signed is looked for.
NOTES, NEWEST = 50_000, 100
#: Newest records of deleted rows, and of rotations of the key, that are looked at.
_RECORDS = 1_000
#: Rows behind the end of the log that are looked at, more than a batch, and a place behind each of them.
_BEHIND, LAST = 200_000, 2**64 - 1


#: Columns of a row, in the form that is hashed.
ROW_COLUMNS = (*HASHED, "leaf_hash")
ROWS = f"SELECT DISTINCT {columns_sql(ROW_COLUMNS)} FROM audit_rows WHERE log = {{log:String}}"  # noqa: S608 - constants
_VERIFIED = columns_sql(COLUMNS)
_IN_RANGE = "log = {log:String} AND leaf_index >= {start:UInt64} AND leaf_index < {end:UInt64}"


#: Columns of `audit_anchors` for `kept_of`.
KEPT = "size, anchor, kind, note, token, toUnixTimestamp64Micro(anchored_at) AS micros"


def kept_of(row: Sequence[Any]) -> Kept:
    """Return what an anchor signed from a row with the columns `KEPT`."""
    size, anchor, kind, note, token, micros = row
    at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
    return Kept(int(size), str(anchor), str(kind), str(note), str(token), at)


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
            raise unreadable(path, error) from None
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
            ROWS
            + " AND leaf_index >= {start:UInt64} AND leaf_index < {end:UInt64} ORDER BY leaf_index LIMIT {most:UInt64}",
            start=start,
            end=end,
            most=_BEHIND,
        )
        return [dict(zip(ROW_COLUMNS, row, strict=True)) for row in found]

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
        while start < LAST and (rows := self.query(query, start=start, most=NOTES)):
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
        below = LAST
        while rows := self.query(ROWS + where, operation=operation, below=below, most=_RECORDS):
            found = [dict(zip(ROW_COLUMNS, row, strict=True)) for row in rows]
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
        while above < LAST and (page := self._notes("ORDER BY size LIMIT {most:UInt64} WITH TIES", above, upto, NOTES)):
            yield page
            above = page[-1].size or 0

    def kept_anchors(self, above: int, upto: int) -> Iterator[list[Kept]]:
        """Return what anchors signed, the smallest checkpoint first, in parts, as `stored_notes` does."""
        query = (
            f"SELECT DISTINCT {KEPT} FROM audit_anchors WHERE log = {{log:String}} "  # noqa: S608 - constants
            "AND size >= {first:UInt64} AND size <= {upto:UInt64} ORDER BY size LIMIT {most:UInt64} WITH TIES"
        )
        while above < LAST and (rows := self.query(query, first=above + 1, upto=upto, most=NOTES)):
            yield [kept_of(row) for row in rows]
            above = int(rows[-1][0])

    def newest_anchor(self) -> int:
        """Return the size of the largest checkpoint that an anchor has, by the store; -1 without one."""
        query = "SELECT if(count() = 0, -1, toInt64(max(size))) FROM audit_anchors WHERE log = {log:String}"
        return int(self.query(query)[0][0])

    def newest_notes(self, above: int = -1) -> list[Note]:
        """Return the newest checkpoints in the store that cover more than `above` leaves, the newest first."""
        return self._notes("ORDER BY size DESC LIMIT {most:UInt64}", above, LAST, NEWEST)

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
            in_order = is_log or all(one <= other for one, other in pairwise(map(size_of_note, notes_of_file(path))))
        except OSError as error:
            raise unreadable(path, error) from None
        notes = self._notes()
        self._notes_left = notes if in_order else iter(sorted(notes, key=lambda each: size_of_note(each.note)))
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
            raise unreadable(self.path, error) from None
        if last is not None and not self.is_torn:
            yield last

    def upto(self, size: float) -> list[Note]:
        """Return the next checkpoints of at most this many leaves, malformed ones included."""
        found = []
        while self._next is not None and size_of_note(self._next.note) <= size:
            found.append(self._next)
            self._next = next(self._notes_left, None)
        self.count += len(found)
        return found


def size_of_note(note: str) -> int:
    """Return the size that a note says, without a check of its signature; 0 if it is malformed."""
    try:
        return Checkpoint.parsed(note).size
    except ValueError:  # a number of thousands of digits too
        return 0


def unreadable(path: Path, error: OSError) -> OperationError:
    """Return the error for a file of checkpoints that cannot be read."""
    return OperationError("not_found", f"cannot read the checkpoints in {path} ({error.strerror or error})")


@contextmanager
def opened_log(data: Path) -> Iterator[AuditLog]:
    """Open the log with the rights of an SRE. Raises `OperationError`."""
    settings = settings_for("sre", data)
    with open_store(settings.store) as client:
        yield AuditLog(client, settings.auditor, (settings.store.base_database, settings.store.database))
