"""Keys of more vendors: how a catalogue's findings are taken in. The catalogue is an extra; what needs it is skipped without it."""

import re
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from assay_scrubber.detector import Detector
from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import Policy
from assay_scrubber.policy_file import parse_policies
from assay_scrubber.projection import project
from assay_scrubber.registry import FAMILIES
from assay_scrubber.vendor_keys import INSTALL, VendorKeysError, catalogue, finder, finder_of

KEY = "acme0123456789abcdefghij"
RANK = FAMILIES["api_key"].rank


def scan(raw: bytes) -> list[object]:
    """Stands in for kingfisher's: one vendor's keys, and a helper's finding that it would not show."""
    places = [match.span() for match in re.finditer(rb"acme[0-9a-z]{20}", raw)]
    shown = [SimpleNamespace(location={"start_offset": a, "end_offset": b}, visible=True) for a, b in places]
    return [*shown, SimpleNamespace(location={"start_offset": 0, "end_offset": 1}, visible=False)]


@pytest.mark.parametrize("text", [f"with {KEY}.", f"ключ {KEY} 😀", f"zero\u200bwidth {KEY}"])
def test_a_key_of_the_catalogue_is_found_where_it_stands(text: str) -> None:
    detector = Detector([FAMILIES["api_key"]], (finder_of(scan), RANK))
    found = detector.detect(project(text), b"")
    assert {(text[start:end], rank) for start, end, rank in found} == {(KEY, RANK)}


def test_texts_without_a_long_word_are_not_given_to_the_catalogue() -> None:
    def fails(_: bytes) -> list[tuple[int, int]]:
        raise AssertionError("it was asked")

    assert Detector([FAMILIES["api_key"]], (fails, RANK)).detect(b"fifteen_letters", b"") == []


def test_the_fingerprint_says_which_catalogue_was_asked() -> None:
    plain, asking = Policy(), Policy(catalogue="kingfisher-secret-scanner 1.5.0")
    assert len({plain.fingerprint, asking.fingerprint, Policy(catalogue="another 1").fingerprint}) == 3
    policies = parse_policies("[projects.clinic.actions]\ncontact = 'label'").asking(asking.catalogue)
    assert {policies.default.catalogue, policies.of("clinic").catalogue} == {asking.catalogue}


def _installed() -> bool:
    try:
        return bool(catalogue())
    except VendorKeysError:
        return False


@pytest.mark.skipif(_installed(), reason="kingfisher is installed")
def test_without_the_extra_the_error_says_what_to_install() -> None:
    for ask in (catalogue, finder, lambda: Scrubber(Policy(catalogue="kingfisher-secret-scanner 1.5.0"))):
        with pytest.raises(VendorKeysError, match=re.escape(INSTALL)):
            ask()


@pytest.mark.skipif(not _installed(), reason="needs assay-scrubber[kingfisher]")
def test_the_real_catalogue_finds_keys_that_no_prefix_of_ours_marks() -> None:
    text = "datadog: 0f3a9c71b2e84d65a0c1f7e92b3d4856 é p8e-e1byqmasnmc6g5f2x33kq8r3cpt7rwk5"
    scrubber = Scrubber(Policy(catalogue=catalogue()))
    result = scrubber.scrub(text)
    assert result.text == "datadog: [REDACTED] é [REDACTED]"
    assert [finding.family for finding in result.findings] == ["api_key", "api_key"]
    assert scrubber.scrub(result.text).text == result.text
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: scrubber.scrub(text).text, range(200))) == {result.text}
