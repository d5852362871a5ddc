"""Reviews of cases, and releases of datasets."""

import pytest

from assay_evals.dataset.model import Case, Dataset, DatasetError
from assay_evals.dataset.review import is_reviewed, released, reviewed, unreviewed


def case(name: str, **fields: object) -> Case:
    return Case.model_validate({"id": name, "query": f"about {name}?", "expected_ids": ["x"]} | fields)


MINED = [case(f"m{number}", reviewed=False) for number in range(10)]


def test_notes_of_older_datasets_say_the_same() -> None:
    old = case("a", notes="Unreviewed: mined from production. 3 times")
    assert not is_reviewed(old)
    (looked_at,) = reviewed(Dataset(cases=[old]), kept=["a"]).cases
    assert is_reviewed(looked_at)
    assert looked_at.notes == "Mined from production. 3 times"


def test_a_share_is_drawn_by_the_seed_and_is_never_none() -> None:
    dataset = Dataset(cases=[case("mine"), *MINED])
    assert unreviewed(dataset) == MINED
    drawn = unreviewed(dataset, share=0.2, seed=1)
    assert len(drawn) == 2
    assert drawn == unreviewed(dataset, share=0.2, seed=1)
    assert len(unreviewed(dataset, share=0.001)) == 1
    assert unreviewed(Dataset(cases=[case("mine")]), share=0.2) == []


def test_kept_cases_are_reviewed_and_dropped_ones_gone() -> None:
    after = reviewed(Dataset(cases=MINED), kept=["m1"], dropped=["m2", "m3"])
    assert [each.id for each in unreviewed(after)] == ["m0", "m4", "m5", "m6", "m7", "m8", "m9"]
    assert len(after.cases) == 8


@pytest.mark.parametrize(
    ("kept", "dropped", "words"),
    [
        (["zz"], [], "case zz: the dataset holds none"),
        (["m1"], ["m1"], "kept and dropped"),
        ([], [each.id for each in MINED], "no cases would be left"),
    ],
)
def test_a_review_that_makes_no_sense_is_refused(kept: list[str], dropped: list[str], words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        reviewed(Dataset(cases=MINED), kept=kept, dropped=dropped)


def test_a_release_says_what_changed_on_top_of_what_changed_before() -> None:
    first = Dataset(version="1.0.0", cases=[case("a"), case("b")])
    second = released(
        first, Dataset(cases=[case("b", tags=["x"]), case("c")]), version="1.1.0", note="why", at="2026-01-02"
    )
    third = released(second, Dataset(cases=[case("c")]), version="1.2.0", note="less", at="2026-01-03")
    assert third.version == "1.2.0"
    assert [(each.version, each.added, each.removed, each.changed) for each in third.changelog] == [
        ("1.2.0", [], ["b"], []),
        ("1.1.0", ["c"], ["a"], ["b"]),
    ]


def test_a_release_without_a_change_or_of_a_taken_version_is_refused() -> None:
    first = Dataset(version="1.0.0", cases=[case("a")])
    with pytest.raises(DatasetError, match="nothing to release"):
        released(first, first, version="1.1.0", note="", at="")
    second = released(first, Dataset(cases=[case("b")]), version="1.1.0", note="", at="")
    third = released(second, Dataset(cases=[case("c")]), version="1.2.0", note="", at="")
    for taken in ("1.1.0", "1.2.0"):
        with pytest.raises(DatasetError, match="is taken"):
            released(third, Dataset(cases=[case("d")]), version=taken, note="", at="")


@pytest.mark.parametrize("version", ["", " ", "1.1\n.0", "1\x1b[31m"])
def test_a_version_that_is_not_words_of_one_line_is_refused(version: str) -> None:
    with pytest.raises(DatasetError, match="words of one line"):
        released(Dataset(cases=[case("a")]), Dataset(cases=[case("b")]), version=version, note="x", at="2026-11-23")


@pytest.mark.parametrize(
    ("last", "next_one", "taken"),
    [("1.1.0", "1.0.0", False), ("1.9", "1.10", True), ("1.1.0", "1.1", False), ("spring", "1", True)],
)
def test_a_release_is_above_the_last_where_both_are_numbers(last: str, next_one: str, taken: bool) -> None:

    old = Dataset(version=last, cases=[Case(id="a", query="q", expected_ids=["x"])])
    new = Dataset(cases=[*old.cases, Case(id="b", query="r", expected_ids=["x"])])
    if taken:
        assert released(old, new, version=next_one, note="", at="").version == next_one
    else:
        with pytest.raises(DatasetError, match="is not above"):
            released(old, new, version=next_one, note="", at="")
