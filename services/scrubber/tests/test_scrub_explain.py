"""Which rule it was, without a word of what it found."""

import pytest

from assay_scrubber.custom import custom_family
from assay_scrubber.engine import Scrubber
from assay_scrubber.explain import Explaining, names_of, shape_of
from assay_scrubber.json_scrub import findings_in
from assay_scrubber.policy import Policy
from assay_scrubber.registry import FAMILIES
from assay_scrubber.taxonomy import Category

EXPLAINING = Explaining(Scrubber())


def told(text: str, hint: bytes = b"", explaining: Explaining = EXPLAINING) -> list[tuple[str, str, str]]:
    return [(f.family, *explaining.told(f)) for f in explaining.scrub(text, hint=hint).findings]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("to ann@example.com", [("email", "9-16 lower mark")]),
        ("call 555-123-4567 now", [("phone", "9-16 digit mark")]),
        ("4111 1111 1111 1111 ann@example.com", [("payment_card", "17-32 digit space"), ("email", "9-16 lower mark")]),
        ("my SSN 123-45-6789", [("us_ssn", "9-16 digit mark")]),
        ("ann%40example.com", [("email", "17-32 lower digit mark")]),
        ("nothing here", []),
    ],
)
def test_a_finding_is_told_by_its_rule_and_its_shape(text: str, rows: list[tuple[str, str]]) -> None:
    found = told(text)
    assert [(family, shape) for family, _, shape in found] == rows
    assert all(rule in _names(family) for family, rule, _ in found), found


def test_a_rules_name_is_what_checks_it_and_what_opens_it() -> None:
    assert told("to ann@example.com")[0][1] == "address:@"


def _names(family: str) -> list[str]:
    return names_of([rule for _, rules in FAMILIES[family].parts for rule in rules])


def test_findings_are_those_of_the_scrubber_itself() -> None:
    texts = [example for family in FAMILIES.values() for example in family.examples]
    plain = Scrubber()
    assert [EXPLAINING.scrub(text) for text in texts] == [plain.scrub(text) for text in texts]


def test_what_each_family_shows_as_found_has_a_rule_of_that_family() -> None:
    for family in FAMILIES.values():
        names = {*_names(family.name), "under_key", "beside_a_replacement"}
        for example in family.examples:
            rows = [rule for found, rule, _ in told(example) if found == family.name]
            assert set(rows) <= names, example


def test_no_two_rules_of_a_family_have_one_name_and_names_do_not_depend_on_their_order() -> None:
    for family in FAMILIES.values():
        rules = [rule for _, rows in family.parts for rule in rows]
        names = names_of(rules)
        assert len(set(names)) == len(names), family.name
        assert names_of(rules[::-1]) == names[::-1]


def test_keys_patterns_and_removed_keys_are_told_as_such() -> None:
    assert told("swordfish", b"password ")[0][:2] == ("secret", "under_key")
    staff = custom_family("staff_number", Category.ONLINE_IDENTIFIER, r"EMP-[0-9]{5}")
    policy = Policy(custom=(staff,), scrub_keys=frozenset({"note"}))
    explaining = Explaining(Scrubber(policy))
    assert told("EMP-12345", explaining=explaining) == [("staff_number", "pattern", "9-16 upper digit mark")]
    [(_, finding)] = findings_in(explaining, {"note": ["ann"]})
    assert explaining.told(finding) == ("policy", "any")


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("a", "1-4 lower"),
        ("abcd", "1-4 lower"),
        ("aB1 -", "5-8 lower upper digit space mark"),
        ("\u0434\u05d0", "1-4 lower letter"),
        ("x" * 128, "65-128 lower"),
        ("x" * 129, "over 128 lower"),
        ("", "1-4"),
    ],
)
def test_a_shape_is_a_class_that_countless_texts_share(text: str, shape: str) -> None:
    assert shape_of(text) == shape
