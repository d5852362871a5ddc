"""Room on the disk: what is done about merges, before there is none."""

from assay_store.space import Merges

RESERVE = 1000


def test_merges_stop_once_half_of_the_reserve_is_gone_and_start_again_when_all_of_it_is_back() -> None:
    merges = Merges(RESERVE)
    said = [merges.judge(free) for free in (5000, 900, 500, 499, 10, 700, 999, 1000, 5000)]
    assert said == [None, None, None, "SYSTEM STOP MERGES", None, None, None, "SYSTEM START MERGES", None]


def test_merges_that_a_person_stopped_stay_stopped_while_there_is_room() -> None:
    assert [Merges(RESERVE).judge(free) for free in (500, 1000, 5000)] == [None] * 3


def test_without_a_reserve_merges_are_left_alone() -> None:
    assert Merges(0).judge(0) is None
