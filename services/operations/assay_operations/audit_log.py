"""Verify and read the audit log that the auditor writes: `verify`, `rows`, `proof`, `anchors`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from assay_auditor.bundle import bundle_of, problem_of
from assay_auditor.disclosures import opened
from assay_auditor.expiry import OPERATION, Expiry, expiry_of
from assay_auditor.keys import CHECKPOINT_FILE, PUBLIC_FILE, is_torn, notes_of
from assay_auditor.merkle import inclusion_ranges, range_roots
from assay_auditor.notes import Checkpoint, NoteError, Verifier
from assay_auditor.rows import HASHED, leaf_data, time_sql
from assay_auditor.verification import Mismatch, Note, StoredLeaf, Verification
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
#: Newest records of deleted rows that are looked at: the newest one explains most.
_EXPIRIES = 1_000
#: Rows behind the end of the log that are looked at, more than a batch, and a place behind each of them.
_BEHIND, _LAST = 200_000, 2**63


_AS = {
    "source_id": "toString(source_id)",
    "created_at": time_sql("created_at"),
    "occurred_at": time_sql("occurred_at"),
    "pii_attempted": "CAST(pii_attempted, 'Array(String)')",
    "pii_blocked": "CAST(pii_blocked, 'Array(String)')",
}
#: Columns of a row, in the form that is hashed.
_COLUMNS = (*HASHED, "leaf_hash")
_ALIASED = ", ".join(f"{_AS.get(name, name)} AS {name}_" for name in _COLUMNS)
_ROWS = f"SELECT DISTINCT {_ALIASED} FROM audit_rows WHERE log = {{log:String}}"  # noqa: S608 - constants
_IN_RANGE = "log = {log:String} AND leaf_index >= {start:UInt64} AND leaf_index < {end:UInt64}"


@dataclass
class Result:
    """The outcome of a verification, complete once its mismatches were read."""

    origin: str = ""
    leaves: int = 0
    #: Leaves that a signed checkpoint covers which the leaves confirm; 0 without one.
    anchored: int = 0
    #: Seconds since the first leaf without a checkpoint was written; 0 if all have one.
    unanchored_s: float = 0.0
    checkpoints: int = 0
    #: Rows that are absent because retention deleted them, among those that were read.
    expired: int = 0
    #: Rows of a batch whose leaves are not written yet.
    unfinished: int = 0
    mismatches: int = 0
    #: True if leaves have been without a checkpoint for longer than `auditor.max_unanchored_s`.
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
        """Return the identities that may change the log, and their rights; and why that is not known, if it is not."""
        return wider_grants(self._client, self._databases)

    def size(self) -> int:
        """Return the number of places: one more than the greatest leaf index."""
        return int(
            self.query("SELECT if(count() = 0, 0, max(leaf_index) + 1) FROM audit_leaves WHERE log = {log:String}")[0][
                0
            ]
        )

    def verifiers(self, vkeys: Sequence[str]) -> list[Verifier]:
        """Return the keys to trust: those given, else that of the settings, else that in the log's directory."""
        given = list(vkeys) or [self.own.vkey] * bool(self.own.vkey) or [self._public()]
        try:
            return [Verifier.parsed(each) for each in given]
        except NoteError as error:
            raise OperationError("invalid", f"--vkey: {error}", "see: assay audit key") from None

    def _public(self) -> str:
        path = self.own.directory / PUBLIC_FILE
        try:
            return path.read_text()
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
        return [StoredLeaf(*row) for row in self.query(query, start=start, end=end)]

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
        query = f"SELECT DISTINCT leaf_index, digest, disclosure FROM audit_disclosures WHERE {_IN_RANGE}"  # noqa: S608
        return [(int(index), digest, text) for index, digest, text in self.query(query, start=start, end=end)]

    def expiries(self) -> list[Expiry]:
        """Return the records of deleted rows, the newest first."""
        where = (
            " AND kind = 'operation' AND tool_name = {operation:String} AND status = 'started'"
            " ORDER BY leaf_index DESC LIMIT {most:UInt64}"
        )
        found = [
            dict(zip(_COLUMNS, row, strict=True))
            for row in self.query(_ROWS + where, operation=OPERATION, most=_EXPIRIES)
        ]
        places = sorted({int(row["leaf_index"]) for row in found})
        texts: dict[int, list[str]] = {}
        hidden = (
            "SELECT DISTINCT leaf_index, disclosure FROM audit_disclosures "
            "WHERE log = {log:String} AND leaf_index IN {places:Array(UInt64)}"
        )
        for index, text in self.query(hidden, places=places) if places else ():
            texts.setdefault(int(index), []).append(text)
        records = (expiry_of(self.own.origin, row, texts.get(row["leaf_index"], ())) for row in found)
        return [each for each in records if each is not None]

    def stored_notes(self) -> list[Note]:
        """Return the checkpoints in the store, the smallest first."""
        found: list[Note] = []
        start = 0
        while start < 2**64 and (page := self._notes("ORDER BY size LIMIT {most:UInt64} WITH TIES", start, NOTES)):
            found += page
            start = (page[-1].size or 0) + 1
        return found

    def newest_notes(self, above: int = -1) -> list[Note]:
        """Return the newest checkpoints in the store that cover more than `above` leaves, the newest first."""
        return self._notes("ORDER BY size DESC LIMIT {most:UInt64}", above + 1, NEWEST)

    def _notes(self, order: str, start: int, most: int) -> list[Note]:
        query = f"SELECT DISTINCT size, root, note FROM audit_checkpoints WHERE log = {{log:String}} AND size >= {{start:UInt64}} {order}"  # noqa: S608
        rows = self.query(query, start=start, most=most)
        return [Note(f"store, checkpoint of {size}", note, int(size), root) for size, root, note in rows]

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
        """Return the seconds since a leaf was written, by the store's clock."""
        rows = self.query(
            "SELECT toFloat64(max(dateDiff('millisecond', stored_at, now64(6, 'UTC')))) / 1000 FROM audit_leaves "
            "WHERE log = {log:String} AND leaf_index = {place:UInt64}",
            place=leaf_index,
        )
        return max(0.0, float(rows[0][0]))

    def query(self, query: str, **parameters: Any) -> list[Sequence[Any]]:
        """Run a query on the views, with the log's name as the parameter `log`."""
        return list(self._client.query(query, parameters={"log": self.own.origin, **parameters}).result_rows)


