"""What the console remembers of the verdicts that it showed: bounded, and apart by person."""

from assay_console.shown_verdicts import ANSWERS_MAX, PEOPLE_MAX, ShownVerdicts


def test_each_person_has_seen_what_was_shown_to_them() -> None:
    seen = ShownVerdicts()
    seen.add("ada", ["b", "a", "b"])
    seen.add("bob", [])
    assert (seen.to("ada"), seen.to("bob"), seen.to("eve")) == (("a", "b"), (), ())


def test_the_oldest_answers_and_people_make_room() -> None:
    seen = ShownVerdicts()
    seen.add("ada", map(str, range(ANSWERS_MAX)))
    seen.add("ada", ["0", "new"])
    assert len(seen.to("ada")) == ANSWERS_MAX
    assert {"0", "new"} <= set(seen.to("ada"))
    assert "1" not in seen.to("ada")
    for number in range(PEOPLE_MAX):
        seen.add(f"person {number}", ["x"])
    assert seen.to("ada") == ()
    assert seen.to("person 0") == ("x",)
