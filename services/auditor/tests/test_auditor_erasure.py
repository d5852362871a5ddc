"""Which absent disclosures a record of an erasure explains."""

from typing import Any

import orjson
import pytest

from assay_auditor.chain import GENESIS
from assay_auditor.disclosures import digest_of, disclosure_of
from assay_auditor.erasure import OPERATION, Erasure, Erasures, Lost, erased_hash, erasure_of
from assay_auditor.expiry import Absences, Expiry
from assay_auditor.merkle import leaf_hash
from assay_auditor.rows import Source, leaf_data, leaf_of

DIGESTS = [(1, "a"), (1, "b"), (4, "a")]
HASH = erased_hash(DIGESTS)
NO_ROWS = Absences([])


def erasures(*records: tuple[int, str], marks: list[tuple[int, str]]) -> Erasures:
    """Return erasures whose records are in the log, with the marks of the first one."""
    found = Erasures([Erasure(place, f"hash of {place}", erased) for place, erased in records])
    for place, digest in marks:
        found.mark(place, digest, HASH)
    for place in range(20):
        found.confirm(place, f"hash of {place}")
    return found


def test_what_a_signed_record_names_is_erased() -> None:
    found = erasures((8, HASH), marks=DIGESTS)
    assert all(found.add(place, [HASH], None) for place, _ in DIGESTS)
    assert found.result(9, NO_ROWS) == (3, 0, [])


@pytest.mark.parametrize(
    ("record", "marks", "signed"),
    [
        ((8, HASH), DIGESTS, 8),  # no checkpoint signs the record
        ((8, HASH), DIGESTS[:-1], 9),  # a mark was deleted
        ((8, HASH), [*DIGESTS, (5, "c")], 9),  # one was added
        ((4, HASH), DIGESTS, 9),  # it is older than a row that it names
    ],
)
def test_another_set_than_the_record_names_is_missing(record: tuple[int, str], marks: list[Any], signed: int) -> None:
    found = erasures(record, marks=marks)
    assert all(found.add(place, [HASH], None) for place, _ in DIGESTS)
    assert found.result(signed, NO_ROWS) == (0, 0, [Lost(1, 4, 3, ((record[0], len(marks)),))])


def test_a_record_that_is_not_in_the_log_explains_nothing() -> None:
    found = Erasures([Erasure(8, "another", HASH)])
    for place, digest in DIGESTS:
        found.mark(place, digest, HASH)
        found.add(place, [HASH], None)
    found.confirm(8, "hash of 8")
    assert found.result(9, NO_ROWS) == (0, 0, [Lost(1, 4, 3, ((8, 3),))])


def test_a_value_without_a_known_mark_is_not_counted() -> None:
    found = erasures((8, HASH), marks=DIGESTS)
    assert not found.add(1, [], None)
    assert not found.add(1, ["00" * 32], None)
    assert found.result(9, NO_ROWS) == (0, 0, [])


def test_one_of_two_erasures_of_a_value_is_enough() -> None:
    begun = erased_hash([(1, "a"), (2, "a")])  # an interrupted one, of which a mark is missing
    found = erasures((7, begun), (8, HASH), marks=DIGESTS)
    found.mark(1, "a", begun)
    assert found.add(1, [begun, HASH], None)
    assert found.result(9, NO_ROWS) == (1, 0, [])


@pytest.mark.parametrize(
    ("signed", "expected"), [(9, (1, 2, [])), (8, (0, 0, [Lost(1, 1, 1, ((7, 3),)), Lost(2, 2, 2)]))]
)
def test_values_that_only_a_record_of_retention_explains_are_counted_apart(signed: int, expected: object) -> None:
    found = erasures((7, HASH), marks=DIGESTS if signed == 9 else [*DIGESTS[:2], (5, "c")])
    absences = Absences([Expiry(8, "hash of 8", 4, "hash of 3", "")])
    for place in range(9):
        absences.confirm(place, f"hash of {place}")
    assert found.add(1, [HASH], absences.bound(1))
    assert found.add(2, [], absences.bound(2))
    assert found.add(2, [], absences.bound(2))
    assert found.result(signed, absences) == expected


def test_the_hash_depends_on_each_leaf_and_digest_and_tells_hostile_ones_apart() -> None:
    sets = [DIGESTS, DIGESTS[:2], [(1, "a"), (1, "b"), (5, "a")], [(1, 'a"],[1,"b'), (4, "a")], [(1, "\ud800")], []]
    assert len({erased_hash(each) for each in sets}) == len(sets)


def row_of(target: object, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    source = Source(
        **{
            "kind": "operation", "source_id": "0" * 8, "place": 1, "occurred_at": "2026-05-17T18:00:00.000000Z",
            "created_at": "2026-05-17T18:00:00.000000Z", "project": "", "service": "assay", "tool_name": OPERATION,
            "status": "started", "caller_id": "ana", "personal": {"target": orjson.dumps(target).decode()}, **fields,
        }
    )  # fmt: skip
    leaf = leaf_of(source, 7, GENESIS, b"s" * 32)
    return leaf.row, [text for _, text in leaf.disclosures]


def test_a_record_names_what_it_erased() -> None:
    row, texts = row_of({"log": "l", "rows": 2, "erased": HASH})
    assert erasure_of("l", row, texts) == Erasure(7, leaf_hash(leaf_data(row)).hex(), HASH)
    assert erasure_of("l", row, []) is None
    forged = disclosure_of("AAAAAAAAAAAAAAAAAAAAAA", "target", orjson.dumps({"log": "l", "erased": HASH}).decode())
    assert digest_of(forged) not in row["sd"]
    assert erasure_of("l", row, [forged]) is None


@pytest.mark.parametrize(
    "target", [{"log": "another", "erased": HASH}, {"log": "l", "erased": "x"}, {"log": "l", "erased": 5}, {"log": "l"}, [], "x", None]
)  # fmt: skip
def test_a_malformed_or_foreign_record_explains_nothing(target: object) -> None:
    assert erasure_of("l", *row_of(target)) is None


@pytest.mark.parametrize("fields", [{"tool_name": "prune"}, {"status": "done"}, {"kind": "tool_call"}])
def test_a_row_of_another_operation_or_outcome_is_no_record(fields: dict[str, str]) -> None:
    assert erasure_of("l", *row_of({"log": "l", "erased": HASH}, **fields)) is None
