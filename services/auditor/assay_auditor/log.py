"""The log in the store: continues it, appends to it, signs it.

One process at a time appends (`keys.Lock`). A batch is written as disclosures, rows, leaves: the leaves say how long the log is. An
interrupted batch has rows without leaves; they are made again from their sources before anything else is appended.
"""

import logging
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson

from assay_auditor.chain import GENESIS, is_hash
from assay_auditor.disclosures import opened
from assay_auditor.keys import (
    CHECKPOINT_FILE,
    KEY_FILE,
    NEXT_FILE,
    ROTATION_FILE,
    KeyFileError,
    append_checkpoint,
    last_notes,
    replace_signer,
)
from assay_auditor.merkle import Tree
from assay_auditor.notes import Checkpoint, NoteError, Signed, Signer
from assay_auditor.rotation import KEYS_FIELD, OPERATION, Rotation, signed_by_both, target_of
from assay_auditor.rows import Leaf, Source, leaf_of, stored_row
from assay_auditor.sources import EVENT_KINDS, Sources
from assay_runtime.store import Client, insert_json_rows

log = logging.getLogger(__name__)

#: Leaves that one query reads.
_PAGE = 100_000
#: Columns of what is inserted as lists of values, which the store reads faster than objects.
_DISCLOSURE = ("log", "leaf_index", "digest", "disclosure", "project", "created_at")
_LEAF = ("log", "leaf_hash", "place", "leaf_index", "chain_hash", "kind", "source_id")


class LogDamagedError(RuntimeError):
    """The store contradicts itself or the file of checkpoints, so nothing may be appended."""


class Log:
    """A log that this process appends to.

    Synchronous. Raises the driver's errors; after one, `resume` must be called again.
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

    def resume(self, sources: Sources) -> None:
        """Read where the log ends, and complete an interrupted batch. Raises `LogDamagedError`."""
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
        """Append sources, in their order, in one batch."""
        leaves: list[Leaf] = []
        previous = self._previous
        for source in found:
            leaf = leaf_of(source, self.tree.size + len(leaves), previous, self._secret)
            previous = leaf.chain_hash
            leaves.append(leaf)
        self._write(leaves)

    def sign(self) -> bool:
        """Sign a checkpoint if the log has grown. Raises `OSError` too.

        It is in the file, on disk, before it is in the store.
        """
        if self.tree.size == self.checkpoint_size:
            self.covered_at = time.time()
            return False
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
        self._insert("audit_checkpoints", [orjson.dumps(row)])

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

    def _in_store(self) -> tuple[str, Checkpoint | None]:
        """Return the newest note in the store, and its checkpoint; None without one.

        Raises `LogDamagedError` if this key signed none of the newest.
        """
        stored = self._stored_checkpoints(2**63)
        for _, note, _, _ in stored:
            try:
                return note, Checkpoint.verified(note, [self._signer.verifier], self.origin)
            except NoteError:
                continue
        if stored:
            raise LogDamagedError(
                f"another key signed the checkpoints of {self.origin} in the store: restore {self._directory / KEY_FILE}, or start another "
                "log with another auditor.origin"
            )
        return "", None

    def _stored_checkpoints(self, most: int) -> list[tuple[int, str, list[str], dict[str, int]]]:
        rows = self._client.query(
            "SELECT size, note, edge, places FROM audit_checkpoints WHERE log = {log:String} AND size <= {most:UInt64} "
            "ORDER BY size DESC, note LIMIT 10",
            parameters={"log": self.origin, "most": most},
        ).result_rows
        return [(int(size), str(note), list(edge), dict(places)) for size, note, edge, places in rows]

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
        for size, note, edge, places in self._stored_checkpoints(anchor.size if anchor else 0):
            try:
                signed = Checkpoint.verified(note, [self._signer.verifier], self.origin)
                tree = Tree(size, [bytes.fromhex(each) for each in edge])
            except ValueError:
                continue
            if signed.size == size and tree.root() == signed.root and places:
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
        """Write the leaves of rows that an interrupted batch left behind the end, if their sources say the same.

        The source may have been stored again meanwhile, at a later place: the row keeps its own. `latest`: that of an event.
        """
        rows = self._client.query(
            "SELECT leaf_index, leaf_hash, toString(kind), toString(source_id), late, place FROM audit_rows "
            "WHERE log = {log:String} AND leaf_index >= {size:UInt64} ORDER BY leaf_index, leaf_hash LIMIT 1 BY leaf_index LIMIT 200000",
            parameters={"log": self.origin, "size": self.tree.size},
        ).result_rows
        if not rows:
            return
        stored = {(each.kind, each.source_id): each for each in sources.by_ids([(row[2], row[3]) for row in rows])}
        leaves: list[Leaf] = []
        previous = self._previous
        for index, expected, kind, source_id, late, place in rows:
            source = stored.get((kind, source_id))
            if source is None or index != self.tree.size + len(leaves):
                break
            if place > (latest if kind in EVENT_KINDS else source.place):
                break
            leaf = leaf_of(Source(**(vars(source) | {"late": late, "place": place})), index, previous, self._secret)
            if leaf.hash.hex() != expected:
                break
            previous = leaf.chain_hash
            leaves.append(leaf)
        if len(leaves) < len(rows):
            log.error("rows behind the end of the log are not those of an interrupted batch: run assay audit verify")
        self._write(leaves)

    def _write(self, leaves: Sequence[Leaf]) -> None:
        if not leaves:
            return
        origin = self.origin
        hidden = (
            [origin, leaf.row["leaf_index"], digest, text, leaf.row["project"], leaf.row["created_at"]]
            for leaf in leaves
            for digest, text in leaf.disclosures
        )
        hashes = ([origin, leaf.hash.hex(), leaf.place, *map(leaf.row.get, _LEAF[3:])] for leaf in leaves)
        self._insert("audit_disclosures", map(orjson.dumps, hidden), _DISCLOSURE)
        self._insert("audit_rows", (stored_row(leaf, origin) for leaf in leaves))
        self._insert("audit_leaves", map(orjson.dumps, hashes), _LEAF)
        for leaf in leaves:
            self.tree.append(leaf.hash)
            kind = "event" if leaf.row["kind"] in EVENT_KINDS else leaf.row["kind"]
            self.places[kind] = max(self.places.get(kind, 0), leaf.place)
        self._previous = leaves[-1].chain_hash

    def _insert(self, table: str, lines: Iterable[bytes], columns: Sequence[str] = ()) -> None:
        payload, rows = bytearray(), 0
        for line in lines:  # one after another: each result of orjson has a buffer of kilobytes
            payload += line
            payload += b"\n"
            rows += 1
        insert_json_rows(self._client, f"{self._base}.{table}", bytes(payload), rows, columns)
