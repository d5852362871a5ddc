"""Identity: what an `event_id` and an `id` promise."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_schema.ids import EPOCH_MS, PLACES, entry_parts, event_ms, first_row_at, new_event_id, row_id, row_ms
from assay_schema.limits import SAFE_INTEGER_MAX

#: 40 bits of milliseconds after the epoch.
LAST_MS = EPOCH_MS + 2**40 - 1
moments = st.integers(EPOCH_MS, LAST_MS)
#: Below every shard count's limit, so that every entry has an `id`.
sequences = st.integers(0, PLACES // 2 // 16 - 1)


@st.composite
def entries(draw: st.DrawFn) -> tuple[int, int, int]:
    return draw(moments), draw(sequences), draw(st.integers(0, 15))


def id_of(ms: int, sequence: int, shard: int = 0, shards: int = 16) -> int:
    found = row_id(f"{ms}-{sequence}", shard, shards)
    assert found is not None
    return found


@given(entries(), entries())
def test_ids_are_ordered_as_the_log_is_and_two_entries_never_share_one(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    assert (id_of(*one) < id_of(*other)) == (one < other)
    assert (id_of(*one) == id_of(*other)) == (one == other)


@given(entries())
def test_an_id_gives_back_the_millisecond_it_was_made_from(entry: tuple[int, int, int]) -> None:
    assert row_ms(id_of(*entry)) == entry[0]


@given(entries())
def test_an_id_is_exact_in_every_json_parser(entry: tuple[int, int, int]) -> None:
    assert 0 <= id_of(*entry) <= SAFE_INTEGER_MAX
    assert int(float(id_of(*entry))) == id_of(*entry)


@given(entries())
def test_ids_packed_from_a_place_are_even_so_that_odd_ones_are_free_for_overflow(entry: tuple[int, int, int]) -> None:
    assert id_of(*entry) % 2 == 0


@given(entries())
def test_the_first_id_of_a_moment_is_at_or_below_every_id_of_it_and_above_all_before(
    entry: tuple[int, int, int],
) -> None:
    assert first_row_at(entry[0]) <= id_of(*entry) < first_row_at(entry[0] + 1)


@pytest.mark.parametrize("shards", [1, 2, 3, 16])
def test_the_last_sequence_that_fits_leaves_room_for_every_shard(shards: int) -> None:
    last = max(n for n in range(PLACES) if row_id(f"{EPOCH_MS}-{n}", shards - 1, shards) is not None)
    assert (last + 1) * shards <= PLACES // 2
    assert row_id(f"{EPOCH_MS}-{last + 1}", shards - 1, shards) is None


def test_the_epoch_is_zero_and_the_last_moment_still_fits() -> None:
    assert row_id(f"{EPOCH_MS}-0") == 0
    assert id_of(LAST_MS, PLACES // 2 - 1, 0, 1) <= SAFE_INTEGER_MAX


def test_moments_before_the_epoch_begin_at_zero() -> None:
    assert first_row_at(0) == first_row_at(EPOCH_MS) == 0


def test_an_entry_id_splits_in_its_two_integers() -> None:
    assert entry_parts("1767323045700-12") == (1767323045700, 12)


def test_event_ids_are_distinct_uuids_of_version_7() -> None:
    made = [new_event_id() for _ in range(2_000)]
    assert len(set(made)) == len(made)
    for text in made:
        event_id = UUID(text)
        assert (str(event_id), event_id.version, event_id.variant) == (text, 7, "specified in RFC 4122")


def test_event_ids_sort_by_the_millisecond_they_were_made_in() -> None:
    made = [UUID(new_event_id()) for _ in range(2_000)]
    assert [event_ms(event_id) for event_id in made] == sorted(event_ms(event_id) for event_id in made)


def test_an_event_id_carries_unix_milliseconds() -> None:
    assert event_ms(UUID("019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d")) == 0x019B7F2E5C00
