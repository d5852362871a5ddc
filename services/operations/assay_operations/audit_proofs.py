"""Find rows of the audit log and prove that they are in it: `found_row`, `proof`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from assay_auditor.bundle import bundle_of, problem_of
from assay_auditor.disclosures import digest_of, opened
from assay_auditor.keys import notes_in as notes_of_file
from assay_auditor.merkle import inclusion_ranges, range_roots
from assay_auditor.notes import NoteError, Verifier
from assay_auditor.rows import leaf_data
from assay_operations.audit_log import PAGE, ROW_COLUMNS, ROWS, AuditLog
from assay_operations.errors import OperationError
from assay_operations.progress import Counts, Unseen

#: Leaves that one query reads.


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
    rows = log.query(ROWS + " AND leaf_index IN {places:Array(UInt64)}", places=list(places))
    found = (dict(zip(ROW_COLUMNS, row, strict=True)) for row in rows)
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
    rows = log.query(ROWS + where + " ORDER BY leaf_index LIMIT 1", **wanted)
    if not rows:
        raise _absent(log, name, where, wanted)
    return dict(zip(ROW_COLUMNS, rows[0], strict=True))


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
