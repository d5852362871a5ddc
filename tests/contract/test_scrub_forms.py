"""What the scrubber promises of forms that rules were not written for, and of texts that only tempt it."""

import pytest

from assay_scrubber.engine import Scrubber
from tests.bench.pii.forms import PERSONAL, Half, found, groups, tally
from tests.bench.pii.stay import texts

SECRETS, OF_PERSONS = 0.90, 0.85


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return Scrubber()


@pytest.fixture(scope="module")
def halves(scrubber: Scrubber) -> dict[tuple[str, bool], Half]:
    return tally(lambda form: found(scrubber, form))


@pytest.mark.parametrize("group", groups())
def test_enough_forms_that_nobody_looked_at_are_found(group: str, halves: dict[tuple[str, bool], Half]) -> None:
    least = OF_PERSONS if group in PERSONAL else SECRETS
    both = [halves[group, False], halves[group, True]]
    assert sum(half.hits for half in both) / sum(half.n for half in both) >= least
    assert halves[group, True].recall >= least - 0.05  # of a dozen forms in a half, one more or less


def test_no_text_changes_that_only_tempts(scrubber: Scrubber) -> None:
    written = texts()
    assert len(written) >= 500
    assert [text for _, text in written if scrubber.scrub(text).text != text] == []
