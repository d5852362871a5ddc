"""docs/families.md, and what every family says of itself."""

import pytest

from assay_scrubber.engine import Scrubber
from assay_scrubber.family import Family
from assay_scrubber.registry import FAMILIES
from docs.generate import family_reference


def test_the_reference_names_every_family_with_its_description() -> None:
    text = family_reference.document()
    for family in FAMILIES.values():
        assert f"| `{family.name}` | {family.description} |" in text


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_a_familys_examples_are_true(family: Family, scrubber: Scrubber) -> None:
    assert family.description
    assert family.examples
    for text in family.examples:
        assert family.name in {finding.family for finding in scrubber.scrub(text).findings}, text
    for text in family.counterexamples:
        assert family.name not in {finding.family for finding in scrubber.scrub(text).findings}, text