def notes_in(path: Path) -> list[Note]:
    """Return the checkpoints in a file. Raises `OperationError` if it cannot be read."""
    return _notes(path, _content(path))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OperationError(
            "not_found", f"cannot read the checkpoints in {path} ({error.strerror or error})"
        ) from None


def _notes(path: Path, content: bytes) -> list[Note]:
    found = notes_of(content.decode(errors="replace"))
    return [Note(f"{path}, note {number}", note) for number, note in enumerate(found, 1)]


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

    `since_ms`: rows whose leaves were written before are not read; the hashes of all leaves are. Raises `OperationError`.
    """
    seen = progress or Unseen()
    verifiers = log.verifiers(vkeys)
    own_file = log.own.directory / CHECKPOINT_FILE
    stored = log.stored_notes()  # before the file, which always has each of them first
    is_filed = own_file.exists()
    content = _content(own_file) if is_filed else b""
    filed = _notes(own_file, content)
    if filed and is_torn(content, log.own.origin):
        filed.pop()
        result.notes.append(
            f"the end of {own_file} is the start of a checkpoint: the auditor was interrupted and will remove it"
        )
    if not is_filed:
        result.notes.append(f"no file {own_file}: only the store's own checkpoints are compared")
    given = notes_in(checkpoint) if checkpoint else []
    if checkpoint and not given:
        raise OperationError("invalid", f"no checkpoint is in {checkpoint}", "see: assay audit checkpoint")
    size = log.size()
    first = 0 if since_ms is None else log.first_since(since_ms)
    result.origin, result.leaves, result.checkpoints = log.own.origin, size, len(stored) + len(filed) + len(given)
    seen.total = size
    wider, unknown = log.wider_grants()
    if unknown:
        result.notes.append(unknown)
    for identity, rights in wider:
        result.mismatches += 1
        yield Mismatch("grant", None, f"{identity} may change the log: {rights}")
    check = Verification(log.own.origin, verifiers, [*stored, *filed, *given], size, log.expiries())
    for mismatch in _found(log, check, result, first, seen):
        result.mismatches += 1
        yield mismatch
    if is_filed:
        known = {each.note for each in filed}
        for each in stored:
            if each.note not in known:
                result.mismatches += 1
                yield Mismatch(
                    "file", None, f"{own_file} lacks the {each.where.removeprefix('store, ')} that the store has"
                )
    elif stored and (log.own.directory / PUBLIC_FILE).exists():
        result.mismatches += 1
        yield Mismatch("file", None, f"{own_file} is missing, and the store has {len(stored)} checkpoints")
    if result.anchored < size:
        result.unanchored_s = log.age_s(result.anchored)
    most = log.own.max_unanchored_s
    result.too_old = bool(most) and result.unanchored_s > most


def _found(log: AuditLog, check: Verification, result: Result, first: int, seen: Counts) -> Iterator[Mismatch]:
    yield from check.before()
    size = result.leaves
    end = 0
    while end < size:
        start, end = end, min(size, end + PAGE)
        leaves = log.leaves(start, end)
        if not leaves:  # a forged leaf may be far behind the end
            end = log.next_leaf(end)
            yield from check.gap(start, end)
        elif end <= first:
            yield from check.page(start, end, leaves, None)
        else:
            yield from check.page(start, end, leaves, log.rows(start, end), log.disclosures(start, end))
        seen.rows = end
        result.anchored = check.confirmed
    yield from check.absences()
    result.expired = check.expired
    # Leaves that were written meanwhile are another run's; rows behind them may be those of a batch that is being written.
    wrong, result.unfinished = check.after(log.rows(size, _LAST))
    if wrong and (written := log.size()) > size:
        end = written + log.own.batch_rows
        wrong = [each for each in wrong if each.leaf_index is not None and each.leaf_index >= end]
    yield from wrong


@dataclass(frozen=True)
class Anchor:
    """A place where a checkpoint is. `problem`: why it does not count; empty if it does."""

    where: str
    size: int
    root: str
    problem: str = ""


def anchors(log: AuditLog, vkeys: Sequence[str] = ()) -> list[Anchor]:
    """Return the newest checkpoint of each place."""
    verifiers = log.verifiers(vkeys)
    found = []
    own_file = log.own.directory / CHECKPOINT_FILE
    for where, notes in (
        ("store", log.newest_notes()[:1]),
        (str(own_file), notes_in(own_file)[-1:] if own_file.exists() else []),
    ):
        if not notes:
            found.append(Anchor(where, 0, "", "no checkpoint"))
            continue
        try:
            newest = Checkpoint.verified(notes[0].note, verifiers, log.own.origin)
            found.append(Anchor(where, newest.size, newest.root.hex()))
        except NoteError as error:
            found.append(Anchor(where, 0, "", str(error)))
    return found


def newest_note(log: AuditLog) -> str:
    """Return the newest signed checkpoint in the store. Raises `OperationError`."""
    notes = log.newest_notes()
    if not notes:
        raise OperationError(
            "not_found", f"no checkpoint of {log.own.origin!r} is stored", "start the auditor; see assay doctor"
        )
    return notes[0].note


def listed(
    log: AuditLog, *, tool: str = "", status: str = "", project: str = "", since_ms: int = 0, limit: int = 50
) -> list[dict[str, Any]]:
    """Return rows, newest first. Every filter that is given must hold."""
    wanted = {"tool": tool, "status": status, "project": project, "since": since_ms, "limit": limit}
    query = _ROWS + (
        " AND occurred_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND ({tool:String} = '' OR tool_name = {tool:String})"
        " AND ({status:String} = '' OR status = {status:String}) AND ({project:String} = '' OR project = {project:String})"
        " ORDER BY leaf_index DESC LIMIT {limit:UInt64}"
    )
    return [dict(zip(_COLUMNS, row, strict=True)) for row in log.query(query, **wanted)]


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
        what = f"no row {name} in the log {log.own.origin!r}"
        return OperationError("not_found", what, "it is not written yet; see assay doctor")
    index = int(leaves[0][0])
    for each in log.expiries():
        expected = {(each.leaf_index, each.leaf_hash), (each.before - 1, each.last_hash)}
        found = {(leaf.leaf_index, leaf.leaf_hash) for place, _ in expected for leaf in log.leaves(place, place + 1)}
        if each.before > index and expected <= found:
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
    """Return the personal fields of a row by name. Digests whose disclosure was erased have None."""
    place = row["leaf_index"]
    by_digest = {digest: opened(text) for _, digest, text in log.disclosures(place, place + 1)}
    found: dict[str, str | None] = {}
    for digest in row["sd"]:
        name, value = by_digest.get(digest) or (digest, None)
        found[name] = value
    return dict(sorted(found.items()))


def proof(log: AuditLog, name: str, *, vkeys: Sequence[str] = (), progress: Counts | None = None) -> dict[str, Any]:
    """Return a bundle that proves a row: see `assay_auditor.bundle`. Raises `OperationError`."""
    seen = progress or Unseen()
    verifiers = log.verifiers(vkeys)
    row = found_row(log, name)
    index = row["leaf_index"]
    covering = None
    for each in log.newest_notes(above=index):
        try:
            found = Checkpoint.verified(each.note, verifiers, log.own.origin)
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
        return bundle_of(leaf_data(row), index, path, note, verifiers[0].vkey, texts)
    except ValueError:
        raise OperationError("conflict", f"row {index} has no canonical form", "run assay audit verify") from None


def problem_of_proof(path: Path, vkey: str) -> str:
    """Return why the bundle in a file proves nothing; '' if it proves its row.

    Needs no store. Raises `OperationError`.
    """
    try:
        bundle = orjson.loads(path.read_bytes())
        verifier = Verifier.parsed(vkey)
    except OSError as error:
        raise OperationError("not_found", f"cannot read {path} ({error.strerror})") from None
    except orjson.JSONDecodeError:
        return "the bundle is malformed"
    except NoteError as error:
        raise OperationError("invalid", f"--vkey: {error}", "see: assay audit key") from None
    return problem_of(bundle, verifier) if isinstance(bundle, dict) else "the bundle is malformed"
