"""Each action: what it leaves in the text, that a second scrub changes nothing, and that nothing planted survives."""

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_scrubber.custom import custom_family
from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import Policy
from assay_scrubber.registry import FAMILIES
from assay_scrubber.replacement import HASH_LETTERS, hashed, label
from assay_scrubber.taxonomy import Category

KEY = b"0123456789abcdef"
CARD = "4111 1111 1111 1111"
FLOOR_TO_LABEL = {"credential": "label", "payment_card": "label", "government_id": "label"}


def scrubber(**values: Any) -> Scrubber:
    return Scrubber(Policy.from_mapping(values, hash_key=KEY))


EVERY = {
    "label": scrubber(actions=dict.fromkeys(Category, "label")),
    "hash": scrubber(actions=dict.fromkeys(Category, "hash")),
    "refuse": scrubber(actions=dict.fromkeys(Category, "refuse")),
    "mixed": scrubber(actions={"contact": "hash", "credential": "label"}, families={"phone": "allow"}),
    "allow": scrubber(actions={c: "allow" for c in Category if c not in FLOOR_TO_LABEL} | FLOOR_TO_LABEL),
}


def test_a_label_names_the_family() -> None:
    result = EVERY["label"].scrub(f"ann@example.com, {CARD}, Bearer abc123DEF456ghi789")
    assert result.text == "[EMAIL], [PAYMENT_CARD], Bearer [BEARER_TOKEN]"


def test_a_hash_is_the_same_for_the_same_value_and_only_for_it() -> None:
    first, same, folded, other = (
        EVERY["hash"].scrub(text).text
        for text in ("ann@example.com", "Ann@Example.com", "ａｎｎ＠example.com", "bob@example.com")
    )
    assert first == same == folded != other
    assert len(first) == len("[EMAIL:]") + HASH_LETTERS
    assert EVERY["hash"].scrub(CARD).text == EVERY["hash"].scrub("4111-1111-1111-1111").text
    assert EVERY["hash"].scrub_json([4111111111111111]).value == [EVERY["hash"].scrub(CARD).text]


def test_hashes_under_another_key_or_of_another_family_differ() -> None:
    email, phone = FAMILIES["email"], FAMILIES["phone"]
    values = {hashed(KEY, email, "x"), hashed(KEY[::-1], email, "x"), hashed(KEY, phone, "x").replace("PHONE", "EMAIL")}
    assert len(values) == 3


def test_credentials_that_differ_in_case_have_different_hashes() -> None:
    family = FAMILIES["bearer_token"]
    assert hashed(KEY, family, "abcDEF") != hashed(KEY, family, "abcdef")


def test_what_is_to_be_refused_is_redacted_wherever_it_is_shown() -> None:
    assert EVERY["refuse"].scrub("ann@example.com").text == "[REDACTED]"


def test_what_is_allowed_stays_and_is_named_among_the_findings() -> None:
    result = scrubber(families={"email": "allow"}).scrub(f"ann@example.com {CARD}")
    assert result.text == "ann@example.com [REDACTED]"
    assert [finding.family for finding in result.findings] == ["email", "payment_card"]


def test_an_allowed_number_in_json_stays_a_number() -> None:
    assert scrubber(families={"phone": "allow"}).scrub_json({"phone": 5551234567}) == (
        {"phone": 5551234567},
        {"phone": 1},
    )


def test_where_an_allowed_family_and_another_claim_the_same_text_it_goes() -> None:
    inside = custom_family("host", Category.ONLINE_IDENTIFIER, "example.com")
    policy = Policy(actions=Policy.from_mapping({"families": {"email": "allow"}}).actions, custom=(inside,))
    result = Scrubber(policy).scrub("ann@example.com, bob@other.org")
    assert result.text == "ann@[REDACTED], bob@other.org"
    assert [(f.family, f.start, f.end) for f in result.findings] == [("host", 4, 15), ("email", 17, 30)]


@pytest.mark.parametrize("pattern", [r"\[.*\]", "[A-Z]{2,}", "[a-p]{10,}", "EMAIL", "."])
def test_a_pattern_that_would_match_replacements_leaves_them_alone(pattern: str) -> None:
    actions = Policy.from_mapping({"actions": {"contact": "hash"}}, hash_key=KEY).actions
    custom = custom_family("anything", Category.HEALTH, pattern)
    engine = Scrubber(Policy(actions=actions, custom=(custom,), hash_key=KEY))
    once = engine.scrub("to ann@example.com or b").text
    assert "ann@" not in once
    assert engine.scrub(once).text == once


PIECES = st.sampled_from(
    [
        "ann@example.com", CARD, "555-123-4567", "123-45-6789", "Bearer abc123DEF456ghi789", "postgres://u:pw12@h/d", "phone ",
        "password=", "api_key: ", "[EMAIL]", "[REDACTED]", "[EMAIL:abcdefghijklmnopabcdefgh]", "[PHONE", "]", ":", "@", "//", "%40",
        "1", " ", "\n", "a", "\u200b", "4111", "12/26", "[", "token=",
    ]
)  # fmt: skip


@pytest.mark.parametrize("action", sorted(EVERY))
@given(st.lists(PIECES, max_size=14).map("".join))
@settings(max_examples=250)
def test_scrubbing_twice_changes_nothing_more_whatever_the_action(action: str, text: str) -> None:
    engine = EVERY[action]
    once = engine.scrub(text)
    again = engine.scrub(once.text)
    assert again.text == once.text
    assert [f for f in again.findings if str(engine.policy.action(f.family)) != "allow"] == []
    assert all(a.end <= b.start for a, b in zip(once.findings, once.findings[1:], strict=False))


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_label_is_no_finding(name: str) -> None:
    assert EVERY["label"].scrub(f"x {label(name)} y").findings == []


def test_one_scrubber_gives_many_threads_the_same_results() -> None:
    texts = [
        f"user{n}@example.com, card {CARD}, tel 555-123-{n:04}, {{'k': 'Bearer abc123DEF456ghi{n}'}}" for n in range(60)
    ]
    expected = [EVERY["mixed"].scrub(text) for text in texts]
    engine, wrong = Scrubber(EVERY["mixed"].policy), []

    def work(offset: int) -> None:
        for step in range(len(texts) * 5):
            place = (step + offset) % len(texts)
            if engine.scrub(texts[place]) != expected[place]:
                wrong.append(place)

    threads = [threading.Thread(target=work, args=(13 * number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
