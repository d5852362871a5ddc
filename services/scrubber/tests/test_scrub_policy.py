"""The policy: closed names, a fingerprint, families switched off."""

import dataclasses
from typing import Any

import pytest

from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import Policy, PolicyError
from assay_scrubber.registry import FAMILIES
from assay_scrubber.taxonomy import Category

CATEGORY_OF = {
    "email": "contact",
    "phone": "contact",
    "us_ssn": "government_id",
    "payment_card": "payment_card",
    "jwt": "credential",
    "bearer_token": "credential",
    "connection_url": "credential",
}


def test_there_are_twelve_categories() -> None:
    assert len(Category) == 12


def test_every_family_belongs_to_its_category_and_has_a_rank_of_its_own() -> None:
    assert {name: str(family.category) for name, family in FAMILIES.items()} == CATEGORY_OF
    assert len({family.rank for family in FAMILIES.values()}) == len(FAMILIES)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"families": ["emial"]}, "unknown family 'emial'; valid: bearer_token, connection_url, email"),
        ({"families": "email"}, "families must be a list"),
        ({"actions": {"contacts": "redact"}}, "unknown category 'contacts'; valid: behavioral, biometric, contact"),
        ({"actions": {"contact": "redcat"}}, "unknown action 'redcat'; valid: redact"),
        ({"actions": ["contact"]}, "actions must map a category to an action"),
        ({"familys": []}, "unknown policy setting 'familys'; valid: actions, families, scrub_slugs"),
        ({"scrub_slugs": "yes"}, "scrub_slugs must be true or false"),
    ],
)
def test_an_unknown_name_is_refused_with_the_valid_ones(values: dict[str, Any], named: str) -> None:
    with pytest.raises(PolicyError, match=named):
        Policy.from_mapping(values)


def test_a_policy_built_directly_is_checked_too() -> None:
    with pytest.raises(PolicyError, match="unknown family"):
        Policy(families=frozenset({"emial"}))


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Policy().scrub_slugs = True  # type: ignore[misc]


def test_families_that_are_switched_off_are_not_looked_for() -> None:
    text = "ann@example.com, 555-123-4567"
    assert Scrubber(Policy.from_mapping({"families": ["phone"]})).scrub(text).text == "ann@example.com, [REDACTED]"
    assert Scrubber(Policy.from_mapping({"families": []})).scrub(text).text == text


def test_the_fingerprint_is_short_hex_equal_for_equal_policies_and_different_otherwise() -> None:
    default = Policy().fingerprint
    assert len(default) == 16
    assert int(default, 16) >= 0
    assert Policy.from_mapping({"actions": {"contact": "redact"}}).fingerprint == default
    others = [Policy(families=frozenset({"email"})), Policy(scrub_slugs=True), Policy(replacement="[X]")]
    assert len({default, *(policy.fingerprint for policy in others)}) == 4


def test_findings_carry_family_category_and_place_but_no_text(scrubber: Scrubber) -> None:
    (finding,) = scrubber.scrub("to ann@example.com").findings
    assert finding == ("email", "contact", 3, 18)
