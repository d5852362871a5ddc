"""The log in the store: continues it, appends to it, signs it.

One process at a time appends (`keys.Lock`). A batch is written as rows, disclosures, leaves: the leaves say how long the log is. An
interrupted batch has rows without leaves; these get theirs before anything else is appended, from what the rows say: their sources may
be gone. Rows come first, so that no disclosure is ever at a place that gets another row; a file keeps the hashes and the disclosures of the
batch until its leaves are written, so that a crash in between loses no value. A row whose hash the file lacks must agree with its source.

The lock is one of a directory. Against an auditor with another one, the end of the log is read before each batch, rows are read back
before their leaves are written, and leaves before they are signed: of two auditors that wrote different leaves at one place, at most one
can have read only its own, so that at most one signs.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import orjson

from assay_auditor.chain import GENESIS, is_hash
from assay_auditor.disclosures import opened
from assay_auditor.interrupted import End, KeptBatch, taken_over
from assay_auditor.keys import (
    BATCH_FILE,
    CHECKPOINT_FILE,
    KEY_FILE,
    NEXT_FILE,
    ROTATION_FILE,
    KeyFileError,
    append_checkpoint,
    drop_batch,
    keep_batch,
    kept_batch,
    last_notes,
    next_signer,
    replace_signer,
)
from assay_auditor.merkle import Tree
from assay_auditor.notes import Checkpoint, NoteError, Signed, Signer
from assay_auditor.rotation import KEYS_FIELD, OPERATION, KeyChain, Rotation, signed_by_both, target_of
from assay_auditor.rows import HASHED, Leaf, Row, Source, columns_sql, leaf_of, stored_row
from assay_auditor.sources import EVENT_KINDS, Sources
from assay_runtime import metrics
from assay_runtime.store import Client, insert_json_rows

log = logging.getLogger(__name__)

#: Leaves that one query reads, and rows behind the end of the log that are looked at, more than a batch.
_PAGE, _BEHIND = 100_000, 200_000
#: Checkpoints that the first query reads, and at most a later one if the ones before are by another key.
_FIRST_CHECKPOINTS, _MOST_CHECKPOINTS = 10, 10_000
#: Seconds that an auditor which wrote a different row at the same place has for its leaf, before one of the rows is chosen.
_CONTESTED_S = 30.0
#: Columns of what is inserted as lists of values, which the store reads faster than objects.
_DISCLOSURE = ("log", "leaf_index", "digest", "disclosure", "project", "created_at")
_LEAF = ("log", "leaf_hash", "place", "leaf_index", "chain_hash", "kind", "source_id")


class LogDamagedError(RuntimeError):
    """The store contradicts itself or the file of checkpoints, so nothing may be appended."""


class LogMovedError(RuntimeError):
    """Another auditor writes the log, and this one has to read its end again. No damage."""

    def __init__(self) -> None:
        super().__init__(
            "another auditor, with another directory, writes this log: stop one, or let them share auditor.directory"
        )


class Log:
    """A log that this process appends to.

    Synchronous. Raises the driver's errors and `LogMovedError`; after one, `resume` must be called again.
    """

    def __init__(self, client: Client, base_database: str, signer: Signer, secret: bytes, directory: Path) -> None:
        self.origin = signer.name
        self.tree = Tree()
        #: Greatest place of the sources of each kind, events as one.
        self.places: dict[str, int] = {}
        self.checkpoint_size = 0
        #: The newest signed checkpoint; None before the first.
        self.newest: Signed | None = None
        #: When the newest checkpoint was known to cover all leaves, by `time.time`; 0 if none ever did.
        self.covered_at = 0.0
        self._client, self._base = client, base_database
        self._signer, self._secret, self._directory = signer, secret, directory
        self._previous = GENESIS
        #: The tree up to which the store was compared with what this process knows, and rows behind the end that are not the log's.
        self._compared = Tree()
        self._foreign: set[tuple[int, str]] = set()

    def resume(self, sources: Sources) -> None:
        """Read where the log ends, and complete an interrupted batch. Raises `LogDamagedError`."""
        self._expect_present_key()
        note, in_file = self._in_file()
        stored_note, in_store = self._in_store()
        anchors = [each for each in (in_file, in_store) if each]
        anchor = max(anchors, key=lambda each: each.size, default=None)
        self.tree, self.places = self._start(anchor)
        size = self._size(self.tree.size)
        if anchor and anchor.size > size:
            raise LogDamagedError(
                f"the store has {size} leaves, and a checkpoint of {anchor.size} is signed: leaves were lost, or an old backup was "
                "restored. Restore a newer one, or see docs/audit.md"
            )
        if any(each.size == anchor.size and each.root != anchor.root for each in anchors if anchor):
            raise LogDamagedError(
                f"two checkpoints of {anchors[0].size} leaves have different roots: run assay audit verify"
            )
        self._previous = self._chain_hash(self.tree.size)
        at_anchor = Tree(self.tree.size, self.tree.edge)
        self._read_places(self.tree.size)
        while self.tree.size < size:
            for leaf, chain in self._page(self.tree.size, min(size, self.tree.size + _PAGE)):
                self.tree.append(leaf)
                self._previous = chain
                if anchor and self.tree.size == anchor.size:
                    at_anchor = Tree(self.tree.size, self.tree.edge)
        self._compared = at_anchor
        if anchor and anchor.size and at_anchor.root() != anchor.root:
            raise LogDamagedError(
                f"the leaves in the store are others than those of the signed checkpoint of {anchor.size}: run assay audit verify"
            )
        self.checkpoint_size = in_file.size if in_file else 0
        self.newest = Signed(anchor, note if anchor == in_file else stored_note) if anchor else None
        if in_file and in_file == anchor and in_file != in_store:  # its insert failed
            self._record(in_file, note, at_anchor, {})
        latest = sources.latest_place()
        if self.places.get("event", 0) > latest:
            raise LogDamagedError(
                "a leaf has a place that no event has reached yet, and its successors would never be read: run assay audit verify --full"
            )
        self._complete(sources, latest)

    def append(self, found: Sequence[Source]) -> None:
        """Append sources, in their order, in one batch. Raises `LogMovedError` before it writes leaves."""
        if found:
            self.append_all([found])

    def append_all(self, batches: Iterable[Sequence[Source]], written: Callable[[], object] = lambda: None) -> None:
        """Append batches, none of them empty. While one is written, the next one is read and hashed.

        `written` is called after each, in the thread that writes. After an error nothing further is written. Raises like `append`.
        """
        size, previous = self.tree.size, self._previous
        with ThreadPoolExecutor(1) as writer:
            writing: Future[None] | None = None
            for found in batches:
                leaves: list[Leaf] = []
                for source in found:
                    leaves.append(leaf_of(source, size, previous, self._secret))
                    size, previous = size + 1, leaves[-1].chain_hash
                if writing:
                    writing.result()
                writing = writer.submit(self._write, leaves, written)
            if writing:
                writing.result()

    def sign(self) -> bool:
        """Sign a checkpoint if the log has grown. True if it has.

        Raises `LogDamagedError`, `LogMovedError` and `OSError` too. The checkpoint is in the file, on disk, before it is in the store.
        """
        if self.tree.size == self.checkpoint_size:
            self.covered_at = time.time()
            return False
        self._expect_signable()
        checkpoint = Checkpoint(self.origin, self.tree.size, self.tree.root())
        note = self._signer.signed(checkpoint.text)
        append_checkpoint(self._directory, note)
        self._record(checkpoint, note, self.tree, self.places)
        self.checkpoint_size, self.covered_at = checkpoint.size, time.time()
        self.newest = Signed(checkpoint, note)
        return True

    def rotate(self, new: Signer) -> None:
        """Replace the key: state it, sign a checkpoint with both keys, remove the old private key.

        Raises `KeyFileError` if no leaf records it, and `OSError` too. After an interruption at any point, the next start does all of it
        again.
        """
        old = self._signer
        self._expect_record(target_of(old.verifier, new.verifier))
        self._expect_signable()
        checkpoint = Checkpoint(self.origin, self.tree.size, self.tree.root())
        statement = signed_by_both(Rotation(checkpoint, old.verifier, new.verifier).text, old, new)
        append_checkpoint(self._directory, statement, ROTATION_FILE)
        note = signed_by_both(checkpoint.text, old, new)
        append_checkpoint(self._directory, note)
        self._record(checkpoint, note, self.tree, self.places, statement)
        replace_signer(self._directory, new)
        self._signer = new
        self.checkpoint_size, self.covered_at = checkpoint.size, time.time()
        self.newest = Signed(checkpoint, note)

    def _expect_present_key(self, least: int = 0) -> None:
        """Raise `LogDamagedError` if the key was replaced, at this size or a larger one, where another directory has the new one.

        A rotation of this directory that was interrupted still has its new key here.
        """
        own, following = self._signer.verifier, next_signer(self._directory, self.origin)
        statements = self._client.query(
            "SELECT DISTINCT rotation FROM audit_checkpoints WHERE log = {log:String} AND size >= {least:UInt64} AND rotation != ''",
            parameters={"log": self.origin, "least": least},
        ).result_rows
        for old, new in KeyChain([own], [str(text) for (text,) in statements]).replaced:
            if old == own and (following is None or following.verifier != new):
                raise LogDamagedError(
                    f"the key in {self._directory} was replaced by {new.id.hex()}, which it lacks: copy the files of the directory of the "
                    "auditor that replaced it, or use that directory"
                )

    def _expect_record(self, target: dict[str, str]) -> None:
        """Raise `KeyFileError` if no leaf records the change of the key: `assay audit verify` would never accept it."""
        records = self._client.query(
            "SELECT leaf_index FROM audit_rows "
            "WHERE log = {log:String} AND leaf_index < {size:UInt64} AND kind = 'operation' AND tool_name = {operation:String}",
            parameters={"log": self.origin, "size": self.tree.size, "operation": OPERATION},
        ).result_rows
        rows = self._client.query(
            "SELECT disclosure FROM audit_disclosures WHERE log = {log:String} AND leaf_index IN {places:Array(UInt64)}",
            parameters={"log": self.origin, "places": sorted({int(place) for (place,) in records})},
        ).result_rows
        if (KEYS_FIELD, orjson.dumps(target).decode()) not in {opened(text) for (text,) in rows}:
            raise KeyFileError(
                f"no leaf records the change to the key in {self._directory / NEXT_FILE}: remove it, and run assay audit rotate-key"
            )

    def _record(
        self, checkpoint: Checkpoint, note: str, tree: Tree, places: dict[str, int], rotation: str = ""
    ) -> None:
        """Add a checkpoint to the store, with the edge of its tree and the places of its leaves; {} if they are not known."""
        row = {
            "log": self.origin,
            "size": checkpoint.size,
            "root": checkpoint.root.hex(),
            "note": note,
            "edge": [each.hex() for each in tree.edge],
            "places": places,
            "rotation": rotation,
        }
        self._insert("audit_checkpoints", _lines([orjson.dumps(row)]))

    def _size(self, start: int) -> int:
        """Return the number of leaves.

        Raises `LogDamagedError` if one is missing from `start` on. Earlier ones are not counted: `assay audit verify` does.
        """
        ends = self._client.query(
            "SELECT leaf_index FROM audit_leaves WHERE log = {log:String} ORDER BY leaf_index DESC LIMIT 1",
            parameters={"log": self.origin},
        ).result_rows
        size = int(ends[0][0]) + 1 if ends else 0
        [[found]] = self._client.query(
            "SELECT uniqExact(leaf_index) FROM audit_leaves "
            "WHERE log = {log:String} AND leaf_index >= {start:UInt64} AND leaf_index < {size:UInt64}",
            parameters={"log": self.origin, "start": start, "size": size},
        ).result_rows
        if start + found < size:
            raise LogDamagedError(
                f"{size - start - found} leaf hashes are missing in the store: run assay audit verify --full"
            )
        return size

    def _in_store(self, least: int = 0) -> tuple[str, Checkpoint | None]:
        """Return the newest note in the store of at least so many leaves, and its checkpoint; None without one.

        Raises `LogDamagedError` if there are some, and this key signed none.
        """
        is_empty = True
        for _, note, _, _ in self._stored_checkpoints(2**63, f"size >= {least}"):
            is_empty = False
            try:
                return note, Checkpoint.verified(note, [self._signer.verifier], self.origin)
            except NoteError:
                continue
        if not is_empty:
            raise LogDamagedError(
                f"another key signed the checkpoints of {self.origin} in the store, or they are forged: run assay audit verify --full. If "
                f"the key was lost, restore {self._directory / KEY_FILE}, or start another log with another auditor.origin"
            )
        return "", None

    def _stored_checkpoints(self, most: int, condition: str) -> Iterator[tuple[int, str, list[str], dict[str, int]]]:
        """Return the stored checkpoints of at most so many leaves, the newest first.

        Reads them in pages, because any number of them may be forged. `condition`: SQL.
        """
        page, size, note = _FIRST_CHECKPOINTS, most + 1, ""
        while True:
            rows = self._client.query(
                "SELECT size, note, edge, places FROM audit_checkpoints "  # noqa: S608 - numbers and a constant
                "WHERE log = {log:String} AND size <= {size:UInt64} AND (size, note) < ({size:UInt64}, {note:String}) "
                f"AND {condition} ORDER BY size DESC, note DESC LIMIT {page}",
                parameters={"log": self.origin, "size": size, "note": note},
            ).result_rows
            yield from ((int(each[0]), str(each[1]), list(each[2]), dict(each[3])) for each in rows)
            if len(rows) < page:
                return
            size, note = rows[-1][:2]
            page = min(10 * page, _MOST_CHECKPOINTS)

    def _in_file(self) -> tuple[str, Checkpoint | None]:
        """Return the newest note in the file, and its checkpoint; None without one.

        Raises `LogDamagedError` if it is not one of this log and key.
        """
        path = self._directory / CHECKPOINT_FILE
        notes = last_notes(self._directory)
        for note in reversed(notes):
            try:
                return note, Checkpoint.verified(note, [self._signer.verifier], self.origin)
            except NoteError as error:
                if note is not notes[-1]:  # a crash may damage the last one only
                    raise LogDamagedError(f"{path}: {error}; restore it from a backup") from None
        return "", None

    def _start(self, anchor: Checkpoint | None) -> tuple[Tree, dict[str, int]]:
        """Return the tree and the places of the newest signed checkpoint whose edge is stored, no further than the anchor.

        Without one, an empty tree. `assay audit verify` compares the places with those of the leaves.
        """
        if anchor is None:
            return Tree(), {}
        for size, note, edge, places in self._stored_checkpoints(anchor.size, "notEmpty(places)"):
            try:
                signed = Checkpoint.verified(note, [self._signer.verifier], self.origin)
                tree = Tree(size, [bytes.fromhex(each) for each in edge])
            except ValueError:
                continue
            if signed.size == size and tree.root() == signed.root:
                return tree, places
        return Tree(), {}

    def _read_places(self, start: int) -> None:
        """Read the greatest places of the leaves from `start` on."""
        rows = self._client.query(
            "SELECT if(kind IN ('tool_call', 'server_event'), 'event', toString(kind)) AS source, max(place) FROM audit_leaves "
            "WHERE log = {log:String} AND leaf_index >= {start:UInt64} GROUP BY source",
            parameters={"log": self.origin, "start": start},
        ).result_rows
        for kind, place in rows:
            self.places[str(kind)] = max(self.places.get(str(kind), 0), int(place))

    def _chain_hash(self, size: int) -> bytes:
        if not size:
            return GENESIS
        [(_, chain)] = self._page(size - 1, size)
        return chain

    def _page(self, start: int, end: int) -> list[tuple[bytes, bytes]]:
        """Return the leaf hashes and chain hashes of a range. Raises `LogDamagedError` if a place has none, or two."""
        rows = self._client.query(
            "SELECT DISTINCT leaf_index, leaf_hash, chain_hash FROM audit_leaves "
            "WHERE log = {log:String} AND leaf_index >= {start:UInt64} AND leaf_index < {end:UInt64} ORDER BY leaf_index",
            parameters={"log": self.origin, "start": start, "end": end},
        ).result_rows
        if [row[0] for row in rows] != list(range(start, end)):
            raise LogDamagedError(
                f"leaves {start} to {end - 1} in the store are incomplete or double: run assay audit verify --full"
            )
        if not all(is_hash(leaf) and is_hash(chain) for _, leaf, chain in rows):
            raise LogDamagedError(f"a hash of leaves {start} to {end - 1} is malformed: run assay audit verify --full")
        return [(bytes.fromhex(leaf), bytes.fromhex(chain)) for _, leaf, chain in rows]

    def _complete(self, sources: Sources, latest: int) -> None:
        """Write the leaves of rows that an interrupted batch left behind the end. Raises `LogMovedError`.

        A row says all that its leaf needs. Its source may have been deleted since, or stored again with another time.
        `latest`: the greatest place of an event.
        """
        columns = (*HASHED, "leaf_hash")
        found = self._client.query(
            f"SELECT DISTINCT {columns_sql(columns)} FROM audit_rows WHERE log = {{log:String}} AND leaf_index >= {{size:UInt64}} "  # noqa: S608
            "ORDER BY leaf_index, leaf_hash LIMIT {most:UInt64}",
            parameters={"log": self.origin, "size": self.tree.size, "most": _BEHIND},
        ).result_rows
        rows = [dict(zip(columns, row, strict=True)) for row in found]
        kept = KeptBatch.parsed(kept_batch(self._directory))
        leaves, unconfirmed = taken_over(
            rows,
            kept.hashes,
            sources,
            End(self.tree.size, self._previous, latest),
            self._secret,
            self._expect_abandoned,
        )
        own = {(leaf.row["leaf_index"], leaf.hash.hex()) for leaf in leaves}
        others = [row for row in rows if (row["leaf_index"], row["leaf_hash"]) not in own]
        self._foreign = {(row["leaf_index"], row["leaf_hash"]) for row in others}
        if others:
            self._name_others(others)
        if unconfirmed:
            metrics.AUDIT_UNCONFIRMED_ROWS.inc(len(unconfirmed))
            log.error(
                "%d rows behind the end of the log get leaves although nothing confirms them, the first is leaf %d: their sources are "
                "gone, and %s does not have them. Look at them with assay audit show, and find out who inserted them",
                len(unconfirmed), unconfirmed[0].row["leaf_index"], BATCH_FILE,
            )  # fmt: skip
        if leaves:
            self._add_lacking(leaves, kept.disclosures, sources)
            self._add_leaves(leaves)
        drop_batch(self._directory)
        if len(rows) == _BEHIND:
            self._expect_few()

    def _expect_few(self) -> None:
        """Raise `LogDamagedError` if more rows are behind the end than are looked at.

        `_expect_rows` would take the others for rows of another auditor.
        """
        [[count, first, last]] = self._client.query(
            "SELECT uniqExact(leaf_index, leaf_hash), min(leaf_index), max(leaf_index) FROM audit_rows "
            "WHERE log = {log:String} AND leaf_index >= {size:UInt64}",
            parameters={"log": self.origin, "size": self.tree.size},
        ).result_rows
        if count >= _BEHIND:
            raise LogDamagedError(
                f"{count} rows are behind the end of the log, at leaves {first} to {last}: no auditor writes so many before their leaves. "
                f"Find out who inserted them, then remove them as owner: ALTER TABLE {self._base}.audit_rows DELETE WHERE "
                f"leaf_index >= {first} AND leaf_index <= {last} AND log = '{self.origin}'"
            )

    def _expect_abandoned(self) -> None:
        """Raise `LogMovedError` if rows behind the end are so young that an auditor may be about to write their leaves."""
        [[age_s]] = self._client.query(
            "SELECT toFloat64(dateDiff('millisecond', max(stored_at), now64(6, 'UTC'))) / 1000 FROM audit_rows "
            "WHERE log = {log:String} AND leaf_index >= {size:UInt64}",
            parameters={"log": self.origin, "size": self.tree.size},
        ).result_rows
        if 0 <= age_s < _CONTESTED_S:  # below 0 the clock was set back
            raise LogMovedError

    def _name_others(self, others: Sequence[Row]) -> None:
        """Log which rows behind the end are not taken over, and how to remove them."""
        first = others[0]
        index, text = first["leaf_index"], str(first["leaf_hash"])
        named = f"leaf_hash = '{text}'"
        if not is_hash(text):
            named = f"startsWith(hex(leaf_hash), '{text[:100].encode(errors='replace').hex().upper()}')"
        log.error(
            "%d rows behind the end of the log do not continue it or contradict their sources, the first at leaf %d: assay audit verify "
            "--full lists them. Find out who inserted them, then remove each as owner: ALTER TABLE %s.audit_rows DELETE WHERE "
            "leaf_index = %d AND %s",
            len(others), index, self._base, index, named,
        )  # fmt: skip

    def _add_lacking(self, leaves: Sequence[Leaf], kept: Mapping[str, str], sources: Sources) -> None:
        """Write the disclosures of rows that have none: the batch may have been interrupted before them.

        `kept`: disclosures by their digests. Those that it lacks are made from the sources.
        """
        known = {
            int(index)
            for (index,) in self._client.query(
                "SELECT DISTINCT leaf_index FROM audit_disclosures WHERE log = {log:String} AND leaf_index >= {size:UInt64}",
                parameters={"log": self.origin, "size": self.tree.size},
            ).result_rows
        }
        lacking = [leaf for leaf in leaves if leaf.row["sd"] and leaf.row["leaf_index"] not in known]
        if not lacking:
            return
        texts = dict(kept)
        absent = [_named(leaf) for leaf in lacking if not texts.keys() >= set(leaf.row["sd"])]
        for source in sources.by_ids(absent):  # another directory has the file
            texts |= leaf_of(source, 0, GENESIS, self._secret).disclosures
        made = [
            replace(leaf, disclosures=tuple((each, texts[each]) for each in leaf.row["sd"] if each in texts))
            for leaf in lacking
        ]
        self._insert("audit_disclosures", self._disclosures(made), _DISCLOSURE)
        if gone := sum(len(leaf.disclosures) < len(leaf.row["sd"]) for leaf in made):
            log.warning(
                "values of personal fields of %d rows are lost: their sources are gone, and %s has none of them",
                gone,
                BATCH_FILE,
            )

    def _write(self, leaves: Sequence[Leaf], written: Callable[[], object]) -> None:
        disclosures = self._disclosures(leaves)
        self._expect_end()
        self._expect_rows(())
        keep_batch(self._directory, _lines(orjson.dumps(leaf.hash.hex()) for leaf in leaves), disclosures)
        self._insert("audit_rows", _lines(stored_row(leaf, self.origin) for leaf in leaves))
        self._expect_rows(leaves)
        self._insert("audit_disclosures", disclosures, _DISCLOSURE)
        self._add_leaves(leaves)
        drop_batch(self._directory)
        written()

    def _disclosures(self, leaves: Sequence[Leaf]) -> bytes:
        """Return the rows of the disclosures of leaves, with the columns `_DISCLOSURE`."""
        hidden = (
            [self.origin, leaf.row["leaf_index"], digest, text, leaf.row["project"], leaf.row["created_at"]]
            for leaf in leaves
            for digest, text in leaf.disclosures
        )
        return _lines(map(orjson.dumps, hidden))

    def _add_leaves(self, leaves: Sequence[Leaf]) -> None:
        hashes = ([self.origin, leaf.hash.hex(), leaf.place, *map(leaf.row.get, _LEAF[3:])] for leaf in leaves)
        self._insert("audit_leaves", _lines(map(orjson.dumps, hashes)), _LEAF)
        for leaf in leaves:
            self.tree.append(leaf.hash)
            kind = "event" if leaf.row["kind"] in EVENT_KINDS else leaf.row["kind"]
            self.places[kind] = max(self.places.get(kind, 0), leaf.place)
        self._previous = leaves[-1].chain_hash

    def _expect_end(self) -> None:
        """Raise `LogMovedError` if the log in the store ends elsewhere, or with another leaf, than this process knows."""
        size = self.tree.size
        found = self._client.query(
            "SELECT DISTINCT leaf_index, chain_hash FROM audit_leaves WHERE log = {log:String} AND leaf_index >= {last:UInt64} LIMIT 2",
            parameters={"log": self.origin, "last": max(0, size - 1)},
        ).result_rows
        if list(map(tuple, found)) != [(size - 1, self._previous.hex())] * bool(size):
            raise LogMovedError

    def _expect_rows(self, own: Sequence[Leaf]) -> None:
        """Raise `LogMovedError` if rows behind the end are neither these nor the ones that were there at the start."""
        known = {(leaf.row["leaf_index"], leaf.hash.hex()) for leaf in own} | self._foreign
        [[found]] = self._client.query(
            "SELECT uniqExact(leaf_index, leaf_hash) FROM audit_rows WHERE log = {log:String} AND leaf_index >= {size:UInt64}",
            parameters={"log": self.origin, "size": self.tree.size},
        ).result_rows
        if found > sum(index >= self.tree.size for index, _ in known):
            raise LogMovedError

    def _expect_signable(self) -> None:
        """Compare what is to be signed with the store and the newest checkpoints. Raises `LogDamagedError` and `LogMovedError`.

        All leaves since the last comparison are read: each place must have one only, and their root must be that of this process.
        """
        least = self._compared.size  # smaller ones were compared before
        self._expect_present_key(least)
        self._expect_end()
        signed = [each for _, each in (self._in_file(), self._in_store(least)) if each]
        if any(each.size > self.tree.size for each in signed):
            raise LogMovedError
        tree = Tree(self._compared.size, self._compared.edge)
        roots = {each.size: each.root for each in signed}
        if len(set(signed)) > len(roots) or roots.get(tree.size, tree.root()) != tree.root():
            raise LogDamagedError(f"another root of {max(roots)} leaves or fewer is signed: run assay audit verify")
        while tree.size < self.tree.size:
            for leaf, _ in self._page(tree.size, min(self.tree.size, tree.size + _PAGE)):
                tree.append(leaf)
                if tree.size in roots and roots[tree.size] != tree.root():
                    raise LogDamagedError(f"another root of {tree.size} leaves is signed: run assay audit verify")
        if tree.root() != self.tree.root():
            raise LogDamagedError("the leaves in the store are others than were written: run assay audit verify --full")
        self._compared = tree

    def _insert(self, table: str, rows: bytes, columns: Sequence[str] = ()) -> None:
        insert_json_rows(self._client, f"{self._base}.{table}", rows, rows.count(b"\n"), columns)


def _lines(documents: Iterable[bytes]) -> bytes:
    """Return documents of JSON, one a line."""
    lines = bytearray()
    for each in documents:  # one after another: each result of orjson has a buffer of kilobytes
        lines += each
        lines += b"\n"
    return bytes(lines)


def _named(leaf: Leaf) -> tuple[str, str]:
    return leaf.row["kind"], leaf.row["source_id"]
