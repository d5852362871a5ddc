"""Names of people and places: what is done with what a model finds. The model itself is an extra; a stand-in finds fixed names here."""

import re
from collections.abc import Iterator

from assay_scrubber.engine import Scrubber
from assay_scrubber.names import PIECE_CHARS, Entity, NamesScrubber
from assay_scrubber.policy import Policy

KNOWN = {"Ann Smith": "PERSON", "Lisbon": "GPE", "Acme": "ORG"}


def recognize(text: str) -> Iterator[Entity]:
    assert len(text) <= PIECE_CHARS
    for match in re.finditer("|".join(KNOWN), text):
        yield Entity(KNOWN[match[0]], *match.span())


NAMES = NamesScrubber(recognize=recognize)


def test_names_and_places_go_and_other_entities_stay() -> None:
    result = NAMES.scrub("Ann Smith of Acme in Lisbon, ann@example.com")
    assert result.text == "[PERSON_NAME] of Acme in [PLACE_NAME], [REDACTED]"
    assert [finding.family for finding in result.findings] == ["email", "person_name", "place_name"]


def test_names_are_labelled_whatever_the_policy_does_with_their_categories() -> None:
    policy = Policy.from_mapping({"actions": {"contact": "allow", "location": "refuse"}})
    result = NamesScrubber(policy, recognize).scrub("Ann Smith in Lisbon, ann@example.com")
    assert result.text == "[PERSON_NAME] in [PLACE_NAME], ann@example.com"


def test_a_long_text_is_read_in_pieces() -> None:
    text = "from Lisbon to nowhere\n" * 3_000
    assert NAMES.scrub(text).text == text.replace("Lisbon", "[PLACE_NAME]")


def test_scrubbing_twice_changes_nothing_more() -> None:
    once = NAMES.scrub("Ann Smith, Lisbon, 555-123-4567").text
    assert NAMES.scrub(once).text == once
    assert Scrubber().scrub(once).text == once


def test_documents_are_scrubbed_by_value() -> None:
    assert NAMES.scrub_json({"Lisbon": ["Lisbon", 1]}).value == {"Lisbon": ["[PLACE_NAME]", 1]}
