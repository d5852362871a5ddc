"""Names of people and places: what is done with what a model finds. The model itself is an extra; a stand-in finds fixed names here."""

import re
from collections.abc import Iterator

from assay_scrubber.engine import Scrubber
from assay_scrubber.ner import PIECE_CHARS, Entity, NamesScrubber
from assay_scrubber.policy import Action, Policy

KNOWN = {"Ann Smith": "PERSON", "Lisbon": "GPE", "Acme": "ORG"}


def recognize(text: str) -> Iterator[Entity]:
    assert len(text) <= PIECE_CHARS
    for match in re.finditer("|".join(KNOWN), text):
        yield Entity(KNOWN[match[0]], *match.span())


NAMES = NamesScrubber(recognize=recognize)


def test_names_and_places_go_and_other_entities_stay() -> None:
    result = NAMES.scrub("Ann Smith of Acme in Lisbon, ann@example.com")
    assert result.text == "[REDACTED] of Acme in [REDACTED], [REDACTED]"
    assert [finding.family for finding in result.findings] == ["email", "person_name", "place_name"]


def test_what_happens_to_names_is_what_the_policy_says() -> None:
    text = "Ann Smith in Lisbon, Ann Smith"
    key = b"0123456789abcdef"
    labels = Policy.from_mapping({"actions": {"contact": "label", "location": "label"}})
    assert NamesScrubber(labels, recognize).scrub(text).text == "[PERSON_NAME] in [PLACE_NAME], [PERSON_NAME]"
    some = Policy.from_mapping({"actions": {"contact": "allow"}, "families": {"place_name": "label"}})
    allowed = NamesScrubber(some, recognize).scrub(text)
    assert allowed.text == "Ann Smith in [PLACE_NAME], Ann Smith"
    assert [finding.family for finding in allowed.findings] == ["person_name", "place_name", "person_name"]
    hashes = Policy.from_mapping({"families": {"person_name": "hash"}}, hash_key=key)
    hashed = NamesScrubber(hashes, recognize).scrub(text).text
    assert re.fullmatch(r"(\[PERSON_NAME:[a-p]{24}\]) in \[REDACTED\], \1", hashed)
    assert NamesScrubber(hashes, recognize).scrub(hashed).text == hashed


def test_names_can_be_refused() -> None:
    scrubber = NamesScrubber(Policy.from_mapping({"actions": {"location": "refuse"}}), recognize)
    assert scrubber.categories(finding.family for finding in scrubber.scrub("in Lisbon").findings) == ["location"]
    assert scrubber.policy.action("place_name") is Action.REFUSE


def test_a_long_text_is_read_in_pieces() -> None:
    text = "from Lisbon to nowhere\n" * 3_000
    assert NAMES.scrub(text).text == text.replace("Lisbon", "[REDACTED]")


def test_scrubbing_twice_changes_nothing_more() -> None:
    once = NAMES.scrub("Ann Smith, Lisbon, 555-123-4567").text
    assert NAMES.scrub(once).text == once
    assert Scrubber().scrub(once).text == once


def test_documents_are_scrubbed_by_value() -> None:
    assert NAMES.scrub_json({"Lisbon": ["Lisbon", 1]}).value == {"Lisbon": ["[REDACTED]", 1]}
