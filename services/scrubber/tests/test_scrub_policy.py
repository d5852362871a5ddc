"""The policy: closed names, a fingerprint, families switched off."""

import dataclasses
from typing import Any

import pytest

from assay_scrubber.custom import custom_family
from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import FLOOR, Action, Policy, PolicyError
from assay_scrubber.registry import FAMILIES
from assay_scrubber.taxonomy import Category

KEY = b"0123456789abcdef"
CATEGORY_OF = {
    "email": "contact",
    "phone": "contact",
    "us_ssn": "government_id",
    "payment_card": "payment_card",
    "jwt": "credential",
    "bearer_token": "credential",
    "connection_url": "credential",
    "private_key": "credential",
    "api_key": "credential",
    "secret": "credential",
    "iban": "payment_card",
    "bank_account": "payment_card",
    "passport": "government_id",
    "driver_licence": "government_id",
    "national_id": "government_id",
    "crypto_wallet": "online_identifier",
    "mac_address": "online_identifier",
    "ip_address": "online_identifier",
    "date_of_birth": "demographic_protected",
}


def test_there_are_twelve_categories() -> None:
    assert len(Category) == 12


def test_every_family_belongs_to_its_category_and_has_a_rank_of_its_own() -> None:
    assert {name: str(family.category) for name, family in FAMILIES.items()} == CATEGORY_OF
    assert len({family.rank for family in FAMILIES.values()}) == len(FAMILIES)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"families": {"emial": "label"}}, "unknown family 'emial'; valid: .*email"),
        ({"families": ["email"]}, "families must map a family to an action; valid: .*email"),
        ({"actions": {"contacts": "redact"}}, "unknown category 'contacts'; valid: behavioral, biometric, contact"),
        ({"actions": {"contact": "redcat"}}, "unknown action 'redcat'; valid: allow, hash, label, redact, refuse"),
        ({"actions": {"contact": 1}}, "unknown action 1; valid: allow"),
        ({"actions": ["contact"]}, "actions must map a category to an action; valid: behavioral"),
        ({"familys": []}, "unknown policy setting 'familys'; valid: actions, families, scrub_keys, scrub_slugs"),
        ({"scrub_slugs": "yes"}, "scrub_slugs must be true or false"),
    ],
)
def test_an_unknown_name_is_refused_with_the_valid_ones(values: dict[str, Any], named: str) -> None:
    with pytest.raises(PolicyError, match=named):
        Policy.from_mapping(values)


@pytest.mark.parametrize("category", sorted(FLOOR))
def test_the_floor_can_never_be_allowed_neither_by_category_nor_by_family(category: Category) -> None:
    with pytest.raises(PolicyError, match=f"{category} can never be allowed .*credential, government_id, payment_card"):
        Policy.from_mapping({"actions": {category: "allow"}})
    for family in FAMILIES.values():
        if family.category == category:
            with pytest.raises(PolicyError, match="can never be allowed"):
                Policy.from_mapping({"families": {family.name: "allow"}})


def test_every_other_action_is_open_to_the_floor_and_every_action_to_the_rest() -> None:
    for action in Action:
        allowed = {category: action for category in Category if category not in FLOOR or action is not Action.ALLOW}
        policy = Policy.from_mapping({"actions": allowed}, hash_key=KEY)
        assert policy.action("email") is action


def test_what_is_said_of_a_family_goes_before_what_is_said_of_its_category() -> None:
    policy = Policy.from_mapping({"actions": {"contact": "refuse"}, "families": {"phone": "label"}})
    assert [policy.action(name) for name in ("email", "phone", "jwt")] == ["refuse", "label", "redact"]


def test_hashing_without_a_key_or_with_a_short_one_is_refused_by_the_setting_that_mends_it() -> None:
    with pytest.raises(PolicyError, match=r"set scrubber\.hash_key_file \(ASSAY_SCRUBBER_HASH_KEY_FILE"):
        Policy.from_mapping({"families": {"email": "hash"}})
    with pytest.raises(PolicyError, match="hash_key is shorter than 16 bytes"):
        Policy.from_mapping({"families": {"email": "hash"}}, hash_key=b"too short")


def test_the_key_is_in_no_repr() -> None:
    assert "another-key" not in repr(Policy.from_mapping({}, hash_key=b"another-key-of-16-bytes"))


def test_a_policy_built_directly_is_checked_too() -> None:
    with pytest.raises(PolicyError, match="unknown family"):
        Policy(families=frozenset({"emial"}))


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Policy().scrub_slugs = True  # type: ignore[misc]


def test_only_the_families_named_are_looked_for() -> None:
    text = "ann@example.com, 555-123-4567"
    assert Scrubber(Policy(families=frozenset({"phone"}))).scrub(text).text == "ann@example.com, [REDACTED]"
    assert Scrubber(Policy(families=frozenset())).scrub(text).text == text


def test_the_fingerprint_is_short_hex_equal_for_equal_policies_and_different_otherwise() -> None:
    default = Policy().fingerprint
    assert len(default) == 16
    assert int(default, 16) >= 0
    assert Policy.from_mapping({"actions": {"contact": "redact"}}).fingerprint == default
    others = [
        Policy(families=frozenset({"email"})),
        Policy(scrub_slugs=True),
        Policy(replacement="[X]"),
        Policy.from_mapping({"actions": {"contact": "label"}}),
        Policy.from_mapping({"families": {"email": "label"}}),
        Policy.from_mapping({"families": {"email": "hash"}}, hash_key=KEY),
        Policy.from_mapping({"families": {"email": "hash"}}, hash_key=KEY[::-1]),
        Policy(custom=(custom_family("staff", Category.CONTACT, "a1"),)),
        Policy(custom=(custom_family("staff", Category.CONTACT, "a2"),)),
        Policy(custom=(custom_family("staff", Category.HEALTH, "a2"),)),
    ]
    assert len({default, *(policy.fingerprint for policy in others)}) == 1 + len(others)
    assert Policy.from_mapping({}, hash_key=KEY).fingerprint == default  # a key that nothing is hashed with


def test_findings_carry_family_category_and_place_but_no_text(scrubber: Scrubber) -> None:
    (finding,) = scrubber.scrub("to ann@example.com").findings
    assert finding == ("email", "contact", 3, 18)
