"""Rows that an interrupted batch left behind the end of the log: which of them get leaves.

A program that may insert rows can put forged ones there. The file of the batch vouches for a row, else its source; a row that
contradicts its source never gets a leaf.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import IntEnum

import orjson

from assay_auditor.disclosures import digest_of
from assay_auditor.rows import Leaf, Row, Source, leaf_of, leaf_of_row
from assay_auditor.sources import EVENT_KINDS, Sources

log = logging.getLogger(__name__)


class Proof(IntEnum):
    """Names the evidence that confirms a row behind the end of the log, the best first."""

    #: This auditor wrote it: its hash is in the file of the batch.
    KEPT = 0
    #: Its source and the secret of the salts make the same leaf,
    SOURCE = 1
    #: or do with the time of the row.
    STORED_AGAIN = 2
    #: Its source is gone.
    NONE = 3
    #: Its source says something else.
    CONTRADICTED = 4


@dataclass(frozen=True)
class KeptBatch:
    """Hashes of the leaves of the running batch, and its disclosures by their digests."""

    hashes: frozenset[str]
    disclosures: Mapping[str, str]

    @classmethod
    def parsed(cls, content: bytes) -> "KeptBatch":
        """Parse the file. Lines that a crash damaged are left out."""
        hashes: set[str] = set()
        disclosures: dict[str, str] = {}
        for line in content.splitlines():
            with suppress(ValueError, LookupError, TypeError, AttributeError):
                found = orjson.loads(line)
                if isinstance(found, str):
                    hashes.add(found)
                else:
                    disclosures[digest_of(found[3])] = found[3]
        return cls(frozenset(hashes), disclosures)


@dataclass(frozen=True)
class End:
    """The end of the log: its leaves, the chain hash of the last one, and the greatest place of an event."""

    size: int
    previous: bytes
    latest: int


def taken_over(
    rows: Sequence[Row],
    kept: Collection[str],
    sources: Sources,
    end: End,
    secret: bytes,
    expect_abandoned: Callable[[], None],
) -> tuple[list[Leaf], list[Leaf]]:
    """Return the leaves of the rows that continue the log, and those of them that nothing confirms.

    `rows`: those behind the end. `kept`: hashes of the leaves in the file of the batch. Of several rows at a place, the one is
    taken that is confirmed best, after `expect_abandoned`, which raises if an auditor may still write their leaves. A row that
    contradicts its source is never taken.
    """
    without_leaf = set(sources.unknown([row["source_id"] for row in rows]))
    to_confirm = [row for row in rows if row["leaf_hash"] not in kept and row["source_id"] in without_leaf]
    stored: dict[str, list[Source]] = {}
    for source in sources.by_ids([(row["kind"], row["source_id"]) for row in to_confirm]):
        stored.setdefault(source.source_id, []).append(source)
    at_place: dict[int, list[Row]] = {}
    for row in rows:
        at_place.setdefault(row["leaf_index"], []).append(row)
    leaves: list[Leaf] = []
    unconfirmed: list[Leaf] = []
    previous = end.previous
    while True:
        index = end.size + len(leaves)
        candidates: list[tuple[Proof, str, Leaf]] = []
        for row in at_place.get(index, ()):
            is_ahead = row["kind"] in EVENT_KINDS and row["place"] > end.latest
            leaf = leaf_of_row(row, index, previous)
            if leaf is None or is_ahead or row["source_id"] not in without_leaf:
                continue
            proof = Proof.KEPT
            if row["leaf_hash"] not in kept:
                proof = _proof(leaf, stored.get(row["source_id"], ()), previous, secret)
            if proof is not Proof.CONTRADICTED:
                candidates.append((proof, row["leaf_hash"], leaf))
        if not candidates:
            return leaves, unconfirmed
        if len(candidates) > 1:
            expect_abandoned()
        candidates.sort(key=lambda each: each[:2])
        proof, _, leaf = candidates[0]
        if sum(each is proof for each, _, _ in candidates) > 1:
            log.error(
                "several rows continue the log at leaf %d, and each is confirmed as well as the others: the one with the smallest hash "
                "gets the leaf. Either may be forged: compare them before you remove one",
                index,
            )
        leaves.append(leaf)
        if proof is Proof.NONE:
            unconfirmed.append(leaf)
        without_leaf.discard(leaf.row["source_id"])
        previous = leaf.chain_hash


def _proof(leaf: Leaf, stored: Sequence[Source], previous: bytes, secret: bytes) -> Proof:
    """Return how its source confirms a leaf.

    `stored`: the sources with its id. One that was stored again has another place and another `created_at`.
    """
    row = leaf.row
    for source in stored:
        same = replace(source, late=row["late"])
        again = replace(same, place=row["place"], created_at=row["created_at"])
        if source.kind == "lost":  # `occurred_at` is the same time
            again = replace(again, occurred_at=row["created_at"])
        for made, proof in ((same, Proof.SOURCE), (again, Proof.STORED_AGAIN)):
            if leaf_of(made, row["leaf_index"], previous, secret).hash == leaf.hash:
                return proof
    return Proof.CONTRADICTED if stored else Proof.NONE
