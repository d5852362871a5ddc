"""The sample of pairs that people label: sizes by outcome, skipped pairs, and larger samples."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from assay_operations.evaluations.contradiction_reads import Outcome, _sample

RUN = "0c6a4b52-8b40-4a36-9d5c-1d6a3b9a7f10"
COUNTS = st.fixed_dictionaries({outcome: st.integers(0, 30) for outcome in Outcome})


def pairs(counts: dict[Outcome, int]) -> dict[str, tuple[str, Outcome]]:
    return {
        f"{outcome}-{number}": (f"pair of {outcome}-{number}", outcome)
        for outcome, count in counts.items()
        for number in range(count)
    }


def sizes(drawn: object, asked: dict[str, tuple[str, Outcome]]) -> Counter[Outcome]:
    return Counter(asked[each][1] for each in drawn)  # type: ignore[attr-defined]


def test_a_fifth_are_contradictions_a_fifth_are_errors_and_what_is_missing_comes_from_the_others() -> None:
    plenty = pairs({Outcome.CONTRADICTION: 200, Outcome.ERROR: 200, Outcome.OTHER: 200})
    assert sizes(_sample(plenty, RUN, 100), plenty) == {
        Outcome.CONTRADICTION: 20, Outcome.ERROR: 20, Outcome.OTHER: 60
    }  # fmt: skip
    few = pairs({Outcome.CONTRADICTION: 50, Outcome.ERROR: 2, Outcome.OTHER: 10})
    assert sizes(_sample(few, RUN, 30), few) == {Outcome.CONTRADICTION: 18, Outcome.ERROR: 2, Outcome.OTHER: 10}
    assert sizes(_sample(few, RUN, 1), few) == {Outcome.CONTRADICTION: 1}


@given(COUNTS, st.integers(1, 100), st.integers(0, 20))
def test_a_sample_has_its_size_and_is_in_each_larger_one(counts: dict[Outcome, int], size: int, more: int) -> None:
    asked = pairs(counts)
    small, large = _sample(asked, RUN, size), _sample(asked, RUN, size + more)
    assert len(small) == min(size, len(asked))
    assert set(small) <= set(large)


@given(COUNTS, st.integers(1, 60), st.data())
def test_a_skipped_pair_is_replaced_within_its_outcome_while_there_is_another(
    counts: dict[Outcome, int], size: int, data: st.DataObject
) -> None:
    asked = pairs(counts)
    whole = _sample(asked, RUN, size)
    skipped = data.draw(st.sets(st.sampled_from(sorted(whole)))) if whole else set()
    left = _sample(asked, RUN, size, skipped)
    assert not skipped & set(left)
    assert set(whole) - skipped <= set(left)
    had, has, gone = (sizes(each, asked) for each in (whole, left, skipped))
    for outcome, count in counts.items():
        assert has[outcome] == min(had[outcome], count - gone[outcome])
        for each in left:
            if asked[each][1] is outcome:
                assert left[each].probability == has[outcome] / count
